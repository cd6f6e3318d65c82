"""A P4 program from zero with a control plane of its own: events, calls by names, both clocks, and every refusal."""

from __future__ import annotations

import csv
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from fairlane import api, cli, probes
from fairlane.inputs import located_toml
from fairlane.inputs.located_toml import ConfigError
from tests import missing

LACKING = missing.for_mininet()
# Not 9559: a run of someone else may be under way.
MININET = ("--fabric", "mininet", "--target", "embedded", "--grpc-port", "29859", "--no-keep-awake")
LABELS = probes.ROOT / "docs" / "examples" / "labels"
CAP = probes.ROOT / "docs" / "examples" / "cap" / "cap.py"
ARGUMENTS = ("run", "dumbbell", "--flow", "cbr:1", "--set", "cbr.rate_bps=1e6", "--duration", "1")


def fairlane(monkeypatch: pytest.MonkeyPatch, *argv: str) -> object:
    monkeypatch.setattr("sys.argv", ["fairlane", *argv])
    monkeypatch.setenv("COLUMNS", "300")
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return ended.value.code


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the example's files, its program under another name."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(LABELS / "labels.py", "own.py")
    shutil.copy(LABELS / "labels.p4", "own.p4")
    return tmp_path


def test_the_example_carries_measured_flows(here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    flows = ("--flow", "tcp-sack:2", "--flow", "rap:2")
    for out in ("a", "b"):
        code = fairlane(
            monkeypatch, "run", "dumbbell", *flows, "--duration", "4", "--program", "own.p4", "--control", "own.py", "--out", out
        )
        assert code == 0
    assert "control plane: Labels of own.py" in capsys.readouterr().out
    summary = json.loads((here / "a" / "summary.json").read_text())
    assert all(flow["goodput_bps"] > 0 for flow in summary["flows"]) and len(summary["flows"]) == 4
    assert summary["links"][0]["mean_queue_packets"] > 0
    # What the program does not have is absent.
    assert (here / "a" / "fair_rates.csv").read_text().strip() == ""
    assert not (here / "a" / "raw" / "controller.csv").exists()
    assert (here / "a" / "files" / "control" / "own.py").read_text() == (LABELS / "labels.py").read_text()
    assert (here / "a" / "files" / "program" / "own.p4").is_file()
    for name in sorted(path.name for path in (here / "a" / "raw").iterdir()):
        assert (here / "a" / "raw" / name).read_bytes() == (here / "b" / "raw" / name).read_bytes(), name
    records = [json.loads(line) for line in (here / "a" / "raw" / "control.jsonl").read_text().splitlines()]
    assert {record["switch"] for record in records} == {"s1", "s2"}
    assert max(record["packets"] for record in records) > 200


def test_a_class_that_is_based_on_fairlanes_changes_a_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    plain = api.run("dumbbell", ["als:2"], duration_s=30, out="plain")
    capped = api.run("dumbbell", ["als:2"], duration_s=30, control=CAP, out="capped")
    assert min(flow["goodput_bps"] for flow in plain.summary["flows"]) > 4e6
    assert all(0.8e6 < flow["goodput_bps"] < 1.2e6 for flow in capped.summary["flows"])
    # The rest is Fairlane's: the same configuration, connections and fair rates.
    raw = [tmp_path / name / "raw" for name in ("plain", "capped")]
    assert len({(folder / "controller.json").read_bytes() for folder in raw}) == 1
    rows = [list(csv.DictReader((folder / "controller.csv").open())) for folder in raw]
    for column in ("time_s", "switch", "port", "connections", "fair_rate_bps"):
        assert [row[column] for row in rows[0]] == [row[column] for row in rows[1]]
    assert "2" in {row["connections"] for row in rows[0]}
    records = [json.loads(line) for line in (raw[1] / "control.jsonl").read_text().splitlines()]
    assert {record["switch"] for record in records} == {"s1", "s2"}
    assert {rate for record in records[4:] for rate in record["rates_bps"]} == {1_000_000}


def test_what_is_based_on_fairlanes_needs_its_tables(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fairlane(monkeypatch, *ARGUMENTS, "--program", "own.p4", "--control", str(CAP), "--out", "o") == 2
    assert "cap.py: Capped is based on AlsPlane, and own.p4 has no table of als.p4: base it on ControlPlane." in capsys.readouterr().err


def test_a_fault_of_a_class_that_is_based_on_fairlanes_has_its_line(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    head = "from fairlane.controller.als import AlsPlane\n\nclass Own(AlsPlane):\n    def on_records(self, switch, records):\n"
    Path("own.py").write_text(head + "        1 / len(records[2:])\n")
    assert fairlane(monkeypatch, *ARGUMENTS, "--control", "own.py", "--out", "o") == 4
    assert "own.py:5: on_interval: ZeroDivisionError" in capsys.readouterr().err
    Path("own.py").write_text(head.replace("on_records", "on_record") + "        pass\n")
    assert fairlane(monkeypatch, *ARGUMENTS, "--control", "own.py", "--out", "o") == 2
    assert "own.py:4: Own has no event 'on_record'; did you mean 'on_records'?" in capsys.readouterr().err


def test_without_a_control_plane_nothing_is_filled(here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert fairlane(monkeypatch, *ARGUMENTS, "--program", "own.p4", "--out", "o") == 0
    said = capsys.readouterr().out
    assert "control plane: none. own.p4 has no table of als.p4, and nothing fills its tables" in said
    assert "warning" not in said
    assert json.loads((here / "o" / "summary.json").read_text())["flows"][0]["goodput_bps"] == 0


HEAD = "from fairlane.controller.plane import ControlPlane\n\n\n"
START = HEAD + "class Own(ControlPlane):\n    def on_start(self, switch):\n        {}\n"


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        (None, 2, "--control own.py: no such file"),
        ("x = 1\n", 2, "--control own.py: has no class that is based on ControlPlane"),
        (
            HEAD + "class A(ControlPlane): ...\nclass B(ControlPlane): ...\n",
            2,
            "own.py: has several control planes, A (line 4) and B (line 5)",
        ),
        ("class A(\n", 2, "--control own.py:1: '(' was never closed"),
        ("import nothing_of_this_name\n", 2, "own.py:1: cannot be read: ModuleNotFoundError"),
        (
            HEAD + "class A(ControlPlane):\n    def on_digests(self): ...\n",
            2,
            "own.py:5: A has no event 'on_digests'; did you mean 'on_digest'?",
        ),
        (HEAD + "class A(ControlPlane):\n    interval_s = 0\n", 2, "own.py: interval_s: must be at least 1e-6 s, got 0"),
        (HEAD + "class A(ControlPlane):\n    def __init__(self):\n        1 / 0\n", 2, "own.py:6: A(): ZeroDivisionError"),
        (START.format("1 / 0"), 4, "own.py:6: on_start: ZeroDivisionError: division by zero"),
        (
            START.format("switch.table('Switching.entr')"),
            4,
            "own.py:6: on_start: no table 'Switching.entr'; the program has Switching.enter",
        ),
        (
            START.format("switch.table('enter').insert({'hdr.ipv4.dst': 1}, 'discard')"),
            4,
            "own.py:6: on_start: table Switching.enter has no key 'hdr.ipv4.dst'; it has hdr.ipv4.destination",
        ),
        (
            START.format("switch.table('enter').insert({'hdr.ipv4.destination': 1 << 32}, 'discard')"),
            4,
            "own.py:6: on_start: table Switching.enter, key hdr.ipv4.destination: 4294967296 does not fit in 32 bits",
        ),
        (
            START.format("switch.table('enter').insert({'hdr.ipv4.destination': 1}, 'push', {'label': 65536, 'port': 1})"),
            4,
            "own.py:6: on_start: action push, parameter label: 65536 does not fit in 16 bits",
        ),
        (
            START.format("[switch.table('enter').insert({'hdr.ipv4.destination': 1}, 'discard') for _ in 'ab']"),
            4,
            "own.py:6: on_start: switch s1 refuses it: table \"Switching.enter\": table 'Switching.enter' already has an entry with this key",
        ),
    ],
)
def test_a_wrong_control_plane_is_told_with_its_line(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], text: str | None, code: int, said: str
) -> None:
    Path("own.py").unlink()
    if text is not None:
        Path("own.py").write_text(text)
    assert fairlane(monkeypatch, *ARGUMENTS, "--program", "own.p4", "--control", "own.py", "--out", "o") == code
    assert said in capsys.readouterr().err
    assert sorted(path.name for path in here.iterdir()) == (["own.p4"] if text is None else ["own.p4", "own.py"])


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("--control", "own.py"), "--control own.py: p4src/als.p4 has Fairlane's controller. Name a P4 program of your own as well"),
        (
            ("--program", "own.p4", "--queue", "red"),
            "--program own.p4: link s1 - s2: the queue management red is part of als.p4, and own.p4 is another program",
        ),
        (("--program", "own.p4", "--program", "two.p4"), "several whole programs"),
    ],
)
def test_what_does_not_belong_together_is_refused(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], argv: tuple[str, ...], said: str
) -> None:
    shutil.copy("own.p4", "two.p4")
    assert fairlane(monkeypatch, *ARGUMENTS, *argv, "--out", "o") == 2
    assert said in capsys.readouterr().err
    assert not (here / "o").exists()


EXPERIMENT = """
title = "events"
bottleneck = "s1->s2"
duration_s = 3
[topology]
kind = "dumbbell"
pairs = 1
bottleneck = { rate_bps = 1e7, delay_s = 0.01, queue_packets = 50 }
access = { rate_bps = 1e8, delay_s = 0.0, queue_packets = 1000 }
[[flows]]
name = "c"
kind = "cbr"
stop_s = 1.0
[cbr]
rate_bps = 1e6
[[changes]]
at_s = 2.0
link = "s1->s2"
rate_bps = 5e6
"""
LINK = "bottleneck = { rate_bps = 1e7, delay_s = 0.01, queue_packets = 50 }"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("plane = 'own.py'", "plane = 'none.py'", "control.plane: no file none.py: give a Python file (docs/own-program.md)"),
        ("program = 'own.p4'", "", "control.plane: own.py: p4src/als.p4 has Fairlane's controller. Name a P4 program of your own as well"),
        ("plane = 'own.py'", "plane = 'bad.py'", "control.plane: bad.py:1: '(' was never closed"),
        (
            "[control]",
            "[control]\nprotection = true",
            "control.protection: control.protection is for als.p4 and its controller, and own.p4 has",
        ),
        ("[control]", "[control]\ncounter = 'sketch'", "control.counter: "),
        ("[control]", "[control]\nrcp = { alpha = 0.5 }", "control.rcp: "),
        ("[control]", "[control]\nplain_switches = ['s1']", "control.plain_switches: "),
        (LINK, LINK.replace(" }", ", queue = 'red' }"), "topology.bottleneck.queue: link s1 - s2: the queue management red is part of"),
        ('link = "s1->s2"\nrate_bps = 5e6', 'switch = "s1"\nals = false', "changes[0]: als of a switch is for als.p4 and its controller"),
        (
            "[[changes]]",
            "[[checks]]\nname = 'n'\nmetric = 'fair_rate_delay_s'\nhigh = 1\n[[changes]]",
            "checks[0].metric: fair_rate_delay_s comes from records of als.p4's controller",
        ),
    ],
)
def test_a_setting_without_effect_is_refused_at_its_key(here: Path, old: str, new: str, said: str) -> None:
    (here / "bad.py").write_text("class A(\n")
    text = EXPERIMENT + "[control]\nprogram = 'own.p4'\nplane = 'own.py'\n"
    assert text.count(old) == 1
    (here / "own.toml").write_text(text.replace(old, new))
    with pytest.raises(ConfigError) as refused:
        api.run("own.toml", out="o")
    assert re.match(r"own\.toml:\d+: " + re.escape(said), str(refused.value)), refused.value
    assert not (here / "o").exists()


def test_a_file_python_and_options_run_the_same_control_plane(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = located_toml.parse(EXPERIMENT, "events").values
    (here / "inner").mkdir()
    for name in ("own.p4", "own.py"):
        shutil.copy(name, here / "inner" / name)
    (here / "inner" / "own.toml").write_text(EXPERIMENT + "[control]\nprogram = 'own.p4'\nplane = 'own.py'\n")
    api.run("inner/own.toml", out="a")
    api.run(keys, programs="own.p4", control="own.py", out="b")
    control = json.loads((here / "a" / "experiment.json").read_text())["settings"]["control"]
    for key, name in (("program", "own.p4"), ("plane", "own.py")):
        assert control[key].startswith("files/") and (here / "a" / control[key]).read_text() == (here / name).read_text()
    # The folder's files are enough.
    monkeypatch.chdir(here / "a")
    api.run(keys, programs=control["program"], control=Path(control["plane"]), out=here / "c")
    records = [{path.name: path.read_bytes() for path in (here / out / "raw").iterdir()} for out in "abc"]
    assert records[0] == records[1] == records[2] and "control.jsonl" in records[0]


FILLS_NOTHING = HEAD + "class Own(ControlPlane):\n    def on_interval(self):\n        self.record(own=1)\n"


@pytest.mark.timeout(300)
def test_a_study_compares_control_planes_and_is_done_again_from_its_folder(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "inner").mkdir()
    (here / "inner" / "none.py").write_text(FILLS_NOTHING)
    shutil.move("own.py", "inner/own.py")
    study = "seeds = [1]\nwindow_from = 0.0\n" + EXPERIMENT + "[control]\nplane = '= plane'\n[sweep]\nplane = ['own.py', 'none.py']\n"
    study += "[measure]\nc_goodput_bps = '= c.goodput_bps'\n"
    (here / "inner" / "study.toml").write_text(study.replace("duration_s = 3", "duration_s = 2.5"))
    assert fairlane(monkeypatch, "sweep", "inner/study.toml", "--program", "own.p4", "--workers", "1", "--out", "o") == 0
    monkeypatch.chdir(here / "o")
    shutil.rmtree(here / "inner")
    (here / "own.p4").unlink()
    said = re.match(r"# .* In this folder: fairlane (sweep .*)\n", Path("study.toml").read_text())
    assert said is not None
    assert fairlane(monkeypatch, *said[1].split(), "--workers", "1") == 0, capsys.readouterr().err
    first, again = (list(csv.DictReader((here / "o" / name / "runs.csv").open())) for name in (".", "AGAIN"))
    for key in ("seed", "inputs_sha256", "records_sha256", "c_goodput_bps"):
        assert [row[key] for row in first] == [row[key] for row in again]
    assert [float(row["c_goodput_bps"]) > 0 for row in first] == [True, False]
    assert [row["plane"] for row in again] == ["files/control/own.py", "files/control-2/none.py"]


def test_a_study_is_refused_before_its_first_run(here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "study.toml").write_text("seeds = [1]\n" + EXPERIMENT + "[measure]\nx = '= run.fair_rate_delay_s'\n")
    words = ("sweep", "study.toml", "--program", "own.p4", "--out", "o")
    assert fairlane(monkeypatch, *words, "--control", "none.py") == 2
    assert "--control none.py: no such file" in capsys.readouterr().err
    assert fairlane(monkeypatch, *words, "--control", "own.py") == 2
    assert re.search(r"study.toml:\d+: measure.x: run.fair_rate_delay_s comes from records of als.p4's controller", capsys.readouterr().err)
    assert not list((here / "o").rglob("*.json"))


def records_of_events(here: Path, monkeypatch: pytest.MonkeyPatch, *argv: str) -> dict[str, list[dict[str, Any]]]:
    """By the kind of event."""
    for suffix in ("p4", "py"):
        shutil.copy(Path(__file__).with_name(f"plane_events.{suffix}"), f"own.{suffix}")
    Path("events.toml").write_text(EXPERIMENT)
    assert fairlane(monkeypatch, "run", "events.toml", "--program", "own.p4", "--control", "own.py", "--out", "o", *argv) == 0
    found: dict[str, list[dict[str, Any]]] = {}
    for line in (here / "o" / "raw" / "control.jsonl").read_text().splitlines():
        record = json.loads(line)
        found.setdefault(record["event"], []).append(record)
    return found


def check_events(found: dict[str, list[dict[str, Any]]]) -> None:
    assert [record["switch"] for record in sorted(found["start"], key=lambda record: record["switch"])] == ["s1", "s2"]
    assert "action=Group(id=1), values={}, priority=7" in found["start"][0]["marks"][0]
    assert [record["what"][:13] for record in found["refused"]] in (["switch s1 ref", "switch s2 ref"], ["switch s2 ref", "switch s1 ref"])
    assert {(record["switch"], record["to"]) for record in found["packet"]} >= {("s1", "10.0.2.1"), ("s2", "10.0.2.1")}
    assert {record["fields"]["ingress_port"] for record in found["packet"]} <= {1, 2}
    digest = found["digest"][0]
    assert (digest["name"], set(digest["values"])) == ("seen_t", {"source", "port"})
    assert {(record["switch"], record["action"], *record["values"]) for record in found["idle"]} >= {
        ("s1", "I.send", "port", "mac"),
        ("s2", "I.copies", "group", "mac"),
    }
    assert [(record["switch"], record["port"], record["rate_bps"]) for record in found["port"]] == [("s1", 1, 5_000_000)]
    last = found["interval"][-1]
    assert last["packets"] == sum(last["colours"]) > 100
    green, yellow, red = last["colours"]
    assert green < red and yellow < red and last["paced"] > 100
    assert any(count == ["I.send"] for count in ([route[1] for route in record["routes"]] for record in found["interval"]))
    assert last["routes"] == [], "idle entries are gone"


def test_every_event_and_call_in_virtual_time(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = records_of_events(here, monkeypatch)
    check_events(found)
    # An answer comes after the control channel's delay, there and back.
    assert found["start"][0]["t"] < 0.05
    assert found["interval"][0]["t"] == 0.506
    assert found["port"][0]["t"] > found["packet"][0]["t"] + 1.9


@pytest.mark.root
@pytest.mark.timeout(180)
@pytest.mark.skipif(bool(LACKING), reason=LACKING)
def test_every_event_and_call_on_mininet(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_events(records_of_events(here, monkeypatch, *MININET))


@pytest.mark.root
@pytest.mark.timeout(180)
@pytest.mark.skipif(bool(LACKING), reason=LACKING)
def test_the_same_class_on_mininet(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """UDP flows alone: iperf3 is not needed."""
    files = ("--program", "own.p4", "--control", "own.py")
    arguments = ("run", "dumbbell", "--flow", "rap:4", "--duration", "6")
    assert fairlane(monkeypatch, *arguments, *files, "--out", "o", *MININET) == 0
    summary = json.loads((here / "o" / "summary.json").read_text())
    assert summary["fabric"] == "mininet" and len(summary["flows"]) == 4
    assert all(flow["goodput_bps"] > 0 for flow in summary["flows"])
    assert (here / "o" / "fair_rates.csv").read_text().strip() == ""
    records = [json.loads(line) for line in (here / "o" / "raw" / "control.jsonl").read_text().splitlines()]
    assert {record["switch"] for record in records} == {"s1", "s2"}


@pytest.mark.root
@pytest.mark.timeout(180)
@pytest.mark.skipif(bool(LACKING), reason=LACKING)
@pytest.mark.parametrize("event", ["on_start(self, switch)", "on_interval(self)"])
def test_an_exception_ends_a_run_on_mininet(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], event: str
) -> None:
    Path("own.py").write_text(HEAD + f"class Own(ControlPlane):\n    def {event}:\n        1 / 0\n")  # no ping is answered
    code = fairlane(monkeypatch, *ARGUMENTS, "--program", "own.p4", "--control", "own.py", "--out", "o", *MININET, "--no-rtt-check")
    assert code == 4
    assert f"fairlane: own.py:6: {event.partition('(')[0]}: ZeroDivisionError: division by zero" in capsys.readouterr().err
    assert sorted(path.name for path in here.iterdir()) == ["own.p4", "own.py"]
