"""Folders that belong to a running process, so that other processes recognise an abandoned folder.

The process holds a lock (flock(2)) on the file `LOCK` in its folder. The kernel releases the lock when the process ends for any reason, and
shows it in every process namespace; a process number is valid only in its own namespace. Some network file systems show a lock only on
its own machine. So the file contains the machine's boot id, and folders of other boots are not touched. Neither are folders where locking
fails.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from fairlane.fabrics.interrupts import later

if sys.platform not in ("emscripten", "win32"):
    import fcntl

LOCK = ".fairlane-holds"
NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
"""For os.open: a link is not followed, and child processes do not inherit the file. Windows has neither."""


class Held:
    """A folder that this process has made and holds. path: where it is now."""

    def __init__(self, path: Path, lock: int | None) -> None:
        self.path = path
        self._lock = lock
        _HELD[self] = os.getpid()

    @staticmethod
    def make(path: Path) -> Held:
        """A new folder, which goes with the process unless it is kept. FileExistsError: there is one of this name, and it is not abandoned; OSError as
        of mkdir."""
        while True:
            try:
                with later():
                    path.mkdir()
                    lock, ours = _locked(path)
                    if ours:
                        return Held(path, lock)
            except FileExistsError:
                if not remove(path):
                    raise

    def keep(self) -> None:
        """From now on nobody takes the folder for abandoned."""
        with contextlib.suppress(OSError):
            (self.path / LOCK).unlink(missing_ok=True)
        self._let_go()

    def discard(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        self._let_go()

    def _let_go(self) -> None:
        _HELD.pop(self, None)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


_HELD: dict[Held, int] = {}
"""Those that are neither kept nor discarded: the process that made each."""


@atexit.register
def _discard() -> None:
    """An interrupt may have come before the code that would have discarded a folder had its name."""
    for held, process in list(_HELD.items()):
        if process == os.getpid():
            held.discard()


def _locked(folder: Path) -> tuple[int | None, bool]:
    """The lock of a folder that was made this instant, None where locks cannot be had; and whether the folder is still ours: before the lock
    is taken, it looks abandoned."""
    path = folder / LOCK
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | NO_LINK, 0o600)
    except FileNotFoundError:
        return None, False
    try:
        _lock(descriptor)
    except BlockingIOError:
        os.close(descriptor)
        return None, False
    except OSError:
        os.close(descriptor)
        path.unlink(missing_ok=True)
        return None, True
    if _is(path, descriptor):
        os.write(descriptor, _boot())
        return descriptor, True
    os.close(descriptor)
    return None, False


def _is(path: Path, descriptor: int) -> bool:
    """Whether an open file is the regular file that has this name now."""
    try:
        now = path.lstat()
    except OSError:
        return False
    return stat.S_ISREG(now.st_mode) and os.path.samestat(now, os.fstat(descriptor))


def _lock(descriptor: int) -> None:
    """BlockingIOError: another process has it. OSError: this file system has no locks."""
    if sys.platform in ("emscripten", "win32"):  # on Windows no folder with an open file can be renamed
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextlib.contextmanager
def abandoned(folder: Path) -> Iterator[bool]:
    """Whether a folder was made by a process of ours (same user) that is gone. Meanwhile no other process takes it for abandoned, too."""
    if not _own(folder):
        yield False
        return
    try:
        # A folder may hold a pipe of this name, which would wait for its other end.
        descriptor = os.open(folder / LOCK, os.O_RDWR | getattr(os, "O_NONBLOCK", 0) | NO_LINK)
    except OSError:
        yield False
        return
    try:
        try:
            _lock(descriptor)
            # Who had the lock may have kept the folder, or made a new one, since we opened the file.
            dead = _is(folder / LOCK, descriptor) and os.read(descriptor, 1 << 10) == _boot() != b""
        except OSError:
            dead = False
        yield dead
    finally:
        os.close(descriptor)


def _boot() -> bytes:
    """Tells this start of this machine from all others; empty where it cannot be known."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_bytes()
    except OSError:
        return b""


def _own(folder: Path) -> bool:
    try:
        about = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(about.st_mode) and (sys.platform == "win32" or about.st_uid == os.geteuid())


def remove(folder: Path) -> bool:
    """Remove a folder if it is abandoned, or empty: its process may have ended before it took the lock. Whether it is gone."""
    with abandoned(folder) as dead:
        if dead:
            _empty(folder)
    if _own(folder):
        with contextlib.suppress(OSError):
            folder.rmdir()
    return not os.path.lexists(folder)


def _empty(folder: Path) -> None:
    """The lock's file goes last: without it nobody would finish what we leave."""
    for entry in os.scandir(folder):
        if entry.name == LOCK:
            continue
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path, ignore_errors=True)
        else:
            Path(entry.path).unlink(missing_ok=True)
    (folder / LOCK).unlink(missing_ok=True)


@contextlib.contextmanager
def scratch(prefix: str) -> Iterator[Path]:
    """A folder for temporary files, removed at the end. Those that killed processes left go first."""
    parent = Path(tempfile.gettempdir())
    for path in parent.glob(f"{prefix}*"):
        remove(path)
    while True:
        made = Path(tempfile.mkdtemp(prefix=prefix))
        lock, ours = _locked(made)
        if ours:
            break
    held = Held(made, lock)
    try:
        yield made
    finally:
        held.discard()
