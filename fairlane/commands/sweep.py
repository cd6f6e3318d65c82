"""`fairlane sweep`: a study, all points of a file with all seeds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairlane import ad_hoc_networks
from fairlane.commands.app import App
from fairlane.commands.options import OwnControl, SchedulerOption, UserFiles, WorkersOption, in_groups
from fairlane.errors import CHECK_FAILED, Refusal
from fairlane.experiments import loader
from fairlane.terminal import console

app = App()


@app.command("sweep")
@in_groups
def sweep_file(
    experiment: Annotated[str, typer.Argument(help="A TOML file with axes and seeds, or an id from 'fairlane list'.", show_default=False)],
    own: UserFiles,
    control: OwnControl,
    *,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of the study; a study that exists there continues. Default: results/ID/sweep.", show_default=False),
    ] = None,
    at: Annotated[
        list[str] | None, typer.Option(help="AXIS=VALUE: keep one value of an axis, such as n=8. Repeatable.", show_default=False)
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(help="Use seeds 1 to this number instead of the file's seeds.", show_default=False, min=1)
    ] = None,
    duration: Annotated[
        float | None, typer.Option(help="Duration of each run in seconds. Default: the file's.", show_default=False)
    ] = None,
    scheduler: SchedulerOption = None,
    workers: WorkersOption = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit code 1 if an expectation of the file does not hold.")] = False,
) -> None:
    """Run a study: all points of a file with all seeds, then tables, figures with intervals, and a page. Continues a stopped study."""
    from fairlane.paper import single
    from fairlane.studies import read

    files = read.own_files(own.algorithm or (), own.program or (), own.scheme or (), control.control)
    if ad_hoc_networks.describes(experiment):
        raise Refusal(
            f"fairlane sweep {experiment}: give a file; 'fairlane run {experiment} --flow ... --save FILE.toml' writes one to begin with."
        )
    holds = single.sweep_file(
        loader.find(experiment),
        out,
        console,
        at=at or [],
        seeds=range(1, seeds + 1) if seeds else (),
        duration_s=duration,
        files=files,
        scheduler=scheduler,
        workers=workers,
    )
    if strict and not holds:
        raise typer.Exit(CHECK_FAILED)
