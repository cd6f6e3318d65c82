"""PI2 of a queue (the Classic queue of [RFC 9332 sec A])."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fairlane.p4src.schemes.pie.scheme import MAX_GAIN, gain
from fairlane.schemes.base import Counter, Entry, Parameters, Scheme, microseconds, parameter


@dataclass(frozen=True)
class Pi2(Parameters):
    """PIE's controller without its steps; arrivals are dropped with its probability squared.

    Values and ranges as for PIE; the defaults: the formulas of [RFC 9332 sec A.1] (figure 2), for a longest round trip of 0.1 s. ecn: packets of
    ECT(0) are marked instead of dropped, and those of ECT(1) with twice the probability, not squared.
    """

    target_s: float = parameter(0.015, 1e-5, 1, "s")
    update_s: float = parameter(0.015, 1e-3, 1, "s")
    alpha: float = parameter(0.15, 0.002, MAX_GAIN, "per second")
    beta: float = parameter(3.0, 0.002, MAX_GAIN, "per second")
    ecn: bool = False

    def entries(self, rate_bps: float) -> Iterable[Entry]:
        marking = {"marking": int(self.ecn)}
        yield Entry("AlsIngress.pi2.pi2_parameters", "set_decision", marking)
        yield Entry("AlsEgress.pi2.pi2_parameters", "set_pi2", controller(self.target_s, self.update_s, self.alpha, self.beta) | marking)


def controller(target_s: float, update_s: float, alpha: float, beta: float) -> dict[str, int]:
    """Arguments of the controller of `pi2_controller.p4`, whose gains are scaled as PIE's."""
    return {
        "target_us": microseconds(target_s),
        "update_us": microseconds(update_s),
        "alpha_per_us": gain(alpha),
        "beta_per_us": gain(beta),
    }


SCHEME = Scheme(
    "pi2",
    "PI2",
    Pi2,
    controls={"arrival": "Pi2Arrival pi2", "departure": "Pi2Departure pi2"},
    counters=(
        Counter("aqm_drops", ("AlsIngress.pi2.decision.drops", "AlsEgress.pi2.decision.drops"), cause="pi2"),
        Counter("marks", ("AlsIngress.pi2.decision.marks", "AlsEgress.pi2.decision.marks")),
    ),
    order=4,
)
