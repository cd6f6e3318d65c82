"""The exceptions of a check that an answer does not pass."""

from __future__ import annotations


class Missed(Exception):
    """The answer does not pass a check. message: what was seen. hint: what to look at, without the answer. points: what is earned
    all the same."""

    def __init__(self, message: str, hint: str = "", points: float = 0) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.points = points


class Raised(Missed):
    """The answer's own code has raised an exception. kind: its type's name. text: its own."""

    def __init__(self, message: str, hint: str, kind: str, text: str) -> None:
        super().__init__(message, hint)
        self.kind = kind
        self.text = text


class Tried(Missed):
    """The answer has done what no honest answer does. what: for the teacher, one line."""

    def __init__(self, what: str, hint: str = "take it out: an answer needs nothing of the kind") -> None:
        super().__init__(what, hint)
        self.what = what
