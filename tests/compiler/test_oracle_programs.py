"""A few dozen random programs against the specification's interpreter; 5,000 are `make oracle-programs`' matter."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tools.oracle_programs import live, snippets, stf_run, syntax
from tools.oracle_programs import types as t
from tools.oracle_programs.cases import Case, judged, make, stf
from tools.oracle_programs.minimise import minimise
from tools.oracle_programs.oracle import calculate

FIRST = 121
"""From here on, a few dozen programs have it all."""
PROGRAMS = 60
LIVE = 10
KINDS = ("bit", "int", "bool", "enum", "type", "typedef")
WAYS = ("const entries", "entries", "default action", "default action written")


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return [make(seed) for seed in range(FIRST, FIRST + PROGRAMS)]


def test_the_specifications_packets_come_out(cases: list[Case], programs: Path, tmp_path: Path) -> None:
    for case in cases:
        verdict = stf_run.play(case, tmp_path, programs / "fairlane-stf")
        assert verdict.kind == "passed", f"{case.name}: {verdict.said}\n{case.source()}\n{stf(case)}"


def test_packets_meet_action_data_of_every_type_in_every_way(cases: list[Case]) -> None:
    given: Counter[tuple[str, str]] = sum((case.given for case in cases), Counter())
    assert [(way, kind) for way in WAYS for kind in KINDS if not given[way, kind]] == []
    sent = [packet for case in cases for packet in case.expected]
    # Packets that are all dropped would show little.
    assert sum(packet is not None for packet in sent) > len(sent) * 0.7


@pytest.mark.parametrize("by", ["p4runtime", "thrift"])
def test_entries_of_a_controller_give_the_same(by: str, programs: Path, tmp_path: Path) -> None:
    with live.Switch(programs) as switch:
        written = 0
        for seed in range(FIRST, FIRST + LIVE):
            case = make(seed)
            written += sum(len(table.entries) for table in case.program.tables if table.how == "runtime")
            verdict = switch.play(case, tmp_path, by)
            assert verdict.kind == "passed", f"{case.name} by {by}: {verdict.said}\n{case.source()}"
    assert written > LIVE


def test_a_seed_gives_the_same_program_at_all_times() -> None:
    one, other = make(7), make(7)
    assert one.source() == other.source() and stf(one) == stf(other)


def test_a_wrong_byte_shows(cases: list[Case], programs: Path, tmp_path: Path) -> None:
    case = make(1)
    at = next(i for i, packet in enumerate(case.expected) if packet is not None)
    packet = case.expected[at]
    assert packet is not None
    case.expected[at] = syntax.Packet(packet.port, packet.data[:-1] + bytes([packet.data[-1] ^ 1]))
    assert stf_run.play(case, tmp_path, programs / "fairlane-stf").kind == "differs"


def test_a_program_is_reduced_to_what_matters() -> None:
    case = next(c for c in (make(seed, features=snippets.PLAIN) for seed in range(1, 50)) if "|-|" in c.source())
    small = minimise(case, lambda one: "|-|" in one.source())
    assert "|-|" in small.source() and len(small.source()) < len(case.source()) / 2 and len(small.program.packets) == 1


@pytest.mark.parametrize(
    ("operator", "left", "right", "kind", "value"),
    [
        ("|+|", 100, 100, t.Int(8), 127),
        ("|-|", -100, 100, t.Int(8), -128),
        ("|-|", 3, 5, t.Bit(8), 0),
        ("+", 127, 1, t.Int(8), -128),
        ("-", 0, 1, t.Bit(4), 15),
        (">>", -2, 1, t.Int(8), -1),
        (">>", -2, 200, t.Int(8), -1),
        ("<<", 1, 8, t.Bit(8), 0),
        ("<<", 64, 1, t.Int(8), -128),
        ("*", -128, -128, t.Int(8), 0),
        ("&", -1, 5, t.Int(8), 5),
        ("<", -1, 0, t.Int(8), True),
    ],
)
def test_numbers_by_the_specification(operator: str, left: int, right: int, kind: t.Type, value: int) -> None:
    assert calculate(operator, left, right, kind) == value


def test_arguments_are_copied_out_from_left_to_right() -> None:
    """Section 6.8: `act(hdr.a.x, hdr.a.x)` leaves what the second parameter has, whichever was written last."""
    byte = t.Bit(8)
    header = t.Header("a_t", (("x", byte),))
    headers, meta = t.Struct("headers_t", (("a", header),)), t.Struct("meta_t", (("m", byte),))
    a = syntax.Member(syntax.Var("hdr", headers), "a", header)
    x = syntax.Member(a, "x", byte)
    body = [syntax.Assign(syntax.Var(name, byte), syntax.Literal(value, byte)) for name, value in (("q", 2), ("p", 1))]
    action = syntax.Procedure("action", "act", [syntax.Parameter(n, byte, "inout") for n in ("p", "q")], syntax.Block([*body]))
    ingress = syntax.Block([syntax.SetPort(1), syntax.Invoke(syntax.Call("act", [x, x]))])
    start = syntax.State("start", [syntax.Extract(a)], [], [syntax.Case(None, "accept")])
    program = syntax.Program(
        [], [header], [], [], headers, meta, [], [], [start], [action], [], [], ingress, syntax.Block([]), [a], []
    )  # fmt: skip
    case = judged("aliases", program, [syntax.Packet(0, b"\x09\xff")])
    assert case.expected == [syntax.Packet(1, b"\x02\xff")]
