"""Lab 7: the ALS sender [ALS sec 3.3]. The flow kind is `my-als`.

A report brings R_d, the smallest fair rate on the path; U, the utilisation of the router that wrote it; and the loss l.

    no loss:   AIR <- AIR + AIR (1 - U),   r <- R_d + AIR
    loss:      AIR <- 5 kb/s,              r <- R_d (1 - l)

The sender sends at r from the next adaptation point on, every 5 s. hosts/algorithms/base.py has all events and actions of a sender.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairlane.hosts.algorithms.base import (
    Control,
    Feedback,
    Interests,
    Kind,
    Receiver,
    ReceiverAction,
    Rng,
    Sender,
    SenderAction,
    SetControl,
    SetRate,
    SetReport,
    SetTimer,
    Timer,
    clamp,
)

ADAPTATION = "adaptation"
INTERVAL_S = 5.0
LEAST_BPS = 8_000.0


@dataclass(frozen=True)
class MyAlsParameters:
    """max_rate_bps is filled in by the code that runs the flow."""

    max_rate_bps: float = 10e6
    initial_rate_bps: float = 200_000.0
    initial_air_bps: float = 5_000.0


class MyAlsSender(Sender):
    """The sending half."""

    interests = Interests(rtcp=True)

    def __init__(self, parameters: MyAlsParameters = MyAlsParameters()) -> None:
        self.parameters = parameters
        self.air_bps = parameters.initial_air_bps
        self.rate_bps = parameters.initial_rate_bps  # what the next adaptation point will set

    def on_start(self, now_s: float, rng: Rng) -> tuple[SenderAction, ...]:
        # Its control packets ask for as much as there is, and routers lower it.
        return (SetRate(self.rate_bps), SetControl(self.parameters.max_rate_bps, utilisation=0.0), SetTimer(ADAPTATION, now_s + INTERVAL_S))

    def on_feedback(self, now_s: float, feedback: Feedback, rng: Rng) -> tuple[SenderAction, ...]:
        if feedback.desired_rate_bps is None or feedback.utilisation is None:  # the receiver has heard of no router yet
            return ()
        # BEGIN SOLUTION
        if feedback.loss_fraction > 0:
            self.air_bps = self.parameters.initial_air_bps
            self.rate_bps = feedback.desired_rate_bps * (1 - feedback.loss_fraction)
        else:
            self.air_bps += self.air_bps * (1 - feedback.utilisation)
            self.rate_bps = feedback.desired_rate_bps + self.air_bps
        # SKELETON
        # # TODO 2: the new AIR (self.air_bps), and the rate that the next adaptation point will set (self.rate_bps). feedback has desired_rate_bps,
        # #         utilisation and loss_fraction.
        # END SOLUTION
        return ()

    def on_timer(self, now_s: float, timer: Timer, rng: Rng) -> tuple[SenderAction, ...]:
        # BEGIN SOLUTION
        return (SetRate(clamp(self.rate_bps, LEAST_BPS, self.parameters.max_rate_bps)), SetTimer(ADAPTATION, now_s + INTERVAL_S))
        # SKELETON
        # # TODO 3: an adaptation point: set the rate, between LEAST_BPS and max_rate_bps, and the timer of the next one.
        # return ()
        # END SOLUTION


class MyAlsReceiver(Receiver):
    """The receiving half: reports the values of the newest control packet."""

    interests = Interests(rtcp=True)

    def __init__(self, parameters: MyAlsParameters = MyAlsParameters()) -> None:
        self.parameters = parameters

    def on_control(self, now_s: float, control: Control, rng: Rng) -> tuple[ReceiverAction, ...]:
        return (SetReport(desired_rate_bps=control.desired_rate_bps, utilisation=control.utilisation),)


KINDS = (Kind("my-als", "ALS of lab 7", MyAlsParameters, MyAlsSender, MyAlsReceiver),)
