"""The packet tests next to the v1model samples, for each pair of compiler and switch.

A switch is a function in SWITCHES: given the program's JSON and the test, it says None when the test passes, or why not."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable
from pathlib import Path

from tools.bmv2 import process
from tools.conformance import pairs
from tools.conformance.compilers import Compiler, cause_of
from tools.conformance.report import Count
from tools.conformance.runs import content_hash
from tools.conformance.suite import Suite

STF_TIMEOUT_S = 60.0

Switch = Callable[[Suite, str, Path], str | None]


def ours(suite: Suite, json: str, test: Path) -> str | None:
    """`fairlane-stf`: our pipeline in virtual time."""
    digest = hashlib.sha256(json.encode()).hexdigest()
    with tempfile.TemporaryDirectory(prefix="conformance-stf-") as folder:
        # The command is part of the cache's key: the program's path must not be.
        (Path(folder) / "program.json").write_text(json, encoding="utf-8")
        run = suite.runner.run(
            [suite.stf, "program.json", test], [digest, content_hash(test)], timeout_s=STF_TIMEOUT_S, folder=Path(folder)
        )
    if run.status == 0:
        return None
    if run.timed_out or run.crashed:
        return cause_of(run)
    said = [line.split(".stf", 1)[-1].lstrip(":0123456789 ") for line in (run.output + run.errors).splitlines() if line.strip()]
    return said[0] if said else f"exit status {run.status}"


SWITCHES: dict[str, Switch] = {"ours": ours, "bmv2": pairs.bmv2}


def count(suite: Suite) -> list[Count]:
    absent = process.why_absent()
    if absent is not None:
        print(f"stf: without the pairs with BMv2: {absent}", flush=True)
    tests = {p: p.with_suffix(".stf") for p in suite.accepted_by_p4c() if p.with_suffix(".stf").is_file()}
    compilers: dict[str, Compiler] = {"ours": suite.ours, "p4c": suite.p4c}
    results = []
    passed: dict[str, set[str]] = {}
    for switch_name, switch in SWITCHES.items():
        if switch_name == "bmv2" and absent is not None:
            continue
        for compiler_name, compiler in compilers.items():
            result = Count(f"stf {compiler_name}/{switch_name}", f"packet tests pass with {compiler_name} JSON on {switch_name} switch")

            def play(program: Path, compiler: Compiler = compiler, switch: Switch = switch) -> str | None:
                compiled = compiler.compile(program)
                if not compiled.accepted or compiled.json is None:
                    return f"not compiled: {cause_of(compiled.run)}"
                return switch(suite, compiled.json, tests[program])

            for program, cause in suite.map(play, list(tests)):
                result.add(suite.checkout.name(program), cause)
            passed[result.kind] = {suite.checkout.name(p) for p in tests} - {m.program for m in result.misses}
            results.append(result)
    reference = passed.get("stf p4c/bmv2")
    if not reference:
        return results
    for result in results:
        both = len(passed[result.kind] & reference)
        result.notes.append(f"{both} of the {len(reference)} that pass with p4c and BMv2 ({100 * both / len(reference):.1f} %)")
    return results
