"""The labs on disk: the files of a folder `labs/NN`.

    labs/04/README.md          the task, one page
    labs/04/lab.toml           title, files that a student changes, typical wrong answers
    labs/04/grade.py           CHECKS, in order
    labs/04/solution/          the files that a student changes, solved; skeletons are made from them (fairlane.labs.skeletons)
    labs/04/fair_rate.p4       such a skeleton, which the student changes; git does not know it

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
import shutil
from dataclasses import dataclass
from pathlib import Path

from fairlane.errors import Refusal
from fairlane.inputs import located_toml, schema
from fairlane.labs import skeletons
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
    wrong: tuple[Wrong, ...] = ()
    mininet: str = ""

    def __post_init__(self) -> None:
        for i, wrong in enumerate(self.wrong):
            if wrong.file not in self.files:
                raise ValueError(f"wrong: wrong[{i}].file {wrong.file!r} is none of files")


@dataclass(frozen=True)
class Lab:
    """number: as in `labs/NN`."""

    number: str
    folder: Path
    settings: LabSettings

    @property
    def checks(self) -> list[Check]:
        return list(importlib.import_module(f"fairlane.labs.{self.number}.grade").CHECKS)


def graded(lab: Lab, folder: Path) -> runner.Grade:
    """An answer's points. folder: has its files."""
    return runner.grade(lab.number, lab.checks, folder, lab.settings.files, lab.settings.gives)


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
    return _write(folder, {name: skeletons.read(lab.folder / "solution" / name).skeleton for name in lab.settings.files})


def copy(folder: Path) -> None:
    """All labs, to be worked on: their folders in a new `folder`, without solutions and graders. Refusal when it exists."""
    if folder.exists():
        raise Refusal(f"{folder}: exists already, and is not overwritten. Give another folder, or remove it.")
    for number in numbers():
        shutil.copytree(FOLDER / number, folder / number, ignore=shutil.ignore_patterns("solution", "grade.py", "lab.toml", "__pycache__"))
        skeleton(load(number), folder / number)
    for name in ("README.md", "course.md", "lab.mk"):
        shutil.copyfile(FOLDER / name, folder / name)


def solution(lab: Lab, folder: Path) -> Path:
    """The solved files, written into `folder` without marks."""
    return _write(folder, {name: skeletons.read(lab.folder / "solution" / name).solution for name in lab.settings.files})


def _write(folder: Path, files: dict[str, str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
    return folder


def wrong(lab: Lab, mistake: Wrong, folder: Path) -> Path:
    """The solution with one mistake in it. ValueError when the text to be replaced is not there exactly once."""
    solution(lab, folder)
    path = folder / mistake.file
    text = path.read_text(encoding="utf-8")
    if mistake.find and text.count(mistake.find) != 1:
        raise ValueError(
            f"labs/{lab.number}/lab.toml: wrong answer {mistake.name!r}: {mistake.find!r} is {text.count(mistake.find)} times in {mistake.file}"
        )
    path.write_text(text.replace(mistake.find, mistake.replace) if mistake.find else mistake.replace, encoding="utf-8", newline="\n")
    return folder
