"""The samples for PSA that p4c's own tests run on psa_switch: accepted, with p4c's stored P4Info, and their packet tests passed.

No p4c is needed: the checkout holds P4Info and packet tests. p4c fails on some of these samples itself (`XFAIL_TESTS` in its
`backends/bmv2/CMakeLists.txt`); they count, for they are right."""

from __future__ import annotations

import re

from tools.conformance import p4info, stf
from tools.conformance.compilers import cause_of
from tools.conformance.report import Count
from tools.conformance.suite import Suite


def count(suite: Suite) -> list[Count]:
    accepted = Count("psa samples", "samples for PSA are accepted")
    equal = Count("psa p4info", "P4Info are equal to the stored ones of p4c")
    passed = Count("psa stf", "packet tests pass with our compiler on our switch")
    compiled = suite.map(suite.ours.compile, suite.checkout.psa_samples())
    for program, ours in compiled:
        name = suite.checkout.name(program)
        accepted.add(name, None if ours.accepted else cause_of(ours.run))
        known = suite.checkout.stored_p4info(program)
        if ours.accepted and known is not None:
            equal.add(name, p4info.difference(known, ours.p4info))
        test = program.with_suffix(".stf")
        if test.is_file():
            passed.add(name, stf.ours(suite, ours.json, test) if ours.accepted and ours.json else f"not compiled: {cause_of(ours.run)}")
    names = {program.name for program, _ in compiled}
    fails = sorted(names & expected_failures(suite))
    accepted.notes.append(f"p4c expects {len(fails)} of them to fail with p4c-bm2-psa and psa_switch: {', '.join(fails)}")
    return [accepted, equal, passed]


def expected_failures(suite: Suite) -> set[str]:
    """The programs that p4c's own tests on BMv2 expect to fail."""
    listed = suite.checkout.root / "backends/bmv2/CMakeLists.txt"
    if not listed.is_file():
        return set()
    found = re.search(r"set *\(XFAIL_TESTS(.*?)\n\)", listed.read_text(encoding="utf-8"), re.DOTALL)
    return set(re.findall(r"^ *testdata/p4_16_samples/(\S+\.p4)", found[1], re.MULTILINE)) if found else set()
