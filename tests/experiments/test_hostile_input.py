"""Wrong input is refused, with file and key, and never triggers a bug in Fairlane: NaN, infinity, huge, tiny, negative, empty, deep, of another type.

FAIRLANE_HOSTILE=5000 tries so many of each instead of a few."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console

from fairlane import ad_hoc, execute, probes
from fairlane.experiments import fabrics, loader
from fairlane.fabrics import targets, virtual_fabric
from fairlane.fabrics.places import VIRTUAL
from fairlane.inputs import toml_text
from fairlane.inputs.located_toml import tomllib
from fairlane.studies import schedule
from tests.experiments.hostile import DOCUMENTED, JSON_VALUES, VALUES, Begun, changes, fairlane

MANY = settings(
    max_examples=int(os.environ.get("FAIRLANE_HOSTILE", "60")),
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.large_base_example,
        HealthCheck.data_too_large,
    ],
)
EXAMPLES = probes.ROOT / "docs" / "examples"
EVERYTHING = """
title = "everything"
bottleneck = "s1->s2"
duration_s = 2.0
seed = 1
window_from = 0.5
seeds = [1, 2]
sweep = { n = [1, 2], kind = ["rap", "als"] }
let = { rate_bps = "= 1e6 * n" }
quick = { n = [1], seeds = [1] }
rap = { packet_bytes = 500, initial_rate_bps = 40000.0 }
tcp = { packet_bytes = 500, min_rto_s = 0.2, delayed_ack = true, max_window_packets = 20 }
[control]
program = "p4src/als.p4"
utilisation_target = 0.9
interval_s = 1.0
counter = "exact"
protection = false
source_guard = true
multicast_router_links = []
plain_switches = []
[[flows]]
name = "mine"
kind = "= kind"
count = 2
start_s = 0.1
join_interval_s = 0.1
start_jitter_s = 0.1
stop_s = 1.5
packet_bytes = 400
parameters = { pacing_jitter = 0.1, source = { kind = "cbr", rate_bps = 1e5 } }
[[flows]]
name = "tcp"
kind = "tcp-sack"
hosts = [["h3", "h6"]]
parameters = { file_bytes = 100000 }
[topology]
kind = "dumbbell"
pairs = 3
[topology.bottleneck]
rate_bps = "= rate_bps"
delay_s = 0.005
queue_packets = 50
queue = "red"
red = { minimum = 0.25, maximum = 0.75, max_p = 0.1, weight = 0.002, mean_packet_bytes = 500, ecn = true }
loss = 0.001
jitter_s = 0.0005
framing = "ip"
[topology.access]
rate_bps = 1e7
delay_s = 0.001
[[changes]]
at_s = 1.0
link = "s1->s2"
rate_bps = 500000.0
delay_s = 0.01
loss = 0.01
jitter_s = 0.001
[[changes]]
at_s = 1.2
switch = "s1"
als = false
[measure]
ratio = "= mine.mean_bps / tcp.mean_bps"
busy = "= bottleneck.utilisation"
[[curves]]
name = "queue"
of = "queue"
bin_s = 0.1
[[figures]]
title = "ratio"
x = "n"
y = "ratio"
series = "kind"
[[compare]]
measure = "ratio"
of = { kind = "rap" }
to = { kind = "als" }
[[expect]]
name = "busy"
measure = "busy"
low = 0.5
paper = "none"
[mininet]
at = { n = 1, kind = "rap" }
seeds = [1]
without = ["tcp.min_rto_s"]
duration_s = 1.0
"""


def _inlined(document: dict[str, Any]) -> str:
    """A line for each key at the top, so that any value can be anywhere."""
    return "".join(f"{toml_text.key(key)} = {toml_text.value(value)}\n" for key, value in document.items())


@cache
def _documents() -> list[dict[str, Any]]:
    files = [EXAMPLES / "parking-lot.toml", EXAMPLES / "parking-lot-study.toml", EXAMPLES / "changing-links.toml"]
    files += [loader.find(name) for name in ("als-3", "als-8", "rap-3", "ssvp-4", "trabol-3")]
    found = [tomllib.loads(EVERYTHING)] * 4
    for file in files:
        found.append(loader.read(file).values)
    queues = {"codel": {}, "pie": {}, "pi2": {}, "dualpi2": {}, "step": {"threshold_s": 0.001}}
    for queue, values in queues.items():
        document = tomllib.loads(EVERYTHING)
        for key in ("red", "queue"):
            del document["topology"]["bottleneck"][key]
        document["topology"]["bottleneck"] |= {queue: values, "rate_bps": 1e6}
        for key in ("seeds", "sweep", "let", "quick", "measure", "curves", "figures", "compare", "expect", "mininet"):
            document.pop(key)
        document["flows"][0]["kind"] = "als"
        found.append(document)
    return found


@pytest.fixture
def begins() -> Iterator[None]:
    """Runs are prepared as always, get a few milliseconds, and end. A program is compiled once."""
    with pytest.MonkeyPatch.context() as patch:
        compiled: dict[Any, Any] = {}
        compiles = targets.Toolchain.compile

        def once(self: targets.Toolchain, source: Path, folder: Path, defines: tuple[str, ...] = (), include: tuple[Path, ...] = ()) -> Any:
            key = source, defines, tuple(path.read_text() for place in include for path in sorted(place.glob("*.p4")))
            if key not in compiled:
                json, p4info = compiles(self, source, folder, defines, include)
                compiled[key] = json.read_bytes(), p4info.read_bytes()
            paths = folder / f"{source.stem}.json", folder / f"{source.stem}.p4info.txtpb"
            for path, data in zip(paths, compiled[key]):
                path.write_bytes(data)
            return paths

        def begin(*_: object, **__: object) -> None:
            raise Begun

        patch.setattr(targets.Toolchain, "compile", once)
        patch.setattr(virtual_fabric, "advance", begin)
        patch.setattr(schedule, "run", begin)
        yield


def _check(code: int, said: str, names: list[str]) -> None:
    """names: one of them at least is in a refusal."""
    assert "Traceback" not in said
    assert code in DOCUMENTED, said
    if code == 2:
        assert any(name in said for name in names), said
        assert len(said) < 20_000


FILES = {"changed": st.deferred(lambda: changes(_documents(), VALUES)), "command": st.sampled_from(["run", "run", "sweep", "mininet"])}


@MANY
@given(**FILES)
def test_an_experiment_file_with_any_values_is_refused_or_begins(
    changed: tuple[dict[str, Any], list[tuple[Any, ...]]],
    command: str,
    begins: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "hostile.toml"
    file.write_text(_inlined(changed[0]), encoding="utf-8")
    if command == "mininet":
        try:
            loader.load(file, laid_over=fabrics.laid_over)
        except ValueError as refusal:
            assert "hostile.toml" in str(refusal)
        return
    out = tmp_path / "out"
    code = fairlane(monkeypatch, command, "hostile.toml", "--out", str(out / os.urandom(8).hex()))
    _check(code, capsys.readouterr().err, ["hostile.toml", "hostile: "])


WORDS = [
    "",
    "x",
    "0",
    "-1",
    "1",
    "nan",
    "inf",
    "1e-300",
    "1e300",
    "1e400",
    "10" * 200,
    "é",
    "10mbit",
    "1e30gbit",
    "1e-9bit",
    "0s",
    "1e20s",
    "1bdp",
    "1e18bdp",
    "80",
    "=1",
    "a=b",
]
OPTIONS = ["--bottleneck", "--rtt", "--queue", "--buffer", "--side-delay", "--side-rate", "--packet-bytes", "--start-jitter", "--switches"]
OPTIONS += ["--duration", "--seed", "--at", "--control-delay", "--restart-after", "--live-port", "--live-speed", "--grpc-port"]
SETTINGS = [
    "rap.packet_bytes",
    "rap.pacing_jitter",
    "rap.initial_rate_bps",
    "rap.source",
    "rap.maximum_rate_bps",
    "tcp.min_rto_s",
    "tcp.file_bytes",
    "tcp.profile",
    "cbr.rate_bps",
    "on-off.shape",
]
FLOWS = [
    "rap",
    "rap:2",
    "tcp-sack:1",
    "als:3",
    "cbr:1",
    "on-off:1",
    "rap:0",
    "rap:999999",
    "rap:255",
    "rap@",
    "rap@1e20s",
    "rap:1@59s",
    "nobody",
    "",
    "als-layered:2",
]


COMMAND_LINES = {
    "topology": st.sampled_from(["dumbbell", "chain", "tree"]),
    "flows": st.lists(st.sampled_from(FLOWS[:6]) | st.sampled_from(FLOWS), max_size=2),
    "options": st.lists(st.tuples(st.sampled_from(OPTIONS), st.sampled_from(WORDS) | st.text(max_size=5)), max_size=2),
    "kind_settings": st.lists(
        st.tuples(st.sampled_from(SETTINGS), st.sampled_from(WORDS) | st.sampled_from(VALUES).map(toml_text.value)), max_size=2
    ),
}


@pytest.mark.parametrize("option", ["--control-delay", "--restart-after"])
@pytest.mark.parametrize("value", ["inf", "nan", "1e300", "-1"])
def test_times_without_an_end_are_refused(
    option: str, value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert fairlane(monkeypatch, "run", "dumbbell", "--flow=rap", f"{option}={value}") == 2
    assert option in capsys.readouterr().err and not list(tmp_path.iterdir())


@MANY
@given(**COMMAND_LINES)
def test_options_with_any_values_are_refused_or_begin(
    topology: str,
    flows: list[str],
    options: list[tuple[str, str]],
    kind_settings: list[tuple[str, str]],
    begins: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    argv = ["run", topology, "--out", str(tmp_path / os.urandom(8).hex())]
    for flow in flows:
        argv.append(f"--flow={flow}")
    for option, word in options:
        argv.append(f"{option}={word}")
    for key, word in kind_settings:
        argv.append(f"--set={key}={word}")
    code = fairlane(monkeypatch, *argv)
    _check(code, capsys.readouterr().err, ["--", "as --save writes it", f"{topology}: ", "seed"])


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The files of a run that `fairlane report` reads, of one that ran."""
    folder = tmp_path_factory.mktemp("finished") / "run"
    execute.execute(
        VIRTUAL.ready(ad_hoc.experiment("dumbbell", ad_hoc.Options(("rap:1", "tcp-sack:1")), 1.5, 1)),
        folder,
        Console(quiet=True),
    )
    return {
        "summary": json.loads((folder / "summary.json").read_text()),
        "flows": list(csv.reader(io.StringIO((folder / "flows.csv").read_text()))),
        "links": list(csv.reader(io.StringIO((folder / "links.csv").read_text()))),
    }


CELLS = ["", "nan", "inf", "-inf", "1e400", "x", "-1", "0", "1e300", "\0", "é", '"', "1,2"]
REPORTS = {
    "data": st.data(),
    "page": st.booleans(),
}


@MANY
@given(**REPORTS)
def test_a_report_on_changed_results_is_refused_or_written(
    data: st.DataObject,
    page: bool,
    finished: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = tmp_path / os.urandom(8).hex()
    run.mkdir()
    changed = data.draw(changes([finished["summary"]], JSON_VALUES)) if data.draw(st.booleans()) else (finished["summary"], [])
    (run / "summary.json").write_text(json.dumps(changed[0]))
    for name in ("flows", "links"):
        rows = [list(row) for row in finished[name]]
        for _ in range(data.draw(st.integers(0, 2))):
            row = data.draw(st.sampled_from(rows))
            row[data.draw(st.integers(0, len(row) - 1))] = data.draw(st.sampled_from(CELLS))
        cut = data.draw(st.sampled_from([None, None, None, 0, 1, 2]))
        text = "\n".join(",".join(row) for row in rows[:cut]) + "\n"
        (run / f"{name}.csv").write_text(text)
    code = fairlane(monkeypatch, "report", str(run), *(["--out", str(run / "page.html")] if page else []))
    said = capsys.readouterr().err
    _check(code, said, ["summary.json", "flows.csv", "links.csv"])
    assert code in (0, 2), said


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("summary.json", "[" * 100_000),
        ("summary.json", '{"a": ' * 100_000),
        ("summary.json", '{"duration_s": NaN}'),
        ("summary.json", "9" * 10_000),
        ("flows.csv", ""),
        ("flows.csv", "time_s,flow,kind,goodput_bps\n"),
        ("flows.csv", "time_s,flow,kind,goodput_bps\n1,a,rap,nan\n"),
        ("links.csv", "time_s,link,queue_packets\nx,y,z\n"),
    ],
)
def test_a_report_on_damaged_files(
    file: str, text: str, finished: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "summary.json").write_text(json.dumps(finished["summary"]))
    for name in ("flows", "links"):
        (tmp_path / f"{name}.csv").write_text("\n".join(map(",".join, finished[name])) + "\n")
    (tmp_path / file).write_text(text)
    code = fairlane(monkeypatch, "report", str(tmp_path), "--out", str(tmp_path / "page.html"))
    said = capsys.readouterr().err
    _check(code, said, [file])
    assert code == (0 if text.startswith("time_s,flow") else 2)


EXERCISE = probes.ROOT / "tests" / "tutorials" / "exercise"
TUTORIALS = {"data": st.data()}


@MANY
@given(**TUTORIALS)
def test_files_of_the_tutorials_with_any_values_are_refused_or_begin(
    data: st.DataObject, begins: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / os.urandom(8).hex()
    shutil.copytree(EXERCISE, folder)
    files = [path for path in sorted(folder.rglob("*.json")) if path.stat().st_size < 100_000]
    file = data.draw(st.sampled_from(files))
    file.write_text(json.dumps(data.draw(changes([json.loads(file.read_text())], JSON_VALUES))[0]))
    monkeypatch.chdir(folder)
    code = fairlane(monkeypatch, "run", str(next(path for path in files if path.name == "topology.json")), "--fabric", "virtual")
    _check(code, capsys.readouterr().err, [file.name, ".json"])


STRATEGIES = {
    "test_an_experiment_file_with_any_values_is_refused_or_begins": FILES,
    "test_options_with_any_values_are_refused_or_begin": COMMAND_LINES,
    "test_a_report_on_changed_results_is_refused_or_written": REPORTS,
    "test_files_of_the_tutorials_with_any_values_are_refused_or_begin": TUTORIALS,
}
