"""Runs notebooks cell by cell, as a kernel does, each in a process of its own: python -m tools.notebooks.execute NOTEBOOK.py=ANSWER...

ANSWER is the folder of solved files. Prints a line of JSON for each notebook: what failed (null or cell and traceback), the number of cells run, and a
digest of what came out: what cells printed, and every table and result that they left behind."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import ipywidgets
import jupytext
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot  # read once, for all
import pandas as pd
from IPython.core import pylabtools
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

import fairlane
from fairlane.fabrics import virtual_fabric
from fairlane.labs.notebook import ANSWER_VARIABLE
from fairlane.results import compare

# Meaningless differences between runs: addresses in memory, names of scratch folders, how long a run took.
_CHANGES = re.compile(rf"0x[0-9a-f]+|{re.escape(tempfile.gettempdir())}\S*|virtual time: .*")


def main() -> None:
    for argument in sys.argv[1:]:
        source, _, answer = argument.partition("=")
        print(json.dumps(_apart(Path(source), answer)), flush=True)


def _apart(source: Path, answer: str) -> dict[str, Any]:
    """Run one in a child, so that it finds Python as a new kernel would."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.environ[ANSWER_VARIABLE] = answer
        os.chdir(source.parent)
        with os.fdopen(writing, "w") as pipe:
            json.dump(_run(source), pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return json.loads(said) if said else {"failed": f"{source}: the process ended", "cells": 0, "digest": ""}


def _run(source: Path) -> dict[str, Any]:
    shell = InteractiveShell.instance()
    pylabtools.select_figure_formats = lambda *_, **__: None  # nobody watches, and drawing takes longer than most runs
    digest = hashlib.sha256()
    cells = [cell.source for cell in jupytext.read(source).cells if cell.cell_type == "code"]
    for number, cell in enumerate(cells):
        with capture_output() as captured:
            done = shell.run_cell(cell, store_history=True)
        if not done.success:
            return {"failed": f"{source}, code cell {number + 1}:\n{cell}\n{captured.stdout[-3000:]}", "cells": number, "digest": ""}
        if not isinstance(done.result, ipywidgets.Widget):
            digest.update(_CHANGES.sub("", captured.stdout).encode())
    for name in sorted(shell.user_ns):
        value = shell.user_ns[name]
        if name[0] != "_":
            for table in (value.flows, value.links, value.fair_rates) if isinstance(value, fairlane.Result) else (value,):
                if isinstance(table, pd.DataFrame):
                    digest.update(name.encode() + table.to_csv().encode())
    return {"failed": None, "cells": len(cells), "digest": digest.hexdigest()}


if __name__ == "__main__":
    main()
