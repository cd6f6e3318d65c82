"""Results of points, kept so that a pass that was stopped goes on where it was.

    POINTS/als-3/seed=1.json            what one run gave; written whole or not at all
    POINTS/als-3/took.jsonl             how long each took, apart, so that the results are the same on any machine

A point's file names the digest of all that it depends on: the experiment with its values worked out, and the program's own
sources. One made from anything else is not taken again.
"""

from __future__ import annotations

import hashlib
import json
import os
from functools import cache
from pathlib import Path
from typing import Any

from fairlane import probes, results

_SOURCES = ("controller", "experiments", "fairlane", "hosts", "p4src", "topologies")


@cache
def program_digest() -> str:
    """Of everything that decides what a run gives: Python and P4 sources, and the module of the virtual network."""
    import fairlane_virtual

    digest = hashlib.sha256()
    for folder in _SOURCES:
        for path in sorted((probes.ROOT / folder).rglob("*")):
            # The report and the files of the experiments themselves change no run.
            if path.suffix in (".py", ".p4") and "paper" not in path.relative_to(probes.ROOT).parts[:2]:
                digest.update(str(path.relative_to(probes.ROOT)).encode() + b"\0" + path.read_bytes() + b"\0")
    digest.update((probes.ROOT / "fairlane" / "paper" / "measures.py").read_bytes())
    folder = Path(fairlane_virtual.__file__).parent
    for path in sorted(folder.rglob("*.so")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


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
        results.write_json(unfinished, result)
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
