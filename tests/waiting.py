"""Waiting for what happens in real time: for a condition with a generous limit, never for a time in which it ought to happen."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
LIMIT_S = 60.0


def until(holds: Callable[[], T], limit_s: float = LIMIT_S, what: str = "it") -> T:
    """What `holds` returns once that is true. AssertionError when the limit is over."""
    end_s = time.monotonic() + limit_s
    while not (found := holds()):
        assert time.monotonic() < end_s, f"{what} did not happen within {limit_s:g} s"
        time.sleep(0.02)
    return found
