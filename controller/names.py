"""The names that the controller needs in a P4 program: reports all missing names at once, before anything starts."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TypeVar

from finsy.proto import p4i as p4info_pb2
from finsy.proto import p4r as p4runtime_pb2

from fairlane.controller.config import Config
from fairlane.controller.connections import Connection
from fairlane.controller.core import SwitchControl
from fairlane.controller.multicast import MulticastControl
from fairlane.controller.p4info import MissingName, P4Info

_T = TypeVar("_T")


@dataclasses.dataclass(frozen=True)
class Asked:
    """lacking: a line for each name that a program lacks, or has in another form, in the order in which the controller uses them. tables: those that it has."""

    lacking: tuple[str, ...]
    tables: frozenset[str]


def asked(config: Config, p4info: P4Info, als_later: Collection[str] = (), joins: bool = False) -> Asked:
    """als_later: switches that begin to write fair rates during the run. joins: whether hosts join multicast groups."""
    trial = _Trial(p4info.message)
    multicast = MulticastControl(config, trial)
    if joins:
        multicast.ask_names()
    for switch in config.switches:
        if switch.name in als_later:
            switch = dataclasses.replace(switch, ports=tuple(dataclasses.replace(port, als=True) for port in switch.ports))
        # All routes ask for the same names.
        control = SwitchControl(dataclasses.replace(switch, routes=switch.routes[:1], sources=switch.sources[:1]), trial, config)
        control.initial_entities()
        control.begin(1)
        control.counter_entities()
        control.finish(0.0, 1)
    return Asked(tuple(trial.lacking), frozenset(trial.found))


class _Trial(P4Info):
    """Answers every question, and keeps those that the program has no answer to."""

    def __init__(self, message: p4info_pb2.P4Info) -> None:
        super().__init__(message)
        self.lacking: dict[str, None] = {}
        self.found: set[str] = set()

    def _ask(self, question: Callable[[], _T], otherwise: _T) -> _T:
        try:
            return question()
        except (MissingName, ValueError) as error:
            self.lacking[str(error)] = None
            return otherwise

    def table_entry(
        self,
        table: str,
        match: Mapping[str, int | tuple[int, int]],
        action: str,
        parameters: Mapping[str, int],
        *,
        default: bool = False,
    ) -> p4runtime_pb2.TableEntry:
        before = len(self.lacking)
        if table in self.tables:
            self.found.add(table)
        self._ask(lambda: self.check_keys(table, match), None)
        self.values(action, parameters)
        if len(self.lacking) > before:
            return p4runtime_pb2.TableEntry()
        entry = super().table_entry
        return self._ask(lambda: entry(table, match, action, parameters, default=default), p4runtime_pb2.TableEntry())

    def values(self, action: str, parameters: Mapping[str, int]) -> list[bytes]:
        values = super().values
        return self._ask(lambda: values(action, parameters), [])

    def table_id(self, name: str) -> int:
        table_id = super().table_id
        return self._ask(lambda: table_id(name), 0)

    def table_size(self, name: str) -> int:
        table_size = super().table_size
        return self._ask(lambda: table_size(name), 1)

    def match_field_id(self, table: str, field: str) -> int:
        match_field_id = super().match_field_id
        return self._ask(lambda: match_field_id(table, field), 0)

    def packet_field(self, header: str, field: str) -> tuple[int, int]:
        packet_field = super().packet_field
        return self._ask(lambda: packet_field(header, field), (0, 16))

    def counter_id(self, name: str) -> int:
        counter_id = super().counter_id
        return self._ask(lambda: counter_id(name), 0)

    def register_size(self, name: str) -> int:
        register_size = super().register_size
        return self._ask(lambda: register_size(name), 1)

    def digest_id(self, name: str) -> int:
        digest_id = super().digest_id
        return self._ask(lambda: digest_id(name), 0)

    def digest_fields(self, name: str, wanted: Iterable[str] = ()) -> list[str]:
        digest_fields = super().digest_fields
        return self._ask(lambda: digest_fields(name, wanted), list(Connection._fields))
