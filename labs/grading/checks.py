"""Checks: a lab's requirements for an answer, and their points."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fairlane.labs.grading.answer import Answer

DEFAULT_LIMIT_S = 2.0
"""For functions and single packets, which take some hundredths of it."""
NETWORK_S = 10.0
"""For checks that run a network in virtual time, which take up to a second."""


@dataclass(frozen=True)
class Check:
    """function: called with the answer, in a process of its own. limit_s: seconds of processor time until it counts as an
    endless loop."""

    points: int
    title: str
    function: Callable[[Answer], None]
    limit_s: float = DEFAULT_LIMIT_S


def check(points: int, title: str, limit_s: float = DEFAULT_LIMIT_S) -> Callable[[Callable[[Answer], None]], Check]:
    """Make a `Check` of a function. points: above 0."""
    if points <= 0:
        raise ValueError(f"{title}: a check is worth at least a point")
    return lambda function: Check(points, title, function, limit_s)
