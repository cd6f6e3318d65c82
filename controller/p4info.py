"""Names to ids, and values to P4Runtime's byte strings [P4Runtime sec 6, 8.3]. Pure: no gRPC."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Protocol, TypeVar

from finsy.proto import p4i as p4info_pb2
from finsy.proto import p4r as p4runtime_pb2
from google.protobuf import text_format


def canonical(value: int, width_bits: int) -> bytes:
    """The shortest byte string of an unsigned value [P4Runtime sec 8.3]; ValueError when it needs more than width_bits."""
    bits = value.bit_length()
    if value < 0 or bits > width_bits:
        raise ValueError(f"{value} does not fit {width_bits} bits")
    return value.to_bytes((bits + 7) // 8 or 1, "big")


class MissingName(KeyError):
    """The program has nothing of a name that was asked for."""

    def __str__(self) -> str:
        return str(self.args[0])


_P4Info = TypeVar("_P4Info", bound="P4Info")


class P4Info:
    """A P4Info message with look-ups by full name or by alias."""

    def __init__(self, message: p4info_pb2.P4Info) -> None:
        self.message = message
        self.tables = _by_name(message.tables)
        self.actions = _by_name(message.actions)
        self.counters = _by_name(message.counters)
        self.digests = _by_name(message.digests)
        self.registers = _by_name(message.registers)
        self.packet_headers = _by_name(message.controller_packet_metadata)
        # (id, name, width) of each key, (id, width) of each parameter by name: reading them out of a message again and again costs more than an entry.
        self._keys: dict[str, tuple[int, list[tuple[int, str, int]]]] = {}
        self._parameters: dict[str, tuple[int, dict[str, tuple[int, int]]]] = {}

    @classmethod
    def read(cls: type[_P4Info], path: Path) -> _P4Info:
        """Parse the text format; ValueError names the file and the line at fault."""
        try:
            return cls(_parsed(Path(path).read_text(encoding="utf-8")))
        except text_format.ParseError as error:
            raise ValueError(f"{path}: not a P4Info text: {error}") from error

    def table_entry(
        self,
        table: str,
        match: Mapping[str, int | tuple[int, int]],
        action: str,
        parameters: Mapping[str, int],
        *,
        default: bool = False,
    ) -> p4runtime_pb2.TableEntry:
        """An entry of a table with exact and LPM keys; an LPM key is (value, prefix length)."""
        table_id, fields = self._keys_of(table)
        entry = p4runtime_pb2.TableEntry(table_id=table_id, is_default_action=default)
        for field_id, name, bitwidth in fields:
            if name not in match:
                continue
            given = match[name]
            key = p4runtime_pb2.FieldMatch(field_id=field_id)
            if isinstance(given, tuple):
                value, length = given
                if length == 0:
                    continue
                key.lpm.value = canonical(value, bitwidth)
                key.lpm.prefix_len = length
            else:
                key.exact.value = canonical(given, bitwidth)
            entry.match.append(key)
        self.check_keys(table, match)
        self.set_action(entry.action.action, action, parameters)
        return entry

    def _keys_of(self, table: str) -> tuple[int, list[tuple[int, str, int]]]:
        if table not in self._keys:
            found = _find(self.tables, table, "table")
            self._keys[table] = found.preamble.id, [(f.id, f.name, f.bitwidth) for f in found.match_fields]
        return self._keys[table]

    def check_keys(self, table: str, match: Iterable[str]) -> None:
        """MissingName when the table lacks one of these keys."""
        unknown = set(match) - {name for _, name, _ in self._keys_of(table)[1]}
        if unknown:
            raise MissingName(f"table {table} has no key {', '.join(sorted(unknown))}")

    def set_action(self, message: p4runtime_pb2.Action, action: str, parameters: Mapping[str, int]) -> None:
        """Sets it to that action with these values. A message never frees the memory of a value that it had: where values change again and
        again, change a copy."""
        action_id, wanted = self._wanted(action, parameters)
        if message.action_id != action_id:
            message.Clear()
            message.action_id = action_id
            for param_id, _ in wanted.values():
                message.params.add(param_id=param_id)
        for param, value in zip(message.params, self.values(action, parameters)):
            param.value = value

    def values(self, action: str, parameters: Mapping[str, int]) -> list[bytes]:
        """Of an action's parameters, in the order of its message."""
        _, wanted = self._wanted(action, parameters)
        return [canonical(parameters[name], bits) for name, (_, bits) in wanted.items()]

    def _wanted(self, action: str, parameters: Mapping[str, int]) -> tuple[int, dict[str, tuple[int, int]]]:
        """Id of an action, id and width of each parameter by name; MissingName where others are given."""
        if action not in self._parameters:
            found = _find(self.actions, action, "action")
            self._parameters[action] = found.preamble.id, {p.name: (p.id, p.bitwidth) for p in found.params}
        action_id, wanted = self._parameters[action]
        if parameters.keys() != wanted.keys():
            raise MissingName(f"action {action} takes {list(wanted)}, got {sorted(parameters)}")
        return action_id, wanted

    def table_id(self, name: str) -> int:
        return _find(self.tables, name, "table").preamble.id

    def table_size(self, name: str) -> int:
        """Entries that a table has room for."""
        return _find(self.tables, name, "table").size

    def match_field_id(self, table: str, field: str) -> int:
        for match in _find(self.tables, table, "table").match_fields:
            if match.name == field:
                return match.id
        raise MissingName(f"table {table} has no key {field!r}")

    def packet_field(self, header: str, field: str) -> tuple[int, int]:
        """Id and width in bits of a field of the packet-in or packet-out header."""
        for metadata in _find(self.packet_headers, header, "controller header").metadata:
            if metadata.name == field:
                return metadata.id, metadata.bitwidth
        raise MissingName(f"controller header {header} has no field {field!r}")

    def counter_id(self, name: str) -> int:
        return _find(self.counters, name, "counter").preamble.id

    def register_size(self, name: str) -> int:
        """Cells of a register array. What they hold is the data plane's own."""
        return _find(self.registers, name, "register").size

    def digest_id(self, name: str) -> int:
        return _find(self.digests, name, "digest").preamble.id

    def digest_fields(self, name: str, wanted: Iterable[str] = ()) -> list[str]:
        """Names of the members of a digest's struct, in order; MissingName when one of `wanted` is not among them."""
        spec = _find(self.digests, name, "digest").type_spec
        found = [member.name for member in self.message.type_info.structs[spec.struct.name].members]
        if lacking := [member for member in wanted if member not in found]:
            raise MissingName(f"digest {name} has no member {', '.join(lacking)}; it has {', '.join(found) or 'none'}")
        return found


class _Named(Protocol):
    @property
    def preamble(self) -> p4info_pb2.Preamble: ...


_Item = TypeVar("_Item", bound=_Named)


@lru_cache(maxsize=16)
def _parsed(text: str) -> p4info_pb2.P4Info:
    """Read only: many runs of one process share it."""
    return text_format.Parse(text, p4info_pb2.P4Info())


def _by_name(items: Iterable[_Item]) -> dict[str, _Item]:
    names: dict[str, _Item] = {}
    for item in items:
        names[item.preamble.name] = item
        names.setdefault(item.preamble.alias, item)
    return names


def _find(items: Mapping[str, _Item], name: str, kind: str) -> _Item:
    if name not in items:
        near = difflib.get_close_matches(name, items, 3) or sorted(items)[:5]
        raise MissingName(f"no {kind} {name}; the program has {', '.join(near) or 'none'}")
    return items[name]
