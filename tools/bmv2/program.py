"""The declarations of a BMv2 JSON, by name: a control plane's view of tables, actions and arrays."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class UnknownName(Exception):
    """A name that the program does not have, or that may be several things."""


@dataclass(frozen=True)
class Key:
    name: str
    kind: str  # exact, lpm, ternary, range, optional, valid
    width: int
    target: tuple[str, str]  # header, field; ("", "") for none
    mask: int | None = None  # the bits of the field that the key looks at; None for all


@dataclass(frozen=True)
class Action:
    name: str
    parameters: tuple[tuple[str, int], ...]  # name, width in bits


@dataclass(frozen=True)
class Table:
    name: str
    kind: str  # of the table: exact, lpm, ternary, range
    keys: tuple[Key, ...]
    actions: tuple[Action, ...]
    profile: str | None
    selector: bool
    const_entries: bool
    const_default: bool
    size: int

    @property
    def prioritised(self) -> bool:
        return self.kind in ("ternary", "range")

    def action(self, name: str) -> Action:
        return self.actions[find("action", name, [a.name for a in self.actions])]


@dataclass(frozen=True)
class Array:
    name: str
    size: int
    width: int = 0
    table: str | None = None


class Program:
    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        types = {t["name"]: t for t in document["header_types"]}
        self.headers: dict[str, list[tuple[str, int]]] = {}
        for header in document["headers"]:
            fields = types[header["header_type"]]["fields"]
            # A varbit's width is "*"; its type says how many bits it has at most.
            self.headers[header["name"]] = [
                (f[0], f[1] if isinstance(f[1], int) else types[header["header_type"]].get("max_length", 0) * 8) for f in fields
            ]
        actions = {a["id"]: Action(a["name"], tuple((p["name"], p["bitwidth"]) for p in a["runtime_data"])) for a in document["actions"]}
        self.tables: list[Table] = []
        self.selectors: set[str] = set()
        for pipeline in document["pipelines"]:
            self.selectors |= {p["name"] for p in pipeline.get("action_profiles", []) if p.get("selector")}
            for table in pipeline["tables"]:
                self.tables.append(
                    Table(
                        table["name"],
                        table["match_type"],
                        tuple(self._key(k) for k in table["key"]),
                        tuple(actions[i] for i in table["action_ids"]),
                        table.get("action_profile"),
                        table["type"] == "indirect_ws",
                        bool(table.get("entries")),
                        bool((table.get("default_entry") or {}).get("action_const")),
                        table.get("max_size", 0),
                    )
                )
        self.actions = list(actions.values())
        self.registers = [Array(r["name"], r["size"], r["bitwidth"]) for r in document.get("register_arrays", [])]
        self.counters = [
            Array(c["name"], c.get("size", 0), 0, c.get("binding") if c.get("is_direct") else None)
            for c in document.get("counter_arrays", [])
        ]
        self.meters = [
            Array(m["name"], m.get("size", 0), 0, m.get("binding") if m.get("is_direct") else None)
            for m in document.get("meter_arrays", [])
        ]

    @classmethod
    def load(cls, path: Path) -> Program:
        return cls(json.loads(path.read_text(encoding="utf-8")))

    def _key(self, key: dict[str, Any]) -> Key:
        target = key["target"]
        if isinstance(target, str):  # a header's validity, in older files
            return Key(key.get("name") or target, key["match_type"], 1, (target, "$valid$"))
        header, field = target
        width = 1 if field == "$valid$" else dict(self.headers[header])[field]
        mask = int(key["mask"], 16) if key.get("mask") else None
        return Key(key.get("name") or f"{header}.{field}", key["match_type"], width, (header, field), mask)

    def table(self, name: str) -> Table:
        return self.tables[find("table", name, [t.name for t in self.tables])]

    def register(self, name: str) -> Array:
        return self.registers[find("register", name, [r.name for r in self.registers])]

    def counter(self, name: str) -> Array:
        return self.counters[find("counter", name, [c.name for c in self.counters])]

    def meter(self, name: str) -> Array:
        return self.meters[find("meter", name, [m.name for m in self.meters])]


def find(what: str, wanted: str, names: Iterable[str]) -> int:
    """The position of the one name that equals `wanted`, or else of the only one that ends with it."""
    names = list(names)
    if wanted in names:
        return names.index(wanted)
    for ending in (f".{wanted}", wanted):
        found = [i for i, name in enumerate(names) if name.endswith(ending)]
        if len(found) == 1:
            return found[0]
        if found:
            raise UnknownName(f"{what} {wanted} may be {' or '.join(names[i] for i in found)}")
    raise UnknownName(f"there is no {what} {wanted}; there is {', '.join(names[:12]) or 'none'}")
