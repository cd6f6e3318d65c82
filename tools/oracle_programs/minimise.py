"""The smallest program that still shows a fault: statements, expressions, entries and declarations are taken away one by one."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, get_args

from tools.oracle_programs import syntax as s
from tools.oracle_programs import types as t
from tools.oracle_programs.cases import Case, judged, stf

ROUNDS = 6
_BROKEN = (ArithmeticError, AssertionError, AttributeError, LookupError, StopIteration, TypeError, ValueError)
"""What a tree raises from which too much is gone."""
_SIMPLE = (t.Bit, t.Int, t.Bool, t.Enum, t.New)

_DISPENSABLE = (*get_args(s.Statement), *get_args(s.Expression), s.Entry, s.Table, s.TableAction, s.Procedure, s.State, s.Case, tuple)

Edit = tuple[Any, Any, Any]
"""A list or node, an index or attribute, and what stands there afterwards (_GONE: nothing)."""
_GONE = object()


def minimise(case: Case, fails: Callable[[Case], bool]) -> Case:
    """A smaller case for which `fails` still holds."""
    best = case
    for packet in case.program.packets:
        alone = _judged(case, copy.deepcopy(case.program), [packet])
        if alone is not None and fails(alone):
            best = alone
            break
    for _ in range(ROUNDS):
        size, best = _size(best), _round(best, fails)
        if _size(best) >= size:
            break
    return best


def _judged(case: Case, program: s.Program, packets: list[s.Packet]) -> Case | None:
    try:
        made = judged(case.name, program, packets)
    except _BROKEN:
        return None
    return made if len(made.expected) == len(packets) else None


def _round(case: Case, fails: Callable[[Case], bool]) -> Case:
    at = 0
    while True:
        program = copy.deepcopy(case.program)
        edits = list(_edits(program))
        if at >= len(edits):
            return case
        holder, key, value = edits[at]
        if value is _GONE:
            del holder[key]
        elif isinstance(holder, list):
            holder[key] = value
        else:
            setattr(holder, key, value)
        made = _judged(case, program, program.packets)
        if made is not None and _size(made) < _size(case) and fails(made):
            case = made
        else:
            at += 1


def _size(case: Case) -> float:
    """Of the text; a program that cannot be written is endless."""
    try:
        return len(case.source()) + len(stf(case))
    except _BROKEN:
        return float("inf")


def _edits(node: Any) -> Iterator[Edit]:
    """All single steps, large ones first."""
    if isinstance(node, list):
        for i in range(len(node) - 1, -1, -1):
            if isinstance(node[i], _DISPENSABLE):
                yield node, i, _GONE
            yield from _instead(node, i, node[i])
        for one in node:
            yield from _edits(one)
    elif isinstance(node, tuple):
        for one in node:
            yield from _edits(one)
    elif dataclasses.is_dataclass(node) and not isinstance(node, (s.Match, *_SIMPLE, t.Struct, t.Header, t.Union, t.Stack, t.Number)):
        for f in dataclasses.fields(node):
            value = getattr(node, f.name)
            if f.name in ("packets", "features", "type", "sets", "matches", "metadata", "headers"):
                continue
            if isinstance(value, s.Block) and f.name == "no":
                yield node, f.name, None
            if f.name in ("default", "runtime_default") and value is not None:
                yield node, f.name, None
            yield from _instead(node, f.name, value)
            yield from _edits(value)


def _instead(holder: Any, key: Any, value: Any) -> Iterator[Edit]:
    match value:
        case s.If(yes=yes, no=no):
            for block in (yes, no):
                if block is not None:
                    yield holder, key, block
        case s.Switch(cases=cases) | s.SwitchAction(cases=cases):
            for _, block in cases:
                if block is not None:
                    yield holder, key, block
        case s.For(body=body) | s.ForIn(body=body):
            yield holder, key, body
        case s.Block(body=[only]) if isinstance(holder, list):
            yield holder, key, only
    kind = getattr(value, "type", None)
    if kind is None or not isinstance(kind, _SIMPLE) or isinstance(value, (s.Declare, s.Parameter, s.For, s.ForIn)):
        return
    if not isinstance(value, s.Literal):
        yield holder, key, s.Literal(0, kind)
        yield holder, key, s.Literal(1 if not isinstance(kind, t.Int) else -1, kind)
    for f in dataclasses.fields(value):
        inner = getattr(value, f.name)
        for one in inner if isinstance(inner, list) else [inner]:
            if getattr(one, "type", None) == kind and dataclasses.is_dataclass(one):
                yield holder, key, one
