"""Runs rows of the ledger and writes their report."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rich.console import Console

from fairlane.errors import Refusal
from fairlane.experiments import loader
from fairlane.paper import kinds, page, read_row, words
from fairlane.paper.judge import judge
from fairlane.paper.row import Row
from fairlane.paper.row_outcome import Outcome
from fairlane.results import made
from fairlane.studies import collect as studies


def ids() -> list[str]:
    """The experiments that are rows of the report."""
    return [name for name in loader.names() if read_row.is_row(loader.read(loader.find(name)))]


def load(names: Iterable[str], quick: bool) -> list[Row]:
    """All rows, checked with every point before anything runs. Refusal: one that expects nothing, of which a report has nothing to say."""
    rows = [read_row.load(loader.find(name), quick) for name in names]
    for row in rows:
        if not row.expectations:
            raise Refusal(
                f"{row.document.name}: expects nothing of its runs: add [[expect]] (docs/paper-report.md), or run it with 'fairlane sweep'."
            )
    return rows


def run(
    rows: list[Row], folder: Path, console: Console, *, quick: bool = False, scheduler: str | None = None, workers: int | None = None
) -> list[Outcome]:
    """Run what is not yet in `folder`/points, and write `folder`/index.html. RunFailed names the point that failed."""
    made.commit()  # the commit of the sources that the runs use, even if others follow meanwhile
    outcomes = collect(rows, folder, console, scheduler=scheduler, workers=workers)
    page.write(outcomes, folder, quick)
    return outcomes


def collect(rows: list[Row], folder: Path, console: Console, *, scheduler: str | None = None, workers: int | None = None) -> list[Outcome]:
    """As `run`, without the page."""
    found = studies.collect(rows, folder, console, scheduler=scheduler, workers=workers, what=f"{len(rows)} rows of the ledger: ")
    return [outcome(row, one.complete()) for row, one in zip(rows, found)]


def outcome(row: Row, found: studies.Collected) -> Outcome:
    """What is found of each expectation in the results of a row's runs."""
    verdicts = tuple(
        judge(e, {axes: [_number(run["values"][e.measure]) for run in runs] for axes, runs in found.results.items()}, row.reference)
        for e in row.expectations
    )
    return Outcome(row, found.results, verdicts, found.took_s)


def _number(value: float | None) -> float:
    return float("nan") if value is None else value


_STYLE: dict[kinds.Kind, str] = {
    "holds": "green",
    "reading": "blue",
    "contradiction": "magenta",
    "unexplained": "red",
    "not run in full": "yellow",
}


def show(outcomes: list[Outcome], console: Console) -> None:
    """One line for each row, its expectations that do not hold, and how many rows are of each kind."""
    for outcome in outcomes:
        counted = kinds.ordinary(outcome.verdicts)
        console.print(
            f"{outcome.row.id:14} [{_STYLE[outcome.kind]}]{outcome.kind:15}[/]  {sum(v.holds for v in counted)} of {len(counted)} expectations"
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
