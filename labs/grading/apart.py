"""Where an answer runs: in a process of its own, behind a wall where the machine has one, and never among the grader's secrets.

With bubblewrap (`apt install bubblewrap`) the process has namespaces of its own: another user without rights, no network, no other processes, a read-only system without the
grader, the solutions and other answers, and a scratch folder of 16 MB that vanishes with it. Everywhere on Linux a filter of system calls and the kernel's limits hold besides
(`confine`). Without bubblewrap an answer can read the files that its user can read: `protection` says so.
"""

from __future__ import annotations

import functools
import os
import select
import shutil
import signal
import stat
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

from fairlane import probes
from fairlane.labs.grading import confine, wire, worker

MEMORY_BYTES = 1 << 30
_SCRATCH_BYTES = 16_000_000
_PATIENCE_S = 6.0
"""How long an answer may wait without calculating, by the clock. A busy machine makes nobody late."""
_MOST_S = 60
"""Seconds by the clock for each of processor time, after which it is late in any case."""
_ENDED_BY_FILTER = (-31, 159, 31)
"""Exit codes of a process that a refused system call has ended, as Linux and bubblewrap give them."""


class Ended(Exception):
    """The answer's process is gone. code: its exit code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Late(Exception):
    """The answer's process did not answer in time."""


class Served(Protocol):
    """What answers requests about an answer."""

    def ask(self, request: dict[str, Any], draw: Callable[[], float]) -> dict[str, Any]: ...

    def memory(self) -> int | None: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Limits:
    """cpu_s: of processor time. output, stacks: where prints go, and the place of a loop without end."""

    cpu_s: float
    output: IO[Any] | None = None
    stacks: IO[Any] | None = None


@functools.cache
def bubblewrap() -> str | None:
    """Its path, where it is installed and works for this user."""
    found = shutil.which("bwrap") if sys.platform == "linux" else None
    if found is None or os.environ.get("FAIRLANE_LABS_WALL") == "none":
        return None
    trial = [found, "--unshare-all", "--size", "1000000", "--tmpfs", "/tmp", *_system(), "--remount-ro", "/", "--", "/usr/bin/env", "true"]
    done = subprocess.run(trial, capture_output=True, check=False, timeout=20)
    return found if done.returncode == 0 else None


def protection() -> str:
    """What keeps answers from doing harm on this machine, and what does not: one sentence; "" where everything does."""
    system: str = sys.platform
    if system in ("emscripten", "win32"):
        return "answers run in the grader's own process here: points are practice, and no proof"
    if bubblewrap() is not None:
        return ""
    if system == "linux":
        return (
            "bubblewrap is not installed or does not work here, so an answer can read the files that you can read, "
            "solutions and other answers among them: apt install bubblewrap"
        )
    return "on this system an answer is limited in time, and in nothing else: grade in a Linux container"


def start(folder: Path, given: Path, limits: Limits) -> Served:
    """A process for the answer in a folder. given: the folder of `given.place`."""
    return Here(folder) if sys.platform in ("emscripten", "win32") else Apart(folder, given, limits)


class Here:
    """In this process: of a page, which belongs to the student anyway."""

    def __init__(self, folder: Path) -> None:
        self._draw: Callable[[], float] = lambda: 0.5
        self._server = worker.Server(folder, lambda: self._draw())

    def ask(self, request: dict[str, Any], draw: Callable[[], float]) -> dict[str, Any]:
        """The reply, which has been through the same messages."""
        self._draw = draw
        return dict(wire.unframed(_reader(wire.framed(self._server.answer(wire.unframed(_reader(wire.framed(request))))))))

    def memory(self) -> int | None:
        """Not of an answer alone."""
        return None

    def close(self) -> None:
        """Nothing is open."""


def _reader(message: bytes) -> Callable[[int], bytes]:
    left = [message]

    def read(count: int) -> bytes:
        part, left[0] = left[0][:count], left[0][count:]
        return part

    return read


class Apart:
    """A process of its own."""

    def __init__(self, folder: Path, given: Path, limits: Limits) -> None:
        asked, self._to = os.pipe()
        self._from, told = os.pipe()
        stacks = limits.stacks.fileno() if limits.stacks is not None else os.open(os.devnull, os.O_WRONLY)
        output = limits.output.fileno() if limits.output is not None else subprocess.DEVNULL
        self._until = time.monotonic() + _MOST_S * limits.cpu_s
        wall = bubblewrap()
        script, place = ("/given/worker.py", "/answer") if wall else (str(given / "worker.py"), str(folder))
        command = [os.path.realpath(sys.executable), "-I", "-S", "-B", script, place]
        command += [*map(str, (asked, told, stacks, limits.cpu_s, MEMORY_BYTES)), "1" if wall else "0"]
        if wall:
            command = [wall, *_walls(folder, given), "--", *command]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=(asked, told, stacks),
            env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "PYTHONHASHSEED": "0"},
            start_new_session=True,
            preexec_fn=_with_parent,
        )
        for fd in (asked, told, *((stacks,) if limits.stacks is None else ())):
            os.close(fd)

    def ask(self, request: dict[str, Any], draw: Callable[[], float]) -> dict[str, Any]:
        """The reply. Ended, Late, wire.WireError: there is none."""
        self._send(request)
        while True:
            reply = wire.unframed(self._read)
            if not isinstance(reply, dict):
                raise wire.WireError("a message that is no reply")
            if "draw" not in reply:
                return reply
            self._send({"value": draw()})

    def memory(self) -> int | None:
        """Bytes in use, as the kernel counts them; None where it does not say."""
        try:
            return int(self._seen("statm")[1]) * os.sysconf("SC_PAGE_SIZE")
        except (OSError, IndexError, ValueError):
            return None

    def _seen(self, what: str) -> list[str]:
        """A line of the kernel about the answer's process, behind those of bubblewrap. OSError where there is none."""
        return Path("/proc", self._pid(), what).read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()

    def _pid(self) -> str:
        pid = str(self._process.pid)
        while inner := Path("/proc", pid, "task", pid, "children").read_text(encoding="ascii").split():
            pid = inner[-1]
        return pid

    def _await(self) -> None:
        """Until there is something to read. Late: the answer waits for something itself, or takes far too long."""
        calculated, since = [""], time.monotonic()
        while not select.select([self._from], [], [], 0.5)[0]:
            now = time.monotonic()
            try:
                state, *fields = self._seen("stat")
                at_work = state in "RD" or fields[10:12] != calculated
                calculated = fields[10:12]
            except (OSError, ValueError):
                at_work = False
            since = now if at_work else since
            if now > self._until or now - since > _PATIENCE_S:
                self._ask_place()
                raise Late

    def _ask_place(self) -> None:
        """The answer's process writes where it is."""
        try:
            os.kill(int(self._pid()), signal.SIGUSR1)
            time.sleep(0.2)
        except OSError:
            pass

    def _send(self, message: dict[str, Any]) -> None:
        try:
            body = wire.framed(message)
            while body:
                if not select.select([], [self._to], [], _PATIENCE_S + max(0.0, self._until - time.monotonic()) / 10)[1]:
                    raise Late
                body = body[os.write(self._to, body[:4096]) :]
        except BrokenPipeError:
            raise Ended(self._wait()) from None

    def _read(self, count: int) -> bytes:
        found = b""
        while len(found) < count:
            self._await()
            part = os.read(self._from, min(count - len(found), 1 << 16))
            if not part:
                raise Ended(self._wait())
            found += part
        return found

    def _wait(self) -> int:
        try:
            return self._process.wait(5)
        except subprocess.TimeoutExpired:  # it has closed its end and goes on
            self._process.kill()
            return self._process.wait()

    def close(self) -> None:
        """End the process, and with it whatever it has started."""
        for fd in (self._to, self._from):
            os.close(fd)
        try:
            self._process.wait(0.5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def refused(code: int) -> bool:
    """Whether an exit code says that a refused system call has ended the process."""
    return code in _ENDED_BY_FILTER


def _with_parent() -> None:
    """The process ends when the grader does."""
    if sys.platform == "linux":
        _PRCTL(1, 9, 0, 0, 0)  # PR_SET_PDEATHSIG, SIGKILL


if sys.platform == "linux":
    import ctypes

    _PRCTL = ctypes.CDLL(None).prctl


def _walls(folder: Path, given: Path) -> list[str]:
    """bubblewrap's options for an answer."""
    options = ["--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--uid", "65534", "--gid", "65534"]
    options += ["--hostname", "answer", "--clearenv", "--setenv", "LANG", "C.UTF-8", "--setenv", "PYTHONHASHSEED", "0"]
    options += [*_system(), "--ro-bind", str(folder), "/answer", "--ro-bind", str(given), "/given"]
    return [*options, "--size", str(_SCRATCH_BYTES), "--tmpfs", "/tmp", "--remount-ro", "/", "--chdir", "/tmp"]


@functools.cache
def _system() -> tuple[str, ...]:
    """Options that show the system and Python, read-only, and neither Fairlane nor other packages."""
    options: list[str] = ["--ro-bind", "/usr", "/usr"]
    shown = [Path("/usr")]
    for name in ("bin", "lib", "lib32", "lib64", "libx32"):
        path = Path("/", name)
        if path.is_symlink():
            options += ["--symlink", os.readlink(path), str(path)]
        elif path.is_dir():
            options += ["--ro-bind", str(path), str(path)]
            shown.append(path)
    options += ["--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache"]
    python = Path(os.path.realpath(sys.executable)).parent.parent
    for path in dict.fromkeys((python, Path(os.path.realpath(sys.base_prefix)))):
        if not any(path.is_relative_to(one) for one in shown):
            options += ["--ro-bind", str(path), str(path)]
            shown.append(path)
    for path in _hidden(python):
        if any(path.is_relative_to(one) for one in shown):
            options += ["--size", "65536", "--tmpfs", str(path), "--remount-ro", str(path)]
    return tuple(options)


def _hidden(python: Path) -> list[Path]:
    """Folders of packages: Fairlane with its grader may be among them."""
    found = {Path(sysconfig.get_path(name)) for name in ("purelib", "platlib")}
    found |= {probes.PACKAGE.resolve(), probes.ROOT.resolve()}
    for root in {Path("/usr"), Path("/usr/local"), python}:
        for pattern in ("lib*/python*/site-packages", "lib*/python*/dist-packages"):
            found |= set(root.glob(pattern))
    whole = sorted(path for path in found if path.is_dir() and len(path.parts) > 2)
    return [path for path in whole if not any(path != other and path.is_relative_to(other) for other in whole)]


def limit_grader(cpu_s: float) -> None:
    """Of a process that runs a check: an answer cannot make the grader itself compute or grow without end."""
    import resource

    seconds = int(cpu_s) + 1
    for what, most in ((resource.RLIMIT_CPU, seconds), (resource.RLIMIT_DATA, 4 << 30), (resource.RLIMIT_FSIZE, 64 * confine.FILE_BYTES)):
        try:
            resource.setrlimit(what, (most, most))
        except (ValueError, OSError):
            pass


def only(names: Sequence[str], folder: Path, target: Path, most_bytes: int = 256_000) -> list[str]:
    """Copy an answer's files, and nothing else, into a new folder; what was strange. A link, a device or a pipe is no answer, and neither is a file that is too long."""
    target.mkdir(parents=True)
    strange = []
    for name in names:
        path = folder / name
        if not path.is_symlink() and not path.exists():
            continue
        try:
            fd = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        except OSError as error:
            strange.append(f"{name}: {'is a link, and not a file' if path.is_symlink() else error.strerror}")
            continue
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            strange.append(f"{name}: is no file")
            continue
        with os.fdopen(fd, "rb") as file:
            content = file.read(most_bytes + 1)
        if len(content) > most_bytes:
            strange.append(f"{name}: is longer than {most_bytes} bytes")
            continue
        (target / name).write_bytes(content)
    return strange
