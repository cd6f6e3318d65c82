"""The effect of a generated program on a packet, by the text of the P4_16 specification (1.2.5).

It walks the tree: big integers, copy-in and copy-out, everything left to right. Where the specification leaves a value open it raises
`Undefined`, even where the value would not matter in the end; such a packet tests nothing."""

from __future__ import annotations

import copy
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tools.oracle_programs import syntax as s
from tools.oracle_programs import types as t

DROP_PORT = 511
STEPS = 20_000
"""A packet that takes more is left out."""


class Undefined(Exception):
    """The specification leaves the behaviour open."""


class _Exit(Exception):
    pass


class _Return(Exception):
    def __init__(self, value: Any) -> None:
        self.value = value


class _Break(Exception):
    pass


class _Continue(Exception):
    pass


class _ParserStops(Exception):
    def __init__(self, error: str) -> None:
        self.error = error


class _Unset:
    """The value of what nothing has written."""

    def __copy__(self) -> _Unset:
        return self

    def __deepcopy__(self, _: object) -> _Unset:
        return self


UNSET = _Unset()


@dataclass
class StructValue:
    fields: dict[str, Any]


@dataclass
class HeaderValue:
    valid: bool
    fields: dict[str, Any]
    siblings: list[HeaderValue] = field(default_factory=list, repr=False)
    """The other members of its union."""


@dataclass
class UnionValue:
    fields: dict[str, HeaderValue]


@dataclass
class StackValue:
    items: list[Any]
    next: int = 0


def unset(kind: t.Type) -> Any:
    """A variable without a value: headers are invalid (8.22), the rest is open."""
    match kind:
        case t.Struct(fields=fields):
            return StructValue({n: unset(f) for n, f in fields})
        case t.Header(fields=fields):
            return HeaderValue(False, {n: UNSET for n, _ in fields})
        case t.Union(fields=fields):
            members = {n: unset(f) for n, f in fields}
            for one in members.values():
                one.siblings = [other for other in members.values() if other is not one]
            return UnionValue(members)
        case t.Stack(element, size):
            return StackValue([unset(element) for _ in range(size)])
    return UNSET


def assign(target: Any, value: Any) -> None:
    """Copies a compound value into another of its type (11.1, 8.19)."""
    match target, value:
        case StructValue(), StructValue():
            for name, old in target.fields.items():
                if isinstance(old, (StructValue, HeaderValue, UnionValue, StackValue)):
                    assign(old, value.fields[name])
                else:
                    target.fields[name] = value.fields[name]
        case HeaderValue(), HeaderValue():
            if target.siblings:
                set_validity(target, value.valid)
            restore(target, value)
        case UnionValue(), UnionValue():
            for name, member in target.fields.items():
                restore(member, value.fields[name])
        case StackValue(), StackValue():
            for one, other in zip(target.items, value.items):
                assign(one, other)
            target.next = value.next
        case _:
            raise TypeError((target, value))


def restore(target: HeaderValue, value: HeaderValue) -> None:
    """A header's state, in place: l-values that a call has saved still mean it."""
    target.valid = value.valid
    target.fields.update(value.fields if value.valid else dict.fromkeys(target.fields, UNSET))


def forget(header: HeaderValue) -> None:
    header.fields.update(dict.fromkeys(header.fields, UNSET))


def copied(value: Any) -> Any:
    """A value of its own: a header outside of the union that it comes from."""
    if isinstance(value, HeaderValue):
        return HeaderValue(value.valid, dict(value.fields))
    return copy.deepcopy(value)


def set_validity(header: HeaderValue, valid: bool) -> None:
    if valid:
        if not header.valid:
            forget(header)
        for sibling in header.siblings:
            sibling.valid = False
            forget(sibling)
    else:
        # The text lets one read that the other members become invalid, too.
        if any(sibling.valid for sibling in header.siblings):
            raise Undefined("a member of a union becomes invalid while another is valid")
        forget(header)
    header.valid = valid


@dataclass
class Place:
    """An l-value: a variable or field that holds a number, whole or in part."""

    holder: dict[str, Any]
    name: str
    type: t.Type
    header: HeaderValue | None
    high: int = -1
    low: int = 0

    def raw(self) -> Any:
        if self.header is not None and not self.header.valid:
            raise Undefined("a field of an invalid header is read")
        value = self.holder[self.name]
        if self.high < 0 or value is UNSET:
            return value
        return (t.to_bits(value, self.type) >> self.low) & ((1 << (self.high - self.low + 1)) - 1)

    def write(self, value: Any) -> None:
        if self.header is not None and not self.header.valid:
            return
        if self.high >= 0:
            old = self.holder[self.name]
            if old is UNSET or value is UNSET:
                self.holder[self.name] = UNSET
                return
            mask = ((1 << (self.high - self.low + 1)) - 1) << self.low
            value = t.from_bits((t.to_bits(old, self.type) & ~mask) | ((value << self.low) & mask), self.type)
        self.holder[self.name] = value


class Scope:
    def __init__(self, parent: Scope | None) -> None:
        self.names: dict[str, Any] = {}
        self.parent = parent

    def holder(self, name: str) -> dict[str, Any]:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names
            scope = scope.parent
        raise KeyError(name)


_COMPOUND = (StructValue, HeaderValue, UnionValue, StackValue)


class Oracle:
    """A program with its entries; `run` takes a packet."""

    def __init__(self, program: s.Program) -> None:
        self.program = program
        self.tables = {table.name: table for table in program.tables}
        self.procedures = {p.name: p for p in [*program.functions, *program.controls, *program.actions]}
        self.procedures |= {f"{p.name}.apply": p for p in program.controls}
        self.states = {state.name: state for state in program.states}
        self.constants = Scope(None)
        self.steps = 0
        self.bits = 0
        self.data = b""
        self.port = 0
        self.error = "NoError"
        self.hits = 0
        self.given: Counter[tuple[str, str]] = Counter()
        """Action data that packets met: how it came, and its type."""
        self.control = self.constants
        for name, _, value in program.constants:
            self.constants.names[name] = self.value(value, self.constants)

    def run(self, packet: s.Packet) -> s.Packet | None:
        """The packet that leaves; None when it is dropped."""
        self.steps, self.bits, self.data, self.error = 0, 0, packet.data, "NoError"
        self.port = 0
        pipeline = Scope(self.constants)
        pipeline.names = {"hdr": unset(self.program.headers), "meta": unset(self.program.metadata)}
        try:
            self.parse(pipeline)
        except _ParserStops as stopped:
            # v1model goes on with what was extracted.
            self.error = stopped.error
        self.control = Scope(pipeline)
        try:
            for local in self.program.locals:
                self.execute(local, self.control)
            self.execute(self.program.ingress, self.control)
        except (_Exit, _Return):
            pass
        if self.port == DROP_PORT:
            return None
        out, self.port = self.port, 0
        self.control = Scope(pipeline)
        try:
            self.execute(self.program.egress, self.control)
        except (_Exit, _Return):
            pass
        if self.port == DROP_PORT:
            return None
        return s.Packet(out, self.deparse(pipeline))

    # Parser

    def parse(self, scope: Scope) -> None:
        name = "start"
        while name not in ("accept", "reject"):
            self.step()
            state = self.states[name]
            inner = Scope(scope)
            for statement in state.body:
                self.execute(statement, inner)
            name = self.next_state(state, inner)
        if name == "reject":
            raise Undefined("transition reject names no error")

    def next_state(self, state: s.State, scope: Scope) -> str:
        keys = [self.value(key, scope) for key in state.keys]
        for case in state.cases:
            if case.sets is None or all(self.in_set(value, one) for value, one in zip(keys, case.sets)):
                return case.state
        raise _ParserStops("NoMatch")

    @staticmethod
    def in_set(value: int, one: tuple[str, int, int]) -> bool:
        kind, low, high = one
        if kind == "any":
            return True
        if kind == "value":
            return value == low
        if kind == "mask":
            return (value & high) == (low & high)
        return low <= value <= high

    def take(self, count: int, advance: bool) -> int:
        if self.bits + count > len(self.data) * 8:
            raise _ParserStops("PacketTooShort")
        rest = len(self.data) * 8 - self.bits - count
        number = (int.from_bytes(self.data, "big") >> rest) & ((1 << count) - 1)
        if advance:
            self.bits += count
        return number

    def extract(self, target: s.Expression, scope: Scope) -> None:
        header = self.compound(target, scope)
        stack = None
        at: s.Expression = target
        while isinstance(at, s.Member):
            if at.name == "next":
                stack = self.compound(at.base, scope)
            at = at.base
        if isinstance(header, StackValue):
            stack = header
            header = self.next_of(stack)
        kind = target.type.element if isinstance(target.type, t.Stack) else target.type
        assert isinstance(kind, t.Header) and isinstance(header, HeaderValue)
        number = self.take(t.width(kind), True)
        set_validity(header, True)
        left = t.width(kind)
        for name, field_type in kind.fields:
            left -= t.width(field_type)
            header.fields[name] = t.from_bits(number >> left, field_type)
        if stack is not None:
            stack.next += 1

    @staticmethod
    def next_of(stack: StackValue) -> Any:
        if stack.next >= len(stack.items):
            raise _ParserStops("StackOutOfBounds")
        return stack.items[stack.next]

    def deparse(self, scope: Scope) -> bytes:
        number, count = 0, 0
        for e in self.program.emits:
            kinds: list[tuple[Any, t.Type]] = [(self.compound(e, scope), e.type)]
            while kinds:
                value, kind = kinds.pop(0)
                match kind:
                    case t.Stack(element):
                        kinds = [(item, element) for item in value.items] + kinds
                    case t.Union(fields=fields) | t.Struct(fields=fields):
                        kinds = [(value.fields[n], f) for n, f in fields] + kinds
                    case t.Header(fields=fields):
                        if not value.valid:
                            continue
                        for name, field_type in fields:
                            if value.fields[name] is UNSET:
                                raise Undefined("a field that nothing has written is sent")
                            number = (number << t.width(field_type)) | t.to_bits(value.fields[name], field_type)
                            count += t.width(field_type)
        return number.to_bytes(count // 8, "big") + self.data[self.bits // 8 :]

    # L-values

    def compound(self, e: s.Expression, scope: Scope) -> Any:
        """The struct, header, union or stack itself."""
        match e:
            case s.Var(name):
                return scope.holder(name)[name]
            case s.Member(base, name):
                inside = self.compound(base, scope)
                if isinstance(inside, StackValue):
                    if name == "next":
                        return self.next_of(inside)
                    if not 0 < inside.next <= len(inside.items):
                        raise Undefined("the last of an empty stack")
                    return inside.items[inside.next - 1]
                return inside.fields[name]
            case s.Index(base, index):
                stack, at = self.compound(base, scope), self.value(index, scope)
                if not 0 <= at < len(stack.items):
                    raise Undefined("an index beyond the stack")
                return stack.items[at]
        return self.value(e, scope)

    def place(self, e: s.Expression, scope: Scope) -> Place:
        match e:
            case s.Var(name, kind):
                return Place(scope.holder(name), name, kind, None)
            case s.Member(base, name, kind):
                inside = self.compound(base, scope)
                return Place(inside.fields, name, kind, inside if isinstance(inside, HeaderValue) else None)
            case s.Slice(base, high, low):
                whole = self.place(base, scope)
                if whole.high >= 0:
                    high, low = high + whole.low, low + whole.low
                return Place(whole.holder, whole.name, whole.type, whole.header, high, low)
        raise TypeError(e)

    # Expressions

    def value(self, e: s.Expression, scope: Scope) -> Any:
        """A value that is used: one that nothing has written is undefined."""
        self.step()
        match e:
            case s.Var() | s.Member() | s.Index():
                if isinstance(e.type, (t.Struct, t.Header, t.Union, t.Stack)):
                    return copied(self.compound(e, scope))
                got = self.place(e, scope).raw()
                if got is UNSET:
                    raise Undefined("a variable that nothing has written is read")
                return got
            case s.Slice(base, high, low):
                return (t.to_bits(self.value(base, scope), base.type) >> low) & ((1 << (high - low + 1)) - 1)
            case s.Literal(value):
                return value
            case s.Unary(operator, operand, kind):
                inner = self.value(operand, scope)
                if operator == "!":
                    return not inner
                return _wrap({"-": -inner, "~": ~inner, "+": inner}[operator], kind)
            case s.Binary():
                return self.binary(e, scope)
            case s.Conditional(condition, yes, no):
                return self.value(yes if self.value(condition, scope) else no, scope)
            case s.Cast(operand, kind):
                return _wrap(int(self.value(operand, scope)), kind)
            case s.Call():
                return self.call(e, scope)
            case s.IsValid(header):
                found = self.compound(header, scope)
                return any(m.valid for m in found.fields.values()) if isinstance(found, UnionValue) else found.valid
            case s.Hit(table, miss):
                return self.apply(table, scope)[0] != miss
            case s.Fields(values, kind):
                assert isinstance(kind, (t.Struct, t.Header))
                fields = {name: self.value(v, scope) for (name, _), v in zip(kind.fields, values)}
                return HeaderValue(True, fields) if isinstance(kind, t.Header) else StructValue(fields)
            case s.LastIndex(stack):
                at = self.compound(stack, scope).next - 1
                if at < 0:
                    raise Undefined("lastIndex of an empty stack")
                return at
            case s.Lookahead(kind):
                return t.from_bits(self.take(t.width(kind), False), kind)
            case s.ParserError(error, equal):
                return (self.error == error) == equal
        raise TypeError(e)

    def binary(self, e: s.Binary, scope: Scope) -> Any:
        operator, kind = e.operator, e.type
        left = self.value(e.left, scope)
        if operator == "&&":
            return left and self.value(e.right, scope)
        if operator == "||":
            return left or self.value(e.right, scope)
        right = self.value(e.right, scope)
        if operator == "++":
            low = t.to_bits(right, e.right.type)
            return t.from_bits((t.to_bits(left, e.left.type) << t.width(e.right.type)) | low, kind)
        return calculate(operator, left, right, kind)

    # Calls

    def call(self, e: s.Call, scope: Scope, data: list[int] | None = None) -> Any:
        """Section 6.8. data: what a table's entry gives to parameters without direction."""
        self.step()
        procedure = self.procedures[e.name]
        inner = Scope(self.control if procedure.kind == "action" else self.constants)
        arguments, given = iter(e.arguments), iter(data or [])
        back: list[tuple[Place | Any, str]] = []
        for p in procedure.parameters:
            if not p.direction and data is not None:
                inner.names[p.name] = next(given)
                continue
            argument = next(arguments)
            simple = not isinstance(p.type, (t.Struct, t.Header, t.Union, t.Stack))
            if p.direction in ("", "in"):
                inner.names[p.name] = self.value(argument, scope)
                continue
            target = self.place(argument, scope) if simple else self.compound(argument, scope)
            back.append((target, p.name))
            if p.direction == "out":
                inner.names[p.name] = unset(p.type)
            else:
                inner.names[p.name] = target.raw() if isinstance(target, Place) else copied(target)
        result = None
        try:
            self.execute(procedure.body, inner)
        except _Return as returned:
            result = returned.value
        finally:
            for target, name in back:
                if isinstance(target, Place):
                    target.write(inner.names[name])
                else:
                    assign(target, inner.names[name])
        return result

    # Tables

    def apply(self, name: str, scope: Scope) -> tuple[bool, str]:
        """Whether an entry matched, and the action that ran."""
        self.step()
        table = self.tables[name]
        values = [t.to_bits(self.value(key.expression, scope), key.expression.type) for key in table.keys]
        found = best(table, values)
        if found is not None:
            self.hits += 1
            action, data, way = found.action, found.data, "const entries" if table.how == "const" else "entries"
        else:
            way = "default action" if table.runtime_default is None else "default action written"
            action, data = table.runtime_default or table.default or ("NoAction", [])
        if action != "NoAction":
            bound = next(a for a in table.actions if a.name == action).arguments
            for p in self.procedures[action].parameters:
                if not p.direction:
                    self.given[way, kind_name(p.type)] += 1
            self.call(s.Call(action, bound), self.control, data)
        return found is not None, action

    # Statements

    def step(self) -> None:
        self.steps += 1
        if self.steps > STEPS:
            raise Undefined("too many steps")

    def execute(self, one: s.Statement, scope: Scope) -> None:
        self.step()
        match one:
            case s.Block(body):
                inner = Scope(scope)
                for statement in body:
                    self.execute(statement, inner)
            case s.Declare(name, kind, value):
                if value is None:
                    scope.names[name] = unset(kind)
                    return
                got = self.value(value, scope)
                scope.names[name] = unset(kind) if isinstance(got, _COMPOUND) else got
                if isinstance(got, _COMPOUND):
                    assign(scope.names[name], got)
            case s.Assign():
                self.write(one, scope)
            case s.If(condition, yes, no):
                if self.value(condition, scope):
                    self.execute(yes, scope)
                elif no is not None:
                    self.execute(no, scope)
            case s.Switch(value, cases):
                at = self.value(value, scope)
                self.fall(cases, [labels is not None and any(label.value == at for label in labels) for labels, _ in cases], scope)
            case s.SwitchAction(table, branches):
                ran = self.apply(table, scope)[1]
                self.fall(branches, [label == ran for label, _ in branches], scope)
            case s.Invoke(call):
                self.call(call, scope)
            case s.Apply(table):
                self.apply(table, scope)
            case s.Exit():
                raise _Exit
            case s.Return(value):
                raise _Return(None if value is None else self.value(value, scope))
            case s.SetValidity(header, valid):
                set_validity(self.compound(header, scope), valid)
            case s.Shift():
                self.shift(one, scope)
            case s.For(variable, _, first, end, body):
                self.loop(variable, range(first, end), body, scope)
            case s.ForIn(variable, _, first, last, body):
                self.loop(variable, range(first, last + 1), body, scope)
            case s.Break(cont):
                raise _Continue if cont else _Break
            case s.SetPort(port):
                self.port = port
            case s.Drop():
                self.port = DROP_PORT
            case s.Extract(target):
                self.extract(target, scope)
            case s.Verify(condition, error):
                if not self.value(condition, scope):
                    raise _ParserStops(error)
            case _:
                raise TypeError(one)

    def fall(self, cases: list[tuple[Any, s.Block | None]], matched: list[bool], scope: Scope) -> None:
        """From the label that matches, else from default, to the next body (12.7)."""
        at = matched.index(True) if True in matched else next((i for i, (label, _) in enumerate(cases) if label is None), len(cases))
        for _, body in cases[at:]:
            if body is not None:
                self.execute(body, scope)
                return

    def loop(self, variable: str, values: range, body: s.Block, scope: Scope) -> None:
        for at in values:
            inner = Scope(scope)
            inner.names[variable] = at
            try:
                self.execute(body, inner)
            except _Break:
                return
            except _Continue:
                continue

    def write(self, one: s.Assign, scope: Scope) -> None:
        if isinstance(one.target.type, (t.Struct, t.Header, t.Union, t.Stack)):
            target = self.compound(one.target, scope)
            assign(target, self.value(one.value, scope))
            return
        place = self.place(one.target, scope)
        if one.operator:
            old = place.raw()
            if old is UNSET:
                raise Undefined("a variable that nothing has written is read")
            place.write(calculate(one.operator, old, self.value(one.value, scope), one.target.type))
        else:
            place.write(self.value(one.value, scope))

    def shift(self, one: s.Shift, scope: Scope) -> None:
        stack = self.compound(one.stack, scope)
        size, n = len(stack.items), one.count
        old = copy.deepcopy(stack.items)
        assert isinstance(one.stack.type, t.Stack)
        empty = unset(one.stack.type.element)
        for at, item in enumerate(stack.items):
            source = at - n if one.push else at + n
            value = old[source] if 0 <= source < size else empty
            if isinstance(item, HeaderValue):
                restore(item, value)
            else:
                assign(item, value)
        stack.next = min(stack.next + n, size) if one.push else max(stack.next - n, 0)


def kind_name(kind: t.Type) -> str:
    """bit, int, bool, enum, type or typedef."""
    if getattr(kind, "alias", ""):
        return "typedef"
    return {t.Bit: "bit", t.Int: "int", t.Bool: "bool", t.Enum: "enum", t.New: "type"}[type(kind)]


def best(table: s.Table, values: list[int]) -> s.Entry | None:
    """The entry that matches: the longest prefix, the larger priority, or of `const entries` the earliest."""
    matching = [e for e in table.entries if all(matches(m, v, k.expression.type) for m, v, k in zip(e.matches, values, table.keys))]
    if not matching or not table.keys:
        return None
    kinds = {key.kind for key in table.keys}
    if kinds & {"ternary", "range", "optional"}:
        return matching[0] if table.how == "const" else max(matching, key=lambda e: e.priority)
    return max(matching, key=lambda e: sum(m.other for m in e.matches if m.kind == "lpm"))


def matches(m: s.Match, bits: int, kind: t.Type) -> bool:
    if m.any:
        return True
    if m.kind == "lpm":
        left = t.width(kind) - m.other
        return bits >> left == m.value >> left
    if m.kind == "ternary":
        return bits & m.other == m.value & m.other
    if m.kind == "range":
        return m.value <= bits <= m.other
    return bits == m.value


def _wrap(value: int, kind: t.Type) -> Any:
    return value if isinstance(kind, t.Number) else t.from_bits(value, kind)


def calculate(operator: str, left: Any, right: Any, kind: t.Type) -> Any:
    """Sections 8.6 to 8.10, on numbers."""
    match operator:
        case "==":
            return _same(left, right)
        case "!=":
            return not _same(left, right)
        case "<":
            return left < right
        case "<=":
            return left <= right
        case ">":
            return left > right
        case ">=":
            return left >= right
        case "|+|" | "|-|":
            exact = left + right if operator == "|+|" else left - right
            w = t.width(kind)
            low, high = (-(1 << (w - 1)), (1 << (w - 1)) - 1) if t.signed(kind) else (0, (1 << w) - 1)
            return min(max(exact, low), high)
        case "+":
            exact = left + right
        case "-":
            exact = left - right
        case "*":
            exact = left * right
        case "/":
            exact = left // right
        case "%":
            exact = left % right
        case "&":
            exact = left & right
        case "|":
            exact = left | right
        case "^":
            exact = left ^ right
        case "<<":
            exact = 0 if not isinstance(kind, t.Number) and right >= t.width(kind) else left << right
        case ">>":
            exact = left >> right
        case _:
            raise ValueError(operator)
    return _wrap(exact, kind)


def _same(left: Any, right: Any) -> bool:
    """Equality, also of structs and headers (8.16, 8.17)."""
    match left, right:
        case HeaderValue(), HeaderValue():
            if left.valid != right.valid:
                return False
            return not left.valid or _same(StructValue(left.fields), StructValue(right.fields))
        case StructValue(), StructValue():
            same = [_same(value, right.fields[name]) for name, value in left.fields.items()]
            return all(same)
        case StackValue(), StackValue():
            same = [_same(one, other) for one, other in zip(left.items, right.items)]
            return all(same)
        case UnionValue(), UnionValue():
            same = [_same(one, right.fields[name]) for name, one in left.fields.items()]
            return all(same)
    if left is UNSET or right is UNSET:
        raise Undefined("a value that nothing has written is compared")
    return bool(left == right)
