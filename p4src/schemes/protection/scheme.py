"""Flow protection, which [ALS sec 5] asks of routers (docs/flow-protection.md). `limits` has the equations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fairlane.p4src.schemes.fair_rate.scheme import fair_rate_bps
from fairlane.p4src.schemes.protection.limits import allowance_bps, limits, share_bps
from fairlane.schemes.base import Column, Entry, Parameters, PortInterval, PortLoop, Scheme

WITHIN_SHARE, HELD_BACK = "within_share", "held_back"


class Limits(PortLoop):
    """F and A of a port's connections."""

    # Packets to one port, and copies.
    tables = tuple(
        Entry(f"{control}.protection.hold.limits_of_port", "set_limits", key_name="port") for control in ("AlsIngress", "AlsEgress")
    )
    counters = (WITHIN_SHARE, HELD_BACK)
    columns = (
        Column("share_bps"),
        Column("within_share_bytes", total=True),
        Column("held_packets", total=True, cause="held"),
        Column("held_bytes", total=True),
    )

    def __init__(self, settings: Protection, rate_bps: float, utilisation_target: float) -> None:
        self._share_bps: float = fair_rate_bps(rate_bps, utilisation_target, 0)
        self._rate_bps, self._target = rate_bps, utilisation_target

    def close(self, seen: PortInterval) -> None:
        self._rate_bps = seen.rate_bps
        self._share_bps = share_bps(
            self._share_bps,
            fair_rate_bps(seen.rate_bps, seen.utilisation_target, seen.connections),
            seen.rate_bps,
            seen.utilisation_target,
            seen.utilisation_ppm / 1e6,
            8 * seen.grown_bytes[WITHIN_SHARE] / seen.elapsed_s if seen.elapsed_s else 0.0,
        )

    def values(self) -> Mapping[str, int]:
        return limits(self._share_bps, allowance_bps(self._share_bps, self._rate_bps, self._target))

    def recorded(self, totals: Mapping[str, tuple[int, int]]) -> Mapping[str, int]:
        packets, size = totals[HELD_BACK]
        within = totals[WITHIN_SHARE][1]
        return {"share_bps": int(self._share_bps), "within_share_bytes": within, "held_packets": packets, "held_bytes": size}


@dataclass(frozen=True)
class Protection(Parameters):
    """It has none: its limits follow from R_f and from what ports carry."""


SCHEME = Scheme(
    "protection",
    "flow protection",
    Protection,
    controls={"offered": "Protection protection", "copy": "ReplicaProtection protection"},
    loop=Limits,
    everywhere=True,
    asked_by="protection",
    macro_name="FLOW_PROTECTION",
    order=30,
)
