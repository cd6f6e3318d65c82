"""Algorithm files in any folder: read by `load_file`, or listed in the environment variable `FAIRLANE_ALGORITHMS` (several: joined
as in PATH), which the processes that a run starts inherit and read with `load_listed`.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from fairlane.hosts import algorithms
from fairlane.inputs import own_python

FILES_VARIABLE = "FAIRLANE_ALGORITHMS"


MODULES = "hosts_own_"
"""How the names of their modules begin."""


def load_file(path: Path | str) -> list[str]:
    """The flow kinds of a Python file, added to `fairlane.hosts.algorithms.ALGORITHMS`; one that was loaded before is read again. ValueError names
    the file and what is wrong with it; what the file itself raises passes through."""
    path = Path(path).resolve()
    name = MODULES + re.sub(r"[^a-zA-Z0-9_]", "_", path.stem)
    if path.suffix != ".py" or not path.is_file():
        raise ValueError(f"{path}: no such Python file")
    module = own_python.module_of(path, name)
    found = algorithms.take(getattr(module, "KINDS", ()), str(path))
    if not found:
        raise ValueError(f'{path}: lists no flow kind. Write KINDS = (Kind("my-rate", ...),), as the files of hosts/algorithms do')
    return found


def listed() -> list[str]:
    """The files that the environment variable lists."""
    return list(filter(None, os.environ.get(FILES_VARIABLE, "").split(os.pathsep)))


def load_listed() -> None:
    """Load what the environment variable lists; raises as `load_file`."""
    for path in listed():
        load_file(path)
