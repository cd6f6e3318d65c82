"""`fairlane shell`: a Mininet prompt in an experiment's network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairlane.commands.app import App
from fairlane.commands.options import PortOption, TargetOption
from fairlane.experiments import loader
from fairlane.fabrics.base import Settings
from fairlane.fabrics.places import MININET
from fairlane.fabrics.switch_process import FIRST_GRPC_PORT
from fairlane.terminal import console

app = App()


@app.command()
def shell(
    experiment: Annotated[str, typer.Argument(help="An id from 'fairlane list', or a TOML file.", show_default=False)],
    target: TargetOption = "auto",
    grpc_port: PortOption = FIRST_GRPC_PORT,
    script: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, metavar="FILE", help="Run the Mininet commands of this file, a line each, and leave."),
    ] = None,
) -> None:
    """Open a Mininet prompt in an experiment's network, with its controller but without its flows."""
    chosen = loader.load(loader.find(experiment), laid_over=MININET.laid_over)
    options = MININET.options(chosen, Settings(target, first_grpc_port=grpc_port))
    from fairlane import execute

    execute.shell(chosen, options, console, script)
