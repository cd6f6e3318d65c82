"""Random programs of p4c's generator `p4smith`, crossed: p4c and BMv2 beside our compiler and our switch.

A program counts when p4c compiles it and BMv2 loads it. What differs is kept in `build/random/`: the program, and the smallest packet test
that shows it; also where a difference does not count because the program reads what nothing has written."""

from __future__ import annotations

import contextlib
import enum
import re
from pathlib import Path

from tools.bmv2 import process, stf
from tools.bmv2.program import Program
from tools.bmv2.runtime import Refused
from tools.conformance.compilers import Compiled, Compiler, cause_of
from tools.conformance.report import Count
from tools.conformance.suite import Suite
from tools.differential import suite as differential
from tools.differential.compare import Comparison, Differs
from tools.differential.minimise import first_alone, minimise

KEPT = differential.ROOT / "build/random"
GENERATOR_TIMEOUT_S = 60.0
# A packet that BMv2 has not sent by then, it has dropped.
LOST_S = 3.0
# So many packets are sent as the first of fresh switches, where a difference may come from packets before it.
ALONE = 10
UNWRITTEN = re.compile(r"\buninitialized[-_](use|out[-_]param)\b")


class Left(enum.Enum):
    """Why a program does not count."""

    NOT_GENERATED = "p4smith fails"
    P4C_REFUSES = "p4c refuses the program"
    BMV2_REFUSES = "BMv2 refuses p4c's JSON"
    LEFTOVER = (
        f"the packet that differs comes out alike when it is the first, and {ALONE} others do: BMv2 reads what an earlier packet left in an"
        " invalid header"
    )
    UNDEFINED = "it differs, and both compilers warn that it reads a variable that may be unwritten, which has any value (P4_16 6.8, 8.20)"


def count(suite: Suite) -> Count:
    result = Count("random", f"random programs: {suite.packets} packets come out alike of p4c with BMv2 and of ours")
    KEPT.mkdir(parents=True, exist_ok=True)
    left = dict.fromkeys(Left, 0)
    seeds = range(suite.seed, suite.seed + suite.random)
    for source, cause in suite.map(lambda path: _crossed(suite, path), [KEPT / f"random-{seed}.p4" for seed in seeds]):
        if isinstance(cause, Left):
            left[cause] += 1
        else:
            result.add(source.name, cause)
        if not isinstance(cause, str) and cause is not Left.UNDEFINED:
            for file in KEPT.glob(f"{source.stem}.*"):
                file.unlink()
    result.notes += [f"{number} not counted: {why.value}" for why, number in left.items() if number]
    return result


def _crossed(suite: Suite, source: Path) -> str | Left | None:
    seed = source.stem.rpartition("-")[2]
    command: list[str | Path] = [suite.smith, "--target", "bmv2", "--arch", "v1model", "--seed", seed, "{program.p4}"]
    text = suite.runner.run(command, [], ["program.p4"], GENERATOR_TIMEOUT_S).files.get("program.p4")
    if not text:
        return Left.NOT_GENERATED
    source.write_text(text, encoding="utf-8")
    theirs = _json(suite.p4c, source)
    if theirs is None:
        return Left.P4C_REFUSES
    compiled = suite.ours.compile(source)
    if not compiled.accepted or compiled.json is None:
        return f"not compiled: {cause_of(compiled.run)}"
    ours = source.with_suffix(".ours.json")
    ours.write_text(compiled.json, encoding="utf-8")
    source.with_suffix(".stf").touch()
    case = differential.Case(source.stem, str(source))
    try:
        comparison = Comparison.prepare(case, ours, source.parent, suite.replay, 1, theirs)
        comparison.run(suite.packets, lambda _: None, LOST_S)
    except Differs as differs:
        packets = differs.packets
        if packets and not _keeps_state(comparison.program):
            alone = first_alone(comparison, packets, ALONE)
            if alone is None:
                return Left.LEFTOVER
            packets = [alone]
        test = minimise(comparison, packets) if packets else None
        if test is not None:
            source.with_suffix(".differs.stf").write_text(test, encoding="utf-8")
        return Left.UNDEFINED if _reads_unwritten(suite, source, compiled) else " ".join(str(differs).split())
    except process.NotStarted:
        return Left.BMV2_REFUSES
    except (stf.ScriptError, Refused, RuntimeError, process.SwitchDied) as error:
        return " ".join(str(error).split()) if _bmv2_takes(theirs) else Left.BMV2_REFUSES
    return None


def _bmv2_takes(json: Path) -> bool:
    try:
        with process.Bmv2(json):
            return True
    except process.NotStarted:
        return False


def _reads_unwritten(suite: Suite, source: Path, ours: Compiled) -> bool:
    """Whether both compilers warn of it; one alone may be wrong."""
    return all(UNWRITTEN.search(compiled.run.errors) for compiled in (ours, suite.p4c.compile(source)))


def _keeps_state(program: Program) -> bool:
    """Whether a packet can tell the next one something, other than by the fields of invalid headers: these have any value, and BMv2 does
    not clear them."""
    return any(program.document[kind] for kind in ("register_arrays", "meter_arrays"))


def _json(compiler: Compiler, source: Path) -> Path | None:
    compiled = compiler.compile(source)
    if not compiled.accepted or compiled.json is None:
        return None
    path = source.with_suffix(".p4c.json")
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    path.write_text(compiled.json, encoding="utf-8")
    return path
