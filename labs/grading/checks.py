"""Checks: what a lab asks of an answer, and what each is worth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from labs.grading.answer import Answer

DEFAULT_LIMIT_S = 30.0


class Missed(Exception):
    """The answer does not do what a check asks. message: what was seen. hint: what to look at, without the answer. points: what is earned
    all the same."""

    def __init__(self, message: str, hint: str = "", points: float = 0) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.points = points


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
