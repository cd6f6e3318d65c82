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
from tools.oracle_programs.known import explained
from tools.oracle_programs.stf_run import Verdict, play


def compiled(compiler: str | Path, source: Path, output: Path) -> str:
    """What the compiler says against the program; empty when it takes it."""
    done = subprocess.run([compiler, "-o", output, source], capture_output=True, text=True, timeout=180)
    if done.returncode == 0 and output.exists():
        return ""
    lines = [line for line in done.stderr.splitlines() if "error" in line]
    return (lines or done.stderr.splitlines() or [f"exit status {done.returncode}"])[0]


def verdicts(case: Case, folder: Path, programs: Path, p4c: str | None, bmv2: bool) -> dict[str, Verdict]:
    """By pair; without those whose compiler or switch is missing. A difference of p4c's that a known fault explains is `known`."""
    found = {"ours, our switch": play(case, folder, programs / "fairlane-stf")}
    if bmv2:
        ours = _compiled_by("ours", str(programs / "fairlane-compile"), case, folder, None, bmv2)
        found["ours, BMv2"] = ours["ours, BMv2"]
    if p4c is not None:

        def by_p4c(one: Case) -> dict[str, Verdict]:
            return _compiled_by("p4c", p4c, one, folder, programs / "fairlane-stf", bmv2)

        theirs = by_p4c(case)
        if all(verdict.kind == "differs" for verdict in theirs.values()):
            faults = explained(case, lambda one: all(verdict.kind == "passed" for verdict in by_p4c(one).values()))
            if faults:
                theirs = dict.fromkeys(theirs, Verdict("known", " and ".join(faults)))
        found |= theirs
    return found


def _compiled_by(name: str, compiler: str, case: Case, folder: Path, stf_program: Path | None, bmv2: bool) -> dict[str, Verdict]:
    """One compiler's JSON on our switch (with `stf_program`) and on BMv2."""
    source, output = folder / f"{case.name}.p4", folder / f"{case.name}.{name}.json"
    source.write_text(case.source(), encoding="utf-8")
    output.unlink(missing_ok=True)
    refusal = compiled(compiler, source, output)
    found = {}
    if stf_program is not None:
        found[f"{name}, our switch"] = Verdict("refused", refusal) if refusal else play(case, folder, stf_program, output)
    if bmv2:
        found[f"{name}, BMv2"] = Verdict("refused", refusal) if refusal else _bmv2(case, output)
    return found


def ours(pair: str, found: dict[str, Verdict]) -> bool:
    """Whether what came of a pair, and is not as it should be, is a matter of ours."""
    if not pair.startswith("p4c"):
        return True
    # Our switch with p4c's JSON: where BMv2 ends in the same way (differs, is refused), the JSON is to blame. Their packets are not compared.
    return pair == "p4c, our switch" and "p4c, BMv2" in found and found["p4c, BMv2"].kind != found[pair].kind


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
