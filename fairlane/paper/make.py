"""Runs rows of the ledger and writes their report."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from fairlane.experiments import loader
from fairlane.paper import index, kinds, page, points, read_row, schedule, words
from fairlane.paper.judge import judge
from fairlane.paper.row import Row
from fairlane.paper.row_outcome import Outcome
from fairlane.paper.store import Store


def ids() -> list[str]:
    """The experiments that are rows of the report."""
    return [name for name in loader.names() if read_row.is_row(loader.read(loader.find(name)))]


def load(names: Iterable[str], quick: bool) -> list[Row]:
    """All rows, checked with every point before anything runs."""
    return [read_row.load(loader.find(name), quick) for name in names]


def run(
    rows: list[Row], folder: Path, console: Console, *, quick: bool = False, scheduler: str | None = None, workers: int | None = None
) -> list[Outcome]:
    """Run what is not yet in `folder`/points, and write `folder`/index.html. RunFailed names the point that failed."""
    index.commit()  # the commit of the sources that the runs use, even if others follow meanwhile
    outcomes = collect(rows, folder, console, quick=quick, scheduler=scheduler, workers=workers)
    page.write(outcomes, folder, quick)
    return outcomes


def collect(
    rows: list[Row], folder: Path, console: Console, *, quick: bool = False, scheduler: str | None = None, workers: int | None = None
) -> list[Outcome]:
    """As `run`, without the page."""
    kept = Store(folder / "points")
    jobs = [job for r in rows for job in points.jobs(r, _quick_duration(r) if quick else None)]
    known = {(j.row, j.key): found for j in jobs if (found := kept.get(j.row, j.key, j.inputs)) is not None}
    todo = [j for j in jobs if (j.row, j.key) not in known]
    _announce(console, rows, jobs, todo, workers, scheduler)
    if todo:
        with schedule.cluster(scheduler, workers) as client, _progress(console) as shown:
            task = shown.add_task("runs", total=sum(j.cost for j in todo), done=0, of=len(todo), what="")
            for number, (job, done) in enumerate(schedule.run(client, points.run, todo), 1):
                kept.put(job.row, job.key, done.result, done.took_s)
                result = kept.get(job.row, job.key, job.inputs)
                assert result is not None
                known[job.row, job.key] = result
                shown.update(task, advance=job.cost, done=number, what=job.name)
                if not console.is_terminal:
                    console.print(f"{number}/{len(todo)}  {job.name}  {done.took_s:.1f} s", highlight=False, markup=False, soft_wrap=True)
    return [_outcome(r, jobs, known, kept) for r in rows]


def _quick_duration(r: Row) -> float | None:
    return r.document.values.get("quick", {}).get("duration_s")


def _announce(
    console: Console, rows: list[Row], jobs: list[points.Job], todo: list[points.Job], workers: int | None, scheduler: str | None
) -> None:
    import os

    hands = workers or os.cpu_count() or 1
    console.print(f"{len(rows)} rows of the ledger, {len(jobs)} runs; {len(jobs) - len(todo)} are there already.", highlight=False)
    if todo:
        seconds = sum(j.cost for j in todo)
        where = f"on the cluster at {scheduler}" if scheduler else f"with {hands} workers here"
        console.print(
            f"{len(todo)} to go {where}: about {span(seconds)} of processor time"
            + ("." if scheduler else f", {span(seconds / hands)} by the clock."),
            highlight=False,
        )


def span(seconds: float) -> str:
    """A length of time for people."""
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


@contextlib.contextmanager
def _progress(console: Console):
    columns = (
        BarColumn(),
        TextColumn("{task.fields[done]}/{task.fields[of]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[what]}"),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as shown:
        yield shown


def _outcome(r: Row, jobs: list[points.Job], known: dict[tuple[str, str], Any], kept: Store) -> Outcome:
    results: dict[tuple[tuple[str, Any], ...], list[dict[str, Any]]] = {}
    own = [j for j in jobs if j.row == r.id]
    for job in own:
        results.setdefault(job.axes, []).append(known[job.row, job.key])
    verdicts = tuple(
        judge(e, {axes: [_number(run["values"][e.measure]) for run in runs] for axes, runs in results.items()}, r.reference)
        for e in r.expectations
    )
    return Outcome(r, results, verdicts, kept.took_s(r.id, {j.key for j in own}))


def _number(value: float | None) -> float:
    return float("nan") if value is None else value


_STYLE: dict[kinds.Kind, str] = {"holds": "green", "reading": "blue", "contradiction": "magenta", "unexplained": "red"}


def show(outcomes: list[Outcome], console: Console) -> None:
    """One line for each row, its expectations that do not hold, and how many rows are of each kind."""
    for outcome in outcomes:
        counted = kinds.ordinary(outcome.verdicts)
        console.print(
            f"{outcome.row.id:14} [{_STYLE[outcome.kind]}]{outcome.kind:13}[/]  {sum(v.holds for v in counted)} of {len(counted)} expectations"
            f"  {outcome.row.title}",
            highlight=False,
        )
        for verdict in counted:
            if noise := words.noise(verdict):
                console.print(
                    f"{'':16}{verdict.expectation.name}: holds within the noise of the seeds ({noise})", highlight=False, markup=False
                )
            if not verdict.holds:
                console.print(
                    f"{'':16}{verdict.expectation.name}: {words.found(verdict)}, expected {words.expected(verdict.expectation)}",
                    highlight=False,
                    markup=False,
                )
        for verdict in kinds.contradicted(outcome.verdicts):
            console.print(
                f"{'':16}the paper's figure that cannot come out {'comes out here' if verdict.holds else 'does not'}: {verdict.expectation.name}",
                highlight=False,
                markup=False,
            )
        if outcome.kind == "unexplained" and not outcome.row.ledger.ruled_out:
            console.print(f"{'':16}nothing is ruled out yet: [ledger] ruled_out of the file is empty", highlight=False, markup=False)
    console.print(kinds.count([o.kind for o in outcomes]), highlight=False)
