"""A student's files, and ways to try them that say which of their lines is at fault."""

from __future__ import annotations

import functools
import json
import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from fairlane import native, probes, user_files
from fairlane.labs.grading import apart, given
from fairlane.labs.grading.missed import Missed, Tried
from fairlane.labs.grading.student import Made, Student
from fairlane.labs.grading.wire import Foreign

# A directive, however comments and broken lines are put into it.
_GAP = r"(?:[ \t]|/\*.*?\*/)*"
_INCLUDE = re.compile(rf"#{_GAP}(?:include\w*|import|embed){_GAP}([^\n]*)", re.DOTALL)
_NAME = re.compile(r"""[<"]([^>"\n]*)[>"]""")


class Titled(Protocol):
    """A check, of which an answer knows the title alone."""

    @property
    def title(self) -> str: ...


@dataclass(frozen=True)
class Answer:
    """folder: where the student's files are. scratch: a folder that all checks of a grading share, for what is made of them. gives: the modules that the lab
    gives (`given.place`). numbers: of this student's own lab (`fairlane.labs.keys`). limits: of the process in which the answer's Python runs."""

    folder: Path
    scratch: Path
    gives: tuple[str, ...] = given.DEFAULT
    includes: tuple[str, ...] = ("core.p4", "v1model.p4")
    numbers: Mapping[str, float] = field(default_factory=dict)
    limits: apart.Limits = field(default_factory=lambda: apart.Limits(30.0))

    @functools.cached_property
    def student(self) -> Student:
        """The process of the answer's Python, which begins when it is first asked."""
        place = self.scratch / "given"
        if not place.is_dir():
            given.place(place, self.gives)
        return Student(apart.start(self.folder.resolve(), place.resolve(), self.limits))

    def close(self) -> None:
        """End the answer's process, if there is one."""
        if "student" in self.__dict__:
            self.student.close()

    def remember(self, check: Titled) -> None:
        """That a check holds, for `needs` of those after it."""
        with (self.scratch / "held").open("a", encoding="utf-8", newline="\n") as file:
            file.write(f"{check.title}\n")

    def note(self, name: str, value: Any) -> None:
        """A fact for whoever grades, such as what a run has measured: JSON."""
        kept = self.scratch / "facts.json"
        known = json.loads(kept.read_text(encoding="utf-8")) if kept.is_file() else {}
        kept.write_text(json.dumps({**known, name: value}), encoding="utf-8", newline="\n")

    def needs(self, *checks: Titled) -> None:
        """Missed unless these, which come before, hold. They are not tried again: what loops would do so again."""
        held = self.scratch / "held"
        known = held.read_text(encoding="utf-8").splitlines() if held.is_file() else []
        for check in checks:
            if check.title not in known:
                raise Missed(f"not tried yet: '{check.title}' does not hold", "first make the checks before this one hold")

    def number(self, name: str, standard: float) -> float:
        """One of the numbers that a key draws; the lab's own without a key."""
        return self.numbers.get(name, standard)

    def path(self, name: str) -> Path:
        """A file of the answer; Missed when it is not there."""
        path = self.folder / name
        if not path.is_file():
            raise Missed(f"{name}: no such file in {os.path.relpath(self.folder)}", hint="the skeleton has it: do not move or rename it")
        return path

    def text(self, name: str) -> str:
        """Of a file of the answer."""
        try:
            return self.path(name).read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise Missed(f"{name}: is no UTF-8 text (byte {error.start})") from None

    def function(self, file: str, name: str) -> Callable[..., Any]:
        """A function of a Python file, which runs in the answer's process; Missed when it is not there."""
        self._callable(file, name, f"'def {name}(...)'")
        return lambda *arguments: self.student.call(file, name, arguments)[0]

    def made(self, file: str, name: str, *arguments: Any) -> Made:
        """An object of a class of a Python file, in the answer's process; Missed when the class is not there."""
        self._callable(file, name, f"'class {name}'")
        return self.student.make(file, name, *arguments)

    def _callable(self, file: str, name: str, head: str) -> None:
        self.path(file)
        if not self.student.has(file, name):
            raise Missed(
                f"{file}: there is no {'class' if 'class' in head else 'function'} {name}", hint=f"the skeleton has {head}: keep its name"
            )

    def program(self, name: str) -> Path:
        """A P4 file of the answer. Missed: it includes what the lab does not give."""
        path = self.path(name)
        for found in _INCLUDE.finditer(self.text(name).replace("\\\r\n", "").replace("\\\n", "")):
            included = _NAME.match(found[1])
            if included is None or included[1] not in self.includes:
                what = found[0].split("\n")[0][:120]
                raise Tried(f"{name}: {what}: an answer includes {' and '.join(self.includes) or 'no file'}, and nothing else")
        return path

    def p4(self, name: str) -> Path:
        """A P4 program of the answer, compiled: its JSON, in a folder of its own. Missed with the compiler's message, which names the line."""
        return self.compiled(self.program(name), self.folder)

    def als(self) -> Path:
        """`p4src/als.p4` with the answer's files in place of those of the same name; compiled when it runs."""
        return user_files.assemble(
            probes.PACKAGE / "p4src" / "als.p4",
            [self.program(path.name) for path in sorted(self.folder.glob("*.p4"))],
            self.scratch / "p4src",
        )

    def als_compiled(self, *defines: str) -> Path:
        """The JSON of `als`, compiled with these macros. Missed as of `p4`."""
        program = self.als()
        return self.compiled(program, program.parent, *defines)

    def compiled(self, path: Path, folder: Path, *defines: str) -> Path:
        """The JSON of a program, compiled once for all checks. folder: what messages leave out of its path. Missed with the compiler's message."""
        out = self.scratch / f"{'-'.join((path.stem, *defines))}.json"
        if out.is_file():
            return out
        program, _, said = native.compile(path, define=list(defines))
        if program is None:
            raise Missed(
                f"does not compile:\n{_relative(said, folder)}",
                hint="the compiler marks the place; 'fairlane compile --explain CODE' tells more about an error's code",
            )
        out.write_text(program, encoding="utf-8", newline="\n")
        return out


def stf(program: Path, test: str) -> str:
    """Play a packet test (STF) against a compiled program. "" when it passes, otherwise what differed."""
    script = program.with_suffix(".stf")
    script.write_text(test, encoding="utf-8", newline="\n")
    try:
        passed, said = native.packet_test(program, script)
    except ValueError as error:
        passed, said = False, str(error)
    return "" if passed else _relative(said, program.parent)


def number(value: object, what: str, low: float = -math.inf, high: float = math.inf) -> float:
    """A finite number from a student's function; Missed otherwise. what: names the function and the arguments."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Missed(
            f"{what} gives {value!r}, which is no number but {_article(_kind(value))}",
            hint="does every way through the function end with 'return' and a number?",
        )
    if not math.isfinite(value):
        raise Missed(
            f"{what} gives {value}", hint="is something divided by zero, or by a value that may be zero, or is nan - nan hidden in it?"
        )
    if not low <= value <= high:
        raise Missed(f"{what} gives {value:g}, which lies outside {low:g} to {high:g}")
    return float(value)


def close(value: object, expected: float, what: str, hint: str, tolerance: float = 1e-6) -> None:
    """Missed unless a student's number is as expected, within a relative tolerance. Does not reveal the expected value."""
    if not math.isclose(number(value, what), expected, rel_tol=tolerance, abs_tol=tolerance):
        raise Missed(f"{what} gives {value:g}, which is not it", hint=hint)


def _kind(value: object) -> str:
    return value.kind if isinstance(value, Foreign) else type(value).__name__


def _article(word: str) -> str:
    return "None" if word == "NoneType" else f"{'an' if word[0] in 'aeiou' else 'a'} {word}"


def _relative(text: str, folder: Path) -> str:
    """Paths of the answer without the folder before them, colours left out."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text).replace(f"{folder.resolve()}{os.sep}", "").replace(f"{folder}{os.sep}", "").strip()
