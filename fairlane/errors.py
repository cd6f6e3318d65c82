"""Reasons not to start, or to end, a run: one clear sentence each, with the way out."""

from __future__ import annotations

# Exit codes of the command line.
CHECK_FAILED = 1
BAD_INPUT = 2
CANNOT_RUN_HERE = 3
RUN_FAILED = 4
NOT_VALID = 5
"""With --strict: the run's fidelity is `invalid`, so that its figures say nothing."""
NO_SPACE = 6
"""The disk, memory or descriptors of the machine ran out; what was recorded stays."""
FAULT = 70
"""A fault of Fairlane's own."""


class Refusal(Exception):
    """Nothing was started. `code` is the exit code of the command."""

    def __init__(self, message: str, code: int = BAD_INPUT) -> None:
        super().__init__(message)
        self.code = code


class RunFailed(Exception):
    """A run was under way and had to end; it has been cleaned up."""


class Interrupted(BaseException):
    """Ctrl-C, SIGTERM or SIGHUP: clean up and go. Not an Exception, so that nothing swallows it."""

    def __init__(self, signal_name: str) -> None:
        super().__init__(signal_name)
        self.signal_name = signal_name
