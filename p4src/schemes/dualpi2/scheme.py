"""DualPI2 of a queue [RFC 9332 sec A]."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

from fairlane.p4src.schemes.pi2.scheme import controller
from fairlane.p4src.schemes.pie.scheme import MAX_GAIN
from fairlane.schemes.base import MAX_DELAY_S, Counter, Entry, Parameters, Scheduler, Scheme, check_choice, microseconds, parameter

LOW_LATENCY_QUEUE = 1
"""The priority of the low-latency queue; the Classic one has 0 (`dualpi2.p4`)."""


@dataclass(frozen=True)
class Dualpi2(Parameters):
    """Packets of ECT(1) or CE wait in a queue of their own, the low-latency queue, coupled to PI2 of the others.

    target_s, update_s, alpha, beta: of the controller, ranges as for PIE; the defaults are those of the reference implementation
    [RFC 9332 sec A.1], whose update interval is a multiple of 4 ms. Packets of ECT(0) are marked instead of dropped, except in overload.
    min_threshold_s, range_s: low-latency packets are marked, with a likelihood that grows from 0 to 1, from a waiting time of the first on, over
    the second [RFC 9332 sec A.1] figure 5; both in [0, 1000]; a range of 0 is a step. decisions: whether a likelihood becomes marks and drops by
    the RFC's recur(), at even distances, or at random, as in the reference implementation [RFC 9332 sec 2.5.1].

    scheduler: which queue sends next [RFC 9332 sec 4.2.2], weighted round robin (recommended in
    [RFC 9332 sec A.2]) or a time-shifted FIFO. weight: w of the ratio w:1 in which the low-latency and the Classic queue send while both wait, in
    [1, 10000]; 15 is a Classic weight of 1/16. shift_s: of the time-shifted FIFO; a low-latency packet goes first unless a Classic one has waited
    so much longer, in [0, 1000].
    """

    target_s: float = parameter(0.015, 1e-5, 1, "s")
    update_s: float = parameter(0.016, 1e-3, 1, "s")
    alpha: float = parameter(0.16, 0.002, MAX_GAIN, "per second")
    beta: float = parameter(3.2, 0.002, MAX_GAIN, "per second")
    min_threshold_s: float = parameter(0.0008, 0, MAX_DELAY_S, "s")
    range_s: float = parameter(0.0004, 0, MAX_DELAY_S, "s")
    decisions: Literal["recur", "random"] = "recur"
    scheduler: Literal["wrr", "ts-fifo"] = "wrr"
    weight: int = parameter(15, 1, 10_000)
    shift_s: float = parameter(0.05, 0, MAX_DELAY_S, "s")
    ecn: ClassVar[bool] = True
    priorities: ClassVar[int] = LOW_LATENCY_QUEUE + 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("decisions", self.decisions, ("recur", "random"))
        check_choice("scheduler", self.scheduler, ("wrr", "ts-fifo"))

    @property
    def scheduling(self) -> Scheduler:
        return Scheduler(weight=self.weight) if self.scheduler == "wrr" else Scheduler(shift_s=self.shift_s)

    def entries(self, rate_bps: float) -> Iterable[Entry]:
        range_us = microseconds(self.range_s)
        ramp = {
            "least_us": microseconds(self.min_threshold_s),
            "range_us": range_us,
            "slope_per_us": 2**48 // range_us if range_us else 0,
        }
        values = controller(self.target_s, self.update_s, self.alpha, self.beta) | ramp | {"at_random": int(self.decisions == "random")}
        yield Entry("AlsIngress.dual.dualpi2_ports", "classify", {})
        yield Entry("AlsEgress.dual.dualpi2_parameters", "set_dualpi2", values)


SCHEME = Scheme(
    "dualpi2",
    "DualPI2",
    Dualpi2,
    controls={"arrival": "DualArrival dual", "departure": "DualDeparture dual"},
    counters=(
        Counter("aqm_drops", ("AlsEgress.dual.drops",), cause="dualpi2"),
        Counter("marks", ("AlsEgress.dual.marks",)),
        Counter("low_latency_marks", ("AlsEgress.dual.low_latency_marks",), queue=LOW_LATENCY_QUEUE),
        Counter("overload", ("AlsEgress.dual.overload",), reports="overload"),
    ),
    needs=("pi2",),
    order=5,
)
