"""Parameters of XCP (p4src/xcp.p4): seconds and real numbers in, its integers out."""

from __future__ import annotations

from dataclasses import dataclass

MAX_RATE_BPS = 2**37
"""`xcp.p4` multiplies rates in 64 bits."""


@dataclass(frozen=True)
class Xcp:
    """phi = alpha d S - beta Q, h = max(0, gamma y - |phi|) (Katabi et al. 2002, section 3.5). Defaults: the paper's; alpha and beta are stable for any
    round trip (theorem 1).

    alpha, beta, gamma: in [0.001, 1]. interval_s: least time between updates, in [1e-4, 1]; the paper's d, the mean round trip, where it is longer.
    """

    alpha: float = 0.4
    beta: float = 0.226
    gamma: float = 0.1
    interval_s: float = 0.01

    def __post_init__(self) -> None:
        for key, gain in (("alpha", self.alpha), ("beta", self.beta), ("gamma", self.gamma)):
            if not 0.001 <= gain <= 1:
                raise ValueError(f"{key}: XCP needs 0.001 to 1, got {gain:g}")
        if not 1e-4 <= self.interval_s <= 1:
            raise ValueError(f"interval_s: XCP needs 0.0001 to 1 s, got {self.interval_s:g} s")

    def action_parameters(self, rate_bps: int) -> dict[str, int]:
        """Arguments of the P4 action `set_xcp`. rate_bps: C."""
        return {
            "capacity_bps": min(rate_bps, MAX_RATE_BPS),
            "least_us": round(self.interval_s * 1e6),
            "alpha_fraction": round(self.alpha * 2**20),
            "beta_fraction": round(self.beta * 2**20),
            "gamma_fraction": round(self.gamma * 2**20),
        }
