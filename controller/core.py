"""What a switch is to have, and what its answers mean: plain data in and out, without clock, socket or message.

One `SwitchControl` for each switch. `fairlane.controller.als` carries it out. Once digests about an ended interval have come, `finish` gives n_conn of
each port to its control loops: R_f comes from it, and the utilisation U from the port's bytes.
"""

from __future__ import annotations

import dataclasses
import operator
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any, TypeVar

from fairlane.controller.config import Config, Port, Switch
from fairlane.controller.connections import Connection, ConnectionCounter
from fairlane.controller.p4info import P4Info
from fairlane.controller.plane.names import Entry, Names
from fairlane.controller.records import PortRecord, counted_columns, kind, loops
from fairlane.controller.routes import RouteTable
from fairlane.controller.sketch import SketchCounter
from fairlane.controller.utilisation import utilisation_ppm
from fairlane.inputs import own_python
from fairlane.schemes import registry
from fairlane.schemes.base import PortInterval, PortLoop

_T = TypeVar("_T")
_Cells = Mapping[str, Mapping[int, tuple[int, int]]]
"""Packets and bytes of cells, by counter and index."""

TRANSMITTED = "AlsEgress.ports.transmitted"


def _by_column() -> dict[str, tuple[str, ...]]:
    """Of each column that schemes count: all counters of the program whose sum it is."""
    found: dict[str, tuple[str, ...]] = dict.fromkeys(counted_columns(), ())
    for scheme in registry.SCHEMES.values():
        for counter in scheme.counters:
            found[counter.column] += counter.names
    return found


# Where connections are seen: packets to one port in ingress, and, by the sketch, copies in egress.
_REPORTS = "AlsIngress.connections"
_SKETCHES = ("AlsIngress.connections.sketch", "AlsEgress.connections.sketch")
# Where the program reports each connection.
DIGEST = "connection_t"
# Where it counts the slots that they hit (p4src/connection_sketch.p4).
FILLED = "filled"
SLOTS = "sketch_epoch"


def record_kind(p4info: P4Info) -> type[PortRecord]:
    """What `SwitchControl.finish` gives with this program."""
    always = counted_columns(standing=True)
    further = any(name in p4info.counters for column, names in _by_column().items() if column not in always for name in names)
    there = tuple(loop for loop in loops() if all(entry.table in p4info.tables for entry in loop.tables))
    return kind(counted_columns() if further else always, there)


@dataclass(frozen=True)
class Reading:
    """Counters of all ports of a switch at an instant, of packets and bytes. counted: by the columns of schemes. of_loops: by names of the counters
    that control loops follow."""

    time_s: float
    transmitted: Mapping[int, tuple[int, int]]
    counted: Mapping[str, Mapping[int, tuple[int, int]]]
    of_loops: Mapping[str, Mapping[int, tuple[int, int]]]


def port_entries(port: Port) -> Iterable[Entry]:
    """Of a port's schemes."""
    entries = [entry for scheme in registry.standing() for entry in scheme.of_every_port(port.rate_bps)]
    entries += [entry for scheme in port.schemes for entry in scheme.entries(port.rate_bps)]
    for entry in entries:
        yield Entry(entry.table, {entry.key: port.number}, entry.action_name, entry.values)


def _loops(port: Port, utilisation_target: float) -> list[PortLoop]:
    """The control loops of a port: of schemes of every program, and of its own."""
    own = {settings.scheme.name: settings for settings in port.schemes}
    schemes = [scheme for name, scheme in registry.SCHEMES.items() if scheme.standing or name in own]
    loops = [(scheme.loop, own.get(scheme.name)) for scheme in schemes if scheme.loop is not None]
    return [_called(made, lambda: made(settings, port.rate_bps, utilisation_target)) for made, settings in loops]  # noqa: B023 # called at once


def _closed(loop: PortLoop, seen: PortInterval, totals: Mapping[str, tuple[int, int]]) -> Mapping[str, int]:
    """An interval has ended: what a control loop records of it."""
    loop.close(seen)
    found = loop.recorded(totals)
    unknown = found.keys() - {column.name for column in loop.columns}
    if unknown:
        raise ValueError(f"recorded: {min(unknown)!r} is not in `columns`")
    return found


def _called(loop: PortLoop | type[PortLoop], call: Callable[[], _T]) -> _T:
    """The answer of a control loop. OwnFault: it is a user's own, and raised something."""
    try:
        return call()
    except Exception as error:
        kind = loop if isinstance(loop, type) else type(loop)
        if not kind.__module__.startswith(registry.MODULES):
            raise
        raise own_python.fault(Path(str(sys.modules[kind.__module__].__file__)), kind.__name__, error) from error


class SwitchControl:
    """Of one switch. group_ports: ports of each of its multicast groups, by id; the mapping may change, and connections count at the ports of
    the moment."""

    def __init__(self, switch: Switch, names: Names, config: Config, group_ports: Mapping[int, Iterable[int]] | None = None) -> None:
        self.switch = switch
        self.routes = RouteTable(switch)
        self._names = names
        self._config = config
        self._counter = ConnectionCounter()
        sketched = FILLED in names.counters
        self._sketch = SketchCounter((p.number for p in switch.ports), names.register(SLOTS)[0].size) if sketched else None
        if not sketched:
            names.check_digest(DIGEST, Connection._fields)
        self._record_kind = record_kind(names)
        self._loops = {port.number: _loops(port, config.utilisation_target) for port in switch.ports}
        self._followed = tuple(dict.fromkeys(name for found in self._loops.values() for loop in found for name in loop.counters))
        self._columns = _by_column()
        columns = [field.name for field in dataclasses.fields(self._record_kind)]
        self._counted = [column for column in self._columns if column in columns]
        # The columns of control loops, at ports that have none.
        self._not_followed = dict.fromkeys((column.name for loop in loops() for column in loop.columns if column.name in columns), 0)
        self._load = [counter.column for scheme in registry.SCHEMES.values() for counter in scheme.counters if counter.load]
        self._previous: Reading | None = None
        self._latest: Reading | None = None
        self._group_ports = {} if group_ports is None else group_ports

    def entries(self, fresh: bool = True) -> list[Entry]:
        """Everything that a switch needs except multicast groups: routes, links, schemes, and for a fresh pipeline a first fair
        rate. A switch that ran without a controller keeps its rates: they are nearer to the truth than the rate of a single
        connection."""
        return [*self._static_entries(), *(self.kept(als=True) if fresh else ())]

    def kept(self, als: bool) -> list[Entry]:
        """The entries of control loops with their latest values, at ports where they are, or are not, in force."""
        found: list[Entry] = []
        for port in self.switch.ports:
            for loop in self._loops[port.number] if port.als == als else ():
                values = _called(loop, loop.values)
                found += [Entry(entry.table, {entry.key: port.number}, entry.action_name, values) for entry in loop.tables]
        return found

    def _static_entries(self) -> Iterable[Entry]:
        yield from self.routes.entries()
        asked = {settings.scheme.name for port in self.switch.ports for settings in port.schemes}
        for source in self.switch.sources:
            for name, scheme in registry.SCHEMES.items():
                entry = scheme.of_source(int(ip_address(source.address)), source.port) if scheme.of_source else None
                if entry is not None and (name in asked or entry.table in self._names.tables):
                    yield Entry(entry.table, entry.keys or {}, entry.action_name, entry.values)
        yield from self._link_entries()
        for port, (first, mask) in self._sketch.regions().items() if self._sketch else ():
            for sketch in _SKETCHES:
                yield Entry(f"{sketch}.region", {"port": port}, f"{sketch}.set_region", {"first_slot": first, "slots": mask})

    def _link_entries(self) -> Iterable[Entry]:
        """What depends on the rates of the ports' links."""
        for port in self.switch.ports:
            yield from port_entries(port)

    def epoch_entries(self) -> list[Entry]:
        """The default actions by which the data plane knows the epoch; their values are those of `begin`."""
        where = _SKETCHES if self._sketch else (_REPORTS,)
        return [Entry(f"{one}.observation", {}, f"{one}.set_epoch", {"number": 0}) for one in where]

    def begin(self, epoch: int) -> list[dict[str, int]]:
        """An observation interval begins: the values of `epoch_entries`. The reading of the counters that follows ends the one before."""
        if self._sketch:
            self._sketch.begin(epoch)
        return [{"number": epoch}] * (len(_SKETCHES) if self._sketch else 1)

    def change_rate(self, port: int, rate_bps: int) -> list[Entry]:
        """A port's link has another rate from now on: the entries to modify. R_f and utilisation follow with the next interval."""
        ports = tuple(dataclasses.replace(p, rate_bps=rate_bps) if p.number == port else p for p in self.switch.ports)
        self.switch = dataclasses.replace(self.switch, ports=ports)
        return [entry for entry in self._link_entries() if port in entry.keys.values()]

    def change_als(self, als: bool) -> list[Entry]:
        """From now on the ports write their fair rates into senders' control packets, or stop writing, and so for all control loops: the entries to
        insert or delete. The first values come from the last interval, since plain switches count connections too."""
        changed = self.kept(als=not als)
        self.switch = dataclasses.replace(self.switch, ports=tuple(dataclasses.replace(p, als=als) for p in self.switch.ports))
        return changed

    def cells(self) -> dict[str, list[int]]:
        """The counters' cells to read at each interval's end; they go to `on_counters`."""
        # A scheme does nothing where it has no parameters.
        of_scheme = {name: scheme.name for scheme in registry.SCHEMES.values() for name in scheme.counter_names}
        wanted = {
            name
            for scheme in (*registry.standing(), *(settings.scheme for port in self.switch.ports for settings in port.schemes))
            for counter in scheme.counters
            for name in counter.names
            if not counter.macro
        }
        of_schemes = [name for names in self._columns.values() for name in names if name in wanted or name in self._names.counters]
        found = {
            name: [
                port.number
                for port in self.switch.ports
                if (name not in of_scheme or of_scheme[name] in (settings.scheme.name for settings in port.schemes))
                and (name not in self._followed or any(name in loop.counters for loop in self._loops[port.number]))
            ]
            for name in dict.fromkeys((TRANSMITTED, *of_schemes, *self._followed))
        }
        return found | ({FILLED: self._sketch.cells()} if self._sketch else {})

    def on_counters(self, now_s: float, values: _Cells) -> None:
        """values: of `cells`."""
        if self._sketch:
            self._sketch.on_reading({cell: packets for cell, (packets, _) in values.get(FILLED, {}).items()})
        self._previous, self._latest = (
            self._latest,
            Reading(
                now_s,
                values.get(TRANSMITTED, {}),
                {column: _sum(values, names) for column, names in self._columns.items()},
                {name: values.get(name, {}) for name in self._followed},
            ),
        )

    def on_connections(self, members: Sequence[str], rows: Iterable[Sequence[int]]) -> None:
        """The messages of a digest, whose members have these names."""
        in_order = operator.itemgetter(*map(members.index, Connection._fields))
        for row in rows:
            self._counter.add(Connection(*in_order(row)))

    def forget(self) -> None:
        """The switch has restarted: its counters begin at 0 again."""
        self._previous = self._latest = None
        if self._sketch:
            self._sketch.forget()

    def finish(self, now_s: float, epoch: int) -> list[PortRecord]:
        """Close an interval: the record of each port. `kept` has what follows from it."""
        connections = self._sketch.close(epoch) if self._sketch else self._counter.close(epoch, self._group_ports)
        latest = self._latest or _NOTHING_READ
        records: list[PortRecord] = []
        for port in self.switch.ports:
            count = connections.get(port.number, 0)
            packets, sent = latest.transmitted.get(port.number, _NOTHING)
            seen = self._seen(port, count)
            further: dict[str, Any] = {column: latest.counted.get(column, {}).get(port.number, _NOTHING)[0] for column in self._counted}
            for loop in self._loops[port.number]:
                totals = {name: latest.of_loops.get(name, {}).get(port.number, _NOTHING) for name in loop.counters}
                further.update(_called(loop, lambda: _closed(loop, seen, totals)))  # noqa: B023 # called at once
            own = (now_s, self.switch.name, port.number, epoch, count, seen.utilisation_ppm)
            records.append(self._record_kind(*own, transmitted_packets=packets, transmitted_bytes=sent, **(self._not_followed | further)))
        return records

    def _seen(self, port: Port, connections: int) -> PortInterval:
        """Of the interval that ended."""
        before, after = self._previous, self._latest
        if before is None or after is None:
            return PortInterval(port.rate_bps, self._config.utilisation_target, connections, 0, 0.0, dict.fromkeys(self._followed, 0))
        elapsed_s = max(after.time_s - before.time_s, 0.0)
        sent = _growth(before.transmitted, after.transmitted, port.number)
        dropped = sum(_growth(before.counted.get(column, {}), after.counted.get(column, {}), port.number) for column in self._load)
        return PortInterval(
            port.rate_bps,
            self._config.utilisation_target,
            connections,
            utilisation_ppm(sent, dropped, elapsed_s, port.rate_bps),
            elapsed_s,
            {name: _growth(before.of_loops[name], after.of_loops[name], port.number) for name in self._followed},
        )


_NOTHING = (0, 0)
_NOTHING_READ = Reading(0.0, {}, {}, {})


def _growth(before: Mapping[int, tuple[int, int]], after: Mapping[int, tuple[int, int]], port: int) -> int:
    """Bytes by which a counter of `Reading` grew between two."""
    first, last = before.get(port, _NOTHING)[1], after.get(port, _NOTHING)[1]
    # A counter that went back belongs to a switch that was restarted in between: all it shows is new.
    return last - first if last >= first else last


def _sum(values: Mapping[str, Mapping[int, tuple[int, int]]], names: Iterable[str]) -> dict[int, tuple[int, int]]:
    """Packets and bytes that several counters have of each port, in all."""
    total: dict[int, tuple[int, int]] = {}
    for name in names:
        for port, (packets, size) in values.get(name, {}).items():
            before = total.get(port, (0, 0))
            total[port] = (before[0] + packets, before[1] + size)
    return total
