"""The exception of a check that an answer does not pass."""

from __future__ import annotations


class Missed(Exception):
    """The answer does not pass a check. message: what was seen. hint: what to look at, without the answer. points: what is earned
    all the same."""

    def __init__(self, message: str, hint: str = "", points: float = 0) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.points = points
