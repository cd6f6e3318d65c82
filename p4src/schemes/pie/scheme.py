"""PIE of a queue [RFC 8033]."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fairlane.schemes.base import MAX_DELAY_S, Counter, Entry, Parameters, Scheme, microseconds, parameter

MAX_GAIN = 15
"""`pie.p4` and `pi2_controller.p4` have gains as 32-bit integers x 2^-48 per microsecond."""


@dataclass(frozen=True)
class Pie(Parameters):
    """Arrivals are dropped with a probability that a controller of the queue's delay sets.

    target_s: in [1e-5, 1]. update_s: between updates of the probability, in [0.001, 1]. alpha, beta: gains of the delay's distance from the
    target and of its growth, per second, in [0.002, 15]. burst_s: how long a queue that was idle may grow without drops, in [0, 1000]. The
    defaults: [RFC 8033 sec 4.2] (target), [RFC 8033 sec 4.4] (burst), [RFC 8033 sec A] (gains). ecn: packets of an ECN-capable transport
    are marked instead of dropped, while the probability is below 0.1.
    """

    target_s: float = parameter(0.015, 1e-5, 1, "s")
    update_s: float = parameter(0.015, 1e-3, 1, "s")
    alpha: float = parameter(0.125, 0.002, MAX_GAIN, "per second")
    beta: float = parameter(1.25, 0.002, MAX_GAIN, "per second")
    burst_s: float = parameter(0.15, 0, MAX_DELAY_S, "s")
    ecn: bool = False

    def entries(self, rate_bps: float) -> Iterable[Entry]:
        target_us, marking = microseconds(self.target_s), int(self.ecn)
        values = {
            "target_us": target_us,
            "update_us": microseconds(self.update_s),
            "alpha_per_us": gain(self.alpha),
            "beta_per_us": gain(self.beta),
            "burst_us": microseconds(self.burst_s),
            "marking": marking,
        }
        yield Entry("AlsIngress.pie.pie_parameters", "set_decision", {"target_us": target_us, "marking": marking})
        yield Entry("AlsEgress.pie.pie_parameters", "set_pie", values)


def gain(per_second: float) -> int:
    """Per microsecond x 2^48."""
    return round(per_second * 2**48 / 1e6)


SCHEME = Scheme(
    "pie",
    "PIE",
    Pie,
    controls={"arrival": "PieArrival pie", "departure": "PieDeparture pie"},
    counters=(
        Counter("aqm_drops", ("AlsIngress.pie.decision.drops", "AlsEgress.pie.decision.drops"), cause="pie"),
        Counter("marks", ("AlsIngress.pie.decision.marks", "AlsEgress.pie.decision.marks")),
    ),
    order=3,
)
