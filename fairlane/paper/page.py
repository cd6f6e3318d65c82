"""`index.html`: the report as one self-contained file; next to it `index.json`, and each row's results as CSV and JSON."""

from __future__ import annotations

import csv
import io
import math
import statistics
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fairlane.paper import index, kinds, on_mininet
from fairlane.paper.judge import describe
from fairlane.paper.row_outcome import Outcome
from fairlane.results import result_folder
from fairlane.studies import drawing, intervals, units
from fairlane.studies import page as study_page
from fairlane.studies.units import number


def against(outcome: Outcome) -> dict[str, Any] | None:
    """Points next to another program's: heads, lines of (cells, whether all expectations of the point hold). None without one. The quotient
    is of the medians over seeds, its 95% interval of the geometric means."""
    reference = outcome.row.reference
    if reference is None:
        return None
    names = [m for m in outcome.row.measures if reference.has(m)]
    wanted = [v for v in outcome.verdicts if v.expectation.of_reference]
    heads = [*(k for k, _ in next(iter(outcome.results), ()))]
    for name in names:
        heads += [f"{name}, {reference.program}", f"{name}, here", "here / " + reference.program, "95% interval"]
    lines = []
    for axes, runs in outcome.results.items():
        if not reference.values(axes, names[0] if names else ""):
            continue
        cells = [units.written(v, units.of_name(k)) for k, v in axes]
        for name in names:
            theirs = reference.values(axes, name)
            ours = [math.nan if (v := run["values"].get(name)) is None else float(v) for run in runs]
            cells += [
                _spread(theirs),
                _spread(ours),
                number(statistics.median(ours) / statistics.median(theirs)) if theirs and all(theirs) else "–",
                _ends(intervals.quotient(ours, theirs)),
            ]
        judged = [f.holds for v in wanted for f in v.findings if f.where == describe(axes)]
        lines.append((cells, all(judged) if judged else None))
    return {"heads": heads, "axes": len(next(iter(outcome.results), ())), "lines": lines}


def _ends(ends: tuple[float, float] | None) -> str:
    return "–" if ends is None else f"{number(ends[0])} to {number(ends[1])}"


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
        heads, lines = study_page.table(outcome.row, outcome.results)
        program, entry = outcome.row.reference.program if outcome.row.reference else "", index.entry(outcome)
        _write_data(outcome, entry, rows)
        shown.append(
            {
                "row": outcome.row,
                "is": entry,
                "heads": heads,
                "lines": lines,
                "figures": [(f.title, drawing.draw(outcome.row, f, outcome.results, outcome.row.reference)) for f in outcome.row.figures],
                "program": program,
                "against": against(outcome),
                "beside": on_mininet.shown(folder, outcome.row),
            }
        )
    environment = study_page.environment(Path(__file__).parent)
    text = environment.get_template("report.html").render(
        rows=shown,
        count=kinds.count([o.kind for o in outcomes]),
        legend=kinds.legend([o.kind for o in outcomes]),
        version=version("fairlane"),
        quick=quick,
        took_s=sum(o.took_s for o in outcomes),
    )
    index.write(outcomes, folder, quick)
    return result_folder.write_whole(folder / "index.html", text)


def _write_data(outcome: Outcome, entry: dict[str, Any], folder: Path) -> None:
    runs: list[dict[str, Any]] = [run for at in outcome.results.values() for run in at]
    # Neither the store's key nor this machine's speed is part of the result.
    result_folder.write_json(
        folder / f"{outcome.row.id}.json",
        {
            **{k: v for k, v in entry.items() if k != "processor_s"},
            "results": [{k: v for k, v in run.items() if k != "inputs"} for run in runs],
        },
    )
    names = list(outcome.row.measures)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*outcome.row.sweep.axes, "seed", *names])
    writer.writerows([*run["axes"].values(), run["seed"], *(run["values"][n] for n in names)] for run in runs)
    result_folder.write_whole(folder / f"{outcome.row.id}.csv", text.getvalue())
