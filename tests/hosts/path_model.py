"""A packet-level model of one path, to watch any algorithm in a closed loop without a network: pure, seeded, milliseconds to run.

One bottleneck with a drop-tail queue, a constant delay each way, no reordering. It serves tests (goldens, "never a stall") and
carries out every action of `fairlane.hosts.algorithms.base` in the plainest way; results come from the fabrics.
"""

from __future__ import annotations

import heapq
import math
import random
from dataclasses import dataclass, field

from fairlane.hosts.algorithms import base
from fairlane.hosts.algorithms.base import AckDetail, Kind, LossCause

RECEIVER = 77
"""SSRC of the receiver."""
RTCP_INTERVAL_S = 5.0
HISTORY = 32
"""Packets that an acknowledgement tells of, beside its own."""


@dataclass(frozen=True)
class Path:
    """capacity_bps: of the bottleneck. queue_packets: that wait there. random_loss: of each data packet, before the queue.
    fair_rate_bps: R_f of the routers, infinite where none answers; None: nine tenths of the bottleneck. utilisation: their U."""

    capacity_bps: float = 1e6
    rtt_s: float = 0.05
    queue_packets: int = 20
    random_loss: float = 0.0
    fair_rate_bps: float | None = None
    utilisation: float = 0.5


@dataclass
class Trace:
    """What happened: rows of (second, rate in bit/s that the sender was set to, packets sent, delivered, lost so far)."""

    rows: list[tuple[float, float, int, int, int]] = field(default_factory=list)
    notes: list[tuple[float, str, tuple]] = field(default_factory=list)


class AckBook:
    """What the runner of an acked sender remembers [RAP sec III], [RFC 6298 sec 2]."""

    def __init__(self, interests: base.Interests) -> None:
        self.interests = interests
        self.sent: dict[int, float] = {}
        self.outstanding: dict[int, float] = {}
        self.delivered: set[int] = set()
        self.timeout: base.SetLossTimeout | None = None
        self.highest_acked = -1
        self.last_sent = -1
        self.latest = self.srtt = self.rttvar = 0.0

    def path(self) -> base.PathState:
        return base.PathState(self.latest, self.srtt, self.rttvar, len(self.outstanding), self.last_sent, self.highest_acked)

    def send(self, now_s: float) -> int:
        self.last_sent += 1
        self.sent[self.last_sent] = self.outstanding[self.last_sent] = now_s
        return self.last_sent

    def acknowledge(
        self, now_s: float, sequence: int, history: tuple[int, ...], arrived_s: float | None = None
    ) -> tuple[base.Loss | None, base.Ack | None]:
        newly, one_way_delay_s = 0, None
        for number in (sequence, *history):
            if number not in self.delivered:
                self.delivered.add(number)
                newly += 1
            self.outstanding.pop(number, None)
        self.highest_acked = max(self.highest_acked, sequence)
        if sequence in self.sent:
            sent_s = self.sent.pop(sequence)
            one_way_delay_s = None if arrived_s is None else arrived_s - sent_s
            self._sample(now_s - sent_s)
        loss = None
        if self.outstanding and next(iter(self.outstanding)) < self.highest_acked:
            distance = max(1, self.interests.loss_distance_packets)
            above = sorted((n for n in self.delivered if n > self.highest_acked - 10 * HISTORY), reverse=True)
            if len(above) >= distance:
                loss = self._lose([n for n in self.outstanding if n < above[distance - 1]], LossCause.GAP)
        if len(self.delivered) > 100 * HISTORY:
            self.delivered = {n for n in self.delivered if n > self.highest_acked - 10 * HISTORY}
        return loss, base.Ack(sequence, self.latest, newly, self.path(), one_way_delay_s) if newly else None

    def expire(self, now_s: float) -> base.Loss | None:
        timeout_s = self._timeout_s()
        return self._lose([n for n, sent_s in self.outstanding.items() if sent_s + timeout_s <= now_s], LossCause.TIMEOUT)

    def next_expiry(self) -> float | None:
        if self.timeout is None or self.timeout.before_sending or not self.outstanding:
            return None
        return next(iter(self.outstanding.values())) + self._timeout_s()

    def _timeout_s(self) -> float:
        return math.inf if self.timeout is None else self.timeout.in_force_s(self.srtt, self.rttvar)

    def _lose(self, numbers: list[int], cause: LossCause) -> base.Loss | None:
        for number in numbers:
            del self.outstanding[number]
        return base.Loss(numbers[0], numbers[-1], len(numbers), cause, self.path()) if numbers else None

    def _sample(self, rtt_s: float) -> None:
        first = self.srtt == 0.0
        error = rtt_s - self.srtt
        self.latest = rtt_s
        self.srtt = rtt_s if first else self.srtt + error / 8
        self.rttvar = rtt_s / 2 if first else self.rttvar + (abs(error) - self.rttvar) / 4


@dataclass
class Left:
    """Both halves in the middle of a flow, and the actions in force."""

    sender: base.Sender
    receiver: base.Receiver
    book: AckBook
    sender_actions: tuple
    receiver_actions: tuple


class ClosedLoop:
    """One flow over a `Path`. jitter: part of a gap by which each packet is moved at random. `resume`: the two halves as something
    else left them at `start_s`."""

    def __init__(
        self, kind: Kind, parameters, path: Path, seed: int = 1, jitter: float = 0.0, start_s: float = 0.0, resume: Left | None = None
    ) -> None:
        self.path = path
        self.rng = random.Random(seed)
        self.packet_bytes = getattr(parameters, "packet_bytes", 1000)
        self.jitter = jitter
        self.sender = resume.sender if resume else kind.sender(parameters)
        self.receiver = resume.receiver if resume else kind.receiver(parameters)
        self.now_s = start_s
        self.trace = Trace()
        self._events: list[tuple[float, int, str, tuple]] = []
        self._count = 0
        self._timers: dict[tuple[str, str], float] = {}
        self.rate_bps: float | None = None
        self.window: float | None = None
        self.book = resume.book if resume else AckBook(self.sender.interests)
        self._acked = self.sender.interests.acks is not AckDetail.NONE
        self._busy_until_s = start_s
        self._queue: list[float] = []
        self.sent = self.book.last_sent + 1
        self.delivered = self.lost = 0
        self._burst = 1
        self._next_send = 0
        self._next_send_s = self._gap_s = 0.0
        self._stamp: float | None = None
        self._control: base.SetControl | None = None
        self._report: base.SetReport | None = None
        self._sender_rtt: float | None = None
        self._highest = self.sent - 1
        self._last_arrival_s = start_s
        self._newest: tuple[float, float] | None = None
        self._holes: list[list] = []
        self._arrived: list[int] = []
        self._reported = (start_s, 0, self._highest)
        self._do(resume.receiver_actions if resume else self.receiver.on_start(self.now_s, self.rng), "receiver")
        self._do(resume.sender_actions if resume else self.sender.on_start(self.now_s, self.rng), "sender")
        if self.sender.interests.rtcp or self.receiver.interests.rtcp:
            self._at(self.now_s + 0.5 * RTCP_INTERVAL_S, "rtcp", ())

    def run(self, duration_s: float, sample_s: float = 1.0) -> Trace:
        """Runs on for so long; a row of the trace every `sample_s`."""
        end_s = self.now_s + duration_s
        next_sample_s = self.now_s + sample_s
        steps_at, steps = self.now_s, 0
        while True:
            due = [(at, "timer", key) for key, at in self._timers.items()]
            expiry = self.book.next_expiry()
            if expiry is not None:
                due.append((expiry, "expiry", ()))
            if self._events:
                due.append((self._events[0][0], "event", ()))
            at_s, what, key = min(due, key=lambda d: d[0], default=(end_s, "none", ()))
            while next_sample_s <= min(at_s, end_s):
                self.trace.rows.append((next_sample_s, self._effective_rate(), self.sent, self.delivered, self.lost))
                next_sample_s += sample_s
            if at_s >= end_s:
                self.now_s = end_s
                return self.trace
            self.now_s = max(self.now_s, at_s)
            steps_at, steps = (steps_at, steps + 1) if self.now_s == steps_at else (self.now_s, 0)
            assert steps < 5000, f"time stands still at {self.now_s} s: {what} {key}"
            if what == "timer":
                self._fire(key)
            elif what == "expiry":
                self._lost(self.book.expire(self.now_s))
            else:
                _, _, name, data = heapq.heappop(self._events)
                getattr(self, f"_on_{name}")(*data)

    def _effective_rate(self) -> float:
        if self.rate_bps is not None:
            return self.rate_bps
        return 8 * self.packet_bytes * (self.window or 0) / max(self.book.srtt, self.path.rtt_s)

    def _at(self, at_s: float, name: str, data: tuple) -> None:
        self._count += 1
        heapq.heappush(self._events, (at_s, self._count, name, data))

    def _fire(self, key: tuple[str, str]) -> None:
        half, name = key
        del self._timers[key]
        if half == "sender":
            timer = base.Timer(name, self.book.path() if self._acked else None)
            self._do(self.sender.on_timer(self.now_s, timer, self.rng), half)
        else:
            self._do(self.receiver.on_timer(self.now_s, base.Timer(name), self._reception(), self.rng), half)

    # ---------------------------------------------------------------------------------------------------------- sending

    def _pace(self, left: float = 1.0) -> None:
        """Plans the next burst; one that was planned before is forgotten. `left`: part of its gap that has not passed, as `pacer.rs`."""
        self._next_send += 1
        self._gap_s = 8 * self.packet_bytes * self._burst / self.rate_bps
        moved = 1 + self.jitter * (self.rng.random() - 0.5)
        self._next_send_s = self.now_s + self._gap_s * left * moved
        self._at(self._next_send_s, "send", (self._next_send,))

    def _on_send(self, planned: int) -> None:
        if planned != self._next_send:
            return
        self._lost(self.book.expire(self.now_s))
        for _ in range(self._burst):
            if self.window is None or len(self.book.outstanding) < self.window:
                self._send()
        self._pace()

    def _fill(self) -> None:
        while self.rate_bps is None and self.window is not None and len(self.book.outstanding) < self.window:
            self._send()

    def _send(self) -> None:
        number = self.book.send(self.now_s) if self._acked else self.sent
        self.sent += 1
        self._queue = [departs for departs in self._queue if departs > self.now_s]
        if self.rng.random() < self.path.random_loss or len(self._queue) > self.path.queue_packets:
            self.lost += 1
            return
        self._busy_until_s = max(self._busy_until_s, self.now_s) + 8 * self.packet_bytes / self.path.capacity_bps
        self._queue.append(self._busy_until_s)
        self._at(self._busy_until_s + self.path.rtt_s / 2, "arrive", (number, self.now_s, self._stamp))

    # -------------------------------------------------------------------------------------------------------- receiving

    def _reception(self) -> base.ReceptionState:
        missing = sum(last - first + 1 for first, last, *_ in self._holes)
        lost = self._highest + 1 - self.delivered - missing
        return base.ReceptionState(
            self.delivered, self.delivered * self.packet_bytes, max(0, lost), max(0, self._highest), self._last_arrival_s, self._sender_rtt
        )

    def _on_arrive(self, number: int, sent_s: float, stamp: float | None) -> None:
        before_s, expected = self._last_arrival_s, self._highest + 1
        self.delivered += 1
        self._highest, self._last_arrival_s, self._newest = number, self.now_s, (sent_s, self.now_s)
        self._sender_rtt = stamp if stamp is not None else self._sender_rtt
        self._arrived = [number, *self._arrived[:HISTORY]]
        if self._acked:
            history = tuple(n for n in self._arrived[1:] if n >= number - HISTORY)
            arrived_s = self.now_s if self.receiver.interests.timed_acks else None
            self._at(self.now_s + self.path.rtt_s / 2, "ack", (number, history, arrived_s))
        if not self.receiver.interests.gaps:
            return
        for hole in self._holes:
            hole[4] += 1
        if number > expected and self.delivered > 1:
            self._holes.append([expected, number - 1, before_s, self.now_s, 1])
        while self._holes and self._holes[0][4] >= self.receiver.interests.loss_distance_packets:
            first, last, before, after, _ = self._holes.pop(0)
            gap = base.Gap(first, last, before, after, self._reception())
            self._do(self.receiver.on_gap(self.now_s, gap, self.rng), "receiver")

    def _on_ack(self, sequence: int, history: tuple[int, ...], arrived_s: float | None) -> None:
        loss, ack = self.book.acknowledge(self.now_s, sequence, history, arrived_s)
        self._lost(loss)
        if ack is not None and self.sender.interests.acks is AckDetail.EVERY:
            self._do(self.sender.on_ack(self.now_s, ack, self.rng), "sender")
        self._fill()

    def _lost(self, loss: base.Loss | None) -> None:
        if loss is not None:
            self._do(self.sender.on_loss(self.now_s, loss, self.rng), "sender")
            self._fill()

    def _on_feedback(self, feedback: base.Feedback, sent_s: float | None, held_s: float) -> None:
        rtt_s = None if sent_s is None else max(0.0, self.now_s - sent_s - held_s)
        values = {name: getattr(feedback, name) for name in feedback.__slots__} | {"rtt_s": rtt_s}
        self._do(self.sender.on_feedback(self.now_s, base.Feedback(**values), self.rng), "sender")
        self._fill()

    def _interval(self) -> tuple[float, float]:
        """Receive rate and loss fraction since the last report."""
        since_s, received, highest = self._reported
        self._reported = (self.now_s, self.delivered, self._highest)
        seconds, arrived, expected = self.now_s - since_s, self.delivered - received, self._highest - highest
        rate_bps = 8 * self.packet_bytes * arrived / seconds if seconds > 0 else 0.0
        return rate_bps, max(0.0, 1 - arrived / expected) if expected > 0 else 0.0

    def _on_rtcp(self) -> None:
        """Both ends' control packets."""
        said = self._control
        if said is not None:
            fair_bps = 0.9 * self.path.capacity_bps if self.path.fair_rate_bps is None else self.path.fair_rate_bps
            utilisation = said.utilisation if math.isinf(fair_bps) else self.path.utilisation
            control = base.Control(1, min(said.desired_rate_bps, fair_bps), utilisation, said.layers)
            self._do(self.receiver.on_control(self.now_s, control, self.rng), "receiver")
        if self._newest is not None and self.receiver.interests.rtcp:
            _, loss = self._interval()
            echoed = self._report
            feedback = base.Feedback(
                RECEIVER, loss, self.path.rtt_s, 0.0, echoed and echoed.desired_rate_bps, echoed and echoed.utilisation
            )
            self._at(self.now_s + self.path.rtt_s / 2, "feedback", (feedback, self.now_s - self.path.rtt_s / 2, 0.0))
        self._at(self.now_s + RTCP_INTERVAL_S * (0.5 + self.rng.random()), "rtcp", ())

    # ---------------------------------------------------------------------------------------------------------- actions

    def _do(self, actions: tuple, half: str) -> None:
        for action in actions:
            match action:
                case base.SetRate(rate_bps, burst):
                    changed, paced = (rate_bps, burst) != (self.rate_bps, self._burst), self.rate_bps is not None
                    self.rate_bps, self._burst = rate_bps, burst
                    if changed:
                        self._pace(max(0.0, self._next_send_s - self.now_s) / self._gap_s if paced else 1.0)
                case base.SetLayers(layers):
                    self.rate_bps = sum(layer.rate_bps for layer in layers) or self.rate_bps
                case base.SetWindow(window):
                    self.window = window
                case base.SetLossTimeout():
                    self.book.timeout = action
                case base.SetControl():
                    self._control = action
                case base.SetReport():
                    self._report = action
                case base.StampData(rtt_s):
                    self._stamp = rtt_s
                case base.SendFeedback(rate):
                    if self._newest is not None:
                        receive_rate_bps, loss = self._interval()
                        sent_s, arrived_s = self._newest
                        feedback = base.Feedback(RECEIVER, loss, None, None, None, None, receive_rate_bps, rate)
                        self._at(self.now_s + self.path.rtt_s / 2, "feedback", (feedback, sent_s, self.now_s - arrived_s))
                case base.SetTimer(name, at_s):
                    self._timers[half, name] = max(at_s, self.now_s)
                case base.CancelTimer(name):
                    self._timers.pop((half, name), None)
                case base.Note(kind, values):
                    self.trace.notes.append((self.now_s, kind, values))
        if half == "sender":
            self._fill()
