"""DAA, the direct adjustment algorithm: Sisalem and Schulzrinne, section 4.

At each RTCP report the sender smooths the reported loss, and takes the smaller of an additive increase and the rate that a TCP
connection would get with the same round trip, packet size and loss:

    r_TCP = M / (tau sqrt(2 D l / 3) + t_out min(1, 3 sqrt(3 D l / 8)) l (1 + 32 l^2))      [DAA eq 1]
    tau   = T - T_DLSR - T_LSR                                                             [DAA eq 2]
    l_s   = (1 - sigma) l_s + sigma l                                                      [DAA eq 3]
    r_add = r + A                                                                          [DAA eq 4]
    r     = min(r_TCP(l_s, tau), r_add)                                                    [DAA sec 4]

The runner computes equation 2 (`fairlane.hosts.wire.ntp.round_trip_s`): the result arrives here as `Feedback.rtt_s`. The paper also has the sender
"determine the propagation delay", and then uses it nowhere; neither does this file.

Choices that the paper leaves open, each a parameter of `DaaParameters`: A, t_out, D, the first rate, the lowest rate, missing reports.
Section 4 gives a rule for l_s > 0 only. For l_s = 0 equation 1 has no bound (r_TCP grows without limit as l falls to 0), so that
min[r_TCP, r_add] is r_add: the same line applies. Without a round-trip time equation 1 cannot be evaluated, and a sender with
losses then keeps its rate until it has one: this is possible only in the first seconds, at `initial_rate_bps` and a few steps A above.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt

from fairlane.arithmetic import square
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

SILENCE_TIMER = "daa.silence"


@dataclass(frozen=True, slots=True)
class DaaParameters:
    """The paper's values, and names for the choices that it leaves open."""

    smoothing: float = 0.3
    """sigma [DAA eq 3], "set here to 0.3"."""

    packet_bytes: float = 1000.0
    """M [DAA eq 1], an IPv4 datagram of data in bytes: "we set the packet size to 1 kbyte" [DAA sec 5]."""

    additive_increase_bps: float = 50_000.0
    """A [DAA eq 4], for each report. The paper set it by trial and does not say to what [DAA sec 7]. 50 kb/s is the increase of
    the AIMD scheme that it compares with [DAA sec 3], so that the two differ in the TCP model only."""

    packets_per_ack: float = 1.0
    """D [DAA eq 1]. The paper does not state it, and its text needs 1: a loss of 0.1% at 200 ms gives TCP "only 1.5 Mb/s" [DAA sec 5].
    Each packet is then acknowledged; a receiver with delayed acknowledgements is D = 2 [RFC 5681 sec 4.2]."""

    timeout_rtts: float = 4.0
    """t_out [DAA eq 1] in round-trip times. The paper is silent. 4 is what TFRC, which rests on the same equation, recommends
    where nothing is measured [RFC 5348 sec 3.1]."""

    min_timeout_s: float = 0.0
    """t_out is not below this. The paper is silent, and 0 changes nothing; a TCP of RFC 6298 has 1 s, Linux 0.2 s."""

    max_rate_bps: float = 10e6
    """The rate of the sender's own link; no rate goes above it."""

    initial_rate_bps: float = 100_000.0
    """Rate before the first report. The paper is silent. A hundredth of its bottleneck: twelve packets of 1000 bytes a second,
    so that the first report can see losses."""

    min_rate_bps: float = 8_000.0
    """No rate goes below it: r_TCP falls to nearly 0 with l near 1. The paper is silent. One packet of 1000 bytes a second keeps
    reports coming, without which a rate of zero would last for ever."""

    report_timeout_s: float = 25.0
    """After so long without a report the rate is multiplied by `silence_factor`. The paper is silent. Five times the mean
    report interval, as RTCP times members out [RFC 3550 sec 6.3.5]."""

    silence_factor: float = 0.5
    """The paper is silent; halving is TFRC's rule [RFC 5348 sec 4.4]."""

    def __post_init__(self) -> None:
        require_rate_limits("DaaParameters", self)
        require_positive(
            "DaaParameters",
            smoothing=self.smoothing,
            packet_bytes=self.packet_bytes,
            additive_increase_bps=self.additive_increase_bps,
            packets_per_ack=self.packets_per_ack,
            timeout_rtts=self.timeout_rtts,
        )
        if self.smoothing > 1:
            raise ValueError(f"DaaParameters.smoothing = {self.smoothing!r}: the weight of a report is at most 1")
        if not 0 <= self.min_timeout_s < inf:
            raise ValueError(f"DaaParameters.min_timeout_s = {self.min_timeout_s!r}: must be 0 or more, and finite")


def tcp_rate_bps(packet_bytes: float, rtt_s: float, timeout_s: float, loss: float, packets_per_ack: float = 1.0) -> float:
    """r_TCP [DAA eq 1] in bit/s: the mean rate of a TCP connection; infinite where the equation has no bound.

    `loss` is a fraction from 0 to 1; times in seconds, 0 or more.
    """
    fast_retransmit_s = rtt_s * sqrt(2 * packets_per_ack * loss / 3)
    timeouts_s = timeout_s * min(1.0, 3 * sqrt(3 * packets_per_ack * loss / 8)) * loss * (1 + 32 * square(loss))
    seconds_per_packet = fast_retransmit_s + timeouts_s
    return packet_bytes * 8 / seconds_per_packet if seconds_per_packet > 0 else inf  # r_TCP = M / (...) [DAA eq 1]


class DirectAdjustment:
    """Loss and round trip of the path to one receiver, and the rate that follows: equations 1, 3 and 4."""

    def __init__(self, parameters: DaaParameters) -> None:
        self.parameters = parameters
        self.smoothed_loss = 0.0
        """l_s."""
        self.rtt_s: float | None = None
        """tau, of the newest report that had one."""
        self.tcp_bps = inf
        """r_TCP of the newest report; infinite without a bound."""

    def on_report(self, feedback: Feedback, rate_bps: float) -> float:
        """The next rate in bit/s, between the lowest and the highest of the parameters. rate_bps: r, at which the sender sends."""
        p = self.parameters
        if feedback.rtt_s is not None and 0 <= feedback.rtt_s < inf:
            self.rtt_s = feedback.rtt_s  # tau = T - T_DLSR - T_LSR [DAA eq 2], as the runner computed it
        loss = clamp(feedback.loss_fraction, 0.0, 1.0)
        self.smoothed_loss = (1 - p.smoothing) * self.smoothed_loss + p.smoothing * loss  # l_s [DAA eq 3]

        if self.rtt_s is not None:
            timeout_s = max(p.timeout_rtts * self.rtt_s, p.min_timeout_s)
            self.tcp_bps = tcp_rate_bps(p.packet_bytes, self.rtt_s, timeout_s, self.smoothed_loss, p.packets_per_ack)  # [DAA eq 1]
        else:
            self.tcp_bps = rate_bps if self.smoothed_loss > 0 else inf
        add_bps = rate_bps + p.additive_increase_bps  # r_add = r + A [DAA eq 4]
        return clamp(min(self.tcp_bps, add_bps), p.min_rate_bps, p.max_rate_bps)  # r = min[r_TCP, r_add] [DAA sec 4]


class DaaSender(Sender):
    """The sending half of DAA [DAA sec 4]."""

    interests = Interests(rtcp=True)

    def __init__(self, parameters: DaaParameters = DaaParameters()) -> None:
        self.parameters = parameters
        self.rate_bps = initial_rate(parameters)
        self.path = DirectAdjustment(parameters)
        self._silence = SilenceWatch(SILENCE_TIMER, parameters.report_timeout_s)

    def on_start(self, now_s: float, rng: Rng) -> tuple[SenderAction, ...]:
        return SetRate(self.rate_bps), self._silence.start(now_s)

    def on_feedback(self, now_s: float, feedback: Feedback, rng: Rng) -> tuple[SenderAction, ...]:
        self._silence.heard(now_s)
        self.rate_bps = self.path.on_report(feedback, self.rate_bps)
        return (
            SetRate(self.rate_bps),
            Note(
                "daa.report",
                (
                    ("reporter", feedback.reporter),
                    ("loss", clamp(feedback.loss_fraction, 0.0, 1.0)),
                    ("l_s", self.path.smoothed_loss),
                    ("tau_s", self.path.rtt_s),
                    ("r_tcp_bps", self.path.tcp_bps if self.path.tcp_bps < inf else None),
                    ("rate_bps", self.rate_bps),
                ),
            ),
        )

    def on_timer(self, now_s: float, timer: Timer, rng: Rng) -> tuple[SenderAction, ...]:
        if timer.name != SILENCE_TIMER:
            return ()
        silent, again = self._silence.expired(now_s)
        if again is None:
            return ()
        if not silent:
            return (again,)
        self.rate_bps = max(self.rate_bps * self.parameters.silence_factor, self.parameters.min_rate_bps)
        return SetRate(self.rate_bps), again, Note("daa.silence", (("rate_bps", self.rate_bps),))


class DaaReceiver(Receiver):
    """The receiving half: plain RTCP receiver reports, which the runner writes [DAA sec 4]."""

    interests = Interests(rtcp=True)

    def __init__(self, parameters: DaaParameters = DaaParameters()) -> None:
        self.parameters = parameters


KINDS = (
    Kind(
        "daa",
        "RTCP reports; the smaller of r + A and the TCP model's rate [DAA sec 4, eq 1 to 4]",
        DaaParameters,
        DaaSender,
        DaaReceiver,
    ),
)
