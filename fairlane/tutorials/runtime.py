"""`sN-runtime.json`: a switch's program and entries, as `p4runtime_lib` of the P4 tutorials reads them. Pure: no gRPC.

Values are numbers (negative ones in two's complement), IPv4, IPv6 or Ethernet addresses, each alone or as the only one of a list:
  exact, optional    VALUE
  lpm                [VALUE, prefix length]
  ternary            [VALUE, mask]
  range              [lowest, highest]
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from pathlib import Path
from typing import Any

from fairlane.controller.messages import p4i, p4r
from fairlane.controller.p4info import P4Info, canonical
from fairlane.inputs import located_json
from fairlane.inputs.located_toml import Document, KeyPath
from fairlane.inputs.schema import nearest

_MAC = re.compile(r"(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}")
_MAX_PRIORITY = 2**31 - 1


@dataclass(frozen=True)
class RuntimeFile:
    """p4info, bmv2_json: as the file writes them, from the exercise's folder."""

    document: Document
    p4info: str
    bmv2_json: str


@dataclass(frozen=True)
class LocatedUpdate:
    """An update, and the key path that it was read from."""

    path: KeyPath
    update: p4r.Update


def read(path: Path) -> RuntimeFile:
    """The head of the file; ConfigError names file, line and key."""
    document = located_json.read(path)
    values = document.values
    target = values.get("target")
    if target != "bmv2":
        raise document.error(
            ("target",), f'expected "bmv2", got {target!r}' if "target" in values else "missing key 'target'; it is \"bmv2\""
        )
    for key in ("p4info", "bmv2_json"):
        if not isinstance(values.get(key), str) or not values[key]:
            raise document.error((key,), f"expected a file's name, got {values[key]!r}" if key in values else f"missing key {key!r}")
    known = ("target", "p4info", "bmv2_json", "table_entries", "multicast_group_entries", "clone_session_entries")
    for key in values:
        if key not in known:
            raise document.error((key,), f"unknown key{nearest(key, known)}")
    return RuntimeFile(document, values["p4info"], values["bmv2_json"])


def updates(runtime: RuntimeFile, info: P4Info) -> list[LocatedUpdate]:
    """What to write, in the file's order: table entries, multicast groups, clone sessions. ConfigError."""
    return list(_Encoder(runtime.document, info).all())


class _Encoder:
    def __init__(self, document: Document, info: P4Info) -> None:
        self._document = document
        self._info = info

    def all(self) -> Iterator[LocatedUpdate]:
        for path, entry in self._items("table_entries"):
            encoded = self._table_entry(path, entry)
            kind = p4r.Update.MODIFY if encoded.is_default_action else p4r.Update.INSERT
            yield LocatedUpdate(path, p4r.Update(type=kind, entity=p4r.Entity(table_entry=encoded)))
        for path, entry in self._items("multicast_group_entries"):
            group = p4r.MulticastGroupEntry(
                multicast_group_id=self._number(path, entry, "multicast_group_id", 1, 65535), replicas=self._replicas(path, entry)
            )
            yield self._insert(path, p4r.PacketReplicationEngineEntry(multicast_group_entry=group))
        for path, entry in self._items("clone_session_entries"):
            cut = self._number(path, entry, "packet_length_bytes", 0, 65535) if "packet_length_bytes" in entry else 0
            session = p4r.CloneSessionEntry(
                session_id=self._number(path, entry, "clone_session_id", 1, 32767),
                replicas=self._replicas(path, entry),
                packet_length_bytes=cut,
            )
            yield self._insert(path, p4r.PacketReplicationEngineEntry(clone_session_entry=session))

    @staticmethod
    def _insert(path: KeyPath, entry: p4r.PacketReplicationEngineEntry) -> LocatedUpdate:
        entity = p4r.Entity(packet_replication_engine_entry=entry)
        return LocatedUpdate(path, p4r.Update(type=p4r.Update.INSERT, entity=entity))

    def _items(self, key: str) -> Iterator[tuple[KeyPath, dict[str, Any]]]:
        items = self._document.values.get(key, [])
        if not isinstance(items, list):
            raise self._document.error((key,), "expected an array")
        for i, item in enumerate(items):
            if not isinstance(item, dict):
                raise self._document.error((key, i), f"expected an object, got {item!r}")
            yield (key, i), item

    def _replicas(self, path: KeyPath, entry: dict[str, Any]) -> list[p4r.Replica]:
        items = entry.get("replicas")
        if not isinstance(items, list):
            raise self._document.error((*path, "replicas"), 'expected an array, as in [{"egress_port": 1, "instance": 1}]')
        replicas = []
        for i, item in enumerate(items):
            here = (*path, "replicas", i)
            if not isinstance(item, dict):
                raise self._document.error(here, f"expected an object, got {item!r}")
            port = self._number(here, item, "egress_port", 0, 511)
            instance = self._number(here, item, "instance", 0, 65535)
            replicas.append(p4r.Replica(port=canonical(port, 9), instance=instance))
        return replicas

    def _table_entry(self, path: KeyPath, entry: dict[str, Any]) -> p4r.TableEntry:
        known = ("table", "match", "action_name", "action_params", "default_action", "priority")
        for key in entry:
            if key not in known:
                raise self._document.error((*path, key), f"unknown key{nearest(key, known)}")
        table = self._named(path, entry, "table", self._info.tables)
        message = p4r.TableEntry(table_id=table.preamble.id)
        is_default = entry.get("default_action", False)
        if not isinstance(is_default, bool):
            raise self._document.error((*path, "default_action"), f"expected true or false, got {is_default!r}")
        match = entry.get("match") or {}
        if not isinstance(match, dict):
            raise self._document.error((*path, "match"), f"expected an object, got {match!r}")
        if is_default and match:
            raise self._document.error((*path, "match"), "the default action has no match")
        message.is_default_action = is_default
        if not is_default:
            self._match(path, match, table, message)
            self._priority(path, entry, table, message)
        action = self._named(path, entry, "action_name", self._info.actions)
        if action.preamble.id not in {ref.id for ref in table.action_refs}:
            names = {a.preamble.id: a.preamble.name for a in self._info.message.actions}
            allowed = ", ".join(names.get(ref.id, "?") for ref in table.action_refs)
            raise self._document.error(
                (*path, "action_name"), f"{action.preamble.name} is not an action of {table.preamble.name}; it has {allowed}"
            )
        message.action.action.action_id = action.preamble.id
        self._parameters(path, entry.get("action_params", {}), action, message.action.action)
        return message

    def _parameters(self, path: KeyPath, given: Any, action: p4i.Action, message: p4r.Action) -> None:
        path = (*path, "action_params")
        given = {} if given is None else given
        if not isinstance(given, dict):
            raise self._document.error(path, f"expected an object, got {given!r}")
        wanted = {param.name: param for param in action.params}
        for name in given:
            if name not in wanted:
                said = nearest(name, wanted) if wanted else "; it takes none"
                raise self._document.error((*path, name), f"{action.preamble.name} has no parameter of that name{said}")
        for name, param in wanted.items():
            if name not in given:
                raise self._document.error(path, f"missing key {name!r}, a parameter of {action.preamble.name}")
            value = self._value((*path, name), given[name], param.bitwidth)
            message.params.add(param_id=param.id, value=canonical(value, param.bitwidth))

    def _match(self, path: KeyPath, given: dict[str, Any], table: p4i.Table, message: p4r.TableEntry) -> None:
        fields = {field.name: field for field in table.match_fields}
        path = (*path, "match")
        for name in given:
            if name not in fields:
                said = nearest(name, fields) if fields else "; it has no key at all"
                raise self._document.error((*path, name), f"{table.preamble.name} has no key field of that name{said}")
        for name, field in fields.items():
            if name in given:
                encoded = self._field((*path, name), given[name], field)
                if encoded is not None:
                    message.match.append(encoded)
            elif field.match_type == p4i.MatchField.EXACT:
                raise self._document.error(path, f"missing key {name!r}: exact fields of {table.preamble.name} cannot be left out")

    def _field(self, path: KeyPath, given: Any, field: p4i.MatchField) -> p4r.FieldMatch | None:
        """None where the value matches everything, which P4Runtime writes by leaving the field out."""
        kinds = p4i.MatchField
        width = field.bitwidth
        encoded = p4r.FieldMatch(field_id=field.id)
        if field.match_type in (kinds.EXACT, kinds.OPTIONAL):
            value = canonical(self._value(path, given, width), width)
            if field.match_type == kinds.EXACT:
                encoded.exact.value = value
            else:
                encoded.optional.value = value
            return encoded
        form = {kinds.LPM: "[value, prefix length]", kinds.TERNARY: "[value, mask]", kinds.RANGE: "[lowest, highest]"}.get(field.match_type)
        if form is None:
            raise self._document.error(path, f"fields of this kind ({field.match_type}) cannot be written in a runtime_json file")
        if not isinstance(given, list) or len(given) != 2:
            raise self._document.error(path, f"expected {form}, got {given!r}")
        first = self._value((*path, 0), given[0], width)
        everything = (1 << width) - 1
        if field.match_type == kinds.LPM:
            length = given[1]
            if not isinstance(length, int) or isinstance(length, bool) or not 0 <= length <= width:
                raise self._document.error((*path, 1), f"{length!r} is not a prefix length from 0 to {width}")
            mask = everything ^ (everything >> length)
        else:
            mask = self._value((*path, 1), given[1], width)
        if field.match_type == kinds.RANGE:
            if first > mask:
                raise self._document.error(path, f"the lowest, {first}, is above the highest, {mask}")
            encoded.range.low, encoded.range.high = canonical(first, width), canonical(mask, width)
            return None if (first, mask) == (0, everything) else encoded
        if first & ~mask:
            what = "prefix" if field.match_type == kinds.LPM else "mask"
            raise self._document.error(
                path, f"the value has bits beyond its {what}, which switches refuse: write {self._shown(given[0], first & mask)}"
            )
        if field.match_type == kinds.LPM:
            encoded.lpm.value, encoded.lpm.prefix_len = canonical(first, width), length
        else:
            encoded.ternary.value, encoded.ternary.mask = canonical(first, width), canonical(mask, width)
        return encoded if mask else None

    def _priority(self, path: KeyPath, entry: dict[str, Any], table: p4i.Table, message: p4r.TableEntry) -> None:
        kinds = p4i.MatchField
        needed = any(f.match_type in (kinds.TERNARY, kinds.RANGE, kinds.OPTIONAL) for f in table.match_fields)
        value = entry.get("priority")
        if needed and not value:
            raise self._document.error(
                (*path, "priority") if "priority" in entry else path,
                f"{table.preamble.name} has ternary, range or optional fields: each entry needs a priority of 1 or more; the highest wins",
            )
        if value is None:
            return
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _MAX_PRIORITY:
            raise self._document.error((*path, "priority"), f"expected a number from 0 to {_MAX_PRIORITY}, got {value!r}")
        if value and not needed:
            raise self._document.error(
                (*path, "priority"), f"{table.preamble.name} has only exact and lpm fields: its entries have no priority"
            )
        message.priority = value

    def _value(self, path: KeyPath, given: Any, width: int) -> int:
        """An unsigned value of `width` bits."""
        if isinstance(given, list) and len(given) == 1:
            given = given[0]
        value = number_of(given)
        if value is None:
            raise self._document.error(path, f"{given!r} is neither a number nor an IPv4, IPv6 or Ethernet address")
        if isinstance(given, str) and (bits := _address_bits(given)) is not None and bits != width:
            raise self._document.error(path, f"{given!r} has {bits} bits, the field or parameter has {width}")
        if not -(1 << (width - 1)) <= value < 1 << width:
            raise self._document.error(path, f"{given} does not fit {width} bits")
        return value & ((1 << width) - 1)

    @staticmethod
    def _shown(given: Any, value: int) -> str:
        """The value in the form that `given` has."""
        if isinstance(given, list):
            given = given[0]
        if isinstance(given, str) and _MAC.fullmatch(given):
            return ":".join(f"{byte:02x}" for byte in value.to_bytes(6, "big"))
        if isinstance(given, str) and _address_bits(given) is not None:
            return str(IPv4Address(value) if "." in given and ":" not in given else IPv6Address(value))
        return str(value)

    def _named(self, path: KeyPath, entry: dict[str, Any], key: str, known: dict[str, Any]) -> Any:
        name = entry.get(key)
        if not isinstance(name, str):
            raise self._document.error((*path, key), f"expected a name, got {name!r}" if key in entry else f"missing key {key!r}")
        if name not in known:
            raise self._document.error((*path, key), f"the program has no {key.partition('_')[0]} {name!r}{nearest(name, known)}")
        return known[name]

    def _number(self, path: KeyPath, entry: dict[str, Any], key: str, low: int, high: int) -> int:
        value = entry.get(key)
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise self._document.error(
                (*path, key), f"expected a number from {low} to {high}, got {value!r}" if key in entry else f"missing key {key!r}"
            )
        return value


def number_of(given: Any) -> int | None:
    """A value as these files write it; None: it is none."""
    if isinstance(given, int) and not isinstance(given, bool):
        return given
    if not isinstance(given, str):
        return None
    if _MAC.fullmatch(given):
        return int(given.replace(":", ""), 16)
    for kind in (IPv4Address, IPv6Address):
        try:
            return int(kind(given))
        except AddressValueError:
            continue
    try:
        return int(given, 0)
    except ValueError:
        return None


def _address_bits(text: str) -> int | None:
    """48, 32 or 128 for an address, None for other text."""
    if _MAC.fullmatch(text):
        return 48
    for kind, bits in ((IPv4Address, 32), (IPv6Address, 128)):
        try:
            kind(text)
        except AddressValueError:
            continue
        return bits
    return None
