"""What a run is summed up in: figures of its flows, kinds of flow and links, and the results of its checks."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fairlane.experiments.model import Check


@dataclass(frozen=True)
class FlowFigures:
    name: str
    kind: str
    goodput_bps: float
    fair_share_bps: float
    sent_packets: int
    lost_packets: int

    @property
    def loss_fraction(self) -> float:
        return self.lost_packets / self.sent_packets if self.sent_packets else 0.0


@dataclass(frozen=True)
class KindFigures:
    """Over all flows of a kind. share: of the goodput of all flows, 0 to 1. jain_index: of their goodputs, 1 when all are equal."""

    kind: str
    flows: int
    mean_goodput_bps: float
    share: float
    mean_loss_fraction: float
    jain_index: float


@dataclass(frozen=True)
class LinkFigures:
    """marks: packets that RED marked; None where it does not mark."""

    name: str
    rate_bps: float
    utilisation: float
    mean_queue_packets: float
    drops: dict[str, int]
    marks: int | None = None


@dataclass(frozen=True)
class CheckResult:
    check: Check
    value: float

    @property
    def holds(self) -> bool:
        """A value that could not be measured (not a number) does not hold."""
        return self.check.low <= self.value <= self.check.high


@dataclass(frozen=True)
class Figures:
    """window_s: what all of it is over, in seconds since the run began (checks that speak of joins: the whole run)."""

    window_s: tuple[float, float]
    flows: list[FlowFigures]
    links: list[LinkFigures]
    checks: list[CheckResult]

    @property
    def kinds(self) -> list[KindFigures]:
        """In the order of the flows."""
        return [_kind(kind, self.flows) for kind in dict.fromkeys(f.kind for f in self.flows)]


def _kind(kind: str, flows: list[FlowFigures]) -> KindFigures:
    rates = [f.goodput_bps for f in flows if f.kind == kind]
    losses = [f.loss_fraction for f in flows if f.kind == kind]
    total = sum(f.goodput_bps for f in flows)
    return KindFigures(kind, len(rates), mean(rates), sum(rates) / total if total else 0.0, mean(losses), jain_index(rates))


def jain_index(values: list[float]) -> float:
    """(sum x)^2 / (n sum x^2): 1 when all are equal, 1/n when one has all; NaN when all are zero."""
    squares = sum(v * v for v in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else math.nan


def mean(values: list[float]) -> float:
    """Not a number where there are no values."""
    return sum(values) / len(values) if values else math.nan
