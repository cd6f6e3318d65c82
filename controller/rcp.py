"""Parameters of RCP (p4src/rcp.p4): seconds and real numbers in, its integers out."""

from __future__ import annotations

from dataclasses import dataclass

MAX_RATE_BPS = 2**39
"""`rcp.p4` multiplies rates in 64 bits."""


@dataclass(frozen=True)
class Rcp:
    """R <- R [1 + (T/d) (alpha (C - y) - beta q/d) / C] (Dukkipati et al. 2005, equation 2).

    interval_s: T, in [1e-4, 1]. alpha, beta: in [0.001, 4]; the defaults: ns-2's `rcp.cc` has 0.4 for both.
    """

    interval_s: float = 0.01
    alpha: float = 0.4
    beta: float = 0.4

    def __post_init__(self) -> None:
        if not 1e-4 <= self.interval_s <= 1:
            raise ValueError(f"interval_s: RCP needs 0.0001 to 1 s, got {self.interval_s:g} s")
        for key, gain in (("alpha", self.alpha), ("beta", self.beta)):
            if not 0.001 <= gain <= 4:
                raise ValueError(f"{key}: RCP needs 0.001 to 4, got {gain:g}")

    def action_parameters(self, rate_bps: int) -> dict[str, int]:
        """Arguments of the P4 action `set_rcp`. rate_bps: C."""
        capacity = min(rate_bps, MAX_RATE_BPS)
        return {
            "capacity_bps": capacity,
            "period_us": round(self.interval_s * 1e6),
            "alpha_fraction": round(self.alpha * 2**20),
            "beta_fraction": round(self.beta * 2**20),
            "us_of_a_byte": round(2**40 * 8e6 / capacity),
        }
