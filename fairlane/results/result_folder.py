"""Where results go: a folder that appears complete, or not at all."""

from __future__ import annotations

import json
import math
import os
import shutil
import time
from pathlib import Path
from typing import Any

from fairlane.errors import Refusal
from fairlane.fabrics.processes import Identity


class ResultFolder:
    """Work in `work`; `publish` renames it to `final` in one step, `discard` leaves nothing."""

    def __init__(self, final: Path) -> None:
        """Refusal when `final` exists, or its parent cannot be written."""
        self.final = final.absolute()
        if os.path.lexists(self.final):
            raise Refusal(f"--out {final}: exists already, and results are never overwritten. Give another folder, or remove it.")
        self.work = self.final.with_name(f".{self.final.name}.unfinished-{os.getpid()}")
        try:
            self.final.parent.mkdir(parents=True, exist_ok=True)
            self._remove_abandoned()
            self.work.mkdir()
        except OSError as error:
            raise Refusal(f"--out {final}: cannot be written: {error.strerror}") from error

    def _remove_abandoned(self) -> None:
        """What killed runs left half-written."""
        for path in self.final.parent.glob(".*.unfinished-*"):
            pid = path.name.rpartition("-")[2]
            if pid.isdigit() and Identity.of(int(pid)) is None:
                shutil.rmtree(path, ignore_errors=True)

    def publish(self) -> Path:
        if self.final.exists():
            raise Refusal(f"{self.final} appeared during the run; the results stay in {self.work}")
        self.work.rename(self.final)
        return self.final

    def discard(self) -> None:
        shutil.rmtree(self.work, ignore_errors=True)


def default_folder(experiment: str, seed: int) -> Path:
    """results/als-3/20240131-235959-seed1, or with -2, -3, ... where there is one of the same second."""
    first = Path("results") / experiment / f"{time.strftime('%Y%m%d-%H%M%S')}-seed{seed}"
    folder, number = first, 1
    while folder.exists():
        number += 1
        folder = first.with_name(f"{first.name}-{number}")
    return folder


def write_json(path: Path, value: Any) -> None:
    """JSON without NaN or Infinity, which are no JSON: they become null."""
    path.write_text(json_text(value))


def json_text(value: Any) -> str:
    """The text that `write_json` writes."""
    return json.dumps(_finite(value), indent=2) + "\n"


def write_whole(path: Path, content: str | bytes) -> Path:
    """A file that appears complete, or not at all, also if this process is killed or the machine stops."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    with unfinished.open("wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
        file.flush()
        os.fsync(file.fileno())
    return unfinished.rename(path)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(v) for v in value]
    return value
