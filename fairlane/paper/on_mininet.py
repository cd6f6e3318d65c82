"""A row's runs on Mininet in the report: a table next to virtual time, and separate plots. Reads FOLDER/mininet/ID.json."""

from __future__ import annotations

import dataclasses
import json
import math
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fairlane.experiments import fabrics, sweep
from fairlane.paper.row import Row
from fairlane.studies import drawing, store
from fairlane.studies import points as points_of_study
from fairlane.studies.units import number


def points(row: Row) -> tuple[sweep.Point, ...]:
    """A row's runs on Mininet."""
    return sweep.expand(sweep.without(fabrics.laid_over(row.document), sweep.REPORT_KEYS)).points


def inputs(point: sweep.Point) -> str:
    """Digest of all that an experiment file has to do with a run."""
    return store.digest_of([point.seed, points_of_study.decisive(point.document)])


def path(folder: Path, row: str) -> Path:
    """The file of a row's results."""
    return folder / "mininet" / f"{row}.json"


def shown(folder: Path, row: Row) -> dict[str, Any] | None:
    """For the page: heads, lines, figures, notes; None where the row has not been run on Mininet."""
    try:
        kept = json.loads(path(folder, row.id).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    axes = list(dict.fromkeys(name for point in kept["points"] for name in point["axes"]))
    seeds = kept["virtual_seeds"]
    virtual = f"virtual time, median of {len(seeds)} seeds" if len(seeds) > 1 else f"virtual time, seed {seeds[0]}"
    heads = [*axes, "measure", virtual, "range over seeds", "Mininet, wall clock", "Mininet / virtual"]
    lines = []
    for point in kept["points"]:
        for place, (name, values) in enumerate(point["virtual"].items()):
            at = [str(point["axes"].get(axis, "")) if place == 0 else "" for axis in axes]
            lines.append([*at, name, *_cells(values, [run["values"].get(name) for run in point["runs"]])])
    current = sorted(inputs(p) for p in points(row)) == sorted(run["inputs"] for point in kept["points"] for run in point["runs"])
    return {
        "heads": heads,
        "texts": len(axes) + 1,
        "lines": lines,
        "figures": _figures(row, kept),
        "laid": fabrics.laid(row.document),
        "left_out": fabrics.left_out(row.document),
        "where": kept["where"],
        "failed": kept["failed"],
        "current": current,
        "runs": [run for point in kept["points"] for run in point["runs"]],
    }


def _cells(virtual: Sequence[float | None], real: Sequence[float | None]) -> list[str]:
    known, measured = ([v for v in values if v is not None] for values in (virtual, real))
    # A median over seeds of which one could not be measured would hide that.
    middle = statistics.median(known) if known and len(known) == len(virtual) else math.nan
    found = statistics.median(measured) if measured and len(measured) == len(real) else math.nan
    ends = [number(v) for v in (min(known), max(known))] if len(known) > 1 else ["–", "–"]
    between = ends[0] if ends[0] == ends[1] else " to ".join(ends)
    text = number(found) + (f" ({number(min(measured))} to {number(max(measured))})" if len(measured) > 1 else "")
    return [number(middle), between, text, number(found / middle) if middle else "–"]


def _figures(row: Row, kept: dict[str, Any]) -> list[tuple[str, str]]:
    """The row's figures over time, of the runs on Mininet alone."""
    results = {tuple(point["axes"].items()): point["runs"] for point in kept["points"]}
    own = dataclasses.replace(row, id=f"{row.id}-mininet")
    return [
        (f.title, drawing.draw(own, f, results))
        for f in row.figures
        if f.curves and any(run.get("curves") for at in sweep.matching(results, f.where) for run in results[at])
    ]
