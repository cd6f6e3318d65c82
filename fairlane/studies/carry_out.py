"""A study from beginning to end: runs the points that are missing in its folder, then writes tables, figures and page.

DIR/index.html                          the page
DIR/figures/TITLE.svg, .pdf             each figure
DIR/runs.csv, runs.parquet, points.csv  tables (`fairlane.studies.tables`)
DIR/points/                             the result of each run; a stopped study continues from these
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from fairlane.errors import Refusal
from fairlane.fabrics import virtual_fabric
from fairlane.studies import collect, compare, drawing, page, store, tables
from fairlane.studies.study import Study

Judge = Callable[[collect.Collected], Sequence[Mapping[str, Any]]]
"""What is found of the expectations of a study's file: `name`, `expected`, `found`, `holds` and `measured` of each: the last is
false where fewer runs than the file's have no value for it."""


def default_folder(study: str) -> Path:
    """The same for every pass, so that one continues the other."""
    return Path("results") / study / "sweep"


def carry_out(
    study: Study, folder: Path, console: Console, *, scheduler: str | None = None, workers: int | None = None, judge: Judge | None = None
) -> tuple[collect.Collected, bool]:
    """The results, and whether everything that the file expects holds. RunFailed, after the tables of all other runs are written, names the runs that
    failed. Refusal: the folder holds something else."""
    virtual_fabric.check_built()
    prepared(folder)
    collected = collect.collect([study], folder, console, scheduler=scheduler, workers=workers, what=f"{study.title}: ")[0]
    expectations = judge(collected) if judge else ()
    effects = [e for comparison in study.comparisons for e in compare.effects(comparison, collected.results)]
    files = tables.write(collected, effects, folder)
    drawing.write(study, collected.results, folder / "figures")
    page.write(collected, effects, folder, files, expectations)
    _show(collected, effects, expectations, folder, console)
    collected.complete()
    return collected, all(e["holds"] for e in expectations if e["measured"])


def prepared(folder: Path) -> Path:
    """A new folder, or that of a study to be continued. Refusal: it holds something else, leads elsewhere, or cannot be written."""
    if folder.exists() and not folder.is_dir():
        raise Refusal(f"--out {folder}: is a file; give a folder.")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / store.FOLDER).is_dir():
        raise Refusal(f"--out {folder}: holds something else than a study. Give a new folder, or the folder of a study to continue it.")
    store.check_own(folder)
    try:
        (folder / store.FOLDER).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Refusal(f"--out {folder}: cannot be written: {error.strerror}") from error
    return folder


def _show(
    collected: collect.Collected,
    effects: Sequence[compare.Effect],
    expectations: Sequence[Mapping[str, Any]],
    folder: Path,
    console: Console,
) -> None:
    def say(text: str) -> None:
        console.print(text, highlight=False, markup=False, soft_wrap=True)

    for warning in page.warnings(collected):
        say(f"warning: {warning}")
    for one in page.comparisons(collected.study, effects):
        shown = [line for line in one["lines"] if line[1] is not None]
        if shown:
            say(f"{one['title']}: {sum(differs for _, differs in shown)} of {len(shown)} points differ")
    if expectations:
        say(f"{sum(e['holds'] for e in expectations)} of {len(expectations)} expectations hold")
        for e in expectations:
            if not e["holds"]:
                say(f"    {e['name']}: {e['found']}, expected {e['expected']}")
    if not tables.has_parquet():
        say("runs.parquet is left out: pip install 'fairlane[parquet]' adds it.")
    say(f"page: {folder / page.FILE}")
