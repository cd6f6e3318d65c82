"""A P4 program of the user's own that lacks what the controller fills and reads is refused before anything starts, with every name at once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlane import cli, probes
from fairlane.controller import names
from fairlane.controller.p4info import P4Info
from fairlane.experiments import loader
from fairlane.fabrics import control_plane, targets
from fairlane.topologies import addressing

FORWARDING = """
#include <core.p4>
#include <v1model.p4>
header ethernet_t { bit<48> destination; bit<48> source; bit<16> kind; }
struct H { ethernet_t ethernet; }
struct M { }
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) { state start { p.extract(h.ethernet); transition accept; } }
control V(inout H h, inout M m) { apply { } }
control I(inout H h, inout M m, inout standard_metadata_t s) {
    action forward(bit<9> port) { s.egress_spec = port; }
    table l2 { key = { h.ethernet.destination: exact; } actions = { forward; NoAction; } default_action = NoAction(); }
    @name(".AlsIngress.connections.observation") table one_of_ours { actions = { NoAction; } default_action = NoAction(); }
    apply { l2.apply(); one_of_ours.apply(); }
}
control E(inout H h, inout M m, inout standard_metadata_t s) { apply { } }
control C(inout H h, inout M m) { apply { } }
control D(packet_out p, in H h) { apply { p.emit(h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""
EXPERIMENT = """
title = "own"
bottleneck = "s1->s2"
duration_s = 1
{more}
[control]
program = "{program}"

[[flows]]
name = "a"
kind = "rap"

[topology]
kind = "dumbbell"
pairs = 1
[topology.bottleneck]
rate_bps = 1e6
queue = "{queue}"
[topology.access]
rate_bps = 1e7
"""
OF_EVERY_PROGRAM = (
    "table 'AlsIngress.forward.multicast';",
    "table 'AlsIngress.forward.ipv4_lpm';",
    "table 'AlsEgress.departure.link';",
    "table 'AlsEgress.fair_rate.fair_rate';",
    "counter 'AlsEgress.ports.transmitted';",
    "digest 'connection_t';",
)


def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *argv: str) -> tuple[object, str]:
    monkeypatch.setattr("sys.argv", ["fairlane", *argv])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return ended.value.code, capsys.readouterr().err


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.p4").write_text(FORWARDING)
    (tmp_path / "own.toml").write_text(EXPERIMENT.format(program="own.p4", queue="red", more=""))
    (tmp_path / "study.toml").write_text(
        EXPERIMENT.format(program="own.p4", queue="droptail", more="seeds = [1, 2]\n[sweep]\nn = [1, 2]\n")
    )
    return tmp_path


@pytest.mark.parametrize(
    ("argv", "place", "further"),
    [
        (
            ("run", "own.toml", "--out", "o"),
            "own.toml:7: control.program: own.p4 lacks ",
            ("counter 'AlsEgress.replica.decision.forced_drops';",),
        ),
        (("sweep", "study.toml", "--out", "o"), "study.toml:10: control.program: own.p4 lacks ", ()),
    ],
)
def test_every_missing_name_is_told_before_a_run(
    here: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    argv: tuple[str, ...],
    place: str,
    further: tuple[str, ...],
) -> None:
    code, said = run(capsys, monkeypatch, *argv)
    assert code == 2
    assert place in said
    assert all(f"no {name}" in said for name in (*OF_EVERY_PROGRAM, *further)), said
    assert "docs/own-p4-program.md" in said
    assert not list(here.glob("o/**/*.json"))


def test_a_study_needs_a_control_plane(here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "own.p4").write_text(FORWARDING.replace('@name(".AlsIngress.connections.observation")', ""))
    code, said = run(capsys, monkeypatch, "sweep", "study.toml", "--out", "o")
    assert code == 2
    assert "study.toml:10: control.program: own.p4 has no table of als.p4, and nothing fills its tables: --control FILE.py" in said


def test_a_file_that_drops_names_is_refused_by_its_option(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    red = (probes.PACKAGE / "p4src" / "schemes" / "red" / "red.p4").read_text()
    (here / "red.p4").write_text(red.replace("early_drops", "drops_before").replace("set_link", "set_rate"))
    code, said = run(capsys, monkeypatch, "run", "dumbbell", "--flow", "rap:1", "--queue", "red", "--program", "red.p4", "--out", "o")
    assert code == 2
    assert "--program red.p4: " in said
    assert "lacks 3 names" in said
    for name in (
        "action 'AlsEgress.departure.set_link'",
        "counter 'AlsIngress.red.decision.early_drops'",
        "counter 'AlsEgress.replica.decision.early_drops'",
    ):
        assert f"no {name}; the program has " in said
    assert re.search(r"drops_before", said), "the nearest name"


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("nowhere.p4", "no file nowhere.p4"),
        ("own.toml", "does not compile"),
        ("a" * 3000, "no file aaa"),
        ("a\\u0000b", "no file a"),
        ("", "no file ."),
    ],
)
def test_a_program_that_is_none_is_refused_at_its_key(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, program: str, said: str
) -> None:
    (here / "own.toml").write_text(EXPERIMENT.format(program=program, queue="red", more=""))
    code, err = run(capsys, monkeypatch, "run", "own.toml", "--out", "o")
    assert code == 2
    assert err.startswith("fairlane: own.toml:7: control.program: ")
    assert said in err


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> tuple[P4Info, control_plane.Config]:
    folder = tmp_path_factory.mktemp("program")
    experiment = loader.load(loader.find("als-8"))
    json, p4info = targets.compiled(experiment, targets.compiler(), folder)
    numbers = dict.fromkeys(experiment.topology.switches, 0)
    config = control_plane.configuration(experiment, addressing.assign(experiment.topology), numbers, json, p4info)
    return P4Info.read(p4info), config


def test_our_own_program_lacks_nothing(ours: tuple[P4Info, control_plane.Config]) -> None:
    assert names.asked(ours[1], ours[0], joins=True).lacking == ()


@settings(max_examples=40)
@given(st.data())
def test_whatever_is_taken_away_is_named_or_not_needed(ours: tuple[P4Info, control_plane.Config], data: st.DataObject) -> None:
    """Without some names the controller either works, or each name that it misses is in the list."""
    whole, config = ours
    message = type(whole.message)()
    message.CopyFrom(whole.message)
    taken = []
    for kind in ("tables", "actions", "counters", "digests"):
        items = getattr(message, kind)
        for name in data.draw(st.lists(st.sampled_from([item.preamble.name for item in items]), unique=True, max_size=2)) if items else []:
            index = next(i for i, item in enumerate(items) if item.preamble.name == name)
            del items[index]
            taken.append(name)
    lacking = names.asked(config, P4Info(message)).lacking
    named = {line.removeprefix("no ").split(" ", 1)[1].partition(";")[0].strip("'") for line in lacking if line.startswith("no ")}
    assert named <= set(taken)
    needed = {name for name in taken if names.asked(config, _without(whole, name)).lacking}
    assert named == needed


def _without(whole: P4Info, name: str) -> P4Info:
    message = type(whole.message)()
    message.CopyFrom(whole.message)
    for kind in ("tables", "actions", "counters", "digests"):
        items = getattr(message, kind)
        for index in [i for i, item in enumerate(items) if item.preamble.name == name]:
            del items[index]
    return P4Info(message)
