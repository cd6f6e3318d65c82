"""Step marking of a queue [RFC 8257 sec 3.1]."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from fairlane.schemes.base import MAX_DELAY_S, Counter, Entry, Parameters, Scheme, microseconds, parameter

NEVER = 2**32 - 1


@dataclass(frozen=True)
class Step(Parameters):
    """Packets of an ECN-capable transport are marked, none is dropped.

    threshold_s: a packet is marked that waited longer, in [0, 1000]; 0.001 where neither is given. threshold_packets: and one that met so many
    waiting packets (K), in [1, 2^31).
    """

    threshold_s: float | None = parameter(None, 0, MAX_DELAY_S, "s")
    threshold_packets: int | None = parameter(None, 1, 2**31 - 1, "packets")
    ecn: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.threshold_s is None and self.threshold_packets is None:
            object.__setattr__(self, "threshold_s", 0.001)
        super().__post_init__()

    def entries(self, rate_bps: float) -> Iterable[Entry]:
        values = {
            "threshold_us": NEVER if self.threshold_s is None else microseconds(self.threshold_s),
            "threshold_packets": NEVER if self.threshold_packets is None else self.threshold_packets,
        }
        yield Entry("AlsEgress.step.step_parameters", "set_step", values)


SCHEME = Scheme(
    "step",
    "step",
    Step,
    controls={"departure": "Step step"},
    counters=(Counter("marks", ("AlsEgress.step.marks",)),),
    order=6,
)
