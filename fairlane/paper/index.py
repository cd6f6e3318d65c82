"""`index.json`, next to the page: each row's kind, how many expectations hold, and the reason. For programs, and for the page in the docs.

    {"version": "1.2", "commit": "7d3b830", "modified": false, "quick": false, "made": "2026-01-31 12:00:00 UTC", "processor_s": 5400.0,
     "kinds": {"holds": 1, "reading": 0, "contradiction": 0, "unexplained": 0, "not run in full": 0},
     "rows": [{"row": "rap-4", "ledger": "RAP-4, RAP-6", "kind": "holds", "expectations": 4, "held": 4, "reason": "", ...}]}

`expectations` and `held` count ordinary expectations; each is one of `verdicts`, whose `not_at` names the points that fail; `measured` is false where the
pass ran none of its points. `contradicted`
lists the others: figures of the paper that cannot come out.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fairlane.paper import kinds, sample, words
from fairlane.paper.judge import Verdict
from fairlane.paper.row_outcome import Outcome
from fairlane.results import made, result_folder

FILE = "index.json"


def entry(outcome: Outcome) -> dict[str, Any]:
    """One of `rows`."""
    row, counted = outcome.row, kinds.ordinary(outcome.verdicts)
    return {
        "row": row.id,
        "ledger": row.ledger.row,
        "title": row.title,
        "paper": f"{row.paper.reference} {row.paper.figure}",
        "kind": outcome.kind,
        "expectations": len(counted),
        "held": sum(v.holds for v in counted),
        "reason": kinds.reason(row.ledger, outcome.verdicts, row.ran),
        "differs": row.ledger.differs,
        "ruled_out": list(row.ledger.ruled_out),
        "verdicts": [_verdict(outcome, v) for v in counted],
        "contradicted": [{**_verdict(outcome, v), "why": v.expectation.contradicts} for v in kinds.contradicted(outcome.verdicts)],
        "seeds": list(row.sweep.seeds),
        "runs": len(row.sweep.points),
        "processor_s": round(outcome.took_s, 1),
        "sample": sample.kept(outcome),
    }


def _verdict(outcome: Outcome, verdict: Verdict) -> dict[str, Any]:
    program = outcome.row.reference.program if outcome.row.reference else ""
    return {
        "name": verdict.expectation.name,
        "paper": verdict.expectation.paper,
        "expected": words.expected(verdict.expectation, program),
        "found": words.found(verdict),
        "holds": verdict.holds,
        "measured": verdict.measured,
        "within_noise": words.noise(verdict),
        "not_at": [{"where": f.where, "value": f.value} for f in verdict.findings if not f.holds]
        if not verdict.holds or verdict.expectation.at_least
        else [],
    }


def write(outcomes: Sequence[Outcome], folder: Path, quick: bool) -> Path:
    """The file in `folder`; it appears whole."""
    of = [o.kind for o in outcomes]
    name, modified = made.commit()
    values = {
        "version": version("fairlane"),
        "commit": name,
        "modified": modified,
        "quick": quick,
        "made": time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()),
        "processor_s": round(sum(o.took_s for o in outcomes), 1),
        "kinds": {k: of.count(k) for k in kinds.LEGEND},
        "rows": [entry(o) for o in outcomes],
    }
    return result_folder.write_whole(folder / FILE, result_folder.json_text(values))
