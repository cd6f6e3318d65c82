"""p4_16_samples: what p4c warns of by the flow of values. Does ours warn of it on the same line, and where does only ours?"""

from __future__ import annotations

import re

from tools.conformance.report import Count
from tools.conformance.suite import Suite

# Kinds that need an analysis: of unwritten variables, of headers that may be invalid.
KINDS = ("uninitialized-use", "uninitialized-out-param", "invalid-header", "uninitialized")
_OURS = re.compile(r"^(?P<file>[^\n]*?):(?P<line>\d+):\d+: warning\[(?P<kind>[^]\n]*)\]: ", re.MULTILINE)
_P4C = re.compile(r"^(?P<file>[^\n()]*)\((?P<line>\d+)\): ?\[--Wwarn=(?P<kind>[^]\n]*)\] warning: ", re.MULTILINE)


def places(pattern: re.Pattern[str], text: str) -> set[tuple[str, int, str]]:
    """File name, line and kind of each warning by flow. Messages without a place, of code that the compiler made itself, do not count."""
    found = {(m["file"].rsplit("/", 1)[-1], int(m["line"]), m["kind"]) for m in pattern.finditer(text)}
    return {place for place in found if place[2] in KINDS}


def count(suite: Suite) -> Count:
    """Of the samples for any architecture: these warnings come before the architecture matters."""
    result = Count("warnings", "samples with a warning by flow from p4c have ours on all its lines")
    both = dict.fromkeys(KINDS, 0)
    ours_only = dict.fromkeys(KINDS, 0)
    p4c_only = dict.fromkeys(KINDS, 0)
    programs = sorted(suite.checkout.samples.glob("*.p4"))
    for program, compiled in suite.map(lambda p: suite.ours.compile(p, (p.parent, suite.checkout.include)), programs):
        stored = suite.checkout.stored_messages(program)
        if stored is None:
            continue
        theirs = places(_P4C, stored)
        ours = places(_OURS, compiled.run.errors)
        for kind in KINDS:
            both[kind] += sum(p[2] == kind for p in ours & theirs)
            ours_only[kind] += sum(p[2] == kind for p in ours - theirs)
            p4c_only[kind] += sum(p[2] == kind for p in theirs - ours)
        if theirs:
            missing = sorted(theirs - ours, key=lambda p: p[1])
            result.add(suite.checkout.name(program), f"line {missing[0][1]}: {missing[0][2]}" if missing else None)
    for kind in KINDS:
        result.notes.append(f"{kind}, by line: {both[kind]} both, {ours_only[kind]} ours only, {p4c_only[kind]} p4c only")
    return result
