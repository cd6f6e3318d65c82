"""A lab for each student: numbers of the task drawn from the student's name and a secret of the teacher, so that answers differ and the grader knows.

In lab.toml, what differs and where it stands:

    [[vary]]
    name = "air"
    choices = [5, 4, 6, 8]                                   # the first is the lab's own, without a key
    places = ["README.md: AIR <- {0:g} kb/s", "my_als.py: initial_air_bps: float = {0:g}_000.0"]

A student's copy has its numbers in NN/numbers.json, for checks at home. `fairlane labs grade --secret` takes them from the secret, whatever that file says.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fairlane.errors import Refusal

FILE = "numbers.json"
_LEAST_SECRET = 8


@dataclass(frozen=True)
class Vary:
    """choices: the first is that of a lab without a key. places: "FILE: TEXT", where TEXT holds the number as Python's str.format writes it."""

    name: str
    choices: tuple[float, ...]
    places: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(set(self.choices)) < 2:
            raise ValueError("choices: at least two numbers")
        for place in self.places:
            file, _, text = place.partition(": ")
            if not file or text.format(1.0) == text:
                raise ValueError(f"places: {place!r} is no 'FILE: TEXT with {{0:g}}'")


def secret(file: Path) -> bytes:
    """Refusal: it cannot be read, or is too short to be one."""
    try:
        found = file.read_bytes().strip()
    except OSError as error:
        raise Refusal(f"--secret {file}: cannot be read: {error.strerror}") from error
    if len(found) < _LEAST_SECRET:
        raise Refusal(f"--secret {file}: {len(found)} bytes; write {_LEAST_SECRET} or more: head -c 24 /dev/urandom | base64 > {file}")
    return found


def drawn(lab: str, vary: tuple[Vary, ...], key: bytes, student: str) -> dict[str, float]:
    """A student's numbers for a lab: the same for the same key and name, on every machine."""
    found = {}
    for one in vary:
        digest = hmac.new(key, f"{student.strip().lower()}\0{lab}\0{one.name}".encode(), hashlib.sha256).digest()
        found[one.name] = one.choices[int.from_bytes(digest[:8], "big") % len(one.choices)]
    return found


def written(vary: tuple[Vary, ...], numbers: Mapping[str, float], file: str, text: str) -> str:
    """The text of a file with a student's numbers. ValueError: the lab's own number is not there."""
    for one in vary:
        for place in one.places:
            name, _, form = place.partition(": ")
            if name != file:
                continue
            if form.format(one.choices[0]) not in text:
                raise ValueError(f"lab.toml: vary {one.name!r}: {form.format(one.choices[0])!r} is not in {file}")
            text = text.replace(form.format(one.choices[0]), form.format(numbers.get(one.name, one.choices[0])))
    return text


def own(folder: Path, vary: tuple[Vary, ...]) -> dict[str, float]:
    """The numbers that a student's copy says it has. Refusal: it names others than the lab has."""
    file = folder / FILE
    if not vary or file.is_symlink() or not file.is_file():
        return {}
    try:
        told = json.loads(file.read_text(encoding="utf-8"))
        return {one.name: one.choices[one.choices.index(told[one.name])] for one in vary if one.name in told}
    except (ValueError, TypeError, OSError) as error:
        raise Refusal(f"{file}: are no numbers of this lab: take the file of your copy again") from error
