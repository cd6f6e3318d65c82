"""Crossings with p4c and BMv2: whose fault a difference is, and which programs are worth a run of p4c."""

from __future__ import annotations

import copy
import shutil
from pathlib import Path

import pytest

from tools.bmv2 import process
from tools.oracle_programs import crossed, known, p4c_limits, stf_run, syntax, tree
from tools.oracle_programs import types as t
from tools.oracle_programs.cases import Case, make
from tools.oracle_programs.snippets import PLAIN
from tools.oracle_programs.stf_run import Verdict

MEETS = {
    "compound assignment with a call": 10487,
    "wide range with `_`": 10280,
    "signed action data": 10847,
    "write before a failing extract": 12224,
    "list that reads its own header": 13790,
    "exit past a slice": 13596,
}
"""By known fault of p4c: a program that meets it."""

FAULTS = {fault.name: fault for fault in known.FAULTS}


def case(seed: int) -> Case:
    return make(seed, features=PLAIN)


def test_each_known_fault_has_a_program() -> None:
    assert MEETS.keys() == {fault.name for fault in known.FAULTS}


@pytest.mark.parametrize("fault", known.FAULTS, ids=lambda fault: fault.name)
def test_a_program_means_the_same_without_a_fault(fault: known.Fault, programs: Path, tmp_path: Path) -> None:
    met = case(MEETS[fault.name])
    rewritten = known.without(met, [fault])
    assert rewritten is not None and rewritten.source() != met.source()
    assert rewritten.expected == met.expected
    assert stf_run.play(rewritten, tmp_path, programs / "fairlane-stf").kind == "passed"


def test_programs_mean_the_same_without_all_faults(programs: Path, tmp_path: Path) -> None:
    same = 0
    for seed in range(1, 41):
        rewritten = known.without(make(seed), known.FAULTS)
        if rewritten is not None:
            same += 1
            verdict = stf_run.play(rewritten, tmp_path, programs / "fairlane-stf")
            assert verdict.kind == "passed", f"{rewritten.name}: {verdict.said}\n{rewritten.source()}"
    # The others have arguments that overlap, or nothing to rewrite.
    assert same > 30


@pytest.mark.parametrize("name", MEETS)
def test_a_fault_explains_what_goes_without_it(name: str) -> None:
    met = case(MEETS[name])
    free = known.without(met, [FAULTS[name]])
    assert free is not None
    assert known.explained(met, lambda one: one.source() == free.source()) == (name,)
    assert known.explained(met, lambda one: False) == ()


def test_as_few_faults_as_it_takes_explain_a_difference() -> None:
    def passes(one: Case) -> bool:
        compound = [node for node in tree.nodes(one.program) if isinstance(node, syntax.Assign) and node.operator]
        calls = any(isinstance(node, syntax.Call) for assignment in compound for node in tree.nodes(assignment.value))
        data = [p.type for action in one.program.actions for p in action.parameters if not p.direction]
        return not calls and not any(map(t.signed, data))

    met = case(30)
    assert len([fault for fault in known.FAULTS if known.without(met, [fault])]) == 3
    assert known.explained(met, passes) == ("compound assignment with a call", "signed action data")


@pytest.mark.parametrize(
    ("pair", "ends", "ours"),
    [
        ("ours, our switch", {"ours, our switch": "differs"}, True),
        ("ours, BMv2", {"ours, our switch": "passed", "ours, BMv2": "differs"}, True),
        ("p4c, BMv2", {"p4c, our switch": "passed", "p4c, BMv2": "differs"}, False),
        ("p4c, our switch", {"p4c, our switch": "differs", "p4c, BMv2": "differs"}, False),
        ("p4c, our switch", {"p4c, our switch": "refused", "p4c, BMv2": "refused"}, False),
        # BMv2 takes the JSON and makes the right packets of it: our switch is to blame.
        ("p4c, our switch", {"p4c, our switch": "differs", "p4c, BMv2": "passed"}, True),
        ("p4c, our switch", {"p4c, our switch": "refused", "p4c, BMv2": "passed"}, True),
        # Without BMv2, nothing tells p4c's faults from our switch's.
        ("p4c, our switch", {"p4c, our switch": "differs"}, False),
    ],
)
def test_whose_a_difference_is(pair: str, ends: dict[str, str], ours: bool) -> None:
    assert crossed.ours(pair, {one: Verdict(kind) for one, kind in ends.items()}) is ours


def test_programs_that_p4c_takes_are_not_skipped() -> None:
    assert [p4c_limits.refused(case(seed).program) for seed in MEETS.values()] == [""] * len(MEETS)


def test_programs_that_p4c_refuses_are_skipped() -> None:
    wide = case(MEETS["signed action data"]).program
    for change, reason in [
        (_write_to_last, "writes to the last element of a stack"),
        (_select_new, "a new type in a select"),
        (_data_bool, "action data of type bool"),
        (_data_negative, "negative action data in the program"),
    ]:
        program = copy.deepcopy(wide)
        change(program)
        assert p4c_limits.refused(program) == reason


def _write_to_last(program: syntax.Program) -> None:
    header = t.Header("e_t", (("x", t.Bit(8)),))
    stack = syntax.Member(syntax.Var("hdr", program.headers), "s", t.Stack(header, 2))
    last = syntax.Member(syntax.Member(stack, "last", header), "x", t.Bit(8))
    program.states[0].body.append(syntax.Assign(last, syntax.Literal(1, t.Bit(8))))


def _select_new(program: syntax.Program) -> None:
    program.states[0].keys = [syntax.Var("x", t.New("new_t", t.Bit(8)))]


def _data(program: syntax.Program) -> tuple[syntax.Table, syntax.Procedure]:
    table = next(table for table in program.tables if table.actions)
    return table, next(action for action in program.actions if action.name == table.actions[0].name)


def _data_bool(program: syntax.Program) -> None:
    _data(program)[1].parameters.append(syntax.Parameter("d", t.BOOL, ""))


def _data_negative(program: syntax.Program) -> None:
    table, action = _data(program)
    table.default = (action.name, [-1])


def test_nodes_change_from_the_bottom_up() -> None:
    byte = t.Bit(8)
    sum_ = syntax.Binary("+", syntax.Var("a", byte), syntax.Literal(1, byte), byte)
    block = syntax.Block([syntax.Assign(syntax.Var("b", byte), sum_)])
    seen: list[str] = []

    def rename(node: object) -> object:
        seen.append(type(node).__name__)
        return syntax.Var("c", byte) if node == syntax.Var("a", byte) else node

    assert tree.change(block, rename) is block
    assert seen == ["Var", "Var", "Literal", "Binary", "Assign", "Block"]
    assert [node.name for node in tree.nodes(block) if isinstance(node, syntax.Var)] == ["b", "c"]


@pytest.mark.parametrize("name", MEETS)
def test_p4c_still_has_its_faults(name: str, programs: Path, tmp_path: Path) -> None:
    p4c = shutil.which("p4c-bm2-ss")
    if p4c is None:
        pytest.skip("p4c-bm2-ss is not in PATH")
    found = crossed.verdicts(case(MEETS[name]), tmp_path, programs, p4c, process.why_absent() is None)
    theirs = {verdict for pair, verdict in found.items() if pair.startswith("p4c")}
    # If this one passes with a newer p4c, take the fault out of known.py.
    assert theirs == {Verdict("known", name)}
    assert {verdict.kind for pair, verdict in found.items() if pair.startswith("ours")} == {"passed"}
