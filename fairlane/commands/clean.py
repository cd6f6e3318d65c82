"""`fairlane clean`: the leftovers of killed runs removed."""

from __future__ import annotations

from typing import Annotated

import typer

from fairlane import probes
from fairlane.commands.app import App
from fairlane.errors import CANNOT_RUN_HERE, Refusal
from fairlane.terminal import console

app = App()


@app.command()
def clean(stop: Annotated[bool, typer.Option("--stop", help="Also stop running experiments.")] = False) -> None:
    """Remove the leftovers of killed runs: namespaces, interfaces, processes. Changes nothing else."""
    probes.need_linux()
    if not probes.is_root():
        raise Refusal("cleaning up runs needs root: use sudo.", CANNOT_RUN_HERE)
    from fairlane.fabrics import leftovers

    if stop:
        for what in leftovers.stop_live():
            console.print(f"ended {what}", highlight=False)
    for what in leftovers.clean():
        console.print(f"removed {what}", highlight=False)
