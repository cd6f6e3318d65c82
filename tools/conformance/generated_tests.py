"""Packet tests that p4c's test generator `p4testgen` makes of the v1model samples: on ours, out of those that p4c with BMv2 passes."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tools.conformance import pairs, stf
from tools.conformance.compilers import cause_of
from tools.conformance.report import Count
from tools.conformance.runs import content_hash
from tools.conformance.suite import Suite

GENERATOR_TIMEOUT_S = 60.0


def count(suite: Suite) -> Count:
    result = Count("testgen", "generated packet tests pass, out of those that p4c with BMv2 passes")
    programs = suite.accepted_by_p4c()[:: suite.every]
    outcomes = suite.map(lambda program: _tested(suite, program), programs)
    fail = none = 0
    for program, tests in outcomes:
        none += not tests
        for name, reference, cause in tests:
            if reference is not None:
                fail += 1
            else:
                result.add(f"{suite.checkout.name(program)} {name}", cause)
    result.notes.append(f"of {len(programs)} samples, {none} without tests: p4testgen makes none, or none in {GENERATOR_TIMEOUT_S:.0f} s")
    result.notes.append(f"{fail} tests not counted: p4c with BMv2 fails them")
    return result


def _tested(suite: Suite, program: Path) -> list[tuple[str, str | None, str | None]]:
    """Each test by name, with why p4c and BMv2 fail it, and why ours does."""
    names = [f"{program.stem}_{number}.stf" for number in range(1, suite.tests + 1)]
    flags: list[str | Path] = ["--target", "bmv2", "--arch", "v1model", "-I", suite.checkout.include, "--seed", "1"]
    flags += ["--max-tests", str(suite.tests), "--test-backend", "STF", "--out-dir", "."]
    made = suite.runner.run([suite.testgen, *flags, program], [content_hash(program)], names, GENERATOR_TIMEOUT_S).files
    if not made:
        return []
    theirs, ours = suite.p4c.compile(program), suite.ours.compile(program)
    outcomes: list[tuple[str, str | None, str | None]] = []
    with tempfile.TemporaryDirectory(prefix="conformance-testgen-") as folder:
        for name, text in made.items():
            test = Path(folder) / name
            test.write_text(text, encoding="utf-8")
            reference = pairs.bmv2(suite, theirs.json or "", test)
            if reference is not None:
                cause = None
            elif not ours.accepted or ours.json is None:
                cause = f"not compiled: {cause_of(ours.run)}"
            else:
                cause = stf.ours(suite, ours.json, test)
            outcomes.append((name.rpartition("_")[2].removesuffix(".stf"), reference, cause))
    return outcomes
