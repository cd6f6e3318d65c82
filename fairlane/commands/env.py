"""`fairlane env`: BMv2's names for Fairlane's programs."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from fairlane.commands.app import App
from fairlane.errors import Refusal

app = App()


@app.command()
def env(
    link: Annotated[
        Path | None,
        typer.Option(
            help="Link the names in this folder instead, such as /usr/local/bin, where sudo and other users find them.", show_default=False
        ),
    ] = None,
    unlink: Annotated[Path | None, typer.Option(help="Remove these links from this folder.", show_default=False)] = None,
    packages: Annotated[
        bool, typer.Option("--packages", help="Also make BMv2's Python packages available to Pythons without Fairlane (PYTHONPATH).")
    ] = False,
) -> None:
    """Print shell commands that make BMv2's names (simple_switch, simple_switch_CLI, p4c, bm_runtime, ...) run Fairlane's programs."""
    from fairlane.bmv2 import environment

    if link is not None or unlink is not None:
        _links(link, unlink)
        return
    for program in environment.hidden():
        typer.echo(f"fairlane: note: {program} is hidden by these lines: leave them out to use it", err=True)
    if find_spec("thriftpy2") is None:
        typer.echo("fairlane: note: simple_switch_CLI and bm_runtime need thriftpy2: pip install 'fairlane[bmv2]'", err=True)
    if active := environment.foreign(os.environ):
        typer.echo(f"fairlane: note: python is still that of {active}; Fairlane's is {sys.executable}", err=True)
    for line in environment.lines(os.environ, packages):
        typer.echo(line)


def _links(link: Path | None, unlink: Path | None) -> None:
    from fairlane.bmv2 import environment

    try:
        for program in environment.unlink(unlink) if unlink else []:
            typer.echo(f"removed {program}")
        for program in environment.link(link) if link else []:
            typer.echo(f"{program} is Fairlane's; 'fairlane env --unlink {link}' removes it")
    except FileExistsError as error:
        raise Refusal(f"{error}: another program of that name is there, and stays. Give a folder that comes before it in PATH.") from error
    except OSError as error:
        raise Refusal(f"{error.filename}: {error.strerror}.") from error
