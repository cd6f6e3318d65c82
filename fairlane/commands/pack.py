"""`fairlane pack` and `fairlane unpack`: results as one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairlane.commands.app import App
from fairlane.errors import Refusal
from fairlane.terminal import say

app = App()


@app.command()
def pack(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Results of 'fairlane run' or 'fairlane sweep'.", show_default=False)],
    out: Annotated[Path | None, typer.Option(help="FILE.tar.gz; must not exist. Default: DIR.tar.gz.", show_default=False)] = None,
    blind: Annotated[bool, typer.Option("--blind", help="Refuse results whose texts name this machine or its user.")] = False,
) -> None:
    """Pack results into one file, with all that repeats them: inputs, versions, command."""
    from fairlane.results import pack as packing

    target = out or folder.with_name(f"{folder.resolve().name}.tar.gz")
    manifest = packing.pack(folder, target, blind)
    say(f"{target}: {len(manifest['files'])} files, {target.stat().st_size / 1e6:.1f} MB")


@app.command()
def unpack(
    archive: Annotated[Path, typer.Argument(metavar="FILE", help="Of 'fairlane pack'.", show_default=False)],
    out: Annotated[Path | None, typer.Option(help="A folder; must not exist. Default: FILE without .tar.gz.", show_default=False)] = None,
) -> None:
    """Unpack results, check every file against the list, and say how to repeat them."""
    from fairlane.results import pack as packing

    if not archive.is_file():
        raise Refusal(f"{archive}: no such file")
    folder = out or archive.with_name(archive.name.removesuffix(".gz").removesuffix(".tgz").removesuffix(".tar"))
    if folder == archive:
        raise Refusal(f"{archive}: give the folder to write by --out")
    manifest = packing.unpack(archive, folder)
    say(f"{folder}: {len(manifest['files'])} files, each as its list says")
    if manifest["again"]:
        say(f"again: cd {folder} && {manifest['again']}")
