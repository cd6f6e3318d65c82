"""Cases as packet tests, in process: `fairlane-stf` compiles the program, and its pipeline gets the packets in virtual time."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tools.oracle_programs.cases import Case, stf

TIMEOUT_S = 60.0
_NO_TABLE = re.compile(r"there is no table `(\w+)`")


@dataclass(frozen=True)
class Verdict:
    """How a case ended: `passed`, `differs`, `refused` by the compiler or the test, or `crashed`; `known`: differs by a
    known fault of p4c, whose name is in `said`."""

    kind: str
    said: str = ""


def play(case: Case, folder: Path, program: Path, json: Path | None = None) -> Verdict:
    """Writes NAME.p4 and NAME.stf into the folder, and runs them. json: the program as another compiler wrote it."""
    source, script = folder / f"{case.name}.p4", folder / f"{case.name}.stf"
    source.write_text(case.source(), encoding="utf-8")
    gone: set[str] = set()
    while True:
        script.write_text(stf(case, gone), encoding="utf-8")
        try:
            done = subprocess.run([program, json or source, script], capture_output=True, text=True, timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return Verdict("crashed", f"no end within {TIMEOUT_S:.0f} s")
        missing = _NO_TABLE.search(done.stderr + done.stdout)
        if done.returncode != 2 or missing is None or missing[1] in gone:
            break
        gone.add(missing[1])
    said = "\n".join(line for line in (done.stdout + done.stderr).splitlines() if str(source) in line or str(script) in line)
    if done.returncode == 0:
        return Verdict("passed")
    return Verdict({1: "differs", 2: "refused"}.get(done.returncode, "crashed"), _relevant(said or done.stderr))


def _relevant(said: str) -> str:
    lines = [line for line in said.splitlines() if ": warning" not in line]
    return "\n".join(lines[:6])
