"""`fairlane paper`: the papers' figures and tables on one page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairlane.commands.app import App
from fairlane.commands.options import PortOption, SchedulerOption, WorkersOption
from fairlane.errors import CHECK_FAILED
from fairlane.fabrics.switch_process import FIRST_GRPC_PORT
from fairlane.terminal import console, shown

if TYPE_CHECKING:
    from fairlane.paper.row import Row
    from fairlane.paper.row_outcome import Outcome
    from fairlane.paper.wall_clock import Run

app = App()


@app.command()
def paper(
    ids: Annotated[
        list[str] | None, typer.Argument(help="Ids of rows. Default: every experiment with expectations.", show_default=False)
    ] = None,
    quick_: Annotated[bool, typer.Option("--quick", help="Run fewer points and seeds, as defined in each file.")] = False,
    scheduler: SchedulerOption = None,
    workers: WorkersOption = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the report and its data. Default: results/paper, or results/paper-quick.", show_default=False),
    ] = None,
    mininet: Annotated[
        bool, typer.Option("--mininet", help="Also run the rows with a [mininet] table on Mininet, to compare with virtual time (root).")
    ] = False,
    grpc_port: PortOption = FIRST_GRPC_PORT,
    strict: Annotated[bool, typer.Option("--strict", help="Exit code 1 if a row is unexplained.")] = False,
) -> None:
    """Reproduce the papers' figures and tables in virtual time on one page, index.html. Continues a stopped reproduction."""
    from fairlane.fabrics import virtual_fabric
    from fairlane.paper import make

    virtual_fabric.check_built()
    names = ids or make.ids()
    folder = out or Path("results") / ("paper-quick" if quick_ else "paper")
    rows = make.load(names, quick_)
    real = _wall_clock_runs(rows, folder) if mininet else []
    outcomes = make.run(rows, folder, console, quick=quick_, scheduler=scheduler, workers=workers)
    if real:
        _run_on_wall_clock(real, outcomes, folder, quick_, grpc_port, scheduler, workers)
    make.show(outcomes, console)
    console.print(f"report: {shown(folder / 'index.html')}", highlight=False, soft_wrap=True)
    if strict and any(o.kind == "unexplained" for o in outcomes):
        raise typer.Exit(CHECK_FAILED)


def _wall_clock_runs(rows: list[Row], folder: Path) -> list[Run]:
    """The runs for Mininet; empty where Mininet cannot run."""
    from fairlane.paper import wall_clock

    runs = wall_clock.plan(rows, folder)
    return runs if wall_clock.announce(runs, console) else []


def _run_on_wall_clock(
    runs: list[Run], outcomes: list[Outcome], folder: Path, quick_: bool, grpc_port: int, scheduler: str | None, workers: int | None
) -> None:
    """Run them, and write the page again with their results, even if some failed."""
    from fairlane.paper import page, wall_clock

    try:
        wall_clock.carry_out(runs, folder, console, grpc_port=grpc_port, scheduler=scheduler, workers=workers)
    finally:
        page.write(outcomes, folder, quick_)
