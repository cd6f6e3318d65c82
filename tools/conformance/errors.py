"""p4_16_errors: programs that p4c refuses. Does ours refuse them, and on the same line?"""

from __future__ import annotations

from tools.conformance.compilers import cause_of, our_errors, p4c_errors
from tools.conformance.report import Count
from tools.conformance.suite import Suite

# These say nothing about what is wrong with the program: most programs of the folder have no `main`, or are for another architecture.
_BESIDE_THE_POINT = ("has no `main`", "`main` is a", "cannot find the file")


def count(suite: Suite) -> Count:
    result = Count("errors", "of p4_16_errors are refused for an error in them")
    panics: list[str] = []
    placed = first_placed = same_first = 0
    for program, compiled in suite.map(lambda p: suite.ours.compile(p, (p.parent, suite.checkout.include)), suite.checkout.errors()):
        name = suite.checkout.name(program)
        if compiled.run.crashed or compiled.run.timed_out:
            panics.append(name)
            result.add(name, cause_of(compiled.run))
            continue
        errors = [e for e in our_errors(compiled.run.errors) if not any(beside in e.text for beside in _BESIDE_THE_POINT)]
        theirs = p4c_errors(suite.checkout.stored_messages(program) or "")
        said = f"[{theirs[0].code}] {theirs[0].text}" if theirs else "p4c has no error stored"
        result.add(name, None if errors and compiled.run.status != 0 else said)
        theirs_placed = [e.line for e in theirs if e.line]
        if errors and theirs_placed:
            placed += 1
            lines = {e.line for e in errors}
            first_placed += theirs_placed[0] in lines
            same_first += bool(lines & set(theirs_placed))
    result.notes += [
        f"{len(panics)} crashed or ran out of time{': ' + ', '.join(panics) if panics else ''}",
        f"of {placed} refused by both with a line: {first_placed} have an error of ours on the line of p4c's first, {same_first} on one of p4c's lines",
    ]
    return result
