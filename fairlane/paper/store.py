"""Results of points, kept so that a stopped pass continues where it was.

    POINTS/als-3/seed=1.json            what one run gave; written whole or not at all
    POINTS/als-3/took.jsonl             how long each took, apart, so that the results are the same on any machine

A point's file names the digest of its inputs: the experiment with its computed values, and the program's own
sources. A result with another digest is not reused.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

from fairlane import probes
from fairlane.results import result_folder

_SOURCES = (
    "controller/*.py",
    "topologies/*.py",
    "p4src/**/*.p4",
    "hosts/algorithms/__init__.py",
    "hosts/algorithms/base.py",
    "experiments/*.py",
    "fabrics/control_plane.py",
    "fabrics/flows.py",
    "results/layers.py",
    "inputs/located_toml.py",
    "results/metrics*.py",
    "fabrics/raw.py",
    "inputs/schema.py",
    "results/series.py",
    "fabrics/virtual_control.py",
    "fabrics/virtual_fabric.py",
    "paper/measures.py",
    "paper/points.py",
    "paper/settling.py",
)
"""What every run goes through; an algorithm's own files come on top."""


@cache
def program_digest() -> str:
    """Of everything that decides what any run gives: Python and P4 sources, and the module of the virtual network."""
    from fairlane import native

    digest = hashlib.sha256()
    for pattern in _SOURCES:
        for path in sorted(probes.PACKAGE.glob(pattern)):
            digest.update(str(path.relative_to(probes.PACKAGE)).encode() + b"\0" + path.read_bytes() + b"\0")
    digest.update(Path(native.__file__).read_bytes())
    return digest.hexdigest()


@cache
def algorithm_digest(kind: str) -> str:
    """Of the source files of a flow kind's algorithm, and of those of `fairlane.hosts.algorithms` that they import; empty for TCP and sources."""
    from fairlane.hosts.algorithms import ALGORITHMS

    if kind not in ALGORITHMS:
        return ""
    todo, seen = [ALGORITHMS[kind].sender.__module__, ALGORITHMS[kind].receiver.__module__], set()
    while todo:
        name = todo.pop()
        if name in seen or not name.startswith("fairlane.hosts.algorithms."):
            continue
        seen.add(name)
        todo += [getattr(value, "__module__", None) or "" for value in vars(sys.modules[name]).values()]
    files = sorted(Path(sys.modules[name].__file__ or "") for name in seen)
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()


def digest_of(values: Any) -> str:
    """Of plain data."""
    return hashlib.sha256(json.dumps(values, sort_keys=True, default=str).encode()).hexdigest()


class Store:
    """A folder of results by row and point."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, row: str, key: str, inputs: str) -> dict[str, Any] | None:
        """A kept result that was made from the same inputs."""
        try:
            kept = json.loads((self.folder / row / f"{key}.json").read_text())
        except (OSError, ValueError):
            return None
        return kept if kept.get("inputs") == inputs else None

    def put(self, row: str, key: str, result: dict[str, Any], took_s: float) -> None:
        folder = self.folder / row
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = folder / f".{key}.{os.getpid()}"
        result_folder.write_json(unfinished, result)
        unfinished.rename(folder / f"{key}.json")
        with (folder / "took.jsonl").open("a") as file:
            file.write(json.dumps({"key": key, "seconds": round(took_s, 3)}) + "\n")

    def took_s(self, row: str, keys: set[str]) -> float:
        """Processor seconds that the newest results of these points took."""
        newest: dict[str, float] = {}
        try:
            for line in (self.folder / row / "took.jsonl").read_text().splitlines():
                record = json.loads(line)
                newest[record["key"]] = record["seconds"]
        except (OSError, ValueError, KeyError):
            pass
        return sum(s for key, s in newest.items() if key in keys)
