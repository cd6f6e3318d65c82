"""CoDel of a queue [RFC 8289]."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fairlane.schemes.base import MAX_DELAY_S, Counter, Entry, Parameters, Scheme, microseconds, parameter


@dataclass(frozen=True)
class Codel(Parameters):
    """Packets are dropped while all of them wait longer than a target for an interval.

    target_s: in [1e-6, interval_s). interval_s: about the longest round trip, at most 1000. The defaults: [RFC 8289 sec 4.3] and
    [RFC 8289 sec 4.2]. ecn: packets of an ECN-capable transport are marked instead of dropped.
    """

    target_s: float = parameter(0.005, 1e-6, MAX_DELAY_S, "s")
    interval_s: float = parameter(0.1, 1e-6, MAX_DELAY_S, "s")
    ecn: bool = False

    def __post_init__(self) -> None:
        if not 1e-6 <= self.target_s < self.interval_s <= MAX_DELAY_S:
            raise ValueError(
                f"target_s: CoDel needs 1e-6 <= target_s < interval_s <= {MAX_DELAY_S:g}, got {self.target_s:g} s and {self.interval_s:g} s"
            )

    def entries(self, rate_bps: float) -> Iterable[Entry]:
        values = {"target_us": microseconds(self.target_s), "interval_us": microseconds(self.interval_s), "marking": int(self.ecn)}
        yield Entry("AlsEgress.codel.codel_parameters", "set_codel", values)


SCHEME = Scheme(
    "codel",
    "CoDel",
    Codel,
    controls={"departure": "Codel codel"},
    counters=(Counter("aqm_drops", ("AlsEgress.codel.drops",), cause="codel"), Counter("marks", ("AlsEgress.codel.marks",))),
    order=2,
)
