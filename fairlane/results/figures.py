"""The summary of a run: figures of its flows, kinds of flow and links, and the results of its checks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fairlane.arithmetic import square, total
from fairlane.experiments.model import Check
from fairlane.results import completions
from fairlane.results.delays import NO_DELAYS, Delays
from fairlane.results.queries import QueryFigures


@dataclass(frozen=True)
class FlowFigures:
    """Over the part of the window in which the flow was active. A flow that was not active in it has no rate and no share there: not a number, in no mean
    and in no index. completion_s: from the flow's start until its last byte was acknowledged, in or before the window; not a number where it did not end by
    itself. slowdown: completion_s over the time that the file needs in an empty network. delay, rtt: one-way delays and round trips of its packets."""

    name: str
    kind: str
    goodput_bps: float
    fair_share_bps: float
    sent_packets: int
    lost_packets: int
    completion_s: float = math.nan
    slowdown: float = math.nan
    delay: Delays = NO_DELAYS
    rtt: Delays = NO_DELAYS

    @property
    def was_active(self) -> bool:
        return not math.isnan(self.goodput_bps)

    @property
    def loss_fraction(self) -> float:
        """Not a number where nothing was sent."""
        return self.lost_packets / self.sent_packets if self.sent_packets else math.nan


@dataclass(frozen=True)
class KindFigures:
    """Over the flows of a kind that were active in the window. flows: their number. share: of the goodput of all flows, 0 to 1. jain_index: of their
    goodputs, 1 when all are equal. complete: flows that ended by themselves, whenever; completion_s, slowdown: theirs, by percentile ("p50"), empty without any. delay, rtt: of all their packets."""

    kind: str
    flows: int
    mean_goodput_bps: float
    share: float
    mean_loss_fraction: float
    jain_index: float
    complete: int = 0
    completion_s: Mapping[str, float] = field(default_factory=dict)
    slowdown: Mapping[str, float] = field(default_factory=dict)
    delay: Delays = NO_DELAYS
    rtt: Delays = NO_DELAYS


@dataclass(frozen=True)
class Overload:
    """start_s: since the run began. duration_s: in overload, until the report. Both as exact as the controller's interval."""

    start_s: float
    duration_s: float


@dataclass(frozen=True)
class LinkFigures:
    """drops: those that happened, by cause; None of a cause that nobody counted. marks: packets that the queue marked; None where it does not mark. overloads:
    over the whole run; None where the queue reports none. waits: how long packets waited, by queue."""

    name: str
    rate_bps: float
    utilisation: float
    mean_queue_packets: float
    drops: dict[str, int | None]
    marks: int | None = None
    overloads: list[Overload] | None = None
    waits: Mapping[int, Delays] = field(default_factory=dict)


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
    """window_s: what all of it is over, in seconds since the run began (checks that speak of joins, and queries: the whole run). impairments: of
    each direction of a link that loses or impairs frames, as `fairlane.results.impairments.of_window` has them. wrong_checksums: as of `Series`."""

    window_s: tuple[float, float]
    flows: list[FlowFigures]
    links: list[LinkFigures]
    checks: list[CheckResult]
    queries: Sequence[QueryFigures] = ()
    impairments: list[dict[str, Any]] = field(default_factory=list)
    wrong_checksums: Mapping[str, int] = field(default_factory=dict)

    @property
    def kinds(self) -> list[KindFigures]:
        """In the order of the flows."""
        return [_kind(kind, self.flows) for kind in dict.fromkeys(f.kind for f in self.flows)]


def _kind(kind: str, flows: list[FlowFigures]) -> KindFigures:
    active = [f for f in flows if f.was_active]
    rates = [f.goodput_bps for f in active if f.kind == kind]
    losses = [f.loss_fraction for f in active if f.kind == kind and f.sent_packets]
    all_bps = total(f.goodput_bps for f in active)
    complete = [f for f in flows if f.kind == kind and not math.isnan(f.completion_s)]
    return KindFigures(
        kind,
        len(rates),
        mean(rates),
        total(rates) / all_bps if rates and all_bps else math.nan,
        mean(losses),
        jain_index(rates),
        len(complete),
        completions.percentiles([f.completion_s for f in complete]),
        completions.percentiles([f.slowdown for f in complete]),
        Delays.together(f.delay for f in flows if f.kind == kind),
        Delays.together(f.rtt for f in flows if f.kind == kind),
    )


def jain_index(values: list[float]) -> float:
    """(sum x)^2 / (n sum x^2): 1 when all are equal, 1/n when one has all; NaN when all are zero."""
    squares = total(v * v for v in values)
    return square(total(values)) / (len(values) * squares) if squares else math.nan


def mean(values: list[float]) -> float:
    """Not a number where there are no values."""
    return total(values) / len(values) if values else math.nan
