"""The variables under which BMv2's names mean Fairlane's programs and packages."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

_HERE = Path(__file__).resolve().parent
COMMANDS = _HERE / "bin"
PACKAGES = _HERE / "python"
NAMES = ("simple_switch", "simple_switch_grpc", "simple_switch_CLI", "p4c", "p4c-bm2-ss")


def folders() -> dict[str, list[Path]]:
    """What goes before the rest of each variable."""
    own = Path(sys.executable).parent  # fairlane-switch and the others, and the Python that has thriftpy2
    return {"PATH": [COMMANDS, own], "PYTHONPATH": [PACKAGES]}


def extended(environment: Mapping[str, str]) -> dict[str, str]:
    """The same environment, in which BMv2's names mean ours."""
    result = dict(environment)
    for name, added in folders().items():
        before = [str(folder) for folder in added]
        result[name] = os.pathsep.join([*before, *filter(None, [environment.get(name)])])
    return result


def lines() -> list[str]:
    """Lines for a shell."""
    written = {name: shlex.quote(os.pathsep.join(map(str, added))) for name, added in folders().items()}
    return [f"export PATH={written['PATH']}:$PATH", f"export PYTHONPATH={written['PYTHONPATH']}${{PYTHONPATH:+:$PYTHONPATH}}"]


def hidden(path: str | None = None) -> list[Path]:
    """Programs of these names that are installed, and that ours would come before."""
    elsewhere = [
        folder for folder in (path or os.environ.get("PATH", "")).split(os.pathsep) if folder and Path(folder).resolve() != COMMANDS
    ]
    found = (shutil.which(name, path=os.pathsep.join(elsewhere)) for name in NAMES)
    return [Path(program) for program in found if program]
