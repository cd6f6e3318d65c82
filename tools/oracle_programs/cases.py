"""A generated program with its packets and what the oracle expects, and the text of both as a packet test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from tools.oracle_programs import syntax as s
from tools.oracle_programs import types as t
from tools.oracle_programs.generate import Generator
from tools.oracle_programs.oracle import Oracle, Undefined

ATTEMPTS = 20
"""Programs that a seed may try until one has packets with a defined outcome."""


@dataclass
class Case:
    name: str
    program: s.Program
    expected: list[s.Packet | None]
    given: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Action data that the packets met: how it came, and its type."""

    def source(self) -> str:
        return s.source(self.program)


def make(seed: int, packets: int = 8, features: Sequence[str] | None = None) -> Case:
    """The program of a seed: the same at all times."""
    for attempt in range(ATTEMPTS):
        generator = Generator(f"{seed}.{attempt}", features)
        case = judged(f"seed-{seed}", generator.program, generator.packets(packets))
        # One that leaves tells a running switch's user that it is through with them all.
        if len(case.expected) >= packets // 2 and any(packet is not None for packet in case.expected):
            return case
    raise RuntimeError(f"seed {seed}: no program with a defined outcome in {ATTEMPTS} attempts")


def judged(name: str, program: s.Program, packets: Sequence[s.Packet]) -> Case:
    """The program with those packets whose outcome is defined."""
    oracle = Oracle(program)
    kept: list[s.Packet] = []
    expected: list[s.Packet | None] = []
    for packet in packets:
        try:
            expected.append(oracle.run(packet))
            kept.append(packet)
        except Undefined:
            continue
    program.packets = kept
    return Case(name, program, expected, oracle.given)


def stf(case: Case, without: Collection[str] = ()) -> str:
    """The packet test (switch/node/stf/README.md). without: tables that no packet can reach, so that the compiler has removed them."""
    lines = []
    for table in case.program.tables:
        if table.name in without:
            continue
        if table.runtime_default is not None:
            lines.append(f"setdefault {table.name} {_call(case.program, *table.runtime_default)}")
        if table.how == "runtime":
            lines += [_add(case.program, table, entry) for entry in table.entries]
    for packet, out in zip(case.program.packets, case.expected):
        lines.append(f"packet {packet.port} {packet.data.hex()}")
        if out is not None:
            lines.append(f"expect {out.port} {out.data.hex()}$")
    return "\n".join(lines) + "\n"


def parameters(program: s.Program, action: str) -> list[s.Parameter]:
    """An action's parameters without direction: those that the control plane gives."""
    found = next((a for a in program.actions if a.name == action), None)
    return [] if found is None else [p for p in found.parameters if not p.direction]


def _call(program: s.Program, action: str, data: list[int]) -> str:
    given = [f"{p.name}:{t.to_bits(v, p.type):#x}" for p, v in zip(parameters(program, action), data)]
    return f"{action}({', '.join(given)})"


def prioritised(table: s.Table) -> bool:
    return any(key.kind in ("ternary", "range", "optional") for key in table.keys)


def _add(program: s.Program, table: s.Table, entry: s.Entry) -> str:
    words = ["add", table.name]
    if prioritised(table):
        words.append(str(entry.priority))
    for key, match in zip(table.keys, entry.matches):
        if match.any:
            continue
        if key.kind == "ternary":
            words.append(f"{key.name}:{match.value:#x}&&&{match.other:#x}")
        elif key.kind == "lpm":
            words.append(f"{key.name}:{match.value:#x}/{match.other}")
        elif key.kind == "range":
            words.append(f"{key.name}:{match.value:#x}..{match.other:#x}")
        else:
            # All digits: a packet test takes those that are left out of a key with a mask for anything.
            digits = (t.width(key.expression.type) + 3) // 4
            words.append(f"{key.name}:{match.value:#0{digits + 2}x}")
    return " ".join([*words, _call(program, entry.action, entry.data)])
