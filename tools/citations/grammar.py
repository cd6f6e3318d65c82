"""The form of citations, defined once.

    citation = "[" source " " place { ", " place } "]"
    place    = kind " " item { ", " item } { " step " step { ", " step } }
    kind     = "sec" | "eq" | "fig" | "table"
    item     = number [ " to " number ]
    number   = digits and letters with dots between them: 4.1.2.6, A.2 (an appendix), IV.B
    step     = the label of a numbered step, rule or note within the section before it: 4, 2.3, C, a

    [RFC 8298 sec 4.1.2.6]    [RFC 9332 sec A.2]    [RFC 8698 eq 11 to 14]    [SSVP sec IV.B, eq 20, 21]
    [RFC 6675 sec 4, 5]       [ALS sec 3.1 to 3.3]  [RFC 6298 sec 2 step 2.3] [RFC 8867 table 1]

A source is "RFC" and a number, or the name that a file of sources/ gives. A document that has no numbers is cited by its name alone.
A citation stands on one line. Between two citations that follow each other is a comma or a word, as Markdown takes `[A] [B]` for a link.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

KINDS = {"sec": "section", "eq": "equation", "fig": "figure", "table": "table"}
_NUMBER = r"(?:[0-9]+|[IVX]+|[A-Z])(?:\.(?:[0-9]+|[A-Z]))*(?![0-9A-Za-z])"
_ITEM = rf"{_NUMBER}(?: to {_NUMBER})?"
_LABEL = r"(?:[0-9]{1,2}[a-z]?|[A-Za-z]|R[0-9])(?:\.[0-9A-Za-z]{1,2})?(?![0-9A-Za-z])"
_STEPS = rf" step {_LABEL}(?: to {_LABEL})?(?:, {_LABEL}(?: to {_LABEL})?)*"
_PLACE = rf"(?:{'|'.join(KINDS)}) {_ITEM}(?:, (?!(?:{'|'.join(KINDS)}) ){_ITEM})*(?:{_STEPS})?"
_PLACES = re.compile(rf"{_PLACE}(?:, {_PLACE})*")
_ONE = re.compile(rf"({'|'.join(KINDS)}) (.+?)(?: step (.+?))?(?=$|, (?:{'|'.join(KINDS)}) )")


@dataclass(frozen=True)
class Place:
    """One number of one kind; `steps` are labels within a section, "" in a range's ends."""

    kind: str
    first: str
    last: str  # that of a range, otherwise `first`
    steps: tuple[str, ...] = ()

    def __str__(self) -> str:
        number = self.first if self.first == self.last else f"{self.first} to {self.last}"
        return f"{self.kind} {number}" + (f" step {', '.join(self.steps)}" if self.steps else "")


@dataclass(frozen=True)
class Citation:
    """A citation in a text. start, end: its brackets' offsets."""

    source: str
    places: tuple[Place, ...]
    start: int
    end: int


def places(text: str) -> tuple[Place, ...] | None:
    """The places of what stands behind the source; None where it is not in the form."""
    if _PLACES.fullmatch(text) is None:
        return None
    found = []
    for kind, numbers, steps in _ONE.findall(text):
        items = [item.partition(" to ") for item in numbers.split(", ")]
        labels = tuple(steps.split(", ")) if steps else ()
        for number, (first, _, last) in enumerate(items):
            found.append(Place(kind, first, last or first, labels if number == len(items) - 1 else ()))
    return tuple(found)


def opening(names: frozenset[str]) -> re.Pattern[str]:
    """Brackets that begin with a source of these names, or with an RFC, and with a word for a place: a citation, in the form or not."""
    words = r"sec|eq|fig|table|step|app|§|[Ss]ections?|[Ee]quations?|[Ff]igures?|[Tt]ables?|[Aa]ppendi(?:x|ces)|eqs|secs|figs|[0-9]+\.[0-9]"
    known = "|".join(re.escape(name) for name in sorted(names, key=lambda name: (-len(name), name)))
    return re.compile(rf"\[(RFC ?[0-9]+|{known}),? (?=(?:{words})(?![a-z]))([^\[\]\n]*)\]")


def citations(text: str, names: frozenset[str]) -> Iterator[tuple[re.Match[str], Citation | None]]:
    """Each bracket that is meant as a citation; None beside one that is not in the form."""
    for found in opening(names).finditer(text):
        there = places(found[2]) if re.fullmatch(r"RFC [0-9]+", found[1]) or found[1] in names else None
        if "," in found[0][len(found[1]) : len(found[1]) + 2]:
            there = None
        yield found, Citation(found[1], there, found.start(), found.end()) if there else None
