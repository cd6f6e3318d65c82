"""The tree of a generated program, and its text. `oracle.py` gives its meaning."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tools.oracle_programs import types as t

# Expressions. Those that may be written stand first.


@dataclass
class Var:
    name: str
    type: t.Type


@dataclass
class Member:
    base: Expression
    name: str
    type: t.Type


@dataclass
class Index:
    base: Expression
    index: Expression
    type: t.Type


@dataclass
class Slice:
    base: Expression
    high: int
    low: int
    type: t.Type


@dataclass
class Literal:
    value: int
    type: t.Type
    name: str = ""
    """How it is written, where a constant stands for it."""


@dataclass
class Unary:
    operator: str
    operand: Expression
    type: t.Type


@dataclass
class Binary:
    operator: str
    left: Expression
    right: Expression
    type: t.Type


@dataclass
class Conditional:
    condition: Expression
    yes: Expression
    no: Expression
    type: t.Type


@dataclass
class Cast:
    operand: Expression
    type: t.Type


@dataclass
class Call:
    """Of a function, action or control."""

    name: str
    arguments: list[Expression]
    type: t.Type = t.VOID


@dataclass
class IsValid:
    header: Expression
    type: t.Type = t.BOOL


@dataclass
class Hit:
    table: str
    miss: bool = False
    type: t.Type = t.BOOL


@dataclass
class Fields:
    """The list of a struct's or header's fields."""

    values: list[Expression]
    type: t.Type
    names: bool = False


@dataclass
class LastIndex:
    stack: Expression
    type: t.Type = field(default_factory=lambda: t.Bit(32))


@dataclass
class Lookahead:
    type: t.Type


@dataclass
class ParserError:
    """Whether the parser ended with this error."""

    error: str
    equal: bool = True
    type: t.Type = t.BOOL


Expression = (
    Var
    | Member
    | Index
    | Slice
    | Literal
    | Unary
    | Binary
    | Conditional
    | Cast
    | Call
    | IsValid
    | Hit
    | Fields
    | LastIndex
    | Lookahead
    | ParserError
)

# Statements.


@dataclass
class Block:
    body: list[Statement]


@dataclass
class Declare:
    name: str
    type: t.Type
    value: Expression | None


@dataclass
class Assign:
    target: Expression
    value: Expression
    operator: str = ""


@dataclass
class If:
    condition: Expression
    yes: Block
    no: Block | None


@dataclass
class Switch:
    """Labels None: default. A body None falls through to the next."""

    value: Expression
    cases: list[tuple[list[Literal] | None, Block | None]]


@dataclass
class SwitchAction:
    table: str
    cases: list[tuple[str | None, Block | None]]


@dataclass
class Invoke:
    call: Call


@dataclass
class Apply:
    table: str


@dataclass
class Exit:
    pass


@dataclass
class Return:
    value: Expression | None


@dataclass
class SetValidity:
    header: Expression
    valid: bool


@dataclass
class Shift:
    """push_front or pop_front of a stack."""

    stack: Expression
    push: bool
    count: int


@dataclass
class For:
    variable: str
    type: t.Type
    first: int
    end: int
    """The first value that is too large."""
    body: Block


@dataclass
class ForIn:
    variable: str
    type: t.Type
    first: int
    last: int
    body: Block


@dataclass
class Break:
    cont: bool
    """Whether it is `continue`."""


@dataclass
class SetPort:
    port: int


@dataclass
class Drop:
    pass


@dataclass
class Extract:
    target: Expression
    """A header, or a stack: its next element."""


@dataclass
class Verify:
    condition: Expression
    error: str


Statement = (
    Block
    | Declare
    | Assign
    | If
    | Switch
    | SwitchAction
    | Invoke
    | Apply
    | Exit
    | Return
    | SetValidity
    | Shift
    | For
    | ForIn
    | Break
    | SetPort
    | Drop
    | Extract
    | Verify
)

# Declarations.


@dataclass
class Parameter:
    name: str
    type: t.Type
    direction: str
    """in, out, inout, or nothing: action data."""

    def __str__(self) -> str:
        return f"{self.direction} {self.type} {self.name}".strip()


@dataclass
class Procedure:
    """A function, an action, or a control that others apply."""

    kind: str
    name: str
    parameters: list[Parameter]
    body: Block
    result: t.Type | None = None


@dataclass(frozen=True)
class Match:
    """What an entry says of one key. exact: value; lpm: value, prefix length; ternary: value, mask; range: low, high; all in bits, but a
    range of signed values. A key without `any` false matches."""

    kind: str
    value: int = 0
    other: int = 0
    any: bool = False


@dataclass
class Entry:
    matches: list[Match]
    action: str
    data: list[int]
    """Action data: the parameters without direction."""
    priority: int = 0
    """A larger one wins."""


@dataclass
class Key:
    expression: Expression
    kind: str
    name: str


@dataclass
class TableAction:
    name: str
    arguments: list[Expression]
    """Of the parameters with a direction."""


@dataclass
class Table:
    name: str
    keys: list[Key]
    actions: list[TableAction]
    default: tuple[str, list[int]] | None
    """An action with its data; None: NoAction."""
    constant_default: bool
    entries: list[Entry]
    how: str
    """const: in the program; runtime: by the control plane."""
    runtime_default: tuple[str, list[int]] | None = None


@dataclass
class Case:
    """sets: (kind, low or value, high or mask), one for each key; None: default."""

    sets: list[tuple[str, int, int]] | None
    state: str


@dataclass
class State:
    name: str
    body: list[Statement]
    keys: list[Expression]
    cases: list[Case]
    """Without keys: one case."""


@dataclass
class Packet:
    port: int
    data: bytes


@dataclass
class Program:
    typedefs: list[t.Bit | t.Int]
    named: list[t.Enum | t.New | t.Struct | t.Header | t.Union]
    errors: list[str]
    constants: list[tuple[str, t.Type, Expression]]
    headers: t.Struct
    metadata: t.Struct
    functions: list[Procedure]
    controls: list[Procedure]
    states: list[State]
    actions: list[Procedure]
    locals: list[Declare]
    tables: list[Table]
    ingress: Block
    egress: Block
    emits: list[Expression]
    packets: list[Packet]
    features: set[str] = field(default_factory=set)


# Text.

CPU_PORT = 510


def literal(value: int, kind: t.Type) -> str:
    match kind:
        case t.Bool():
            return "true" if value else "false"
        case t.Number():
            return str(value) if value >= 0 else f"({value})"
        case t.Bit(w):
            if kind.alias:
                return f"({kind.alias}){value}"
            return f"{w}w{value}" if value % 3 else f"{w}w{value:#x}"
        case t.Int(w):
            if value == -(1 << (w - 1)):
                return f"(int<{w}>)({value})"
            return f"{w}s{value}" if value >= 0 else f"(-{w}s{-value})"
        case t.Enum(members=members):
            return next((f"{kind}.{name}" for name, number in members if number == value), f"({kind}){literal(value, kind.base)}")
        case t.New(base=base):
            return f"({kind}){literal(value, base)}"
    raise TypeError(kind)


def text(e: Expression) -> str:
    """An expression, bracketed so that no precedence matters."""
    match e:
        case Var(name):
            return name
        case Member(base, name):
            return f"{_primary(base)}.{name}"
        case Index(base, index):
            return f"{text(base)}[{text(index)}]"
        case Slice(base, high, low):
            return f"{_primary(base)}[{high}:{low}]"
        case Literal(value, kind, name):
            return name or literal(value, kind)
        case Unary(operator, operand):
            return f"{operator}({text(operand)})"
        case Binary(operator, left, right):
            return f"({text(left)} {operator} {text(right)})"
        case Conditional(condition, yes, no):
            return f"({text(condition)} ? {text(yes)} : {text(no)})"
        case Cast(operand, kind):
            return f"({kind})({text(operand)})"
        case Call(name, arguments):
            return f"{name}({', '.join(map(text, arguments))})"
        case IsValid(header):
            return f"{text(header)}.isValid()"
        case Hit(table, miss):
            return f"{table}.apply().{'miss' if miss else 'hit'}"
        case Fields(values, kind, names):
            assert isinstance(kind, (t.Struct, t.Header))
            shown = map(text, values)
            return (
                "{ " + ", ".join(f"{n} = {v}" for (n, _), v in zip(kind.fields, shown)) + " }" if names else "{ " + ", ".join(shown) + " }"
            )
        case LastIndex(stack):
            return f"{text(stack)}.lastIndex"
        case Lookahead(kind):
            return f"packet.lookahead<{kind}>()"
        case ParserError(error, equal):
            return f"(sm.parser_error {'==' if equal else '!='} error.{error})"


def _primary(e: Expression) -> str:
    shown = text(e)
    return f"({shown})" if isinstance(e, (Cast, Unary, Literal)) else shown


def _lines(s: Statement) -> Iterable[str]:
    match s:
        case Block(body):
            yield "{"
            for inner in body:
                yield from ("    " + line for line in _lines(inner))
            yield "}"
        case Declare(name, kind, value):
            yield f"{kind} {name};" if value is None else f"{kind} {name} = {text(value)};"
        case Assign(target, value, operator):
            yield f"{text(target)} {operator}= {text(value)};"
        case If(condition, yes, no):
            yield f"if ({text(condition)})"
            yield from _lines(yes)
            if no is not None:
                yield "else"
                yield from _lines(no)
        case Switch(value, cases):
            yield f"switch ({text(value)}) {{"
            for labels, then in cases:
                shown = ["default"] if labels is None else [text(label) for label in labels]
                yield from (f"    {label}:" for label in shown)
                if then is not None:
                    yield from ("    " + line for line in _lines(then))
            yield "}"
        case SwitchAction(table, branches):
            yield f"switch ({table}.apply().action_run) {{"
            for label, then in branches:
                yield f"    {label or 'default'}:"
                if then is not None:
                    yield from ("    " + line for line in _lines(then))
            yield "}"
        case Invoke(call):
            yield text(call) + ";"
        case Apply(table):
            yield f"{table}.apply();"
        case Exit():
            yield "exit;"
        case Return(value):
            yield "return;" if value is None else f"return {text(value)};"
        case SetValidity(header, valid):
            yield f"{text(header)}.{'setValid' if valid else 'setInvalid'}();"
        case Shift(stack, push, count):
            yield f"{text(stack)}.{'push_front' if push else 'pop_front'}({count});"
        case For(variable, kind, first, end, body):
            yield f"for ({kind} {variable} = {first}; {variable} < {literal(end, kind)}; {variable} = {variable} + 1)"
            yield from _lines(body)
        case ForIn(variable, kind, first, last, body):
            yield f"for ({kind} {variable} in {literal(first, kind)} .. {literal(last, kind)})"
            yield from _lines(body)
        case Break(cont):
            yield "continue;" if cont else "break;"
        case SetPort(port):
            # A packet of the controller goes back to it.
            yield f"sm.egress_spec = (sm.ingress_port == {CPU_PORT} ? 9w{CPU_PORT} : 9w{port});"
        case Drop():
            yield "mark_to_drop(sm);"
        case Extract(target):
            yield f"packet.extract({text(target)}{'.next' if isinstance(target.type, t.Stack) else ''});"
        case Verify(condition, error):
            yield f"verify({text(condition)}, error.{error});"


def _procedure(p: Procedure) -> list[str]:
    parameters = ", ".join(map(str, p.parameters))
    if p.kind == "control":
        return [f"control {p.name}_c({parameters}) {{", "    apply"] + ["    " + line for line in _lines(p.body)] + ["}"]
    head = f"action {p.name}" if p.kind == "action" else f"{p.result or 'void'} {p.name}"
    return [f"{head}({parameters})", *_lines(p.body)]


def _match(m: Match, key: Key) -> str:
    kind = key.expression.type

    def number(bits: int) -> str:
        return literal(t.from_bits(bits, kind), kind)

    if m.any:
        return "_"
    if m.kind == "lpm":
        w = t.width(kind)
        mask = ((1 << w) - 1) ^ ((1 << (w - m.other)) - 1)
        return number(m.value) if m.other == w else f"{number(m.value)} &&& {number(mask)}"
    if m.kind == "ternary":
        full = (1 << t.width(kind)) - 1
        return number(m.value) if m.other == full else f"{number(m.value)} &&& {number(m.other)}"
    if m.kind == "range":
        return f"{number(m.value)} .. {number(m.other)}"
    return number(m.value)


def action_call(program: Program, table: Table, name: str, data: list[int]) -> str:
    """With the arguments by reference and the data."""
    action = next((a for a in program.actions if a.name == name), None)
    if action is None:
        return f"{name}()"
    bound, given = iter(next(a for a in table.actions if a.name == name).arguments), iter(data)
    arguments = [literal(next(given), p.type) if not p.direction else text(next(bound)) for p in action.parameters]
    return f"{name}({', '.join(arguments)})"


def _table(program: Program, table: Table) -> list[str]:
    lines = [f"table {table.name} {{"]
    if table.keys:
        lines.append("    key = {")
        lines += [f'        {text(k.expression)} : {k.kind} @name("{k.name}");' for k in table.keys]
        lines.append("    }")
    lines.append("    actions = {")
    for action in table.actions:
        arguments = f"({', '.join(map(text, action.arguments))})" if action.arguments else ""
        lines.append(f"        {action.name}{arguments};")
    lines.append("    }")
    if table.default is not None:
        const = "const " if table.constant_default else ""
        lines.append(f"    {const}default_action = {action_call(program, table, *table.default)};")
    if table.how == "const" and table.keys:
        lines.append("    const entries = {")
        for entry in table.entries:
            sets = ", ".join(_match(m, k) for m, k in zip(entry.matches, table.keys))
            shown = f"({sets})" if len(table.keys) > 1 else sets
            lines.append(f"        {shown} : {action_call(program, table, entry.action, entry.data)};")
        lines.append("    }")
    return [*lines, "}"]


def _case(case: Case, keys: list[Expression]) -> str:
    if case.sets is None:
        return f"default : {case.state};"
    parts = []
    for (kind, low, high), key in zip(case.sets, keys):
        first, second = literal(low, key.type), literal(high, key.type)
        parts.append({"any": "_", "value": first, "mask": f"{first} &&& {second}", "range": f"{first} .. {second}"}[kind])
    return f"({', '.join(parts)}) : {case.state};" if len(parts) > 1 else f"{parts[0]} : {case.state};"


def _state(state: State) -> list[str]:
    lines = [f"state {state.name} {{"]
    for s in state.body:
        lines += ["    " + line for line in _lines(s)]
    if not state.keys:
        lines.append(f"    transition {state.cases[0].state};")
    else:
        lines.append(f"    transition select({', '.join(map(text, state.keys))}) {{")
        lines += ["        " + _case(case, state.keys) for case in state.cases]
        lines.append("    }")
    return [*lines, "}"]


def source(p: Program) -> str:
    """The program's text."""
    lines = ["#include <core.p4>", "#include <v1model.p4>"]
    for alias in p.typedefs:
        lines.append(f"typedef {'bit' if isinstance(alias, t.Bit) else 'int'}<{alias.width}> {alias.alias};")
    if p.errors:
        lines.append(f"error {{ {', '.join(p.errors)} }}")
    for kind in p.named:
        match kind:
            case t.Enum(name, base, members):
                lines.append(f"enum bit<{base.width}> {name} {{ {', '.join(f'{n} = {v}' for n, v in members)} }}")
            case t.New(name, new_base):
                lines.append(f"type {new_base} {name};")
            case t.Struct(name, fields) | t.Header(name, fields) | t.Union(name, fields):
                word = {t.Struct: "struct", t.Header: "header", t.Union: "header_union"}[type(kind)]
                lines.append(f"{word} {name} {{ " + " ".join(f"{f} {n};" for n, f in fields) + " }")
    lines += [f"const {kind} {name} = {text(value)};" for name, kind, value in p.constants]
    for kind in (p.metadata, p.headers):
        lines.append(f"struct {kind.name} {{ " + " ".join(f"{f} {n};" for n, f in kind.fields) + " }")
    for procedure in [*p.functions, *p.controls]:
        lines += _procedure(procedure)
    both = "inout headers_t hdr, inout meta_t meta"
    lines.append("parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {")
    for state in p.states:
        lines += ["    " + line for line in _state(state)]
    lines += ["}", f"control V({both}) {{ apply {{ }} }}", f"control I({both}, inout standard_metadata_t sm) {{"]
    inside: list[str] = [f"{c.name}_c() {c.name};" for c in p.controls]
    for local in p.locals:
        inside += _lines(local)
    for action in p.actions:
        inside += _procedure(action)
    for table in p.tables:
        inside += _table(p, table)
    inside += ["apply", *_lines(p.ingress)]
    lines += ["    " + line for line in inside]
    lines += ["}", f"control E({both}, inout standard_metadata_t sm) {{", "    apply"]
    lines += ["    " + line for line in _lines(p.egress)]
    lines += ["}", f"control C({both}) {{ apply {{ }} }}", "control D(packet_out packet, in headers_t hdr) {", "    apply {"]
    lines += [f"        packet.emit({text(e)});" for e in p.emits]
    lines += ["    }", "}", "V1Switch(P(), V(), I(), E(), C(), D()) main;"]
    return "\n".join(lines) + "\n"
