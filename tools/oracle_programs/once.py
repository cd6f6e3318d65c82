"""Tables that are applied in one place only, since p4c's BMv2 back end refuses others."""

from __future__ import annotations

from dataclasses import replace

from tools.oracle_programs import syntax as s


def once(block: s.Block, used: set[str]) -> s.Block:
    """Without the second application of a table, which p4c's BMv2 back end refuses."""
    body: list[s.Statement] = []
    for one in block.body:
        kept = _once(one, used)
        if kept is not None:
            body.append(kept)
    return s.Block(body)


def _once(one: s.Statement, used: set[str]) -> s.Statement | None:
    match one:
        case s.Apply(table) | s.SwitchAction(table=table):
            if table in used:
                return None
            used.add(table)
            if isinstance(one, s.SwitchAction):
                return s.SwitchAction(table, [(label, once(body, used) if body else None) for label, body in one.cases])
            return one
        case s.If(condition, yes, no):
            if isinstance(condition, s.Hit):
                if condition.table in used:
                    return None
                used.add(condition.table)
            return s.If(condition, once(yes, used), once(no, used) if no else None)
        case s.Switch(value, cases):
            return s.Switch(value, [(labels, once(body, used) if body else None) for labels, body in cases])
        case s.For(body=body) | s.ForIn(body=body):
            return replace(one, body=once(body, used))
        case s.Block():
            return once(one, used)
    return one
