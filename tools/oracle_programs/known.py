"""Known faults of the compiler and switch beside ours.

Each fault has a rewriting of the program. By the specification the program means the same afterwards, but it no longer has what the other
gets wrong. If the other then agrees with the oracle, the fault explains the difference; otherwise the difference has another cause."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
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


def _read_before_extracts(program: s.Program) -> None:
    """Reads the metadata that the parser writes before each `extract`, in a `verify` that always holds."""
    meta = s.Var("meta", program.metadata)
    written: list[s.Expression] = []
    for node in nodes([state.body for state in program.states]):
        if isinstance(node, s.Assign) and _root(node.target) == meta and node.target not in written:
            written.append(node.target)
    reads = []
    for place in written:
        one = s.Literal(t.from_bits(1, place.type), place.type)
        # p4c takes away `place == place`.
        equal, other = (s.Binary(operator, copy.deepcopy(place), one, t.BOOL) for operator in ("==", "!="))
        reads.append(s.Verify(s.Binary("||", equal, other, t.BOOL), "NoError"))
    for state in program.states:
        for i in reversed(range(len(state.body))):
            if isinstance(state.body[i], s.Extract):
                state.body[i:i] = copy.deepcopy(reads)


def _root(e: s.Expression) -> s.Expression:
    while isinstance(e, (s.Member, s.Slice, s.Index)):
        e = e.base
    return e


def _lists_by_variables(program: s.Program) -> None:
    """`h = { h.f, ... }` by way of a variable."""

    def by_variable(node: object) -> object:
        match node:
            case s.Assign(target, s.Fields(values, kind) as value) if isinstance(kind, t.Header) and target in list(nodes(values)):
                return s.Block([s.Declare("aside", kind, value), s.Assign(target, s.Var("aside", kind))])
        return node

    change(program, by_variable)


def _exits_after_copies(program: s.Program) -> None:
    """`exit` in a callee that is called with a slice as a `return`, and an `exit` after the call, which is told by one more argument."""
    left = s.Var("left", t.BOOL)
    called: dict[str, int] = {}
    """By the name in a call: the place of the argument."""
    directions: dict[str, list[str]] = {}

    def back(node: object) -> object:
        return s.Block([s.Assign(left, s.Literal(True, t.BOOL)), s.Return(None)]) if isinstance(node, s.Exit) else node

    for procedures, suffix in ((program.controls, ".apply"), (program.actions, "")):
        for p in list(procedures):
            if any(isinstance(node, s.Exit) for node in nodes(p.body)):
                at = sum(bool(parameter.direction) for parameter in p.parameters)
                parameters = [*p.parameters[:at], s.Parameter("left", t.BOOL, "out"), *p.parameters[at:]]
                body = [s.Assign(left, s.Literal(False, t.BOOL)), *change(copy.deepcopy(p.body), back).body]
                procedures.insert(procedures.index(p) + 1, s.Procedure(p.kind, f"{p.name}_back", parameters, s.Block(body)))
                called[p.name + suffix] = at
                directions[p.name + suffix] = [parameter.direction for parameter in p.parameters]

    def after(node: object) -> object:
        match node:
            case s.Invoke(s.Call(name, arguments)) if name in called and any(isinstance(one, s.Slice) for one in arguments):
                control, dot, apply = name.partition(".")
                before, outs = [], []
                given = list(arguments)
                for i, one in enumerate(given[: called[name]]):
                    if isinstance(one, s.Slice) and isinstance(one.base, (s.Var, s.Member)):
                        given[i] = s.Var(f"part{i}", one.type)
                        before.append(s.Declare(f"part{i}", one.type, one))
                        outs += [_into(one, given[i])] if directions[name][i] != "in" else []
                given.insert(called[name], left)
                call = s.Call(f"{control}_back{dot}{apply}", given)
                return s.Block(
                    [
                        *before,
                        s.Declare("left", t.BOOL, s.Literal(False, t.BOOL)),
                        s.Invoke(call),
                        *outs,
                        s.If(left, s.Block([s.Exit()]), None),
                    ]
                )
        return node

    change(program, after)
    used = {call.name.partition(".")[0] for call in nodes(program) if isinstance(call, s.Call)}
    for procedures in (program.controls, program.actions):
        procedures[:] = [p for p in procedures if not p.name.endswith("_back") or p.name in used]


def _into(part: s.Slice, value: s.Expression) -> s.Assign:
    """`part = value` as an assignment of the whole: p4c refuses most slices of signed numbers on the left."""
    whole = t.Bit(t.width(part.base.type))
    others = ((1 << whole.width) - 1) ^ (((1 << t.width(part.type)) - 1) << part.low)
    rest = s.Binary("&", _cast(copy.deepcopy(part.base), whole), s.Literal(others, whole), whole)
    new = s.Binary("<<", s.Cast(value, whole), s.Literal(part.low, t.NUMBER), whole)
    return s.Assign(copy.deepcopy(part.base), _cast(s.Binary("|", rest, new, whole), part.base.type))


FAULTS = (
    Fault(
        "compound assignment with a call",
        "p4c",
        "`A op= f(A)` reads A after the call; section 12.1 (draft after 1.2.5) takes the old value of A, as `A = A op f(A)` does in p4c, too",
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
    Fault(
        "write before a failing extract",
        "p4c",
        "when an `extract` fails, metadata that a state has written before, and that a later state writes, too, is as if it had not been written",
        "frontends/p4/simplifyDefUse.cpp removes the first write; p4lang/p4c#2155 calls that a fault where `reject` is written out",
        _read_before_extracts,
    ),
    Fault(
        "list that reads its own header",
        "p4c",
        "`h = { h.f, ... }` makes h invalid; section 8.17 makes it valid",
        "midend/copyStructures.cpp fills a temporary header that is never valid, and copies it with its validity",
        _lists_by_variables,
    ),
    Fault(
        "exit past a slice",
        "p4c",
        "an `exit` in a callee loses the copy-out into a slice; section 12.5 keeps it",
        "frontends/p4/sideEffects.cpp copies a slice back after the call, where an `exit` does not come; p4lang/p4c#2382 has another case",
        _exits_after_copies,
    ),
)


def explained(case: Case, passes: Callable[[Case], bool]) -> tuple[str, ...]:
    """The names of the faults that explain a difference, as few as it takes; none when they do not explain it. passes: whether a case comes
    out as the oracle expects."""

    def enough(faults: Sequence[Fault]) -> bool:
        rewritten = without(case, faults)
        return rewritten is not None and passes(rewritten)

    for fault in FAULTS:
        if enough([fault]):
            return (fault.name,)
    needed = [fault for fault in FAULTS if without(case, [fault]) is not None]
    if len(needed) < 2 or not enough(needed):
        return ()
    for fault in FAULTS:
        rest = [one for one in needed if one is not fault]
        if len(rest) < len(needed) and enough(rest):
            needed = rest
    return tuple(fault.name for fault in needed)


def without(case: Case, faults: Sequence[Fault]) -> Case | None:
    """The case without what meets the faults; None if nothing does, or if the oracle sees that it then means something else."""
    program = copy.deepcopy(case.program)
    for fault in faults:
        fault.without(program)
    made = judged(case.name, program, list(case.program.packets))
    # Where arguments overlap, the copies come in another order.
    return made if program != case.program and made.expected == case.expected else None
