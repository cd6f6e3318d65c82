"""The committed lists of what each cited source has: sources/NAME.toml.

A list has a name and a title, and by the words of the form (grammar.py): `sec`, `fig`, `table` (number = title), `eq` (numbers), `step` (a section's labels).
`read` says what the list was made from. `requirements` are those of an RFC that has a page in docs/clauses/ (clauses.py).
`python -m tools.citations regenerate` writes the lists of RFCs from their texts; the others are written by hand.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from fairlane.inputs.located_toml import tomllib
from tools.citations.grammar import KINDS, Citation, Place
from tools.citations.rfc import Contents

FOLDER = Path(__file__).parent / "sources"
WRITTEN = "# Written by `python -m tools.citations regenerate`."


@dataclass(frozen=True)
class Source:
    """A source's list."""

    name: str
    title: str
    numbers: dict[str, dict[str, str]]  # by kind: number and title, in the source's order
    step: dict[str, list[str]]
    requirements: dict[str, str] = field(default_factory=dict)

    @cached_property
    def _order(self) -> dict[str, dict[str, int]]:
        return {kind: {number: at for at, number in enumerate(numbers)} for kind, numbers in self.numbers.items()}

    def fault(self, place: Place) -> str | None:
        """What is wrong with a place of this source, and what is near; None if it is there."""
        order, word = self._order[place.kind], KINDS[place.kind]
        for number in dict.fromkeys((place.first, place.last)):
            if number not in order:
                return f"{self.name} has no {word} {number}; {self._near(place.kind, number)}"
        if order[place.last] < order[place.first]:
            return f"{place}: {place.last} comes before {place.first}"
        if place.steps and place.kind != "sec":
            return f"{place}: a step belongs to a section"
        for step in place.steps:
            for label in step.split(" to "):
                have = self.step.get(place.last, [])
                if label not in have:
                    return f"{self.name} has no step {label} in section {place.last}; steps there: {', '.join(have) or 'none'}"
        return None

    def _near(self, kind: str, number: str) -> str:
        """Numbers beside a wrong one: its parent's children, or all of a kind with few."""
        have = list(self.numbers[kind])
        if not have:
            return f"it has no {KINDS[kind]}s"
        parent = number.rpartition(".")[0]
        near = [one for one in have if one.rpartition(".")[0] == parent] or [one for one in have if "." not in one]
        if kind != "sec" or len(near) > 12:
            return f"it has {near[0]} to {near[-1]}"
        return "near: " + "; ".join(f"{one} {self.numbers[kind][one]}".rstrip() for one in near)


def _read(path: Path) -> Source:
    data: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    unknown = set(data) - {"name", "title", "read", "step", "requirements", *KINDS}
    if unknown:
        raise ValueError(f"{path}: unknown key {min(unknown)}; there are name, title, read, {', '.join(KINDS)}, step, requirements")
    numbers = {kind: data.get(kind, {}) for kind in KINDS}
    numbers["eq"] = dict.fromkeys(data.get("eq", "").split(), "")
    step = {section: labels.split() for section, labels in data.get("step", {}).items()}
    return Source(data["name"], data["title"], numbers, step, data.get("requirements", {}))


def load(folder: Path = FOLDER) -> dict[str, Source]:
    """All lists, by the source's name."""
    read = [_read(path) for path in sorted(folder.glob("*.toml"))]
    return {source.name: source for source in read}


def fault(citation: Citation, known: dict[str, Source]) -> str | None:
    """What is wrong with a citation; None if each of its places is there."""
    source = known.get(citation.source)
    if source is None:
        return f"no list of {citation.source} in tools/citations/sources/; `python -m tools.citations regenerate --texts DIR` writes an RFC's from its text"
    return next((wrong for place in citation.places if (wrong := source.fault(place)) is not None), None)


def written(name: str, found: Contents, read: str) -> str:
    """The file of an RFC's list."""
    text = [WRITTEN, f"name = {_string(name)}", f"title = {_string(found.title)}", f"read = {_string(read)}"]
    if found.eq:
        text.append(f"eq = {_string(' '.join(found.eq))}")
    tables = {
        "sec": found.sec,
        "fig": found.fig,
        "table": found.table,
        "step": {section: " ".join(labels) for section, labels in found.step.items()},
    }
    for kind, entries in (tables | {"requirements": found.requirements}).items():
        if entries:
            text += ["", f"[{kind}]", *(f"{_string(number)} = {_string(title)}" for number, title in entries.items())]
    return "\n".join(text) + "\n"


def _string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def is_written(path: Path) -> bool:
    """Whether `regenerate` writes this file, in contrast to a hand."""
    return path.read_text(encoding="utf-8").startswith(WRITTEN)


def file_of(name: str) -> Path:
    """The file of an RFC's list."""
    return FOLDER / (re.sub(r"[^a-z0-9]", "", name.lower()) + ".toml")
