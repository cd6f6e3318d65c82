"""Packets: valid ones by the program's parser and by its tests, mutated, truncated, and noise. The same seed gives the same packets."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from tools.bmv2.packets import Packet
from tools.bmv2.program import Program
from tools.differential.walk import Layout, Walker

TEMPLATES = 32
PRODUCTIVE = 48
_PORTS = tuple(range(9))


class Stream:
    """`batch(number, size)` depends on nothing but seed, number and size."""

    def __init__(self, program: Program, walker: Walker, samples: Sequence[Packet], seed: str) -> None:
        self.walker = walker
        self.seed = seed
        self.samples = [walker.take_apart(data) for _, data in samples]
        self.ports = tuple(sorted({port for port, _ in samples} | set(_PORTS)))
        self.checksums = _checksums(program)
        self.productive: list[Layout] = []

    def prefer(self, comes_out: Callable[[list[Packet]], list[bool]]) -> None:
        """From here on half of the packets derive from forwarded ones; a switch drops most random packets."""
        rng = random.Random(f"{self.seed}/productive")
        layouts = [self.walker.make(rng) for _ in range(600)] + [s.copy() for s in self.samples]
        for layout in layouts:
            for fix in self.checksums:
                fix(layout)
        kept = comes_out([(rng.choice(self.ports), bytes(layout.data)) for layout in layouts])
        through = [layout for layout, good in zip(layouts, kept, strict=True) if good]
        self.productive = rng.sample(through, min(PRODUCTIVE, len(through)))

    def batch(self, number: int, size: int) -> list[Packet]:
        rng = random.Random(f"{self.seed}/{number}")
        templates = [self.walker.make(rng) for _ in range(min(size, TEMPLATES))] + self.samples
        packets = []
        for _ in range(size):
            layout = rng.choice(self.productive if self.productive and rng.random() < 0.5 else templates)
            port = rng.choice(self.ports) if rng.random() < 0.97 else rng.randrange(511)
            packets.append((port, self._packet(rng, layout)))
        return packets

    def _packet(self, rng: random.Random, template: Layout) -> bytes:
        layout = template.copy()
        chance = rng.random()
        if layout.fields:
            for _ in range((0, 0, 1, 1, 2, 3)[int(chance * 6000) % 6]):
                offset, width, name = rng.choice(layout.fields)
                layout.set(offset, width, self.walker.draw(rng, name, width))
        for fix in self.checksums if chance < 0.75 else ():
            fix(layout)
        data = layout.data
        if chance < 0.55:  # valid
            return bytes(data)
        if chance < 0.80:  # mutated
            for _ in range(rng.choice((1, 1, 2, 4))):
                if not data:
                    break
                at = rng.randrange(len(data))
                how = rng.random()
                if how < 0.4:
                    data[at] ^= 1 << rng.randrange(8)
                elif how < 0.8:
                    data[at] = rng.randrange(256)
                elif how < 0.9:
                    data[at:at] = rng.randbytes(rng.randrange(1, 5))
                else:
                    del data[at : at + rng.randrange(1, 5)]
            return bytes(data)
        if chance < 0.97:  # truncated
            return bytes(data[: rng.randrange(len(data) + 1)])
        return rng.randbytes(rng.randrange(100))


def _checksums(program: Program) -> list[Callable[[Layout], None]]:
    """What sets right the checksums that the program verifies or computes: 16-bit ones over fields, in the parsed packet."""
    calculations = {c["name"]: c for c in program.document["calculations"]}
    fixes = []
    seen = set()
    for checksum in program.document["checksums"]:
        calculation = calculations.get(checksum["calculation"])
        target = tuple(checksum["target"])
        if calculation is None or calculation["algo"] != "csum16" or target in seen:
            continue
        if all(i["type"] in ("field", "hexstr") for i in calculation["input"]):
            seen.add(target)
            fixes.append(_fix(target, calculation["input"]))
    return fixes


def _fix(target: tuple[str, str], inputs: list[dict[str, Any]]) -> Callable[[Layout], None]:
    def fix(layout: Layout) -> None:
        place = layout.headers.get(target[0], {}).get(target[1])
        if place is None:
            return
        value, bits = 0, 0
        for part in inputs:
            if part["type"] == "hexstr":
                width = part.get("bitwidth", 16)
                value, bits = (value << width) | int(part["value"], 16), bits + width
                continue
            where = layout.headers.get(part["value"][0], {}).get(part["value"][1])
            if where is not None:
                value, bits = (value << where[1]) | layout.get(*where), bits + where[1]
        value <<= -bits % 16
        total = 0
        while value:
            total += value & 0xFFFF
            value >>= 16
        while total >> 16:
            total = (total & 0xFFFF) + (total >> 16)
        layout.set(*place, ~total & 0xFFFF)

    return fix
