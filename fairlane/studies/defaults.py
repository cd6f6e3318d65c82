"""Default measures and figures of a study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fairlane.experiments.expressions import Value
from fairlane.studies import units
from fairlane.studies.study import Figure


def measures(groups: Sequence[str]) -> dict[str, str]:
    """The goodput of each group of flows, and the state of the bottleneck. groups: names of [[flows]]."""
    chosen = {f"{group.replace('-', '_').replace('.', '_')}_goodput_bps": f"= {group}.goodput_bps" for group in groups}
    chosen = chosen if len(chosen) == len(groups) else {"goodput_bps": "= all.goodput_bps"}
    return {
        **chosen,
        "loss": "= all.loss",
        "jain": "= all.jain",
        "utilisation": "= bottleneck.utilisation",
        "queue_packets": "= bottleneck.mean_queue_packets",
    }


def figures(measured: Mapping[str, str], axes: Mapping[str, Sequence[Value]]) -> tuple[Figure, ...]:
    """Each measure over the first axis of several numbers (otherwise bars over the first axis); another axis of several values makes the lines."""
    several = [name for name, values in axes.items() if len(values) > 1] or list(axes)
    if not several:
        return ()
    numbers = [name for name in several if all(isinstance(v, int | float) and not isinstance(v, bool) for v in axes[name])]
    x = (numbers or several)[0]
    series = next((name for name in several if name != x), "")
    where = {name: values[0] for name, values in axes.items() if name not in (x, series) and len(values) > 1}
    at = "".join(f", {units.titled(name)} {units.written(value, units.of_name(name))}" for name, value in where.items())
    return tuple(
        Figure(f"{units.titled(name)} over {units.titled(x)}{at}", x, name, series, "lines" if numbers else "bars", where=where)
        for name in measured
    )
