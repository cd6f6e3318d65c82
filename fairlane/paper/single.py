"""A sweep whose file is a row of a paper, or has expectations."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from fairlane.experiments import loader
from fairlane.paper import kinds, make, read_row, words
from fairlane.studies import carry_out, read
from fairlane.studies.collect import Collected
from fairlane.studies.study import NO_FILES, OwnFiles
from fairlane.terminal import shown


def run_row(path: Path, at: Sequence[str], seed: int | None, out: Path | None, console: Console) -> bool:
    """`fairlane run ID` of a row: that row alone, and its page as in the report; whether all that is expected of it holds."""
    chosen = read_row.load(path, at=at, seed=seed)
    folder = carry_out.prepared(out or carry_out.default_folder(chosen.id))
    outcomes = make.run([chosen], folder, console)
    make.show(outcomes, console)
    console.print(f"results: {shown(folder)}/index.html", highlight=False, soft_wrap=True)
    return all(o.holds for o in outcomes)


def sweep_file(
    path: Path,
    out: Path | None,
    console: Console,
    *,
    at: Sequence[str] = (),
    seeds: Sequence[int] = (),
    duration_s: float | None = None,
    files: OwnFiles = NO_FILES,
    scheduler: str | None = None,
    workers: int | None = None,
) -> bool:
    """`fairlane sweep FILE`: a study of any file; whether all that the file expects holds."""
    study = read.load(path, at, seeds, duration_s, files)
    stated = loader.read(path).values
    row = read_row.load(path, at=at) if "expect" in stated or "checks" in stated else None
    if row:
        study = dataclasses.replace(study, measures={**study.measures, **row.measures})

    def judge(found: Collected) -> list[Mapping[str, Any]]:
        assert row is not None
        program = row.reference.program if row.reference else ""
        return [
            {
                "name": v.expectation.name,
                "expected": words.expected(v.expectation, program),
                "found": words.found(v),
                "holds": v.holds,
                "measured": v.measured or not row.ran,
            }
            for v in kinds.ordinary(make.outcome(row, found).verdicts)
        ]

    folder = out or carry_out.default_folder(study.id)
    _, holds = carry_out.carry_out(study, folder, console, scheduler=scheduler, workers=workers, judge=judge if row else None)
    return holds
