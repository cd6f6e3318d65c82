"""Results of points, stored so that a stopped pass can continue.

    POINTS/als-3/seed=1.json            the result of one run; written completely or not at all
    POINTS/als-3/earlier/seed=1.0123456789abcdef.json   its result before its inputs changed: used again if they change back
    POINTS/als-3/took.jsonl             the duration of each run, separate, so that the results are the same on any machine

A point's file contains the digest of its inputs: the experiment with its computed values, the user's own files, and the program's
sources. A result with another digest is not reused, and not deleted.
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
from fairlane.errors import Refusal
from fairlane.results import held, result_folder
from fairlane.user_files import KEPT

FOLDER = "points"
"""Of a study's folder, the part that keeps each run's result."""
_SOURCES = (
    "controller/*.py",
    "controller/plane/*.py",
    "topologies/*.py",
    "p4src/**/*.p4",
    "p4src/schemes/*/*.py",
    "schemes/*.py",
    "hosts/algorithms/__init__.py",
    "hosts/algorithms/base.py",
    "experiments/*.py",
    "fabrics/control_plane.py",
    "fabrics/flows.py",
    "results/delays.py",
    "results/layers.py",
    "inputs/located_toml.py",
    "results/metrics*.py",
    "fabrics/raw.py",
    "inputs/schema.py",
    "results/series.py",
    "fabrics/virtual_control.py",
    "fabrics/virtual_fabric.py",
    "studies/measures.py",
    "studies/points.py",
    "studies/settling.py",
)
"""What every run goes through; an algorithm's own files come on top."""


@cache
def program_digest() -> str:
    """Of everything that decides what any run gives: Python and P4 sources, and the module of the virtual network."""
    from fairlane import native

    digest = hashlib.sha256()
    for pattern in _SOURCES:
        for path in sorted(probes.PACKAGE.glob(pattern)):
            digest.update(path.relative_to(probes.PACKAGE).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    digest.update(Path(native.__file__).read_bytes())
    return digest.hexdigest()


def algorithm_digest(kind: str) -> str:
    """Of the source files of a flow kind's algorithm, and of those of `fairlane.hosts.algorithms` that they import; empty for TCP and sources. A
    file of the user's own counts, with the files of `fairlane.hosts.algorithms` that it imports."""
    from fairlane.hosts import own_algorithms
    from fairlane.hosts.algorithms import ALGORITHMS

    if kind not in ALGORITHMS:
        return ""
    todo, seen = [ALGORITHMS[kind].sender.__module__, ALGORITHMS[kind].receiver.__module__], set()
    while todo:
        name = todo.pop()
        if name in seen or not name.startswith(("fairlane.hosts.algorithms.", own_algorithms.MODULES)):
            continue
        seen.add(name)
        todo += [getattr(value, "__module__", None) or "" for value in vars(sys.modules[name]).values()]
    files = sorted(Path(sys.modules[name].__file__ or "") for name in seen)
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()


def digest_of(values: Any) -> str:
    """Of plain data."""
    return hashlib.sha256(json.dumps(values, sort_keys=True, default=str).encode()).hexdigest()


def check_own(folder: Path) -> None:
    """Refusal for a study's folder that leads elsewhere, or whose owner could make it do so while root writes there."""
    if not folder.is_dir():
        return
    kept = folder / FOLDER
    if probes.is_root() and (owner := folder.stat().st_uid) != 0:
        raise Refusal(
            f"--out {folder}: belongs to another user (uid {owner}), who could lead what root writes there elsewhere."
            " Run it as that user (sudo -u), or give another folder."
        )
    for path in (*folder.iterdir(), *(folder / KEPT).rglob("*"), *kept.glob("*"), *kept.glob("*/earlier")):
        if path.is_symlink():
            raise Refusal(
                f"--out {folder}: {path.relative_to(folder)} is a link, and what is written there would land elsewhere. Remove it."
            )


class Store:
    """A folder of results by study and point."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, study: str, key: str, inputs: str) -> dict[str, Any] | None:
        """A kept result that was made from the same inputs."""
        return next((kept for path in (self._path(study, key), self._earlier(study, key, inputs)) if (kept := _read(path, inputs))), None)

    def put(self, study: str, key: str, result: dict[str, Any], took_s: float) -> None:
        """Keep a result; it appears whole, and survives the end of this process from now on."""
        path = self._path(study, key)
        path.parent.mkdir(parents=True, exist_ok=True)
        if (replaced := _read(path)) is not None and replaced["inputs"] != result["inputs"]:
            earlier = self._earlier(study, key, replaced["inputs"])
            earlier.parent.mkdir(exist_ok=True)
            path.rename(earlier)
        result_folder.write_whole(path, result_folder.json_text(result))
        descriptor = os.open(path.parent / "took.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT | held.NO_LINK, 0o666)
        with os.fdopen(descriptor, "a", encoding="utf-8", newline="\n") as file:
            file.write(json.dumps({"key": key, "seconds": round(took_s, 3)}) + "\n")

    def _path(self, study: str, key: str) -> Path:
        return self.folder / study / f"{key}.json"

    def _earlier(self, study: str, key: str, inputs: str) -> Path:
        return self.folder / study / "earlier" / f"{key}.{inputs[:16]}.json"

    def took_s(self, study: str, keys: set[str]) -> float:
        """Processor seconds that the newest results of these points took."""
        newest: dict[str, float] = {}
        try:
            for line in (self.folder / study / "took.jsonl").read_text(encoding="utf-8").splitlines():
                record = json.loads(line)
                newest[record["key"]] = record["seconds"]
        except (OSError, ValueError, KeyError, RecursionError):
            pass
        return sum(s for key, s in newest.items() if key in keys)


def _read(path: Path, inputs: str | None = None) -> dict[str, Any] | None:
    """A kept result; None where there is none, or one of other inputs."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(kept, dict) or not isinstance(kept.get("inputs"), str):
        return None
    return kept if inputs is None or kept["inputs"] == inputs else None
