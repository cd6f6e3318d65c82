"""Lab 10: a scheme of your own. The flow kind is `my-scheme`.

The receiver reports every 50 ms: the part of the packets that was lost since its last report, the round trip, and at what rate data
arrived. The sender answers each report with a rate. hosts/algorithms/base.py has all other events and actions of a sender or receiver, as
for: acknowledgements of each packet, windows, what ALS routers say.
"""

from __future__ import annotations

# BEGIN SOLUTION
import math

# END SOLUTION
from dataclasses import dataclass

from fairlane.hosts.algorithms.base import (
    Feedback,
    Kind,
    Receiver,
    ReceiverAction,
    ReceptionState,
    Rng,
    Sender,
    SenderAction,
    SendFeedback,
    SetRate,
    SetTimer,
    Timer,
    # BEGIN SOLUTION
    clamp,
    # END SOLUTION
)

REPORT_S = 0.05
SILENCE_S = 1.0
# BEGIN SOLUTION
WEIGHT = 0.01  # of one report in the mean loss: a memory of some 5 s
# END SOLUTION


@dataclass(frozen=True)
class MySchemeParameters:
    """max_rate_bps and packet_bytes are filled in by the code that runs the flow."""

    max_rate_bps: float = 10e6
    packet_bytes: int = 1000
    initial_rate_bps: float = 100_000.0
    min_rate_bps: float = 8_000.0


class MySchemeSender(Sender):
    """The sending half."""

    def __init__(self, parameters: MySchemeParameters = MySchemeParameters()) -> None:
        self.parameters = parameters
        self.rate_bps = parameters.initial_rate_bps
        self.reported_s = 0.0  # when the last report came
        # BEGIN SOLUTION
        self.loss = 0.0  # mean of what reports say; 0 until the first loss
        # END SOLUTION

    def on_start(self, now_s: float, rng: Rng) -> tuple[SenderAction, ...]:
        self.reported_s = now_s
        return (SetRate(self.rate_bps), SetTimer("silence", now_s + SILENCE_S))

    def on_feedback(self, now_s: float, feedback: Feedback, rng: Rng) -> tuple[SenderAction, ...]:
        self.rate_bps = self.limited(self.next_rate_bps(now_s, feedback))
        self.reported_s = now_s
        return (SetRate(self.rate_bps),)

    def on_timer(self, now_s: float, timer: Timer, rng: Rng) -> tuple[SenderAction, ...]:
        # BEGIN SOLUTION
        if now_s - self.reported_s >= SILENCE_S:
            self.rate_bps = self.limited(self.rate_bps / 2)
        # SKELETON
        # # TODO 4: called each second. What if no report has come for so long?
        # END SOLUTION
        return (SetRate(self.rate_bps), SetTimer("silence", now_s + SILENCE_S))

    def next_rate_bps(self, now_s: float, feedback: Feedback) -> float:
        """The new rate in bit/s, from self.rate_bps and the report. feedback: loss_fraction from 0 to 1; rtt_s and receive_rate_bps where known."""
        # BEGIN SOLUTION
        rtt_s = clamp(feedback.rtt_s or 0.1, 0.001, 10.0)
        received_bps = max(feedback.receive_rate_bps or self.rate_bps, self.parameters.min_rate_bps)
        if self.loss == 0 and feedback.loss_fraction == 0:
            return min(self.rate_bps * 1.5, 2 * received_bps)  # nothing is lost yet: find the link's rate soon
        if self.loss == 0:
            self.loss = self.loss_of(received_bps / 2, rtt_s)  # the loss that half of what arrives would have had
        else:
            self.loss += WEIGHT * (feedback.loss_fraction - self.loss)
        return min(self.tcp_rate_bps(rtt_s), 2 * received_bps)
        # SKELETON
        # # TODO 1: without loss, more. How much more, and in what time?
        # # TODO 2: with loss, less. How much less, and how often?
        # # TODO 3: a report is made by others: no round trip, a rate of 0, a loss of 1 must do no harm.
        # return self.rate_bps
        # END SOLUTION

    # BEGIN SOLUTION
    def tcp_rate_bps(self, rtt_s: float) -> float:
        """What TCP sends at the present loss p, its timeouts included ([DAA eq 2]; [RFC 5348 sec 3.1])."""
        p = clamp(self.loss, 1e-8, 1.0)
        return 8 * self.parameters.packet_bytes / (rtt_s * (math.sqrt(2 * p / 3) + 12 * math.sqrt(3 * p / 8) * p * (1 + 32 * p * p)))

    def loss_of(self, rate_bps: float, rtt_s: float) -> float:
        """About the loss at which TCP sends at a rate: the other way round, without timeouts."""
        return clamp(1.5 * (8 * self.parameters.packet_bytes / rtt_s / rate_bps) ** 2, 1e-8, 1.0)

    # END SOLUTION
    def limited(self, rate_bps: float) -> float:
        """The rate, kept within this sender's bounds."""
        # BEGIN SOLUTION
        return clamp(rate_bps, self.parameters.min_rate_bps, self.parameters.max_rate_bps)
        # SKELETON
        # return rate_bps  # TODO 3, too: neither below min_rate_bps of the parameters nor above max_rate_bps
        # END SOLUTION


class MySchemeReceiver(Receiver):
    """The receiving half: reports on a timer. The runner adds the losses, and the rate at which data arrived."""

    def __init__(self, parameters: MySchemeParameters = MySchemeParameters()) -> None:
        self.parameters = parameters

    def on_start(self, now_s: float, rng: Rng) -> tuple[ReceiverAction, ...]:
        return (SetTimer("report", now_s + REPORT_S),)

    def on_timer(self, now_s: float, timer: Timer, reception: ReceptionState, rng: Rng) -> tuple[ReceiverAction, ...]:
        return (SendFeedback(), SetTimer("report", now_s + REPORT_S))


KINDS = (Kind("my-scheme", "a scheme of lab 10", MySchemeParameters, MySchemeSender, MySchemeReceiver),)
