"""ns-3's side of a comparison: a program of ours, compiled with Debian's libraries."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

LIBRARIES = ("applications", "internet", "network", "point-to-point", "traffic-control", "bridge", "stats", "core")
MISSING = "ns-3's side needs g++ and ns-3 (Debian: apt install g++ libns3-dev)"


def is_here() -> bool:
    return shutil.which("g++") is not None and Path("/usr/include/ns3").is_dir()


def compiled(source: Path, folder: Path) -> Path | None:
    """The program of a source, made in the folder; None without g++ or ns-3."""
    if not is_here():
        return None
    program = folder / source.stem
    libraries = ["-Wl,--no-as-needed", *(f"-lns3-{name}" for name in LIBRARIES)]
    subprocess.run(["g++", "-O1", str(source), "-o", str(program), *libraries], check=True)
    return program
