"""`fairlane report`: finished runs beside each other."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairlane.commands.app import App
from fairlane.terminal import console

app = App()


@app.command()
def report(
    folders: Annotated[
        list[Path], typer.Argument(metavar="DIR...", help="Result folders of 'fairlane run', from any fabric.", show_default=False)
    ],
    out: Annotated[
        Path | None, typer.Option(help="FILE.html for a page with every run's rates and queue; must not exist.", show_default=False)
    ] = None,
) -> None:
    """Compare finished runs in one table, and on a page; evaluate a run whose evaluation failed. Runs nothing."""
    from fairlane.results import compare, unfinished

    if out is not None:
        compare.check_out(out)
    for folder in folders:
        if unfinished.is_in(folder):
            from fairlane import execute

            execute.finish(folder, console)
    runs = compare.load(folders)
    compare.show(runs, console)
    if out is not None:
        compare.write(runs, out)
        console.print(f"page: {out}", highlight=False, markup=False, soft_wrap=True)
