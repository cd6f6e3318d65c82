"""One run of each row, stored with the published results: a repeated run shows whether the page is older than the code.

If a change of the code changes no figure, the sample stays the same. So a page must be made again only if its figures change."""

from __future__ import annotations

import math
from typing import Any

from fairlane.paper.row import Row
from fairlane.paper.row_outcome import Outcome
from fairlane.studies import points

RELATIVE = 1e-9
"""Python's versions differ in the last digits of a sum of floating-point numbers."""


def cheapest(row: Row) -> points.Job:
    """The row's run that takes the least processor time, by the pass's own guess; the first of them."""
    return min(points.jobs(row), key=lambda job: job.cost)


def kept(outcome: Outcome) -> dict[str, Any]:
    """Of a pass: `axes`, `seed` and `values` (by measure; None where it could not be measured) of the cheapest run."""
    job = cheapest(outcome.row)
    run = next(run for run in outcome.results[job.axes] if run["seed"] == job.seed)
    return {"axes": dict(job.axes), "seed": job.seed, "values": run["values"]}


def differences(row: Row, published: dict[str, Any] | None) -> list[str]:
    """Run the sample again: each figure that is another one now, in words; empty where the page is as new as the code."""
    if published is None:
        return ["published without a sample"]
    # Not the cheapest of today: another guess of times makes no figure older.
    job = next((job for job in points.jobs(row) if (dict(job.axes), job.seed) == (published["axes"], published["seed"])), None)
    if job is None:
        return [f"the sample was {published['axes']}, seed {published['seed']}, which the file no longer has"]
    then, now = published["values"], points.run(job).result["values"]
    return [
        f"{name}: {then.get(name)} then, {now.get(name)} now" for name in sorted({*then, *now}) if not _same(then.get(name), now.get(name))
    ]


def _same(then: float | None, now: float | None) -> bool:
    now = None if now is None or math.isnan(now) else now
    return then == now if then is None or now is None else math.isclose(then, now, rel_tol=RELATIVE)
