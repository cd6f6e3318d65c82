"""Random expressions, statements and procedures of a program whose types are known.

Each has values wherever it reads, as far as that is easy to see: the oracle finds the rest."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from operator import eq

from tools.oracle_programs import syntax as s
from tools.oracle_programs import types as t
from tools.oracle_programs.context import Context
from tools.oracle_programs.oracle import calculate, kind_name

PLAIN = ("exit", "compound")
"""Features that p4c's BMv2 back end takes, too."""
FEATURES = ("runtime_index", "loops", "union_stack", "compound", "action_switch", "exit", "wide_select")
"""What a program may have beyond what BMv2 and p4c take without trouble."""
COMPOUND = (t.Struct, t.Header, t.Union, t.Stack)


class Snippets:
    """Makes what stands in bodies. A class that derives from it declares the types, constants and functions first."""

    palette: list[t.Scalar]
    constants: list[tuple[str, t.Type, s.Expression]]
    errors: list[str]
    struct: t.Struct
    header_b: t.Header
    element: t.Header
    stack: t.Stack
    union: t.Union
    headers: t.Struct
    metadata: t.Struct
    functions: list[s.Procedure]

    def __init__(self, seed: int | str, features: Sequence[str] | None = None) -> None:
        self.rng = random.Random(str(seed))
        pool = FEATURES if features is None else features
        self.features = {f for f in pool if self.rng.random() < 0.5} if features is None else set(features)
        # BMv2 takes different prefixes of a key that is not whole bytes for the same.
        self.odd_prefixes = features is None
        self.serial = 0
        self.interesting: dict[int, list[int]] = {}

    # Small choices

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def name(self, prefix: str) -> str:
        self.serial += 1
        return f"{prefix}{self.serial}"

    def scalar(self) -> t.Scalar:
        return self.rng.choice(self.palette)

    def data_type(self) -> t.Scalar:
        """A type for action data: each kind of type as often as the others."""
        kinds: dict[str, list[t.Scalar]] = {}
        for one in self.palette:
            kinds.setdefault(kind_name(one), []).append(one)
        return self.rng.choice(kinds[self.rng.choice(sorted(kinds))])

    def bits(self, width: int) -> int:
        """Bits that are likely to matter: borders, and numbers that occur elsewhere."""
        known = self.interesting.setdefault(width, [])
        if known and self.chance(0.35):
            return self.rng.choice(known)
        top = (1 << width) - 1
        kinds = [
            0,
            1,
            top,
            top >> 1,
            (top >> 1) + 1,
            self.rng.getrandbits(width),
            self.rng.getrandbits(min(width, 4)),
            self.rng.getrandbits(width),
        ]
        got = self.rng.choice(kinds) & top
        if len(known) < 8:
            known.append(got)
        return got

    def constant(self, kind: t.Type) -> s.Literal:
        if isinstance(kind, t.Enum) and self.chance(0.7):
            return s.Literal(self.rng.choice(kind.members)[1], kind)
        return s.Literal(t.from_bits(self.bits(t.width(kind)), kind), kind)

    # Places

    def scalars(self, ctx: Context, write: bool) -> list[s.Expression]:
        found: list[s.Expression] = []
        for root, writable in ctx.roots:
            if writable or not write:
                self._below(root, ctx, found)
        for header in ctx.valid:
            assert isinstance(header.type, t.Header)
            found += [s.Member(header, n, f) for n, f in header.type.fields]
        return found

    def _below(self, e: s.Expression, ctx: Context, found: list[s.Expression]) -> None:
        match e.type:
            case t.Struct(fields=fields):
                for name, kind in fields:
                    self._below(s.Member(e, name, kind), ctx, found)
            case t.Header(fields=fields):
                if isinstance(e, s.Member) and e.name == "a":
                    found += [s.Member(e, n, f) for n, f in fields]
            case t.Union() | t.Stack():
                pass
            case _:
                found.append(e)

    def compounds(self, ctx: Context, want: Callable[[t.Type], bool], write: bool) -> list[s.Expression]:
        """Structs, headers, unions and stacks of some kind, also as elements."""
        found: list[s.Expression] = []
        todo = [root for root, writable in ctx.roots if writable or not write]
        while todo:
            e = todo.pop()
            kind = e.type
            if isinstance(kind, COMPOUND) and want(kind):
                found.append(e)
            match kind:
                case t.Struct(fields=fields):
                    todo += [s.Member(e, n, f) for n, f in fields]
                case t.Union(fields=fields):
                    todo += [s.Member(e, n, f) for n, f in fields]
                case t.Stack(element, size):
                    if ctx.kind != "parser":
                        todo += [s.Index(e, s.Literal(i, t.NUMBER), element) for i in range(size)]
                        if "runtime_index" in self.features and size in (2, 4) and self.chance(0.5):
                            todo.append(s.Index(e, self.expression(t.Bit(size.bit_length() - 1), ctx, 1), element))
        return found

    def target(self, kind: t.Type, ctx: Context) -> s.Expression | None:
        """Something of this very type that may be written."""
        if isinstance(kind, COMPOUND):
            places = self.compounds(ctx, lambda one: one == kind, True)
            places = [p for p in places if not (isinstance(p, s.Member) and p.name == "a")]
        else:
            places = [p for p in self.scalars(ctx, True) if p.type == kind]
            if isinstance(kind, t.Bit) and not kind.alias and (not places or self.chance(0.25)):
                wider = [p for p in self.scalars(ctx, True) if isinstance(p.type, (t.Bit, t.Int)) and p.type.width > kind.width]
                if wider:
                    base = self.rng.choice(wider)
                    low = self.rng.randrange(t.width(base.type) - kind.width + 1)
                    return s.Slice(base, low + kind.width - 1, low, kind)
        hot = [p for p in ctx.hot if p in places]
        if hot and self.chance(0.4):
            return self.rng.choice(hot)
        return self.rng.choice(places) if places else None

    # Expressions

    def expression(self, kind: t.Type, ctx: Context, depth: int = 3) -> s.Expression:
        if isinstance(kind, COMPOUND):
            return self.compound_value(kind, ctx)
        if depth <= 0 or self.chance(0.15):
            return self.leaf(kind, ctx)
        if self.chance(0.15):
            called = self.function_call(kind, ctx, depth)
            if called is not None:
                return called
        if self.chance(0.08):
            return s.Conditional(
                self.expression(t.BOOL, ctx, depth - 1), self.expression(kind, ctx, depth - 1), self.expression(kind, ctx, depth - 1), kind
            )
        match kind:
            case t.Bool():
                return self.boolean(ctx, depth)
            case t.Bit() | t.Int():
                return self.number(kind, ctx, depth)
            case t.Enum(base=base) | t.New(base=base):
                return s.Cast(self.expression(base, ctx, depth - 1), kind) if self.chance(0.6) else self.leaf(kind, ctx)
        raise TypeError(kind)

    def leaf(self, kind: t.Type, ctx: Context) -> s.Expression:
        places = [p for p in self.scalars(ctx, False) if p.type == kind]
        if places and self.chance(0.75):
            hot = [p for p in ctx.hot if p in places]
            return self.rng.choice(hot if hot and self.chance(0.4) else places)
        if isinstance(kind, t.Bit) and self.chance(0.4):
            wider = [p for p in self.scalars(ctx, False) if isinstance(p.type, (t.Bit, t.Int)) and p.type.width > kind.width]
            if wider:
                base = self.rng.choice(wider)
                low = self.rng.randrange(t.width(base.type) - kind.width + 1)
                return s.Slice(base, low + kind.width - 1, low, kind)
        constants = [(n, v) for n, k, v in self.constants if k == kind]
        if constants and self.chance(0.3):
            return s.Var(self.rng.choice(constants)[0], kind)
        return self.constant(kind)

    def big(self, depth: int) -> tuple[s.Expression, int]:
        """A constant of type int, and its value."""
        if depth <= 0:
            value = self.rng.choice(
                [0, 1, 2, 7, 255, 256, self.rng.getrandbits(16), self.rng.getrandbits(70), -1, -3, -self.rng.getrandbits(20)]
            )
            return s.Literal(value, t.NUMBER), value
        (left, a), (right, b) = self.big(depth - 1), self.big(depth - 1)
        operator = self.rng.choice(["+", "-", "*", "<<", ">>", "/", "%", "&", "|", "^"])
        if operator in ("<<", ">>"):
            b = self.rng.randrange(20)
            right = s.Literal(b, t.NUMBER)
        elif operator in ("/", "%") and (a < 0 or b <= 0):
            operator = "-"
        elif operator in "&|^" and (a < 0 or b < 0):
            operator = "+"
        value = calculate(operator, a, b, t.NUMBER)
        if abs(value) >> 200:
            return left, a
        return s.Binary(operator, left, right, t.NUMBER), value

    def number(self, kind: t.Bit | t.Int, ctx: Context, depth: int) -> s.Expression:
        w, d = kind.width, depth - 1
        pick = self.rng.random()
        if pick < 0.38:
            operator = self.rng.choice(["+", "-", "*", "&", "|", "^", "|+|", "|-|", "+", "-"])
            left, right = self.expression(kind, ctx, d), self.expression(kind, ctx, d)
            if isinstance(right, s.Literal) and not right.name and right.value >= 0 and self.chance(0.5):
                right = replace(right, name=str(right.value))
            return s.Binary(operator, left, right, kind)
        if pick < 0.5:
            amount: s.Expression
            if self.chance(0.5):
                amount = s.Literal(self.rng.choice([0, 1, w - 1, w, w + 3, self.rng.randrange(w + 1)]), t.NUMBER)
            else:
                amount = self.expression(t.Bit(self.rng.choice([1, 3, 5, 8])), ctx, d)
            return s.Binary(self.rng.choice(["<<", ">>"]), self.expression(kind, ctx, d), amount, kind)
        if pick < 0.58:
            return s.Unary(self.rng.choice(["-", "~"]), self.expression(kind, ctx, d), kind)
        if pick < 0.62:
            return s.Cast(self.big(self.rng.randrange(1, 3))[0], kind)
        if pick < 0.70 and w > 1 + isinstance(kind, t.Int):
            cut = self.rng.randrange(1, w - isinstance(kind, t.Int))
            left_kind: t.Type = t.Int(w - cut) if isinstance(kind, t.Int) else t.Bit(w - cut)
            right_kind: t.Type = t.Int(cut) if cut > 1 and self.chance(0.2) else t.Bit(cut)
            return s.Binary("++", self.expression(left_kind, ctx, d), self.expression(right_kind, ctx, d), kind)
        if isinstance(kind, t.Bit):
            if pick < 0.76:
                wide = t.Bit(w + self.rng.choice([1, 3, 8, 16]))
                low = self.rng.randrange(wide.width - w + 1)
                base: s.Expression = self.expression(wide, ctx, d)
                if isinstance(base, s.Literal):
                    base = replace(base, name="")
                return s.Slice(base, low + w - 1, low, kind)
            if pick < 0.79 and w == 1:
                return s.Cast(self.expression(t.BOOL, ctx, d), kind)
            if pick < 0.83:
                bases = [e for e in self.palette if isinstance(e, (t.Enum, t.New)) and e.base == kind]
                if bases:
                    return s.Cast(self.expression(self.rng.choice(bases), ctx, d), kind)
            if pick < 0.85:
                divisor = self.rng.randrange(1, 1 << min(w, 16)) if w > 0 else 1
                return s.Binary(self.rng.choice("/%"), s.Literal(self.bits(w), t.Bit(w)), s.Literal(divisor, t.Bit(w)), kind)
        return s.Cast(self._castable(kind, ctx, d), kind)

    def _castable(self, kind: t.Bit | t.Int, ctx: Context, depth: int) -> s.Expression:
        """An expression that may be cast to the type: the sign changes, or the width."""
        if kind.width > 1 and self.chance(0.4):
            other: t.Type = t.Bit(kind.width) if isinstance(kind, t.Int) else t.Int(kind.width)
            return self.expression(other, ctx, depth)
        same = [p for p in self.palette if type(p) is type(kind) and not getattr(p, "alias", "")]
        widths = [t.width(p) for p in same] or [8]
        w = self.rng.choice(widths)
        return self.expression(t.Int(w) if isinstance(kind, t.Int) else t.Bit(w), ctx, depth)

    def boolean(self, ctx: Context, depth: int) -> s.Expression:
        d = depth - 1
        pick = self.rng.random()
        if pick < 0.4:
            kind = self.rng.choice([k for k in self.palette if isinstance(k, (t.Bit, t.Int))])
            return s.Binary(self.rng.choice(["<", "<=", ">", ">="]), self.expression(kind, ctx, d), self.expression(kind, ctx, d), t.BOOL)
        if pick < 0.65:
            any_kind = self.scalar()
            return s.Binary(self.rng.choice(["==", "!="]), self.expression(any_kind, ctx, d), self.expression(any_kind, ctx, d), t.BOOL)
        if pick < 0.8:
            return s.Binary(self.rng.choice(["&&", "||"]), self.expression(t.BOOL, ctx, d), self.expression(t.BOOL, ctx, d), t.BOOL)
        if pick < 0.87:
            return s.Unary("!", self.expression(t.BOOL, ctx, d), t.BOOL)
        if pick < 0.91:
            structs = self.compounds(ctx, lambda one: isinstance(one, t.Struct) and one.name.startswith("s"), False)
            if len(structs) > 1:
                left, right = self.rng.choice(structs), self.rng.choice(structs)
                if left.type == right.type:
                    return s.Binary(self.rng.choice(["==", "!="]), left, right, t.BOOL)
        if pick < 0.94:
            return s.Cast(self.expression(t.Bit(1), ctx, d), t.BOOL)
        headers = self.compounds(ctx, lambda one: isinstance(one, (t.Header, t.Union)), False)
        return s.IsValid(self.rng.choice(headers)) if headers else self.leaf(t.BOOL, ctx)

    def compound_value(self, kind: t.Type, ctx: Context) -> s.Expression:
        places = self.compounds(ctx, lambda one: one == kind, False)
        if isinstance(kind, (t.Struct, t.Header)) and (not places or self.chance(0.4)):
            return s.Fields([self.expression(f, ctx, 1) for _, f in kind.fields], kind, self.chance(0.3))
        return self.rng.choice(places)

    def arguments(self, p: s.Procedure, ctx: Context, depth: int, only_directed: bool = False) -> list[s.Expression] | None:
        got: list[s.Expression] = []
        for parameter in p.parameters:
            if not parameter.direction and only_directed:
                continue
            if parameter.direction in ("", "in"):
                if isinstance(parameter.type, (t.Union, t.Stack)) and not self.compounds(ctx, partial(eq, parameter.type), False):
                    return None
                got.append(self.expression(parameter.type, ctx, min(depth, 2)))
                continue
            reuse = [
                g for g in got if g.type == parameter.type and isinstance(g, (s.Var, s.Member, s.Slice, s.Index)) and self._writable(g, ctx)
            ]
            found = self.rng.choice(reuse) if reuse and self.chance(0.3) else self.target(parameter.type, ctx)
            if found is None:
                return None
            got.append(found)
            ctx.hot.append(found)
        return got

    def _writable(self, e: s.Expression, ctx: Context) -> bool:
        while isinstance(e, (s.Member, s.Slice, s.Index)):
            e = e.base
        return any(root == e and writable for root, writable in ctx.roots)

    def function_call(self, kind: t.Type, ctx: Context, depth: int) -> s.Expression | None:
        fitting = [f for f in ctx.functions if f.result == kind]
        if not fitting:
            return None
        f = self.rng.choice(fitting)
        arguments = self.arguments(f, ctx, depth - 1)
        return None if arguments is None else s.Call(f.name, arguments, kind)

    # Statements

    def block(self, ctx: Context, count: int, depth: int) -> s.Block:
        inner = replace(ctx, roots=list(ctx.roots), valid=list(ctx.valid))
        body: list[s.Statement] = []
        for _ in range(count):
            got = self.statement(inner, depth)
            if got is not None:
                body.append(got)
                if isinstance(got, (s.Exit, s.Return, s.Break)):
                    break
        return s.Block(body)

    def statement(self, ctx: Context, depth: int) -> s.Statement | None:
        plain = [(10, self._assign), (3, self._declare), (3, self._invoke), (2, self._headers)]
        if ctx.kind == "parser":
            plain = [(10, self._assign), (2, self._declare), (1, self._invoke)]
        elif depth > 0:
            plain.append((4, self._if))
            if ctx.kind != "action" or "action_switch" in self.features:
                plain.append((1, self._switch))
            if "loops" in self.features and not ctx.loop:
                plain.append((1, self._for))
            if ctx.tables:
                plain.append((4, self._apply))
            if ctx.may_leave and depth < 2:
                plain.append((1, self._leave))
        weights, makers = zip(*plain)
        ctx.hot.clear()
        made: s.Statement | None = self.rng.choices(makers, weights)[0](ctx, depth)
        return made

    def _assign(self, ctx: Context, depth: int) -> s.Statement | None:
        places = self.scalars(ctx, True)
        if not places:
            return None
        place = self.rng.choice(places)
        ctx.hot.append(place)
        kind = place.type
        if isinstance(kind, (t.Bit, t.Int)) and kind.width > 1 and self.chance(0.2):
            w = self.rng.randrange(1, kind.width)
            low = self.rng.randrange(kind.width - w + 1)
            place = s.Slice(place, low + w - 1, low, t.Bit(w))
            if w > 2 and self.chance(0.1) and "compound" in self.features:
                place = s.Slice(place, w - 2, 1, t.Bit(w - 2))
            kind = place.type
        if isinstance(kind, (t.Bit, t.Int)) and "compound" in self.features and self.chance(0.15):
            return s.Assign(place, self.expression(kind, ctx, 2), self.rng.choice(["+", "-", "&", "|", "^", "|+|", "|-|", "*"]))
        return s.Assign(place, self.expression(kind, ctx, self.rng.choice([1, 2, 3])))

    def _declare(self, ctx: Context, depth: int) -> s.Statement | None:
        kind: t.Type = self.scalar()
        if self.chance(0.2):
            kind = self.struct
        elif self.chance(0.1) and ctx.kind != "parser":
            kind = self.header_b
        made = s.Declare(self.name("v"), kind, self.expression(kind, ctx, 2))
        ctx.roots.append((s.Var(made.name, kind), True))
        return made

    def _invoke(self, ctx: Context, depth: int) -> s.Statement | None:
        callable_ = [*ctx.functions, *ctx.actions, *ctx.controls]
        if not callable_:
            return None
        p = self.rng.choice(callable_)
        arguments = self.arguments(p, ctx, 2)
        if arguments is None:
            return None
        return s.Invoke(s.Call(p.name if p.kind != "control" else f"{p.name}.apply", arguments))

    def _headers(self, ctx: Context, depth: int) -> s.Statement | None:
        """Validity, copies of compound values, stacks."""
        pick = self.rng.random()
        if pick < 0.25:
            headers = [
                h
                for h in self.compounds(ctx, lambda one: isinstance(one, t.Header), True)
                if not (isinstance(h, s.Member) and h.name == "a")
            ]
            return s.SetValidity(self.rng.choice(headers), False) if headers else None
        if pick < 0.45:
            headers = [
                h
                for h in self.compounds(ctx, lambda one: isinstance(one, t.Header), True)
                if not (isinstance(h, s.Member) and h.name == "a")
            ]
            if not headers:
                return None
            header = self.rng.choice(headers)
            assert isinstance(header.type, t.Header)
            made: list[s.Statement] = [s.SetValidity(header, True)]
            made += [s.Assign(s.Member(header, n, f), self.expression(f, ctx, 1)) for n, f in header.type.fields]
            return s.Block(made)
        if pick < 0.65:
            stacks = self.compounds(ctx, lambda one: isinstance(one, t.Stack), True)
            if stacks:
                return s.Shift(self.rng.choice(stacks), self.chance(0.5), self.rng.choice([1, 1, 2]))
        kinds = self.compounds(ctx, lambda _: True, True)
        kinds = [k for k in kinds if not (isinstance(k, s.Member) and k.name == "a") and k.type not in (self.headers, self.metadata)]
        if not kinds:
            return None
        place = self.rng.choice(kinds)
        return s.Assign(place, self.compound_value(place.type, ctx))

    def _if(self, ctx: Context, depth: int) -> s.Statement | None:
        if self.chance(0.4):
            headers = [
                h
                for h in self.compounds(ctx, lambda one: isinstance(one, t.Header), True)
                if not (isinstance(h, s.Member) and h.name == "a")
            ]
            if headers:
                header = self.rng.choice(headers)
                yes = self.block(replace(ctx, valid=[*ctx.valid, header]), self.rng.randrange(1, 4), depth - 1)
                return s.If(s.IsValid(header), yes, self.block(ctx, 1, depth - 1) if self.chance(0.3) else None)
        if ctx.tables and self.chance(0.15):
            hit: s.Expression = s.Hit(self.rng.choice(ctx.tables).name, self.chance(0.3))
            return s.If(hit, self.block(ctx, 2, depth - 1), self.block(ctx, 1, depth - 1) if self.chance(0.5) else None)
        no = self.block(ctx, self.rng.randrange(1, 3), depth - 1) if self.chance(0.4) else None
        return s.If(self.expression(t.BOOL, ctx, 2), self.block(ctx, self.rng.randrange(1, 4), depth - 1), no)

    def _switch(self, ctx: Context, depth: int) -> s.Statement | None:
        if ctx.tables and self.chance(0.4):
            table = self.rng.choice(ctx.tables)
            labels: list[str | None] = [a.name for a in table.actions if self.chance(0.7)]
            self.rng.shuffle(labels)
            branches: list[tuple[str | None, s.Block | None]] = [
                (label, None if self.chance(0.2) and i + 1 < len(labels) else self.block(ctx, self.rng.randrange(1, 3), depth - 1))
                for i, label in enumerate(labels)
            ]
            if self.chance(0.5) or not branches:
                branches.append((None, self.block(ctx, 1, depth - 1)))
            return s.SwitchAction(table.name, branches)
        kinds = [k for k in self.palette if isinstance(k, (t.Bit, t.Enum)) and t.width(k) <= 16]
        if not kinds:
            return None
        kind = self.rng.choice(kinds)
        values = list(dict.fromkeys(self.constant(kind).value for _ in range(4)))
        cases: list[tuple[list[s.Literal] | None, s.Block | None]] = []
        while values:
            some = [s.Literal(values.pop(), kind) for _ in range(min(len(values), self.rng.choice([1, 1, 2])))]
            cases.append((some, self.block(ctx, self.rng.randrange(1, 3), depth - 1)))
        if self.chance(0.6):
            cases.append((None, self.block(ctx, 1, depth - 1)))
        return s.Switch(self.expression(kind, ctx, 1), cases)

    def _for(self, ctx: Context, depth: int) -> s.Statement | None:
        kind = t.Bit(8)
        first = self.rng.randrange(3)
        last = first + self.rng.randrange(4)
        name = self.name("i")
        inner = replace(ctx, roots=[*ctx.roots, (s.Var(name, kind), False)], loop=True, may_leave=False, tables=[])
        body = self.block(inner, self.rng.randrange(1, 3), depth - 1)
        if self.chance(0.4):
            at = self.rng.randrange(len(body.body) + 1)
            body.body.insert(
                at,
                s.If(
                    self.expression(t.BOOL, replace(inner, roots=[*ctx.roots, (s.Var(name, kind), False)]), 2),
                    s.Block([s.Break(self.chance(0.5))]),
                    None,
                ),
            )
        return s.For(name, kind, first, last, body) if self.chance(0.5) else s.ForIn(name, kind, first, last, body)

    def _apply(self, ctx: Context, depth: int) -> s.Statement | None:
        return s.Apply(self.rng.choice(ctx.tables).name)

    def _leave(self, ctx: Context, depth: int) -> s.Statement | None:
        if ctx.kind != "function" and "exit" in self.features and self.chance(0.4):
            return s.Exit()
        return s.Return(None if ctx.result is None else self.expression(ctx.result, ctx, 2))

    # Declarations

    def procedure(self, kind: str, ctx: Context) -> s.Procedure:
        parameters = []
        for _ in range(self.rng.randrange(1 if kind != "action" else 0, 4)):
            which: t.Type = self.scalar()
            if kind != "action" and self.chance(0.12):
                which = self.struct
            elif kind != "action" and self.chance(0.1):
                which = self.header_b
            elif kind == "control" and self.chance(0.1):
                which = self.stack
            parameters.append(s.Parameter(self.name("p"), which, self.rng.choice(["in", "out", "inout", "inout"])))
        if kind == "action":
            parameters += [s.Parameter(self.name("d"), self.data_type(), "") for _ in range(self.rng.choice([0, 1, 2, 2, 3]))]
        roots = [(s.Var(p.name, p.type), p.direction in ("out", "inout")) for p in parameters]
        inner = replace(ctx, kind=kind, roots=[*ctx.roots, *roots])
        if kind == "function" and self.chance(0.8):
            inner.result = self.scalar()
        body: list[s.Statement] = []
        # What comes out has a value first.
        hidden = [p for p in parameters if p.direction == "out"]
        first = replace(inner, roots=[r for r in inner.roots if not any(r[0] == s.Var(p.name, p.type) for p in hidden)])
        for p in hidden:
            if not isinstance(p.type, (t.Stack, t.Union)):
                body.append(
                    s.Assign(
                        s.Var(p.name, p.type),
                        self.expression(p.type, first, 1) if not isinstance(p.type, COMPOUND) else self._fields(p.type, first),
                    )
                )
        rest = self.block(
            inner,
            self.rng.randrange(1, 4) if kind != "control" else self.rng.randrange(2, 5),
            2 if kind != "action" else self.rng.choice([0, 1]),
        )
        for p in parameters:
            if not p.direction and self.chance(0.85):
                used = self._consume(s.Var(p.name, p.type), inner)
                rest.body[:0] = [] if used is None else [used]
        body += rest.body
        if inner.result is not None and not (body and isinstance(body[-1], s.Return)):
            body.append(s.Return(self.expression(inner.result, inner, 2)))
        return s.Procedure(
            kind, self.name({"function": "f", "action": "act", "control": "ctl"}[kind]), parameters, s.Block(body), inner.result
        )

    def _consume(self, e: s.Expression, ctx: Context) -> s.Statement | None:
        """A statement that shows more of a value than its bits: order, width, sign."""
        places = [p for p in self.scalars(ctx, True) if isinstance(p.type, (t.Bit, t.Int))]
        if not places:
            return None
        place = self.rng.choice(places)
        kind = place.type
        assert isinstance(kind, (t.Bit, t.Int))
        base = e.type.base if isinstance(e.type, (t.Enum, t.New)) else e.type
        value = e if base == e.type else s.Cast(e, base)
        if isinstance(base, t.Bool) or self.chance(0.3):
            test = (
                value
                if isinstance(base, t.Bool)
                else s.Binary(self.rng.choice(["<", "<=", ">", ">=", "=="]), value, self.constant(base), t.BOOL)
            )
            return s.Assign(place, s.Conditional(test, self.expression(kind, ctx, 1), self.expression(kind, ctx, 1), kind))
        assert isinstance(base, (t.Bit, t.Int))
        pick = self.rng.random()
        if pick < 0.3:
            value = s.Binary(">>", value, s.Literal(self.rng.randrange(1, base.width + 1), t.NUMBER), base)
        elif pick < 0.5:
            value = s.Binary(self.rng.choice(["+", "-", "*", "|+|", "|-|"]), value, self.expression(base, ctx, 1), base)
        if base != kind:
            # The width changes first, by the value's own sign.
            wide = t.Int(kind.width) if isinstance(base, t.Int) and kind.width > 1 else t.Bit(kind.width)
            if isinstance(base, t.Int) and isinstance(wide, t.Bit):
                value = s.Cast(value, t.Bit(base.width))
            value = value if value.type == wide else s.Cast(value, wide)
            value = value if wide == kind else s.Cast(value, kind)
        return s.Assign(place, value)

    def _fields(self, kind: t.Type, ctx: Context) -> s.Expression:
        assert isinstance(kind, (t.Struct, t.Header))
        return s.Fields([self.expression(f, ctx, 1) for _, f in kind.fields], kind)
