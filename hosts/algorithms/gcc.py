"""GCC, Google Congestion Control: draft-ietf-rmcat-gcc-02, a delay-based and a loss-based controller; the smaller rate wins.

Packets that left within 5 ms are a group. A Kalman filter estimates the growth m of the delay from group to group, in ms:

    d(i) = t(i) - t(i-1) - (T(i) - T(i-1))                                    [GCC sec 5.1]
    z(i) = d(i) - m(i-1),  m(i) = m(i-1) + z(i) k(i)
    k(i) = (e(i-1) + q) / (var_v(i) + e(i-1) + q),  e(i) = (1 - k(i)) (e(i-1) + q)
    var_v(i) = max(alpha var_v(i-1) + (1 - alpha) z(i)^2, 1)                  [GCC sec 5.3]

and a threshold that follows |m| separates overuse from normal use and underuse:

    th(i) = th(i-1) + (t(i) - t(i-1)) K (|m(i)| - th(i-1)),  K = K_u if |m| >= th, else K_d       [GCC sec 5.4]

On overuse the rate becomes beta = 0.85 of the arriving rate; on underuse it stays; otherwise it grows, by 8 % a second, or by about half a packet
each response time near the rate of the last decrease [GCC sec 5.5]. The loss-based rate grows by 5 % each second while less
than 2 % is lost, and falls by half of the loss above 10 % [GCC sec 6].

The draft compares m(i) with a threshold of 12.5 ms, which a group of 5 ms hardly ever reaches. As in libwebrtc, m is multiplied by the number of
groups, 60 at most.

The receiver only reports each packet's arrival time; both controllers run at the sender, the first of the draft's two ways [GCC sec 3]. Marks are
not used. docs/clauses/gcc.md lists the met clauses of the draft.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import Enum
from math import ceil, sqrt

from fairlane.arithmetic import power, square
from fairlane.hosts.algorithms.base import (
    Ack,
    AckDetail,
    Interests,
    Kind,
    Loss,
    Note,
    Receiver,
    Rng,
    Sender,
    SenderAction,
    SetRate,
    SetTimer,
    Timer,
    clamp,
    require_positive,
)
from fairlane.hosts.algorithms.packet_feedback import FeedbackWindow, measured_delay_s

UPDATE_TIMER = "gcc.update"
RESOLUTION_MS = 1e-6
"""Delays that differ by less are the same: clocks have nanoseconds."""
MOST_STEP_MS = 1e4
"""Steps of time and of delay beyond it count as this: a clock that leaps, a forged packet."""


class Use(Enum):
    """What the detector makes of the path."""

    NORMAL = "normal"
    OVER = "over"
    UNDER = "under"


class State(Enum):
    """Of the rate controller [GCC sec 5.5]."""

    HOLD = "hold"
    INCREASE = "increase"
    DECREASE = "decrease"


NEXT_STATE: dict[tuple[State, Use], State] = {
    **{(state, Use.OVER): State.DECREASE for state in State},
    **{(state, Use.UNDER): State.HOLD for state in State},
    (State.HOLD, Use.NORMAL): State.INCREASE,
    (State.INCREASE, Use.NORMAL): State.INCREASE,
    (State.DECREASE, Use.NORMAL): State.HOLD,
}
"""[GCC sec 5.5], its table."""


@dataclass(frozen=True, slots=True)
class GccParameters:
    """The draft's values, and names for the choices that it leaves open."""

    max_rate_bps: float = 1.5e6
    """A fabric sets the rate of the sender's link; RFC 8867 has media of 1.5 Mb/s at most."""

    packet_bytes: int = 1000
    """An IPv4 datagram of data, header included."""

    min_rate_bps: float = 150e3
    """Lowest and first rate; of a link that is slower, the link's. RFC 8867's."""

    burst_s: float = 0.005
    """burst_time [GCC sec 5.6]."""

    noise: float = 1e-3
    """q, in ms^2 [GCC sec 5.3]."""

    chi: float = 0.01
    """Of alpha = (1 - chi)^(30 / (1000 f_max)); the draft has 0.1 to 0.001."""

    rate_groups: int = 60
    """K: groups over which f_max is taken. Open in the draft."""

    most_deltas: int = 60
    """m counts as many times as there were groups, this often at most. libwebrtc's; 1 is the draft as it stands."""

    threshold_ms: float = 12.5
    """del_var_th(0) [GCC sec 5.4]."""

    overuse_s: float = 0.010
    """overuse_time_th."""

    gain_up: float = 0.01
    """K_u, in 1/ms."""

    gain_down: float = 0.00018
    """K_d, in 1/ms."""

    beta: float = 0.85
    """Part of the rate that arrives, after overuse [GCC sec 5.5]."""

    window_s: float = 0.5
    """T of R_hat; the draft has 0.5 to 1 s."""

    update_interval_s: float = 0.1
    """How often the rate is updated. The draft lets feedback set it."""

    loss_interval_s: float = 1.0
    """Time between updates of the loss-based rate: RTCP reports [GCC sec 3], not each packet's feedback, by which it would grow 5 % a packet."""

    low_loss: float = 0.02
    high_loss: float = 0.10
    """[GCC sec 6]."""

    silence_s: float = 2.0
    """After so long without an acknowledgement the rate is `min_rate_bps`. Open in the draft."""

    def __post_init__(self) -> None:
        require_positive("GccParameters", **{name: getattr(self, name) for name in self.__slots__})
        for name in ("beta", "chi", "low_loss", "high_loss"):
            if getattr(self, name) >= 1:
                raise ValueError(f"GccParameters.{name} = {getattr(self, name)!r}: must be in (0, 1)")

    @property
    def lowest_bps(self) -> float:
        return min(self.min_rate_bps, self.max_rate_bps)


class DelayGrowth:
    """The Kalman filter [GCC sec 5.3]; all in ms."""

    def __init__(self, parameters: GccParameters) -> None:
        self.parameters = parameters
        self.m = 0.0
        self.e = 0.1
        self.variance = 1.0
        """var_v."""
        self._gaps_ms: deque[float] = deque(maxlen=parameters.rate_groups)

    def take(self, d_ms: float, gap_ms: float) -> float:
        """d(i), and the time since the group before left; m(i)."""
        p = self.parameters
        self._gaps_ms.append(max(gap_ms, 1.0))
        f_max = 1 / min(self._gaps_ms)
        alpha = power(1 - p.chi, 30 / (1000 * f_max))  # [GCC sec 5.3]
        z = d_ms - self.m
        limit = 3 * sqrt(self.variance)
        noise = clamp(z, -limit, limit)  # an outlier is three deviations to the variance, and itself to m [GCC sec 5.3]
        self.variance = max(alpha * self.variance + (1 - alpha) * noise * noise, 1.0)
        k = (self.e + p.noise) / (self.variance + self.e + p.noise)
        self.m += z * k
        self.e = (1 - k) * (self.e + p.noise)
        return self.m


class Detector:
    """Overuse, by a threshold that follows |m| [GCC sec 5.4]; all in ms."""

    def __init__(self, parameters: GccParameters) -> None:
        self.parameters = parameters
        self.threshold_ms = parameters.threshold_ms
        self._over_since_ms: float | None = None
        self._before = 0.0

    def take(self, m_ms: float, gap_ms: float, at_ms: float) -> Use:
        """m(i), the time since the group before arrived, and when this one did."""
        p = self.parameters
        use = Use.NORMAL
        if m_ms > self.threshold_ms:
            if self._over_since_ms is None or at_ms < self._over_since_ms:
                self._over_since_ms = at_ms
            if at_ms - self._over_since_ms >= 1000 * p.overuse_s and m_ms >= self._before:
                use = Use.OVER
        else:
            self._over_since_ms = None
            if m_ms < -self.threshold_ms:
                use = Use.UNDER
        off = abs(m_ms) - self.threshold_ms
        if off <= 15.0:
            gain = p.gain_down if off < 0 else p.gain_up
            self.threshold_ms = clamp(self.threshold_ms + min(gap_ms, 100.0) * gain * off, 6.0, 600.0)  # [GCC sec 5.4]
        self._before = m_ms
        return use


def additive_step_bps(rate_bps: float, elapsed_s: float, rtt_s: float) -> float:
    """max(1000, alpha expected_packet_size_bits) [GCC sec 5.5]."""
    frame_bits = rate_bps / 30
    packet_bits = frame_bits / max(1, ceil(frame_bits / (1200 * 8)))
    return max(1000.0, 0.5 * min(elapsed_s / (0.1 + rtt_s), 1.0) * packet_bits)


def loss_based_bps(p: GccParameters, rate_bps: float, loss: float) -> float:
    """As_hat [GCC sec 6]; loss: fraction of packets."""
    if loss > p.high_loss:
        return rate_bps * (1 - 0.5 * loss)
    return rate_bps if loss >= p.low_loss else 1.05 * rate_bps


class GccSender(Sender):
    """Both controllers [GCC sec 5], [GCC sec 6]."""

    interests = Interests(acks=AckDetail.EVERY, loss_distance_packets=3)

    def __init__(self, parameters: GccParameters = GccParameters()) -> None:
        self.parameters = parameters
        self.delay_based_bps = self.loss_based_bps = parameters.lowest_bps
        """A_hat and As_hat."""
        self.state = State.INCREASE
        self.use = Use.NORMAL
        """The worst since the last update: overuse, then underuse."""
        self.growth = DelayGrowth(parameters)
        self.detector = Detector(parameters)
        self.window = FeedbackWindow(parameters.window_s)
        self._group: tuple[float, float, float] | None = None
        """When the group's first packet left, its last left, and its last arrived, ms."""
        self._last: tuple[float, float] | None = None
        """When the last packet of the group before left and arrived."""
        self._groups = 0
        self._decrease_mean_bps: float | None = None
        """Mean of R_hat at decreases, and its variance in kbit/s."""
        self._decrease_variance = 0.4
        self._arrived = self._lost = 0
        self._heard_s = self._updated_s = self._loss_s = self._next_s = 0.0

    @property
    def rate_bps(self) -> float:
        return min(self.delay_based_bps, self.loss_based_bps)  # [GCC sec 6]

    def on_start(self, now_s: float, rng: Rng) -> tuple[SenderAction, ...]:
        self._heard_s = self._updated_s = self._loss_s = now_s
        return (SetRate(self.rate_bps), self._plan(now_s))

    def on_ack(self, now_s: float, ack: Ack, rng: Rng) -> tuple[SenderAction, ...]:
        self._heard_s = now_s
        self._arrived += ack.newly_acked_packets
        self.window.acked(now_s, ack)
        delay_s = measured_delay_s(ack)
        if delay_s is not None:
            left_ms = 1000 * ack.sent_s(now_s)
            self._packet(left_ms, left_ms + 1000 * delay_s)
        return ()

    def on_loss(self, now_s: float, loss: Loss, rng: Rng) -> tuple[SenderAction, ...]:
        self._lost += loss.lost_packets
        return ()

    def on_timer(self, now_s: float, timer: Timer, rng: Rng) -> tuple[SenderAction, ...]:
        if timer.name != UPDATE_TIMER:
            return ()
        if now_s < self._next_s:
            return (SetTimer(UPDATE_TIMER, self._next_s),)
        p = self.parameters
        if now_s - self._heard_s > p.silence_s:
            self.delay_based_bps = self.loss_based_bps = p.lowest_bps
            return (SetRate(self.rate_bps), self._plan(now_s))
        rtt_s = clamp(timer.path.srtt_s if timer.path is not None else 0.0, 0.0, 10.0)
        self._update(now_s, rtt_s)
        if now_s - self._loss_s >= p.loss_interval_s:
            total = self._arrived + self._lost
            if total:
                # From what is in force: As_hat must not run away while delay limits
                self.loss_based_bps = self._limited(loss_based_bps(p, self.loss_based_bps, self._lost / total))
            self._arrived = self._lost = 0
            self._loss_s = now_s
        values = (("m_ms", self.growth.m), ("threshold_ms", self.detector.threshold_ms), ("state", self.state.value))
        note = Note("gcc.update", (*values, ("delay_based_bps", self.delay_based_bps), ("loss_based_bps", self.loss_based_bps)))
        return (SetRate(self.rate_bps), note, self._plan(now_s))

    def _packet(self, left_ms: float, arrived_ms: float) -> None:
        """A packet joins its group, or begins the next one: it left within burst_time, or arrived within burst_time and sooner after
        the group than it left [GCC sec 5.2]."""
        burst_ms = 1000 * self.parameters.burst_s
        apart_ms = arrived_ms - self._group[2] if self._group is not None else 0.0
        if self._group is None:
            self._group = (left_ms, left_ms, arrived_ms)
        elif left_ms < self._group[0] - MOST_STEP_MS:  # a clock that went back
            self._group, self._last = (left_ms, left_ms, arrived_ms), None
        elif left_ms < self._group[0]:
            return  # out of order: of a group that is closed
        elif left_ms - self._group[0] <= burst_ms or (apart_ms < burst_ms and apart_ms - (left_ms - self._group[1]) < -RESOLUTION_MS):
            self._group = (self._group[0], max(left_ms, self._group[1]), max(arrived_ms, self._group[2]))
        else:
            self._close()
            self._group = (left_ms, left_ms, arrived_ms)

    def _close(self) -> None:
        assert self._group is not None
        _, left_ms, arrived_ms = self._group
        if self._last is not None:
            gap_ms = clamp(left_ms - self._last[0], 0.0, MOST_STEP_MS)
            apart_ms = clamp(arrived_ms - self._last[1], -MOST_STEP_MS, MOST_STEP_MS)
            self._groups += 1
            m_ms = self.growth.take(apart_ms - gap_ms, gap_ms)  # d(i) [GCC sec 5.1]
            scaled_ms = min(self._groups, self.parameters.most_deltas) * m_ms
            found = self.detector.take(scaled_ms, max(apart_ms, 0.0), arrived_ms)
            if found is Use.OVER or self.use is Use.NORMAL:
                self.use = found
        self._last = (left_ms, arrived_ms)

    def _update(self, now_s: float, rtt_s: float) -> None:
        """The rate controller [GCC sec 5.5]."""
        p = self.parameters
        self.state = NEXT_STATE[self.state, self.use]
        self.use = Use.NORMAL
        elapsed_s = clamp(now_s - self._updated_s, 0.0, 10.0)
        self._updated_s = now_s
        received_bps = clamp(self.window.receive_rate_bps(now_s, p.packet_bytes), 0.0, 1.5 * p.max_rate_bps)  # R_hat
        if self.state is State.DECREASE:
            self._remember(received_bps)
            self.delay_based_bps = self._limited(min(self.delay_based_bps, p.beta * received_bps))  # A_hat = beta R_hat [GCC sec 5.5]
            # As_hat follows A_hat, too [GCC sec 6]; how is open
            self.loss_based_bps = min(self.loss_based_bps, max(received_bps, self.delay_based_bps))
        elif self.state is State.INCREASE:
            if self._near(received_bps):
                rate_bps = self.delay_based_bps + additive_step_bps(self.delay_based_bps, elapsed_s, rtt_s)
            else:
                rate_bps = self.delay_based_bps * power(1.08, min(elapsed_s, 1.0))  # eta [GCC sec 5.5]
            if received_bps > 0.0:
                rate_bps = min(rate_bps, 1.5 * received_bps)  # A_hat < 1.5 R_hat [GCC sec 5.5]
            self.delay_based_bps = self._limited(rate_bps)

    def _near(self, received_bps: float) -> bool:
        """Within three deviations of the rates at which it decreased; above them, they are forgotten."""
        if self._decrease_mean_bps is None:
            return False
        deviation_bps = sqrt(self._decrease_variance * self._decrease_mean_bps * 1000)
        if received_bps > self._decrease_mean_bps + 3 * deviation_bps:
            self._decrease_mean_bps = None
            return False
        return received_bps > self._decrease_mean_bps - 3 * deviation_bps

    def _remember(self, received_bps: float) -> None:
        """Mean and normalized variance, each of weight 0.05 for the newest [GCC sec 5.5]."""
        if self._decrease_mean_bps is None:
            self._decrease_mean_bps = max(received_bps, 1.0)
        self._decrease_mean_bps += 0.05 * (max(received_bps, 1.0) - self._decrease_mean_bps)
        off_kbps, mean_kbps = (self._decrease_mean_bps - received_bps) / 1000, self._decrease_mean_bps / 1000
        self._decrease_variance = clamp(0.95 * self._decrease_variance + 0.05 * square(off_kbps) / max(mean_kbps, 1.0), 0.4, 2.5)

    def _limited(self, rate_bps: float) -> float:
        return clamp(rate_bps, self.parameters.lowest_bps, self.parameters.max_rate_bps)

    def _plan(self, now_s: float) -> SetTimer:
        self._next_s = now_s + self.parameters.update_interval_s
        return SetTimer(UPDATE_TIMER, self._next_s)


class GccReceiver(Receiver):
    """Says when each packet arrived."""

    interests = Interests(timed_acks=True)

    def __init__(self, parameters: GccParameters = GccParameters()) -> None:
        self.parameters = parameters


KINDS = (
    Kind(
        "gcc",
        "the smaller of a delay-based and a loss-based rate [draft-ietf-rmcat-gcc-02]",
        GccParameters,
        GccSender,
        GccReceiver,
    ),
)
