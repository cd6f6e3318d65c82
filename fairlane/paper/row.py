"""A row of the ledger: a study (`fairlane.studies.study`) of a paper's figure or table, with its expectations.

The expectations are described in `fairlane.paper.judge`, the keys of `[ledger]` under `Ledger`.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairlane.experiments.model import Paper
from fairlane.paper.judge import Expectation, check_arithmetic
from fairlane.paper.reference import Reference
from fairlane.studies.study import Study


@dataclass(frozen=True)
class Ledger:
    """The row's entry in the ledger. differs: differences from the paper, and their reasons. reading: the reading of the paper under which the row
    holds. contradiction: the arithmetic by which the paper contradicts itself. ruled_out: for a row without an explanation, one sentence for each
    bounded experiment. reference: a file next to the experiment's, with another program's results at the same points (`fairlane.paper.reference`).
    `fairlane.paper.kinds` computes the row's kind from these. An empty text removes an inherited one."""

    row: str
    differs: str = ""
    reading: str = ""
    contradiction: str = ""
    ruled_out: tuple[str, ...] = ()
    reference: str = ""

    def __post_init__(self) -> None:
        check_arithmetic("contradiction", self.contradiction)
        if not all(text.strip() for text in self.ruled_out):
            raise ValueError("ruled_out: say in each entry which experiment ruled out which cause; one is empty")


@dataclass(frozen=True, kw_only=True)
class Row(Study):
    """One experiment file as the report sees it."""

    paper: Paper
    ledger: Ledger
    expectations: tuple[Expectation, ...]
    open: tuple[dict[str, str], ...]
    reference: Reference | None = None
    ran: str = ""
    """What a pass runs of the row, where that is less than its file says: "1 of 4 points, 2 of 5 seeds, 60 s of time"."""
