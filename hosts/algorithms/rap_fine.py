"""RAP with fine-grain rate adaptation: Rejaie, Handley and Estrin, section III.B; all else is RAP (`rap.py`).

The gap between packets follows the queue within a step: at each tuning point

    Feedback_i = FRTT_i / XRTT_i
    IPG'_i     = IPG_i Feedback_i                         (7)

FRTT and XRTT are a short-term and a long-term exponential average of the round trips of single packets, so that each
acknowledgement has an effect. IPG stays the base that steps and back-offs adjust: the feedback "does not have a cumulative effect".

Choices that the paper leaves open, each a parameter of `RapFineParameters`: both gains, how often the gap is tuned, and a limit of Feedback.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from fairlane.hosts.algorithms.base import (
    Ack,
    AckDetail,
    Interests,
    Kind,
    PathState,
    Rng,
    SenderAction,
    SetRate,
    SetTimer,
    Timer,
    clamp,
    require_positive,
)
from fairlane.hosts.algorithms.rap import RapParameters, RapReceiver, RapSender

TUNING_TIMER = "rap.tuning"


@dataclass(frozen=True, slots=True)
class RapFineParameters(RapParameters):
    """RAP's, and those of section III.B."""

    frtt_gain: float = 0.9
    """Weight of a new round trip in FRTT. The paper does not give it; this is what its authors' simulation has (ns-2, rap.cc)."""

    xrtt_gain: float = 0.01
    """Weight of a new round trip in XRTT, from the same place."""

    tunings_per_step: int = 4
    """Tuning points in each SRTT. The paper does not say how often; ns-2 tunes with each packet. A flow of the paper has about
    a dozen packets in flight, and a queue moves little in a quarter of a round trip."""

    feedback_limit: float = 2.0
    """Feedback is kept within 1/this ... this. The paper has no limit: a ratio far from 1 would override the coarse adaptation for as
    long as the long-term average takes to follow, hundreds of packets. Twice is what one back-off does."""

    def __post_init__(self) -> None:
        super(RapFineParameters, self).__post_init__()
        require_positive(
            "RapFineParameters",
            frtt_gain=self.frtt_gain,
            xrtt_gain=self.xrtt_gain,
            tunings_per_step=self.tunings_per_step,
            feedback_limit=self.feedback_limit,
        )
        for name in ("frtt_gain", "xrtt_gain"):
            if getattr(self, name) > 1:
                raise ValueError(f"RapFineParameters.{name} = {getattr(self, name)!r}: a weight is at most 1")
        if self.feedback_limit < 1:
            raise ValueError(f"RapFineParameters.feedback_limit = {self.feedback_limit!r}: at least 1, which leaves IPG as it is")


class RapFineSender(RapSender):
    """The sending half [RAP sec III.B]."""

    interests = Interests(acks=AckDetail.EVERY, loss_distance_packets=3)
    parameters: RapFineParameters

    def __init__(self, parameters: RapFineParameters = RapFineParameters()) -> None:
        super().__init__(parameters)
        self.frtt_s = 0.0
        """FRTT; 0: no round trip is known."""
        self.xrtt_s = 0.0
        """XRTT."""
        self._next_tuning_s: float | None = None

    def on_ack(self, now_s: float, ack: Ack, rng: Rng) -> tuple[SenderAction, ...]:
        p, rtt_s = self.parameters, ack.rtt_s
        if not 0.0 < rtt_s < inf:
            return ()
        if self.xrtt_s == 0.0:
            self.frtt_s = self.xrtt_s = rtt_s
        else:
            self.frtt_s += p.frtt_gain * (rtt_s - self.frtt_s)  # short term [RAP sec III.B]
            self.xrtt_s += p.xrtt_gain * (rtt_s - self.xrtt_s)  # long term [RAP sec III.B]
        return ()

    @property
    def feedback(self) -> float:
        """Feedback_i."""
        if self.xrtt_s == 0.0:
            return 1.0
        limit = self.parameters.feedback_limit
        return clamp(self.frtt_s / self.xrtt_s, 1 / limit, limit)  # Feedback = FRTT / XRTT [RAP sec III.B]

    def on_timer(self, now_s: float, timer: Timer, rng: Rng) -> tuple[SenderAction, ...]:
        if timer.name == TUNING_TIMER:
            return (SetRate(self._rate_bps()), *self._plan_tuning(now_s, timer.path))
        actions = super().on_timer(now_s, timer, rng)
        if self._started and self._next_tuning_s is None:
            actions += self._plan_tuning(now_s, timer.path)
        return actions

    def _plan_tuning(self, now_s: float, path: PathState | None) -> tuple[SenderAction, ...]:
        srtt_s = self._srtt_s(path) if path is not None else self.parameters.initial_ipg_s
        self._next_tuning_s = now_s + srtt_s / self.parameters.tunings_per_step
        return (SetTimer(TUNING_TIMER, self._next_tuning_s),)

    def _rate_bps(self) -> float:
        p = self.parameters
        tuned_s = clamp(self.ipg_s * self.feedback, p.min_ipg_s, p.max_ipg_s)  # IPG' = IPG Feedback [RAP eq 7]
        return min(8 * p.packet_bytes / tuned_s, p.max_rate_bps)


KINDS = (
    Kind(
        "rap-fine", "RAP whose gaps follow the round trip within each step [RAP sec III.B]", RapFineParameters, RapFineSender, RapReceiver
    ),
)
