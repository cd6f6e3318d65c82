"""Runs the checks of a lab, each in a process of its own, with the answer in another one (`apart`), so that nothing that an answer does reaches a check or its points."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import re
import sys
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass, field, replace
from io import BytesIO, TextIOWrapper
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from types import CodeType
from typing import IO, TYPE_CHECKING, Any

from fairlane.hosts import algorithms
from fairlane.labs.grading import apart, given
from fairlane.labs.grading.answer import Answer
from fairlane.labs.grading.checks import Check
from fairlane.labs.grading.missed import Missed, Tried

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

_GRACE_S = 10.0
# Seconds by the clock for each of a check's seconds of processor time; a process that does nothing ends sooner (`apart`).
_PATIENCE = 100
# Once a check has met a loop without end, the others meet it, too, more often than not.
_AFTER_A_LOOP_S = 3.0
SLOWER = 6
"""A page's limits over a machine's: WebAssembly is slower than machine code, and the clock counts, not processor time."""
_LATE = (-24, -27, 152, 155, 137, -9)
"""Exit codes of a process that has used up its time, or that the kernel has ended."""
# Of what an answer prints, so many characters from the beginning and as many from the end are kept.
_PRINTED = 1000
_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')


@dataclass(frozen=True)
class Score:
    """What one check gave. printed: what the answer wrote to standard output and standard error. tried: what it did that no honest answer does."""

    title: str
    points: float
    of: int
    message: str = ""
    hint: str = ""
    printed: str = ""
    tried: str = ""


@dataclass(frozen=True)
class Grade:
    """Of one answer to one lab. tried: what the answer did that no honest one does, for the teacher. facts: what checks have measured, such as lab 10's runs."""

    lab: str
    scores: tuple[Score, ...]
    tried: tuple[str, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def points(self) -> float:
        return sum(s.points for s in self.scores)

    @property
    def of(self) -> int:
        return sum(s.of for s in self.scores)

    def as_json(self) -> dict[str, Any]:
        """For other programs: {"lab", "points", "of", "checks": [{"title", "points", "of", "message", "hint", "printed", "tried"}], "tried", "facts"}."""
        checks = [asdict(s) for s in self.scores]
        return {"lab": self.lab, "points": self.points, "of": self.of, "checks": checks, "tried": list(self.tried), "facts": self.facts}


def grade(
    lab: str,
    checks: list[Check],
    folder: Path,
    files: Sequence[str] | None = None,
    gives: Sequence[str] = given.DEFAULT,
    numbers: Mapping[str, float] | None = None,
) -> Grade:
    """All checks of a lab, in order, on the files in `folder`. Nothing that they make of the answer stays. files: those of an answer; None: all that
    are there. gives: the modules that an answer may import. numbers: of the student's own lab."""
    with TemporaryDirectory(prefix="fairlane-lab-") as name:
        scratch, answer = Path(name) / "grader", Path(name) / "answer"
        scratch.mkdir()
        strange = apart.only(files if files is not None else sorted(p.name for p in folder.iterdir()), folder, answer)
        grading = Grading(Answer(answer, scratch, tuple(gives), numbers=numbers or {}))
        scores = tuple(grading.score(check) for check in checks)
        tried = tuple(dict.fromkeys([*strange, *(score.tried for score in scores if score.tried)]))
        facts = scratch / "facts.json"
        return Grade(lab, scores, tried, json.loads(facts.read_text(encoding="utf-8")) if facts.is_file() else {})


class Grading:
    """The checks of an answer one by one, in order. looped: whether a check before has met a loop without end."""

    def __init__(self, answer: Answer, looped: bool = False) -> None:
        self._answer = answer
        self.looped = looped

    def limit_s(self, check: Check) -> float:
        """How long a check may take."""
        return min(check.limit_s, _AFTER_A_LOOP_S) if self.looped else check.limit_s

    def score(self, check: Check) -> Score:
        """In a process of its own, where one can be forked."""
        one = _one_here if sys.platform in ("emscripten", "win32") else _one
        score, in_time = one(check, self.limit_s(check), self._answer)
        self.looped = self.looped or not in_time
        if score.points >= check.points:
            self._answer.remember(check)
        return score


def _one(check: Check, limit_s: float, answer: Answer) -> tuple[Score, bool]:
    """The score, and whether the check ended by itself."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    with TemporaryFile("w+", errors="replace") as stacks, TemporaryFile() as output:
        apart_ = replace(answer, limits=apart.Limits(limit_s, output, stacks))
        child = context.Process(target=_child, args=(check, limit_s, apart_, theirs, output), daemon=False)
        child.start()
        theirs.close()
        try:
            told = ours.recv() if ours.poll(_PATIENCE * limit_s + _GRACE_S) else None
        except EOFError:
            told = None
        child.join(0 if told is None else _GRACE_S)
        if child.is_alive():
            child.kill()
            child.join()
        stacks.seek(0)
        found = stacks.read(100_000)
        printed = _printed(output)
    if told is None:
        told = "grader", child.exitcode or 0
    return _of(check, limit_s, told, found, answer, printed)


def _of(check: Check, limit_s: float, told: Any, stacks: str, answer: Answer, printed: str) -> tuple[Score, bool]:
    """The score of what a check's process told: points, message, hint and what was tried; or how it or the answer's process ended."""
    if len(told) == 4:
        points, message, hint, tried = told
        return Score(check.title, points, check.points, message, hint, printed, tried), True
    how, code = told
    if stacks or how == "late" or (how == "ended" and code in _LATE):
        return endless(check, limit_s, _place(stacks, answer), printed), False
    if how == "grader":
        return endless(check, limit_s, "", printed), False
    if apart.refused(code):
        what = "the answer asked the system for what no answer needs: a program, a thread, a process, a connection or a signal"
        return Score(check.title, 0, check.points, what, "take it out: an answer calculates, and nothing else", printed, what), True
    return ended(check, code, printed), True


def ended(check: Check, code: int, printed: str = "") -> Score:
    """Of an answer that ended the program that grades it."""
    return Score(
        check.title, 0, check.points, f"the answer ended the program (exit code {code})", "take sys.exit and the like out", printed
    )


def endless(check: Check, limit_s: float, place: str = "", printed: str = "") -> Score:
    """Of an answer that does not come to an end. place: "FILE:LINE: ", where it is known."""
    message = f"{place}still not done after {limit_s:g} s: a loop without end?"
    hint = "what changes in the loop, and does that make its condition false some day?"
    return Score(check.title, 0, check.points, message, hint, printed)


class _Endless(BaseException):
    """Raised in an answer's code once its time is over."""

    passes = True


def _one_here(check: Check, limit_s: float, answer: Answer) -> tuple[Score, bool]:
    """As `_one`, in this process, where there are no others: a page. What loops outside Python goes on until the page ends the worker."""
    limit_s = SLOWER * limit_s
    output = BytesIO()
    writer = TextIOWrapper(output, errors="replace", write_through=True)
    kinds = dict(algorithms.ALGORITHMS)
    answer = replace(answer, limits=apart.Limits(limit_s))
    place = ""
    try:
        with redirect_stdout(writer), redirect_stderr(writer), _ended_after(limit_s, answer):
            told: Any = _worked_out(check, answer)
    except _Endless as error:
        told = None
        own = [(_own_name(f.filename, answer), f.lineno) for f in traceback.extract_tb(error.__traceback__)]
        place = next((f"{name}:{line}: " for name, line in reversed(own) if name), "")
    finally:
        algorithms.ALGORITHMS.clear()
        algorithms.ALGORITHMS.update(kinds)
        for name in [name for name in sys.modules if name.startswith("lab_answer_")]:
            del sys.modules[name]
    printed = _printed(output)
    if told is None:
        return endless(check, limit_s, place, printed), False
    return _of(check, limit_s, told, "", answer, printed)


@contextmanager
def _ended_after(limit_s: float, answer: Answer) -> Iterator[None]:
    """Raises _Endless where the answer's own code jumps back or enters a function after its time; other code runs unwatched. On
    Windows with an older Python nothing is watched: Ctrl-C ends an endless loop."""
    monitoring: Any = getattr(sys, "monitoring", None)  # since Python 3.12, which a page has
    if monitoring is None:
        yield
        return
    events = monitoring.events.JUMP | monitoring.events.PY_START
    end = time.perf_counter() + limit_s

    def watch(code: CodeType, *place: int) -> Any:
        if not _own_name(code.co_filename, answer):
            return monitoring.DISABLE
        if time.perf_counter() > end:
            raise _Endless
        return None

    monitoring.use_tool_id(monitoring.PROFILER_ID, "fairlane.labs.grading")
    for event in (monitoring.events.JUMP, monitoring.events.PY_START):
        monitoring.register_callback(monitoring.PROFILER_ID, event, watch)
    monitoring.restart_events()
    monitoring.set_events(monitoring.PROFILER_ID, events)
    try:
        yield
    finally:
        monitoring.set_events(monitoring.PROFILER_ID, 0)
        monitoring.free_tool_id(monitoring.PROFILER_ID)


def _printed(output: IO[bytes]) -> str:
    """What was written, without its middle if it is long."""
    size = output.seek(0, os.SEEK_END)
    output.seek(0)
    begin = output.read(_PRINTED if size > 2 * _PRINTED else size)
    if size <= 2 * _PRINTED:
        return begin.decode(errors="replace").rstrip()
    output.seek(-_PRINTED, os.SEEK_END)
    left_out = f"\n... {size - 2 * _PRINTED} bytes left out ...\n"
    return begin.decode(errors="replace") + left_out + output.read().decode(errors="replace").rstrip()


def _child(check: Check, limit_s: float, answer: Answer, told: Connection, output: IO[bytes]) -> None:
    """Works a check out and sends what `_of` takes. What the answer prints is in `output`, line by line, however it ends."""
    os.setpgid(0, 0)  # a kill of the grader's group by Ctrl-C goes to the grader, which ends this
    for number in (1, 2):
        os.dup2(output.fileno(), number)
    sys.stdout = open(1, "w", buffering=1, errors="replace", closefd=False)
    sys.stderr = open(2, "w", buffering=1, errors="replace", closefd=False)
    apart.limit_grader(4 * limit_s + _GRACE_S)
    try:
        result = _worked_out(check, answer)
    finally:
        answer.close()
    sys.stdout.flush()
    told.send(result)
    told.close()
    os._exit(0)


def _worked_out(check: Check, answer: Answer) -> tuple[Any, ...]:
    """Points, message, hint, and what was tried; or how the answer's process ended, and its exit code."""
    try:
        check.function(answer)
    except _Endless:
        raise
    except apart.Ended as error:
        return "ended", error.code
    except apart.Late:
        return "late", 0
    except Missed as missed:
        points = min(max(0, missed.points), check.points) if missed.points == missed.points else 0
        return points, missed.message, missed.hint, missed.what if isinstance(missed, Tried) else ""
    except BaseException as error:  # noqa: BLE001 - the grader's own fault, or a value of an answer that no check foresaw
        return 0, f"{type(error).__name__}: {error}", "raised outside your files: what did they hand over, or not?", ""
    return check.points, "", "", ""


def _place(stacks: str, answer: Answer) -> str:
    """The innermost line of the answer in a dump of stacks, whose innermost frames come first. Behind a wall its folder is /answer."""
    for match in _FRAME.finditer(stacks):
        name = match["file"].removeprefix("/answer/") if match["file"].startswith("/answer/") else _own_name(match["file"], answer)
        if name:
            return f"{name}:{match['line']}: "
    return ""


def _own_name(file: str, answer: Answer) -> str:
    """A file's name within the answer, "" when it is not of it."""
    try:
        return str(Path(file).resolve().relative_to(answer.folder.resolve()))
    except (ValueError, OSError):
        return ""


def said_once(scores: Sequence[Score]) -> list[Score]:
    """What was told or printed before is not repeated."""
    told: dict[str, str] = {}
    shown: dict[str, str] = {}
    found = []
    for score in scores:
        if score.message and told.setdefault(score.message, score.title) != score.title:
            score = replace(score, message=f"the same as for '{told[score.message]}'", hint="")
        if score.printed and shown.setdefault(score.printed, score.title) != score.title:
            score = replace(score, printed=f"the same as for '{shown[score.printed]}'")
        found.append(score)
    return found


def text(grade_: Grade) -> str:
    """For people."""
    lines = []
    for score in said_once(grade_.scores):
        lines.append(f"[{'x' if score.points >= score.of else '~' if score.points else ' '}] {score.points:g}/{score.of}  {score.title}")
        lines += [f"         {line}" for line in score.message.splitlines()]
        if score.hint:
            lines.append(f"         hint: {score.hint}")
        if score.printed.startswith("the same as for '"):
            lines.append(f"         your program prints {score.printed}")
        elif score.printed:
            lines.append("         your program prints:")
            lines += [f"           {line}" for line in score.printed.splitlines()]
    lines.append(f"lab {grade_.lab}: {math.floor(grade_.points * 10 + 0.5) / 10:g} of {grade_.of} points")
    return "\n".join(lines)
