"""A class's answers graded: a folder for each student, all labs, several at a time, and again only what has changed.

    ANSWERS/ada/04/fair_rate.p4        or ada/labs/04/fair_rate.p4, or ada/lab-04/..., or ada/fair_rate.p4
    ANSWERS/grace/...

Each answer to each lab is graded in a process of its own, so that what breaks one stops no other. What came out is kept in a folder, under a digest of the answer's files and
of the grader, and taken again when both are the same.
"""

from __future__ import annotations

import csv
import hashlib
import json
import multiprocessing
import re
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from fairlane.errors import Refusal
from fairlane.labs import keys
from fairlane.labs.grading import labs
from fairlane.labs.ranking import measures
from fairlane.studies import store

_MOODLE = re.compile(r"(?P<name>.+)_\d+_assignsubmission_\w+")
_PLACES = ("{n}", "labs/{n}", "lab-{n}", "lab{n}", "")
_UNSAFE = re.compile(r"[^\w.-]+")


@dataclass(frozen=True)
class Student:
    """folder: under the class's. name, email, id: as a list of names says; the folder's own name otherwise."""

    folder: Path
    name: str
    email: str = ""
    id: str = ""


@dataclass(frozen=True)
class Graded:
    """One student's answer to one lab. points: None when there is none. scores: of checks, as `runner.Grade.as_json` has them."""

    lab: str
    of: int
    points: float | None
    seconds: float = 0.0
    checks: tuple[Mapping[str, Any], ...] = ()
    tried: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    kept: bool = False


@dataclass(frozen=True)
class Row:
    """A student and all grades, in the order of the labs."""

    student: Student
    graded: tuple[Graded, ...]

    @property
    def total(self) -> float:
        return sum(one.points or 0.0 for one in self.graded)

    @property
    def seconds(self) -> float:
        return sum(one.seconds for one in self.graded)

    @property
    def tried(self) -> list[str]:
        """What no honest answer does, with the lab's number."""
        return [f"lab {one.lab}: {what}" for one in self.graded for what in one.tried]


@dataclass(frozen=True)
class Ranked:
    """A student's scheme in lab 10's ranking. behind: how many of Fairlane's own schemes have no higher score."""

    rank: int
    student: Student
    score: float
    marks: Mapping[str, float]
    behind: int


def students(folder: Path, names: Path | None = None) -> list[Student]:
    """Those who have a folder, by name. Refusal: there is none, or the list of names cannot be read."""
    if not folder.is_dir():
        raise Refusal(f"{folder}: no such folder. Give the folder that has a folder for each student.")
    found = sorted(path for path in folder.iterdir() if path.is_dir() and not path.is_symlink() and path.name[0] not in "._")
    if not found:
        raise Refusal(
            f"{folder}: has no folders. Put each student's files into a folder of their own, such as {folder}/ada/04/fair_rate.p4."
        )
    known = _names(names) if names is not None else {}
    if unknown := sorted(set(known) - {path.name for path in found}):
        raise Refusal(f"{names}: there is no folder {', '.join(unknown[:5])} in {folder}")
    return [replace(known.get(path.name) or Student(path, _own_name(path.name)), folder=path) for path in found]


def _own_name(folder: str) -> str:
    found = _MOODLE.fullmatch(folder)
    return found["name"] if found else folder


def _names(file: Path) -> dict[str, Student]:
    """Columns folder and name, and email and id where they are known."""
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            rows = csv.DictReader(lines)
            if rows.fieldnames is None or not {"folder", "name"} <= set(rows.fieldnames):
                raise Refusal(
                    f"{file}:1: columns folder and name are needed, email and id may be there; it has {', '.join(rows.fieldnames or ())}"
                )
            found = [(row["folder"] or "", row) for row in rows]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise Refusal(f"{file}: cannot be read: {error}") from error
    return {name: Student(Path(name), row["name"] or name, row.get("email") or "", row.get("id") or "") for name, row in found}


def chosen(numbers: str) -> list[labs.Lab]:
    """Labs of a list such as "01,04"; all of an empty one. Refusal: there is no such lab."""
    wanted = [part.strip() for part in numbers.split(",") if part.strip()] or labs.numbers()
    return sorted({lab.number: lab for lab in map(labs.find, wanted)}.values(), key=lambda lab: lab.number)


def grade(
    class_: Sequence[Student],
    of_labs: Sequence[labs.Lab],
    out: Path,
    jobs: int,
    say: Callable[[str], None] = lambda _: None,
    secret: bytes | None = None,
) -> list[Row]:
    """All answers to all labs. out: where results are kept. jobs: how many are graded at a time. say: takes a line for each that was graded. secret: for
    numbers of each student's own, by the folder's name; without it all have the lab's own."""
    out.mkdir(parents=True, exist_ok=True)
    grader = _grader_digest()
    for lab in of_labs:
        lab.checks  # noqa: B018 - read once here, and not in each process
    found: dict[tuple[Path, str], Graded] = {}
    todo: list[_Task] = []
    for student in class_:
        for lab in of_labs:
            of = sum(check.points for check in lab.checks)
            place, strange = _place(student.folder, lab)
            if place is None:
                found[student.folder, lab.number] = Graded(lab.number, of, None, tried=strange)
                continue
            numbers = keys.drawn(lab.number, lab.settings.vary, secret, student.folder.name) if secret is not None else {}
            key = _digest(place, lab, f"{grader} {numbers}")
            if (kept := _kept(_file(out, student, lab), key)) is not None:
                found[student.folder, lab.number] = kept
            else:
                todo.append(_Task(student, lab, place, numbers, key, _file(out, student, lab)))
    for student, lab, graded in _all(todo, jobs):
        found[student.folder, lab.number] = graded
        say(f"{student.name}, lab {lab.number}: {graded.points or 0:g} of {graded.of}, {graded.seconds:.1f} s")
    return [Row(student, tuple(found[student.folder, lab.number] for lab in of_labs)) for student in class_]


@dataclass(frozen=True)
class _Task:
    """An answer to be graded. key: what its result depends on. file: where that is kept."""

    student: Student
    lab: labs.Lab
    place: Path
    numbers: Mapping[str, float]
    key: str
    file: Path


def _all(todo: Sequence[_Task], jobs: int) -> Iterator[tuple[Student, labs.Lab, Graded]]:
    """Each as soon as it is graded."""
    waiting = list(todo)
    if sys.platform == "win32":  # no fork
        for task in waiting:
            _one(task)
            yield task.student, task.lab, _result(task, 0)
        return
    context: Any = multiprocessing.get_context("fork")
    running: dict[Any, tuple[BaseProcess, _Task]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                task = waiting.pop(0)
                process = context.Process(target=_one, args=(task,), daemon=False)
                process.start()
                running[process.sentinel] = process, task
            for done in wait(list(running)):
                process, task = running.pop(done)
                process.join()
                yield task.student, task.lab, _result(task, process.exitcode or 0)
    finally:
        for process, _ in running.values():
            process.kill()


def _one(task: _Task) -> None:
    begun = time.monotonic()
    try:
        told = labs.graded(task.lab, task.place, task.numbers).as_json()
    except Exception:  # noqa: BLE001 - a fault of the grader, which stops no other answer
        told = {"points": 0, "checks": [], "tried": [], "facts": {}, "fault": traceback.format_exc(limit=-3)}
    unfinished = task.file.with_suffix(".tmp")
    unfinished.write_text(json.dumps({"key": task.key, "seconds": time.monotonic() - begun, **told}), encoding="utf-8", newline="\n")
    unfinished.replace(task.file)


def _result(task: _Task, code: int) -> Graded:
    found = _kept(task.file, task.key)
    if found is None:
        of = sum(check.points for check in task.lab.checks)
        try:
            what = json.loads(task.file.read_text(encoding="utf-8"))["fault"]
        except (OSError, ValueError, KeyError):
            what = f"ended with code {code}"
        fault = {"title": "the grader itself", "points": 0, "of": of, "message": what, "hint": "grade this answer by hand"}
        return Graded(task.lab.number, of, 0.0, checks=(fault,))
    return replace(found, kept=False)


def _kept(file: Path, key: str) -> Graded | None:
    """What a run before has left, if the answer and the grader are still the same."""
    try:
        told = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(told, dict) or told.get("key") != key or "fault" in told:
        return None
    return Graded(
        told["lab"],
        told["of"],
        min(max(0.0, told["points"]), told["of"]),
        told["seconds"],
        tuple(told["checks"]),
        tuple(told["tried"]),
        told["facts"],
        True,
    )


def _place(folder: Path, lab: labs.Lab) -> tuple[Path | None, tuple[str, ...]]:
    """Where a student's files for a lab are, and what was strange: a folder that is a link leads to somebody else's."""
    strange = []
    for pattern in _PLACES:
        place = folder / pattern.format(n=lab.number)
        if not place.resolve().is_relative_to(folder.resolve()):
            strange.append(f"{place.relative_to(folder)}: leads out of the student's folder")
            continue
        if any((place / name).is_symlink() or (place / name).exists() for name in lab.settings.files):
            return place, tuple(strange)
    return None, tuple(strange)


def _digest(place: Path, lab: labs.Lab, grader: str) -> str:
    whole = hashlib.sha256(f"{grader} {lab.number}".encode())
    for name in lab.settings.files:
        path = place / name
        regular = path.is_file() and not path.is_symlink() and path.stat().st_size < 10_000_000
        whole.update(f"\0{name}\0".encode() + (path.read_bytes() if regular else b"?"))
    return whole.hexdigest()


def _grader_digest() -> str:
    """Of all that decides points: Fairlane, and the labs."""
    whole = hashlib.sha256(store.program_digest().encode())
    for path in sorted(labs.FOLDER.rglob("*")):
        if path.suffix in (".py", ".toml", ".json") and path.is_file():
            whole.update(path.name.encode() + path.read_bytes())
    return whole.hexdigest()


def _file(out: Path, student: Student, lab: labs.Lab) -> Path:
    mark = hashlib.sha256(student.folder.name.encode()).hexdigest()[:8]
    return out / f"{_UNSAFE.sub('-', student.folder.name)[:60]}-{mark}-{lab.number}.json"


def ranking(rows: Sequence[Row]) -> list[Ranked]:
    """The class's schemes of lab 10 that ran, best first."""
    others = [measures.score(one) for one in measures.stored().values()]
    scored = []
    for row in rows:
        for one in row.graded:
            if "measures" in one.facts:
                found = measures.Measures(**one.facts["measures"])
                scored.append((measures.score(found), row.student, found.marks()))
    scored.sort(key=lambda one: (-one[0], one[1].name))
    return [
        Ranked(n, student, score, marks, sum(score >= other for other in others)) for n, (score, student, marks) in enumerate(scored, 1)
    ]
