"""Lab 6: RAP from its equations [RAP sec III]. The flow kind is `my-rap`.

    S = PacketSize / IPG                                 (1)     IPG: the gap between two packets
    IPG' = IPG C / (IPG + C),  C = SRTT                  (1), (5)     once every SRTT without loss
    IPG' = IPG / beta,  beta = 0.5                       (3)     on a loss, at once
    losses with Seq_FirstLoss < Seq <= Seq_LastSent      (6)     belong to the loss that was answered already

The runner paces packets, measures round trips and finds losses; this file decides the rate. hosts/algorithms/base.py has all that a
sender's events and actions.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairlane.hosts.algorithms.base import (
    AckDetail,
    Interests,
    Kind,
    Loss,
    Receiver,
    Rng,
    Sender,
    SenderAction,
    SetLossTimeout,
    SetRate,
    SetTimer,
    Timer,
    clamp,
)

STEP = "step"
BETA = 0.5
FIRST_LOOK_S = 0.05


@dataclass(frozen=True)
class MyRapParameters:
    """max_rate_bps and packet_bytes are filled in by the code that runs the flow."""

    max_rate_bps: float = 10e6
    packet_bytes: int = 1000
    initial_ipg_s: float = 1.0


def rate_bps(packet_bytes: float, ipg_s: float) -> float:
    """S, in bit/s, of packets of so many bytes, sent every ipg_s seconds (equation 1)."""
    # BEGIN SOLUTION
    return 8 * packet_bytes / ipg_s
    # SKELETON
    # return 8.0  # TODO 1
    # END SOLUTION


def increased_ipg_s(ipg_s: float, srtt_s: float) -> float:
    """The gap of the next step, in seconds (equation 1, with C as in equation 5)."""
    # BEGIN SOLUTION
    return ipg_s * srtt_s / (ipg_s + srtt_s)
    # SKELETON
    # return ipg_s  # TODO 2
    # END SOLUTION


def decreased_ipg_s(ipg_s: float) -> float:
    """The gap after a loss, in seconds (equation 3)."""
    # BEGIN SOLUTION
    return ipg_s / BETA
    # SKELETON
    # return ipg_s  # TODO 3
    # END SOLUTION


class MyRapSender(Sender):
    """The sending half."""

    interests = Interests(acks=AckDetail.LOSSES)

    def __init__(self, parameters: MyRapParameters = MyRapParameters()) -> None:
        self.parameters = parameters
        self.ipg_s = parameters.initial_ipg_s
        self.started = False  # a round trip is known
        self.last_sent = -1  # Seq_LastSent at the last back-off

    def on_start(self, now_s: float, rng: Rng) -> tuple[SenderAction, ...]:
        # Packets older than SRTT + max(0.1 s, 4 deviations) count as lost.
        return (self.set_rate(), SetLossTimeout(3.0, 1.0, 4.0, 0.1), SetTimer(STEP, now_s + FIRST_LOOK_S))

    def on_timer(self, now_s: float, timer: Timer, rng: Rng) -> tuple[SenderAction, ...]:
        path = timer.path
        if path is None or not path.srtt_s > 0:  # nothing was acknowledged yet
            return (SetTimer(STEP, now_s + FIRST_LOOK_S),)
        if not self.started:
            self.started = True
            self.ipg_s = min(self.ipg_s, path.srtt_s)  # one packet in each round trip, to begin with
        # BEGIN SOLUTION
        else:
            self.ipg_s = increased_ipg_s(self.ipg_s, path.srtt_s)
        return (self.set_rate(), SetTimer(STEP, now_s + path.srtt_s))
        # SKELETON
        # # TODO 4: else, a step without loss: what becomes of the gap? And when does the next step begin?
        # return (self.set_rate(), SetTimer(STEP, now_s + 1.0))
        # END SOLUTION

    def on_loss(self, now_s: float, loss: Loss, rng: Rng) -> tuple[SenderAction, ...]:
        # BEGIN SOLUTION
        if loss.last_sequence <= self.last_sent:
            return ()
        self.last_sent = loss.path.last_sent_sequence
        self.ipg_s = decreased_ipg_s(self.ipg_s)
        return (self.set_rate(), SetTimer(STEP, now_s + max(loss.path.srtt_s, FIRST_LOOK_S)))
        # SKELETON
        # # TODO 5: nothing for a loss of the cluster that was answered already; otherwise the longer gap, and a new step from now on.
        # #         loss has first_sequence, last_sequence and path; loss.path has srtt_s and last_sent_sequence.
        # return ()
        # END SOLUTION

    def set_rate(self) -> SetRate:
        """The rate of the present gap, with the gap between the one for max_rate_bps and 64 s."""
        p = self.parameters
        self.ipg_s = clamp(self.ipg_s, 8 * p.packet_bytes / p.max_rate_bps, 64.0)
        return SetRate(rate_bps(p.packet_bytes, self.ipg_s))


class MyRapReceiver(Receiver):
    """The receiving half: acknowledges each packet, which the runner does."""

    def __init__(self, parameters: MyRapParameters = MyRapParameters()) -> None:
        self.parameters = parameters


KINDS = (Kind("my-rap", "RAP of lab 6", MyRapParameters, MyRapSender, MyRapReceiver),)
