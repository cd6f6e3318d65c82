"""The limit of open files (ulimit -n): raises the soft limit to the number that a run needs, or refuses the run before it starts."""

from __future__ import annotations

import os
import sys

from fairlane.errors import CANNOT_RUN_HERE, Refusal

_SPARE = 64
"""Beside those that a run names: the console, results, and what libraries open for a moment."""


def provide(count: int, what: str) -> None:
    """Allow `count` more open files than there are now. Refusal when the hard limit is lower. what: the files, for the message."""
    if sys.platform in ("emscripten", "win32"):  # no such limit
        return
    import resource

    needed = count + _open_now() + _SPARE
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or needed <= soft:
        return
    if hard != resource.RLIM_INFINITY and needed > hard:
        raise Refusal(
            f"this run holds {needed:,} files open at once ({what}), and this process may open {hard:,}: raise the hard limit, as root with"
            f" 'ulimit -Hn {needed}' in the shell that starts the run.",
            CANNOT_RUN_HERE,
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def _open_now() -> int:
    try:
        return len(os.listdir("/proc/self/fd"))
    except OSError:
        return 0
