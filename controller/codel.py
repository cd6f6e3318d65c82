"""CoDel's parameters: seconds in, the microseconds of `p4src/codel.p4` out."""

from __future__ import annotations

from fairlane.topologies.model import Codel


def codel_parameters(codel: Codel) -> dict[str, int]:
    """Arguments of the P4 action `set_codel`."""
    return {"target_us": round(codel.target_s * 1e6), "interval_us": round(codel.interval_s * 1e6), "marking": int(codel.ecn)}
