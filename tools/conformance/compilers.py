"""The two compilers, with equal flags."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tools.conformance.checkout import Checkout
from tools.conformance.runs import Run, Runner, source_hash

OURS_TIMEOUT_S = 30.0
P4C_TIMEOUT_S = 180.0
_OUR_ERROR = re.compile(r"^(?:(?P<file>[^\n]*?):(?P<line>\d+):\d+: )?error(?:\[(?P<code>[^]\n]*)\])?: (?P<text>.*)$", re.MULTILINE)
_P4C_ERROR = re.compile(
    r"^(?:(?P<file>[^\n()]*)\((?P<line>\d+)\): ?)?(?:\[--Werror=(?P<code>[^]\n]*)\] error: |(?=syntax error)|error: )(?P<text>.*)$",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Message:
    """One error. `file` and `line` are empty and 0 where it names no place."""

    file: str
    line: int
    code: str
    text: str


@dataclass(frozen=True)
class Compiled:
    run: Run

    @property
    def accepted(self) -> bool:
        """Exit status 0 and a program written."""
        return self.run.status == 0 and bool(self.json)

    @property
    def json(self) -> str | None:
        return self.run.files.get("program.json")

    @property
    def p4info(self) -> str | None:
        return self.run.files.get("program.p4info.txtpb")


@dataclass(frozen=True)
class Compiler:
    """`program` takes p4c-bm2-ss's flags: `fairlane-compile` or p4c-bm2-ss itself."""

    program: Path
    checkout: Checkout
    runner: Runner
    ours: bool

    def compile(self, source: Path, include: tuple[Path, ...] = ()) -> Compiled:
        flags: list[str | Path] = []
        for folder in include if self.ours else (*include, self.checkout.include):
            flags += ["-I", folder]
        run = self.runner.run(
            [self.program, *flags, "-o", "{program.json}", "--p4runtime-files", "{program.p4info.txtpb}", source],
            [source_hash(source, include)],
            ["program.json", "program.p4info.txtpb"],
            OURS_TIMEOUT_S if self.ours else P4C_TIMEOUT_S,
        )
        return Compiled(run)


def our_errors(text: str) -> list[Message]:
    return [_message(m) for m in _OUR_ERROR.finditer(text)]


def p4c_errors(text: str) -> list[Message]:
    return [_message(m) for m in _P4C_ERROR.finditer(text) if m["code"] != "overlimit"]


def _message(found: re.Match[str]) -> Message:
    return Message(found["file"] or "", int(found["line"] or 0), found["code"] or "", found["text"].strip())


def cause_of(run: Run) -> str:
    """Why our compiler took no program: one line."""
    if run.timed_out:
        return "runs out of time"
    if run.crashed:
        at = re.search(r"panicked at [^\n]*", run.errors)
        return f"PANIC: {at[0] if at else f'signal {run.status}'}"
    errors = our_errors(run.errors)
    return errors[0].text if errors else (run.errors.strip().splitlines() or ["no message"])[0]
