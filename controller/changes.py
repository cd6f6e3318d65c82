"""Scheduled changes at a switch: the rate of a port's link, whether its ports write fair rates, whether a link works, and its routes.

A file of them for the controller on the wall clock (`--changes`), as JSON:

    [{"at_ns": 1700000020000000000, "switch": "s1", "port": 1, "rate_bps": 5000000},
     {"at_ns": 1700000030000000000, "switch": "s1", "als": false},
     {"at_ns": 1700000040000000000, "switch": "s1", "port": 1, "up": false},
     {"at_ns": 1700000040000000000, "switch": "s1", "routes": [{"prefix": "10.0.2.0/24", "port": 3, "src_mac": "...", "dst_mac": "..."}]}]
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairlane.controller.config import ConfigError, Route, read_route
from fairlane.inputs import schema


@dataclass(frozen=True)
class RateChange:
    """The link of a switch's port has another rate from at_ns on: b of the fair rate."""

    at_ns: int
    switch: str
    port: int
    rate_bps: int


@dataclass(frozen=True)
class AlsChange:
    """The ports of a switch write their fair rates from at_ns on, or no longer do."""

    at_ns: int
    switch: str
    als: bool


@dataclass(frozen=True)
class LinkChange:
    """From at_ns on it is known that the link of a switch's port has failed, or works again."""

    at_ns: int
    switch: str
    port: int
    up: bool


@dataclass(frozen=True)
class RoutesChange:
    """Routes of a switch that replace those of their prefixes from at_ns on."""

    at_ns: int
    switch: str
    routes: tuple[Route, ...]


Change = RateChange | AlsChange | LinkChange | RoutesChange


def to_json(changes: Sequence[Change]) -> str:
    return json.dumps([schema.plain(change) for change in changes], indent=1)


def read(path: Path, ports: Mapping[str, Collection[int]]) -> list[Change]:
    """By time; none when there is no such file yet. ports: by switch. ConfigError names the file and the entry at fault."""
    if not path.exists():
        return []
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(raw, list):
            raise ConfigError("expected a list")
        changes = [_change(entry, f"[{i}]", ports) for i, entry in enumerate(raw)]
    except (OSError, json.JSONDecodeError, ConfigError) as error:
        raise ConfigError(f"{path}: {error}") from error
    return sorted(changes, key=lambda change: change.at_ns)


def _change(entry: object, where: str, ports: Mapping[str, Collection[int]]) -> Change:
    if not isinstance(entry, dict):
        raise ConfigError(f"{where}: expected an object")
    if "routes" in entry:
        return _routes_change(entry, where, ports)
    kind: type[AlsChange | LinkChange | RateChange] = AlsChange if "als" in entry else LinkChange if "up" in entry else RateChange
    fields = {f.name: f for f in dataclasses.fields(kind)}
    if set(entry) != set(fields):
        raise ConfigError(f"{where}: expected the keys {', '.join(fields)}, got {', '.join(entry)}")
    for name, field in fields.items():
        expected = {"int": int, "str": str, "bool": bool}[str(field.type)]
        if type(entry[name]) is not expected:
            raise ConfigError(f"{where}.{name}: expected {field.type}, got {entry[name]!r}")
    if entry["switch"] not in ports:
        raise ConfigError(f"{where}.switch: no switch {entry['switch']!r}")
    change = kind(**entry)
    if isinstance(change, LinkChange) and change.port not in ports[change.switch]:
        raise ConfigError(f"{where}.port: switch {change.switch} has no port {change.port}")
    if isinstance(change, RateChange):
        if change.port not in ports[change.switch]:
            raise ConfigError(f"{where}.port: switch {change.switch} has no port {change.port}")
        if change.rate_bps <= 0:
            raise ConfigError(f"{where}.rate_bps: must be positive, got {change.rate_bps}")
    return change


def _routes_change(entry: dict[str, Any], where: str, ports: Mapping[str, Collection[int]]) -> RoutesChange:
    if set(entry) != {"at_ns", "switch", "routes"}:
        raise ConfigError(f"{where}: expected the keys at_ns, switch, routes, got {', '.join(entry)}")
    if type(entry["at_ns"]) is not int:
        raise ConfigError(f"{where}.at_ns: expected int, got {entry['at_ns']!r}")
    if entry["switch"] not in ports:
        raise ConfigError(f"{where}.switch: no switch {entry['switch']!r}")
    if not isinstance(entry["routes"], list):
        raise ConfigError(f"{where}.routes: expected a list")
    routes = tuple(read_route(one, f"{where}.routes[{i}]", ports[entry["switch"]]) for i, one in enumerate(entry["routes"]))
    return RoutesChange(entry["at_ns"], entry["switch"], routes)
