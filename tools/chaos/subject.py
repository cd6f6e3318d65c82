"""What faults happen to: a command of Fairlane's, with everything that it started."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from enum import Enum
from pathlib import Path

from fairlane.fabrics import leftovers

ROOT = Path(__file__).resolve().parents[2]
STUDY = """title = "chaos"
bottleneck = "s1->s2"
duration_s = 10
seeds = [1, 2, 3]
[topology]
kind = "dumbbell"
pairs = 2
bottleneck = { rate_bps = "= rate_bps", delay_s = 0.01, queue_packets = 50 }
access = { rate_bps = 1e8, delay_s = 0.0, queue_packets = 1000 }
[[flows]]
name = "rap"
kind = "rap"
count = 2
[sweep]
rate_bps = [1e6, 2e6]
"""


class Place(Enum):
    """Where faults strike."""

    VIRTUAL = "virtual"
    LIVE = "live"
    STUDY = "study"
    MININET = "mininet"
    BMV2 = "bmv2"


class Subject:
    """A process of the command line, whose output can be read along."""

    def __init__(self, place: Place, folder: Path, grpc_port: int, arguments: tuple[str, ...], limits: str) -> None:
        self.place, self.folder, self.grpc_port = place, folder, grpc_port
        self.out, self._log = folder / "out", folder.parent / f"{folder.name}.log"
        command = [sys.executable, "-m", "fairlane", *self._words(), *arguments]
        if limits:
            command = ["bash", "-c", f'ulimit {limits} && exec "$@"', "limited", *command]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=ROOT, start_new_session=True)
        self.pid = self._process.pid

    def _words(self) -> list[str]:
        if self.place is Place.STUDY:
            file = self.folder / "chaos.toml"
            file.write_text(STUDY)
            return ["sweep", str(file), "--out", str(self.out), "--workers", "2"]
        if self.on_mininet:
            target = "bmv2" if self.place is Place.BMV2 else "embedded"
            where = ["--fabric", "mininet", "--target", target, "--duration", "7", "--grpc-port", str(self.grpc_port), "--no-rtt-check"]
        else:
            where = ["--duration", "20", *(["--live", "--live-speed", "10"] if self.place is Place.LIVE else [])]
        return ["run", "als-3", "--out", str(self.out), *where]

    @property
    def on_mininet(self) -> bool:
        return self.place in (Place.MININET, Place.BMV2)

    def printed(self) -> str:
        return self._log.read_text(errors="replace")

    def is_up(self) -> bool:
        """Whether it is where faults shall find it: flows send, points are computed."""
        if self.on_mininet:
            return re.search(r"^ +[1-9]\d*/\d+ s ", self.printed(), re.MULTILINE) is not None
        if self.place is Place.LIVE:
            return "live view: http" in self.printed()
        return len(self.printed()) > 0

    def wait_until_up(self, seconds: float = 60.0) -> bool:
        end = time.monotonic() + seconds
        while time.monotonic() < end and self._process.poll() is None:
            if self.is_up():
                return True
            time.sleep(0.05)
        return False

    def children(self, pattern: str) -> list[int]:
        """Processes of the run's own record, whose command lines match. LookupError: there is none."""
        record = next((r for r in leftovers.records() if r.owner.pid == self.pid), None)
        found = [c.pid for c in record.children if c.alive() and re.search(pattern, _command(c.pid))] if record else []
        if not found:
            raise LookupError(f"no process with {pattern!r}")
        return found

    def descendants(self, pattern: str) -> list[int]:
        """Processes below it, whose command lines match."""
        found, todo = [], [self.pid]
        while todo:
            parent = todo.pop()
            with contextlib.suppress(OSError):
                for task in Path(f"/proc/{parent}/task").iterdir():
                    todo += (below := [int(pid) for pid in (task / "children").read_text().split()])
                    found += [pid for pid in below if re.search(pattern, _command(pid))]
        return found

    def interfaces(self) -> list[str]:
        record = next((r for r in leftovers.records() if r.owner.pid == self.pid), None)
        names = leftovers.interfaces(record.prefix) if record else []
        if not names:
            raise LookupError("no interface")
        return names

    def signal(self, pid: int, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)

    def wait(self, seconds: float) -> int | None:
        """The exit code; None when it hangs, after which it is ended."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(self.pid, signal.SIGKILL)
            self._process.wait()
            return None

    def end(self) -> None:
        """What is left of it goes, in order where it can."""
        if self._process.poll() is None:
            self._process.terminate()
            self.wait(20.0)

    def session(self) -> list[int]:
        """Processes of its session that are left."""
        found = []
        for path in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError, ValueError, IndexError):
                fields = path.read_text().rpartition(")")[2].split()
                if int(fields[3]) == self.pid and fields[0] != "Z":
                    found.append(int(path.parent.name))
        return found


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""
