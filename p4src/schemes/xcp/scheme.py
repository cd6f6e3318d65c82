"""XCP, changes of rates (Katabi, Handley and Rohrs, "Congestion Control for High Bandwidth-Delay Product Networks", SIGCOMM 2002)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fairlane.schemes.base import DataHeader, Entry, Parameters, Scheme, parameter

MAX_RATE_BPS = 2**37
"""`xcp.p4` multiplies rates in 64 bits."""


@dataclass(frozen=True)
class Xcp(Parameters):
    """phi = alpha d S - beta Q, h = max(0, gamma y - |phi|) (Katabi et al. 2002, section 3.5). Defaults: the paper's; alpha and beta are stable for any
    round trip (theorem 1). interval_s: least time between updates; the paper's d, the mean round trip, where it is longer."""

    alpha: float = parameter(0.4, 0.001, 1)
    beta: float = parameter(0.226, 0.001, 1)
    gamma: float = parameter(0.1, 0.001, 1)
    interval_s: float = parameter(0.01, 1e-4, 1, "s")

    def entries(self, rate_bps: float) -> Iterable[Entry]:
        """rate_bps: C."""
        values = {
            "capacity_bps": min(round(rate_bps), MAX_RATE_BPS),
            "least_us": round(self.interval_s * 1e6),
            "alpha_fraction": round(self.alpha * 2**20),
            "beta_fraction": round(self.beta * 2**20),
            "gamma_fraction": round(self.gamma * 2**20),
        }
        yield Entry("AlsIngress.xcp.xcp_parameters", "set_xcp", values)


SCHEME = Scheme(
    "xcp",
    "XCP",
    Xcp,
    controls={"offered": "XcpArrival xcp", "after": "XcpDeparture xcp"},
    header=DataHeader("congestion_t congestion", profile=0x5843, words=4),
    everywhere=True,
    order=21,
)
