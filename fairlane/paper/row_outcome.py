"""The results of a row's runs, and the verdict on each expectation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fairlane.paper import kinds
from fairlane.paper.judge import Verdict
from fairlane.paper.row import Row


@dataclass(frozen=True)
class Outcome:
    """results: of each point, its seeds' results in the order of seeds. took_s: processor time of its points."""

    row: Row
    results: dict[tuple[tuple[str, Any], ...], list[dict[str, Any]]]
    verdicts: tuple[Verdict, ...]
    took_s: float

    @property
    def holds(self) -> bool:
        """Every ordinary expectation does that was measured; a row that expects nothing, or measured nothing, holds nothing."""
        counted = [v for v in kinds.ordinary(self.verdicts) if v.measured or not self.row.ran]
        return bool(counted) and all(v.holds for v in counted)

    @property
    def kind(self) -> kinds.Kind:
        """Which of five things the row is."""
        return kinds.kind(self.row.ledger, self.verdicts, self.row.ran)
