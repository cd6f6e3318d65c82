"""The timetable of the control plane: epochs, the end of an interval and its fair rates, and intervals that a late clock leaves out."""

from __future__ import annotations

from dataclasses import dataclass, field

from fairlane.controller.als import AlsPlane, network_of
from fairlane.controller.config import Config, Port, Switch
from fairlane.controller.plane.engine import Engine, Message
from fairlane.controller.plane.names import Names
from fairlane.controller.timetable import NS, epoch


@dataclass
class Driven:
    """A switch of one port that answers at once, and its controller."""

    names: Names
    interval_s: float = 2.0
    plane: AlsPlane = field(default_factory=AlsPlane)
    closed: list[tuple[float, int]] = field(default_factory=list)
    """When an interval's values were in force, and its epoch."""
    timers: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.plane.config = Config("", "", (Switch("s1", 1, "127.0.0.1:1", (Port(1, 10_000_000),)),), interval_s=self.interval_s)
        self.engine = Engine(self.plane, network_of(self.plane.config), self.names, keeps=self)

    def record(self, fields) -> None: ...

    def event(self, kind, what) -> None: ...

    def rows(self, rows) -> None:
        self.closed += [(row.time_s, row.epoch) for row in rows]

    def carry(self, now_ns: int, messages: list[Message]) -> None:
        while messages:
            message = messages.pop(0)
            if message.kind == "timer":
                self.timers.append((message.request, message.token))
            else:
                messages += self.engine.answered(now_ns, message.token, ())

    def interval(self, now_ns: int) -> None:
        self.carry(now_ns, self.engine.interval(now_ns))

    def pass_grace(self) -> None:
        timers, self.timers = self.timers, []
        for at_ns, token in timers:
            self.carry(at_ns, self.engine.answered(at_ns, token, ()))

    def start(self, now_ns: int, fresh: bool = True) -> None:
        self.carry(now_ns, self.engine.programmed(now_ns, 0, fresh))


def test_an_interval_ends_with_its_next_and_its_fair_rates(p4info: Names) -> None:
    driven = Driven(p4info)
    driven.start(5 * NS)
    assert driven.engine.next_ns(5 * NS) == 6 * NS and driven.engine.next_ns(6 * NS) == 8 * NS
    for now_ns in (6 * NS, 8 * NS):
        driven.interval(now_ns)
        assert {at_ns for at_ns, _ in driven.timers} == {now_ns + 50_000_000}
        driven.pass_grace()
    # Unix seconds 4 to 6 are the third interval, counted from 1.
    assert driven.closed == [(6.05, 3), (8.05, 4)]


def test_an_interval_that_was_not_counted_from_its_beginning_is_left_out(p4info: Names) -> None:
    driven = Driven(p4info)
    driven.start(5 * NS, fresh=False)  # a controller that was restarted
    driven.interval(6 * NS)
    driven.pass_grace()
    assert driven.closed == []
    driven.interval(8 * NS)
    driven.pass_grace()
    driven.interval(14 * NS)  # a late clock
    driven.pass_grace()
    driven.interval(16 * NS)
    driven.pass_grace()
    assert [epoch for _, epoch in driven.closed] == [4, 8]


def test_a_switch_that_is_lost_is_left_out_and_its_rates_stay(p4info: Names) -> None:
    driven = Driven(p4info)
    driven.start(5 * NS)
    driven.interval(6 * NS)
    driven.engine.lost(6 * NS, 0)
    driven.pass_grace()
    driven.interval(8 * NS)
    driven.start(9 * NS)
    driven.pass_grace()
    driven.interval(10 * NS)
    driven.pass_grace()
    assert driven.closed == []
    driven.interval(12 * NS)
    driven.pass_grace()
    assert driven.closed == [(12.05, 6)]


def test_epochs_have_32_bits_and_are_never_0() -> None:
    """A switch takes epoch 0 for nobody counting (p4src/connections.p4)."""
    largest = 0xFFFFFFFE
    assert [epoch(n) for n in range(largest - 2, largest + 1)] == [largest - 1, largest, 1]
