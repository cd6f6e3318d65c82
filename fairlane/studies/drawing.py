"""Figures of a study: means over seeds with their 95% intervals, or curves over time; as SVG for the page, as SVG and PDF files."""

from __future__ import annotations

import io
import math
import re
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from fairlane.experiments.sweep import matching
from fairlane.results import palette, result_folder
from fairlane.studies import intervals, units
from fairlane.studies.study import Figure, Study

Axes = tuple[tuple[str, Any], ...]
Results = Mapping[Axes, list[dict[str, Any]]]
"""Of a study: for each point, the kept result of every seed."""

_STYLE: dict[Any, Any] = {
    "figure.figsize": (6.4, 3.7),
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "font.sans-serif": ["DejaVu Sans"],
    "svg.hashsalt": "fairlane",
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "figure.constrained_layout.use": True,
}
_MARKERS = "osD^vP*X"
_MOST_TICKS = 12
_COORDINATES = re.compile(r'\b(?:d|x|y)="[^"]*"')
_HUNDREDTHS = re.compile(r"(\.\d\d)\d+")
_SHOWN = {"linestyle": "none", "markersize": 9, "markerfacecolor": "none", "markeredgewidth": 1.2}


class Beside(Protocol):
    """Another program's values at the same points."""

    @property
    def program(self) -> str: ...

    def values(self, axes: Axes, measure: str) -> list[float]: ...

    def has(self, measure: str) -> bool: ...


def draw(study: Study, figure: Figure, results: Results, beside: Beside | None = None) -> str:
    """One figure as an SVG element of a page."""
    svg = _saved(study, figure, results, "svg", beside).decode()
    return _own_ids(_rounded(svg), f"{study.id}-{study.figures.index(figure)}")


def write(study: Study, results: Results, folder: Path) -> list[Path]:
    """Every figure as SVG and as PDF; each file appears whole. The same results give the same bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    return [
        result_folder.write_whole(folder / f"{name}.{form}", _saved(study, figure, results, form))
        for figure, name in zip(study.figures, names(study))
        for form in ("svg", "pdf")
    ]


def names(study: Study) -> list[str]:
    """The files of a study's figures: their titles, as file names."""
    found: list[str] = []
    for figure in study.figures:
        name = re.sub(r"[^a-z0-9]+", "-", figure.title.lower()).strip("-")[:60] or "figure"
        found.append(name if name not in found else f"{name}-{len(found) + 1}")
    return found


def _saved(study: Study, figure: Figure, results: Results, form: str, beside: Beside | None = None) -> bytes:
    with plt.rc_context(_STYLE):
        canvas, axes = plt.subplots()
        if figure.curves:
            _over_time(axes, figure, results)
            _finish(axes, figure, None, None, [])
        else:
            _over_axis(axes, study, figure, results, beside)
        data = io.BytesIO()
        dated = {"Date": None, "Creator": None} if form == "svg" else {"CreationDate": None, "Creator": None, "Producer": None}
        canvas.savefig(data, format=form, metadata=dated)
        plt.close(canvas)
    return data.getvalue()


def _rounded(svg: str) -> str:
    """Coordinates to a hundredth of a point, and no indentation: a page of many figures stays small. Labels do not change."""
    return re.sub(r"\n +", "\n", _COORDINATES.sub(lambda attribute: _HUNDREDTHS.sub(r"\1", attribute[0]), svg))


def _own_ids(svg: str, prefix: str) -> str:
    """Several drawings in one page: ids must differ. The XML declaration and document type are left out."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}-\1"', svg)
    svg = re.sub(r'(href|clip-path|xlink:href)="(url\()?#', rf'\1="\2#{prefix}-', svg)
    return re.sub(r"url\(#(?!" + re.escape(prefix) + ")", f"url(#{prefix}-", svg)


def _over_axis(axes: Any, study: Study, figure: Figure, results: Results, beside: Beside | None) -> None:
    picked = list(matching(results, figure.where))
    lines: dict[Any, list[tuple[Any, float, float, float]]] = {}
    for at in picked:
        name = dict(at).get(figure.series, "") if figure.series else ""
        values = [_number(r["values"].get(figure.y)) for r in results[at]]
        x = _x(figure, at, results[at])
        # The mean of the seeds that could be measured would hide that others could not.
        if values and not any(map(math.isnan, [*values, x if isinstance(x, float) else 0.0])):
            mean = statistics.fmean(values)
            lines.setdefault(name, []).append((x, mean, *(intervals.of_mean(values) or (mean, mean))))
    shown: dict[str, list[tuple[float, float]]] = {}
    for name, x, y in figure.paper:
        shown.setdefault(name, []).append((x, y))
    ticks = list(dict.fromkeys(p[0] for points in lines.values() for p in points))
    if all(isinstance(tick, int | float) for tick in ticks):
        ticks.sort()
    colours = _colours(list(lines))
    for index, (name, points) in enumerate(lines.items()):
        colour, label = colours[name], _label(figure.series, name)
        if figure.kind == "bars" or any(isinstance(p[0], str) for p in points):
            width = 0.8 / len(lines)
            places = [ticks.index(p[0]) + (index - (len(lines) - 1) / 2) * width for p in points]
            axes.bar(places, [p[1] for p in points], width, color=colour, label=label)
            axes.errorbar(places, [p[1] for p in points], _errors(points), fmt="none", ecolor="black", elinewidth=0.8, capsize=2)
            written = [palette.label(tick) if isinstance(tick, str) else units.written(tick, units.of_name(figure.x)) for tick in ticks]
            axes.set_xticks(range(len(ticks)), written)
            continue
        points.sort(key=lambda p: p[0])
        axes.errorbar(
            [p[0] for p in points],
            [p[1] for p in points],
            _errors(points),
            marker=_MARKERS[index % len(_MARKERS)],
            markersize=4,
            capsize=2,
            elinewidth=0.8,
            color=colour,
            label=label,
        )
        if (of_paper := shown.pop(str(name), None)) is not None:
            axes.plot(
                [x for x, _ in of_paper],
                [y for _, y in of_paper],
                marker=_MARKERS[index % len(_MARKERS)],
                color=colour,
                label=f"{label}, paper" if label else "paper",
                **_SHOWN,
            )
    if beside is not None and beside.has(figure.y) and figure.kind == "lines":
        _beside(axes, figure, picked, colours, beside)
    for name, of_paper in shown.items():
        label = f"{name}, paper" if name else "paper"
        axes.plot([x for x, _ in of_paper], [y for _, y in of_paper], marker="x", color="0.35", label=label, **_SHOWN)
    expression = study.measures.get(figure.x)
    x_unit = units.of_name(figure.x) if expression is None else units.of_measure(figure.x, expression)
    numbers = [float(tick) for tick in ticks if isinstance(tick, int | float)] if figure.kind == "lines" else []
    _finish(axes, figure, x_unit, units.of_measure(figure.y, study.measures[figure.y]), numbers)


def _colours(names: list[Any]) -> dict[Any, str]:
    """The colour of each line: its scheme's, or the next that no other line has."""
    found: dict[Any, str] = {}
    for index, name in enumerate(names):
        free = [colour for colour in (palette.of(str(name), index), *palette.OTHERS) if colour not in found.values()]
        found[name] = free[0] if free else palette.of(str(name), index)
    return found


def _beside(axes: Any, figure: Figure, picked: list[Axes], colours: dict[Any, str], beside: Beside) -> None:
    """Another program's means, in the colours of our lines; one entry of the legend for all."""
    lines: dict[Any, list[tuple[float, float]]] = {}
    for at in picked:
        given, theirs = dict(at), beside.values(at, figure.y)
        xs = [given[figure.x]] if figure.x in given else beside.values(at, figure.x)
        if theirs and xs:
            lines.setdefault(given.get(figure.series, "") if figure.series else "", []).append(
                (statistics.fmean(xs), statistics.fmean(theirs))
            )
    style = {"linestyle": ":", "markersize": 6, "markerfacecolor": "none", "linewidth": 1.0}
    for name, points in lines.items():
        index = list(colours).index(name) if name in colours else len(colours)
        points.sort()
        axes.plot(
            [x for x, _ in points],
            [y for _, y in points],
            marker=_MARKERS[index % len(_MARKERS)],
            color=colours.get(name, "0.35"),
            **style,
        )
    if lines:
        axes.plot([], [], marker="o", color="0.35", label=beside.program, **style)


def _x(figure: Figure, at: Axes, runs: list[dict[str, Any]]) -> Any:
    """A value of an axis, or a measure's mean."""
    given = dict(at)
    if figure.x in given:
        return given[figure.x]
    known = [v for r in runs if not math.isnan(v := _number(r["values"].get(figure.x)))]
    return statistics.fmean(known) if known else math.nan


def _errors(points: list[tuple[Any, float, float, float]]) -> list[list[float]]:
    return [[max(0.0, p[1] - p[2]) for p in points], [max(0.0, p[3] - p[1]) for p in points]]


def _over_time(axes: Any, figure: Figure, results: Results) -> None:
    index = 0
    picked = list(matching(results, figure.where))
    for at in picked:
        curves: dict[str, Any] = next((r["curves"] for r in results[at] if r.get("curves")), {})
        for name in figure.curves:
            if name not in curves:
                continue
            suffix = ", ".join(f"{v}" for k, v in at if k not in figure.where) if len(picked) > 1 else ""
            times, values = curves[name]["t"], [_number(v) for v in curves[name]["v"]]
            axes.plot(times, values, color=palette.of(name, index), label=f"{name} {suffix}".strip(), linewidth=1.1)
            index += 1


def _finish(axes: Any, figure: Figure, x_unit: str | None, y_unit: str | None, ticks: list[float]) -> None:
    """Scales, labels with units, legend. ticks: the values on the x axis, if it is one of numbers."""
    for value in figure.reference:
        axes.axhline(value, color="0.4", linewidth=0.8, linestyle="--")
    if "x" in figure.log:
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda x, _: f"{x:g}"))
    if "y" in figure.log:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    if ticks and "x" in figure.log and len(ticks) <= _MOST_TICKS:
        axes.set_xticks(ticks)
        axes.xaxis.set_minor_locator(matplotlib.ticker.NullLocator())
    if figure.x_label or figure.curves:
        axes.set_xlabel(figure.x_label or "time, s")
    elif ticks:
        _labelled(axes.xaxis, axes.set_xlabel, figure.x, x_unit, ticks)
    else:  # bars, whose places say their units
        axes.set_xlabel(units.titled(figure.x))
    if figure.y_label:
        axes.set_ylabel(figure.y_label)
        if "bit/s" in figure.y_label:
            axes.yaxis.set_major_formatter(matplotlib.ticker.EngFormatter(sep=" "))
    elif figure.y:
        _labelled(axes.yaxis, axes.set_ylabel, figure.y, y_unit, list(axes.get_ylim()))
    handles, labels = axes.get_legend_handles_labels()
    if any(labels):
        axes.legend(handles, labels, loc="upper left", bbox_to_anchor=(1.01, 1.0), fontsize=8)


def _labelled(axis: Any, label: Any, name: str, unit: str | None, values: list[float]) -> None:
    """A label with a unit that suits the values, and ticks in this unit."""
    size, written = units.scale(values, unit)
    label(f"{units.titled(name)}, {written}" if written else units.titled(name))
    if size != 1.0:
        axis.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda value, _: f"{value / size:g}"))


def _label(series: str, name: Any) -> str:
    if name == "":
        return ""
    if isinstance(name, str):
        return palette.label(name)
    unit = units.of_name(series)
    return f"{units.titled(series)} {units.written(name, unit)}" if unit else f"{units.titled(series)} = {name:g}"


def _number(value: Any) -> float:
    """JSON has no NaN: null replaces it."""
    return math.nan if value is None else float(value)
