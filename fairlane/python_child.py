"""Starts our Python processes so that none of them imports from the current folder.

`python -m` and `python -c` put the current folder first on the module path, where a `json.py` would replace the standard library's; root
may work in another user's folder. Since Python 3.11, `-P` omits the folder. Python 3.10 has imported nothing from there before
the first statement of `_START`, which also omits it; later versions may have (linecache).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

_START = (
    "import sys; sys.path[:1] == [''] and sys.path.pop(0); "
    "import runpy; runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)"
)


def of_module(name: str) -> list[str]:
    """The beginning of a command that runs a module, as `python -m` does."""
    return [sys.executable, *(["-P"] if sys.version_info >= (3, 11) else []), "-c", _START, name]


def become(program: Path, words: list[str]) -> NoReturn:
    """This process becomes another program; words: its command line, the name first. Windows has no such thing: there it waits for the program, and
    ends as that ends."""
    if sys.platform == "win32":
        import subprocess

        try:
            sys.exit(subprocess.run(words, executable=program).returncode)
        except KeyboardInterrupt:  # the program gets it, too
            sys.exit(130)
    os.execv(program, words)
