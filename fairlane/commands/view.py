"""`fairlane view`: a finished run on the live view's page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairlane import probes
from fairlane.commands.app import App
from fairlane.terminal import say

app = App()


@app.command()
def view(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A result folder of 'fairlane run', from any fabric.", show_default=False)],
    port: Annotated[
        int, typer.Option("--live-port", help="Port of the page. Default: a free one.", show_default=False, min=0, max=65535)
    ] = 0,
) -> None:
    """Show a finished run on the live view's page, at any point of its time. Ctrl-C ends the command."""
    probes.need("live", "fairlane view")
    from fairlane.live import finished

    finished.serve(folder, port, say)
