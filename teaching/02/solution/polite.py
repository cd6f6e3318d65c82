"""Lab 2: a sender of constant rate that learns manners [DAA sec 4]. The flow kind is `polite`.

It would like to send at `wanted_bps`, as `cbr` does. Each report brings the loss l since the report before, and the round trip tau:

    l_s <- (1 - sigma) l_s + sigma l,   sigma = 0.3                                                        (3)
    r_tcp = M / (tau sqrt(2 l_s / 3) + t_out min(1, 3 sqrt(3 l_s / 8)) l_s (1 + 32 l_s^2)),  t_out = 4 tau   (1), with D = 1
    r <- min(r_tcp, r + A)                                                                                 (4)

and never more than it would like. M is in bits when the rate is in bit/s. hosts/algorithms/base.py has all events and actions of a sender.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from fairlane.hosts.algorithms.base import Feedback, Interests, Kind, Receiver, Rng, Sender, SenderAction, SetRate, clamp

SIGMA = 0.3
INCREASE_BPS = 50_000.0  # A
LEAST_BPS = 8_000.0


@dataclass(frozen=True)
class PoliteParameters:
    """max_rate_bps and packet_bytes are filled in by the code that runs the flow."""

    max_rate_bps: float = 10e6
    packet_bytes: int = 1000
    wanted_bps: float = 1_800_000.0


def tcp_rate_bps(packet_bytes: float, rtt_s: float, loss: float) -> float:
    """r_tcp, equation 1, in bit/s: what TCP has with this round trip and this part of its packets lost, in (0, 1]. Infinite without loss."""
    # BEGIN SOLUTION
    if loss <= 0:
        return math.inf
    fast = rtt_s * math.sqrt(2 * loss / 3)
    slow = 4 * rtt_s * min(1.0, 3 * math.sqrt(3 * loss / 8)) * loss * (1 + 32 * loss**2)
    return 8 * packet_bytes / (fast + slow)
    # SKELETON
    # return math.inf  # TODO 5
    # END SOLUTION


class PoliteSender(Sender):
    """The sending half."""

    interests = Interests(rtcp=True)

    def __init__(self, parameters: PoliteParameters = PoliteParameters()) -> None:
        self.parameters = parameters
        self.rate_bps = min(parameters.wanted_bps, parameters.max_rate_bps)
        self.loss = 0.0  # l_s

    def on_start(self, now_s: float, rng: Rng) -> tuple[SenderAction, ...]:
        return (SetRate(self.rate_bps),)

    def on_feedback(self, now_s: float, feedback: Feedback, rng: Rng) -> tuple[SenderAction, ...]:
        if feedback.rtt_s is None:  # not measured yet
            return ()
        # BEGIN SOLUTION
        p = self.parameters
        self.loss = (1 - SIGMA) * self.loss + SIGMA * feedback.loss_fraction
        polite_bps = min(tcp_rate_bps(p.packet_bytes, feedback.rtt_s, self.loss), self.rate_bps + INCREASE_BPS)
        self.rate_bps = clamp(polite_bps, LEAST_BPS, min(p.wanted_bps, p.max_rate_bps))
        return (SetRate(self.rate_bps),)
        # SKELETON
        # # TODO 6: the smoothed loss (self.loss), then the rate (self.rate_bps): the smaller of r_tcp and r + A, at least LEAST_BPS, and no more than
        # #         wanted_bps and max_rate_bps. self.parameters has both, and packet_bytes.
        # return ()
        # END SOLUTION


class PoliteReceiver(Receiver):
    """The receiving half: reports losses, which the runner counts."""

    interests = Interests(rtcp=True)

    def __init__(self, parameters: PoliteParameters = PoliteParameters()) -> None:
        self.parameters = parameters


KINDS = (Kind("polite", "a constant rate with manners, of lab 2", PoliteParameters, PoliteSender, PoliteReceiver),)
