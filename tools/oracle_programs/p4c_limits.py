"""Programs that p4c's BMv2 back end refuses, or for which it writes JSON that BMv2 refuses.

Most random programs are among them, and p4c needs a third of a second to refuse one. So a crossing skips those that are easy to recognise.
A program that is skipped in error costs a seed; a program that is not recognised costs that third."""

from __future__ import annotations

from collections.abc import Iterator

from tools.oracle_programs import syntax as s
from tools.oracle_programs import types as t
from tools.oracle_programs.tree import nodes


def refused(program: s.Program) -> str:
    """Why p4c or BMv2 refuses the program; empty when no reason is known."""
    return next(_reasons(program), "")


def _reasons(program: s.Program) -> Iterator[str]:
    if any(isinstance(n, s.Assign) and _in_last(n.target) for n in nodes(program)):
        yield "writes to the last element of a stack"
    if any(isinstance(key.type, t.New) for state in program.states for key in state.keys):
        yield "a new type in a select"
    # p4c follows constants into the keys, where BMv2 takes fields only. With nothing but constants p4c has no select any more.
    start = program.states[0]
    fixed = [key in _constants(start) for key in start.keys]
    if any(fixed) and not all(fixed):
        yield "a constant in a select"
    used = {action.name for table in program.tables for action in table.actions}
    data = [p.type for a in program.actions if a.name in used for p in a.parameters if not p.direction]
    if any(isinstance(kind, t.Bool) for kind in data):
        yield "action data of type bool"
    for table in program.tables:
        given = [entry.data for entry in table.entries if table.how == "const"] + [d[1] for d in [table.default] if d]
        if any(value < 0 for values in given for value in values):
            yield "negative action data in the program"
        signed = [i for i, key in enumerate(table.keys) if t.signed(key.expression.type)]
        if table.how == "const" and any(
            t.from_bits(e.matches[i].value, table.keys[i].expression.type) < 0 for e in table.entries for i in signed
        ):
            yield "a negative number in an entry of the program"


def _constants(state: s.State) -> list[s.Expression]:
    """The variables that hold a constant at the end of a state."""
    known: list[s.Expression] = []
    for statement in state.body:
        touched = [_whole(one) for call in nodes(statement) if isinstance(call, s.Call) for one in call.arguments]
        if isinstance(statement, s.Assign):
            touched.append(_whole(statement.target))
        known = [one for one in known if one not in touched]
        if isinstance(statement, s.Assign) and isinstance(statement.value, s.Literal) and not statement.operator:
            known.append(statement.target)
    return known


def _in_last(e: s.Expression) -> bool:
    while isinstance(e, (s.Member, s.Slice)):
        if isinstance(e, s.Member) and e.name == "last":
            return True
        e = e.base
    return False


def _whole(e: s.Expression) -> s.Expression:
    while isinstance(e, s.Slice):
        e = e.base
    return e
