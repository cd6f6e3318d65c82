"""Parameters of the queues: seconds and packets in, the integers of `codel.p4`, `pie.p4`, `pi2.p4`, `dualpi2.p4` and `step.p4` in `p4src` out."""

from __future__ import annotations

from fairlane.topologies.model import Codel, Dualpi2, Pi2, Pie, Step

_NEVER = 2**32 - 1


def codel_parameters(codel: Codel) -> dict[str, int]:
    """Arguments of the P4 action `set_codel`."""
    return {"target_us": round(codel.target_s * 1e6), "interval_us": round(codel.interval_s * 1e6), "marking": int(codel.ecn)}


def pie_parameters(pie: Pie) -> dict[str, int]:
    """Arguments of the P4 action `set_pie`; `set_decision` takes the first and the last."""
    return {
        "target_us": round(pie.target_s * 1e6),
        "update_us": round(pie.update_s * 1e6),
        "alpha_per_us": _gain(pie.alpha),
        "beta_per_us": _gain(pie.beta),
        "burst_us": round(pie.burst_s * 1e6),
        "marking": int(pie.ecn),
    }


def pi2_parameters(pi2: Pi2) -> dict[str, int]:
    """Arguments of the P4 action `set_pi2`; `set_decision` takes the last."""
    return _controller(pi2) | {"marking": int(pi2.ecn)}


def _controller(pi2: Pi2 | Dualpi2) -> dict[str, int]:
    return {
        "target_us": round(pi2.target_s * 1e6),
        "update_us": round(pi2.update_s * 1e6),
        "alpha_per_us": _gain(pi2.alpha),
        "beta_per_us": _gain(pi2.beta),
    }


def _gain(per_second: float) -> int:
    """Per microsecond x 2^48."""
    return round(per_second * 2**48 / 1e6)


def dualpi2_parameters(dualpi2: Dualpi2) -> dict[str, int]:
    """Arguments of the P4 action `set_dualpi2`."""
    range_us = round(dualpi2.range_s * 1e6)
    ramp = {"least_us": round(dualpi2.min_threshold_s * 1e6), "range_us": range_us, "slope_per_us": 2**48 // range_us if range_us else 0}
    return _controller(dualpi2) | ramp | {"at_random": int(dualpi2.decisions == "random")}


def step_parameters(step: Step) -> dict[str, int]:
    """Arguments of the P4 action `set_step`."""
    return {
        "threshold_us": _NEVER if step.threshold_s is None else round(step.threshold_s * 1e6),
        "threshold_packets": _NEVER if step.threshold_packets is None else step.threshold_packets,
    }
