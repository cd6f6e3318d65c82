"""Random programs: their declarations around random code, and packets for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tools.oracle_programs import parsers, tables
from tools.oracle_programs import syntax as s
from tools.oracle_programs import types as t
from tools.oracle_programs.context import Context
from tools.oracle_programs.once import once
from tools.oracle_programs.snippets import Snippets

WIDTHS = (1, 2, 3, 4, 5, 7, 8, 8, 8, 9, 12, 13, 16, 16, 17, 24, 31, 32, 32, 33, 40, 48, 63, 64, 65, 100, 128)
PORTS = (1, 2, 3, 4, 5)


class Generator(Snippets):
    def __init__(self, seed: int | str, features: Sequence[str] | None = None, size: int = 1) -> None:
        super().__init__(seed, features)
        self.size = size
        self.program = self._program()

    def _header(self, name: str, count: int, first: list[tuple[str, t.Type]] | None = None) -> t.Header:
        fields: list[tuple[str, t.Type]] = list(first or [])
        for i in range(count):
            kind = self.scalar()
            fields.append((f"f{i}", kind if not isinstance(kind, t.Bool) else t.Bit(1)))
        left = -sum(t.width(k) for _, k in fields) % 8
        if left:
            fields.append(("pad", t.Bit(left)))
        self.rng.shuffle(fields) if first is None else None
        return t.Header(name, tuple(fields))

    def _palette(self) -> list[t.Scalar]:
        rng = self.rng
        bits: list[t.Scalar] = [t.Bit(w) for w in rng.sample(WIDTHS, 3)]
        ints: list[t.Scalar] = [t.Int(max(w, 2)) for w in rng.sample(WIDTHS, rng.choice([1, 2]))]
        kinds = [*bits, *ints, t.BOOL, t.Bit(8)]
        self.named: list[t.Enum | t.New | t.Struct | t.Header | t.Union] = []
        self.typedefs: list[t.Bit | t.Int] = []
        if self.chance(0.6):
            base = t.Bit(rng.choice([2, 4, 8, 13]))
            values = rng.sample(range(1 << base.width), min(4, 1 << base.width))
            enum = t.Enum("enum_t", base, tuple((f"m{i}", v) for i, v in enumerate(values)))
            self.named.append(enum)
            kinds.append(enum)
        if self.chance(0.6):
            bases: list[t.Bit | t.Int] = [t.Bit(rng.choice(WIDTHS)), t.Bit(8), t.Int(max(2, rng.choice(WIDTHS)))]
            new = t.New("new_t", rng.choice(bases))
            self.named.append(new)
            kinds.append(new)
        if self.chance(0.6):
            alias: t.Bit | t.Int = (
                t.Bit(rng.choice(WIDTHS), "alias_t") if self.chance(0.5) else t.Int(max(2, rng.choice(WIDTHS)), "alias_t")
            )
            self.typedefs.append(alias)
            kinds.append(alias)
        return kinds

    def _program(self) -> s.Program:
        rng = self.rng
        self.palette = self._palette()
        self.constants = []
        for i in range(rng.randrange(3)):
            kind = rng.choice([k for k in self.palette if isinstance(k, (t.Bit, t.Int))])
            self.constants.append((f"C{i}", kind, s.Cast(self.big(2)[0], kind) if self.chance(0.6) else self.constant(kind)))
        self.errors = ["Wrong", "Odd"] if self.chance(0.3) else []
        self.struct = t.Struct("s_t", tuple((f"g{i}", self.scalar()) for i in range(rng.randrange(1, 4))))
        header_a = self._header("a_t", rng.randrange(5, 9))
        self.header_b = self._header("b_t", rng.randrange(1, 4))
        self.element = self._header("e_t", rng.randrange(1, 3), [("more", t.Bit(1))])
        self.stack = t.Stack(self.element, rng.choice([2, 3, 4]))
        self.union = t.Union("u_t", (("x", self._header("x_t", 1)), ("y", self._header("y_t", 2))))
        self.named += [self.struct, header_a, self.header_b, self.element, *(k for _, k in self.union.fields), self.union]  # type: ignore[list-item]
        fields: list[tuple[str, t.Type]] = [("a", header_a), ("b", self.header_b), ("c", self.header_b)]
        if self.chance(0.7):
            fields.append(("s", self.stack))
            if self.chance(0.3):
                fields.append(("s2", self.stack))
        if self.chance(0.4):
            fields.append(("u", self.union))
        if "union_stack" in self.features:
            fields.append(("us", t.Stack(self.union, 2)))
        self.headers = t.Struct("headers_t", tuple(fields))
        inner: list[tuple[str, t.Type]] = [(f"m{i}", self.scalar()) for i in range(rng.randrange(2, 7))]
        self.metadata = t.Struct("meta_t", (*inner, ("n", self.struct)))
        hdr, meta = s.Var("hdr", self.headers), s.Var("meta", self.metadata)

        self.functions = []
        for _ in range(rng.randrange(4)):
            self.functions.append(self.procedure("function", Context("function", [], functions=list(self.functions))))
        controls: list[s.Procedure] = []
        for _ in range(rng.choice([0, 0, 1, 2])):
            controls.append(self.procedure("control", Context("control", [], functions=self.functions)))
        states = parsers.states(self)
        base = Context("ingress", [(hdr, True), (meta, True)], functions=self.functions)
        locals_: list[s.Declare] = []
        for _ in range(rng.randrange(4)):
            kind_of: t.Type = self.scalar() if self.chance(0.8) else self.struct
            made = s.Declare(self.name("l"), kind_of, self.expression(kind_of, replace(base, functions=[]), 1))
            locals_.append(made)
            base.roots.append((s.Var(made.name, kind_of), True))
        actions: list[s.Procedure] = []
        for _ in range(rng.randrange(1, 5)):
            actions.append(self.procedure("action", replace(base, actions=list(actions), roots=list(base.roots))))
        made_tables: list[s.Table] = []
        for _ in range(rng.choice([0, 1, 2, 2, 3])):
            table = tables.make(self, base, actions)
            if table is not None:
                made_tables.append(table)
        ctx = replace(base, actions=actions, controls=controls, tables=list(made_tables), roots=list(base.roots))
        ingress = self.block(ctx, rng.randrange(4, 9) * self.size, 3)
        # A table is applied once.
        used: set[str] = set()
        ingress = once(ingress, used)
        for table in made_tables:
            if table.name not in used:
                ingress.body.append(s.Apply(table.name))
        ingress.body.insert(0, s.SetPort(rng.choice(PORTS)))
        if self.errors:
            flag = [p for p in self.scalars(base, True) if p.type == t.Bit(8)]
            if flag:
                error = rng.choice([*self.errors, "PacketTooShort", "StackOutOfBounds", "NoError"])
                ingress.body.insert(
                    1, s.If(s.ParserError(error, self.chance(0.7)), s.Block([s.Assign(rng.choice(flag), s.Literal(0xEE, t.Bit(8)))]), None)
                )
        if self.chance(0.2):
            ingress.body.append(s.If(self.expression(t.BOOL, base, 1), s.Block([s.Drop()]), None))
        elif self.chance(0.3):
            ingress.body.append(s.If(self.expression(t.BOOL, base, 1), s.Block([s.SetPort(rng.choice(PORTS))]), None))
        # What only variables hold becomes visible.
        ingress.body += self._show(base, header_a)
        egress = self.block(Context("egress", [(hdr, True), (meta, True)], functions=self.functions), rng.randrange(3), 2)
        members: list[s.Expression] = [s.Member(hdr, n, k) for n, k in self.headers.fields]
        if self.chance(0.5):
            rng.shuffle(members)
        emits: list[s.Expression] = [hdr] if self.chance(0.3) else members
        return s.Program(
            self.typedefs, self.named, self.errors, self.constants, self.headers, self.metadata, self.functions, controls, states, actions,
            locals_, made_tables, ingress, egress, emits, [], set(self.features),
        )  # fmt: skip

    def _show(self, ctx: Context, header: t.Header) -> list[s.Statement]:
        hidden = [
            p for p in self.scalars(ctx, False) if not (isinstance(p, s.Member) and isinstance(p.base, s.Member) and p.base.name == "a")
        ]
        into = self.scalars(replace(ctx, roots=[r for r in ctx.roots if r[0] == s.Var("hdr", self.headers)]), True)
        made: list[s.Statement] = []
        for place in hidden:
            same = [p for p in into if p.type == place.type]
            if isinstance(place.type, t.Bit) and same:
                target = self.rng.choice(same)
                made.append(s.Assign(target, s.Binary("^", target, place, place.type)))
            elif isinstance(place.type, t.Bool):
                ones = [p for p in into if p.type == t.Bit(1)]
                if ones:
                    made.append(s.Assign(self.rng.choice(ones), s.Cast(place, t.Bit(1))))
            elif same and self.chance(0.5):
                made.append(s.Assign(self.rng.choice(same), place))
        return made

    def packets(self, count: int) -> list[s.Packet]:
        """Packets for the program, many of which its entries and cases match."""
        hints = _hints(self.program)
        made: list[s.Packet] = []
        size = sum(t.width(k) for _, k in self.headers.fields if isinstance(k, t.Header)) // 8
        for _ in range(count):
            data = b""
            header = self.headers.fields[0][1]
            assert isinstance(header, t.Header)
            number = 0
            for name, kind in header.fields:
                w = t.width(kind)
                value = self.bits(w) if self.chance(0.7) else self.rng.getrandbits(w)
                if hints.get(name) and self.chance(0.6):
                    value = t.to_bits(self.rng.choice(hints[name]), kind)
                number = (number << w) | value
            data = number.to_bytes(t.width(header) // 8, "big")
            rest = self.rng.choice([0, self.rng.randrange(40), size + 30, size + 60, size + 60])
            data += bytes(self.rng.getrandbits(8) & self.rng.choice([0xFF, 0xFF, 0x7F]) for _ in range(rest))
            if self.chance(0.03):
                data = data[: self.rng.randrange(1, len(data) + 1)]
            made.append(s.Packet(0, data))
        return made


def _hints(program: s.Program) -> dict[str, list[int]]:
    """Values of hdr.a's fields at which entries or cases match."""
    found: dict[str, list[int]] = {}

    def note(e: s.Expression, value: int) -> None:
        if isinstance(e, s.Member) and isinstance(e.base, s.Member) and e.base.name == "a":
            found.setdefault(e.name, []).append(value)

    for table in program.tables:
        for entry in table.entries:
            for key, match in zip(table.keys, entry.matches):
                note(key.expression, match.value)
    for state in program.states:
        for case in state.cases:
            for key_expression, (_, low, _) in zip(state.keys, case.sets or []):
                note(key_expression, low)
    return found
