"""The declarations of a program's BMv2 JSON, by the names in commands: full names, or any unambiguous suffix."""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

EXACT, LPM, TERNARY, VALID, RANGE = range(5)
"""BMv2's numbers of match kinds."""
KINDS = {"exact": EXACT, "lpm": LPM, "ternary": TERNARY, "valid": VALID, "range": RANGE, "optional": TERNARY}
KIND_NAMES = ["exact", "lpm", "ternary", "valid", "range"]


@dataclass
class Action:
    name: str
    parameters: list[tuple[str, int]]
    """Name and bits."""

    def __str__(self) -> str:
        return f"{self.name:30} [{_list(f'{name}({bits})' for name, bits in self.parameters)}]"


@dataclass
class Profile:
    name: str
    with_selection: bool
    actions: dict[str, Action] = field(default_factory=dict)
    tables: int = 0

    def __str__(self) -> str:
        return f"{self.name:30} [{self.with_selection}]"


@dataclass
class Table:
    name: str
    match_type: int
    kind: str
    """`simple`, `indirect` or `indirect_ws`."""
    support_timeout: bool
    key: list[tuple[str, int, int]]
    """Name, match kind and bits of each field."""
    actions: dict[str, Action]
    profile: Profile | None

    def __str__(self) -> str:
        key = _list(f"{name}({KIND_NAMES[kind]}, {bits})" for name, kind, bits in self.key)
        return f"{self.name:30} [implementation={self.profile.name if self.profile else None}, mk={key}]"


@dataclass
class Array:
    """Counters, meters or registers."""

    name: str
    size: int | None
    table: str | None = None
    """The table of a direct one."""
    rates: int = 0
    unit: str = ""

    def __str__(self) -> str:
        return f"{self.name:30} [{self.size}{f', {self.unit}' if self.unit else ''}]"


@dataclass
class ValueSet:
    name: str
    bits: int

    def __str__(self) -> str:
        return f"{self.name:30} [compressed bitwidth:{self.bits}]"


Object = TypeVar("Object")


class Named(dict[str, Object]):
    """Objects by full name; complete before one is looked for."""

    def find(self, name: str) -> Object | None:
        """The object with this name, or the only one whose name ends with it."""
        return self._by_suffix.get(name)

    @functools.cached_property
    def _by_suffix(self) -> dict[str, Object]:
        count = Counter(suffix for full in self for suffix in _suffixes(full))
        return {suffix: value for full, value in self.items() for suffix in _suffixes(full) if count[suffix] == 1}


class Program:
    def __init__(self, text: str) -> None:
        content = json.loads(text)
        self.actions: Named[Action] = Named()
        for one in content.get("actions", []):
            self.actions[one["name"]] = Action(one["name"], [(p["name"], p["bitwidth"]) for p in one["runtime_data"]])
        self.profiles: Named[Profile] = Named()
        self.tables: Named[Table] = Named()
        widths = _Widths(content)
        for pipeline in content.get("pipelines", []):
            for one in pipeline.get("action_profiles", []):
                self.profiles[one["name"]] = Profile(one["name"], "selector" in one)
            for one in pipeline["tables"]:
                self.tables[one["name"]] = self._table(one, widths)
        self.counters: Named[Array] = Named()
        for one in content.get("counter_arrays", []):
            self.counters[one["name"]] = Array(one["name"], one.get("size"), _binding(one))
        self.meters: Named[Array] = Named()
        for one in content.get("meter_arrays", []):
            self.meters[one["name"]] = Array(one["name"], one.get("size"), _binding(one), one["rate_count"], one["type"])
        self.registers: Named[Array] = Named()
        for one in content.get("register_arrays", []):
            self.registers[one["name"]] = Array(one["name"], one["size"])
        self.value_sets: Named[ValueSet] = Named()
        for one in content.get("parse_vsets", []):
            self.value_sets[one["name"]] = ValueSet(one["name"], one["compressed_bitwidth"])
        crcs = {"crc16_custom": 16, "crc32_custom": 32}
        self.crcs = {one["name"]: crcs[one["algo"]] for one in content.get("calculations", []) if one["algo"] in crcs}

    def _table(self, one: dict[str, Any], widths: _Widths) -> Table:
        actions = {name: self.actions[name] for name in one["actions"]}
        profile = None
        if one["type"] != "simple":
            profile = self.profiles[one["action_profile"]]
            profile.actions.update(actions)
            profile.tables += 1
        key = [(*widths.field(part), KINDS[part["match_type"]]) for part in one["key"]]
        fields = [(name, kind, bits) for name, bits, kind in key]
        return Table(one["name"], KINDS[one["match_type"]], one["type"], one["support_timeout"], fields, actions, profile)

    def action(self, of: Table | Profile, name: str) -> Action | None:
        """The action that a table or profile knows by this name or suffix."""
        action = self.actions.find(name)
        return action if action and action.name in of.actions else None


class _Widths:
    """Names and bits of a key's fields."""

    def __init__(self, content: dict[str, Any]) -> None:
        types = {one["name"]: {f[0]: f[1] for f in one["fields"]} for one in content.get("header_types", [])}
        self._headers = {one["name"]: types[one["header_type"]] for one in content.get("headers", [])}

    def field(self, part: dict[str, Any]) -> tuple[str, int]:
        target = part["target"]
        if part["match_type"] == "valid":
            return f"{target}_valid", 1
        header, name = target
        if name == "$valid$":
            return f"{header}_valid", 1
        return f"{header}.{name}", self._headers[header][name]


def _binding(one: dict[str, Any]) -> str | None:
    return one["binding"] if one.get("is_direct") else None


def _suffixes(name: str) -> set[str]:
    parts = name.split(".")
    return {".".join(parts[at:]) for at in range(len(parts))}


def _list(items: Iterable[str]) -> str:
    return ",\t".join(items)
