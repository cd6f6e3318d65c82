"""PNG plots of a run, from its tables alone. One colour for each scheme in every plot; the colour-blind can distinguish them too."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from fairlane.experiments.model import Experiment
from fairlane.results import canvas, palette
from fairlane.results.canvas import Axes, Figure, Line2D
from fairlane.results.palette import AVERAGE_MAXIMUM, AVERAGE_MINIMUM, COUNT, FAIR_RATE, QUEUE, SHARE

if TYPE_CHECKING:
    import pandas as pd

Table: TypeAlias = "Mapping[str, Any] | pd.DataFrame"
"""Columns by name; none where there are no rows."""
# With more flows of one kind than this, only some of them get a line.
_MOST_LINES = 40
# Of shares, so many are compared with the lines that there are.
_MOST_COURSES = 2000


def draw(experiment: Experiment, folder: Path, flows: Table, links: Table, fair_rates: Table, bottleneck: str, note: str) -> list[Path]:
    """rates.png, queue.png, and where there are ALS flows fair_rate.png, in `folder`. bottleneck: name of the link. note: fabric and
    target, under the title."""
    return [
        canvas.save(figure(name, experiment, flows, links, fair_rates, bottleneck, note), folder / f"{name}.png")
        for name in pictures(experiment)
    ]


def pictures(experiment: Experiment) -> list[str]:
    """The plots of a run: fair_rate only where ALS flows get one."""
    return ["rates", "queue", *(["fair_rate"] if _has_als(experiment) else [])]


def figure(name: str, experiment: Experiment, flows: Table, links: Table, fair_rates: Table, bottleneck: str, note: str) -> Figure:
    """One of `pictures`; arguments as of `draw`. ValueError for another name."""
    if name not in pictures(experiment):
        raise ValueError(f"no plot {name!r} of {experiment.id}: it has {', '.join(pictures(experiment))}")
    at_bottleneck = _of_link(fair_rates, bottleneck)
    # Not pyplot's, which would keep it.
    drawn = Figure(figsize=(9, 5), dpi=110, layout="constrained")
    axes = drawn.subplots()
    if name == "rates":
        _rates(axes, experiment, _arrays(flows), at_bottleneck if _has_als(experiment) else {})
    elif name == "queue":
        _queue(axes, experiment, _of_link(links, bottleneck))
    else:
        _fair_rate(axes, experiment, at_bottleneck)
    axes.set_xlim(0, experiment.duration_s)
    axes.set_xlabel("time (s)")
    axes.set_title(f"{experiment.id}: {experiment.settings.title}\n{note}", fontsize=10, loc="left")
    axes.grid(alpha=0.3)
    return drawn


_Arrays = dict[str, np.ndarray]


def _arrays(table: Table) -> _Arrays:
    return {str(name): np.asarray(table[name]) for name in table if len(table[name])}


def _of_link(table: Table, link: str) -> _Arrays:
    """Its rows; without columns where there are none."""
    whole = _arrays(table)
    there = whole["link"] == link if whole else np.zeros(0, dtype=bool)
    return {name: values[there] for name, values in whole.items()} if there.any() else {}


def _has_als(experiment: Experiment) -> bool:
    return any(f.kind.startswith("als") for f in experiment.flows)


def _rates(axes: Axes, experiment: Experiment, flows: _Arrays, fair_rates: _Arrays) -> None:
    handles = []
    for kind in dict.fromkeys(f.shown_kind for f in experiment.flows) if flows else ():
        colour, line = palette.of_kind(kind), palette.line(kind)
        names = list(dict.fromkeys(flows["flow"][flows["kind"] == kind].tolist()))
        if not names:
            continue
        for index, name in enumerate(names[:_MOST_LINES]):
            leading, rows = index == 0, flows["flow"] == name
            axes.plot(
                flows["time_s"][rows] - experiment.flow_bin_s / 2,
                flows["goodput_bps"][rows] / 1e6,
                color=colour,
                ls=line,
                lw=2.0 if leading else 0.9,
                alpha=1.0 if leading else 0.45,
                zorder=3 if leading else 2,
            )
        more = f": {names[0]} thick, {len(names[:_MOST_LINES]) - 1} more thin" if len(names) > 1 else f": {names[0]}"
        handles.append(Line2D([], [], color=colour, ls=line, lw=2, label=palette.label(kind) + more))
    if flows:
        times, shares = _share_lines(flows)
        for share in shares:
            axes.step(times, share / 1e6, where="pre", color=SHARE, ls="--", lw=1.5, zorder=4)
        name = "max-min fair share" if len(shares) == 1 else "max-min fair shares of the flows"
        handles.append(Line2D([], [], color=SHARE, ls="--", label=name))
    if fair_rates:
        axes.step(fair_rates["time_s"], fair_rates["fair_rate_bps"] / 1e6, where="post", color=FAIR_RATE, ls=":", lw=1.8, zorder=4)
        handles.append(Line2D([], [], color=FAIR_RATE, ls=":", label="R_f = b U_l / n in force"))
    axes.axvspan(experiment.window_s[0], experiment.window_s[1], color="0.93", zorder=0)
    handles.append(Line2D([], [], color="0.85", lw=8, label="part that the tables measure"))
    axes.legend(handles=handles, fontsize=8, loc="upper right")
    axes.set_ylabel("goodput (Mb/s)")
    # TCP's slow start and R_f before the first flow would squeeze all else: they leave the picture at the top.
    top = None
    if flows:
        # Flows that have ended have no share, and perhaps no row after the window's begin.
        settled = flows["goodput_bps"][flows["time_s"] > experiment.window_s[0]]
        tops = [2 * _largest(flows["fair_share_bps"]), 1.1 * _largest(settled)]
        top = max((each / 1e6 for each in tops if each > 0), default=None)
    axes.set_ylim(0, top)


def _largest(values: np.ndarray) -> float:
    """0 where no number is known."""
    return max((value for value in values.tolist() if value == value), default=0.0)


def _share_lines(flows: _Arrays) -> tuple[np.ndarray, list[np.ndarray]]:
    """Max-min fair shares over time: one line for all flows that have the same while both are there. And its times."""
    times, column = np.unique(flows["time_s"], return_inverse=True)
    names, row = np.unique(flows["flow"], return_inverse=True)
    table = np.full((len(names), len(times)), np.nan)
    table[row, column] = np.round(flows["fair_share_bps"])
    # Most flows have the same shares at the same times: each such course is looked at once.
    courses = list({course.tobytes(): course for course in table}.values())
    # Those that are there longest come first: others may lie within their lines.
    courses.sort(key=lambda course: -np.count_nonzero(~np.isnan(course)))
    lines: list[np.ndarray] = []
    for share in courses[:_MOST_COURSES]:
        there = ~np.isnan(share)
        for at, line in enumerate(lines):
            both = there & ~np.isnan(line)
            if both.any() and (share[both] == line[both]).all():
                lines[at] = np.where(np.isnan(line), share, line)
                break
        else:
            if len(lines) < _MOST_LINES and there.any():
                lines.append(share)
    return times, lines


def _queue(axes: Axes, experiment: Experiment, link: _Arrays) -> None:
    port = experiment.topology.port(*experiment.bottleneck).link
    if link:
        axes.plot(link["time_s"], link["queue_packets"], color=QUEUE, lw=0.9, label=f"queue, mean of {experiment.link_bin_s:g} s")
    axes.axhline(port.queue_packets, color=SHARE, lw=1, label=f"buffer, {port.queue_packets} packets")
    if (average := port.average) is not None:
        axes.axhline(average.minimum, color=AVERAGE_MINIMUM, ls="--", lw=1, label=f"{average.title} minimum")
        axes.axhline(average.maximum, color=AVERAGE_MAXIMUM, ls="--", lw=1, label=f"{average.title} maximum")
    axes.set_ylabel("queue at the bottleneck (packets)")
    axes.set_ylim(0, port.queue_packets * 1.25)
    axes.legend(fontsize=8, loc="upper right", ncols=2)


def _fair_rate(axes: Axes, experiment: Experiment, fair_rates: _Arrays) -> None:
    axes.set_ylabel("R_f (Mb/s)", color=FAIR_RATE)
    axes.tick_params(axis="y", labelcolor=FAIR_RATE)
    right = axes.twinx()
    right.set_ylabel("connections n", color=COUNT)
    right.tick_params(axis="y", labelcolor=COUNT)
    if fair_rates:
        axes.step(fair_rates["time_s"], fair_rates["fair_rate_bps"] / 1e6, where="post", color=FAIR_RATE, lw=1.8)
        right.step(fair_rates["time_s"], fair_rates["connections"], where="post", color=COUNT, lw=1.2)
    # One artist for all: thousands of them take longer than the run.
    axes.vlines([flow.start_s for flow in experiment.flows], 0, 1, transform=axes.get_xaxis_transform(), color="0.8", lw=0.8, zorder=0)
    axes.set_ylim(0, None)
    right.set_ylim(0, len(experiment.flows) + 2)
