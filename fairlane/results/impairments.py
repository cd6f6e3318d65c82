"""What links did to frames on the way, for each direction that loses or impairs some, and what was dropped for a wrong checksum."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fairlane.arrays import np
from fairlane.results import series
from fairlane.results.series import Series, Steps

if TYPE_CHECKING:
    import pandas as pd

COUNTS = ("offered_packets", "lost_packets", "reordered_packets", "duplicated_packets", "corrupted_packets")


def table(recorded: Series) -> pd.DataFrame:
    """A row for each bin of `Experiment.link_bin_s` and direction, as docs/results.md says; empty where no link loses or impairs frames."""
    return series.frame(columns(recorded))


def columns(recorded: Series) -> Iterator[dict[str, Any]]:
    """The same, direction by direction as columns."""
    edges = np.asarray(recorded.experiment.bin_edges_s(recorded.experiment.link_bin_s))
    for link, sums in _sums(recorded):
        yield {"time_s": edges[1:], "link": link, **{name: np.diff(steps.at(edges)) for name, steps in sums.items()}}


def of_window(recorded: Series) -> list[dict[str, Any]]:
    """One object for each direction: its name under `link`, and what was counted in the window."""
    window = recorded.experiment.window_s
    return [{"link": link, **{name: round(steps.over(*window)) for name, steps in sums.items()}} for link, sums in _sums(recorded)]


def of_link(recorded: Series, link: str) -> dict[str, float]:
    """What was counted in the window of one direction; not a number where it neither loses nor impairs frames."""
    sums = dict(_sums(recorded)).get(link, {})
    return {name: sums[name].over(*recorded.experiment.window_s) if name in sums else math.nan for name in COUNTS}


def _sums(recorded: Series) -> Iterator[tuple[str, dict[str, Steps]]]:
    """In the order of the network's links."""
    topology = recorded.experiment.topology
    names = [f"{p.node}->{p.peer}" for ports in topology.ports().values() for p in ports]
    for name in dict.fromkeys(names):
        rows = recorded.impaired.get(name)
        if rows is not None:
            yield name, {count: Steps(rows["unix_s"], rows[count].astype(float)) for count in COUNTS}
