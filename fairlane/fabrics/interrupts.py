"""Signals that end a run with its cleanup."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator

from fairlane.errors import Interrupted

ENDING = (signal.SIGTERM, *(() if sys.platform == "win32" else (signal.SIGHUP,)))
"""The signals, beside Ctrl-C's, by which others end a process."""


@contextlib.contextmanager
def interruptible(numbers: tuple[int, ...] = (signal.SIGINT, *ENDING)) -> Iterator[None]:
    """Turns these signals into `Interrupted`; further ones while cleaning up are ignored. Without SIGINT among them, Ctrl-C is
    Python's KeyboardInterrupt, as a prompt expects it."""

    def interrupt(number: int, frame: object) -> None:
        for n in numbers:
            signal.signal(n, signal.SIG_IGN)
        raise Interrupted(signal.Signals(number).name)

    before = {n: signal.signal(n, interrupt) for n in numbers}
    if signal.SIGINT not in before:
        before[signal.SIGINT] = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        for n, handler in before.items():
            signal.signal(n, handler)


@contextlib.contextmanager
def later(numbers: tuple[int, ...] = (signal.SIGINT, *ENDING)) -> Iterator[None]:
    """These signals come when the block ends: what it makes is known by then to whoever cleans up."""
    if threading.current_thread() is not threading.main_thread():  # signals come to the main thread
        yield
        return
    came: list[int] = []
    before = {n: signal.signal(n, lambda number, _: came.append(number)) for n in numbers}
    try:
        yield
    finally:
        for n, handler in before.items():
            signal.signal(n, handler)
        if came:
            signal.raise_signal(came[0])


@contextlib.contextmanager
def held() -> Iterator[None]:
    """Ctrl-C comes to this process when the block ends, and never to the processes that it starts: their parent ends them. On Windows
    they get it, too."""
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
