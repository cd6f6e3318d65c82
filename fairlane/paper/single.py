"""`fairlane run ID` where ID is a sweep: that row alone, in a results folder of its own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from fairlane.experiments import fabrics, loader, sweep
from fairlane.fabrics import virtual_fabric
from fairlane.fabrics.interrupts import interruptible
from fairlane.paper import make, read_row
from fairlane.results import result_folder


def wants_sweep(path: Path, at: Sequence[str], fabric: str = "virtual") -> bool:
    """Whether more than one run is meant, apart from seeds. ConfigError for axes that the file does not have."""
    document = loader.read(path)
    document = fabrics.laid_over(document, at) if fabric == "mininet" else sweep.narrowed(document, at)
    return any(len(choices) > 1 for choices in document.values.get("sweep", {}).values())


def run_sweep(path: Path, at: Sequence[str], seed: int | None, out: Path | None, console: Console) -> bool:
    """All points of a row, and its page; whether all that is expected of them holds."""
    virtual_fabric.check_built()
    chosen = read_row.load(path, at=at, seed=seed)
    folder = result_folder.ResultFolder(out or result_folder.default_folder(chosen.id, chosen.sweep.seeds[0]))
    try:
        with interruptible():
            outcomes = make.run([chosen], folder.work, console)
            final = folder.publish()
    except BaseException:
        folder.discard()
        raise
    make.show(outcomes, console)
    console.print(f"results: {os.path.relpath(final)}/index.html", highlight=False, soft_wrap=True)
    return all(o.holds for o in outcomes)
