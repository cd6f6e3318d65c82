"""Table entries drawn so that packets meet them, as lines of STF that both switches read."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from tools.bmv2 import runtime, stf
from tools.bmv2.program import Key, Program, Table
from tools.differential.suite import Case
from tools.differential.walk import Walker

EACH_TABLE = 8
PORTS = 8


def draw(program: Program, other: Program, walker: Walker, rng: random.Random, case: Case, setup: Sequence[str]) -> list[str]:
    """Entries for every table but the case's `fixed` ones, beside those of the setup. The values of all are learnt, so that packets
    will have them. `other` is the program as another compiler translates it."""
    lines: list[str] = []
    # p4c makes a mask of a key `field & constant`: BMv2 ignores an entry's other bits there, where `&` lets such an entry match nothing.
    masks = {table.name: [key.mask for key in table.keys] for table in other.tables}
    seen = _learn_setup(program, walker, setup)
    for table in program.tables:
        if not table.keys or table.const_entries or any(table.name.endswith(f) for f in case.fixed):
            continue
        if table.profile is not None:
            lines += _profile(table, rng, case)
        else:
            keys = [replace(k, mask=m) for k, m in zip(table.keys, masks.get(table.name, [None] * len(table.keys)), strict=True)]
            lines += _entries(replace(table, keys=tuple(keys)), walker, rng, case, seen[table.name])
    return lines


def _learn_setup(program: Program, walker: Walker, setup: Sequence[str]) -> dict[str, list[list[runtime.Match]]]:
    """The keys of the setup's entries, by table."""
    keys: dict[str, list[list[runtime.Match]]] = defaultdict(list)
    for statement in stf.read("\n".join(setup)):
        if statement.word == "add":
            # Up to the action's parenthesis all is keys, but for the action's name and a priority.
            name, *words = statement.rest.partition("(")[0].split()
            table = program.table(name)
            key = [stf.omitted(k) for k in table.keys]
            for word in words:
                field, colon, text = word.partition(":")
                if colon:
                    at = stf.find_key(field, table)
                    key[at] = _match(text, table.keys[at])
                    value = text.split("/")[0]
                    if "*" not in value and ".." not in value:
                        walker.learn(_pool(table.keys[at], walker), stf.number(value.split("&&&")[0]))
            keys[table.name].append(key)
    return keys


def _pool(key: Key, walker: Walker) -> str:
    header, name = key.target
    return f"{walker.type_of.get(header, header)}.{name}"


def _entries(table: Table, walker: Walker, rng: random.Random, case: Case, seen: list[list[runtime.Match]]) -> list[str]:
    lines = []
    for number in range(min(EACH_TABLE, max(table.size // 2, 1))):
        keys = [_key(key, walker, rng) for key in table.keys]
        identity = [stf.omitted(k) if text is None else _match(text, k) for text, k in zip(keys, table.keys, strict=True)]
        if identity in seen:
            continue
        seen.append(identity)
        action = rng.choice(table.actions)
        arguments = ", ".join(f"{name}:{_argument(name, width, rng, case):#x}" for name, width in action.parameters)
        priority = f" {1000 + number}" if table.prioritised else ""
        words = " ".join(f"{stf.word(key.name)}:{text}" for key, text in zip(table.keys, keys, strict=True) if text is not None)
        lines.append(f"add {table.name}{priority} {words} {action.name}({arguments})")
    return lines


def _profile(table: Table, rng: random.Random, case: Case) -> list[str]:
    """Members, and for a selector groups of one to four of them; every small value of the key gets one."""
    members, lines = 8, []
    for _ in range(members):
        action = rng.choice(table.actions)
        arguments = " ".join(f"{_argument(name, width, rng, case):#x}" for name, width in action.parameters)
        lines.append(f"act_prof_create_member {table.profile} {action.name} {arguments}".rstrip())
    if table.selector:
        for group in range(4):
            lines.append(f"act_prof_create_group {table.profile}")
            lines += [f"act_prof_add_member_to_group {table.profile} {m} {group}" for m in rng.sample(range(members), group + 1)]
    command, targets = ("table_indirect_add_with_group", 4) if table.selector else ("table_indirect_add", members)
    if len(table.keys) == 1 and table.keys[0].kind == "exact":
        values = rng.sample(range(1 << min(table.keys[0].width, 8)), min(1 << min(table.keys[0].width, 8), 64))
        lines += [f"{command} {table.name} {value:#x} => {rng.randrange(targets)}" for value in values]
    return lines


def _argument(name: str, width: int, rng: random.Random, case: Case) -> int:
    if name in case.small:
        return rng.randrange(min(16, 1 << width))
    if width == 9:
        return rng.randrange(PORTS + 1) if rng.random() < 0.9 else rng.randrange(510)
    return rng.getrandbits(width) if rng.random() < 0.7 else rng.randrange(min(16, 1 << width))


def _key(key: Key, walker: Walker, rng: random.Random) -> str | None:
    """A key field's text; None leaves it out, which matches anything."""
    pool = _pool(key, walker)
    width = key.width
    value = rng.randrange(PORTS + 1) if width == 9 else walker.draw(rng, pool, width)
    if key.mask is not None:
        value &= key.mask
    everything = (1 << width) - 1
    if key.kind == "lpm":
        prefix = rng.choice((width, width, width - width // 4, width // 2, rng.randrange(1, width + 1)))
        _learn(walker, rng, pool, value, everything >> prefix)
        return f"{value & ~(everything >> prefix) & everything:#x}/{prefix}"
    if key.kind == "ternary":
        if rng.random() < 0.25:
            return None
        mask = rng.choice((everything, everything & ~(everything >> (width // 2)), rng.getrandbits(width) or 1, 1))
        _learn(walker, rng, pool, value, everything & ~mask)
        return f"{value & mask:#x}&&&{mask:#x}"
    if key.kind == "range":
        high = rng.choice((value, min(value + rng.randrange(1 + (everything >> 2)), everything), everything))
        _learn(walker, rng, pool, value, 0)
        walker.learn(pool, high)
        return f"{value:#x}..{high:#x}"
    if key.kind == "optional" and rng.random() < 0.3:
        return None
    _learn(walker, rng, pool, value, 0)
    return f"{value:#x}"


def _match(text: str, key: Key) -> runtime.Match:
    value, _, prefix = text.partition("/")
    return stf.key_match(value, int(prefix) if prefix else None, key)


def _learn(walker: Walker, rng: random.Random, pool: str, value: int, free: int) -> None:
    """The value, and one that differs in the bits not looked at."""
    walker.learn(pool, value)
    if free:
        walker.learn(pool, value ^ (rng.getrandbits(free.bit_length()) & free))
