"""Known faults of the compiler and switch beside ours.

Each fault has a rewriting of the program. By the specification the program means the same afterwards, but it no longer has what the other
gets wrong. If the other then agrees with the oracle, the fault explains the difference; otherwise the difference has another cause."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass

from tools.oracle_programs import syntax as s
from tools.oracle_programs import types as t
from tools.oracle_programs.cases import Case, judged
from tools.oracle_programs.tree import change, nodes


@dataclass(frozen=True)
class Fault:
    name: str
    whose: str
    why: str
    evidence: str
    without: Callable[[s.Program], None]
    """Rewrites the program in place."""


def _plain_assignments(program: s.Program) -> None:
    """`A op= f(A)` as `A = A op f(A)`."""

    def plain(node: object) -> object:
        match node:
            case s.Assign(target, value, operator) if operator and any(isinstance(n, s.Call) for n in nodes(value)):
                return s.Assign(target, s.Binary(operator, copy.deepcopy(target), value, target.type))
        return node

    change(program, plain)


def _ranges_with_borders(program: s.Program) -> None:
    """`_` of a range as `0 .. 2^N - 1`."""
    for table in program.tables:
        for entry in table.entries if table.how == "const" else []:
            for i, (key, match) in enumerate(zip(table.keys, entry.matches)):
                if match.kind == "range" and match.any and t.width(key.expression.type) > 31:
                    entry.matches[i] = s.Match("range", 0, (1 << t.width(key.expression.type)) - 1)


def _unsigned_action_data(program: s.Program) -> None:
    """Action data of type `int<N>` as `bit<N>`, and a cast at each use."""
    signed = {p.name: p.type for action in program.actions for p in action.parameters if not p.direction and t.signed(p.type)}
    parameters = {action.name: action.parameters for action in program.actions}

    def cast(node: object) -> object:
        match node:
            case s.Var(name) if name in signed:
                return _cast(s.Var(name, t.Bit(t.width(node.type))), node.type)
            case s.Call(name, arguments) if name in parameters:
                for i, parameter in enumerate(parameters[name]):
                    if parameter.name in signed:
                        arguments[i] = _cast(arguments[i], t.Bit(t.width(parameter.type)))
        return node

    change(program, cast)
    for table in program.tables:
        for name, data in [table.default or ("", []), table.runtime_default or ("", []), *((e.action, e.data) for e in table.entries)]:
            given = [p for p in parameters.get(name, []) if not p.direction]
            data[:] = [t.to_bits(v, p.type) if p.name in signed else v for v, p in zip(data, given)]
    for ps in parameters.values():
        for parameter in ps:
            if parameter.name in signed:
                parameter.type = t.Bit(t.width(parameter.type))


def _cast(e: s.Expression, kind: t.Type) -> s.Expression:
    """From or to a new type by way of its base."""
    for new in (e.type, kind):
        if isinstance(new, t.New) and e.type != new.base:
            e = s.Cast(e, new.base)
    return s.Cast(e, kind)


FAULTS = (
    Fault(
        "compound assignment with a call",
        "p4c",
        "`A op= f(A)` reads A after the call; section 12.1 takes the old value of A, as `A = A op f(A)` does in p4c, too",
        "frontends/p4/frontend.cpp runs RemoveOpAssign after SideEffectOrdering, which has moved the call before the statement by then",
        _plain_assignments,
    ),
    Fault(
        "wide range with `_`",
        "p4c",
        "in an entry of the program, `_` matches only part of a range key of 32 bits and more",
        "backends/bmv2/common/control.h calculates the end of the range as `(1 << keyWidth) - 1` in 32 bits",
        _ranges_with_borders,
    ),
    Fault(
        "signed action data",
        "p4c",
        "action data of type `int<N>` is not extended by its sign: a cast to more bits, `>>` and comparisons take it for unsigned",
        "the JSON uses the data, which have no sign in BMv2, without `two_comp_mod` to N bits",
        _unsigned_action_data,
    ),
)


def explained(case: Case, passes: Callable[[Case], bool]) -> tuple[str, ...]:
    """The names of the faults that explain a difference; none when they do not. passes: whether a case comes out as the oracle expects."""
    found = []
    for fault in FAULTS:
        one = without(case, [fault])
        if one is not None:
            if passes(one):
                return (fault.name,)
            found.append(fault)
    together = without(case, found) if len(found) > 1 else None
    return tuple(fault.name for fault in found) if together is not None and passes(together) else ()


def without(case: Case, faults: list[Fault]) -> Case | None:
    """The case without what meets the faults; None if nothing does."""
    program = copy.deepcopy(case.program)
    for fault in faults:
        fault.without(program)
    if program == case.program:
        return None
    made = judged(case.name, program, list(case.program.packets))
    if made.expected != case.expected:
        raise AssertionError(f"{case.name}: a program without {[fault.name for fault in faults]} means something else")
    return made
