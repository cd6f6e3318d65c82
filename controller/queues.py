"""Parameters of the queues: seconds and packets in, the integers of `p4src/codel.p4` and `p4src/step.p4` out."""

from __future__ import annotations

from fairlane.topologies.model import Codel, Step

_NEVER = 2**32 - 1


def codel_parameters(codel: Codel) -> dict[str, int]:
    """Arguments of the P4 action `set_codel`."""
    return {"target_us": round(codel.target_s * 1e6), "interval_us": round(codel.interval_s * 1e6), "marking": int(codel.ecn)}


def step_parameters(step: Step) -> dict[str, int]:
    """Arguments of the P4 action `set_step`."""
    return {
        "threshold_us": _NEVER if step.threshold_s is None else round(step.threshold_s * 1e6),
        "threshold_packets": _NEVER if step.threshold_packets is None else step.threshold_packets,
    }
