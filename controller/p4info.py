"""What a program has, by name, and P4Runtime's byte strings [P4Runtime sec 6, 8.3]. Pure: no gRPC."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Protocol, TypeVar

from google.protobuf import text_format

from fairlane.controller.messages import p4i as p4info_pb2


def canonical(value: int, width_bits: int) -> bytes:
    """The shortest byte string of an unsigned value [P4Runtime sec 8.3]; ValueError when it needs more than width_bits."""
    bits = value.bit_length()
    if value < 0 or bits > width_bits:
        raise ValueError(f"{value} does not fit {width_bits} bits")
    return value.to_bytes((bits + 7) // 8 or 1, "big")


class NotInProgram(ValueError):
    """A name that the program does not have, or a value that does not fit; the message names it, and what the program has."""


class _Named(Protocol):
    @property
    def preamble(self) -> p4info_pb2.Preamble: ...


_Item = TypeVar("_Item", bound=_Named)
_P4Info = TypeVar("_P4Info", bound="P4Info")


class P4Info:
    """A P4Info message with look-ups by full name or by alias. NotInProgram: the program has none of that name."""

    def __init__(self, message: p4info_pb2.P4Info) -> None:
        self.message = message
        self.tables = by_name(message.tables)
        self.actions = by_name(message.actions)
        self.counters = by_name(message.counters)
        self.digests = by_name(message.digests)
        self.registers = by_name(message.registers)
        self.packet_headers = by_name(message.controller_packet_metadata)

    @classmethod
    def read(cls: type[_P4Info], path: Path) -> _P4Info:
        """Parse the text format; ValueError names the file and the line at fault."""
        try:
            return cls(_parsed(Path(path).read_text(encoding="utf-8")))
        except text_format.ParseError as error:
            raise ValueError(f"{path}: not a P4Info text: {error}") from error

    def table(self, name: str) -> p4info_pb2.Table:
        return find(self.tables, name, "table")

    def counter(self, name: str) -> p4info_pb2.Counter:
        return find(self.counters, name, "counter")

    def table_id(self, name: str) -> int:
        return self.table(name).preamble.id

    def counter_id(self, name: str) -> int:
        return self.counter(name).preamble.id


@lru_cache(maxsize=16)
def _parsed(text: str) -> p4info_pb2.P4Info:
    """Read only: many runs of one process share it."""
    return text_format.Parse(text, p4info_pb2.P4Info())


def by_name(items: Iterable[_Item]) -> dict[str, _Item]:
    """By full names and aliases."""
    names: dict[str, _Item] = {}
    for item in items:
        names[item.preamble.name] = item
        names.setdefault(item.preamble.alias, item)
    return names


def find(items: Mapping[str, _Item], name: str, kind: str) -> _Item:
    if name not in items:
        near = difflib.get_close_matches(name, items, 3) or sorted(items)[:16]
        known = dict.fromkeys(items[one].preamble.name for one in near)
        raise NotInProgram(f"no {kind} {name!r}; the program has {', '.join(known) or 'none'}")
    return items[name]
