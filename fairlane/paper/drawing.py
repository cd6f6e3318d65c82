"""Figures of the report as SVG: medians over seeds with their range, next to the values of the paper's figure."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Mapping
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from fairlane.experiments.sweep import matching
from fairlane.paper.judge import Axes, medians
from fairlane.paper.reference import Reference
from fairlane.paper.row import Figure, Row
from fairlane.results import palette

_STYLE: dict[Any, Any] = {
    "figure.figsize": (6.4, 3.7),
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "svg.fonttype": "none",
    "font.sans-serif": ["DejaVu Sans"],
    "svg.hashsalt": "fairlane",
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "figure.constrained_layout.use": True,
}
_MARKERS = "osD^vP*X"
_COORDINATES = re.compile(r'\b(?:d|x|y)="[^"]*"')
_HUNDREDTHS = re.compile(r"(\.\d\d)\d+")
_PAPER = {"linestyle": "none", "markersize": 9, "markerfacecolor": "none", "markeredgewidth": 1.2}

Results = Mapping[Axes, list[dict[str, Any]]]
"""Of a row: for each point, the kept result of every seed."""


def draw(row: Row, figure: Figure, results: Results) -> str:
    """One figure as an SVG element."""
    with plt.rc_context(_STYLE):
        canvas, axes = plt.subplots()
        if figure.curves:
            _over_time(axes, figure, results)
        else:
            _over_axis(axes, figure, results, row.reference)
        _finish(axes, figure)
        text = io.StringIO()
        canvas.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
        plt.close(canvas)
    return _own_ids(_rounded(text.getvalue()), f"{row.id}-{row.figures.index(figure)}")


def _rounded(svg: str) -> str:
    """Coordinates to a hundredth of a point, and no indentation: a page of all rows stays small. Labels do not change."""
    return re.sub(r"\n +", "\n", _COORDINATES.sub(lambda attribute: _HUNDREDTHS.sub(r"\1", attribute[0]), svg))


def _own_ids(svg: str, prefix: str) -> str:
    """Several drawings in one page: ids must differ. The XML declaration and document type are left out."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}-\1"', svg)
    svg = re.sub(r'(href|clip-path|xlink:href)="(url\()?#', rf'\1="\2#{prefix}-', svg)
    return re.sub(r"url\(#(?!" + re.escape(prefix) + ")", f"url(#{prefix}-", svg)


def _over_axis(axes: Any, figure: Figure, results: Results, reference: Reference | None = None) -> None:
    lines: dict[Any, list[tuple[Any, float, float, float]]] = {}
    picked = list(matching(results, figure.where))
    xs = {at: _x(figure, at, results[at]) for at in picked}
    values = {at: [_number(r["values"].get(figure.y)) for r in results[at]] for at in picked}
    middle = medians(values)
    for at in picked:
        known = [v for v in values[at] if not math.isnan(v)]
        name = dict(at).get(figure.series, "") if figure.series else ""
        if known and not math.isnan(middle[at]):
            lines.setdefault(name, []).append((xs[at], middle[at], min(known), max(known)))
    paper: dict[str, list[tuple[float, float]]] = {}
    for name, x, y in figure.paper:
        paper.setdefault(name, []).append((x, y))
    for index, (name, points) in enumerate(lines.items()):
        colour = palette.of(str(name), index)
        label = _label(figure.series, name)
        points.sort(key=lambda p: p[0])
        if figure.kind == "bars":
            width = 0.8 / len(lines)
            places = [i + (index - (len(lines) - 1) / 2) * width for i in range(len(points))]
            axes.bar(places, [p[1] for p in points], width, color=colour, label=label)
            axes.errorbar(places, [p[1] for p in points], _errors(points), fmt="none", ecolor="black", elinewidth=0.8, capsize=2)
            axes.set_xticks(range(len(points)), [f"{p[0]}" for p in points])
            continue
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
        if (shown := paper.pop(str(name), None)) is not None:
            axes.plot(
                [x for x, _ in shown],
                [y for _, y in shown],
                marker=_MARKERS[index % len(_MARKERS)],
                color=colour,
                label=f"{label}, paper" if label else "paper",
                **_PAPER,
            )
    if reference is not None and reference.has(figure.y) and figure.kind == "lines":
        _beside(axes, figure, picked, list(lines), reference)
    for name, shown in paper.items():
        axes.plot(
            [x for x, _ in shown], [y for _, y in shown], marker="x", color="0.35", label=f"{name}, paper" if name else "paper", **_PAPER
        )


def _beside(axes: Any, figure: Figure, picked: list[Axes], names: list[Any], reference: Reference) -> None:
    """Another program's medians, in the colours of our lines; one entry of the legend for all."""
    lines: dict[Any, list[tuple[float, float]]] = {}
    for at in picked:
        given = dict(at)
        x = given[figure.x] if figure.x in given else reference.median(at, figure.x)
        if reference.values(at, figure.y) and not math.isnan(float(x)):
            lines.setdefault(given.get(figure.series, "") if figure.series else "", []).append((float(x), reference.median(at, figure.y)))
    style = {"linestyle": ":", "markersize": 6, "markerfacecolor": "none", "linewidth": 1.0}
    for name, points in lines.items():
        index = names.index(name) if name in names else len(names)
        points.sort()
        axes.plot(
            [x for x, _ in points],
            [y for _, y in points],
            marker=_MARKERS[index % len(_MARKERS)],
            color=palette.of(str(name), index),
            **style,
        )
    if lines:
        axes.plot([], [], marker="o", color="0.35", label=reference.program, **style)


def _x(figure: Figure, at: Axes, runs: list[dict[str, Any]]) -> Any:
    """A value of an axis, or a measure's median."""
    given = dict(at)
    if figure.x in given:
        return given[figure.x]
    known = sorted(v for r in runs if not math.isnan(v := _number(r["values"].get(figure.x))))
    return known[len(known) // 2] if known else math.nan


def _errors(points: list[tuple[Any, float, float, float]]) -> list[list[float]]:
    return [[p[1] - p[2] for p in points], [p[3] - p[1] for p in points]]


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


def _finish(axes: Any, figure: Figure) -> None:
    for value in figure.reference:
        axes.axhline(value, color="0.4", linewidth=0.8, linestyle="--")
    if "x" in figure.log:
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda x, _: f"{x:g}"))
    if "y" in figure.log:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    axes.set_xlabel(figure.x_label or ("time, s" if figure.curves else figure.x))
    axes.set_ylabel(figure.y_label or figure.y)
    if "bit/s" in figure.y_label:
        axes.yaxis.set_major_formatter(matplotlib.ticker.EngFormatter(sep=" "))
    handles, labels = axes.get_legend_handles_labels()
    if any(labels):
        axes.legend(handles, labels, loc="upper left", bbox_to_anchor=(1.01, 1.0), fontsize=8)


def _label(series: str, name: Any) -> str:
    if name == "":
        return ""
    return palette.label(name) if isinstance(name, str) else f"{series} = {name:g}"


def _number(value: Any) -> float:
    """JSON has no NaN: null replaces it."""
    return math.nan if value is None else float(value)
