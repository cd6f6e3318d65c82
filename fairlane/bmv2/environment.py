"""The environment variables that make BMv2's names refer to Fairlane's programs and packages."""

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
_MARK = "# Made by 'fairlane env --link': Fairlane's program under BMv2's name."
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


def foreign(environment: Mapping[str, str]) -> Path | None:
    """The virtual environment that is active, if it is not the one that Fairlane is in: its Python and its programs stay the first."""
    active = environment.get("VIRTUAL_ENV") or (environment.get("CONDA_DEFAULT_ENV", "base") != "base" and environment.get("CONDA_PREFIX"))
    return Path(active) if active and Path(active).resolve() != Path(sys.prefix).resolve() else None


def lines(environment: Mapping[str, str], packages_too: bool = False) -> list[str]:
    """Lines for a shell with these variables. packages_too: BMv2's Python packages, for Pythons that do not have Fairlane; the one that has
    Fairlane finds them by itself. PYTHONPATH is left alone without need: p4-guide's scripts, and others, stop where it is set."""
    added = {name: [shlex.quote(str(folder)) for folder in before] for name, before in folders().items()}
    commands, own = added["PATH"]
    path = [commands, "$PATH", own] if foreign(environment) else [commands, own, "$PATH"]
    (packages,) = added["PYTHONPATH"]
    more = [f"export PYTHONPATH={packages}${{PYTHONPATH:+:$PYTHONPATH}}"] if packages_too else []
    return [f"export PATH={os.pathsep.join(path)}", *more]


def link(folder: Path) -> list[Path]:
    """Put BMv2's names into a folder in which sudo looks for programs, such as /usr/local/bin. FileExistsError: a program of that name, which is not
    from here, is there; then nothing is written."""
    commands, own = folders()["PATH"]
    programs = [folder / name for name in NAMES]
    for program in programs:
        if os.path.lexists(program) and not _is_ours(program):
            raise FileExistsError(program)
    for program in programs:
        text = f'#!/bin/sh\n{_MARK}\nPATH={shlex.quote(str(own))}:$PATH exec {shlex.quote(str(commands / "as-bmv2"))} {program.name} "$@"\n'
        program.write_text(text)
        program.chmod(0o755)
    return programs


def unlink(folder: Path) -> list[Path]:
    """Remove what `link` put into a folder, and nothing else."""
    programs = [program for name in NAMES if _is_ours(program := folder / name)]
    for program in programs:
        program.unlink()
    return programs


def _is_ours(program: Path) -> bool:
    try:
        return not program.is_symlink() and _MARK in program.read_text(errors="replace")[:200]
    except OSError:
        return False


def hidden(path: str | None = None) -> list[Path]:
    """Programs of these names that are installed, and that ours would come before."""
    elsewhere = [
        folder for folder in (path or os.environ.get("PATH", "")).split(os.pathsep) if folder and Path(folder).resolve() != COMMANDS
    ]
    found = (shutil.which(name, path=os.pathsep.join(elsewhere)) for name in NAMES)
    return [Path(program) for program in found if program and not _is_ours(Path(program))]
