"""A program's names and values for a control plane of one's own: P4Runtime entities from Python's values, and back. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import AddressValueError, IPv4Address, IPv6Address, ip_network
from typing import NamedTuple, TypeAlias

from fairlane.controller.messages import p4d, p4i, p4r
from fairlane.controller.p4info import NotInProgram, P4Info, by_name, canonical, find

Value: TypeAlias = int | str
"""A number, or an address as text: "10.0.1.1", "fe80::1", "02:00:00:00:00:01"."""
Key: TypeAlias = Value | tuple[Value, Value]
"""Of a table's key: a value (exact, optional), (value, prefix length) or "10.0.1.0/24" (lpm), (value, mask) (ternary), (lowest, highest) (range)."""
_MAC = re.compile(r"(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}")
_KINDS = p4i.MatchField
_RANKED = (_KINDS.TERNARY, _KINDS.RANGE, _KINDS.OPTIONAL)


@dataclass(frozen=True)
class Member:
    """A member of an action profile or selector, as the action of a table's entry."""

    id: int


@dataclass(frozen=True)
class Group:
    """A group of a selector's members, as the action of a table's entry."""

    id: int


@dataclass(frozen=True)
class Entry:
    """A table's entry. keys: as they are given, in numbers; without those that match anything. packets, bytes: of its direct counter; None without."""

    table: str
    keys: Mapping[str, int | tuple[int, int]]
    action: str | Member | Group | None
    values: Mapping[str, int] = field(default_factory=dict)
    priority: int = 0
    packets: int | None = None
    bytes: int | None = None


class _Param(NamedTuple):
    """Of an action."""

    id: int
    name: str
    bits: int


class Names(P4Info):
    """Of a program, by full names or aliases."""

    def __init__(self, message: p4i.P4Info) -> None:
        super().__init__(message)
        self.meters = by_name(message.meters)
        self.profiles = by_name(message.action_profiles)
        self._table_of = {table.preamble.id: table for table in message.tables}
        self._action_of = {action.preamble.id: action for action in message.actions}
        self._digest_of = {digest.preamble.id: digest for digest in message.digests}
        self._counted = {counter.direct_table_id for counter in message.direct_counters}
        self._metered = {meter.direct_table_id for meter in message.direct_meters}
        self.times_out = any(table.idle_timeout_behavior == p4i.Table.NOTIFY_CONTROL for table in message.tables)
        """Whether some table has entries with idle timeouts."""
        self._params: dict[str, list[_Param]] = {}

    def register(self, name: str) -> tuple[p4i.Register, int]:
        """With the width of a cell in bits."""
        found = find(self.registers, name, "register")
        bits = found.type_spec.bitstring
        if not found.type_spec.HasField("bitstring") or not bits.HasField("bit"):
            raise NotInProgram(f"register {name}: only registers of bit<N> can be read and written")
        return found, bits.bit.bitwidth

    def meter(self, name: str) -> p4i.Meter:
        return find(self.meters, name, "meter")

    def profile(self, name: str) -> p4i.ActionProfile:
        return find(self.profiles, name, "action profile or selector")

    def entry(
        self,
        table: str,
        keys: Mapping[str, Key],
        action: str | Member | Group | None = None,
        values: Mapping[str, Value] | None = None,
        priority: int = 0,
        default: bool = False,
    ) -> p4r.TableEntry:
        """action: None for an entry that is to be deleted."""
        spec = self.table(table)
        made = p4r.TableEntry(table_id=spec.preamble.id, is_default_action=default)
        if not default:
            made.match.extend(self._match(spec, keys))
            ranked = any(key.match_type in _RANKED for key in spec.match_fields)
            if priority and not ranked:
                raise NotInProgram(f"table {table}: its keys are exact or lpm, so that its entries have no priority")
            made.priority = (priority or 1) if ranked else 0
        if isinstance(action, Member):
            made.action.action_profile_member_id = action.id
        elif isinstance(action, Group):
            made.action.action_profile_group_id = action.id
        elif action is not None:
            found = self.action(action, values or {})
            if found.action_id not in {ref.id for ref in spec.action_refs}:
                known = ", ".join(self._action_of[ref.id].preamble.name for ref in spec.action_refs if ref.id in self._action_of)
                raise NotInProgram(f"table {table} has no action {action}; it has {known}")
            made.action.action.CopyFrom(found)
        return made

    def action(self, name: str, values: Mapping[str, Value]) -> p4r.Action:
        made = p4r.Action(action_id=find(self.actions, name, "action").preamble.id)
        for param, value in zip(self._params_of(name), self.values(name, values)):
            made.params.add(param_id=param.id, value=value)
        return made

    def values(self, action: str, values: Mapping[str, Value]) -> list[bytes]:
        """Of an action's parameters, in the order of its message."""
        wanted = self._params_of(action)
        if len(values) != len(wanted) or any(param.name not in values for param in wanted):
            known = [param.name for param in wanted]
            if unknown := [given for given in values if given not in known]:
                raise NotInProgram(f"action {action} has no parameter {unknown[0]!r}; it has {', '.join(known) or 'none'}")
            lacking = next(name for name in known if name not in values)
            raise NotInProgram(f"action {action}: its parameter {lacking!r} gets no value")
        return [_encoded(values[param.name], param.bits, f"action {action}, parameter {param.name}") for param in wanted]

    def _params_of(self, action: str) -> list[_Param]:
        """Reading them out of a message again and again costs more than an entry."""
        if action not in self._params:
            self._params[action] = [_Param(one.id, one.name, one.bitwidth) for one in find(self.actions, action, "action").params]
        return self._params[action]

    def _match(self, table: p4i.Table, keys: Mapping[str, Key]) -> Iterable[p4r.FieldMatch]:
        name = table.preamble.name
        known = [key.name for key in table.match_fields]
        if unknown := [given for given in keys if given not in known]:
            raise NotInProgram(f"table {name} has no key {unknown[0]!r}; it has {', '.join(known) or 'none'}")
        for key in table.match_fields:
            if key.name in keys:
                made = p4r.FieldMatch(field_id=key.id)
                if _set_match(made, key, keys[key.name], f"table {name}, key {key.name}"):
                    yield made
            elif key.match_type == _KINDS.EXACT:
                raise NotInProgram(f"table {name}: its key {key.name!r} is missing")

    def counts(self, table: str) -> bool:
        """Whether the table has a direct counter."""
        return self.table(table).preamble.id in self._counted

    def direct_meter(self, table: str) -> None:
        """NotInProgram: the table has no direct meter."""
        if self.table(table).preamble.id not in self._metered:
            raise NotInProgram(f"table {table} has no direct meter")

    def read_entry(self, entry: p4r.TableEntry) -> Entry:
        """What a switch has said about an entry."""
        spec = self._table_of[entry.table_id]
        names = {key.id: key.name for key in spec.match_fields}
        keys = {names[match.field_id]: _read_match(match) for match in entry.match}
        counted = entry.HasField("counter_data")
        packets, size = (entry.counter_data.packet_count, entry.counter_data.byte_count) if counted else (None, None)
        action: str | Member | Group | None = None
        values: dict[str, int] = {}
        kind = entry.action.WhichOneof("type")
        if kind == "action":
            found = self._action_of[entry.action.action.action_id]
            params = {param.id: param.name for param in found.params}
            action = found.preamble.name
            values = {params[p.param_id]: int.from_bytes(p.value, "big") for p in entry.action.action.params}
        elif kind == "action_profile_member_id":
            action = Member(entry.action.action_profile_member_id)
        elif kind == "action_profile_group_id":
            action = Group(entry.action.action_profile_group_id)
        return Entry(spec.preamble.name, keys, action, values, entry.priority, packets, size)

    def cell(self, counter: str, index: int) -> p4r.Entity:
        """One of a counter's."""
        found = self.counter(counter)
        entry = p4r.CounterEntry(counter_id=found.preamble.id, index=index_of(index, found.size, counter))
        return p4r.Entity(counter_entry=entry)

    def replicas(self, group: int, ports: Iterable[int]) -> p4r.Entity:
        """A multicast group."""
        entity = p4r.Entity()
        entry = entity.packet_replication_engine_entry.multicast_group_entry
        entry.multicast_group_id = group
        entry.replicas.extend(replicas_to(ports))
        return entity

    def digest_config(self, digest: p4i.Digest) -> p4r.Entity:
        """A list of the digest's messages leaves the switch when it is full or 10 ms old."""
        entry = p4r.DigestEntry(digest_id=digest.preamble.id)
        entry.config.max_timeout_ns = 10_000_000
        entry.config.max_list_size = 256
        entry.config.ack_timeout_ns = 100_000_000
        return p4r.Entity(digest_entry=entry)

    def digest_members(self, digest_id: int) -> tuple[str, tuple[str, ...]]:
        """A digest's name, and those of its struct's members; a single value is called "value"."""
        spec = self._digest_of[digest_id]
        if not spec.type_spec.HasField("struct"):
            return spec.preamble.name, ("value",)
        return spec.preamble.name, tuple(member.name for member in self.message.type_info.structs[spec.type_spec.struct.name].members)

    def check_digest(self, name: str, wanted: Iterable[str]) -> None:
        """NotInProgram: there is no such digest, or it lacks one of these members."""
        _, members = self.digest_members(find(self.digests, name, "digest").preamble.id)
        if lacking := [member for member in wanted if member not in members]:
            raise NotInProgram(f"digest {name} has no member {', '.join(lacking)}; it has {', '.join(members) or 'none'}")

    def check_packet_field(self, header: str, field: str) -> None:
        """NotInProgram: the header "packet_in" or "packet_out" lacks a field."""
        known = [one.name for one in find(self.packet_headers, header, "controller header").metadata]
        if field not in known:
            raise NotInProgram(f"controller header {header} has no field {field!r}; it has {', '.join(known) or 'none'}")

    def read_packet(self, packet: p4r.PacketIn) -> dict[str, int]:
        """The fields of the header "packet_in"."""
        header = self.packet_headers.get("packet_in")
        names = {} if header is None else {field.id: field.name for field in header.metadata}
        return {names[field.metadata_id]: int.from_bytes(field.value, "big") for field in packet.metadata}

    def packet_out(self, payload: bytes, fields: Mapping[str, Value]) -> p4r.PacketOut:
        """Fields of the header "packet_out" that are not given are 0."""
        header = self.packet_headers.get("packet_out")
        if header is None:
            raise NotInProgram('the program has no header for packet-out: @controller_header("packet_out")')
        known = {field.name: field for field in header.metadata}
        if unknown := [given for given in fields if given not in known]:
            raise NotInProgram(f"the header packet_out has no field {unknown[0]!r}; it has {', '.join(known) or 'none'}")
        made = p4r.PacketOut(payload=payload)
        for name, one in known.items():
            made.metadata.add(metadata_id=one.id, value=_encoded(fields.get(name, 0), one.bitwidth, f"packet_out.{name}"))
        return made


def bits(value: Value, width: int, what: str) -> p4d.P4Data:
    """A register's cell."""
    return p4d.P4Data(bitstring=_encoded(value, width, what))


def index_of(index: int, size: int, what: str) -> p4r.Index:
    """Of a cell of an array."""
    if not 0 <= index < size:
        raise NotInProgram(f"{what} has {size} cells: no cell {index}")
    return p4r.Index(index=index)


def replicas_to(ports: Iterable[int]) -> list[p4r.Replica]:
    """One copy to each port, as every P4Runtime server takes it: the field for a port's bytes is newer."""
    return [p4r.Replica(egress_port=_number(port, 9, "port"), instance=1) for port in ports]


def digest_rows(digests: p4r.DigestList) -> list[list[int]]:
    """The members of each message, as numbers."""
    return [_numbers(data) for data in digests.data]


def counter_rows(entities: Iterable[p4r.Entity]) -> list[tuple[int, int, int, int]]:
    """Counter's id, index, packets and bytes of each counter's cell that was read."""
    return [(e.counter_id, e.index.index, e.data.packet_count, e.data.byte_count) for e in (entity.counter_entry for entity in entities)]


def _number(given: Value, width: int, what: str) -> int:
    """ValueError's message begins with `what`."""
    value, bits = given, width
    if isinstance(given, str):
        if _MAC.fullmatch(given):
            value, bits = int(given.replace(":", ""), 16), 48
        else:
            try:
                value, bits = (int(IPv6Address(given)), 128) if ":" in given else (int(IPv4Address(given)), 32)
            except AddressValueError:
                raise NotInProgram(f"{what}: {given!r} is neither a number nor an IPv4, IPv6 or Ethernet address") from None
    if not isinstance(value, int):
        raise NotInProgram(f"{what}: {given!r} is neither a number nor an address")
    if bits != width or not 0 <= value < 1 << width:
        raise NotInProgram(f"{what}: {given} does not fit in {width} bits")
    return value


def _encoded(given: Value, width: int, what: str) -> bytes:
    return canonical(_number(given, width, what), width)


def _set_match(made: p4r.FieldMatch, key: p4i.MatchField, given: Key, what: str) -> bool:
    """False where the key matches anything: it is left out."""
    width, kind = key.bitwidth, key.match_type
    if kind in (_KINDS.EXACT, _KINDS.OPTIONAL):
        if isinstance(given, tuple):
            raise NotInProgram(f"{what}: {given!r} is not a single value")
        value = _encoded(given, width, what)
        if kind == _KINDS.EXACT:
            made.exact.value = value
        else:
            made.optional.value = value
        return True
    if kind == _KINDS.LPM and isinstance(given, str) and "/" in given:
        try:
            network = ip_network(given)
        except ValueError as error:
            raise NotInProgram(f"{what}: {error}") from None
        given = str(network.network_address), network.prefixlen
    if not isinstance(given, tuple) or len(given) != 2:
        form = {_KINDS.LPM: "(value, prefix length)", _KINDS.TERNARY: "(value, mask)", _KINDS.RANGE: "(lowest, highest)"}
        raise NotInProgram(f"{what}: write {form.get(kind, 'a pair')}, not {given!r}")
    first = _number(given[0], width, what)
    if kind == _KINDS.LPM:
        length = given[1]
        if not isinstance(length, int) or not 0 <= length <= width:
            raise NotInProgram(f"{what}: {length!r} is not a prefix length of 0 to {width}")
        made.lpm.value, made.lpm.prefix_len = canonical(first >> width - length << width - length, width), length
        return length > 0
    second = _number(given[1], width, what)
    if kind == _KINDS.TERNARY:
        made.ternary.value, made.ternary.mask = canonical(first & second, width), canonical(second, width)
        return second > 0
    if first > second:
        raise NotInProgram(f"{what}: the lowest, {first}, is above the highest, {second}")
    made.range.low, made.range.high = canonical(first, width), canonical(second, width)
    return (first, second) != (0, (1 << width) - 1)


def _read_match(match: p4r.FieldMatch) -> int | tuple[int, int]:
    def number(value: bytes) -> int:
        return int.from_bytes(value, "big")

    if match.HasField("lpm"):
        return number(match.lpm.value), match.lpm.prefix_len
    if match.HasField("ternary"):
        return number(match.ternary.value), number(match.ternary.mask)
    if match.HasField("range"):
        return number(match.range.low), number(match.range.high)
    return number(match.exact.value if match.HasField("exact") else match.optional.value)


def _numbers(data: p4d.P4Data) -> list[int]:
    if data.HasField("struct"):
        return [int.from_bytes(member.bitstring, "big") for member in data.struct.members]
    return [int.from_bytes(data.bitstring, "big")]
