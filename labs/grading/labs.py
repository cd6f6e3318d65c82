"""The labs on disk: the files of a folder `labs/NN`.

    labs/04/README.md          the task, one page
    labs/04/lab.toml           title, files that a student changes, minutes, what an answer may import
    labs/04/grade.py           CHECKS, in order
    labs/04/fair_rate.p4       a file that the student changes; git does not know it

and what only a checkout has, for teachers:

    teaching/04/solution/      the files that a student changes, solved; skeletons are made from them (fairlane.labs.skeletons)
    teaching/04/wrong.toml     typical wrong answers; none where it is absent

A wrong answer is the solution with something in it replaced, so that each shows one mistake:

    [[wrong]]
    name = "divides by n + 1"
    file = "controller.py"
    find = "rate_bps / n"
    replace = "rate_bps / (n + 1)"
    hint = "how many connections"       # part of the hint that the grader has for it
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fairlane import probes
from fairlane.errors import Refusal
from fairlane.inputs import located_toml, schema
from fairlane.labs import handout, keys, skeletons
from fairlane.labs.grading import given, runner
from fairlane.labs.grading.checks import Check

FOLDER = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Wrong:
    """One typical mistake. Without `find`, `replace` is the whole file."""

    name: str
    file: str
    replace: str
    hint: str
    find: str = ""


@dataclass(frozen=True)
class LabSettings:
    """The keys of lab.toml. minutes: the time that a class needs. gives: the modules of Fairlane that an answer may import (`given.place`)."""

    title: str
    files: tuple[str, ...]
    minutes: int
    gives: tuple[str, ...] = given.DEFAULT
    mininet: str = ""
    vary: tuple[keys.Vary, ...] = ()


@dataclass(frozen=True)
class Mistakes:
    """The keys of wrong.toml."""

    wrong: tuple[Wrong, ...] = ()


@dataclass(frozen=True)
class Lab:
    """number: as in `labs/NN`."""

    number: str
    folder: Path
    settings: LabSettings

    @property
    def source(self) -> Path:
        """The folder of the solution, in a checkout."""
        return skeletons.TEACHING / self.number / "solution"

    @property
    def checks(self) -> list[Check]:
        return list(importlib.import_module(f"fairlane.labs.{self.number}.grade").CHECKS)


def graded(lab: Lab, folder: Path, numbers: Mapping[str, float] | None = None) -> runner.Grade:
    """An answer's points. folder: has its files. numbers: of the student's own lab; those of the copy when not given."""
    known = keys.own(folder, lab.settings.vary) if numbers is None else numbers
    return runner.grade(lab.number, lab.checks, folder, lab.settings.files, lab.settings.gives, known)


def numbers() -> list[str]:
    """Of all labs, in order."""
    return sorted(p.parent.name for p in FOLDER.glob("*/lab.toml"))


def load(number: str) -> Lab:
    """ConfigError names file, line and key."""
    folder = FOLDER / number
    return Lab(number, folder, schema.build(LabSettings, located_toml.read(folder / "lab.toml")))


def find(number: str) -> Lab:
    """A lab by its number as people write it, 4 or 04. Refusal: there is none."""
    if (whole := number.strip().zfill(2)) not in numbers():
        raise Refusal(f"there is no lab {number}; there is {', '.join(numbers())}")
    return load(whole)


def answer(lab: Lab) -> Path:
    """The folder of a student's files, from where he or she stands. Refusal: it is not there."""
    for place in (Path("labs", lab.number), Path(lab.number), Path()):
        if any((place / name).is_file() for name in lab.settings.files):
            return place
    raise Refusal(
        f"lab {lab.number}: there is no {lab.settings.files[0]} in labs/{lab.number}, in {lab.number} or here. "
        "Name its folder, or make one with its files: fairlane labs copy"
    )


def skeleton(lab: Lab, folder: Path) -> Path:
    """The files as they are handed out, written into `folder`."""
    return _write(folder, {name: _skeleton(lab, name) for name in lab.settings.files})


def _skeleton(lab: Lab, name: str) -> str:
    """In a wheel the lab's own file is one that nobody has changed."""
    source = lab.source / name
    return skeletons.read(source).skeleton if source.is_file() else (lab.folder / name).read_text(encoding="utf-8")


def copy(folder: Path, key: bytes | None = None, student: str = "") -> None:
    """All labs, to be worked on, in a new `folder`: no solutions and graders, and all that their texts name. key, student: for numbers of the student's
    own. Refusal when it exists."""
    if folder.exists():
        raise Refusal(f"{folder}: exists already, and is not overwritten. Give another folder, or remove it.")
    found = {number: load(number) for number in numbers()}
    skeletons_ = {number: {name: _skeleton(lab, name) for name in lab.settings.files} for number, lab in found.items()}
    handout.write(folder, skeletons_, probes.PACKAGE)
    for number, lab in found.items() if key is not None else ():
        _vary(lab, folder / number, keys.drawn(number, lab.settings.vary, key or b"", student))


def _vary(lab: Lab, folder: Path, numbers: Mapping[str, float]) -> None:
    """Put a student's numbers into the files of a folder."""
    for path in sorted({folder / place.partition(": ")[0] for one in lab.settings.vary for place in one.places}):
        if path.is_file():
            text = keys.written(lab.settings.vary, numbers, path.name, path.read_text(encoding="utf-8"))
            path.write_text(text, encoding="utf-8", newline="\n")
    if numbers:
        (folder / keys.FILE).write_text(json.dumps(numbers) + "\n", encoding="utf-8", newline="\n")


def solution(lab: Lab, folder: Path, numbers: Mapping[str, float] | None = None) -> Path:
    """The solved files, written into `folder` without marks, with a student's numbers where they are given. Only in a checkout."""
    _write(folder, {name: skeletons.read(lab.source / name).solution for name in lab.settings.files})
    _vary(lab, folder, numbers or {})
    return folder


def _write(folder: Path, files: dict[str, str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
    return folder


def mistakes(lab: Lab) -> tuple[Wrong, ...]:
    """Typical wrong answers. ConfigError names file, line and key."""
    file = skeletons.TEACHING / lab.number / "wrong.toml"
    found = schema.build(Mistakes, located_toml.read(file)).wrong if file.is_file() else ()
    if strange := [one.file for one in found if one.file not in lab.settings.files]:
        raise ValueError(f"{file}: {strange[0]!r} is none of the lab's files")
    return found


def wrong(lab: Lab, mistake: Wrong, folder: Path) -> Path:
    """The solution with one mistake in it. ValueError when the text to be replaced is not there exactly once."""
    solution(lab, folder)
    path = folder / mistake.file
    text = path.read_text(encoding="utf-8")
    if mistake.find and text.count(mistake.find) != 1:
        raise ValueError(
            f"teaching/{lab.number}/wrong.toml: wrong answer {mistake.name!r}: {mistake.find!r} is {text.count(mistake.find)} times in {mistake.file}"
        )
    path.write_text(text.replace(mistake.find, mistake.replace) if mistake.find else mistake.replace, encoding="utf-8", newline="\n")
    return folder
