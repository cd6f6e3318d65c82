"""What must hold of every algorithm, whatever the network or a forger sends: `check_hostile_events(kind, ...)` for any `Kind`.

Events are of the types that a runner delivers, with values that it cannot rule out: fractions and rates of any size, NaN, infinity,
round trips of 0 or of a century, reporters unknown, reports doubled, late or missing, clocks that leap. Numbers of a flow's own
packets are the runner's and stay consistent: it refuses acknowledgements of packets never sent.
"""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Callable

from hypothesis import strategies as st

from fairlane.hosts.algorithms import base
from fairlane.hosts.algorithms.base import AckDetail, Kind
from fairlane.hosts.algorithms.scream import ScreamParameters
from path_model import AckBook, ClosedLoop, Left, Path

MAX_RATE_BPS = 2e6
MAX_WINDOW_PACKETS = 1e6
"""The most that a runner carries out."""
MAX_STEPS_AT_ONE_INSTANT = 200
HEALTHY_PATH = Path(capacity_bps=500e3)
WINDOW_S = 40.0
PATIENCE_S = 2000.0
"""A path in good order for so long after an attack must bring a flow back. TFRC that lost every packet of eight intervals needs the
longest: it sees its next interval at a packet in a few seconds."""

_NUMBERS = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.0, 5e-324, 1e-9, 1e308, 2.0**64 - 1, math.inf, -math.inf, math.nan]),
    st.floats(min_value=0, max_value=1),
    st.floats(min_value=0, max_value=1e8),
    st.floats(),
)
_OPTIONAL = st.none() | _NUMBERS
_REPORTERS = st.sampled_from([77, 77, 77, 0, 1, 2**32 - 1])
_WIRE_RATE = st.integers(0, 2**64 - 1).map(float) | st.sampled_from([0.0, 2.0**64, 5e5])
_WIRE_PPM = st.integers(0, 2**32 - 1).map(lambda ppm: ppm * 1e-6)
_LAYERS = st.lists(st.builds(base.Layer, st.integers(0, 2**32 - 1), _WIRE_RATE), max_size=8).map(tuple)

EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("feedback"), st.builds(base.Feedback, _REPORTERS, *[_NUMBERS], *[_OPTIONAL] * 6)),
        st.tuples(st.just("plausible"), st.floats(0, 1), st.floats(1e-4, 3), st.floats(0, 1e7), st.none() | st.floats(0, 1)),
        st.tuples(st.just("again")),
        st.tuples(st.just("leave"), _REPORTERS),
        st.tuples(st.just("send"), st.integers(1, 40)),
        st.tuples(st.just("ack"), st.integers(0, 60), st.integers(0, 32), _NUMBERS, _OPTIONAL),
        st.tuples(st.just("control"), _WIRE_RATE, _WIRE_PPM, _LAYERS),
        st.tuples(st.just("data"), st.integers(0, 50), st.integers(0, 2**17), st.none() | st.floats(1e-6, 4294)),
        st.tuples(st.just("wait"), st.one_of(st.sampled_from([0.0, 1e-9, 0.01, 0.3, 7.0, 70.0, 1e6]), st.floats(0, 100))),
    ),
    max_size=40,
)
"""Hostile histories; the second field and on are arguments of `Attack`'s methods."""


def parameters_of(kind: Kind, **changes):
    """The kind's parameters with the fields that a fabric fills in."""
    known = {f.name for f in dataclasses.fields(kind.parameters)}
    filled = {"max_rate_bps": MAX_RATE_BPS, "packet_bytes": 1000} | changes
    return kind.parameters(**{name: value for name, value in filled.items() if name in known})


def check_action(action, parameters, half: str) -> None:
    """The action is one that a runner can carry out."""

    def holds(condition: bool) -> None:
        assert condition, f"{half}: {action}"

    # SCReAM's is its media's. Its pace is its window's, which bounds what leaves [RFC 8298 sec 4.1.2.6].
    paced_by_window = isinstance(parameters, ScreamParameters)
    limit_bps = math.inf if paced_by_window else getattr(parameters, "max_rate_bps", math.inf)
    match action:
        case base.SetRate(rate_bps, burst):
            holds(half == "sender" and 0 < rate_bps < math.inf and rate_bps <= limit_bps)
            holds(isinstance(burst, int) and burst >= 1)
        case base.SetWindow(window):
            holds(half == "sender" and 1 <= window <= MAX_WINDOW_PACKETS)
        case base.SetLossTimeout():
            holds(half == "sender" and 0 < action.timeout_s < math.inf)
            holds(all(0 <= value < math.inf for value in (action.srtt_factor, action.rttvar_factor, action.granularity_s)))
        case base.SetControl(desired_rate_bps, utilisation, layers):
            holds(half == "sender" and 0 <= desired_rate_bps < math.inf and 0 <= utilisation < math.inf)
            holds(all(0 <= layer.rate_bps < math.inf for layer in layers))
        case base.SetLayers(layers):
            holds(half == "sender" and all(0 <= layer.rate_bps < math.inf for layer in layers) and any(layer.rate_bps for layer in layers))
            holds(sum(layer.rate_bps for layer in layers) <= limit_bps * (1 + 1e-9))
        case base.StampData(rtt_s):
            holds(half == "sender" and 0 <= rtt_s < 4295)
        case base.SetReport(desired_rate_bps, utilisation):
            holds(half == "receiver" and 0 <= desired_rate_bps < math.inf and 0 <= utilisation < math.inf)
        case base.SendFeedback(rate):
            holds(half == "receiver" and (rate is None or 0 <= rate <= 1))
        case base.JoinLayers(addresses):
            holds(half == "receiver" and all(isinstance(a, int) for a in addresses))
        case base.SetTimer(name, at_s):
            holds(bool(name) and math.isfinite(at_s))
        case base.CancelTimer(name) | base.Note(name, _):
            holds(bool(name))
        case _:
            holds(False)


class Attack:
    """Delivers hostile events to both halves and keeps what they asked for."""

    def __init__(self, kind: Kind, parameters) -> None:
        self.parameters = parameters
        self.sender, self.receiver = kind.sender(parameters), kind.receiver(parameters)
        self.rng = random.Random(7)
        self.now_s = 0.0
        self.book = AckBook(self.sender.interests)
        self.timers: dict[tuple[str, str], float] = {}
        self.in_force: dict[tuple[str, type], object] = {}
        self._last: base.Feedback | None = None
        self._reporters: set[int] = set()
        self._highest = -1
        self._received = self._lost = 0
        self._arrival_s = 0.0
        self._rtt: float | None = None
        self._do("receiver", self.receiver.on_start, ())
        self._do("sender", self.sender.on_start, ())
        asked = {what for half, what in self.in_force if half == "sender"}
        assert asked & {base.SetRate, base.SetWindow}, "on_start asks for neither a rate nor a window"
        if base.SetWindow in asked:
            assert base.SetLossTimeout in asked, "a window without a loss timeout stalls when all of it is lost"

    def feedback(self, report: base.Feedback) -> None:
        self._last = report
        self._reporters.add(report.reporter)
        self._do("sender", self.sender.on_feedback, (report,))

    def plausible(self, loss: float, rtt_s: float, rate_bps: float, event_rate: float | None) -> None:
        """What a runner makes of a report that is not forged."""
        self.feedback(base.Feedback(77, loss, rtt_s, 0.0, rate_bps, min(1.0, loss + 0.5), rate_bps, event_rate))

    def again(self) -> None:
        """A report is doubled."""
        if self._last is not None:
            self.feedback(self._last)

    def leave(self, reporter: int) -> None:
        self._do("sender", self.sender.on_leave, (reporter,))

    def send(self, count: int) -> None:
        for _ in range(count):
            self.book.send(self.now_s)
        self._loss(self.book.expire(self.now_s))

    def ack(self, back: int, history: int, rtt_s: float, one_way_delay_s: float | None = None) -> None:
        """An acknowledgement of one of the last packets, its times anything that a clock that leaps, or a forger, could make of them."""
        if self.sender.interests.acks is AckDetail.NONE or self.book.last_sent < back:
            return
        sequence = self.book.last_sent - back
        said, ack = self.book.acknowledge(self.now_s, sequence, tuple(range(max(0, sequence - history), sequence)))
        self.book.latest, self.book.srtt = rtt_s, abs(rtt_s)
        self._loss(said)
        if ack is not None and self.sender.interests.acks is AckDetail.EVERY:
            self._do(
                "sender",
                self.sender.on_ack,
                (dataclasses.replace(ack, rtt_s=rtt_s, path=self.book.path(), one_way_delay_s=one_way_delay_s),),
            )

    def control(self, desired_rate_bps: float, utilisation: float, layers: tuple[base.Layer, ...]) -> None:
        self._do("receiver", self.receiver.on_control, (base.Control(1, desired_rate_bps, utilisation, layers),))

    def data(self, missing: int, received: int, rtt_s: float | None) -> None:
        """Packets arrive, a few after a hole."""
        before_s, first = self._arrival_s, self._highest + 1
        self._highest += missing + 1 + received
        self._received += 1 + received
        self._lost += missing
        self._arrival_s, self._rtt = self.now_s, rtt_s if rtt_s is not None else self._rtt
        if missing and first and self.receiver.interests.gaps:
            gap = base.Gap(first, first + missing - 1, before_s, self.now_s, self._reception())
            self._do("receiver", self.receiver.on_gap, (gap,))

    def wait(self, seconds: float) -> None:
        """Time passes; the timers that come due run, in order, each late by a little."""
        end_s = self.now_s + seconds
        self._run_timers(end_s)
        self.now_s = max(self.now_s, end_s)
        self._loss(self.book.expire(self.now_s))

    def left(self) -> Left:
        """For a `ClosedLoop` to go on with: the round trip is measured anew, as after a path change, and the session has timed out those
        that reported [RFC 3550 sec 6.3.5]."""
        for reporter in sorted(self._reporters):
            self.leave(reporter)
        book = self.book
        book.sent.clear(), book.outstanding.clear()
        book.latest = book.srtt = book.rttvar = 0.0
        actions = {half: [a for (whose, _), a in self.in_force.items() if whose == half] for half in ("sender", "receiver")}
        for (half, name), at_s in self.timers.items():
            actions[half].append(base.SetTimer(name, at_s))
        return Left(self.sender, self.receiver, book, tuple(actions["sender"]), tuple(actions["receiver"]))

    def _run_timers(self, end_s: float) -> None:
        steps = 0
        # Leaps of a clock find many timers due; a thousand of them say enough.
        for _ in range(1000):
            key = min(self.timers, key=self.timers.get, default=None)
            if key is None or self.timers[key] > end_s:
                return
            before_s, self.now_s = self.now_s, max(self.now_s, self.timers.pop(key))
            steps = steps + 1 if self.now_s == before_s else 0
            assert steps < MAX_STEPS_AT_ONE_INSTANT, f"timers without end at {self.now_s} s: {key}"
            half, name = key
            if half == "sender":
                path = None if self.sender.interests.acks is AckDetail.NONE else self.book.path()
                self._do(half, self.sender.on_timer, (base.Timer(name, path),))
            else:
                self._do(half, self.receiver.on_timer, (base.Timer(name), self._reception()))

    def _reception(self) -> base.ReceptionState:
        return base.ReceptionState(self._received, 1000 * self._received, self._lost, max(0, self._highest), self._arrival_s, self._rtt)

    def _loss(self, loss: base.Loss | None) -> None:
        if loss is not None and self.sender.interests.acks is not AckDetail.NONE:
            self._do("sender", self.sender.on_loss, (loss,))

    def _do(self, half: str, handler: Callable, arguments: tuple) -> None:
        actions = handler(self.now_s, *arguments, self.rng)
        assert isinstance(actions, tuple), f"{handler.__qualname__} returns {actions!r}, not a tuple of actions"
        for action in actions:
            check_action(action, self.parameters, half)
            match action:
                case base.SetTimer(name, at_s):
                    self.timers[half, name] = at_s
                case base.CancelTimer(name):
                    self.timers.pop((half, name), None)
                case base.Note() | base.SendFeedback():
                    pass
                case _:
                    self.in_force[half, type(action)] = action
                    if isinstance(action, base.SetLossTimeout):
                        self.book.timeout = action


def check_hostile_events(kind: Kind, events: list[tuple]) -> Attack:
    """Runs a history of `EVENTS`; asserts that nothing is raised, every action can be carried out, and time does not stand still."""
    attack = Attack(kind, parameters_of(kind))
    for name, *arguments in events:
        getattr(attack, name)(*arguments)
    attack.wait(1.0)
    return attack


def healthy_rate_bps(kind: Kind) -> float:
    """What a fresh flow delivers over `HEALTHY_PATH`."""
    loop = ClosedLoop(kind, parameters_of(kind), HEALTHY_PATH)
    loop.run(80.0)
    return _delivered_bps(loop)


def check_recovery(kind: Kind, attack: Attack, fresh_bps: float) -> None:
    """After the attack a path in good order brings the flow back: it delivers a third of what a fresh flow does, sooner or later."""
    loop = ClosedLoop(kind, attack.parameters, HEALTHY_PATH, start_s=attack.now_s, resume=attack.left())
    reached_bps = 0.0
    for _ in range(int(PATIENCE_S / WINDOW_S)):
        reached_bps = _delivered_bps(loop)
        if reached_bps > fresh_bps / 3:
            return
    raise AssertionError(f"{kind.name}: {reached_bps:g} bit/s {PATIENCE_S:g} s after the attack; a fresh flow has {fresh_bps:g}")


def _delivered_bps(loop: ClosedLoop) -> float:
    before = loop.delivered
    loop.run(WINDOW_S)
    return 8 * loop.packet_bytes * (loop.delivered - before) / WINDOW_S
