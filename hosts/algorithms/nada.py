"""NADA, Network-Assisted Dynamic Adaptation: RFC 8698, a delay- and loss-based scheme for conversational media.

Delay, loss and marks become one signal, a delay in seconds:

    d_tilde = d_queue                                        if d_queue < QTH,          (1)
              QTH exp(-LAMBDA (d_queue - QTH) / QTH)         else
    x_curr = d_tilde + DMARK (p_mark / PMRREF)^2 + DLOSS (p_loss / PLRREF)^2            (2)

Equation 1's second line applies only while losses are recent: next to loss-based flows a long queue must not starve NADA. Every DELTA
the reference rate changes. While nothing was lost and no packet waited QEPS in the last LOGWIN, fast:

    gamma = min(GAMMA_MAX, QBOUND / (rtt + DELTA + DFILT))                              (3)
    r_ref = max(r_ref, (1 + gamma) r_recv)                                              (4)

and else gradually:

    x_offset = x_curr - PRIO XREF RMAX / r_ref                                          (5)
    x_diff = x_curr - x_prev                                                            (6)
    r_ref = r_ref - KAPPA (delta / TAU) (x_offset / TAU) r_ref - KAPPA ETA (x_diff / TAU) r_ref     (7)

The RFC's receiver reports x_curr, the mode and r_recv every DELTA. Here acknowledgements say when each packet arrived, and the sender
computes the same every DELTA, which section 6 of the RFC discusses: its receiver only stamps them. With `ecn` packets are sent as
ECT(0), and acknowledgements tell marks. Where an application's data wait in the sender, that is the rate shaping buffer, of buffer_len bytes:

    r_diff_v = min(0.05 r_ref, BETA_V 8 buffer_len FPS)                                 (11)
    r_diff_s = min(0.05 r_ref, BETA_S 8 buffer_len FPS)                                 (12)
    r_vin = max(RMIN, r_ref - r_diff_v)                                                 (13)
    r_send = min(RMAX, r_ref + r_diff_s)                                                (14)

r_vin is the encoder's rate, r_send the packets'. A flow that always has data has no encoder, and both its rates are r_ref.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from fairlane.arithmetic import exp, square
from fairlane.hosts.algorithms.base import (
    Ack,
    AckDetail,
    Ecn,
    Interests,
    Kind,
    Loss,
    Note,
    Receiver,
    Rng,
    Sender,
    SenderAction,
    SetEncoderRate,
    SetRate,
    SetTimer,
    Timer,
    clamp,
    require_positive,
)
from fairlane.hosts.algorithms.packet_feedback import FeedbackWindow
from fairlane.hosts.algorithms.tfrc_history import LossHistory

UPDATE_TIMER = "nada.update"
RMAX_BPS = 3e6
"""RMAX where no media codec gives the range of its rate [RFC 8698 sec 4.3]."""
MAX_RTT_S = 10.0
"""Round trips beyond count as this: a coarse clock, a forged packet."""
MOST_SHAPING = 0.05
"""Of r_ref: what waits in the sender changes no rate by more [RFC 8698 eq 11, 12]."""


@dataclass(frozen=True, slots=True)
class NadaParameters:
    """The RFC's values [RFC 8698 sec 4.1], and names for the choices that it leaves open."""

    max_rate_bps: float = 1.5e6
    """RMAX, by Table 2 and as RFC 8867's media. An experiment that names no greatest rate has `RMAX_BPS`."""

    packet_bytes: int = 1000
    """An IPv4 datagram of data, header included."""

    min_rate_bps: float = 150e3
    """RMIN, and the first rate [RFC 8698 sec 4.1]; `max_rate_bps` if that is less. Section 4.3 has 0 without a codec: r_ref would start at it, and
    equation 5 divides by r_ref."""

    priority: float = 1.0
    """PRIO: weight of the flow beside others."""

    reference_signal_s: float = 0.010
    """XREF."""

    kappa: float = 0.5
    """KAPPA."""

    eta: float = 2.0
    """ETA."""

    tau_s: float = 0.5
    """TAU: upper bound of the round trip in a gradual update; it bounds no measured one."""

    update_interval_s: float = 0.1
    """DELTA."""

    window_s: float = 0.5
    """LOGWIN."""

    ramp_up_delay_s: float = 0.010
    """QEPS."""

    filter_delay_s: float = 0.120
    """DFILT."""

    max_ramp_up: float = 0.5
    """GAMMA_MAX."""

    ramp_up_queue_s: float = 0.050
    """QBOUND."""

    loss_memory: float = 7.0
    """MULTILOSS: equation 1 bends the delay for so many mean loss intervals after a loss."""

    warp_delay_s: float = 0.050
    """QTH."""

    warp_exponent: float = 0.5
    """LAMBDA."""

    reference_loss: float = 0.01
    """PLRREF."""

    reference_marking: float = 0.01
    """PMRREF."""

    loss_penalty_s: float = 0.010
    """DLOSS."""

    mark_penalty_s: float = 0.002
    """DMARK."""

    smoothing: float = 0.1
    """ALPHA: weight of a new loss ratio."""

    delay_taps: int = 15
    """d_queue is the smallest of so many packets [RFC 8698 sec 5.1.1]."""

    max_signal_s: float = 0.5
    """Largest x_curr, as in the authors' code (cisco/ns3-rmcat). The report's field ends at 3.2767 s [RFC 8698 sec 5.3]."""

    encoder_weight: float = 0.1
    """BETA_V."""

    sending_weight: float = 0.1
    """BETA_S."""

    frames_per_second: float = 30.0
    """FPS: of the encoder, where there is one."""

    silence_s: float = 2.0
    """After so long without an acknowledgement the rate is `min_rate_bps`. The RFC does not say."""

    ecn: bool = False
    """Packets are ECN-capable, ECT(0), and marks count."""

    def __post_init__(self) -> None:
        require_positive("NadaParameters", **{name: getattr(self, name) for name in self.__slots__ if name != "ecn"})
        if self.smoothing > 1:
            raise ValueError(f"NadaParameters.smoothing = {self.smoothing!r}: must be in (0, 1]")

    @property
    def lowest_bps(self) -> float:
        return min(self.min_rate_bps, self.max_rate_bps)


def warped_delay_s(p: NadaParameters, queueing_s: float) -> float:
    """d_tilde [RFC 8698 eq 1], of a queueing delay in seconds."""
    if queueing_s < p.warp_delay_s:
        return queueing_s
    return p.warp_delay_s * exp(-p.warp_exponent * (queueing_s - p.warp_delay_s) / p.warp_delay_s)  # [RFC 8698 eq 1]


def aggregate_signal_s(p: NadaParameters, delay_s: float, marking: float, loss: float) -> float:
    """x_curr in seconds [RFC 8698 eq 2]: delay_s is d_tilde or d_queue; marking and loss are fractions of packets."""
    penalties_s = p.mark_penalty_s * square(marking / p.reference_marking) + p.loss_penalty_s * square(loss / p.reference_loss)
    return min(delay_s + penalties_s, p.max_signal_s)  # [RFC 8698 eq 2]


def ramp_up_rate_bps(p: NadaParameters, rate_bps: float, receive_rate_bps: float, rtt_s: float) -> float:
    """r_ref of accelerated ramp-up, before its limits [RFC 8698 eq 3, 4]."""
    gamma = min(p.max_ramp_up, p.ramp_up_queue_s / (rtt_s + p.update_interval_s + p.filter_delay_s))  # [RFC 8698 eq 3]
    return max(rate_bps, (1 + gamma) * receive_rate_bps)  # [RFC 8698 eq 4]


def gradual_rate_bps(p: NadaParameters, rate_bps: float, signal_s: float, before_s: float, delta_s: float) -> float:
    """r_ref of a gradual update, before its limits [RFC 8698 eq 5, 6, 7]; signal_s and before_s are x_curr and x_prev."""
    offset_s = signal_s - p.priority * p.reference_signal_s * p.max_rate_bps / rate_bps  # [RFC 8698 eq 5]
    diff_s = signal_s - before_s  # [RFC 8698 eq 6]
    change = p.kappa * (delta_s / p.tau_s) * (offset_s / p.tau_s) + p.kappa * p.eta * diff_s / p.tau_s
    return rate_bps - change * rate_bps  # [RFC 8698 eq 7]


def shaped_rates_bps(p: NadaParameters, rate_bps: float, waiting_bytes: float) -> tuple[float, float]:
    """r_vin and r_send [RFC 8698 eq 11, 12, 13, 14]: "bounded by 5% of the reference rate" [RFC 8698 sec 5.2.2]."""
    waiting_bps, most_bps = 8 * waiting_bytes * p.frames_per_second, MOST_SHAPING * rate_bps
    encoder_less_bps = min(most_bps, p.encoder_weight * waiting_bps)
    sending_more_bps = min(most_bps, p.sending_weight * waiting_bps)
    return max(p.lowest_bps, rate_bps - encoder_less_bps), min(p.max_rate_bps, rate_bps + sending_more_bps)


class NadaSender(Sender):
    """Both halves' books, and the reference rate [RFC 8698 sec 4.2, 4.3]."""

    interests = Interests(acks=AckDetail.EVERY, loss_distance_packets=1)
    """ "Treating out-of-order packets as losses" [RFC 8698 sec 5.1.2]."""

    def __init__(self, parameters: NadaParameters = NadaParameters()) -> None:
        self.parameters = parameters
        if parameters.ecn:
            self.interests = replace(self.interests, ecn=Ecn.ECT_0)
        self.rate_bps = parameters.lowest_bps
        """r_ref."""
        self.signal_s = 0.0
        """x_curr of the last update: the next one's x_prev."""
        self.loss = 0.0
        """p_loss."""
        self.marking = 0.0
        """p_mark."""
        self.window = FeedbackWindow(parameters.window_s, parameters.delay_taps)
        self.history = LossHistory(discounting=False)
        self._highest = 0
        self._updated_s = 0.0
        self._next_s = 0.0
        self._heard_s = 0.0
        self._news = False

    def on_start(self, now_s: float, rng: Rng) -> tuple[SenderAction, ...]:
        self._updated_s = self._heard_s = now_s
        return (SetRate(self.rate_bps), self._plan(now_s))

    def on_ack(self, now_s: float, ack: Ack, rng: Rng) -> tuple[SenderAction, ...]:
        self._highest = max(self._highest, ack.sequence)
        self._heard_s = now_s
        if self.window.acked(now_s, ack) is not None:
            self._news = True
        return ()

    def on_loss(self, now_s: float, loss: Loss, rng: Rng) -> tuple[SenderAction, ...]:
        self.window.lost(now_s, loss)
        srtt_s = clamp(loss.path.srtt_s, 0.0, MAX_RTT_S)
        self.history.lost(loss.first_sequence, loss.last_sequence, now_s, now_s, srtt_s, float(max(1, loss.first_sequence)))
        return ()

    def on_timer(self, now_s: float, timer: Timer, rng: Rng) -> tuple[SenderAction, ...]:
        if timer.name != UPDATE_TIMER:
            return ()
        if now_s < self._next_s:
            return (SetTimer(UPDATE_TIMER, self._next_s),)
        p = self.parameters
        if not self._news:
            if now_s - self._heard_s <= p.silence_s:
                return (self._plan(now_s),)
            self.rate_bps = p.lowest_bps
            return (SetRate(self.rate_bps), self._plan(now_s))
        path = timer.path
        rtt_s = clamp(path.srtt_s if path is not None else 0.0, 0.0, MAX_RTT_S)
        note = self._update(now_s, rtt_s)
        waiting_bytes = None if path is None else path.waiting_bytes
        if waiting_bytes is None:
            return (SetRate(self.rate_bps), note, self._plan(now_s))
        encoder_bps, sending_bps = shaped_rates_bps(p, self.rate_bps, waiting_bytes)
        return (SetRate(sending_bps), SetEncoderRate(encoder_bps), note, self._plan(now_s))

    def _update(self, now_s: float, rtt_s: float) -> Note:
        """A report of the RFC's receiver and the sender's answer to it [RFC 8698 sec 4.2, 4.3]."""
        p, self._news = self.parameters, False
        # p_loss = ALPHA p_inst + (1 - ALPHA) p_loss, and so p_mark [RFC 8698 sec 5.1.2]
        self.loss += p.smoothing * (self.window.loss_ratio(now_s) - self.loss)
        self.marking += p.smoothing * (self.window.marking_ratio(now_s) - self.marking)
        queueing_s = self.window.queueing_s() or 0.0
        received_bps = clamp(self.window.receive_rate_bps(now_s, p.packet_bytes), 0.0, p.max_rate_bps)
        signal_s = aggregate_signal_s(p, self._delay_s(queueing_s), self.marking, self.loss)
        delta_s = now_s - self._updated_s
        accelerated = self._accelerated(now_s)
        if accelerated:
            self.rate_bps = self._limited(ramp_up_rate_bps(p, self.rate_bps, received_bps, rtt_s))
        else:
            self.rate_bps = self._limited(gradual_rate_bps(p, self.rate_bps, signal_s, self.signal_s, delta_s))
        self.signal_s, self._updated_s = signal_s, now_s
        values = (
            ("x_s", signal_s),
            ("queueing_s", queueing_s),
            ("p_loss", self.loss),
            ("p_mark", self.marking),
            ("r_recv_bps", received_bps),
        )
        return Note("nada.update", (*values, ("accelerated", int(accelerated)), ("r_ref_bps", self.rate_bps)))

    def _accelerated(self, now_s: float) -> bool:
        """rmode 0: no loss, and no delay of QEPS, within LOGWIN [RFC 8698 sec 4.2]. No mark either, of which the RFC does not speak: a queue
        that marks before packets wait QEPS would never end the ramp."""
        _, lost = self.window.look(now_s)
        return (
            lost == 0
            and self.window.marking_ratio(now_s) == 0.0
            and self.window.longest_queueing_s(now_s) < self.parameters.ramp_up_delay_s
        )

    def _delay_s(self, queueing_s: float) -> float:
        """d_tilde while the last loss is less than MULTILOSS mean loss intervals ago, then d_queue, and in between, for one interval, a
        mean that goes from one to the other [RFC 8698 sec 4.2]. Intervals are in packets and their mean is weighted [RFC 5348 sec 5.4],
        but without the open one: with it, as the RFC and its authors' code have it, the open interval is at most W_tot = 6 means long,
        never MULTILOSS = 7, and the delay stays warped for ever after a first loss."""
        if self.history.start_sequence is None:
            return queueing_s
        intervals = (self._highest - self.history.start_sequence) / self.history.mean_closed()
        plain = clamp(intervals - self.parameters.loss_memory, 0.0, 1.0)
        return plain * queueing_s + (1 - plain) * warped_delay_s(self.parameters, queueing_s)

    def _limited(self, rate_bps: float) -> float:
        return clamp(rate_bps, self.parameters.lowest_bps, self.parameters.max_rate_bps)

    def _plan(self, now_s: float) -> SetTimer:
        self._next_s = now_s + self.parameters.update_interval_s
        return SetTimer(UPDATE_TIMER, self._next_s)


def of_path(given: Mapping[str, Any], slowest_bps: float, flows: int) -> dict[str, Any]:
    """No link is a codec: "in the absence of such information" RMAX is 3 Mb/s [RFC 8698 sec 4.3]."""
    return {"max_rate_bps": RMAX_BPS}


class NadaReceiver(Receiver):
    """Says when each packet arrived; the sender does the rest."""

    interests = Interests(timed_acks=True)

    def __init__(self, parameters: NadaParameters = NadaParameters()) -> None:
        self.parameters = parameters


KINDS = (
    Kind(
        "nada",
        "one signal of queueing delay and loss steers a media rate every 100 ms [RFC 8698]",
        NadaParameters,
        NadaSender,
        NadaReceiver,
        of_path=of_path,
    ),
)
