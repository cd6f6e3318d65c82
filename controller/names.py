"""The names that the controller needs in a P4 program: reports all missing names at once, before anything starts."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TypeVar

from fairlane.controller.als import AlsPlane, network_of
from fairlane.controller.config import Config, Switch
from fairlane.controller.messages import p4i as p4info_pb2
from fairlane.controller.messages import p4r as p4runtime_pb2
from fairlane.controller.p4info import NotInProgram, P4Info
from fairlane.controller.plane.engine import Engine
from fairlane.controller.plane.names import Group, Key, Member, Names, Value

_T = TypeVar("_T")
_ROOM = 1 << 20
"""Cells of an array that a program lacks."""


@dataclasses.dataclass(frozen=True)
class Asked:
    """lacking: a line for each name that a program lacks, or has in another form, in the order in which the controller uses them. tables: those that it has."""

    lacking: tuple[str, ...]
    tables: frozenset[str]


def asked(config: Config, p4info: P4Info, als_later: Collection[str] = (), joins: bool = False) -> Asked:
    """als_later: switches that begin to write fair rates during the run. joins: whether hosts join multicast groups."""

    def tried(switch: Switch) -> Switch:
        ports = tuple(dataclasses.replace(port, als=port.als or switch.name in als_later) for port in switch.ports)
        # All routes of a kind ask for the same names.
        kinds = {bool(route.others): route for route in reversed(switch.routes)}
        return dataclasses.replace(switch, ports=ports, routes=tuple(kinds.values()), sources=switch.sources[:1])

    trial, plane = _Trial(p4info.message), AlsPlane()
    plane.config = dataclasses.replace(config, switches=tuple(map(tried, config.switches)))
    engine = Engine(plane, network_of(plane.config), trial)
    if joins:
        plane.ask_names()
    messages = [message for i in range(len(config.switches)) for message in engine.programmed(0, i)]
    for now_ns in (0, engine.interval_ns):
        messages += engine.interval(now_ns) if now_ns else []
        while messages:
            messages += engine.answered(now_ns, messages.pop(0).token, ())
    return Asked(tuple(trial.lacking), frozenset(trial.found))


class _Trial(Names):
    """Answers every question, and keeps those that the program has no answer to."""

    def __init__(self, message: p4info_pb2.P4Info) -> None:
        super().__init__(message)
        self.lacking: dict[str, None] = {}
        self.found: set[str] = set()

    def _ask(self, question: Callable[[], _T], otherwise: _T) -> _T:
        try:
            return question()
        except NotInProgram as error:
            self.lacking[str(error)] = None
            return otherwise

    def entry(
        self,
        table: str,
        keys: Mapping[str, Key],
        action: str | Member | Group | None = None,
        values: Mapping[str, Value] | None = None,
        priority: int = 0,
        default: bool = False,
    ) -> p4runtime_pb2.TableEntry:
        before, nothing = len(self.lacking), p4runtime_pb2.TableEntry()
        if table in self.tables:
            self.found.add(table)
        entry = super().entry
        self._ask(lambda: entry(table, keys, default=default), nothing)
        if isinstance(action, str):
            self.values(action, values or {})
        if len(self.lacking) > before or (isinstance(action, str) and action not in self.actions):
            return nothing  # said, now or before
        return self._ask(lambda: entry(table, keys, action, values, priority, default), nothing)

    def action(self, name: str, values: Mapping[str, Value]) -> p4runtime_pb2.Action:
        action = super().action
        return self._ask(lambda: action(name, values), p4runtime_pb2.Action())

    def profile(self, name: str) -> p4info_pb2.ActionProfile:
        profile = super().profile
        return self._ask(lambda: profile(name), p4info_pb2.ActionProfile())

    def table(self, name: str) -> p4info_pb2.Table:
        table = super().table
        return self._ask(lambda: table(name), p4info_pb2.Table(size=1))

    def counter(self, name: str) -> p4info_pb2.Counter:
        counter = super().counter
        return self._ask(lambda: counter(name), p4info_pb2.Counter(size=_ROOM))

    def cell(self, counter: str, index: int) -> p4runtime_pb2.Entity:
        cell = super().cell
        return self._ask(lambda: cell(counter, index), p4runtime_pb2.Entity())

    def register(self, name: str) -> tuple[p4info_pb2.Register, int]:
        register = super().register
        return self._ask(lambda: register(name), (p4info_pb2.Register(size=_ROOM), 1))

    def values(self, action: str, values: Mapping[str, Value]) -> list[bytes]:
        encoded = super().values
        return self._ask(lambda: encoded(action, values), [])

    def check_digest(self, name: str, wanted: Iterable[str]) -> None:
        check = super().check_digest
        self._ask(lambda: check(name, wanted), None)

    def check_packet_field(self, header: str, field: str) -> None:
        check = super().check_packet_field
        self._ask(lambda: check(header, field), None)
