"""Signals that end a run in order."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator

from fairlane.errors import Interrupted


@contextlib.contextmanager
def interruptible(numbers: tuple[int, ...] = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)) -> Iterator[None]:
    """Turns these signals into `Interrupted`; further ones while cleaning up are ignored."""

    def interrupt(number: int, frame: object) -> None:
        for n in numbers:
            signal.signal(n, signal.SIG_IGN)
        raise Interrupted(signal.Signals(number).name)

    before = {n: signal.signal(n, interrupt) for n in numbers}
    try:
        yield
    finally:
        for n, handler in before.items():
            signal.signal(n, handler)
