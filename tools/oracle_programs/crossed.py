"""Cases with p4c and BMv2 beside ours: which of the pairs of compiler and switch gives what the oracle expects."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tools.bmv2 import process
from tools.bmv2 import stf as on_bmv2
from tools.bmv2.program import Program
from tools.bmv2.runtime import Refused
from tools.oracle_programs.cases import Case, stf
from tools.oracle_programs.stf_run import Verdict, play

PAIRS = ("ours, our switch", "p4c, our switch", "ours, BMv2", "p4c, BMv2")


def compiled(compiler: str | Path, source: Path, output: Path) -> str:
    """What the compiler says against the program; empty when it takes it."""
    done = subprocess.run([compiler, "-o", output, source], capture_output=True, text=True, timeout=180)
    if done.returncode == 0 and output.exists():
        return ""
    lines = [line for line in done.stderr.splitlines() if "error" in line]
    return (lines or done.stderr.splitlines() or [f"exit status {done.returncode}"])[0]


def verdicts(case: Case, folder: Path, programs: Path, p4c: str | None, bmv2: bool) -> dict[str, Verdict]:
    """By pair; without those whose compiler or switch is missing."""
    found = {"ours, our switch": play(case, folder, programs / "fairlane-stf")}
    source = folder / f"{case.name}.p4"
    for name, compiler in (("p4c", p4c), ("ours", str(programs / "fairlane-compile"))):
        if compiler is None:
            continue
        output = folder / f"{case.name}.{name}.json"
        output.unlink(missing_ok=True)
        refusal = compiled(compiler, source, output)
        if name == "p4c":
            found["p4c, our switch"] = Verdict("refused", refusal) if refusal else play(case, folder, programs / "fairlane-stf", output)
        if bmv2:
            found[f"{name}, BMv2"] = Verdict("refused", refusal) if refusal else _bmv2(case, output)
    return found


def _bmv2(case: Case, output: Path) -> Verdict:
    tables = {t["name"].rpartition(".")[2] for p in json.loads(output.read_text(encoding="utf-8"))["pipelines"] for t in p["tables"]}
    gone = {table.name for table in case.program.tables} - tables
    try:
        with process.Bmv2(output) as switch:
            outcome = on_bmv2.play(switch, Program.load(output), stf(case, gone))
    except process.NotStarted as died:
        return Verdict("refused", str(died))
    except process.SwitchDied as died:
        return Verdict("crashed", str(died))
    except (on_bmv2.ScriptError, Refused) as error:
        return Verdict("refused", str(error))
    return Verdict("differs", "\n".join(outcome.differences[:3])) if outcome.differences else Verdict("passed")
