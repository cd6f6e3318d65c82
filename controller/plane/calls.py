"""What a control plane of one's own asks of a switch, by names of the P4 program. Each call leaves at once; `await` it for the switch's answer."""

from __future__ import annotations

import abc
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

from fairlane.controller.messages import p4r
from fairlane.controller.plane import names
from fairlane.controller.plane.names import Entry, Group, Key, Member, Names, Value
from fairlane.controller.plane.network import Port

T = TypeVar("T")
_Update = p4r.Update


class SwitchRefused(Exception):
    """A switch refuses a call. It is raised where the call is awaited. If nobody awaits the call, it ends the run."""


class CounterValue(NamedTuple):
    """Packets and bytes of a counter's cell."""

    packets: int
    bytes: int


class Call(Generic[T]):
    """A request that is under way to a switch. `await` gives the answer, or raises `SwitchRefused`."""

    def __init__(self, convert: Callable[[Any], T]) -> None:
        """convert: makes the call's result of what the switch has read."""
        self.where = ""
        """The line that made it, once it has left."""
        self.waiter: object | None = None
        """Who awaits it."""
        self._convert = convert
        self._answers: list[T] = []

    def answer(self, read: Any) -> None:
        self._answers = [self._convert(read)]

    def __await__(self) -> Generator[Call[T], None, T]:
        if not self._answers:
            yield self
        return self._answers[0]


class Sends(Protocol):
    """Takes a message on its way."""

    def __call__(self, switch: int, kind: Kind, request: Request, call: Call[Any]) -> None: ...


class _Changes(abc.ABC):
    """Calls that change a switch, by names of its program."""

    def __init__(self, known: Names) -> None:
        self._names = known

    def table(self, name: str) -> Table:
        """By its full name or alias; also of the following. `NotInProgram`: the program has none of that name."""
        self._names.table(name)
        return Table(name, self._names, self._write, self._read)

    def counter(self, name: str) -> Counter:
        found = self._names.counter(name)
        return Counter(found.preamble.id, name, found.size, self._write, self._read)

    def register(self, name: str) -> Register:
        """BMv2 does not let a controller read or write registers; Fairlane's switch does."""
        found, width = self._names.register(name)
        return Register(found.preamble.id, name, found.size, width, self._write, self._read)

    def meter(self, name: str) -> Meter:
        found = self._names.meter(name)
        return Meter(found.preamble.id, name, found.size, self._write, self._read)

    def selector(self, name: str) -> Selector:
        """An action profile or action selector."""
        return Selector(self._names.profile(name).preamble.id, self._names, self._write)

    def multicast_group(self, number: int, ports: Iterable[int]) -> Call[None]:
        """A new multicast group (`mcast_grp`, 1 to 65535): one copy to each of the ports."""
        return self._write(self._names.replicas(number, ports), _Update.INSERT)

    def modify_multicast_group(self, number: int, ports: Iterable[int]) -> Call[None]:
        return self._write(self._names.replicas(number, ports), _Update.MODIFY)

    def delete_multicast_group(self, number: int) -> Call[None]:
        return self._write(self._names.replicas(number, ()), _Update.DELETE)

    def clone_session(self, number: int, ports: Iterable[int]) -> Call[None]:
        """A new session for `clone`: one copy to each of the ports."""
        entity = p4r.Entity()
        entity.packet_replication_engine_entry.clone_session_entry.session_id = number
        entity.packet_replication_engine_entry.clone_session_entry.replicas.extend(names.replicas_to(ports))
        return self._write(entity, _Update.INSERT)

    @abc.abstractmethod
    def _write(self, entity: p4r.Entity, kind: p4r.Update.Type.ValueType) -> Call[None]: ...

    @abc.abstractmethod
    def _read(self, entity: p4r.Entity, convert: Callable[[list[p4r.Entity]], T]) -> Call[T]: ...


class Switch(_Changes):
    """A switch, its ports and what its program has. name: as in the topology. ports: by number. toward: by name of each host, the number of the port on the
    way there (least delay, then fewest hops). started: whether it has all that `on_start` or `on_resume` gave it."""

    def __init__(self, index: int, name: str, ports: Mapping[int, Port], toward: Mapping[str, int], known: Names, send: Sends) -> None:
        super().__init__(known)
        self.name = name
        self.ports = dict(ports)
        self.toward = dict(toward)
        self.started = False
        self._index = index
        self._send = send

    def __repr__(self) -> str:
        return f"Switch({self.name!r})"

    def batch(self) -> Batch:
        """For several changes in one message."""
        return Batch(self._names, self._read, self._sent)

    def rewrites(self, entries: Iterable[Entry], *, default: bool = False) -> Rewrites:
        """For entries that are there, and are written again and again with other values. default: they are their tables' default actions."""
        return Rewrites(entries, default, self._names, self._sent)

    def cells(self, wanted: Mapping[str, Iterable[int]]) -> Cells:
        """For cells of counters, by name, that are read again and again."""
        return Cells(wanted, self._names, lambda cells, call: self._send(self._index, "cells", cells, call))

    def packet_out(self, payload: bytes, **fields: Value) -> Call[None]:
        """A frame for the switch. fields: of the header "packet_out". It has no answer."""
        call = Call(_nothing)
        self._send(self._index, "stream", p4r.StreamMessageRequest(packet=self._names.packet_out(payload, fields)), call)
        return call

    def _sent(self, request: p4r.WriteRequest | Rewritten, call: Call[None]) -> None:
        self._send(self._index, "write", request, call)

    def _write(self, entity: p4r.Entity, kind: p4r.Update.Type.ValueType) -> Call[None]:
        call = Call(_nothing)
        self._sent(p4r.WriteRequest(updates=[p4r.Update(type=kind, entity=entity)]), call)
        return call

    def _read(self, entity: p4r.Entity, convert: Callable[[list[p4r.Entity]], T]) -> Call[T]:
        call = Call(convert)
        self._send(self._index, "read", p4r.ReadRequest(entities=[entity]), call)
        return call


def _nothing(read: object) -> None:
    """The answer to a call that asks for none."""


class Batch(_Changes):
    """Changes of a switch that leave in one message, in their order, with `send`. Reads leave at once."""

    def __init__(self, known: Names, read: _Read, sent: Callable[[p4r.WriteRequest, Call[None]], None]) -> None:
        super().__init__(known)
        self._request = p4r.WriteRequest()
        self._call = Call(_nothing)
        self._sent = sent
        self._reads = read

    def __len__(self) -> int:
        """Changes so far."""
        return len(self._request.updates)

    def send(self) -> Call[None]:
        self._sent(self._request, self._call)
        return self._call

    def _write(self, entity: p4r.Entity, kind: p4r.Update.Type.ValueType) -> Call[None]:
        self._request.updates.add(type=kind).entity.CopyFrom(entity)
        return self._call

    def _read(self, entity: p4r.Entity, convert: Callable[[list[p4r.Entity]], T]) -> Call[T]:
        return self._reads(entity, convert)


class Rewrites:
    """Entries that are written again and again with other values, in one message. It is made once: making it anew was a quarter of a control plane's work."""

    _RENEWED_EVERY = 512
    """Messages. One keeps the memory of each value that it ever had (some 16 bytes)."""

    def __init__(self, entries: Iterable[Entry], default: bool, known: Names, sent: Callable[[Rewritten, Call[None]], None]) -> None:
        self._names = known
        self._sent = sent
        self._actions: list[str] = []
        self._given = 0
        request = p4r.WriteRequest()
        for entry in entries:
            made = known.entry(entry.table, entry.keys, entry.action, entry.values, entry.priority, default)
            request.updates.add(type=_Update.MODIFY).entity.table_entry.CopyFrom(made)
            self._actions.append(str(entry.action))
        self._make(request)

    def _make(self, request: p4r.WriteRequest) -> None:
        self.request = request
        """With some values."""
        self._parameters = [list(update.entity.table_entry.action.action.params) for update in request.updates]

    def write(self, values: Iterable[Mapping[str, Value]]) -> Call[None]:
        """values: of each entry's action, in the entries' order."""
        encoded = [self._names.values(action, given) for action, given in zip(self._actions, values)]
        call = Call(_nothing)
        self._sent(Rewritten(self, encoded), call)
        return call

    def message(self, values: list[list[bytes]]) -> p4r.WriteRequest:
        """`request` with these values, not yet addressed. The next `message` may change it."""
        self._given += 1
        if self._given % self._RENEWED_EVERY == 0:
            self._make(p4r.WriteRequest.FromString(self.request.SerializeToString()))
        for parameters, new in zip(self._parameters, values):
            for parameter, value in zip(parameters, new):
                parameter.value = value
        return self.request


class Rewritten(NamedTuple):
    """`Rewrites` on the way. values: of each entry's parameters, in their order."""

    of: Rewrites
    values: list[list[bytes]]

    def message(self) -> p4r.WriteRequest:
        return self.of.message(self.values)


class Cells:
    """Cells of counters that are read again and again, by one request that is made once."""

    def __init__(self, wanted: Mapping[str, Iterable[int]], known: Names, sent: Callable[[Cells, Call[Any]], None]) -> None:
        self.request = p4r.ReadRequest(entities=[known.cell(name, index) for name, indices in wanted.items() for index in indices])
        self._names = {known.counter(name).preamble.id: name for name in wanted}
        self._sent = sent

    def read(self) -> Call[dict[str, dict[int, CounterValue]]]:
        """By counter and index."""
        call = Call(self._by_name)
        self._sent(self, call)
        return call

    def _by_name(self, rows: Iterable[tuple[int, int, int, int]]) -> dict[str, dict[int, CounterValue]]:
        """rows: as `counter_rows` has them."""
        found: dict[str, dict[int, CounterValue]] = {name: {} for name in self._names.values()}
        for counter, index, packets, size in rows:
            found[self._names[counter]][index] = CounterValue(packets, size)
        return found


Kind: TypeAlias = Literal["write", "read", "cells", "stream", "timer"]
Request: TypeAlias = p4r.WriteRequest | Rewritten | p4r.ReadRequest | Cells | p4r.StreamMessageRequest | int
"""Not yet addressed. Of a timer, when it is due in nanoseconds."""


class _Write(Protocol):
    def __call__(self, entity: p4r.Entity, kind: p4r.Update.Type.ValueType) -> Call[None]: ...


class _Read(Protocol):
    def __call__(self, entity: p4r.Entity, convert: Callable[[list[p4r.Entity]], T]) -> Call[T]: ...


class Table:
    """keys: by name of each of the table's keys, `Key`. An lpm, ternary, range or optional key that is left out matches anything. action: an action's
    name, with its parameters in `values`; or `Member(3)`, `Group(1)` of the table's profile or selector. priority: where the table has ternary, range or optional
    keys, 1 or more, the highest wins; other tables have none. idle_timeout_s: `on_idle_timeout` is called when no packet has matched for so long; for tables with
    `support_timeout = true`."""

    def __init__(self, name: str, known: Names, write: _Write, read: _Read) -> None:
        self.name = name
        self._names = known
        self._write = write
        self._read = read

    def insert(
        self,
        keys: Mapping[str, Key],
        action: str | Member | Group,
        values: Mapping[str, Value] | None = None,
        *,
        priority: int = 0,
        idle_timeout_s: float = 0.0,
    ) -> Call[None]:
        """A new entry."""
        return self._put(_Update.INSERT, self._names.entry(self.name, keys, action, values, priority), idle_timeout_s)

    def modify(
        self,
        keys: Mapping[str, Key],
        action: str | Member | Group,
        values: Mapping[str, Value] | None = None,
        *,
        priority: int = 0,
        idle_timeout_s: float = 0.0,
    ) -> Call[None]:
        """An entry that is there gets another action or values."""
        return self._put(_Update.MODIFY, self._names.entry(self.name, keys, action, values, priority), idle_timeout_s)

    def delete(self, keys: Mapping[str, Key], *, priority: int = 0) -> Call[None]:
        return self._put(_Update.DELETE, self._names.entry(self.name, keys, priority=priority))

    def set_default(self, action: str, values: Mapping[str, Value] | None = None) -> Call[None]:
        """What the table does with packets that match no entry."""
        return self._put(_Update.MODIFY, self._names.entry(self.name, {}, action, values, default=True))

    def set_meter(self, keys: Mapping[str, Key], cir: int, cburst: int, pir: int, pburst: int, *, priority: int = 0) -> Call[None]:
        """The direct meter of an entry that is there; rates and bursts as of `Meter.set`."""
        self._names.direct_meter(self.name)
        entry = p4r.DirectMeterEntry(table_entry=self._names.entry(self.name, keys, priority=priority))
        _set_rates(entry.config, cir, cburst, pir, pburst)
        return self._write(p4r.Entity(direct_meter_entry=entry), _Update.MODIFY)

    def read(self) -> Call[list[Entry]]:
        """All entries, in the switch's order."""
        entry = p4r.TableEntry(table_id=self._names.table(self.name).preamble.id)
        if self._names.counts(self.name):
            entry.counter_data.SetInParent()
        return self._read(p4r.Entity(table_entry=entry), lambda read: [self._names.read_entry(one.table_entry) for one in read])

    def _put(self, kind: p4r.Update.Type.ValueType, entry: p4r.TableEntry, idle_timeout_s: float = 0.0) -> Call[None]:
        entry.idle_timeout_ns = round(idle_timeout_s * 1e9)
        return self._write(p4r.Entity(table_entry=entry), kind)


class _Array:
    def __init__(self, number: int, name: str, size: int, write: _Write, read: _Read) -> None:
        self.name = name
        self.size = size
        """Cells."""
        self._id = number
        self._write = write
        self._read = read

    def _index(self, index: int) -> p4r.Index:
        return names.index_of(index, self.size, self.name)


class Counter(_Array):
    """An indirect counter. Direct counters come with `Table.read`."""

    def read(self, index: int) -> Call[CounterValue]:
        """One cell, 0 to `size` - 1."""
        return self._read(self._entity(index), lambda read: _counted(read[0]))

    def read_all(self) -> Call[list[CounterValue]]:
        """All cells, by index."""
        entity = p4r.Entity(counter_entry=p4r.CounterEntry(counter_id=self._id))
        return self._read(entity, lambda read: [_counted(one) for one in sorted(read, key=lambda one: one.counter_entry.index.index)])

    def write(self, index: int, packets: int = 0, bytes: int = 0) -> Call[None]:
        entity = self._entity(index)
        entity.counter_entry.data.packet_count = packets
        entity.counter_entry.data.byte_count = bytes
        return self._write(entity, _Update.MODIFY)

    def _entity(self, index: int) -> p4r.Entity:
        return p4r.Entity(counter_entry=p4r.CounterEntry(counter_id=self._id, index=self._index(index)))


class Register(_Array):
    """A register array of bit<N>."""

    def __init__(self, number: int, name: str, size: int, width: int, write: _Write, read: _Read) -> None:
        super().__init__(number, name, size, write, read)
        self.width = width
        """Of a cell, in bits."""

    def read(self, index: int) -> Call[int]:
        """One cell, 0 to `size` - 1."""
        entity = p4r.Entity(register_entry=p4r.RegisterEntry(register_id=self._id, index=self._index(index)))
        return self._read(entity, lambda read: int.from_bytes(read[0].register_entry.data.bitstring, "big"))

    def write(self, index: int, value: Value) -> Call[None]:
        cell = names.bits(value, self.width, f"register {self.name}")
        entry = p4r.RegisterEntry(register_id=self._id, index=self._index(index), data=cell)
        return self._write(p4r.Entity(register_entry=entry), _Update.MODIFY)


class Meter(_Array):
    """An indirect meter: two rates, three colours [RFC 2698 sec 3]."""

    def set(self, index: int, cir: int, cburst: int, pir: int, pburst: int) -> Call[None]:
        """cir, pir: committed and peak rate, in bytes or packets per second as the program says. cburst, pburst: their bursts, in bytes or packets."""
        entry = p4r.MeterEntry(meter_id=self._id, index=self._index(index))
        _set_rates(entry.config, cir, cburst, pir, pburst)
        return self._write(p4r.Entity(meter_entry=entry), _Update.MODIFY)


class Selector:
    """Members are actions with values; a group chooses one of its members for each packet. Numbers are the control plane's own, from 1."""

    def __init__(self, number: int, known: Names, write: _Write) -> None:
        self._id = number
        self._names = known
        self._write = write

    def member(self, number: int, action: str, values: Mapping[str, Value] | None = None) -> Call[None]:
        """A new member."""
        return self._member(_Update.INSERT, number, action, values)

    def modify_member(self, number: int, action: str, values: Mapping[str, Value] | None = None) -> Call[None]:
        return self._member(_Update.MODIFY, number, action, values)

    def group(self, number: int, members: Iterable[int], max_size: int = 0) -> Call[None]:
        """A new group of members that are there. max_size: 0 leaves the limit to the program."""
        return self._group(_Update.INSERT, number, members, max_size)

    def modify_group(self, number: int, members: Iterable[int]) -> Call[None]:
        return self._group(_Update.MODIFY, number, members, 0)

    def _member(self, kind: p4r.Update.Type.ValueType, number: int, action: str, values: Mapping[str, Value] | None) -> Call[None]:
        made = p4r.ActionProfileMember(action_profile_id=self._id, member_id=number, action=self._names.action(action, values or {}))
        return self._write(p4r.Entity(action_profile_member=made), kind)

    def _group(self, kind: p4r.Update.Type.ValueType, number: int, members: Iterable[int], max_size: int) -> Call[None]:
        made = p4r.ActionProfileGroup(action_profile_id=self._id, group_id=number, max_size=max_size)
        for member in members:
            made.members.add(member_id=member, weight=1)
        return self._write(p4r.Entity(action_profile_group=made), kind)


def _set_rates(config: p4r.MeterConfig, cir: int, cburst: int, pir: int, pburst: int) -> None:
    config.cir, config.cburst, config.pir, config.pburst = cir, cburst, pir, pburst


def _counted(entity: p4r.Entity) -> CounterValue:
    data = entity.counter_entry.data
    return CounterValue(data.packet_count, data.byte_count)
