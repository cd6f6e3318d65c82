"""Plays packet tests (STF) on a running simple_switch. The commands are those of switch/node/stf/src/lib.rs."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from dataclasses import dataclass, field

from tools.bmv2 import runtime
from tools.bmv2.process import Bmv2
from tools.bmv2.program import Key, Program, Table, UnknownName, find
from tools.bmv2.runtime import Refused

# STF lets the larger priority win, BMv2 the smaller.
_HIGHEST = 1_000_000
# How long a packet may be under way inside the switch, and for how long nothing more comes when it is through.
_UNDER_WAY_S = 10.0
_QUIET_S = 0.05
_WAIT_S = 1.1

_TOKEN = re.compile(r'\s*("[^"]*"|[A-Za-z0-9_$.*\[\]&-]+|[:,()/=<>!])')
_CLI = {
    "mirroring_add",
    "mirroring_add_mc",
    "mirroring_delete",
    "mirroring_get",
    "mc_mgrp_create",
    "mc_node_create",
    "mc_node_update",
    "mc_node_associate",
    "counter_read",
    "counter_write",
    "register_read",
    "register_write",
    "register_reset",
    "meter_get_rates",
    "meter_set_rates",
    "meter_array_set_rates",
    "act_prof_create_member",
    "act_prof_create_group",
    "act_prof_add_member_to_group",
    "table_indirect_add",
    "table_indirect_add_with_group",
}


class ScriptError(Exception):
    """A script that cannot be read, or that does not fit the program; the message names the line."""


@dataclass
class Outcome:
    """What a run showed; the test has passed when there are no differences."""

    differences: list[str] = field(default_factory=list)
    received: dict[int, list[bytes]] = field(default_factory=lambda: defaultdict(list))


@dataclass(frozen=True)
class Statement:
    line: int
    word: str
    rest: str


def read(text: str) -> list[Statement]:
    statements = []
    for number, line in enumerate(text.splitlines(), 1):
        content = line.split("#")[0].strip()
        if content:
            word, rest = (re.split(r"\s+", content, maxsplit=1) + [""])[:2]
            statements.append(Statement(number, word.lower(), rest.strip()))
    return statements


def packets_of(text: str) -> list[tuple[int, bytes]]:
    """The packets that a script sends."""
    return [_packet(s.rest) for s in read(text) if s.word == "packet"]


def play(switch: Bmv2, program: Program, text: str) -> Outcome:
    """Plays a script from the switch's initial state."""
    player = _Player(switch, program)
    try:
        for statement in read(text):
            try:
                player.play(statement)
            except (ValueError, IndexError, KeyError, UnknownName, Refused) as e:
                raise ScriptError(f"line {statement.line}: {e}") from e
        return player.finish()
    except OSError:
        switch.settle_death()
        switch.check()
        raise


class _Player:
    def __init__(self, switch: Bmv2, program: Program) -> None:
        self.switch = switch
        self.program = program
        self.outcome = Outcome()
        self.sent = 0
        self.expected: dict[int, list[tuple[int, str]]] = {}
        self.entries: dict[str, tuple[str, int]] = {}
        self.groups: dict[int, int] = {}
        self.nodes: list[int] = []
        self.moving = False
        # A second passes between a check and the next packet, as in the switch's own packet tests (and in p4c's): meters see that time.
        self.checked = False

    def play(self, statement: Statement) -> None:
        word, rest = statement.word, statement.rest
        if word == "packet":
            if self.checked:
                time.sleep(_WAIT_S)
                self.checked = False
            port, data = _packet(rest)
            self.expected.setdefault(port, [])
            self.switch.packets.send([(port, data)])
            self.moving = True
            return
        if word == "expect":
            number_, _, pattern = rest.partition(" ")
            self.expected.setdefault(int(number_), []).append((statement.line, re.sub(r"\s", "", pattern).lower()))
            return
        if word == "no_packet":
            return
        self.settle()
        if word == "wait":
            time.sleep(_WAIT_S)
        elif word == "remove":
            for table in self.program.tables:
                if not table.const_entries:
                    self.switch.runtime.mt_clear_entries(table.name)
        elif word == "add":
            self.add(_tokens(rest))
        elif word == "setdefault":
            self.set_default(_tokens(rest))
        elif word == "check_counter":
            self.check_counter(statement.line, _tokens(rest))
            self.checked = True
        elif word in _CLI:
            getattr(self, word)(*re.sub(r"\s*:\s*", ":", rest).split())
        else:
            raise ValueError(f"unknown command {word}")

    def settle(self) -> None:
        """Wait until the switch has forwarded everything: all expected packets have come, and no others come."""
        if not self.moving:
            return
        self.switch.packets.wait(sum(map(len, self.expected.values())), _UNDER_WAY_S)
        self.switch.packets.settle(_QUIET_S)
        self.switch.check()
        self.moving = False

    def finish(self) -> Outcome:
        self.moving = True
        self.settle()
        for port, data in self.switch.packets.take():
            self.outcome.received[port].append(data)
        for port, expected in self.expected.items():
            received = self.outcome.received.get(port, [])
            if len(received) != len(expected):
                self.outcome.differences.append(f"port {port}: expected {len(expected)} packets, received {len(received)}")
                continue
            for (line, pattern), data in zip(expected, received, strict=True):
                if not matches(pattern, data):
                    self.outcome.differences.append(f"line {line}, port {port}: expected {pattern}, received {data.hex()}")
        return self.outcome

    # Tables

    def add(self, tokens: list[str]) -> None:
        table = self.program.table(tokens.pop(0))
        priority = int(tokens.pop(0)) if tokens[0].isdigit() and tokens[1:2] != [":"] else 0
        keys = {i: omitted(key) for i, key in enumerate(table.keys)}
        while tokens[1:2] == [":"]:
            name, _, value = tokens.pop(0), tokens.pop(0), tokens.pop(0)
            prefix = None
            if tokens[:1] == ["/"]:
                prefix = int(tokens[1])
                del tokens[:2]
            i = find_key(name, table)
            keys[i] = key_match(value, prefix, table.keys[i])
        action, data = self._action(table, tokens)
        wanted = _HIGHEST - priority if table.prioritised else 0
        key = list(keys.values())
        if table.profile is None:
            entry = self.switch.runtime.mt_add_entry(table.name, key, action, data, wanted)
        else:
            entry = self._add_indirect(table, table.profile, key, wanted, action, data)
        if tokens[:1] == ["="]:
            self.entries[tokens[1]] = (table.name, entry)
        elif tokens:
            raise ValueError(f"unexpected {tokens[0]}")

    def _add_indirect(self, table: Table, profile: str, key: list[runtime.Match], priority: int, action: str, data: list[bytes]) -> int:
        """An entry with an action of its own, in a table with an action profile."""
        member = self.switch.runtime.mt_act_prof_add_member(profile, action, data)
        return self.switch.runtime.mt_indirect_add_entry(table.name, key, member, priority)

    def set_default(self, tokens: list[str]) -> None:
        table = self.program.table(tokens.pop(0))
        action, data = self._action(table, tokens)
        if table.profile is None:
            self.switch.runtime.mt_set_default_action(table.name, action, data)
        else:
            member = self.switch.runtime.mt_act_prof_add_member(table.profile, action, data)
            self.switch.runtime.mt_indirect_set_default_member(table.name, member)

    def _action(self, table: Table, tokens: list[str]) -> tuple[str, list[bytes]]:
        action = table.action(tokens.pop(0))
        if tokens.pop(0) != "(":
            raise ValueError(f"expected ( after {action.name}")
        given: dict[str, str] = {}
        while (token := tokens.pop(0)) != ")":
            if token != ",":
                if tokens.pop(0) != ":":
                    raise ValueError(f"expected : after {token}")
                given[token] = tokens.pop(0)
        if given.keys() != {name for name, _ in action.parameters}:
            raise ValueError(f"action {action.name} has the parameters {[name for name, _ in action.parameters]}, not {list(given)}")
        return action.name, [to_bytes(number(given[name]), width) for name, width in action.parameters]

    def check_counter(self, line: int, tokens: list[str]) -> None:
        array = self.program.counter(tokens[0])
        index = tokens[2].lstrip("$")
        if array.table is None:
            packets, length = self.switch.runtime.counter_read(array.name, number(index))
        else:
            packets, length = self.switch.runtime.mt_read_counter(*self.entries[index])
        if len(tokens) == 4:
            return
        value = {"packets": packets, "bytes": length}[tokens[4].lower()]
        symbol, wanted = "".join(tokens[5:-1]), number(tokens[-1])
        holds = {
            "==": value == wanted,
            "!=": value != wanted,
            "<": value < wanted,
            "<=": value <= wanted,
            ">": value > wanted,
            ">=": value >= wanted,
        }[symbol]
        if not holds:
            self.outcome.differences.append(f"line {line}: expected {array.name}({index}) {tokens[4]} {symbol} {wanted}, it is {value}")

    # Commands of BMv2's CLI

    def mirroring_add(self, session: str, port: str) -> None:
        self.switch.runtime.mirroring_session_add(number(session), port=number(port))

    def mirroring_add_mc(self, session: str, group: str) -> None:
        self.switch.runtime.mirroring_session_add(number(session), group=number(group))

    def mirroring_delete(self, session: str) -> None:
        self.switch.runtime.mirroring_session_delete(number(session))

    def mirroring_get(self, session: str) -> None:
        self.switch.runtime.mirroring_session_get(number(session))

    def mc_mgrp_create(self, group: str) -> None:
        self.groups[number(group)] = self.switch.runtime.mc_mgrp_create(number(group))

    def mc_node_create(self, rid: str, *ports: str) -> None:
        self.nodes.append(self.switch.runtime.mc_node_create(number(rid), map(number, ports)))

    def mc_node_update(self, node: str, *ports: str) -> None:
        self.switch.runtime.mc_node_update(self.nodes[number(node)], map(number, ports))

    def mc_node_associate(self, group: str, node: str) -> None:
        self.switch.runtime.mc_node_associate(self.groups[number(group)], self.nodes[number(node)])

    def counter_read(self, counter: str, index: str) -> None:
        self.switch.runtime.counter_read(self.program.counter(counter).name, number(index))

    def counter_write(self, counter: str, index: str, packets: str, length: str) -> None:
        self.switch.runtime.counter_write(self.program.counter(counter).name, number(index), number(packets), number(length))

    def register_read(self, register: str, index: str) -> None:
        self.switch.runtime.register_read(self.program.register(register).name, number(index))

    def register_write(self, register: str, index: str, value: str) -> None:
        self.switch.runtime.register_write(self.program.register(register).name, number(index), number(value))

    def register_reset(self, register: str) -> None:
        self.switch.runtime.register_reset(self.program.register(register).name)

    def meter_get_rates(self, meter: str, index: str) -> None:
        self.switch.runtime.meter_get_rates(self.program.meter(meter).name, number(index))

    def meter_set_rates(self, meter: str, index: str, *rates: str) -> None:
        self.switch.runtime.meter_set_rates(self.program.meter(meter).name, number(index), _rates(rates))

    def meter_array_set_rates(self, meter: str, *rates: str) -> None:
        self.switch.runtime.meter_array_set_rates(self.program.meter(meter).name, _rates(rates))

    def act_prof_create_member(self, profile: str, action: str, *values: str) -> None:
        """Members and groups are numbered from 0 in each profile."""
        found = self.program.actions[find("action", action, [a.name for a in self.program.actions])]
        data = [to_bytes(number(v), width) for v, (_, width) in zip(values, found.parameters, strict=True)]
        self.switch.runtime.mt_act_prof_add_member(self._profile(profile), found.name, data)

    def act_prof_create_group(self, profile: str) -> None:
        self.switch.runtime.mt_act_prof_create_group(self._profile(profile))

    def act_prof_add_member_to_group(self, profile: str, member: str, group: str) -> None:
        self.switch.runtime.mt_act_prof_add_member_to_group(self._profile(profile), number(member), number(group))

    def table_indirect_add(self, table: str, *words: str) -> None:
        found, key, target, priority = self._indirect(table, words)
        self.switch.runtime.mt_indirect_add_entry(found.name, key, target, priority)

    def table_indirect_add_with_group(self, table: str, *words: str) -> None:
        found, key, target, priority = self._indirect(table, words)
        self.switch.runtime.mt_indirect_ws_add_entry(found.name, key, target, priority)

    def _indirect(self, name: str, words: tuple[str, ...]) -> tuple[Table, list[runtime.Match], int, int]:
        """`KEY... => HANDLE [PRIORITY]`, keys as BMv2's CLI writes them."""
        table = self.program.table(name)
        arrow = words.index("=>")
        key = [_cli_key(word, k) for word, k in zip(words[:arrow], table.keys, strict=True)]
        return table, key, number(words[arrow + 1]), number(words[arrow + 2]) if len(words) > arrow + 2 else 0

    def _profile(self, name: str) -> str:
        profiles = sorted({t.profile for t in self.program.tables if t.profile is not None})
        return profiles[find("action profile", name, profiles)]


def matches(pattern: str, data: bytes) -> bool:
    """A prefix unless it ends with `$`; `*` is any nibble."""
    exact = pattern.endswith("$")
    pattern = pattern.rstrip("$")
    received = data.hex()
    if len(received) < len(pattern) or (exact and len(received) > len(pattern)):
        return False
    return all(p in ("*", r) for p, r in zip(pattern, received, strict=False))


def number(text: str) -> int:
    return int(text, 0) if text.startswith("0") and not text.isdigit() else int(text)


def to_bytes(value: int, width: int) -> bytes:
    if value.bit_length() > width:
        raise ValueError(f"{value:#x} needs {value.bit_length()} bits, there are {width}")
    return value.to_bytes((width + 7) // 8, "big")


def omitted(key: Key) -> runtime.Match:
    """A key field that an entry leaves out: anything, or 0 where the kind cannot match everything."""
    zeros, ones = to_bytes(0, key.width), to_bytes((1 << key.width) - 1, key.width)
    return {
        "lpm": lambda: runtime.lpm(zeros, 0),
        "ternary": lambda: runtime.ternary(zeros, zeros),
        "optional": lambda: runtime.ternary(zeros, zeros),
        "range": lambda: runtime.range_(zeros, ones),
        "valid": lambda: runtime.valid(False),
        "exact": lambda: runtime.exact(zeros),
    }[key.kind]()


def key_match(text: str, prefix: int | None, key: Key) -> runtime.Match:
    """A key field as BMv2 wants it; digits that are `*` match anything."""
    width = key.width
    if prefix is not None:
        if key.kind != "lpm":
            raise ValueError(f"a prefix length needs an lpm key, {key.name} is {key.kind}")
        return _lpm(number(text), prefix, width)
    if key.kind == "lpm":
        bits = _bits_per_digit(text)
        stars = len(text) - len(text.rstrip("*"))
        return _lpm(number(text.replace("*", "0")), width if not stars else max(width - stars * bits, 0), width)
    if key.kind == "ternary" and "&&&" in text:
        value, mask = text.split("&&&")
        return runtime.ternary(to_bytes(number(value), width), to_bytes(number(mask), width))
    if key.kind == "ternary":
        bits = _bits_per_digit(text)
        if not bits:
            return runtime.ternary(to_bytes(number(text), width), to_bytes((1 << width) - 1, width))
        full = format((1 << bits) - 1, "x")
        mask_bits = number(text[:2] + re.sub(r"[0-9a-fA-F]", full, text[2:]).replace("*", "0")) & ((1 << width) - 1)
        return runtime.ternary(to_bytes(number(text.replace("*", "0")), width), to_bytes(mask_bits, width))
    if key.kind == "range":
        low, _, high = text.replace("->", "..").partition("..")
        return runtime.range_(to_bytes(number(low), width), to_bytes(number(high or low), width))
    if key.kind == "optional":
        return runtime.ternary(to_bytes(number(text), width), to_bytes((1 << width) - 1, width))
    return runtime.valid(number(text) != 0) if key.kind == "valid" else runtime.exact(to_bytes(number(text), width))


def find_key(name: str, table: Table) -> int:
    """`extra$0.h` means `extra[0].h`; validity may be written `h.$valid$`, `h.valid` or `h`."""
    names = [k.name for k in table.keys]
    name = re.sub(r"\$(\d+)", r"[\1]", name)
    stem = name.removesuffix(".valid")
    for candidate in (name, f"{name}$", f"{name}.$valid$", f"{stem}.$valid$"):
        if candidate in names:
            return names.index(candidate)
    if name == "valid":
        return next(i for i, n in enumerate(names) if n.endswith("$valid$"))
    return find("key field", name, names)


def _bits_per_digit(text: str) -> int:
    return {"0x": 4, "0o": 3, "0b": 1}.get(text[:2].lower(), 0)


def _lpm(value: int, prefix: int, width: int) -> runtime.Match:
    return runtime.lpm(to_bytes(value, width), prefix)


def _cli_key(text: str, key: Key) -> runtime.Match:
    if key.kind == "optional" and "&&&" in text:
        value, _, mask = text.partition("&&&")
        return runtime.ternary(to_bytes(number(value), key.width), to_bytes(number(mask), key.width))
    value, _, prefix = text.partition("/")
    return key_match(value, int(prefix) if prefix else None, key)


def _packet(rest: str) -> tuple[int, bytes]:
    port, _, data = rest.partition(" ")
    return int(port), bytes.fromhex(re.sub(r"\s", "", data))


def _rates(words: tuple[str, ...]) -> list[tuple[float, int]]:
    return [(float(rate), number(burst)) for rate, burst in (word.split(":") for word in words)]


def word(name: str) -> str:
    """A name as a script can have it: in quotes when it is an expression's (`hdr.h.a[3:0]`, `hdr.h.a & 0xf`)."""
    found = _TOKEN.fullmatch(name)
    return name if found and name not in ":,()/=<>!" else f'"{name}"'


def _tokens(text: str) -> list[str]:
    tokens, at = [], 0
    while text[at:].strip():
        found = _TOKEN.match(text, at)
        if found is None:
            raise ValueError(f"unexpected {text[at:].strip()[0]}")
        tokens.append(found[1].strip('"'))
        at = found.end()
    return tokens
