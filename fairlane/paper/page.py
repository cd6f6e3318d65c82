"""`index.html`: the report as one file without anything from elsewhere; and each row's results as CSV and JSON beside it."""

from __future__ import annotations

import csv
import math
import statistics
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2

from fairlane import results
from fairlane.paper import beside, drawing
from fairlane.paper.judge import Expectation, Verdict, describe

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


def expected(expectation: Expectation, program: str = "the reference") -> str:
    """What an expectation asks for, in words. program: whose results `of_reference` means."""
    if expectation.trend:
        return f"{expectation.trend} with {expectation.over}"
    if math.isinf(expectation.low):
        text = f"at most {expectation.high:g}"
    elif math.isinf(expectation.high):
        text = f"at least {expectation.low:g}"
    else:
        text = f"{expectation.low:g} to {expectation.high:g}"
    if expectation.of_reference:
        text = f"{text} times {program}'s"
    if expectation.seeds == "each":
        text = f"{text}, with each seed"
    return f"{text}, for some {expectation.any}" if expectation.any else text


def _found(verdict: Verdict) -> str:
    low, high = verdict.extremes
    if math.isnan(low):
        return "not measured"
    text = number(low) if number(low) == number(high) else f"{number(low)} to {number(high)}"
    return f"tau {text}" if verdict.expectation.trend else text


def number(value: float | None) -> str:
    """Four digits; large values with a unit's prefix."""
    if value is None or math.isnan(value):
        return "–"
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit:
            return f"{value / (1e3 if unit == 'k' else limit):.4g} {unit}"
    return f"{value:.4g}"


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
    """The report and its data in `folder`; each file appears whole."""
    rows = folder / "rows"
    rows.mkdir(parents=True, exist_ok=True)
    shown = []
    for outcome in outcomes:
        _write_data(outcome, rows)
        heads, lines = table(outcome)
        program = outcome.row.reference.program if outcome.row.reference else ""
        shown.append({
            "row": outcome.row, "holds": outcome.holds, "heads": heads, "lines": lines,
            "figures": [(f.title, drawing.draw(outcome.row, f, outcome.results)) for f in outcome.row.figures],
            "verdicts": [{"name": v.expectation.name, "paper": v.expectation.paper, "expected": expected(v.expectation, program), "found": _found(v),
                          "holds": v.holds, "against": [f for f in v.findings if not f.holds] if not v.holds else []} for v in outcome.verdicts],
            "seeds": len(outcome.row.sweep.seeds), "runs": len(outcome.row.sweep.points), "took_s": outcome.took_s,
            "program": program, "against": against(outcome), "beside": beside.shown(folder, outcome.row),
        })
    loader = jinja2.FileSystemLoader(Path(__file__).parent)
    environment = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["number"] = number
    text = environment.get_template("report.html").render(
        rows=shown, held=sum(s["holds"] for s in shown), version=version("fairlane"), quick=quick,
        took_s=sum(s["took_s"] for s in shown))
    unfinished = folder / ".index.html.unfinished"
    unfinished.write_text(text, encoding="utf-8")
    return unfinished.rename(folder / "index.html")


def _write_data(outcome: Outcome, folder: Path) -> None:
    runs: list[dict[str, Any]] = [run for at in outcome.results.values() for run in at]
    # What the store needs to know is no part of the result.
    results.write_json(folder / f"{outcome.row.id}.json", [{k: v for k, v in run.items() if k != "inputs"} for run in runs])
    names = list(outcome.row.measures)
    with (folder / f"{outcome.row.id}.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*outcome.row.sweep.axes, "seed", *names])
        for run in runs:
            writer.writerow([*run["axes"].values(), run["seed"], *(run["values"][n] for n in names)])
