"""Child processes that never outlive their run.

The kernel kills each child when the thread that started it ends for any reason, so start children
from the main thread. Each child leads its own session: Ctrl-C reaches only the run, which then ends its children.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Identity:
    """A process that cannot be mistaken for a later one of the same number: its start time comes along (clock ticks)."""

    pid: int
    started: int

    @staticmethod
    def of(pid: int) -> Identity | None:
        """None when there is no such process, or only its remains."""
        try:
            text = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return None
        # The command's name, in parentheses, may hold spaces and parentheses.
        fields = text.rpartition(")")[2].split()
        return None if fields[0] in "ZX" else Identity(pid, int(fields[19]))

    def alive(self) -> bool:
        return Identity.of(self.pid) == self

    def kill(self, number: int) -> None:
        if self.alive():
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                pass

    def session(self) -> list[Identity]:
        """The processes of the session that this process leads, or led: its number stays taken while one of them lives. None if another process has
        the number now."""
        members: list[Identity] = []
        if Identity.of(self.pid) not in (self, None):
            return members
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                identity = Identity.of(int(entry.name))
                if identity is not None and identity.started >= self.started and _session_of(identity.pid) == self.pid:
                    members.append(identity)
        return members


def _session_of(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return None


def _waited_s(pid: int) -> float:
    total = 0
    for path in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        try:
            total += int(path.read_text().split()[1])
        except (OSError, ValueError, IndexError):
            continue
    return total / 1e9


def _children(pid: int) -> list[int]:
    """Of all generations."""
    found = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            direct = [int(child) for child in path.read_text().split()]
        except OSError:
            continue
        for child in direct:
            found += [child, *_children(child)]
    return found


class Process:
    """A running child process. `name` is for messages, `log` contains its output."""

    def __init__(self, name: str, argv: Sequence[str], log: Path, popen: subprocess.Popen[bytes]) -> None:
        self.name = name
        self.argv = tuple(argv)
        self.log = log
        self.pid = popen.pid
        self._popen = popen

    def exit_code(self) -> int | None:
        """None while it runs; negative: killed by that signal."""
        return self._popen.poll()

    def signal(self, number: int) -> None:
        """To it and all that it started."""
        if self.exit_code() is None:
            try:
                os.killpg(self.pid, number)
            except ProcessLookupError:
                pass

    def wait(self, timeout_s: float) -> int | None:
        try:
            return self._popen.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def leads(self, pid: int) -> bool:
        """Whether `pid` is it, or was started by it."""
        return _session_of(pid) == self.pid

    def waited_s(self) -> float:
        """How long it and its children were ready and had no processor so far, in seconds; 0 where the kernel does not say
        (/proc/PID/schedstat, of each thread)."""
        return sum(map(_waited_s, [self.pid, *_children(self.pid)]))

    def last_words(self, lines: int = 3) -> str:
        """The end of its output."""
        try:
            text = self.log.read_text(errors="replace").strip().splitlines()
        except OSError:
            return ""
        return "\n".join(text[-lines:])

    def how_it_ended(self) -> str:
        code = self.exit_code()
        if code is None:
            return "is running"
        if code < 0:
            return f"was killed by {signal.Signals(-code).name}"
        return f"ended with code {code}"


def spawn(
    name: str, argv: Sequence[str], log: Path, *, namespace_pid: int | None = None, with_children: bool = False, cwd: Path | None = None
) -> Process:
    """Start a child; its output is appended to `log`. namespace_pid: a process in whose network namespace it must run.
    with_children: it starts its own processes, which must die with it even when it is killed."""
    if with_children:
        # A process namespace ends with its first process. Only that process gets the signal at our death: the setting is not inherited.
        argv = ["unshare", "--pid", "--fork", "--kill-child", *argv]
    if namespace_pid is not None:
        argv = ["mnexec", "-a", str(namespace_pid), *argv]
    parent = os.getpid()

    def die_with_parent() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)

    with log.open("ab") as output:
        popen = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=die_with_parent,
            cwd=cwd,
        )
    return Process(name, argv, log, popen)


def stop_all(processes: Iterable[Process], grace_s: float = 3.0) -> None:
    """Ask them to end, and after `grace_s` make them."""
    processes = list(processes)
    for process in processes:
        process.signal(signal.SIGTERM)
    deadline = time.monotonic() + grace_s
    for process in processes:
        if process.wait(max(0.0, deadline - time.monotonic())) is None:
            process.signal(signal.SIGKILL)
            process.wait(1.0)
