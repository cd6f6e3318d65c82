"""TFRC, TCP Friendly Rate Control: RFC 5348; compared with in [SSVP sec VI].

The receiver reports once each round trip, and at once when a loss event begins: the loss event rate p, from its history of loss
intervals (`tfrc_history.py`, section 5), and the rate X_recv at which data arrives (section 6). The sender uses the rate that a
TCP would have at this p and round-trip time R (`tfrc_equation.py`, section 3.1):

    R = q R + (1 - q) R_sample                                                        [sec 4.3 step 2]
    X = max(min(X_Bps, recv_limit), s / t_mbi)            p > 0                       [sec 4.3 step 4]
    X = max(min(2 X, recv_limit), initial_rate)           p = 0, once each R          [sec 4.3 step 4]
    recv_limit = 2 max(X_recv_set),  X_recv_set: X_recv of the last two round trips
    X_inst = X R_sqmean / sqrt(R_sample)                  recommended                 [sec 4.5]

and halves its rate when no report comes for max(4 R, 2 s / X) [sec 4.4].

No event tells an algorithm whether its sender is idle or limited by its data, so the RFC's exceptions for such senders are not here:
recv_limit then bounds X, and X is halved if the sender is idle for so long that reports stop. X is limited to the link's rate, because a
sender must not save up bandwidth that it cannot use.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite, sqrt

from fairlane.hosts.algorithms.base import (
    Feedback,
    Gap,
    Interests,
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
from fairlane.hosts.algorithms.tfrc_equation import loss_event_rate_for, throughput_bps
from fairlane.hosts.algorithms.tfrc_history import LossHistory

NO_FEEDBACK_TIMER = "tfrc.no-feedback"
FEEDBACK_TIMER = "tfrc.feedback"


@dataclass(frozen=True, slots=True)
class TfrcParameters:
    """The RFC's values, and names for the choices that it leaves to the implementation."""

    max_rate_bps: float = 10e6
    """The rate of the sender's own link. No rate goes above it."""

    packet_bytes: int = 1000
    """s: an IPv4 datagram of data, header included."""

    acked_packets: float = 1.0
    """b: packets that one TCP ACK acknowledges; 1 is recommended [RFC 5348 sec 3.1]."""

    rto_factor: float = 4.0
    """t_RTO = 4 R [RFC 5348 sec 3.1]."""

    min_rto_s: float = 0.0
    """t_RTO = max(4 R, this). The RFC allows one second, TCP's smallest [RFC 5348 sec 3.1]; its default has none."""

    rtt_memory: float = 0.9
    """q [RFC 5348 sec 4.3 step 2]."""

    max_backoff_s: float = 64.0
    """t_mbi: the longest gap between packets [RFC 5348 sec 4.3]."""

    initial_ipg_s: float = 1.0
    """X is a packet a second before the first report [RFC 5348 sec 4.2]."""

    initial_no_feedback_s: float = 2.0
    """The nofeedback timer at the start [RFC 5348 sec 4.2]."""

    doubling_slack: float = 0.05
    """Slow start doubles when t_now - tld >= (1 - this) R. The RFC has 0; but reports leave once each R as the packets carry it, in
    whole microseconds, so that without slack it is chance whether one comes a nanosecond too early to count."""

    oscillation_reduction: bool = True
    """X_inst, which "SHOULD be implemented" [RFC 5348 sec 4.5]."""

    sqrt_rtt_memory: float = 0.9
    """q2 of R_sqmean [RFC 5348 sec 4.5]."""

    loss_intervals: int = 8
    """n [RFC 5348 sec 5.4]."""

    history_discounting: bool = True
    """[RFC 5348 sec 5.5], which is optional; ns-2's agent discounts, too."""

    discount_threshold: float = 0.25
    """THRESHOLD [RFC 5348 sec 5.5]."""

    loss_distance_packets: int = 3
    """NDUPACK: a packet is lost when so many later ones arrived [RFC 5348 sec 5.1]."""

    first_packet_poll_s: float = 0.01
    """How often a receiver looks for a packet when it is to report the next at once: the first, those that carry no round-trip time
    [RFC 5348 sec 6.3], and the first after a round trip without any [RFC 5348 sec 6.1]. The time that a packet waited is in the
    report, so that R does not notice."""

    assumed_rtt_s: float = 0.5
    """Round trip that groups losses before any packet carried one. The RFC is silent; [RFC 5348 sec 4.2] begins at one packet a
    second, so that it hardly matters."""

    min_rtt_s: float = 1e-4
    """Samples below it count as this: a round trip of 0, of a coarse clock or a forged report, would give an infinite rate."""

    max_rtt_s: float = 64.0
    """Samples above it count as this."""

    def __post_init__(self) -> None:
        require_positive(
            "TfrcParameters",
            max_rate_bps=self.max_rate_bps,
            packet_bytes=self.packet_bytes,
            acked_packets=self.acked_packets,
            rto_factor=self.rto_factor,
            max_backoff_s=self.max_backoff_s,
            initial_ipg_s=self.initial_ipg_s,
            initial_no_feedback_s=self.initial_no_feedback_s,
            loss_intervals=self.loss_intervals,
            loss_distance_packets=self.loss_distance_packets,
            discount_threshold=self.discount_threshold,
            first_packet_poll_s=self.first_packet_poll_s,
            assumed_rtt_s=self.assumed_rtt_s,
            min_rtt_s=self.min_rtt_s,
            max_rtt_s=self.max_rtt_s,
        )
        for name in ("rtt_memory", "sqrt_rtt_memory", "doubling_slack"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"TfrcParameters.{name} = {getattr(self, name)!r}: must be in [0, 1)")
        if not 0 <= self.min_rto_s < inf:
            raise ValueError(f"TfrcParameters.min_rto_s = {self.min_rto_s!r}: must not be negative")
        if self.min_rate_bps > self.max_rate_bps:
            raise ValueError(f"TfrcParameters.max_rate_bps = {self.max_rate_bps!r}: below one packet in max_backoff_s")

    @property
    def packet_bits(self) -> float:
        return 8.0 * self.packet_bytes

    @property
    def min_rate_bps(self) -> float:
        """s / t_mbi."""
        return self.packet_bits / self.max_backoff_s

    @property
    def initial_window_bits(self) -> float:
        """W_init = min(4 MSS, max(2 MSS, 4380 bytes)) [RFC 5348 sec 4.2]."""
        return 8.0 * min(4 * self.packet_bytes, max(2 * self.packet_bytes, 4380))

    def rto_s(self, rtt_s: float) -> float:
        return max(self.rto_factor * rtt_s, self.min_rto_s)  # t_RTO = 4 R [RFC 5348 sec 3.1]


class TfrcSender(Sender):
    """The sending half [RFC 5348 sec 4]."""

    def __init__(self, parameters: TfrcParameters = TfrcParameters()) -> None:
        self.parameters = parameters
        self.allowed_bps = self._limited(parameters.packet_bits / parameters.initial_ipg_s)
        """X."""
        self.rtt_s: float | None = None
        """R."""
        self.loss_event_rate = 0.0
        """p of the last report."""
        self.receive_rates: list[tuple[float, float]] = [(0.0, inf)]
        """X_recv_set: (when, bit/s)."""
        self._sqrt_rtt_mean = 0.0
        """R_sqmean."""
        self._sqrt_rtt = 0.0
        """sqrt(R_sample)."""
        self._doubled_s = -inf
        """tld."""
        self._no_feedback_at_s = 0.0

    def on_start(self, now_s: float, rng: Rng) -> tuple[SenderAction, ...]:
        return (SetRate(self.allowed_bps), self._watch(now_s, self.parameters.initial_no_feedback_s))

    def on_feedback(self, now_s: float, feedback: Feedback, rng: Rng) -> tuple[SenderAction, ...]:
        p = self.parameters
        said, sample_s = feedback.loss_event_rate or 0.0, feedback.rtt_s
        if sample_s is None or not isfinite(sample_s) or not isfinite(said):
            return ()  # not of a TFRC receiver, or forged
        sample_s = clamp(sample_s, p.min_rtt_s, p.max_rtt_s)  # R_sample [RFC 5348 sec 4.3 step 1], by the runner
        received_bps = clamp(feedback.receive_rate_bps or 0.0, 0.0, p.max_rate_bps)  # X_recv
        self.loss_event_rate = clamp(said, 0.0, 1.0)
        first = self.rtt_s is None
        if self.rtt_s is None:
            self.rtt_s = sample_s
            self._sqrt_rtt_mean = sqrt(sample_s)
        else:
            self.rtt_s = p.rtt_memory * self.rtt_s + (1 - p.rtt_memory) * sample_s  # R = q R + (1-q) R_sample [RFC 5348 sec 4.3 step 2]
            # R_sqmean = q2 R_sqmean + (1-q2) sqrt(R_sample) [RFC 5348 sec 4.5]
            self._sqrt_rtt_mean = p.sqrt_rtt_memory * self._sqrt_rtt_mean + (1 - p.sqrt_rtt_memory) * sqrt(sample_s)
        self._sqrt_rtt = sqrt(sample_s)
        timeout_s = self._timeout_s()  # with the X that was in force [RFC 5348 sec 4.3 step 3]
        if first:  # in place of step 4 [RFC 5348 sec 4.2]
            self.allowed_bps = self._limited(self._initial_rate_bps(self.rtt_s))  # X = W_init / R, tld = now [RFC 5348 sec 4.2]
            self._doubled_s = now_s
            # The rate at which the first packets arrived limits nothing, nor does the next one [RFC 5348 sec 4.3]
            self.receive_rates = [(now_s, inf)]
        else:
            # Update X_recv_set: add X_recv, remove values older than two round trips [RFC 5348 sec 4.3]
            self.receive_rates = [(at_s, bps) for at_s, bps in self.receive_rates if now_s - at_s <= 2 * self.rtt_s]
            self.receive_rates.append((now_s, received_bps))
            self._recalculate(now_s, self.rtt_s)
        return (
            SetRate(self._sending_bps()),
            StampData(self.rtt_s),
            self._watch(now_s, timeout_s),
            Note(
                "tfrc.report",
                (("p", self.loss_event_rate), ("rtt_s", self.rtt_s), ("x_recv_bps", received_bps), ("x_bps", self.allowed_bps)),
            ),
        )

    def on_timer(self, now_s: float, timer: Timer, rng: Rng) -> tuple[SenderAction, ...]:
        """The nofeedback timer [RFC 5348 sec 4.4]."""
        if timer.name != NO_FEEDBACK_TIMER:
            return ()
        if now_s < self._no_feedback_at_s:
            return (SetTimer(NO_FEEDBACK_TIMER, self._no_feedback_at_s),)
        if self.rtt_s is None or self.loss_event_rate == 0.0:
            self.allowed_bps = self._limited(self.allowed_bps / 2)  # X = max(X/2, s/t_mbi) [RFC 5348 sec 4.4]
        else:
            received_bps, equation_bps = self._receive_limit_bps() / 2, self._equation_bps(self.rtt_s)
            # 2 X_recv was the limit: Update_Limits(X_recv); else X_Bps was: Update_Limits(X_Bps / 2) [RFC 5348 sec 4.4]
            limit_bps = received_bps if equation_bps > 2 * received_bps else equation_bps / 2
            limit_bps = max(limit_bps, self.parameters.min_rate_bps)
            self.receive_rates = [(now_s, limit_bps / 2)]
            self._recalculate(now_s, self.rtt_s)
        return (
            SetRate(self._sending_bps()),
            self._watch(now_s, self._timeout_s()),
            Note("tfrc.no-feedback", (("x_bps", self.allowed_bps),)),
        )

    def _recalculate(self, now_s: float, rtt_s: float) -> None:
        """X [RFC 5348 sec 4.3 step 4]."""
        limit_bps = self._receive_limit_bps()
        if self.loss_event_rate > 0.0:
            self.allowed_bps = self._limited(min(self._equation_bps(rtt_s), limit_bps))  # X = max(min(X_Bps, recv_limit), s/t_mbi)
        elif now_s - self._doubled_s >= (1 - self.parameters.doubling_slack) * rtt_s:
            # X = max(min(2 X, recv_limit), initial_rate), tld = now
            self.allowed_bps = self._limited(max(min(2 * self.allowed_bps, limit_bps), self._initial_rate_bps(rtt_s)))
            self._doubled_s = now_s

    def _receive_limit_bps(self) -> float:
        return 2 * max(bps for _, bps in self.receive_rates)  # recv_limit = 2 max(X_recv_set) [RFC 5348 sec 4.3 step 4]

    def _equation_bps(self, rtt_s: float) -> float:
        p = self.parameters
        return throughput_bps(p.packet_bytes, rtt_s, self.loss_event_rate, p.rto_s(rtt_s), p.acked_packets)

    def _initial_rate_bps(self, rtt_s: float) -> float:
        return self.parameters.initial_window_bits / rtt_s

    def _timeout_s(self) -> float:
        gap_s = self.parameters.packet_bits / self.allowed_bps
        return max(4 * (self.rtt_s or 0.0), 2 * gap_s)  # max(4 R, 2 s / X) [RFC 5348 sec 4.3 step 3]

    def _sending_bps(self) -> float:
        if not self.parameters.oscillation_reduction or self._sqrt_rtt == 0.0:
            return self.allowed_bps
        return self._limited(
            self.allowed_bps * self._sqrt_rtt_mean / self._sqrt_rtt
        )  # X_inst = X R_sqmean / sqrt(R_sample) [RFC 5348 sec 4.5]

    def _limited(self, rate_bps: float) -> float:
        return clamp(rate_bps, self.parameters.min_rate_bps, self.parameters.max_rate_bps)

    def _watch(self, now_s: float, timeout_s: float) -> SetTimer:
        self._no_feedback_at_s = now_s + timeout_s
        return SetTimer(NO_FEEDBACK_TIMER, self._no_feedback_at_s)


class TfrcReceiver(Receiver):
    """The receiving half [RFC 5348 sec 5, 6]."""

    interests = Interests(gaps=True, loss_distance_packets=3)

    def __init__(self, parameters: TfrcParameters = TfrcParameters()) -> None:
        self.parameters = parameters
        self.interests = Interests(gaps=True, loss_distance_packets=parameters.loss_distance_packets)
        self.history = self._new_history()
        self._reported_packets = 0
        """Received when the last report left."""
        self._reported_bytes = 0
        self._reported_s = 0.0
        self._max_received_bps = 0.0
        """The largest X_recv so far: X_target after the first loss [RFC 5348 sec 6.3.1]."""

    def on_start(self, now_s: float, rng: Rng) -> tuple[ReceiverAction, ...]:
        return (SetTimer(FEEDBACK_TIMER, now_s + self.parameters.first_packet_poll_s),)

    def on_gap(self, now_s: float, gap: Gap, rng: Rng) -> tuple[ReceiverAction, ...]:
        self._check_source(gap.reception)
        rtt_s = self._rtt_s(gap.reception)
        first = 1.0
        if self.history.start_sequence is None:
            self._measure(now_s, gap.reception)
            first = self._first_interval(rtt_s)
        began = self.history.lost(gap.first_lost_sequence, gap.last_lost_sequence, gap.before_s, gap.after_s, rtt_s, first)
        # A new loss event does not wait for the end of a round trip [RFC 5348 sec 6]
        return self._report(now_s, gap.reception) if began else ()

    def on_timer(self, now_s: float, timer: Timer, reception: ReceptionState, rng: Rng) -> tuple[ReceiverAction, ...]:
        """The feedback timer [RFC 5348 sec 6.2]."""
        if timer.name != FEEDBACK_TIMER:
            return ()
        if reception.received_packets == self._reported_packets:
            # No data, no report [RFC 5348 sec 6.2]: but at once when some come [RFC 5348 sec 6.1 step 2]
            return (SetTimer(FEEDBACK_TIMER, now_s + min(self._rtt_s(reception), self.parameters.first_packet_poll_s)),)
        return self._report(now_s, reception)

    def _report(self, now_s: float, reception: ReceptionState) -> tuple[ReceiverAction, ...]:
        self._check_source(reception)
        self._measure(now_s, reception)
        self._reported_packets, self._reported_bytes = reception.received_packets, reception.received_bytes
        self._reported_s = now_s
        rate = self.history.loss_event_rate(reception.highest_sequence)
        return (SendFeedback(loss_event_rate=rate), self._next(now_s, reception))

    def _new_history(self) -> LossHistory:
        p = self.parameters
        return LossHistory(p.loss_intervals, p.history_discounting, p.discount_threshold)

    def _check_source(self, reception: ReceptionState) -> None:
        """Numbers that go back are a sender's that was started again: its packets say nothing about the intervals before."""
        start = self.history.start_sequence
        if start is not None and reception.highest_sequence < start:
            self.history = self._new_history()

    def _next(self, now_s: float, reception: ReceptionState) -> SetTimer:
        """R_m after the report [RFC 5348 sec 6.2]; at once on each packet while no R is known [RFC 5348 sec 6.3]."""
        known = reception.sender_rtt_s is not None
        return SetTimer(FEEDBACK_TIMER, now_s + (self._rtt_s(reception) if known else self.parameters.first_packet_poll_s))

    def _rtt_s(self, reception: ReceptionState) -> float:
        p = self.parameters
        return p.assumed_rtt_s if reception.sender_rtt_s is None else clamp(reception.sender_rtt_s, p.min_rtt_s, p.max_rtt_s)

    def _measure(self, now_s: float, reception: ReceptionState) -> None:
        """X_recv since the last report, if that was a round trip ago: over a shorter time it is a matter of chance."""
        elapsed_s = now_s - self._reported_s
        if self._reported_packets and elapsed_s >= 0.5 * self._rtt_s(reception):
            received_bps = 8 * (reception.received_bytes - self._reported_bytes) / elapsed_s
            self._max_received_bps = max(self._max_received_bps, received_bps)

    def _first_interval(self, rtt_s: float) -> float:
        """1/p for which the equation gives X_target, the largest X_recv, or half a packet each R if that is more [RFC 5348 sec 6.3.1]."""
        p = self.parameters
        target_bps = max(self._max_received_bps, 0.5 * p.packet_bits / rtt_s)
        return 1 / loss_event_rate_for(target_bps, p.packet_bytes, rtt_s, p.rto_s(rtt_s), p.acked_packets)


KINDS = (
    Kind(
        "tfrc",
        "the rate that the TCP throughput equation gives for the loss events of a path [RFC 5348]",
        TfrcParameters,
        TfrcSender,
        TfrcReceiver,
    ),
)
