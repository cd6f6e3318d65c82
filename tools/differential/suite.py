"""The programs of suite.toml."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairlane.inputs.located_toml import tomllib

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Case:
    """A program and how it is compared; suite.toml describes the fields."""

    name: str
    source: str = ""
    setup: tuple[str, ...] = ()
    samples: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    small: tuple[str, ...] = ()
    order: str = "port"
    batch: int = 1024
    ignored: tuple[str, ...] = field(default=())

    @property
    def program(self) -> Path:
        return ROOT / (self.source or f"tests/p4/{self.name}/{self.name}.p4")

    @property
    def setups(self) -> list[Path]:
        return [ROOT / s for s in self.setup] or [self.program.with_suffix(".stf")]

    @property
    def all_samples(self) -> list[Path]:
        return [*self.setups, *(ROOT / s for s in self.samples)]


def load() -> list[Case]:
    document = tomllib.loads(Path(__file__).with_name("suite.toml").read_text(encoding="utf-8"))
    return [Case(**_with_tuples(entry)) for entry in document["program"]]


def _with_tuples(entry: dict[str, Any]) -> dict[str, Any]:
    return {k: tuple(v) if isinstance(v, list) else v for k, v in entry.items()}
