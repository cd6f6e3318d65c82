"""Every P4_16 file of testdata, for any architecture: our compiler neither crashes nor hangs."""

from __future__ import annotations

from tools.conformance.compilers import cause_of
from tools.conformance.report import Count
from tools.conformance.suite import Suite


def count(suite: Suite) -> Count:
    result = Count("panics", "P4_16 files of testdata are compiled or refused without a crash")
    for program, compiled in suite.map(lambda p: suite.ours.compile(p, (p.parent, suite.checkout.include)), suite.checkout.all_p4_16()):
        bad = compiled.run.crashed or compiled.run.timed_out
        result.add(str(program.relative_to(suite.checkout.root / "testdata")), cause_of(compiled.run) if bad else None)
    return result
