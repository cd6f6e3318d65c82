"""SSVP, the scalable streaming video protocol, with fixed alpha and beta: Papadimitriou and Zhang, section III.

The sender sets the gap between its packets, IPG, once each round-trip time, from the control packets of that time:

    R = S / IPG                                                                       [SSVP eq 3]
    congested / all control packets > 0.005     IPG = IPG / beta                       [SSVP eq 4]
    some congested, but no more than that       IPG stays: "a transient loss is assumed"
    none congested                              IPG = IPG / (1 + alpha / k)            [SSVP eq 5, 2, 7]

A control packet indicates congestion when it reports a loss since the one before it.

The paper prints equation 5 without "/ k": IPG / (1 + alpha). Its alpha comes from equation 2, which holds for alpha packets more
each round trip, so for k = RTT / IPG packets [SSVP eq 7] that become k + alpha: the rate grows by the factor 1 + alpha / k, that
is by alpha S / RTT, as RAP's does. The printed form multiplies the rate by 1.31 each round trip, starves TCP, and is no additive
increase. It stays as a contrast, `SsvpParameters.increase` (docs/decisions/ssvp-additive-increase.md).

Choices that the paper leaves open, each a parameter of `SsvpParameters`: whether losses of packets sent before a decrease cause
another one, how often the receiver sends control packets, the first rate, the round-trip time before the first sample, the lowest
rate, missing reports.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from fairlane.hosts.algorithms.base import (
    Feedback,
    Kind,
    Note,
    Receiver,
    ReceiverAction,
    ReceptionState,
    Rng,
    Sender,
    SenderAction,
    SendFeedback,
    SetRate,
    SetTimer,
    StampData,
    Timer,
    clamp,
    require_positive,
)
from fairlane.hosts.algorithms.silence import SilenceWatch, initial_rate, require_rate_limits
from fairlane.hosts.algorithms.ssvp_model import instantaneous_rate_bps, packets_per_rtt

ROUND_TIMER = "ssvp.round"
REPORT_TIMER = "ssvp.report"
SILENCE_TIMER = "ssvp.silence"
ADDITIVE, AS_PRINTED = "additive", "as-printed"
ROUND_END, AT_ONCE = "round-end", "at-once"
GAP, PACKETS = "gap", "packets"


@dataclass(frozen=True, slots=True)
class SsvpParameters:
    """The paper's values, and names for the choices that it leaves open."""

    alpha: float = 0.31
    """Additive increase rate [SSVP sec III]; 0.58 goes with beta = 0.75 [SSVP sec VI]."""

    beta: float = 0.875
    """Multiplicative decrease ratio [SSVP sec III]."""

    congestion_level: float = 0.005
    """Fraction of a round trip's control packets that must indicate congestion: "set experimentally" [SSVP sec III]."""

    increase: str = ADDITIVE
    """"additive": IPG / (1 + alpha / k), alpha packets more each round trip. "as-printed": IPG / (1 + alpha), a contrast that shows
    why equation 5 cannot be meant as printed."""

    hold_rounds: int = 1
    """Rounds after a decrease in which the rate stays whatever the reports say: for a round trip they speak of packets sent before
    it, so that the losses of one overflow would decrease the rate twice. The rules of section III do not say so. Section IV.A does:
    "upon packet loss [...] the system will be adjusted downward to the knee", and not below it, and RAP, TCP and GAIMD, which SSVP
    follows, decrease once for such losses [RAP sec III.A]. 0: each round by itself."""

    react: str = ROUND_END
    """"round-end": the rate falls when the round is over whose reports tell of congestion, "each RTT". "at-once": with the report that
    exceeds `congestion_level`, and a round begins: "immediately" [SSVP sec III]. The first is the order of the paper's sentences."""

    adjusts: str = GAP
    """"gap": equations 4 and 5 set IPG, and IPG stays when the round-trip time moves, as they are printed. "packets": they set
    k = RTT / IPG [SSVP eq 7], and IPG follows RTT each round, as in the analysis of section IV.A, where a decrease of k "does not
    necessarily affect flow throughput if qdelay decreases correspondingly" [SSVP eq 18]."""

    packet_bytes: float = 1000.0
    """S [SSVP eq 3], an IPv4 datagram of data in bytes: 1000 [SSVP sec V.A]."""

    reports_per_rtt: float = 4.0
    """Control packets that the receiver sends each round trip. The paper is silent; it speaks of several in one. Up to 200 the
    number decides nothing: one congested report in 200 is 0.005, one in fewer is above the threshold. 4 gives each round at
    least one although the two timers are not in step."""

    initial_rtt_s: float = 0.1
    """Stands in for the round-trip time until the first sample, at both ends. The paper is silent; of the order of its 64 ms."""

    min_rtt_s: float = 0.001
    """Round-trip times count as no less, so that no report can make the timers run hot. The paper is silent."""

    max_report_interval_s: float = 1.0
    """Reports come no more seldom. The paper is silent; well within `report_timeout_s`, whatever a sender claims its RTT to
    be."""

    max_rate_bps: float = 10e6
    """The rate of the sender's own link; no rate goes above it."""

    initial_rate_bps: float = 100_000.0
    """First rate. The paper is silent and speaks of no slow start. 100 kb/s is a packet of 1000 bytes for each of
    `initial_rtt_s`, and 1% of its 10 Mb/s bottleneck."""

    min_rate_bps: float = 8_000.0
    """No rate goes below it. The paper is silent. One packet of 1000 bytes a second keeps reports coming."""

    report_timeout_s: float = 2.0
    """After so long without a report the rate is multiplied by `silence_factor`. The paper is silent. The first no-feedback timer
    of TFRC [RFC 5348 sec 4.2]; longer than the gap between packets at `min_rate_bps`."""

    silence_factor: float = 0.5
    """The paper is silent; halving is TFRC's rule [RFC 5348 sec 4.4]."""

    def __post_init__(self) -> None:
        require_rate_limits("SsvpParameters", self)
        require_positive(
            "SsvpParameters",
            alpha=self.alpha,
            beta=self.beta,
            packet_bytes=self.packet_bytes,
            reports_per_rtt=self.reports_per_rtt,
            initial_rtt_s=self.initial_rtt_s,
            min_rtt_s=self.min_rtt_s,
            max_report_interval_s=self.max_report_interval_s,
        )
        if self.beta > 1:
            raise ValueError(f"SsvpParameters.beta = {self.beta!r}: a decrease must not raise the rate, at most 1")
        if not 0 <= self.congestion_level <= 1:
            raise ValueError(f"SsvpParameters.congestion_level = {self.congestion_level!r}: a fraction from 0 to 1")
        if self.increase not in (AS_PRINTED, ADDITIVE):
            raise ValueError(f"SsvpParameters.increase = {self.increase!r}: say {ADDITIVE!r} or {AS_PRINTED!r}")
        if self.adjusts not in (GAP, PACKETS):
            raise ValueError(f"SsvpParameters.adjusts = {self.adjusts!r}: say {GAP!r} or {PACKETS!r}")
        if self.react not in (ROUND_END, AT_ONCE):
            raise ValueError(f"SsvpParameters.react = {self.react!r}: say {ROUND_END!r} or {AT_ONCE!r}")
        if not 0 <= self.hold_rounds <= 1000:
            raise ValueError(f"SsvpParameters.hold_rounds = {self.hold_rounds!r}: must be in 0 to 1000")


class SsvpSender(Sender):
    """The sending half [SSVP sec III]."""

    def __init__(self, parameters: SsvpParameters = SsvpParameters()) -> None:
        self.parameters = parameters
        bits = parameters.packet_bytes * 8
        self.shortest_ipg_s, self.longest_ipg_s = bits / parameters.max_rate_bps, bits / parameters.min_rate_bps
        self.ipg_s = bits / initial_rate(parameters)
        self.rtt_s = max(parameters.initial_rtt_s, parameters.min_rtt_s)
        self._round_rtt_s = self.rtt_s
        """RTT when IPG was last set: k is their ratio."""
        self.reports = 0
        """Control packets received in the present round."""
        self.congested_reports = 0
        """Those among them that indicate congestion."""
        self.hold = 0
        """Rounds still to come in which the rate stays."""
        self._round_due_s = 0.0
        self._silence = SilenceWatch(SILENCE_TIMER, parameters.report_timeout_s)

    @property
    def rate_bps(self) -> float:
        """R [SSVP eq 3]; the division may round across a limit, so it is held there."""
        p = self.parameters
        return clamp(instantaneous_rate_bps(p.packet_bytes, self.ipg_s), p.min_rate_bps, p.max_rate_bps)

    def on_start(self, now_s: float, rng: Rng) -> tuple[SenderAction, ...]:
        return SetRate(self.rate_bps), self._next_round(now_s), self._silence.start(now_s)

    def on_feedback(self, now_s: float, feedback: Feedback, rng: Rng) -> tuple[SenderAction, ...]:
        if feedback.receive_rate_bps is not None and not feedback.receive_rate_bps > 0:
            return ()  # Nothing arrived at the receiver: that says neither congestion nor its absence.
        self._silence.heard(now_s)
        self.reports += 1
        self.congested_reports += feedback.loss_fraction > 0
        actions: tuple[SenderAction, ...] = ()
        if feedback.rtt_s is not None and 0 <= feedback.rtt_s < inf:
            self._sample(now_s, feedback.rtt_s, feedback.loss_fraction > 0)
            actions = (StampData(self.rtt_s),)
        if self.parameters.react == AT_ONCE and not self.hold and self._congested():
            actions += self._end_of_round(now_s)
        return actions

    def on_timer(self, now_s: float, timer: Timer, rng: Rng) -> tuple[SenderAction, ...]:
        if timer.name == SILENCE_TIMER:
            return self._on_silence(now_s)
        if timer.name != ROUND_TIMER or now_s < self._round_due_s:
            return ()
        return self._end_of_round(now_s)

    def _congested(self) -> bool:
        return self.congested_reports > self.parameters.congestion_level * self.reports

    def _end_of_round(self, now_s: float) -> tuple[SenderAction, ...]:
        congested = self._congested()
        if self.parameters.adjusts == PACKETS:
            self._set_ipg(self.ipg_s * self.rtt_s / self._round_rtt_s)  # k = RTT / IPG stays [SSVP eq 7]
            self._round_rtt_s = self.rtt_s
        values = (("reports", self.reports), ("congested", self.congested_reports), ("rtt_s", self.rtt_s))
        if self.hold:
            self.hold -= 1
        elif congested:
            self._decrease()
            self.hold = self.parameters.hold_rounds
        elif self.reports and not self.congested_reports:
            self._increase()
        # else: "a transient loss (e.g. a wireless error) is assumed and the sending rate remains unaffected" [SSVP sec III]
        heard = self.reports
        self.reports = self.congested_reports = 0
        again = self._next_round(now_s)
        return (SetRate(self.rate_bps), again, Note("ssvp.round", (*values, ("rate_bps", self.rate_bps)))) if heard else (again,)

    def _sample(self, now_s: float, rtt_s: float, congested: bool) -> None:
        """RTT is "the current" one [SSVP sec IV.B]: the newest, not smoothed. No less than `min_rtt_s`, no more than a minute."""
        self.rtt_s = clamp(rtt_s, self.parameters.min_rtt_s, max(60.0, self.parameters.min_rtt_s))

    def _factors(self) -> tuple[float, float]:
        """alpha and beta in force."""
        return self.parameters.alpha, self.parameters.beta

    def _decrease(self) -> None:
        _, beta = self._factors()
        self._set_ipg(self.ipg_s / beta)  # IPG = IPG / beta [SSVP eq 4]

    def _increase(self) -> None:
        alpha, _ = self._factors()
        if self.parameters.increase == ADDITIVE:
            k = packets_per_rtt(self.rtt_s, self.ipg_s)
            self._set_ipg(self.ipg_s / (1 + alpha / k))  # k packets become k + alpha [SSVP eq 2, 5, 7]
        else:
            self._set_ipg(self.ipg_s / (1 + alpha))  # IPG = IPG / (1 + alpha) [SSVP eq 5]

    def _set_ipg(self, ipg_s: float) -> None:
        self.ipg_s = clamp(ipg_s, self.shortest_ipg_s, self.longest_ipg_s)

    def _next_round(self, now_s: float) -> SetTimer:
        self._round_due_s = now_s + self.rtt_s
        return SetTimer(ROUND_TIMER, self._round_due_s)

    def _on_silence(self, now_s: float) -> tuple[SenderAction, ...]:
        silent, again = self._silence.expired(now_s)
        if again is None:
            return ()
        if not silent:
            return (again,)
        self._set_ipg(self.ipg_s / self.parameters.silence_factor)
        return SetRate(self.rate_bps), again, Note("ssvp.silence", (("rate_bps", self.rate_bps),))


class SsvpReceiver(Receiver):
    """The receiving half: "control packets in order to send feedback of reception statistics" [SSVP sec III].

    It learns the round-trip time from the stamp in the data. It sends no report while nothing arrives: the report would be empty.
    """

    def __init__(self, parameters: SsvpParameters = SsvpParameters()) -> None:
        self.parameters = parameters
        self._reported_packets = 0
        self._due_s = 0.0

    def on_start(self, now_s: float, rng: Rng) -> tuple[ReceiverAction, ...]:
        return (self._next(now_s, None),)

    def on_timer(self, now_s: float, timer: Timer, reception: ReceptionState, rng: Rng) -> tuple[ReceiverAction, ...]:
        if timer.name != REPORT_TIMER or now_s < self._due_s:
            return ()
        again = self._next(now_s, reception.sender_rtt_s)
        if reception.received_packets == self._reported_packets:
            return (again,)
        self._reported_packets = reception.received_packets
        return SendFeedback(), again

    def _next(self, now_s: float, sender_rtt_s: float | None) -> SetTimer:
        p = self.parameters
        rtt_s = p.initial_rtt_s if sender_rtt_s is None else sender_rtt_s
        interval_s = clamp(rtt_s, p.min_rtt_s, 60.0) / p.reports_per_rtt
        self._due_s = now_s + min(interval_s, p.max_report_interval_s)
        return SetTimer(REPORT_TIMER, self._due_s)


KINDS = (
    Kind(
        "ssvp",
        "gap between packets set each round trip from reports, any alpha and beta [SSVP sec III, eq 3 to 5]",
        SsvpParameters,
        SsvpSender,
        SsvpReceiver,
    ),
)
