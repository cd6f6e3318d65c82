"""`suite.json`, `index.html` and the logs of a suite: each case with its pictures, expectations and figures, in self-contained files."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from fairlane.results import compare, palette, result_folder
from fairlane.studies.page import environment
from fairlane.suites import distributions, logs, media
from fairlane.suites.cases import SUITES, Judged, Options

DATA, PAGE = "suite.json", "index.html"
_SECOND_S = 1.0
_MOST_LINES = 8


def write(suite: str, kind: str, options: Options, judged: Sequence[Judged], folder: Path) -> None:
    """All files into `folder`, which exists."""
    logs.write(judged, folder)
    cases = [j.to_json() for j in judged]
    about = {"suite": suite, "algorithm": kind, "options": options.to_json(), "version": version("fairlane")}
    result_folder.write_json(folder / DATA, {**about, "cases": cases})
    drawn = [
        [compare.svg(partial(draw, judged=j), f"{name}{n}") for name, draw in (("r", _rates), ("d", _delays), ("e", _ellipses))]
        for n, j in enumerate(judged)
    ]
    text = (
        environment(Path(__file__).parent)
        .get_template("suite.html")
        .render(
            title=SUITES[suite].title, kind=kind, version=version("fairlane"), cases=list(zip(cases, drawn, strict=True)), bounds=_bounds
        )
    )
    result_folder.write_whole(folder / PAGE, text)


def _bounds(check: dict[str, Any]) -> str:
    """ "0.7 or more"."""
    low, high = check["low"], check["high"]
    return f"{high:g} or less" if low is None else f"{low:g} or more" if high is None else f"{low:g} to {high:g}"


def _rates(axes: Any, judged: Judged) -> None:
    records = judged.records
    edges = np.arange(0.0, records.experiment.duration_s + 1e-9, _SECOND_S)
    for name in dict.fromkeys(phase.link for phase in judged.phases):
        link = next(link for link in records.links.values() if link.name == name)
        times = [*(t for t, _ in link.rates_bps), records.experiment.duration_s]
        rates = [rate / 1e6 for _, rate in link.rates_bps]
        axes.step(times, [*rates, rates[-1]], where="post", color=palette.SHARE, linewidth=0.8, label=f"capacity {name}")
    long = [f for f in records.flows if not media.is_short(f)]
    shown, rest = long[:_MOST_LINES], [*long[_MOST_LINES:], *filter(media.is_short, records.flows)]
    for number, flow in enumerate(shown):
        colour = palette.OTHERS[number % len(palette.OTHERS)]
        axes.plot(edges[1:], 8e-6 * np.diff(flow.received.at(edges)) / _SECOND_S, color=colour, linewidth=1.1, label=flow.flow.name)
    if rest:
        sums = np.sum([np.diff(f.received.at(edges)) for f in rest], axis=0)
        axes.plot(edges[1:], 8e-6 * sums / _SECOND_S, color="0.6", linewidth=0.9, label=f"{len(rest)} more flows")
    axes.set_xlim(0, records.experiment.duration_s)
    axes.set_ylim(0, None)
    axes.set_ylabel("received, Mb/s")


def _delays(axes: Any, judged: Judged) -> None:
    records = judged.records
    edges = np.arange(0.0, records.experiment.duration_s + 1e-9, _SECOND_S)
    for number, flow in enumerate([f for f in records.flows if media.is_measured(f)][:_MOST_LINES]):
        packets = np.diff(flow.packets.at(edges))
        means = np.where(packets > 0, np.diff(flow.delay.at(edges)) / np.maximum(packets, 1e-9), math.nan)
        colour = palette.OTHERS[number % len(palette.OTHERS)]
        axes.plot(edges[1:], 1000 * means, color=colour, linewidth=1.0, label=flow.flow.name)
    axes.set_xlim(0, records.experiment.duration_s)
    axes.set_ylim(0, None)
    axes.set_ylabel("one-way delay, ms")


def _ellipses(axes: Any, judged: Judged) -> None:
    """Each period a point, and the ellipse of each flow's."""
    from matplotlib.patches import Ellipse

    for number, periods in enumerate(distributions.of(judged.records)[:_MOST_LINES]):
        colour = palette.OTHERS[number % len(palette.OTHERS)]
        delays_ms, rates = 1000 * periods.queueing_s, 1e-6 * periods.goodput_bps
        axes.plot(delays_ms, rates, ".", color=colour, markersize=2, label=periods.flow)
        found = distributions.ellipse(delays_ms, rates)
        if found is not None:
            shape = Ellipse((found.x, found.y), found.width, found.height, angle=found.degrees, fill=False, edgecolor=colour, linewidth=1.2)
            axes.add_patch(shape)
            axes.plot([found.x], [found.y], "o", color=colour, markersize=4)
    axes.set_ylim(0, None)
    axes.set_xlabel("queueing delay, ms")
    axes.set_ylabel("goodput, Mb/s")
