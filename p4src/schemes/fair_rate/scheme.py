"""The fair rate of the adaptive load service, R_f = b U_l / n_conn [ALS sec 3.1], which each port writes into senders' control packets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fairlane.schemes.base import Column, Entry, Parameters, PortInterval, PortLoop, Scheme


def fair_rate_bps(bandwidth_bps: float, utilisation_target: float, connections: int) -> int:
    """R_f in bit/s.

    bandwidth_bps: b, the bandwidth of the port, > 0. utilisation_target: U_l in (0, 1], 0.9 in the paper.
    connections: n_conn >= 0, seen in the last observation interval; a port without connections offers the rate of a single
    connection, since the next sender will be alone.

    Raises ValueError for values outside these ranges.
    """
    if not bandwidth_bps > 0:
        raise ValueError(f"bandwidth must be positive, got {bandwidth_bps} bit/s")
    if not 0 < utilisation_target <= 1:
        raise ValueError(f"utilisation target must be in (0, 1], got {utilisation_target}")
    if connections < 0:
        raise ValueError(f"connections must not be negative, got {connections}")
    return int(bandwidth_bps * utilisation_target / max(connections, 1))  # [ALS sec 3.1]


class FairRateLoop(PortLoop):
    """R_f and U of a port."""

    tables = (Entry("AlsEgress.fair_rate.fair_rate", "set_fair_rate"),)
    columns = (Column("fair_rate_bps"),)

    def __init__(self, settings: None, rate_bps: float, utilisation_target: float) -> None:
        self._rate_bps, self._utilisation_ppm = fair_rate_bps(rate_bps, utilisation_target, 0), 0

    def close(self, seen: PortInterval) -> None:
        self._rate_bps = fair_rate_bps(seen.rate_bps, seen.utilisation_target, seen.connections)
        self._utilisation_ppm = seen.utilisation_ppm

    def values(self) -> Mapping[str, int]:
        return {"rate_bps": self._rate_bps, "utilisation_ppm": self._utilisation_ppm}

    def recorded(self, totals: Mapping[str, tuple[int, int]]) -> Mapping[str, int]:
        return {"fair_rate_bps": self._rate_bps}


@dataclass(frozen=True)
class FairRate(Parameters):
    """It has none here: `utilisation_target` and `interval_s` of [control] are those of the whole control plane."""


SCHEME = Scheme(
    "fair_rate",
    "fair rate",
    FairRate,
    controls={"sent": "FairRate fair_rate"},
    loop=FairRateLoop,
    standing=True,
    everywhere=True,
    order=40,
)
