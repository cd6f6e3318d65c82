"""The kind of a row, one of five, from its verdicts, its `[ledger]`, and what the pass ran of it.

    holds           every expectation holds, and the file names neither a reading nor a contradiction
    reading         every expectation holds under the reading of the paper that `[ledger] reading` names
    contradiction   every ordinary expectation holds, and the paper contradicts itself: `[ledger] contradiction`, or an `[[expect]]
                    contradicts`, says why with arithmetic
    unexplained     some ordinary expectation does not hold
    not run in full the same, or an expectation has no value, in a pass that left out points, seeds or time of the row

An ordinary expectation is one without `contradicts`. An expectation with `contradicts` states a figure of the paper that cannot come out. It is
shown, and it never counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from fairlane.paper.judge import Verdict
from fairlane.paper.row import Ledger

Kind = Literal["holds", "reading", "contradiction", "unexplained", "not run in full"]

LEGEND: dict[Kind, str] = {
    "holds": "every expectation holds",
    "reading": "every expectation holds under a reading of the paper that the row names",
    "contradiction": "the paper contradicts itself; the row gives the arithmetic, and every other expectation holds",
    "unexplained": "an expectation does not hold, and neither a reading nor a contradiction explains it",
    "not run in full": "this pass left out points, seeds or time of the row, and an expectation does not hold in what it ran, or has no value there",
}
"""The five kinds, best first."""
EXPLAINED: frozenset[Kind] = frozenset(("holds", "reading", "contradiction"))


def ordinary(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """The verdicts that count."""
    return [v for v in verdicts if not v.expectation.contradicts]


def contradicted(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """The verdicts on figures that cannot come out."""
    return [v for v in verdicts if v.expectation.contradicts]


def kind(ledger: Ledger, verdicts: Sequence[Verdict], ran: str = "") -> Kind:
    """The kind of a row. ran: of `Row`; a pass that did not run a row in full cannot call it unexplained. A row without an ordinary expectation shows nothing, and is unexplained. If a file names a reading, the row is
    a contradiction only if `[ledger] contradiction` names that, too, and a figure stated to be impossible indeed does not come out."""
    counted, impossible = ordinary(verdicts), contradicted(verdicts)
    if not counted or not all(v.holds for v in counted):
        return "not run in full" if ran else "unexplained"
    if ledger.reading and not (ledger.contradiction and any(not v.holds for v in impossible)):
        return "reading"
    if ledger.contradiction or impossible:
        return "contradiction"
    return "holds"


def reason(ledger: Ledger, verdicts: Sequence[Verdict], ran: str = "") -> str:
    """Why a row is of its kind, as its file says it; empty only where it may be: for a row that holds."""
    match kind(ledger, verdicts, ran):
        case "holds":
            return ledger.differs
        case "reading":
            return ledger.reading
        case "contradiction":
            return ledger.contradiction or "; ".join(v.expectation.contradicts for v in contradicted(verdicts))
        case "unexplained":
            failing = "; ".join(v.expectation.name for v in ordinary(verdicts) if not v.holds)
            return ledger.differs or f"No cause is known. These expectations do not hold: {failing}"
        case "not run in full":
            return f"This pass ran {ran}."


def legend(kinds: Sequence[Kind]) -> dict[Kind, str]:
    """`LEGEND` for a page with rows of these kinds: a full pass has no use for "not run in full"."""
    return {k: meaning for k, meaning in LEGEND.items() if k != "not run in full" or k in kinds}


def count(kinds: Sequence[Kind]) -> str:
    """ "2 of 4 rows explained: holds 1, reading 1, contradiction 0, unexplained 2"; "not run in full" only where there are such rows."""
    explained = sum(k in EXPLAINED for k in kinds)
    return f"{explained} of {len(kinds)} rows explained: " + ", ".join(f"{k} {kinds.count(k)}" for k in legend(kinds))
