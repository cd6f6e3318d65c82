"""Reasons to refuse or end a run: one clear sentence each, with the remedy."""

from __future__ import annotations

import errno
import os
import sys

# Exit codes of the command line.
CHECK_FAILED = 1
BAD_INPUT = 2
CANNOT_RUN_HERE = 3
RUN_FAILED = 4
NOT_VALID = 5
"""With --strict: the run's fidelity is `invalid`, so its figures have no meaning."""
NO_SPACE = 6
"""The disk, memory or descriptors of the machine ran out; the records stay."""
FAULT = 70
"""A bug in Fairlane."""


class Refusal(Exception):
    """Nothing was started. `code` is the exit code of the command."""

    def __init__(self, message: str, code: int = BAD_INPUT) -> None:
        super().__init__(message)
        self.code = code


class ProgramRefused(Refusal):
    """A P4 program that does not compile, or has not every name that the controller fills and reads; a control plane or a setting that does not go with the
    program. key: of the experiment's file, at which it is refused."""

    def __init__(self, message: str, key: tuple[str | int, ...] = ("control", "program")) -> None:
        super().__init__(message)
        self.key = key


class RunFailed(Exception):
    """A started run failed; it has been cleaned up. `code` is the exit code of the command."""

    def __init__(self, message: str, code: int = RUN_FAILED) -> None:
        super().__init__(message)
        self.code = code


class Interrupted(BaseException):
    """Ctrl-C, SIGTERM or SIGHUP: clean up and exit. kept: the results that remain. Not an Exception, so that no handler catches it."""

    def __init__(self, signal_name: str, kept: str = "") -> None:
        super().__init__(signal_name)
        self.signal_name = signal_name
        self.kept = kept

    @property
    def code(self) -> int:
        return 130 if self.signal_name == "SIGINT" else 143


class Unfinished(Exception):
    """A run with raw records but without results. cause: the error that prevented them."""

    def __init__(self, message: str, cause: BaseException) -> None:
        super().__init__(message)
        self.code = code_of(cause)


_USED_UP = {
    errno.ENOSPC: "The disk is full.",
    errno.EDQUOT: "The disk quota is used up.",
    errno.EMFILE: "This process may not open more files: raise the limit (ulimit -n).",
    errno.ENFILE: "The system may not open more files.",
    errno.ENOMEM: "The memory is used up.",
    errno.EAGAIN: "No more processes or threads can be started: raise the limit (ulimit -u, ulimit -v).",
}


def _used_up(error: BaseException) -> str:
    """The resource that the machine ran out of, "" for any other error."""
    if isinstance(error, MemoryError):
        return _USED_UP[errno.ENOMEM]
    # If a library finds no memory, its message is the dynamic linker's.
    if isinstance(error, ImportError) and ("failed to map segment" in str(error) or "annot allocate memory" in str(error)):
        return _USED_UP[errno.ENOMEM]
    if isinstance(error, RuntimeError) and "can't start new thread" in str(error):
        return _USED_UP[errno.EAGAIN]
    return _USED_UP.get(error.errno or 0, "") if isinstance(error, OSError) else ""


LEAST_ADDRESS_SPACE_BYTES = 600_000 * 1024
"""With less, libraries (numpy, pandas, OpenBLAS) do not fail but crash; measured with als-3 on two cores."""


def require_address_space() -> None:
    """Refuses a process with a limit (ulimit -v) under which libraries crash. Refusal."""
    if sys.platform == "win32":  # it has no such limit
        return
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < LEAST_ADDRESS_SPACE_BYTES:
        raise Refusal(
            f"ulimit -v leaves {limit // 1024:,} kB of addresses, and Fairlane's libraries crash with less than "
            f"{LEAST_ADDRESS_SPACE_BYTES // 1024:,} kB: raise the limit.",
            NO_SPACE,
        )


def used_up_in(words: str) -> str:
    """The resource that a child process ran out of, by the last lines of its output; "" if they do not name one."""
    told = {"can't start new thread": errno.EAGAIN, "MemoryError": errno.ENOMEM}
    told |= {os.strerror(code): code for code in _USED_UP}
    return next((_USED_UP[code] for said, code in told.items() if said in words), "")


def code_of(error: BaseException) -> int:
    """The exit code for an error that nothing else handles."""
    if isinstance(error, Interrupted):
        return error.code
    return NO_SPACE if _used_up(error) else CANNOT_RUN_HERE if isinstance(error, OSError) else FAULT


def say(error: BaseException) -> str:
    """An error that nothing else handles, in a sentence."""
    if isinstance(error, Interrupted):
        return f"Ended by {error.signal_name}."
    if isinstance(error, OSError):
        where = f" ({error.filename})" if error.filename else ""
        return f"{_used_up(error) or (error.strerror or str(error)) + '.'}{where}"
    return _used_up(error) or f"A bug in Fairlane: {type(error).__name__}: {error}."
