"""`fairlane labs`: the labs copied, and answers graded."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairlane.commands.app import App
from fairlane.terminal import console

app = App()


labs = App(no_args_is_help=True, help="The labs: copy them, and check your answers.")
app.add_typer(labs, name="labs")


@labs.command("copy")
def copy_labs(folder: Annotated[Path, typer.Argument(help="The new folder; must not exist.")] = Path("labs")) -> None:
    """Copy the labs into a new folder, to work there. Its README.md lists them."""
    from fairlane.labs.grading.labs import copy

    copy(folder)
    console.print(f"labs: {folder}; begin with {folder}/01/README.md", highlight=False, markup=False, soft_wrap=True)


@labs.command("check")
def check_lab(
    number: Annotated[str, typer.Argument(help="The lab's number, such as 04.", show_default=False)],
    folder: Annotated[
        Path | None, typer.Argument(help="Folder of the files to grade. Default: labs/NUMBER in the current folder.", show_default=False)
    ] = None,
) -> None:
    """Grade the answer to a lab: points, observations, and a hint. Exit code 1 unless the answer gets all points."""
    from fairlane.labs.grading.__main__ import main as grade

    raise typer.Exit(grade([number, "--answer", str(folder or Path("labs", number))]))
