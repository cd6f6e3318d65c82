"""Tables of random programs: keys, actions with their arguments, entries."""

from __future__ import annotations

from tools.oracle_programs import syntax as s
from tools.oracle_programs import types as t
from tools.oracle_programs.context import Context
from tools.oracle_programs.snippets import Snippets


def make(g: Snippets, ctx: Context, actions: list[s.Procedure]) -> s.Table | None:
    name = g.name("t")
    keys: list[s.Key] = []
    usable = [p for p in g.scalars(ctx, False) if t.width(p.type) <= 64]
    for i in range(g.rng.choice([0, 1, 1, 1, 2, 2, 3])):
        narrow = [p for p in usable if t.width(p.type) <= 8]
        e = g.rng.choice(narrow if narrow and g.chance(0.5) else usable)
        if g.chance(0.25) and isinstance(e.type, t.Bit):
            e = g.expression(t.Bit(e.type.width), ctx, 1)
        if isinstance(e, s.Literal):
            e = g.rng.choice(usable)
        kinds = ["exact", "exact"]
        if isinstance(e.type, t.Bit):
            kinds += ["ternary", "range", "optional"] + ["lpm"] * (
                2 if not any(k.kind == "lpm" for k in keys) and (g.odd_prefixes or e.type.width % 8 == 0) else 0
            )
        elif isinstance(e.type, t.Enum):
            kinds += ["ternary", "optional"] if g.chance(0.3) else []
        keys.append(s.Key(e, g.rng.choice(kinds), f"k{i}"))
    if sum(k.kind == "lpm" for k in keys) and any(k.kind in ("ternary", "range", "optional") for k in keys) and g.chance(0.5):
        for k in keys:
            k.kind = "exact" if k.kind == "lpm" else k.kind
    bound: list[s.TableAction] = []
    for action in g.rng.sample(actions, min(len(actions), g.rng.randrange(1, 4))):
        arguments = g.arguments(action, ctx, 1, only_directed=True)
        if arguments is not None:
            bound.append(s.TableAction(action.name, arguments))
    if not bound:
        return None
    bound.append(s.TableAction("NoAction", []))
    table = s.Table(name, keys, bound, None, False, [], g.rng.choice(["const", "runtime"]))
    if g.chance(0.7):
        table.default = _action_data(g, table, actions)
        table.constant_default = g.chance(0.5)
    if not table.constant_default and g.chance(0.5):
        table.runtime_default = _action_data(g, table, actions)
    seen: set[tuple[s.Match, ...]] = set()
    priorities = g.rng.sample(range(1, 60), 6)
    for _ in range(g.rng.randrange(1, 7) if keys else 0):
        matches = [_match(g, k) for k in keys]
        if tuple(matches) in seen or (table.how == "runtime" and all(m.any for m in matches) and any(x.kind == "exact" for x in keys)):
            continue
        seen.add(tuple(matches))
        action_name, data = _action_data(g, table, actions)
        table.entries.append(s.Entry(matches, action_name, data, priorities.pop()))
    return table


def _action_data(g: Snippets, table: s.Table, actions: list[s.Procedure]) -> tuple[str, list[int]]:
    name = g.rng.choice(table.actions[:-1] if g.chance(0.9) else table.actions).name
    if name == "NoAction":
        return name, []
    action = next(a for a in actions if a.name == name)
    return name, [g.constant(p.type).value for p in action.parameters if not p.direction]


def _match(g: Snippets, key: s.Key) -> s.Match:
    kind = key.expression.type
    w = t.width(kind)
    full = (1 << w) - 1
    value = t.to_bits(g.constant(kind).value, kind)
    if key.kind == "exact":
        return s.Match("exact", value)
    if key.kind == "lpm":
        length = g.rng.choice([w, w, g.rng.randrange(w + 1), w // 2])
        value = (value >> (w - length)) << (w - length)
        return s.Match("lpm", value, length, length == 0)
    if g.chance(0.15):
        return s.Match(key.kind, any=True, other=full if key.kind == "range" else 0)
    if key.kind == "ternary":
        mask = g.rng.choice([full, g.bits(w), full ^ g.bits(w)])
        return s.Match("ternary", value & mask, mask, mask == 0)
    if key.kind == "range":
        other = t.to_bits(g.constant(kind).value, kind)
        low, high = min(value, other), max(value, other)
        return s.Match("range", low, high, low == 0 and high == full)
    return s.Match("optional", value)
