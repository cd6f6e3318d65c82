"""Source addresses are believed only where their hosts' packets come in (docs/threats.md). The controller fills the table from network and addresses."""

from __future__ import annotations

from dataclasses import dataclass

from fairlane.schemes.base import Parameters, Scheme


@dataclass(frozen=True)
class Sources(Parameters):
    """It has none."""


SCHEME = Scheme(
    "sources",
    "sources",
    Sources,
    controls={"entry": "Sources sources"},
    everywhere=True,
    asked_by="source_guard",
    macro_name="SOURCE_GUARD",
    order=31,
)
