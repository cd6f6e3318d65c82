"""Approximate fair dropping (Pan, Breslau, Prabhakar and Shenker, "Approximate Fairness through Differential Dropping", 2003)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fairlane.schemes.base import Counter, Entry, Parameters, Scheme, parameter

INTERVAL_US = 1 << 17
"""Over which afd.p4 counts a flow's bytes."""
PACKET_BYTES = 1000
"""The packet in which alpha and beta count."""


@dataclass(frozen=True)
class Afd(Parameters):
    """Arrivals of a flow that sent more than a fair share are dropped, with a probability that leaves it the share; others are not.

    target_packets: length of the queue that the share is set for. alpha, beta: by how many packets in an interval the share falls for each packet
    that the queue is longer, at the update before and at this one: share += alpha (queue_before - target) - beta (queue - target). The defaults of
    both are the paper's. ecn: packets of an ECN-capable transport are marked instead of dropped.
    """

    target_packets: int = parameter(20, 1, 100_000, "packets")
    alpha: float = parameter(1.7, 0, 100)
    beta: float = parameter(1.8, 0.001, 100)
    ecn: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.alpha >= self.beta:
            raise ValueError(f"alpha: must be less than beta, which is {self.beta:g}, got {self.alpha:g}")

    def entries(self, rate_bps: float) -> Iterable[Entry]:
        values = {
            "target_packets": self.target_packets,
            "alpha_bytes": round(self.alpha * PACKET_BYTES),
            "beta_bytes": round(self.beta * PACKET_BYTES),
            # No share is larger than what the link sends in an interval.
            "most_bytes": min(2**32 - 1, max(2 * PACKET_BYTES, round(rate_bps * INTERVAL_US / 8e6))),
            "marking": int(self.ecn),
        }
        yield Entry("AlsIngress.afd.afd_parameters", "set_afd", values)
        yield Entry("AlsEgress.afd.afd_ports", "watch", {})


SCHEME = Scheme(
    "afd",
    "AFD",
    Afd,
    controls={"arrival": "AfdArrival afd", "departure": "AfdDeparture afd"},
    counters=(Counter("aqm_drops", ("AlsIngress.afd.drops",), cause="afd"), Counter("marks", ("AlsIngress.afd.marks",))),
)
