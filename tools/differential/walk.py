"""Walks a program's parser: to take a packet apart into fields, and to make packets that reach its states."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from tools.bmv2.program import Program

MAX_STATES = 24
MAX_BYTES = 400


@dataclass
class Layout:
    """A packet and where its fields are: offset and width in bits, and the name under which values are kept."""

    data: bytearray = field(default_factory=bytearray)
    fields: list[tuple[int, int, str]] = field(default_factory=list)
    headers: dict[str, dict[str, tuple[int, int]]] = field(default_factory=dict)

    def get(self, offset: int, width: int) -> int:
        last = (offset + width + 7) // 8
        value = int.from_bytes(self.data[offset // 8 : last], "big") >> (last * 8 - offset - width)
        return value & ((1 << width) - 1)

    def set(self, offset: int, width: int, value: int) -> None:
        first, last = offset // 8, (offset + width + 7) // 8
        if last > len(self.data):
            return
        shift = last * 8 - offset - width
        mask = ((1 << width) - 1) << shift
        old = int.from_bytes(self.data[first:last], "big")
        self.data[first:last] = ((old & ~mask) | ((value << shift) & mask)).to_bytes(last - first, "big")

    def copy(self) -> Layout:
        return Layout(bytearray(self.data), self.fields, self.headers)


class Walker:
    def __init__(self, program: Program) -> None:
        document = program.document
        self.parser = document["parsers"][0]
        self.states = {s["name"]: s for s in self.parser["parse_states"]}
        self.headers = program.headers
        self.type_of = {h["name"]: h["header_type"] for h in document["headers"]}
        names = {h["id"]: h["name"] for h in document["headers"]}
        self.stacks = {s["name"]: [names[i] for i in s["header_ids"]] for s in document.get("header_stacks", [])}
        self.declared: dict[str, list[list[Any]]] = {t["name"]: t["fields"] for t in document["header_types"]}
        self.pools: dict[str, list[int]] = defaultdict(list)
        self._learn_constants()

    def learn(self, key: str, value: int) -> None:
        if value not in self.pools[key] and len(self.pools[key]) < 64:
            self.pools[key].append(value)

    def draw(self, rng: random.Random, key: str, width: int) -> int:
        pool = self.pools.get(key)
        chance = rng.random()
        if pool and chance < 0.8:
            return rng.choice(pool) & ((1 << width) - 1)
        if chance < 0.87:
            return rng.choice((0, 1, (1 << width) - 1, 1 << (width - 1), min(4, (1 << width) - 1)))
        return rng.getrandbits(width)

    def _learn_constants(self) -> None:
        for state in self.states.values():
            keys = state["transition_key"]
            for transition in state["transitions"]:
                if transition["type"] != "hexstr":
                    continue
                for key, value in zip(keys, self._split(transition["value"], keys), strict=False):
                    if key["type"] == "field" and key["value"][0] in self.type_of:
                        self.learn(self._name(*key["value"]), value)

    def _name(self, header: str, name: str) -> str:
        return f"{self.type_of[header]}.{name}"

    def _width(self, key: dict[str, Any]) -> int:
        if key["type"] == "lookahead":
            width: int = key["value"][1]
            return width
        header, name = key["value"]
        if key["type"] in ("stack_field", "union_stack_field"):
            header = self.stacks.get(header, [header])[0]
        return dict(self.headers.get(header, [])).get(name, 8)

    def _split(self, text: str, keys: list[dict[str, Any]]) -> list[int]:
        """A transition's value by key: each takes whole bytes."""
        sizes = [(self._width(k) + 7) // 8 for k in keys]
        value = int(text, 16)
        parts = []
        for size in reversed(sizes):
            parts.append(value & ((1 << (8 * size)) - 1))
            value >>= 8 * size
        return parts[::-1]

    def take_apart(self, data: bytes) -> Layout:
        """What the parser extracts of a packet; the values are learnt."""
        return _Walk(self, random.Random(0), data).run()

    def make(self, rng: random.Random) -> Layout:
        """A packet by a random way through the parser, with payload."""
        return _Walk(self, rng, None).run()


class _Walk:
    """One way through the parser, of a packet given or being made."""

    def __init__(self, walker: Walker, rng: random.Random, given: bytes | None) -> None:
        self.walker = walker
        self.rng = rng
        self.given = given
        self.layout = Layout(bytearray(given or b""))
        self.at = 0
        self.env: dict[tuple[str, str], int] = {}
        self.next: dict[str, int] = defaultdict(int)
        self.wanted: list[tuple[int, int, int]] = []  # offset, width, value of bits not made yet

    def run(self) -> Layout:
        name = self.walker.parser["init_state"]
        for _ in range(MAX_STATES):
            if name not in self.walker.states or self.at > MAX_BYTES * 8:
                break
            state = self.walker.states[name]
            if not all(self._operate(op) for op in state["parser_ops"]):
                break
            name = self._go_on(state)
        if self.given is None:
            length = self.rng.choice((0, 0, 1, 2, 4, 7, 16, 26, 40, self.rng.randrange(120)))
            self.layout.data += self.rng.randbytes(length)
            for offset, width, value in self.wanted:
                self.layout.set(offset, width, value)
        return self.layout

    def _operate(self, op: dict[str, Any]) -> bool:
        parameters = op["parameters"]
        if op["op"] in ("extract", "extract_VL"):
            header = parameters[0]["value"]
            if parameters[0]["type"] == "stack":
                elements = self.walker.stacks.get(header, [])
                if self.next[header] >= len(elements):
                    return False
                self.next[header] += 1
                header = elements[self.next[header] - 1]
            if not isinstance(header, str) or header not in self.walker.headers:
                return False
            length = 0
            if op["op"] == "extract_VL":
                value = self._value(parameters[1])
                if value is None or value % 8 or value > 2048:
                    return False
                length = value
            return self._extract(header, length)
        if op["op"] == "set":
            value = self._value(parameters[1])
            if value is not None and parameters[0]["type"] == "field":
                self.env[tuple(parameters[0]["value"])] = value
        elif op["op"] == "advance":
            value = self._value(parameters[0])
            if value is None or value % 8 or value > 2048:
                return False
            self._need(value)
            self.at += value
        return True

    def _need(self, bits: int) -> bool:
        """Bits from here on; a packet being made gets them."""
        missing = (self.at + bits + 7) // 8 - len(self.layout.data)
        if missing > 0 and self.given is None:
            self.layout.data += self.rng.randbytes(missing)
            for offset, width, value in self.wanted:
                self.layout.set(offset, width, value)
        return missing <= 0 or self.given is None

    def _extract(self, header: str, variable: int) -> bool:
        fields = self.walker.headers[header]
        types = self.walker.type_of[header]
        variable_name = next((f[0] for f in self.walker.declared[types] if f[1] == "*"), None)
        sizes = [(name, variable if name == variable_name else width) for name, width in fields]
        if not self._need(sum(width for _, width in sizes)):
            return False
        places: dict[str, tuple[int, int]] = {}
        for name, width in sizes:
            if width == 0:
                continue
            if self.given is None and width <= 128:
                self.layout.set(self.at, width, self.walker.draw(self.rng, f"{types}.{name}", width))
            places[name] = (self.at, width)
            if width <= 128:
                self.layout.fields.append((self.at, width, f"{types}.{name}"))
            self.at += width
        # Bytes that a lookahead has seen stay.
        for offset, width, value in self.wanted:
            self.layout.set(offset, width, value)
        for name, (offset, width) in places.items():
            value = self.layout.get(offset, width)
            self.env[header, name] = value
            if self.given is not None and width <= 128:
                self.walker.learn(f"{types}.{name}", value)
        self.layout.headers[header] = places
        return True

    def _go_on(self, state: dict[str, Any]) -> str | None:
        keys = state["transition_key"]
        values = [self._key(k) for k in keys]
        if self.given is not None and None not in values:
            return self._matching(state, values)
        transition = self.rng.choice(state["transitions"]) if state["transitions"] else None
        if transition is None:
            return None
        if transition["type"] == "hexstr" and self.given is None:
            parts = self.walker._split(transition["value"], keys)
            masks = self.walker._split(transition["mask"], keys) if transition["mask"] else [-1] * len(keys)
            for key, value, mask in zip(keys, parts, masks, strict=True):
                self._make_true(key, value, mask)
        if self.given is None:
            return self._matching(state, [self._key(k) for k in keys])
        next_state: str | None = transition["next_state"]
        return next_state

    def _matching(self, state: dict[str, Any], values: list[int | None]) -> str | None:
        """The first transition that fits; one whose key is not known may fit."""
        keys = state["transition_key"]
        for transition in state["transitions"]:
            next_state: str | None = transition["next_state"]
            if transition["type"] == "default":
                return next_state
            if transition["type"] != "hexstr":
                continue
            wanted = self.walker._split(transition["value"], keys)
            masks = self.walker._split(transition["mask"], keys) if transition["mask"] else [-1] * len(keys)
            if all((self.rng.random() < 0.5) if v is None else v & m == w & m for v, w, m in zip(values, wanted, masks, strict=True)):
                return next_state
        return None

    def _key(self, key: dict[str, Any]) -> int | None:
        if key["type"] == "lookahead":
            return self._value(key)
        if key["type"] == "field":
            return self.env.get(tuple(key["value"]))
        if key["type"] == "stack_field":
            stack, name = key["value"]
            elements = self.walker.stacks.get(stack, [])
            last = self.next[stack] - 1
            return self.env.get((elements[last], name)) if 0 <= last < len(elements) else None
        return None

    def _make_true(self, key: dict[str, Any], value: int, mask: int) -> None:
        place = None
        if key["type"] == "lookahead":
            place = (self.at + key["value"][0], key["value"][1])
            self.wanted.append((*place, value))
            self._need(key["value"][0] + key["value"][1])
        elif key["type"] == "field":
            place = self.layout.headers.get(key["value"][0], {}).get(key["value"][1])
        elif key["type"] == "stack_field":
            elements = self.walker.stacks.get(key["value"][0], [])
            last = self.next[key["value"][0]] - 1
            if 0 <= last < len(elements):
                place = self.layout.headers.get(elements[last], {}).get(key["value"][1])
        if place is not None:
            old = self.layout.get(*place)
            new = (old & ~mask) | (value & mask) if mask != -1 else value
            self.layout.set(*place, new)
            for header, places in self.layout.headers.items():
                for name, where in places.items():
                    if where == place:
                        self.env[header, name] = new & ((1 << place[1]) - 1)

    def _value(self, node: dict[str, Any]) -> int | None:
        kind, value = node["type"], node["value"]
        if kind == "expression":
            return self._value(value) if "op" not in value else self._operator(value)
        if kind == "field":
            return self.env.get(tuple(value))
        if kind == "hexstr":
            return int(value, 16)
        if kind == "lookahead":
            offset, width = value
            return self.layout.get(self.at + offset, width) if self._need(offset + width) else None
        return None

    def _operator(self, node: dict[str, Any]) -> int | None:
        right = self._value(node["right"]) if isinstance(node.get("right"), dict) else None
        left = self._value(node["left"]) if isinstance(node.get("left"), dict) else None
        if right is None or left is None:
            return None
        operators = {
            "+": left + right,
            "-": left - right,
            "*": left * right,
            "&": left & right,
            "|": left | right,
            "<<": left << min(right, 64),
            ">>": left >> min(right, 512),
        }
        return operators.get(node["op"])
