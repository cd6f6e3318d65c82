"""Parameters of ABC (p4src/abc.p4): seconds and real numbers in, its integers out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Abc:
    """tr = eta mu - (mu / delta) max(x - d_t, 0) (Goyal et al. 2020, equation 1). Defaults: the authors' code.

    eta: share of the link to aim at, in [0.5, 1]. delta_s: time in which a queue above the threshold shall go, in [0.001, 10]; stable above
    2/3 of the round trip (theorem 1). threshold_s: d_t, delay that is let be, in [0, 10]. window_s: over which rates are measured, in [0.001, 1].
    told: the controller tells the links' rates, each observation interval; otherwise switches measure them.
    """

    eta: float = 0.98
    delta_s: float = 0.133
    threshold_s: float = 0.05
    window_s: float = 0.02
    told: bool = False

    def __post_init__(self) -> None:
        for key, value, low, high in (
            ("eta", self.eta, 0.5, 1.0),
            ("delta_s", self.delta_s, 0.001, 10.0),
            ("threshold_s", self.threshold_s, 0.0, 10.0),
            ("window_s", self.window_s, 0.001, 1.0),
        ):
            if not low <= value <= high:
                raise ValueError(f"{key}: ABC needs {low:g} to {high:g}, got {value:g}")

    def action_parameters(self, rate_bps: int) -> dict[str, int]:
        """Arguments of the P4 action `set_abc`. rate_bps: mu, where it is told; from 10 kb/s."""
        return {
            "eta_fraction": round(self.eta * 2**16),
            "per_delta_us": round(2**32 / (self.delta_s * 1e6)),
            "threshold_us": round(self.threshold_s * 1e6),
            "period_us": round(self.window_s * 1e6 / 4),
            "us_of_a_byte": min(round(2**24 * 8e6 / rate_bps), 2**34) if self.told else 0,
        }
