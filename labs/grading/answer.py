"""A student's files, and ways to try them that say which of their lines is at fault."""

from __future__ import annotations

import importlib.util
import math
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from fairlane import native, probes, user_files
from fairlane.labs.grading.missed import Missed


class Titled(Protocol):
    """A check, of which an answer knows the title alone."""

    @property
    def title(self) -> str: ...


@dataclass(frozen=True)
class Answer:
    """folder: where the student's files are. scratch: a folder that all checks of a grading share, for what is made of them."""

    folder: Path
    scratch: Path

    def remember(self, check: Titled) -> None:
        """That a check holds, for `needs` of those after it."""
        with (self.scratch / "held").open("a", encoding="utf-8", newline="\n") as file:
            file.write(f"{check.title}\n")

    def needs(self, *checks: Titled) -> None:
        """Missed unless these, which come before, hold. They are not tried again: what loops would do so again."""
        held = self.scratch / "held"
        known = held.read_text(encoding="utf-8").splitlines() if held.is_file() else []
        for check in checks:
            if check.title not in known:
                raise Missed(f"not tried yet: '{check.title}' does not hold", "first make the checks before this one hold")

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

    def module(self, name: str) -> ModuleType:
        """A Python file, imported afresh. What it raises passes through, so that the grader names its line."""
        path = self.path(name)
        spec = importlib.util.spec_from_file_location(f"lab_answer_{path.stem}", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        return module

    def function(self, file: str, name: str) -> Any:
        """A function of a Python file; Missed when it is not there."""
        found = getattr(self.module(file), name, None)
        if not callable(found):
            raise Missed(f"{file}: there is no function {name}", hint=f"the skeleton has 'def {name}(...)': keep its name")
        return found

    def p4(self, name: str) -> Path:
        """A P4 program of the answer, compiled: its JSON, in a folder of its own. Missed with the compiler's message, which names the line."""
        return self._compiled(self.path(name), self.folder)

    def als(self) -> Path:
        """`p4src/als.p4` with the answer's files in place of those of the same name; compiled when it runs."""
        return user_files.assemble(probes.PACKAGE / "p4src" / "als.p4", sorted(self.folder.glob("*.p4")), self.scratch / "p4src")

    def als_compiled(self, *defines: str) -> Path:
        """The JSON of `als`, compiled with these macros. Missed as of `p4`."""
        program = self.als()
        return self._compiled(program, program.parent, *defines)

    def _compiled(self, path: Path, folder: Path, *defines: str) -> Path:
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
            f"{what} gives {value!r}, which is no number but {_article(type(value).__name__)}",
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


def _article(word: str) -> str:
    return "None" if word == "NoneType" else f"{'an' if word[0] in 'aeiou' else 'a'} {word}"


def _relative(text: str, folder: Path) -> str:
    """Paths of the answer without the folder before them, colours left out."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text).replace(f"{folder.resolve()}{os.sep}", "").replace(f"{folder}{os.sep}", "").strip()
