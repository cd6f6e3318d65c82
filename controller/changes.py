"""Scheduled changes at a switch: the rate of a port's link, and whether its ports write fair rates.

A file of them for the controller on the wall clock (`--changes`), as JSON:

    [{"at_ns": 1700000020000000000, "switch": "s1", "port": 1, "rate_bps": 5000000},
     {"at_ns": 1700000030000000000, "switch": "s1", "als": false}]
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fairlane.controller.config import ConfigError


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


Change = RateChange | AlsChange


def to_json(changes: Sequence[Change]) -> str:
    return json.dumps([dataclasses.asdict(change) for change in changes], indent=1)


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
    kind: type[Change] = AlsChange if "als" in entry else RateChange
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
    if isinstance(change, RateChange):
        if change.port not in ports[change.switch]:
            raise ConfigError(f"{where}.port: switch {change.switch} has no port {change.port}")
        if change.rate_bps <= 0:
            raise ConfigError(f"{where}.rate_bps: must be positive, got {change.rate_bps}")
    return change
