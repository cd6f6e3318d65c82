"""My rate: say here what it does, and where it comes from: paper, section, equations.

    r = ...          its equations, as the paper has them

Where the paper leaves a choice: the choice and its reason, each a parameter of `MyRateParameters`.

An algorithm is two state machines without clock, socket or randomness: events come in with the time, actions go out. This one is
gets each receiver's report, which comes by RTCP about every 5 s, and answers with a rate. `hosts/algorithms/base.py` lists all
events and actions: acknowledgements of each packet, windows, timers, reports of the receiver's own. `rap.py`, `tfrc.py` and `als.py`
are there to learn from.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairlane.hosts.algorithms.base import (
    Feedback,
    Interests,
    Kind,
    Receiver,
    Rng,
    Sender,
    SenderAction,
    SetRate,
    clamp,
    require_positive,
)


@dataclass(frozen=True, slots=True)
class MyRateParameters:
    """The paper's values. An experiment sets them by name: parameters = { initial_rate_bps = 200_000.0 }."""

    initial_rate_bps: float = 100_000.0
    """Until the first report."""

    min_rate_bps: float = 8_000.0
    """No rate goes below it: one packet of 1000 bytes a second, so that receivers still notice the flow."""

    max_rate_bps: float = 10e6
    """No rate goes above it. The rate of the sender's own link, unless an experiment sets another."""

    def __post_init__(self) -> None:
        require_positive(
            "MyRateParameters",
            initial_rate_bps=self.initial_rate_bps,
            min_rate_bps=self.min_rate_bps,
            max_rate_bps=self.max_rate_bps,
        )
        if self.min_rate_bps > self.max_rate_bps:
            raise ValueError(f"MyRateParameters.min_rate_bps = {self.min_rate_bps!r} is above max_rate_bps = {self.max_rate_bps!r}")


class MyRateSender(Sender):
    """The sending half: decides at what rate to send."""

    # rtcp: reports come on RTCP's timetable. For acknowledgements: Interests(acks=AckDetail.LOSSES).
    interests = Interests(rtcp=True)

    def __init__(self, parameters: MyRateParameters = MyRateParameters()) -> None:
        self.parameters = parameters
        self.rate_bps = clamp(parameters.initial_rate_bps, parameters.min_rate_bps, parameters.max_rate_bps)

    def on_start(self, now_s: float, rng: Rng) -> tuple[SenderAction, ...]:
        return (SetRate(self.rate_bps),)

    def on_feedback(self, now_s: float, feedback: Feedback, rng: Rng) -> tuple[SenderAction, ...]:
        p = self.parameters
        # A report comes from the network and may be forged: the rate always stays within its bounds.
        self.rate_bps = clamp(self.next_rate_bps(feedback), p.min_rate_bps, p.max_rate_bps)
        return (SetRate(self.rate_bps),)

    def next_rate_bps(self, feedback: Feedback) -> float:
        """The new rate, from `self.rate_bps` and the report.

        Put the equation here, with its number: `# [PAPER eq 1]`. A report has `loss_fraction` (0 to 1, since the report before) and
        where known `rtt_s`, `jitter_s`; on paths with ALS routers `desired_rate_bps` and `utilisation`.
        """
        raise NotImplementedError("the equation is missing: write it into hosts/algorithms/my_rate.py, MyRateSender.next_rate_bps")


class MyRateReceiver(Receiver):
    """The receiving half: RTCP reports come by themselves, so there is nothing to decide."""

    interests = Interests(rtcp=True)

    def __init__(self, parameters: MyRateParameters = MyRateParameters()) -> None:
        self.parameters = parameters


KINDS = (
    Kind(
        "my-rate",
        "one line for 'fairlane list': what it does [paper and section]",
        MyRateParameters,
        MyRateSender,
        MyRateReceiver,
    ),
)
