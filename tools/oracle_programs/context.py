"""What a place in a random program may name and do."""

from __future__ import annotations

from dataclasses import dataclass, field

from tools.oracle_programs import syntax as s
from tools.oracle_programs import types as t


@dataclass
class Context:
    """What a place in the program may name and do."""

    kind: str
    roots: list[tuple[s.Expression, bool]]
    """Variables, and whether they may be written."""
    functions: list[s.Procedure] = field(default_factory=list)
    actions: list[s.Procedure] = field(default_factory=list)
    controls: list[s.Procedure] = field(default_factory=list)
    tables: list[s.Table] = field(default_factory=list)
    valid: list[s.Expression] = field(default_factory=list)
    """Headers that are valid here, beside hdr.a."""
    result: t.Type | None = None
    loop: bool = False
    may_leave: bool = True
    hot: list[s.Expression] = field(default_factory=list)
    """What the statement at hand has passed by reference: others of its expressions shall meet it."""
