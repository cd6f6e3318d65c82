"""The control loop without clock or socket: it decides what to write and read, and learns from the answers.

One `SwitchControl` for each switch; `fairlane.controller.multicast` handles joins and leaves. Time is an argument, messages are P4Runtime's,
and the caller carries them (by gRPC in real time, by a direct call in virtual time).

`fairlane.controller.timetable` says when. As an observation interval begins (`begin`), a switch gets the next epoch and its port counters
are read. Once digests about the ended interval have come (`finish`), n_conn of each port gives R_f, and its bytes give the utilisation U;
both are written.
"""

from __future__ import annotations

import dataclasses
import operator
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any, TypeVar

from finsy.proto import p4r as p4runtime_pb2

from fairlane.controller.config import Config, Port, Switch, mac
from fairlane.controller.connections import Connection, ConnectionCounter
from fairlane.controller.p4info import P4Info
from fairlane.controller.records import PortRecord, counted_columns, kind, loops
from fairlane.controller.sketch import SketchCounter
from fairlane.controller.utilisation import utilisation_ppm
from fairlane.inputs import own_python
from fairlane.schemes import registry
from fairlane.schemes.base import PortInterval, PortLoop

_T = TypeVar("_T")
_Update = p4runtime_pb2.Update
_Match = Mapping[str, int | tuple[int, int]]
_TableEntry = tuple[str, _Match, str, Mapping[str, int]]
"""Table, keys, action, and the action's parameters."""

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


def port_entries(port: Port) -> Iterable[_TableEntry]:
    """Of a port's schemes."""
    entries = [entry for scheme in registry.standing() for entry in scheme.of_every_port(port.rate_bps)]
    entries += [entry for scheme in port.schemes for entry in scheme.entries(port.rate_bps)]
    for entry in entries:
        yield entry.table, {entry.key: port.number}, entry.action_name, entry.values


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
    """The messages to one switch, as P4Runtime entities. group_ports: ports of each of its multicast groups, by id; the mapping may
    change, and connections count at the ports of the moment."""

    def __init__(self, switch: Switch, p4info: P4Info, config: Config, group_ports: Mapping[int, Iterable[int]] | None = None) -> None:
        self.switch = switch
        self._p4info = p4info
        self._config = config
        self._counter = ConnectionCounter()
        self._sketch = SketchCounter((p.number for p in switch.ports), p4info.register_size(SLOTS)) if FILLED in p4info.counters else None
        self._record_kind = record_kind(p4info)
        self._loops = {port.number: _loops(port, config.utilisation_target) for port in switch.ports}
        self._followed = tuple(dict.fromkeys(name for found in self._loops.values() for loop in found for name in loop.counters))
        self._columns = _by_column()
        columns = [field.name for field in dataclasses.fields(self._record_kind)]
        self._counted = [column for column in self._columns if column in columns]
        # The columns of control loops, at ports that have none.
        self._not_followed = dict.fromkeys((column.name for loop in loops() for column in loop.columns if column.name in columns), 0)
        self._load = [counter.column for scheme in registry.SCHEMES.values() for counter in scheme.counters if counter.load]
        # Of each counter, the scheme without whose parameters at a port it does not grow there.
        self._counts = {name: scheme.name for scheme in registry.SCHEMES.values() for name in scheme.counter_names}
        wanted = {
            name
            for scheme in (*registry.standing(), *(settings.scheme for port in switch.ports for settings in port.schemes))
            for counter in scheme.counters
            for name in counter.names
            if not counter.macro
        }
        of_schemes = dict.fromkeys(name for names in self._columns.values() for name in names if name in wanted or name in p4info.counters)
        self._counters = (TRANSMITTED, *of_schemes, *self._followed)
        self._previous: Reading | None = None
        self._latest: Reading | None = None
        self._counter_entities: list[p4runtime_pb2.Entity] | None = None
        fields = Connection._fields if self._sketch else p4info.digest_fields(DIGEST, Connection._fields)
        # A digest's members as `Connection` orders them.
        self._in_order = operator.itemgetter(*map(fields.index, Connection._fields))
        self._digest_id = None if self._sketch else p4info.digest_id(DIGEST)
        self._group_ports = {} if group_ports is None else group_ports
        self._epochs, self._rates = Rewrites(p4info), Rewrites(p4info)

    def initial_entities(self, fresh: bool = True) -> list[p4runtime_pb2.Entity]:
        """Everything that a switch needs except multicast groups: digests on, routes, links, schemes, and for a fresh pipeline a first fair
        rate. A switch that ran without a controller keeps its rates: they are nearer to the truth than the rate of a single
        connection."""
        return [
            *([] if self._sketch else [self._digest_config()]),
            *(self._table(*entry) for entry in self._static_entries()),
            *(self._table(*entry) for entry in self._kept(als=True) if fresh),
        ]

    def _kept(self, als: bool) -> list[_TableEntry]:
        """The entries of control loops with their latest values, at ports where they are, or are not, in force."""
        entries: list[_TableEntry] = []
        for port in self.switch.ports:
            for loop in self._loops[port.number] if port.als == als else ():
                values = _called(loop, loop.values)
                entries += [(entry.table, {entry.key: port.number}, entry.action_name, values) for entry in loop.tables]
        return entries

    def _static_entries(self) -> Iterable[_TableEntry]:
        for route in self.switch.routes:
            network = IPv4Network(route.prefix)
            yield (
                "AlsIngress.forward.ipv4_lpm",
                {"hdr.ipv4.dst_address": (int(network.network_address), network.prefixlen)},
                "AlsIngress.forward.send",
                {"port": route.port, "src_address": mac(route.src_mac), "dst_address": mac(route.dst_mac)},
            )
        asked = {settings.scheme.name for port in self.switch.ports for settings in port.schemes}
        for source in self.switch.sources:
            for name, scheme in registry.SCHEMES.items():
                entry = scheme.of_source(int(IPv4Address(source.address)), source.port) if scheme.of_source else None
                if entry is not None and (name in asked or entry.table in self._p4info.tables):
                    yield entry.table, entry.keys or {}, entry.action_name, entry.values
        yield from self._link_entries()
        for port, (first, mask) in self._sketch.regions().items() if self._sketch else ():
            for sketch in _SKETCHES:
                yield f"{sketch}.region", {"port": port}, f"{sketch}.set_region", {"first_slot": first, "slots": mask}

    def _link_entries(self) -> Iterable[_TableEntry]:
        """What depends on the rates of the ports' links."""
        for port in self.switch.ports:
            yield from port_entries(port)

    def begin(self, epoch: int) -> Rewrites:
        """Begin an observation interval in the data plane. The reading of the counters that follows ends the one before."""
        if self._sketch:
            self._sketch.begin(epoch)
        parameters = {"number": epoch}
        entries: list[_TableEntry] = [
            (f"{where}.observation", {}, f"{where}.set_epoch", parameters) for where in (_SKETCHES if self._sketch else (_REPORTS,))
        ]
        return self._epochs.set("epoch", lambda: entries, [self._p4info.values(entry[2], parameters) for entry in entries], default=True)

    def change_rate(self, port: int, rate_bps: int) -> list[p4runtime_pb2.Entity]:
        """A port's link has another rate from now on: what to write (MODIFY). R_f and utilisation follow with the next interval."""
        ports = tuple(dataclasses.replace(p, rate_bps=rate_bps) if p.number == port else p for p in self.switch.ports)
        self.switch = dataclasses.replace(self.switch, ports=ports)
        return [self._table(*entry) for entry in self._link_entries() if port in entry[1].values()]

    def change_als(self, als: bool) -> list[p4runtime_pb2.Entity]:
        """From now on the ports write their fair rates into senders' control packets, or stop writing, and so for all control loops: the entries to
        INSERT or DELETE. The first values come from the last interval, since plain switches count connections too."""
        changed = [self._table(*entry) for entry in self._kept(als=not als)]
        self.switch = dataclasses.replace(self.switch, ports=tuple(dataclasses.replace(p, als=als) for p in self.switch.ports))
        return changed

    def plain_entities(self) -> list[p4runtime_pb2.Entity]:
        """What a switch that ran without a controller may still have of ports that no longer write fair rates: to DELETE."""
        return [self._table(*entry) for entry in self._kept(als=False)]

    def counter_entities(self) -> list[p4runtime_pb2.Entity]:
        """What to read at each interval's end, always the same; the answer goes to `on_counters`."""
        if self._counter_entities is None:
            self._counter_entities = [
                p4runtime_pb2.Entity(
                    counter_entry=p4runtime_pb2.CounterEntry(
                        counter_id=self._p4info.counter_id(name), index=p4runtime_pb2.Index(index=port.number)
                    )
                )
                for name in self._counters
                for port in self.switch.ports
                # A scheme does nothing where it has no parameters.
                if (name not in self._counts or self._counts[name] in (settings.scheme.name for settings in port.schemes))
                and (name not in self._followed or any(name in loop.counters for loop in self._loops[port.number]))
            ]
            self._counter_entities += [
                p4runtime_pb2.Entity(
                    counter_entry=p4runtime_pb2.CounterEntry(
                        counter_id=self._p4info.counter_id(FILLED), index=p4runtime_pb2.Index(index=cell)
                    )
                )
                for cell in (self._sketch.cells() if self._sketch else ())
            ]
        return self._counter_entities

    def on_counters(self, now_s: float, rows: Iterable[tuple[int, int, int, int]]) -> None:
        """rows: as `counter_rows` has them."""
        values: dict[str, dict[int, tuple[int, int]]] = {}
        names = {self._p4info.counter_id(n): n for n in (*self._counters, *((FILLED,) if self._sketch else ()))}
        for counter, index, packets, size in rows:
            name = names.get(counter)
            if name is not None:
                values.setdefault(name, {})[index] = (packets, size)
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

    def on_digest(self, digest_id: int, list_id: int, rows: Iterable[Sequence[int]]) -> p4runtime_pb2.StreamMessageRequest | None:
        """Take a list of connections, each as the members of its digest; the answer is the acknowledgement to send. A digest of another
        kind gives None."""
        if self._sketch or digest_id != self._digest_id:
            return None
        for row in rows:
            self._counter.add(Connection(*self._in_order(row)))
        ack = p4runtime_pb2.DigestListAck(digest_id=digest_id, list_id=list_id)
        return p4runtime_pb2.StreamMessageRequest(digest_ack=ack)

    def forget(self) -> None:
        """The switch has restarted: its counters begin at 0 again."""
        self._previous = self._latest = None
        if self._sketch:
            self._sketch.forget()

    def finish(self, now_s: float, epoch: int) -> tuple[Rewrites, list[PortRecord]]:
        """Close an interval: what to write (good until the next interval is closed), and the record of each port."""
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
        written = tuple(p.number for p in self.switch.ports if p.als)
        kept = self._kept(als=True)
        return self._rates.set(written, lambda: kept, [self._p4info.values(action, values) for _, _, action, values in kept]), records

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

    def _table(self, table: str, match: _Match, action: str, parameters: Mapping[str, int]) -> p4runtime_pb2.Entity:
        return _entity(self._p4info, table, match, action, parameters)

    def _digest_config(self) -> p4runtime_pb2.Entity:
        entry = p4runtime_pb2.DigestEntry(digest_id=self._p4info.digest_id(DIGEST))
        # A list leaves when it is full or 10 ms old, well within the grace that follows an interval.
        entry.config.max_timeout_ns = 10_000_000
        entry.config.max_list_size = 256
        entry.config.ack_timeout_ns = 100_000_000
        return p4runtime_pb2.Entity(digest_entry=entry)


class Rewrites:
    """Entries that are written each interval with other parameters, in one message. It is made once: making it anew was a quarter of the
    control plane's work. `request` has some parameters, `values` has those of now, each update's in their order."""

    _RENEWED_EVERY = 512
    """Messages. One keeps the memory of each value that it ever had (some 16 bytes)."""

    def __init__(self, p4info: P4Info) -> None:
        self._p4info = p4info
        self._of: Hashable = None
        self._given = 0
        self._parameters: list[list[p4runtime_pb2.Action.Param]] = []
        self.request = p4runtime_pb2.WriteRequest()
        self.values: list[list[bytes]] = []

    def set(self, of: Hashable, entries: Callable[[], Iterable[_TableEntry]], values: list[list[bytes]], default: bool = False) -> Rewrites:
        """The entries as they are now. entries: asked for where `of` is not that of the time before, which stands for their tables, keys and
        actions. values: `P4Info.values` of each. default: they are their tables' default actions."""
        self.values = values
        if of != self._of:
            self._of = of
            self._make(write_request((_entity(self._p4info, *entry, default=default) for entry in entries()), _Update.MODIFY))
        return self

    def _make(self, request: p4runtime_pb2.WriteRequest) -> None:
        self.request = request
        self._parameters = [list(update.entity.table_entry.action.action.params) for update in request.updates]

    def message(self) -> p4runtime_pb2.WriteRequest:
        """`request` with the values of now, not yet addressed. The next `set` and `message` may change it."""
        self._given += 1
        if self._given % self._RENEWED_EVERY == 0:
            self._make(p4runtime_pb2.WriteRequest.FromString(self.request.SerializeToString()))
        for parameters, values in zip(self._parameters, self.values):
            for parameter, value in zip(parameters, values):
                parameter.value = value
        return self.request


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


def digest_rows(digests: p4runtime_pb2.DigestList) -> list[list[int]]:
    """The members of each digest of a struct, as numbers."""
    return [[int.from_bytes(member.bitstring, "big") for member in data.struct.members] for data in digests.data]


def counter_rows(entities: Iterable[p4runtime_pb2.Entity]) -> list[tuple[int, int, int, int]]:
    """Counter's id, index, packets and bytes of each counter's cell that was read."""
    return [(e.counter_id, e.index.index, e.data.packet_count, e.data.byte_count) for e in (entity.counter_entry for entity in entities)]


def _entity(
    p4info: P4Info, table: str, match: _Match, action: str, parameters: Mapping[str, int], default: bool = False
) -> p4runtime_pb2.Entity:
    return p4runtime_pb2.Entity(table_entry=p4info.table_entry(table, match, action, parameters, default=default))


def write_request(entities: Iterable[p4runtime_pb2.Entity], kind: p4runtime_pb2.Update.Type.ValueType) -> p4runtime_pb2.WriteRequest:
    """A Write of entities, not yet addressed; what has no INSERT (default actions, digest configuration is INSERT only once) is mended."""
    request = p4runtime_pb2.WriteRequest()
    for entity in entities:
        only_modify = entity.HasField("table_entry") and entity.table_entry.is_default_action
        request.updates.add(type=_Update.MODIFY if only_modify else kind).entity.CopyFrom(entity)
    return request
