"""TRABOL, TCP-friendly rate adaptation based on loss, without memory: Bangolae, Jayasumana and Chandrasekar, section 2, figure 1.

Data come in rays of P_n packets, a ray each T_t. When the loss rate L_r that the receiver reports exceeds MAX_LOSS, the sender
spreads fewer packets, P_nn, over the same time, at once as few as MIN_RATE allows; then it climbs back, a packet a step:

    L_r = packets lost / packets sent                                  [TRABOL sec 2]
    T_t = P_n / R_t               time of a ray at the target rate      [TRABOL fig 1]
    L_r > MAX_LOSS:  P_nn = R_m T_t, set_congestion = 1                 [TRABOL fig 1]
    T_a = T_t / P_n               time of a packet at the target rate   [TRABOL fig 1]
    T_r = P_nn / R_t              time of the reduced number of packets
    G_t = T_t - T_r,  G_a = G_t / P_nn     gap in all, and per packet   [TRABOL fig 1]
    L_r <= MAX_LOSS, set_congestion = 1:   after `iterations` reports P_nn = P_nn + 1, until P_nn = P_n, then set_congestion = 0
    L_r <= MAX_LOSS, set_congestion = 0:   R_s = P_n / T_t stays        [TRABOL fig 1]

Two lines of figure 1 cannot be correct as printed. "P_nn = R_m * R_t" is not a number of packets; R_m T_t is the number that MIN_RATE sends in
a ray's time, and T_t is in the line above. "T_r = P_nn / R_m" would then be T_t itself and every gap 0; with R_t it is "time
spent in sending the reduced number of packets", as section 2 defines T_r.

The target rate is where a flow starts, for figure 1 raises nothing before a first loss. Choices that the paper leaves open, each a
parameter of `TrabolParameters`: MAX_LOSS, MIN_RATE, P_n, n, how `iterations` follows the loss, missing reports.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

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
    Timer,
    clamp,
    require_positive,
)
from fairlane.hosts.algorithms.silence import SilenceWatch

REPORT_TIMER = "trabol.report"
SILENCE_TIMER = "trabol.silence"


@dataclass(frozen=True, slots=True)
class TrabolParameters:
    """The paper's names; it gives few values."""

    max_rate_bps: float = 90e6
    """R_t, the target rate MAX_RATE: "the link capacity of about 90 Mbps" [TRABOL sec 3]. No rate goes above it."""

    min_rate_bps: float | None = None
    """R_m, MIN_RATE; `None` = a tenth of `max_rate_bps`. The paper "increased [it] in steps" and does not say from where
    [TRABOL sec 3]. A tenth leaves the climb room to show, and rays enough packets to measure a loss by. In an experiment it is also at most half of an even
    share of the path's slowest link (`of_path`), so that any number of flows can give way."""

    packet_bytes: float = 1000.0
    """An IPv4 datagram of data in bytes. The paper has "about 32KB" [TRABOL sec 3, fig 2], which IP would send in fragments."""

    packets_per_ray: int = 200
    """P_n. The paper is silent. With 200 a ray at MIN_RATE still has 20 packets, so that one lost packet is not above MAX_LOSS;
    with a third of that any single loss, at whatever low rate, sends the flow back to MIN_RATE. A step of the climb is 0.5%."""

    max_loss: float = 0.05
    """MAX_LOSS, a fraction. The paper is silent; "tolerance to losses is high, compared to audio and video" [TRABOL sec 1]. 5%
    is where the RTCP scheme for video stops increasing [DAA sec 3]."""

    hold_reports: int = 2
    """Least number of reports for which a step is held. The paper is silent on figures. At one report a ray the first still
    speaks of the step before. A climb from a tenth takes 180 steps: 7 s at 100 Mb/s, a minute at 10 Mb/s."""

    hold_reports_per_loss: float = 16.0
    """`iterations` = `hold_reports` + this x L_r, rounded: the paper says that it "is determined by the loss rate" and not how.
    With 16 a flow that met a loss of 25% climbs at half the speed."""

    group_packets: int = 4
    """n, packets in a group before a delay: the inter-group gap [TRABOL sec 2]. The paper is silent on the number. Small, so
    that a group fits any queue; 1 spreads the packets evenly."""

    initial_rate_bps: float | None = None
    """First rate; `None` = the target rate, as figure 1 has it. A lower one is a climb in progress."""

    min_report_interval_s: float = 0.001
    """A receiver reports no more often, however short a ray is. The paper is silent: its own rays are longer."""

    report_timeout_s: float = 2.0
    """So long without a report (at least four rays) counts as congestion: MIN_RATE. The paper is silent. The first no-feedback
    timer of TFRC [RFC 5348 sec 4.2]."""

    @property
    def least_rate_bps(self) -> float:
        """R_m in force, bit/s."""
        return self.max_rate_bps / 10 if self.min_rate_bps is None else self.min_rate_bps

    def __post_init__(self) -> None:
        require_positive(
            type(self).__name__,
            max_rate_bps=self.max_rate_bps,
            packet_bytes=self.packet_bytes,
            packets_per_ray=self.packets_per_ray,
            hold_reports=self.hold_reports,
            group_packets=self.group_packets,
            min_report_interval_s=self.min_report_interval_s,
            report_timeout_s=self.report_timeout_s,
        )
        for name in ("min_rate_bps", "initial_rate_bps"):
            value = getattr(self, name)
            if value is not None and not 0 < value <= self.max_rate_bps:
                raise ValueError(
                    f"{type(self).__name__}.{name} = {value!r}: must be above 0 and at most max_rate_bps = {self.max_rate_bps!r}"
                )
        if not 0 <= self.max_loss < 1:
            raise ValueError(f"{type(self).__name__}.max_loss = {self.max_loss!r}: a fraction from 0 up to, but not, 1")
        if not 0 <= self.hold_reports_per_loss < float("inf"):
            raise ValueError(f"{type(self).__name__}.hold_reports_per_loss = {self.hold_reports_per_loss!r}: must be 0 or more, and finite")


@dataclass(frozen=True, slots=True)
class Ray:
    """How a ray of fewer packets is spread over its time [TRABOL fig 1]. Times in seconds, rates in packets a second."""

    target_rate: float
    """R_t."""
    full_packets: int
    """P_n."""
    packets: int
    """P_nn."""

    @property
    def time_s(self) -> float:
        return self.full_packets / self.target_rate  # T_t = P_n / R_t [TRABOL fig 1]

    @property
    def packet_time_s(self) -> float:
        return self.time_s / self.full_packets  # T_a = T_t / P_n [TRABOL fig 1]

    @property
    def sending_time_s(self) -> float:
        return self.packets / self.target_rate  # T_r = P_nn / R_t [TRABOL sec 2, fig 1]

    @property
    def total_gap_s(self) -> float:
        return self.time_s - self.sending_time_s  # G_t = T_t - T_r [TRABOL fig 1]

    @property
    def gap_s(self) -> float:
        return self.total_gap_s / self.packets  # G_a = G_t / P_nn [TRABOL fig 1]

    @property
    def rate(self) -> float:
        return self.packets / self.time_s  # R_s = P_n / T_t [TRABOL fig 1], of the packets that are sent


def ray_time_s(parameters: TrabolParameters) -> float:
    """T_t [TRABOL fig 1]."""
    bits = parameters.packet_bytes * 8
    return Ray(parameters.max_rate_bps / bits, parameters.packets_per_ray, parameters.packets_per_ray).time_s


class TrabolSender(Sender):
    """The sending half: the congestion manager [TRABOL fig 1], without its lines on memory."""

    def __init__(self, parameters: TrabolParameters = TrabolParameters()) -> None:
        self.parameters = p = parameters
        # P_nn = R_m T_t [TRABOL fig 1]: in whole packets, and no less than MIN_RATE
        self.min_packets = min(p.packets_per_ray, ceil(p.packets_per_ray * (p.least_rate_bps / p.max_rate_bps) - 1e-9) or 1)
        self.packets = p.packets_per_ray
        """P_nn."""
        self.set_congestion = False
        self.iterations = p.hold_reports
        """Reports for which each step of the present climb is held."""
        self.held = 0
        """Reports at the present step."""
        if p.initial_rate_bps is not None and p.initial_rate_bps < p.max_rate_bps:
            wanted = int(p.packets_per_ray * (p.initial_rate_bps / p.max_rate_bps))
            self.packets, self.set_congestion = max(wanted, self.min_packets), True
        self._silence = SilenceWatch(SILENCE_TIMER, max(p.report_timeout_s, 4 * ray_time_s(p)))

    @property
    def rate_bps(self) -> float:
        """R_s = P_nn / T_t [TRABOL fig 1] = R_t P_nn / P_n."""
        return self.parameters.max_rate_bps * (self.packets / self.parameters.packets_per_ray)

    @property
    def highest_packets(self) -> int:
        """Where a climb ends."""
        return self.parameters.packets_per_ray

    def on_start(self, now_s: float, rng: Rng) -> tuple[SenderAction, ...]:
        return self._set_rate(), self._silence.start(now_s)

    def on_feedback(self, now_s: float, feedback: Feedback, rng: Rng) -> tuple[SenderAction, ...]:
        if feedback.receive_rate_bps is not None and not feedback.receive_rate_bps > 0:
            return ()  # Nothing arrived at the receiver: if that lasts, it is silence.
        self._silence.heard(now_s)
        loss = clamp(feedback.loss_fraction, 0.0, 1.0)  # L_r = lost / sent [TRABOL sec 2]
        before = self.packets
        if loss > self.parameters.max_loss:
            further = self._on_congestion(loss)
        elif self.set_congestion:
            further = self._climb(now_s)
        else:
            further = ()  # "continue to send packets at the same rate" [TRABOL fig 1]
        if self.packets == before and not further:
            return ()
        values = (("loss", loss), ("packets_per_ray", self.packets), ("rate_bps", self.rate_bps))
        return self._set_rate(), *further, Note("trabol.step", values)

    def on_timer(self, now_s: float, timer: Timer, rng: Rng) -> tuple[SenderAction, ...]:
        if timer.name != SILENCE_TIMER:
            return ()
        silent, again = self._silence.expired(now_s)
        if again is None:
            return ()
        if not silent:
            return (again,)
        self._to_min_rate(1.0)
        return self._set_rate(), again, Note("trabol.silence", (("rate_bps", self.rate_bps),))

    def _on_congestion(self, loss: float) -> tuple[SenderAction, ...]:
        self._to_min_rate(loss)
        return ()

    def _to_min_rate(self, loss: float) -> None:
        """ "Reduce the rate by D-factor to MIN_RATE" [TRABOL fig 1]."""
        p = self.parameters
        self.set_congestion = True
        self.packets = self.min_packets  # P_nn = R_m T_t [TRABOL fig 1]
        self.iterations = p.hold_reports + round(p.hold_reports_per_loss * loss)
        self.held = 0

    def _climb(self, now_s: float) -> tuple[SenderAction, ...]:
        """The increase policy: hold a step for `iterations` reports, then a packet more [TRABOL fig 1]."""
        self.held += 1
        if self.held < self.iterations:
            return ()
        self.held = 0
        if self.packets < self.highest_packets:
            self.packets += 1  # P_nn = P_nn + 1 [TRABOL fig 1]
            return ()
        self.set_congestion = False
        return self._on_top(now_s)

    def _on_top(self, now_s: float) -> tuple[SenderAction, ...]:
        """A climb has ended without a loss."""
        return ()

    def _set_rate(self) -> SetRate:
        return SetRate(self.rate_bps, burst_packets=self.parameters.group_packets)


class TrabolReceiver(Receiver):
    """The receiving half: "upon receiving the data in a ray sends a feedback message" [TRABOL sec 2].

    A ray takes T_t at any rate, so it reports each T_t, except when nothing came.
    """

    def __init__(self, parameters: TrabolParameters = TrabolParameters()) -> None:
        self.parameters = parameters
        self.interval_s = max(ray_time_s(parameters), parameters.min_report_interval_s)
        self._reported_packets = 0
        self._due_s = 0.0

    def on_start(self, now_s: float, rng: Rng) -> tuple[ReceiverAction, ...]:
        self._due_s = now_s + self.interval_s
        return (SetTimer(REPORT_TIMER, self._due_s),)

    def on_timer(self, now_s: float, timer: Timer, reception: ReceptionState, rng: Rng) -> tuple[ReceiverAction, ...]:
        if timer.name != REPORT_TIMER or now_s < self._due_s:
            return ()
        self._due_s = now_s + self.interval_s
        again = SetTimer(REPORT_TIMER, self._due_s)
        if reception.received_packets == self._reported_packets:
            return (again,)
        self._reported_packets = reception.received_packets
        return SendFeedback(), again


def of_path(given: Mapping[str, Any], slowest_bps: float, flows: int) -> dict[str, Any]:
    """MAX_RATE is "the link capacity" [TRABOL sec 3], and the paper's link is the one that its flows share: of a path, the slowest. MIN_RATE: a tenth
    of MAX_RATE, or half of an even share of that link if that is less."""
    greatest_bps = given.get("max_rate_bps", slowest_bps)
    return {"max_rate_bps": greatest_bps, "min_rate_bps": min(greatest_bps / 10, slowest_bps / flows / 2)}


KINDS = (
    Kind(
        "trabol",
        "to MIN_RATE on a loss above MAX_LOSS, then a packet per ray more at each step [TRABOL sec 2, fig 1]",
        TrabolParameters,
        TrabolSender,
        TrabolReceiver,
        of_path=of_path,
    ),
)
