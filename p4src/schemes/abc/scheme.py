"""ABC, accelerate or brake (Goyal, Agarwal, Netravali, Alizadeh and Balakrishnan, "ABC: A Simple Explicit Congestion Controller for Wireless
Networks", NSDI 2020)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fairlane.schemes.base import Entry, Parameters, Scheme, parameter


@dataclass(frozen=True)
class Abc(Parameters):
    """tr = eta mu - (mu / delta) max(x - d_t, 0) (Goyal et al. 2020, equation 1). Defaults: the authors' code.

    eta: share of the link to aim at. delta_s: time in which a queue above the threshold shall go; stable above 2/3 of the round trip (theorem 1).
    threshold_s: d_t, delay that is let be. window_s: over which rates are measured. told: the controller tells the links' rates, each
    observation interval; otherwise switches measure them.
    """

    eta: float = parameter(0.98, 0.5, 1)
    delta_s: float = parameter(0.133, 0.001, 10, "s")
    threshold_s: float = parameter(0.05, 0, 10, "s")
    window_s: float = parameter(0.02, 0.001, 1, "s")
    told: bool = False

    def entries(self, rate_bps: float) -> Iterable[Entry]:
        """rate_bps: mu, where it is told; from 10 kb/s."""
        values = {
            "eta_fraction": round(self.eta * 2**16),
            "per_delta_us": round(2**32 / (self.delta_s * 1e6)),
            "threshold_us": round(self.threshold_s * 1e6),
            "period_us": round(self.window_s * 1e6 / 4),
            "us_of_a_byte": min(round(2**24 * 8e6 / rate_bps), 2**34) if self.told else 0,
        }
        yield Entry("AlsEgress.abc.abc_parameters", "set_abc", values)


SCHEME = Scheme("abc", "ABC", Abc, controls={"sent": "Abc abc"}, everywhere=True, order=22)
