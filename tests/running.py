"""`fairlane run als-3` as a user starts it, in the tests of runs for real."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from fairlane.fabrics import leftovers

ROOT = Path(__file__).resolve().parent.parent


class Run:
    """A run with its output to read along. grpc_port: not 9559, since a run of someone else may be under way."""

    def __init__(self, folder: Path, target: str, grpc_port: int, *arguments: str) -> None:
        self.out = folder / "out"
        self.log = folder / "printed"
        command = [
            sys.executable,
            "-m",
            "fairlane",
            "run",
            "als-3",
            "--fabric",
            "mininet",
            "--target",
            target,
            "--grpc-port",
            str(grpc_port),
            "--out",
            str(self.out),
            *arguments,
        ]
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                command, stdout=output, stderr=subprocess.STDOUT, cwd=ROOT, start_new_session=True, env={**os.environ, "COLUMNS": "160"}
            )

    def printed(self) -> str:
        return self.log.read_text()

    def wait_for(self, holds: Callable[[str], object], timeout_s: float = 60.0) -> None:
        deadline = time.monotonic() + timeout_s
        while not holds(self.printed()):
            assert self.process.poll() is None, self.printed()
            assert time.monotonic() < deadline, self.printed()
            time.sleep(0.05)

    def record(self) -> leftovers.RunRecord:
        return next(r for r in leftovers.records() if r.owner.pid == self.process.pid)

    def child(self, pattern: str) -> int:
        """The process of this run whose command line has `pattern`."""
        for child in self.record().children:
            command = Path(f"/proc/{child.pid}/cmdline")
            if child.alive() and re.search(pattern, command.read_text().replace("\0", " ")):
                return child.pid
        raise AssertionError(f"no child with {pattern}")


def flows_are_up(text: str) -> bool:
    return re.search(r"^ +[1-9]\d*/\d+ s ", text, re.MULTILINE) is not None


@contextmanager
def runs(folder: Path, target: str, grpc_port: int) -> Iterator[Callable[..., Run]]:
    """Starts runs; those that are left at the end are killed, and their leftovers removed."""
    started: list[Run] = []

    def begin(*arguments: str) -> Run:
        started.append(Run(folder, target, grpc_port, *arguments))
        return started[-1]

    yield begin
    for run in started:
        if run.process.poll() is None:
            run.process.kill()
            run.process.wait()
    leftovers.clean()
