"""AIMD over RTCP: the scheme of Busse, Deffner and Schulzrinne that DAA compares with [DAA sec 3, fig 1].

At each RTCP report the sender compares the loss with two thresholds:

    l > upper threshold              r = r x 0.875          "multiplicative decrease factor"
    lower <= l <= upper threshold    r stays
    l < lower threshold              r = r + 50 kb/s        "additive increase factor"

with thresholds of 5% and 10% [DAA sec 3]. The paper prints no numbered equation for it.

Choices that [DAA sec 3] leaves open, each a parameter of `AimdRtcpParameters`: whether l is smoothed, the first rate, the lowest rate,
missing reports.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairlane.hosts.algorithms.base import (
    Feedback,
    Interests,
    Kind,
    Note,
    Receiver,
    Rng,
    Sender,
    SenderAction,
    SetRate,
    Timer,
    clamp,
    require_positive,
)
from fairlane.hosts.algorithms.silence import SilenceWatch, initial_rate, require_rate_limits

SILENCE_TIMER = "aimd_rtcp.silence"


@dataclass(frozen=True, slots=True)
class AimdRtcpParameters:
    """The paper's values, and names for the choices that it leaves open."""

    lower_loss_threshold: float = 0.05
    """Below it the rate increases [DAA sec 3]; a fraction."""

    upper_loss_threshold: float = 0.10
    """Above it the rate decreases [DAA sec 3]; a fraction."""

    additive_increase_bps: float = 50_000.0
    """For each report below the lower threshold: "50 kb" [DAA sec 3]."""

    decrease_factor: float = 0.875
    """For each report above the upper threshold [DAA sec 3]."""

    smoothing: float = 0.3
    """Weight of the newest report in the loss that is compared. [DAA sec 3] does not mention smoothing; [DAA sec 4] says of its
    factor 0.3 that it "was used in" the work this scheme comes from. 1 compares each report by itself."""

    max_rate_bps: float = 10e6
    """The rate of the sender's own link; no rate goes above it."""

    initial_rate_bps: float = 100_000.0
    """Rate before the first report. The paper is silent; as DAA's, so that a comparison starts alike."""

    min_rate_bps: float = 8_000.0
    """No rate goes below it. The paper is silent. One packet of 1000 bytes a second keeps reports coming."""

    report_timeout_s: float = 25.0
    """After so long without a report the rate is multiplied by `silence_factor`. The paper is silent. Five times the mean
    report interval, as RTCP times members out [RFC 3550 sec 6.3.5]."""

    silence_factor: float = 0.5
    """The paper is silent; halving is TFRC's rule [RFC 5348 sec 4.4]."""

    def __post_init__(self) -> None:
        require_rate_limits("AimdRtcpParameters", self)
        require_positive(
            "AimdRtcpParameters",
            lower_loss_threshold=self.lower_loss_threshold,
            upper_loss_threshold=self.upper_loss_threshold,
            additive_increase_bps=self.additive_increase_bps,
            decrease_factor=self.decrease_factor,
            smoothing=self.smoothing,
        )
        if self.lower_loss_threshold > self.upper_loss_threshold:
            raise ValueError(
                f"AimdRtcpParameters.lower_loss_threshold = {self.lower_loss_threshold!r} is above "
                f"upper_loss_threshold = {self.upper_loss_threshold!r}"
            )
        for name in ("upper_loss_threshold", "decrease_factor", "smoothing"):
            if getattr(self, name) > 1:
                raise ValueError(f"AimdRtcpParameters.{name} = {getattr(self, name)!r}: at most 1")


class AimdRtcpSender(Sender):
    """The sending half [DAA sec 3, fig 1]."""

    interests = Interests(rtcp=True)

    def __init__(self, parameters: AimdRtcpParameters = AimdRtcpParameters()) -> None:
        self.parameters = parameters
        self.rate_bps = initial_rate(parameters)
        self.smoothed_loss = 0.0
        self._silence = SilenceWatch(SILENCE_TIMER, parameters.report_timeout_s)

    def on_start(self, now_s: float, rng: Rng) -> tuple[SenderAction, ...]:
        return SetRate(self.rate_bps), self._silence.start(now_s)

    def on_feedback(self, now_s: float, feedback: Feedback, rng: Rng) -> tuple[SenderAction, ...]:
        p = self.parameters
        self._silence.heard(now_s)
        loss = clamp(feedback.loss_fraction, 0.0, 1.0)
        self.smoothed_loss = (1 - p.smoothing) * self.smoothed_loss + p.smoothing * loss  # as [DAA eq 3]

        if self.smoothed_loss > p.upper_loss_threshold:
            wanted_bps = self.rate_bps * p.decrease_factor  # multiplicative decrease [DAA sec 3]
        elif self.smoothed_loss < p.lower_loss_threshold:
            wanted_bps = self.rate_bps + p.additive_increase_bps  # additive increase [DAA sec 3]
        else:
            wanted_bps = self.rate_bps  # "the sender can maintain its current transmission level" [DAA sec 3]
        self.rate_bps = clamp(wanted_bps, p.min_rate_bps, p.max_rate_bps)
        values = (
            ("reporter", feedback.reporter),
            ("loss", loss),
            ("smoothed_loss", self.smoothed_loss),
            ("rate_bps", self.rate_bps),
        )
        return SetRate(self.rate_bps), Note("aimd_rtcp.report", values)

    def on_timer(self, now_s: float, timer: Timer, rng: Rng) -> tuple[SenderAction, ...]:
        if timer.name != SILENCE_TIMER:
            return ()
        silent, again = self._silence.expired(now_s)
        if again is None:
            return ()
        if not silent:
            return (again,)
        self.rate_bps = max(self.rate_bps * self.parameters.silence_factor, self.parameters.min_rate_bps)
        return SetRate(self.rate_bps), again, Note("aimd_rtcp.silence", (("rate_bps", self.rate_bps),))


class AimdRtcpReceiver(Receiver):
    """The receiving half: plain RTCP receiver reports, which the runner writes."""

    interests = Interests(rtcp=True)

    def __init__(self, parameters: AimdRtcpParameters = AimdRtcpParameters()) -> None:
        self.parameters = parameters


KINDS = (
    Kind(
        "aimd-rtcp",
        "RTCP reports; +50 kb/s below 5% loss, x0.875 above 10% [DAA sec 3, fig 1]",
        AimdRtcpParameters,
        AimdRtcpSender,
        AimdRtcpReceiver,
    ),
)
