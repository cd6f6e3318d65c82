"""SCReAM, Self-Clocked Rate Adaptation for Multimedia: RFC 8298, its first version. (The second, draft-johansson-ccwg-rfc8298bis-screamv2, has
another window and another media rate.)

A window as LEDBAT's limits the bytes in flight: with each acknowledgement

    off_target = (qdelay_target - qdelay) / qdelay_target
    cwnd += GAIN off_target bytes_newly_acked MSS / cwnd                      [RFC 8298 sec 4.1.2.2]

in fast increase by all that was acknowledged; a loss multiplies it by BETA_LOSS. The trend of the queueing delay, which ends fast increase,
is its mean times its autocorrelation:

    a = R(hist - mean, 1) / R(hist - mean, 0)
    qdelay_trend = min(1, max(0, a qdelay_fraction_avg))                      [RFC 8298 sec 4.1.2]

Packets leave at the pace of the window, and a media rate is set each RATE_ADJUST_INTERVAL so that the queue of packets that wait in the
sender stays short:

    delta_rate = current_rate (1 - PRE_CONGESTION_GUARD qdelay_trend) - TX_QUEUE_SIZE_FACTOR rtp_queue_size - target_bitrate
                                                                              [RFC 8298 sec 4.1.3]

The RFC's line has no target_bitrate: then the rate would fall only when a second's worth of packets waits. Its authors' code has it.

Acknowledgements of single packets that say when each arrived are the RFC's feedback; they come for each packet, where the RFC allows
one for many. With reports on many packets (RFC 8888) what is to be done with each feedback is done once for each report. The encoder and the queue behind it stand inside the sender: an encoder that makes exactly `target_bitrate`, and a queue of
what it made and the window did not let go. Where an application produces the data, its own queue counts, and an encoder is told
`target_bitrate`. There is one stream.

With `ecn` packets are sent as ECT(0), and a mark multiplies the window by BETA_ECN [RFC 8298 sec 4.1.2.2]. With `l4s` they are sent as ECT(1), and
the window follows the marked part as DCTCP's does (RFC 8257). That is not in the RFC; the authors' code of its month has it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from math import floor, sqrt

from fairlane.arithmetic import square, total
from fairlane.hosts.algorithms.base import (
    Ack,
    AckDetail,
    Ecn,
    Interests,
    Kind,
    Loss,
    LossCause,
    Note,
    PathState,
    Receiver,
    Rng,
    Sender,
    SenderAction,
    SetEncoderRate,
    SetLossTimeout,
    SetRate,
    SetTimer,
    SetWindow,
    Timer,
    clamp,
    require_positive,
)
from fairlane.hosts.algorithms.packet_feedback import BaseDelay, measured_delay_s

SAMPLE_TIMER = "scream.sample"
MAX_WINDOW_PACKETS = 1e5
MIN_RTT_S, MAX_RTT_S = 1e-3, 10.0
"""Round trips beyond count as these: a coarse clock, a forged packet."""


@dataclass(frozen=True, slots=True)
class ScreamParameters:
    """The RFC's constants [RFC 8298 sec 4.1.1.1], and names for the choices that it leaves open."""

    max_rate_bps: float = 1.5e6
    """TARGET_BITRATE_MAX. A fabric sets the rate of the sender's link; RFC 8867 has media of 1.5 Mb/s at most."""

    packet_bytes: int = 1000
    """MSS: an IPv4 datagram of data, header included."""

    min_rate_bps: float = 150e3
    """TARGET_BITRATE_MIN, and the first rate; of a link that is slower, the link's."""

    target_low_s: float = 0.1
    """QDELAY_TARGET_LO."""

    target_high_s: float = 0.4
    """QDELAY_TARGET_HI."""

    delay_weight: float = 0.1
    """QDELAY_WEIGHT."""

    trend_threshold: float = 0.2
    """QDELAY_TREND_TH."""

    min_window_bytes: float = 3000.0
    """MIN_CWND."""

    flight_headroom: float = 1.1
    """MAX_BYTES_IN_FLIGHT_HEAD_ROOM."""

    flight_memory_s: float = 5.0
    """How long max_bytes_in_flight remembers [RFC 8298 sec 4.1.2.2]."""

    gain: float = 1.0
    """GAIN."""

    beta_loss: float = 0.8
    """BETA_LOSS."""

    beta_ecn: float = 0.9
    """BETA_ECN."""

    ecn: bool = False
    """Packets are ECN-capable, ECT(0), and marks count."""

    l4s: bool = False
    """Packets are ECT(1), and window and rate fall by the marked part of a round trip, not by BETA_ECN: the authors' code."""

    l4s_weight: float = 0.125
    """Of a round trip in the marked part: the authors' code's."""

    beta_rate: float = 0.9
    """BETA_R."""

    adjust_interval_s: float = 0.2
    """RATE_ADJUST_INTERVAL."""

    ramp_up_bps_per_s: float = 200e3
    """RAMP_UP_SPEED."""

    pre_congestion_guard: float = 0.1
    """PRE_CONGESTION_GUARD."""

    queue_size_factor: float = 1.0
    """TX_QUEUE_SIZE_FACTOR, in 1/s: bits that wait, as bit/s."""

    queue_delay_threshold_s: float = 0.02
    """RTP_QDELAY_TH."""

    queue_delay_scale: float = 0.95
    """TARGET_RATE_SCALE_RTP_QDELAY."""

    trend_low: float = 0.2
    """QDELAY_TREND_LO."""

    resume_s: float = 5.0
    """T_RESUME_FAST_INCREASE."""

    min_pace_bps: float = 50e3
    """RATE_PACE_MIN."""

    sample_interval_s: float = 0.05
    """How often the queueing delay is sampled for its trend [RFC 8298 sec 4.1.2]."""

    average_interval_s: float = 0.01
    """Feedback enters qdelay_fraction_avg no more often; open in the RFC, where feedback comes each 20 ms or less often [RFC 8298 sec 4.2.2].
    As its authors' code."""

    history: int = 20
    """Samples of qdelay_fraction_hist."""

    variance_samples: int = 200
    """Of qdelay_norm_var [RFC 8298 sec 4.1.2.3]. The list of variables has a history of 100 [RFC 8298 sec 4.1.1.2]."""

    mean_samples: int = 50
    """Of qdelay_norm_avg."""

    competing_flows: bool = True
    """qdelay_target grows beside loss-based flows [RFC 8298 sec 4.1.2.3]. It "MAY be turned off"; the authors' code has it off."""

    loss_rate_threshold: float = 0.002
    """loss_event_rate above it: loss-based flows compete."""

    loss_rate_weight: float = 0.01
    """Weight of a round trip in loss_event_rate: open in the RFC; the authors' code has it."""

    max_queue_s: float = 0.1
    """The sender drops what waits longer. "SHOULD be equipped with a mechanism that discards" [RFC 8298 sec 4.1.3]; the time is open,
    and this one the authors' code's."""

    first_timeout_s: float = 1.0
    """A packet is lost after SRTT + 4 RTTVAR [RFC 6298 sec 2], this long before a round trip is known: a window that was lost as a whole
    must open again. The RFC finds losses by gaps alone."""

    def __post_init__(self) -> None:
        names = [name for name in self.__slots__ if name not in ("pre_congestion_guard", "competing_flows", "ecn", "l4s")]
        require_positive("ScreamParameters", **{name: getattr(self, name) for name in names})
        if not 0 <= self.pre_congestion_guard <= 1:
            raise ValueError(f"ScreamParameters.pre_congestion_guard = {self.pre_congestion_guard!r}: must be in [0, 1]")
        for name in ("beta_loss", "beta_ecn", "l4s_weight", "beta_rate", "queue_delay_scale", "delay_weight", "loss_rate_weight"):
            if getattr(self, name) > 1:
                raise ValueError(f"ScreamParameters.{name} = {getattr(self, name)!r}: must be in (0, 1]")

    @property
    def lowest_bps(self) -> float:
        return min(self.min_rate_bps, self.max_rate_bps)


def mean(values: list[float]) -> float:
    return total(values) / len(values)


def autocorrelation(values: list[float]) -> float:
    """R(values - mean, 1) / R(values - mean, 0); 0 of values that do not vary."""
    middle = mean(values)
    off = [value - middle for value in values]
    power = total(value * value for value in off)
    return total(off[i] * off[i + 1] for i in range(len(off) - 1)) / power if power > 1e-12 else 0.0


def window_change_bytes(p: ScreamParameters, window_bytes: float, target_s: float, queueing_s: float, acked_bytes: float) -> float:
    """cwnd_delta outside fast increase [RFC 8298 sec 4.1.2.2]."""
    off_target = (target_s - queueing_s) / target_s
    return p.gain * off_target * acked_bytes * p.packet_bytes / window_bytes


def next_target_s(p: ScreamParameters, target_s: float, norms: list[float], loss_event_rate: float) -> float:
    """qdelay_target from the last samples of qdelay / QDELAY_TARGET_LO, newest last [RFC 8298 sec 4.1.2.3]."""
    last = norms[-p.variance_samples :]
    variance = max(0.0, total(norm * norm for norm in last) / len(last) - square(mean(last)))
    wanted_s = (mean(norms[-p.mean_samples :]) + sqrt(variance)) * p.target_low_s
    if loss_event_rate > p.loss_rate_threshold:
        target_s = 1.5 * wanted_s
    elif variance < 0.2:
        target_s = wanted_s
    elif wanted_s < p.target_low_s:
        target_s = max(0.5 * target_s, wanted_s)
    else:
        target_s *= 0.9
    return clamp(target_s, p.target_low_s, p.target_high_s)


def pace_bps(p: ScreamParameters, window_bytes: float, srtt_s: float) -> float:
    """pace_bitrate [RFC 8298 sec 4.1.2.6]."""
    return max(p.min_pace_bps, 8 * window_bytes / srtt_s)


class ScreamSender(Sender):
    """The window, the pace and the media rate of one stream [RFC 8298 sec 4.1]."""

    interests = Interests(acks=AckDetail.EVERY, loss_distance_packets=3)

    def __init__(self, parameters: ScreamParameters = ScreamParameters()) -> None:
        p = self.parameters = parameters
        if p.ecn or p.l4s:
            self.interests = replace(self.interests, ecn=Ecn.ECT_1 if p.l4s else Ecn.ECT_0)
        self.window_bytes = p.min_window_bytes
        """cwnd."""
        self.target_bps = p.lowest_bps
        """target_bitrate."""
        self.target_s = p.target_low_s
        """qdelay_target."""
        self.fast_increase = True
        """in_fast_increase."""
        self.trend = 0.0
        """qdelay_trend."""
        self.trend_memory = 0.0
        """qdelay_trend_mem."""
        self.queue_bits = 0.0
        """rtp_queue_size."""
        self.loss_event_rate = 0.0
        self.marked_part = 1.0
        """alpha: the marked part of what arrived, smoothed over round trips; at first 1 [RFC 8257 sec 3.3]."""
        self.base = BaseDelay()
        self.queueing_s = 0.0
        """qdelay."""
        self._fraction_average = self._averaged_s = 0.0
        self._fractions: deque[float] = deque([0.0] * p.history, maxlen=p.history)
        samples = max(p.variance_samples, p.mean_samples)
        self._norms: deque[float] = deque([0.0] * samples, maxlen=samples)
        self._prediction = 0.0
        """a, of the fractions sampled last."""
        self._last_max_bps = 1.0
        """target_bitrate_last_max."""
        self._rates_bps: deque[float] = deque(maxlen=1 + max(1, round(10.0 / p.adjust_interval_s)))
        """rate_media of "more than 10 s" [RFC 8298 sec 4.1.1.2]."""
        self._flights: deque[tuple[float, float]] = deque()
        """Bytes in flight, decreasing from the largest of the last seconds."""
        self._calm_since_s = 0.0
        self._lost_s = -MAX_RTT_S
        self._marks = self._arrivals = 0
        self._marks_counted_s = 0.0
        self._lost_this_rtt = False
        self._rtt_began_s = 0.0
        self._highest_acked = -1
        self._srtt_s = 0.0
        """s_rtt; 0 before the first acknowledgement."""
        self._sent = self._queue_sent = 0
        self._queue_s = self._adjusted_s = self._next_s = 0.0
        self._encoder = False
        """Whether an application is there, whose queue is seen and not imagined."""
        self._adjusted_sent = self._adjusted_acked = 0
        self._adjusted_bits = 0.0
        """Waited when the media rate was set last."""
        self._in_force: tuple[int, float, float] = (0, 0.0, 0.0)

    def on_start(self, now_s: float, rng: Rng) -> tuple[SenderAction, ...]:
        self._queue_s = self._adjusted_s = self._calm_since_s = self._rtt_began_s = now_s
        timeout = SetLossTimeout(self.parameters.first_timeout_s, 1.0, 4.0, self.parameters.sample_interval_s)
        return (timeout, *self._said(), self._plan(now_s))

    def on_ack(self, now_s: float, ack: Ack, rng: Rng) -> tuple[SenderAction, ...]:
        p = self.parameters
        flight_bytes = self._look(now_s, ack.path)
        newly_bytes = float(max(0, ack.sequence - self._highest_acked) * p.packet_bytes)
        self._highest_acked = max(self._highest_acked, ack.sequence)
        delay_s = measured_delay_s(ack)
        if delay_s is not None:
            self.queueing_s = self.base.queueing_s(now_s, delay_s)
        if now_s - self._averaged_s >= p.average_interval_s:
            self._averaged_s = now_s
            self._fraction_average += p.delay_weight * (self.queueing_s / self.target_s - self._fraction_average)
        self.trend = clamp(self._prediction * self._fraction_average, 0.0, 1.0)
        if ack.ends_report:
            self.trend_memory = max(0.99 * self.trend_memory, self.trend)
        notes = self._marked(now_s, ack.ecn == Ecn.CE)
        if not notes and self._lost_s != now_s:  # no congestion event [RFC 8298 sec 4.1.2.2]
            self._grow(newly_bytes, flight_bytes)
        if ack.ends_report:
            self._adjust_target()
        self._resume(now_s)
        return (*self._said(), *notes)

    def on_loss(self, now_s: float, loss: Loss, rng: Rng) -> tuple[SenderAction, ...]:
        p = self.parameters
        self._look(now_s, loss.path)
        self._lost_this_rtt = True
        notes = self._reduce(now_s, "scream.loss", p.beta_loss, p.beta_rate)
        if notes and loss.cause is LossCause.TIMEOUT:  # no acknowledgement follows that adjusts it
            self._adjust_target()
        return (*self._said(), *notes) if notes else ()

    def _reduce(self, now_s: float, note: str, window_factor: float, rate_factor: float) -> tuple[SenderAction, ...]:
        """Of a loss or a mark, once a round trip [RFC 8298 sec 4.1.2.1]: cwnd = max(MIN_CWND, BETA cwnd) [RFC 8298 sec 4.1.2.2], target_bitrate
        = max(BETA_R target_bitrate, TARGET_BITRATE_MIN) of a loss, and BETA_ECN of a mark [RFC 8298 sec 4.1.3]."""
        p = self.parameters
        if now_s - self._lost_s < self._srtt_s:
            return ()
        self._lost_s = now_s
        self._leave_fast_increase(now_s)
        self._last_max_bps = self.target_bps
        self.window_bytes = max(p.min_window_bytes, window_factor * self.window_bytes)
        self.target_bps = max(rate_factor * self.target_bps, p.lowest_bps)
        return (Note(note, (("cwnd_bytes", self.window_bytes), ("target_bps", self.target_bps))),)

    def _marked(self, now_s: float, marked: bool) -> tuple[SenderAction, ...]:
        """Takes in whether an acknowledged packet was marked."""
        p = self.parameters
        if not p.l4s:
            return self._reduce(now_s, "scream.mark", p.beta_ecn, p.beta_ecn) if marked and p.ecn else ()
        self._arrivals += 1
        self._marks += marked
        if now_s - self._marks_counted_s >= self._srtt_s:
            # alpha = (1 - g) alpha + g F [RFC 8257 sec 3.3]
            self.marked_part += p.l4s_weight * (self._marks / self._arrivals - self.marked_part)
            self._marks_counted_s, self._marks, self._arrivals = now_s, 0, 0
        # cwnd (1 - alpha / 2) [RFC 8257 sec 3.3]; the rate by half as much, as the authors' code
        return self._reduce(now_s, "scream.mark", 1 - self.marked_part / 2, 1 - self.marked_part / 4) if marked else ()

    def on_timer(self, now_s: float, timer: Timer, rng: Rng) -> tuple[SenderAction, ...]:
        if timer.name != SAMPLE_TIMER:
            return ()
        if now_s < self._next_s:
            return (SetTimer(SAMPLE_TIMER, self._next_s),)
        p = self.parameters
        if timer.path is not None:
            self._look(now_s, timer.path)
        self._sample(now_s)
        notes: tuple[SenderAction, ...] = ()
        if now_s - self._adjusted_s >= p.adjust_interval_s - 0.5 * p.sample_interval_s:
            self._adjust(now_s)
            values = (("qdelay_s", self.queueing_s), ("target_s", self.target_s), ("cwnd_bytes", self.window_bytes))
            notes = (Note("scream.adjust", (*values, ("target_bps", self.target_bps), ("queue_bits", self.queue_bits))),)
        return (*self._said(), *notes, self._plan(now_s))

    def _look(self, now_s: float, path: PathState) -> float:
        """Takes in what the runner knows, and fills the queue behind the encoder; bytes in flight."""
        p = self.parameters
        if path.srtt_s > 0.0:
            self._srtt_s = clamp(path.srtt_s, MIN_RTT_S, MAX_RTT_S)
        self._sent = max(self._sent, path.last_sent_sequence + 1)
        if path.waiting_bytes is not None:
            self._encoder, self.queue_bits = True, 8.0 * path.waiting_bytes
        else:
            self.queue_bits += self.target_bps * max(0.0, now_s - self._queue_s) - 8 * p.packet_bytes * (self._sent - self._queue_sent)
            self.queue_bits = max(0.0, self.queue_bits)
            if self.queue_bits > p.max_queue_s * self.target_bps:
                self.queue_bits = 0.0
        self._queue_s, self._queue_sent = now_s, self._sent
        # From the newest sent down to the highest acknowledged [RFC 8298 sec 4.1.2]
        flight_bytes = float(max(0, path.last_sent_sequence - max(path.highest_acked_sequence, self._highest_acked)) * p.packet_bytes)
        while self._flights and self._flights[-1][1] <= flight_bytes:
            self._flights.pop()
        self._flights.append((now_s, flight_bytes))
        while self._flights[0][0] < now_s - p.flight_memory_s:
            self._flights.popleft()
        return flight_bytes

    def _grow(self, newly_bytes: float, flight_bytes: float) -> None:
        """update_cwnd [RFC 8298 sec 4.1.2.2]. The bytes that were in flight bound the window in fast increase, too: the RFC's lines return
        before this bound, its text and its authors' code know no exception."""
        p = self.parameters
        if self.fast_increase and self.trend >= p.trend_threshold:
            self._leave_fast_increase(self._queue_s)
        if self.fast_increase:
            change = newly_bytes if 1.5 * flight_bytes + newly_bytes > self.window_bytes else 0.0
        else:
            change = window_change_bytes(p, self.window_bytes, self.target_s, self.queueing_s, newly_bytes)
            if change > 0 and 1.25 * flight_bytes + newly_bytes <= self.window_bytes:
                change = 0.0
        largest_bytes = min(self._flights[0][1] * p.flight_headroom, MAX_WINDOW_PACKETS * p.packet_bytes)
        self.window_bytes = max(min(self.window_bytes + change, largest_bytes), p.min_window_bytes)

    def _leave_fast_increase(self, now_s: float) -> None:
        if self.fast_increase:
            self._last_max_bps = self.target_bps
        self.fast_increase, self._calm_since_s = False, now_s

    def _sample(self, now_s: float) -> None:
        """What the trend follows [RFC 8298 sec 4.1.2], and loss_event_rate."""
        p = self.parameters
        self._fractions.append(self.queueing_s / self.target_s)
        self._prediction = autocorrelation(list(self._fractions))
        if now_s - self._rtt_began_s >= self._srtt_s:
            self.loss_event_rate += p.loss_rate_weight * (self._lost_this_rtt - self.loss_event_rate)
            self._lost_this_rtt, self._rtt_began_s = False, now_s

    def _adjust_target(self) -> None:
        """adjust_qdelay_target [RFC 8298 sec 4.1.2.3], with each acknowledgement and congestion event [RFC 8298 sec 4.1.2.2]."""
        p = self.parameters
        self._norms.append(self.queueing_s / p.target_low_s)
        if p.competing_flows:
            self.target_s = next_target_s(p, self.target_s, list(self._norms), self.loss_event_rate)

    def _resume(self, now_s: float) -> None:
        """check_to_resume_fast_increase [RFC 8298 sec 4.1.2.7]."""
        if self.trend >= self.parameters.trend_low:
            self._calm_since_s = now_s
        elif now_s - self._calm_since_s >= self.parameters.resume_s:
            self.fast_increase = True

    def _adjust(self, now_s: float) -> None:
        """The media rate [RFC 8298 sec 4.1.3]."""
        p, interval_s = self.parameters, p_interval(now_s - self._adjusted_s, self.parameters)
        bits = 8 * p.packet_bytes
        acked = max(self._adjusted_acked, self._highest_acked + 1)
        transmitted_bps, acked_bps = (
            bits * (self._sent - self._adjusted_sent) / interval_s,
            bits * (acked - self._adjusted_acked) / interval_s,
        )
        # What an application handed over has left or waits; the imagined encoder makes target_bitrate.
        made_bps = max(0.0, transmitted_bps + (self.queue_bits - self._adjusted_bits) / interval_s)
        self._rates_bps.append(made_bps if self._encoder else self.target_bps)  # rate_media
        self._adjusted_s, self._adjusted_sent, self._adjusted_acked = now_s, self._sent, acked
        self._adjusted_bits = self.queue_bits
        current_bps = max(transmitted_bps, acked_bps)
        self.target_bps = next_media_rate_bps(
            p, self.target_bps, self._last_max_bps, current_bps, self.trend, self.queue_bits, self.fast_increase
        )
        median_bps = sorted(self._rates_bps)[len(self._rates_bps) // 2]
        limit_bps = max(current_bps, self._rates_bps[-1], median_bps) * (2.0 - self.trend_memory)
        self.target_bps = clamp(min(self.target_bps, limit_bps), p.lowest_bps, p.max_rate_bps)

    def _said(self) -> tuple[SenderAction, ...]:
        """The send window [RFC 8298 sec 4.1.2.5], one packet more while the delay is below its target, and the pace: the window's
        [RFC 8298 sec 4.1.2.6], and where nothing waits behind the imagined encoder, no more than that makes."""
        p = self.parameters
        allowed_bytes = self.window_bytes + (p.packet_bytes if self.queueing_s <= self.target_s else 0)
        window = max(1, min(floor(allowed_bytes / p.packet_bytes), int(MAX_WINDOW_PACKETS)))
        waits = self._encoder or self.queue_bits >= 8 * p.packet_bytes
        rate_bps = pace_bps(p, self.window_bytes, self._srtt_s) if self._srtt_s > 0.0 else self.target_bps
        if not waits:
            rate_bps = min(rate_bps, self.target_bps)
        before_window, before_bps, before_encoder_bps = self._in_force
        actions: list[SenderAction] = []
        if self._encoder and self.target_bps != before_encoder_bps:
            actions.append(SetEncoderRate(self.target_bps))
            before_encoder_bps = self.target_bps
        if window != before_window:
            actions.append(SetWindow(float(window)))
        if abs(rate_bps - before_bps) > 0.005 * rate_bps:  # the pacer starts anew with each rate
            actions.append(SetRate(rate_bps))
            before_bps = rate_bps
        self._in_force = (window, before_bps, before_encoder_bps)
        return tuple(actions)

    def _plan(self, now_s: float) -> SetTimer:
        self._next_s = now_s + self.parameters.sample_interval_s
        return SetTimer(SAMPLE_TIMER, self._next_s)


def p_interval(elapsed_s: float, p: ScreamParameters) -> float:
    """Seconds over which rates are measured: never less than half an interval, where a clock leaps."""
    return max(elapsed_s, 0.5 * p.adjust_interval_s)


def next_media_rate_bps(
    p: ScreamParameters, target_bps: float, last_max_bps: float, current_bps: float, trend: float, queue_bits: float, fast: bool
) -> float:
    """target_bitrate after RATE_ADJUST_INTERVAL, before its limits [RFC 8298 sec 4.1.3]. current_bps: the larger of rate_transmit and
    rate_ack; fast: in_fast_increase."""
    ramp_up = min(p.ramp_up_bps_per_s, target_bps / 2)
    # Slower near the rate at which congestion was met last, but never less than a fifth
    scale = clamp(square(4 * (target_bps - last_max_bps) / last_max_bps), 0.2, 1.0)
    if fast:
        return target_bps + ramp_up * p.adjust_interval_s * scale
    delta_bps = current_bps * (1 - p.pre_congestion_guard * trend) - p.queue_size_factor * queue_bits - target_bps
    if delta_bps > 0:
        delta_bps = min(delta_bps * scale, ramp_up * p.adjust_interval_s)
    target_bps += delta_bps
    if queue_bits > p.queue_delay_threshold_s * current_bps:
        target_bps *= p.queue_delay_scale
    return target_bps


class ScreamReceiver(Receiver):
    """Says when each packet arrived [RFC 8298 sec 4.2]."""

    interests = Interests(timed_acks=True)

    def __init__(self, parameters: ScreamParameters = ScreamParameters()) -> None:
        self.parameters = parameters


KINDS = (
    Kind(
        "scream",
        "a window over the queueing delay, and a media rate that keeps the sender's queue short [RFC 8298]",
        ScreamParameters,
        ScreamSender,
        ScreamReceiver,
    ),
)
