"""Counts, and the misses by cause."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from fairlane.inputs.located_toml import tomllib

KNOWN = Path(__file__).with_name("known.toml")


@dataclass(frozen=True)
class Miss:
    program: str
    cause: str


@dataclass
class Count:
    """How many of `total` came out as expected; `notes` are further counts to print."""

    kind: str
    what: str
    total: int = 0
    good: int = 0
    misses: list[Miss] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, program: str, cause: str | None) -> None:
        self.total += 1
        if cause is None:
            self.good += 1
        else:
            self.misses.append(Miss(program, cause))


@dataclass(frozen=True)
class Known:
    """Divergences filed by cause: kind -> program -> cause."""

    causes: dict[str, dict[str, str]]

    @classmethod
    def load(cls, path: Path = KNOWN) -> Known:
        causes: dict[str, dict[str, str]] = defaultdict(dict)
        for entry in tomllib.loads(path.read_text(encoding="utf-8")).get("divergence", []):
            for kind in entry["kinds"]:
                for program in entry["programs"]:
                    causes[kind][program] = entry["cause"]
        return cls(dict(causes))

    def of(self, kind: str) -> dict[str, str]:
        return self.causes.get(kind, {})


def show(count: Count, known: Known, verbose: bool = False) -> tuple[str, bool]:
    """The text about one kind, and whether everything is as filed: no miss that is not, no filed one that has come right."""
    share = 100.0 * count.good / count.total if count.total else 0.0
    lines = [f"{count.kind}: {count.good} of {count.total} {count.what} ({share:.1f} %)"]
    lines += [f"  {note}" for note in count.notes]
    filed = known.of(count.kind)
    by_cause: dict[str, list[str]] = defaultdict(list)
    for miss in count.misses:
        if miss.program in filed:
            text = f"known: {filed[miss.program]}"
            by_cause[f"{text} [{miss.cause}]" if verbose else text].append(miss.program)
        else:
            by_cause[f"NEW: {miss.cause if verbose else general(miss.cause)}"].append(miss.program)
    for cause, programs in sorted(by_cause.items(), key=lambda item: (item[0].startswith("known"), -len(item[1]), item[0])):
        lines.append(f"  {len(programs):3} {cause}")
        lines += [f"        {name}" for name in sorted(programs)]
    missed = {m.program for m in count.misses}
    right = sorted(name for name in filed if name not in missed)
    if right:
        lines.append("  filed in known.toml, but good now (or not counted any more); take them out:")
        lines += [f"        {name}" for name in right]
    return "\n".join(lines), not right and missed <= filed.keys()


def general(cause: str) -> str:
    """A message without the names and numbers of one program, so that equal causes meet."""
    return re.sub(r"\b\d+\b", "N", re.sub(r"`[^`]*`|'[^']*'|\"[^\"]*\"", "`…`", cause))[:160]
