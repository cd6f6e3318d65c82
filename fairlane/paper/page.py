"""`index.html`: the report as one file without anything from elsewhere; beside it `index.json`, and each row's results as CSV and JSON."""

from __future__ import annotations

import csv
import math
import statistics
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2

from fairlane import results
from fairlane.paper import beside, drawing, index, kinds
from fairlane.paper.judge import describe
from fairlane.paper.words import number

if TYPE_CHECKING:
    from fairlane.paper.make import Outcome

# Student's t, two-sided 95%, by degrees of freedom (1 to 30).
_T95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101,
        2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042)


def interval(values: list[float]) -> float:
    """Half the width of the 95% confidence interval of the mean; 0 for a single value."""
    if len(values) < 2:
        return 0.0
    return _T95[min(len(values) - 1, len(_T95)) - 1] * statistics.stdev(values) / math.sqrt(len(values))


def table(outcome: Outcome) -> tuple[list[str], list[list[str]]]:
    """Heads and lines: each point with the mean of each measure over seeds and its 95% interval."""
    names = list(outcome.row.measures)
    lines = []
    for axes, runs in outcome.results.items():
        cells = [str(v) for _, v in axes]
        for name in names:
            values = [v for run in runs if (v := run["values"][name]) is not None]
            half = interval(values)
            cells.append("–" if not values else number(statistics.fmean(values)) + (f" ± {number(half)}" if half else ""))
        lines.append(cells)
    return [*(k for k, _ in next(iter(outcome.results), ())), *names], lines


def against(outcome: Outcome) -> dict[str, Any] | None:
    """Points beside another program's: heads, lines of (cells, whether all that is expected of the point holds). None without one."""
    reference = outcome.row.reference
    if reference is None:
        return None
    names = [m for m in outcome.row.measures if reference.has(m)]
    wanted = [v for v in outcome.verdicts if v.expectation.of_reference]
    heads = [*(k for k, _ in next(iter(outcome.results), ()))]
    for name in names:
        heads += [f"{name}, {reference.program}", f"{name}, here", "here / " + reference.program]
    lines = []
    for axes, runs in outcome.results.items():
        if not reference.values(axes, names[0] if names else ""):
            continue
        cells = [str(v) for _, v in axes]
        for name in names:
            theirs = reference.values(axes, name)
            ours = [math.nan if (v := run["values"].get(name)) is None else float(v) for run in runs]
            cells += [_spread(theirs), _spread(ours), number(statistics.median(ours) / statistics.median(theirs)) if theirs and all(theirs) else "–"]
        judged = [f.holds for v in wanted for f in v.findings if f.where == describe(axes)]
        lines.append((cells, all(judged) if judged else None))
    return {"heads": heads, "axes": len(next(iter(outcome.results), ())), "lines": lines}


def _spread(values: list[float]) -> str:
    """Median, and the range where there is one."""
    if not values or any(math.isnan(v) for v in values):
        return "–"
    low, high = number(min(values)), number(max(values))
    return number(statistics.median(values)) + (f" ({low} to {high})" if low != high else "")


def write(outcomes: list[Outcome], folder: Path, quick: bool) -> Path:
    """The report and its data in `folder`; the page and its index appear whole."""
    rows = folder / "rows"
    rows.mkdir(parents=True, exist_ok=True)
    shown = []
    for outcome in outcomes:
        heads, lines = table(outcome)
        program, entry = outcome.row.reference.program if outcome.row.reference else "", index.entry(outcome)
        _write_data(outcome, entry, rows)
        shown.append({
            "row": outcome.row, "is": entry, "heads": heads, "lines": lines,
            "figures": [(f.title, drawing.draw(outcome.row, f, outcome.results)) for f in outcome.row.figures],
            "program": program, "against": against(outcome), "beside": beside.shown(folder, outcome.row),
        })
    loader = jinja2.FileSystemLoader(Path(__file__).parent)
    environment = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["number"] = number
    text = environment.get_template("report.html").render(
        rows=shown, count=kinds.count([o.kind for o in outcomes]), legend=kinds.LEGEND, version=version("fairlane"), quick=quick,
        took_s=sum(o.took_s for o in outcomes))
    index.write(outcomes, folder, quick)
    unfinished = folder / ".index.html.unfinished"
    unfinished.write_text(text, encoding="utf-8")
    return unfinished.rename(folder / "index.html")


def _write_data(outcome: Outcome, entry: dict[str, Any], folder: Path) -> None:
    runs: list[dict[str, Any]] = [run for at in outcome.results.values() for run in at]
    # Neither what the store needs to know nor this machine's speed is part of the result.
    results.write_json(folder / f"{outcome.row.id}.json", {**{k: v for k, v in entry.items() if k != "processor_s"},
                                                           "results": [{k: v for k, v in run.items() if k != "inputs"} for run in runs]})
    names = list(outcome.row.measures)
    with (folder / f"{outcome.row.id}.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*outcome.row.sweep.axes, "seed", *names])
        for run in runs:
            writer.writerow([*run["axes"].values(), run["seed"], *(run["values"][n] for n in names)])
