"""RCP, one rate for all flows of a port (Dukkipati, Kobayashi, Zhang-Shen and McKeown, "Processor Sharing Flows in the Internet", 2005)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fairlane.schemes.base import DataHeader, Entry, Parameters, Scheme, parameter

MAX_RATE_BPS = 2**39
"""`rcp.p4` multiplies rates in 64 bits."""


@dataclass(frozen=True)
class Rcp(Parameters):
    """R <- R [1 + (T/d) (alpha (C - y) - beta q/d) / C] (Dukkipati et al. 2005, equation 2).

    interval_s: T. alpha, beta: the defaults are ns-2's, whose `rcp.cc` has 0.4 for both.
    """

    interval_s: float = parameter(0.01, 1e-4, 1, "s")
    alpha: float = parameter(0.4, 0.001, 4)
    beta: float = parameter(0.4, 0.001, 4)

    def entries(self, rate_bps: float) -> Iterable[Entry]:
        """rate_bps: C."""
        capacity = min(round(rate_bps), MAX_RATE_BPS)
        values = {
            "capacity_bps": capacity,
            "period_us": round(self.interval_s * 1e6),
            "alpha_fraction": round(self.alpha * 2**20),
            "beta_fraction": round(self.beta * 2**20),
            "us_of_a_byte": round(2**40 * 8e6 / capacity),
        }
        yield Entry("AlsIngress.rcp.rcp_parameters", "set_rcp", values)


SCHEME = Scheme(
    "rcp",
    "RCP",
    Rcp,
    controls={"offered": "RcpArrival rcp", "after": "RcpDeparture rcp"},
    header=DataHeader("rate_t rate", profile=0x5243, words=3),
    everywhere=True,
    order=20,
)
