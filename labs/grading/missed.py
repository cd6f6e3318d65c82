"""What a check raises when an answer does not do what it asks."""

from __future__ import annotations


class Missed(Exception):
    """The answer does not do what a check asks. message: what was seen. hint: what to look at, without the answer. points: what is earned
    all the same."""

    def __init__(self, message: str, hint: str = "", points: float = 0) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.points = points
