"""Parsers of random programs: what is extracted, and by which values."""

from __future__ import annotations

from dataclasses import replace

from tools.oracle_programs import syntax as s
from tools.oracle_programs import types as t
from tools.oracle_programs.context import Context
from tools.oracle_programs.snippets import Snippets


def _select(g: Snippets, keys: list[s.Expression], states: list[str], last: str) -> list[s.Case]:
    cases = []
    for _ in range(g.rng.randrange(1, 4)):
        sets: list[tuple[str, int, int]] = []
        for key in keys:
            kind = key.type
            value, other = g.constant(kind).value, g.constant(kind).value
            which = g.rng.choice(["value", "value", "any", "mask", "range"])
            wide = "wide_select" in g.features
            if which == "any" and not wide and (len(keys) == 1 or all(one[0] == "any" for one in sets)):
                which = "value"
            if which == "mask" and (not isinstance(kind, t.Bit) or other == 0):
                which = "value"
            if which == "range":
                if not isinstance(kind, (t.Bit, t.Int)) or (isinstance(kind, t.Int) and not wide):
                    which = "value"
                else:
                    value, other = min(value, other), max(value, other)
                    if not wide and (t.width(kind) > 16 or other - value == (1 << t.width(kind)) - 1):
                        which = "value"
            sets.append((which, value, other))
        cases.append(s.Case(sets, g.rng.choice(states)))
    if "wide_select" not in g.features or g.chance(0.9):
        cases.append(s.Case(None, last))
    return cases


def states(g: Snippets) -> list[s.State]:
    hdr = s.Var("hdr", g.headers)
    get = {n: s.Member(hdr, n, k) for n, k in g.headers.fields}
    everything = Context("parser", [(s.Var("meta", g.metadata), True), (get["a"], True)], functions=g.functions, may_leave=False)
    start: list[s.Statement] = []
    for place in g.scalars(replace(everything, roots=[(s.Var("meta", g.metadata), True)]), True):
        start.append(s.Assign(place, g.constant(place.type)))
    start.append(s.Extract(get["a"]))
    follow: list[str] = [n for n in ("b", "s", "u", "us") if n in get]
    names = {n: f"parse_{n}" for n in follow}
    made: list[s.State] = []

    def leave(here: str, ctx: Context) -> tuple[list[s.Expression], list[s.Case]]:
        later = [names[n] for n in follow[follow.index(here) + 1 :]] if here else list(names.values())
        targets = later + ["accept"]
        if g.chance(0.25) and not here:
            targets = later or targets
        places = [p for p in g.scalars(ctx, False) if t.width(p.type) <= 32]
        if g.chance(0.2 if here else 0.05) or not places:
            return [], [s.Case(None, g.rng.choice(targets))]
        keys = [g.rng.choice(places) for _ in range(g.rng.choice([1, 1, 2, 3]))]
        return keys, _select(g, keys, targets, g.rng.choice(targets))

    ctx = replace(everything, roots=list(everything.roots))
    body = [*start, *g.block(ctx, g.rng.randrange(0, 3), 0).body]
    if g.errors and g.chance(0.6):
        body.append(s.Verify(g.expression(t.BOOL, everything, 2), g.rng.choice(g.errors)))
    keys, cases = leave("", everything)
    made.append(s.State("start", body, keys, cases))
    for n in follow:
        inside = replace(everything, roots=list(everything.roots), valid=list(everything.valid))
        if n == "b":
            body = []
            if g.chance(0.3):
                kind = t.Bit(g.rng.choice([3, 8, 13]))
                ahead = s.Declare(g.name("v"), kind, s.Lookahead(kind))
                body.append(ahead)
                inside.roots.append((s.Var(ahead.name, kind), False))
            body.append(s.Extract(get["b"]))
            inside.valid.append(get["b"])
            body += g.block(replace(inside, roots=list(inside.roots)), g.rng.randrange(0, 3), 0).body
            keys, cases = leave(n, inside)
        elif n == "s":
            body = [s.Extract(get["s"])]
            last = s.Member(get["s"], "last", g.element)
            later = [names[m] for m in follow[follow.index(n) + 1 :]] + ["accept"]
            keys = [s.Member(last, "more", t.Bit(1))]
            cases = [s.Case([("value", 1, 0)], names[n]), s.Case(None, g.rng.choice(later))]
            bytes_ = [p for p in g.scalars(inside, True) if isinstance(p.type, t.Bit)]
            if bytes_ and g.chance(0.3):
                counted = g.rng.choice(bytes_)
                index: s.Expression = s.LastIndex(get["s"])
                body.append(s.Assign(counted, index if counted.type == index.type else s.Cast(index, counted.type)))
            if g.chance(0.3):
                body.append(
                    s.Assign(
                        s.Member(last, g.element.fields[1][0], g.element.fields[1][1]),
                        g.expression(g.element.fields[1][1], inside, 1),
                    )
                )
        else:
            union = g.union
            member, kind_of = g.rng.choice(union.fields)
            at: s.Expression = get[n] if n == "u" else s.Member(get[n], "next", union)
            body = [s.Extract(s.Member(at, member, kind_of))]
            if n == "us" and g.chance(0.7):
                other, other_kind = g.rng.choice(union.fields)
                body.append(s.Extract(s.Member(s.Member(get[n], "next", union), other, other_kind)))
            keys, cases = leave(n, inside)
        made.append(s.State(names[n], body, keys, cases))
    return made
