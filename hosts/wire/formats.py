"""The description of our headers (`formats.toml`, read by the caller) as values, checked. Codecs, documents, scapy layers and the
Wireshark dissector are made from it or tested against it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Flag:
    """A bit of a field."""

    bit: int
    """0 = least significant."""
    name: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Field:
    """An unsigned integer, most significant bit first."""

    name: str
    bits: int
    meaning: str
    offset_bits: int
    """From the format's begin."""
    unit: str | None = None
    """Of one step: ns, us, bit/s, or a fraction such as 1e-6."""
    value: int | None = None
    """The only one it may have."""
    optional: bool = False
    """A packet may end before it."""
    flags: tuple[Flag, ...] | None = None
    """Named bits, when it is a set of them."""


@dataclass(frozen=True, slots=True)
class Format:
    """A header."""

    name: str
    title: str
    place: str
    summary: str
    fields: tuple[Field, ...]

    @property
    def bytes(self) -> int:
        """With all optional fields."""
        return sum(field.bits for field in self.fields) // 8

    @property
    def least_bytes(self) -> int:
        """Without them."""
        return sum(field.bits for field in self.fields if not field.optional) // 8


def formats_of(document: Mapping[str, Any]) -> dict[str, Format]:
    """By name. Raises `ValueError` naming format and field of what the description's own rules forbid."""
    return {name: _format(name, table) for name, table in document.items()}


def _format(name: str, table: Mapping[str, Any]) -> Format:
    _only(name, table, {"title", "place", "summary", "fields"}, set())
    fields: list[Field] = []
    offset = 0
    for entry in table["fields"]:
        where = f"{name}.{entry.get('name', len(fields))}"
        _only(where, entry, {"name", "bits", "meaning"}, {"unit", "value", "optional", "flags"})
        if not 1 <= entry["bits"] <= 64:
            raise ValueError(f"{where}: bits = {entry['bits']}, must be 1 to 64")
        if any(entry["name"] == field.name for field in fields):
            raise ValueError(f"{where}: named twice")
        if "value" in entry and not 0 <= entry["value"] < 1 << entry["bits"]:
            raise ValueError(f"{where}: value = {entry['value']} does not fit {entry['bits']} bits")
        if fields and fields[-1].optional and not entry.get("optional", False):
            raise ValueError(f"{where}: follows an optional field, so it must be optional, too")
        if entry.get("optional", False) and offset % 8:
            raise ValueError(f"{where}: optional, but does not start at a byte")
        flags = None
        if "flags" in entry:
            flags = tuple(Flag(flag["bit"], flag["name"], flag["meaning"]) for flag in entry["flags"])
            if any(not 0 <= flag.bit < entry["bits"] for flag in flags):
                raise ValueError(f"{where}: a flag lies outside of its {entry['bits']} bits")
        fields.append(
            Field(
                name=entry["name"],
                bits=entry["bits"],
                meaning=entry["meaning"],
                offset_bits=offset,
                unit=entry.get("unit"),
                value=entry.get("value"),
                optional=entry.get("optional", False),
                flags=flags,
            )
        )
        offset += entry["bits"]
    if offset % 8:
        raise ValueError(f"{name}: {offset} bits are not whole bytes")
    return Format(name, table["title"], table["place"], table["summary"], tuple(fields))


def _only(where: str, table: Mapping[str, Any], needed: set[str], allowed: set[str]) -> None:
    missing, strange = needed - table.keys(), table.keys() - needed - allowed
    if missing or strange:
        raise ValueError(f"{where}: missing {sorted(missing)}, unknown {sorted(strange)}")
