"""v1model samples that p4c-bm2-ss accepts: does ours?"""

from __future__ import annotations

from tools.conformance.compilers import cause_of
from tools.conformance.report import Count
from tools.conformance.suite import Suite


def count(suite: Suite) -> Count:
    result = Count("samples", "v1model samples that p4c accepts are accepted")
    programs = suite.checkout.v1model_samples()
    silent = refused = 0
    for _, theirs in suite.map(suite.p4c.compile, programs):
        if theirs.run.status != 0:
            refused += 1
        elif not theirs.accepted:
            silent += 1
    accepted = suite.accepted_by_p4c()
    for program, ours in suite.map(suite.ours.compile, accepted):
        result.add(suite.checkout.name(program), None if ours.accepted else cause_of(ours.run))
    rest = [p for p in programs if p not in set(accepted)]
    also = sum(not ours.accepted for _, ours in suite.map(suite.ours.compile, rest))
    result.notes.append(
        f"{len(programs)} samples include v1model.p4; p4c refuses {refused}, and accepts {silent} without writing a program "
        f"(no `main`); of these {len(rest)} ours refuses {also}"
    )
    return result
