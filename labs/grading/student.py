"""What the grader has of an answer's Python: functions and objects that stand for the answer's, in whose process the code runs (`apart`).

What comes back is data. The checks look at it here, where the answer reaches nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, get_args

from fairlane.hosts.algorithms import base
from fairlane.labs.grading import wire
from fairlane.labs.grading.apart import Served
from fairlane.labs.grading.missed import Missed, Raised, Tried

_KNOWN: dict[str, Callable[..., Any]] = {
    kind.__name__: kind for kind in {*get_args(base.SenderAction), *get_args(base.ReceiverAction), base.Layer, base.Interests}
}
_KNOWN |= {"AckDetail": lambda name: base.AckDetail[name], "Ecn": lambda name: base.Ecn[name]}


class Student:
    """The answer's process, by requests."""

    def __init__(self, served: Served) -> None:
        self._served = served

    def ask(self, do: str, *values: Any, draw: Callable[[], float] = lambda: 0.5) -> tuple[Any, int]:
        """What came back, and the line of the answer that it was returned from; 0 when none. Missed: the code raised, or sent no data."""
        try:
            reply = self._served.ask({"do": do, "with": values}, draw)
            if "error" in reply:
                raise _raised(reply["error"])
            line = reply["line"]
            return wire.decoded(reply["value"], _KNOWN), line if isinstance(line, int) else 0
        except (wire.WireError, KeyError, TypeError, IndexError) as error:
            raise Tried(f"the answer sends the grader what is no answer: {error}") from None

    def call(self, file: str, name: str, arguments: Sequence[Any], draw: Callable[[], float] = lambda: 0.5) -> tuple[Any, int]:
        """Of a function of a file."""
        return self.ask("call", file, name, wire.encoded(tuple(arguments)), draw=draw)

    def has(self, file: str, name: str) -> bool:
        """Whether a file has such a function or class."""
        return self.ask("has", file, name)[0] is True

    def make(self, file: str, name: str, *arguments: Any) -> Made:
        """An object of a class of a file."""
        number, _ = self.ask("make", file, name, wire.encoded(arguments))
        return Made(self, file, number)

    def memory(self) -> int | None:
        """Bytes of memory that the process has; None where it is this one."""
        return self._served.memory()

    def close(self) -> None:
        """End the process."""
        self._served.close()


class Made:
    """An object within the answer's process."""

    def __init__(self, student: Student, file: str, number: Any) -> None:
        self._student, self._file, self._number = student, file, number

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *arguments: self._student.ask("method", self._number, self._file, name, wire.encoded(arguments))[0]

    def bytes(self) -> int:
        """What the answer's process keeps in memory, seen from outside it; of the object alone where that cannot be seen."""
        seen = self._student.memory()
        return seen if seen is not None else int(self._student.ask("size", self._number)[0])

    def many(self, name: str, calls: Sequence[Sequence[Any]]) -> None:
        """A method called many times in one request; what it gives is dropped."""
        self._student.ask("methods", self._number, self._file, name, wire.encoded([tuple(one) for one in calls]))


def _raised(error: Any) -> Missed:
    """What an answer raised, with its own line."""
    kind, text, own, missing = (error[key] for key in ("type", "text", "own", "missing"))
    kind, text = str(kind)[:60], str(text)[:2000]
    place = ""
    if own is not None:
        file, line, function, code = str(own[0])[:100], int(own[1]), str(own[2])[:60], str(own[3])[:300]
        place = f"{file}:{line}: in {function}: {code}\n"
        if kind == "SyntaxError" or kind in ("IndentationError", "TabError"):
            return Raised(f"{file}:{line}: {text}: {code}", "Python cannot read this line", kind, text)
    if kind == "RecursionError":
        return Raised(f"{place}a function that calls itself without end", "when does it stop calling itself?", kind, text)
    if kind == "TooMuch":
        return Tried(f"the answer gives too much: {text}")
    if missing is not None:
        what = f"{place}there is no module {str(missing)[:100]!r} here"
        hint = "an answer has Python's own modules and those of Fairlane that the skeleton imports"
        return Tried(what, hint) if str(missing).startswith("fairlane") else Raised(what, hint, kind, text)
    hint = "the line is yours; print what its variables hold" if place else "raised outside your files: what did they hand over, or not?"
    return Raised(f"{place}{kind}: {text}", hint, kind, text)
