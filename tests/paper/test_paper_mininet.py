"""Rows on both clocks: what is shown of them, a machine that cannot, and (as root) one small row for real."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from fairlane import probes
from fairlane.errors import Refusal
from fairlane.experiments import loader
from fairlane.fabrics import flows, virtual_fabric
from fairlane.paper import on_mininet, read_row, wall_clock
from fairlane.paper.row import Row
from tests import missing

pytestmark = pytest.mark.skipif(virtual_fabric.native is None, reason="needs the module fairlane.native (make build)")

ROOT = probes.ROOT
GRPC_PORT = 29959
LACKING = missing.for_mininet("iperf3")

FILE = """\
title = "A row on both clocks"
bottleneck = "s1->s2"
duration_s = 30.0
window_from = 0.3
seeds = [1, 2]
[paper]
reference = "-"
section = "-"
figure = "-"
[sweep]
n = [1, 2]
[topology]
kind = "dumbbell"
pairs = "= n + 1"
bottleneck = { rate_bps = 1_000_000, delay_s = 0.01, queue_packets = 20 }
access = { rate_bps = 100_000_000 }
[cbr]
packet_bytes = 500
rate_bps = 200_000
[tcp]
packet_bytes = 100
timestamps = false
delayed_ack = false
timer_granularity_s = 0.1
[[flows]]
name = "cbr"
kind = "cbr"
count = "= n"
[[flows]]
name = "tcp"
kind = "tcp-sack"
[mininet]
at = { n = 1 }
without = ["tcp.timer_granularity_s"]
duration_s = 8.0
[measure]
cbr_bps = "= cbr.mean_bps"
utilisation = "= bottleneck.utilisation"
nothing = "= tcp.mean_delay_s"
[[curves]]
name = "rate"
of = "rate"
flows = "cbr"
[[figures]]
title = "rates"
curves = ["rate"]
where = { n = 1 }
[[figures]]
title = "over n"
x = "n"
y = "cbr_bps"
[[expect]]
name = "full link"
measure = "utilisation"
low = 0.5
"""


def load(folder: Path, text: str = FILE) -> Row:
    (folder / "both.toml").write_text(text)
    return read_row.load(folder / "both.toml")


def test_the_table_of_both_clocks(tmp_path: Path) -> None:
    chosen = load(tmp_path)
    assert on_mininet.shown(tmp_path, chosen) is None
    (point,) = on_mininet.points(chosen)
    run = {
        "seed": 1,
        "inputs": on_mininet.inputs(point),
        "ended": "then",
        "load": [1.0, 2.0],
        "curves": {"rate": {"t": [1.0, 2.0], "v": [1.0, 2.0]}},
        "values": {"cbr_bps": 210_000.0, "utilisation": 0.9, "nothing": None},
    }
    kept = {
        "where": "here",
        "failed": {},
        "virtual_seeds": [1, 2],
        "points": [
            {
                "axes": {"n": 1},
                "runs": [run],
                "virtual": {"cbr_bps": [190_000.0, 210_000.0], "utilisation": [1.0, None], "nothing": [None, None]},
            }
        ],
    }
    path = on_mininet.path(tmp_path, "both")
    path.parent.mkdir()
    path.write_text(json.dumps(kept))
    shown = on_mininet.shown(tmp_path, chosen)
    assert shown is not None
    assert shown["heads"] == [
        "n",
        "measure",
        "virtual time, median of 2 seeds",
        "range over seeds",
        "Mininet, wall clock",
        "Mininet / virtual",
    ]
    assert shown["lines"] == [
        ["1", "cbr_bps", "200 k", "190 k to 210 k", "210 k", "1.05"],
        ["", "utilisation", "–", "–", "0.9", "–"],
        ["", "nothing", "–", "–", "–", "–"],
    ]
    assert [title for title, _ in shown["figures"]] == ["rates"] and shown["current"]
    assert (shown["laid"], shown["left_out"]) == ("duration_s = 8.0", "without tcp.timer_granularity_s")
    # Words may change, what is run may not.
    assert on_mininet.shown(tmp_path, load(tmp_path, FILE.replace("A row on", "Rows on")))["current"]
    assert not on_mininet.shown(tmp_path, load(tmp_path, FILE.replace("rate_bps = 200_000", "rate_bps = 300_000")))["current"]
    # A run that failed leaves its point without a value on that clock.
    path.write_text(json.dumps({**kept, "points": [{**kept["points"][0], "runs": []}], "failed": {"both n=1": "no flow is left"}}))
    shown = on_mininet.shown(tmp_path, chosen)
    assert shown["lines"][0][4:] == ["–", "–"] and not shown["current"] and shown["figures"] == []


def test_a_machine_that_cannot_says_so_and_a_row_that_never_could_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr(probes, "is_root", lambda: False)
    console = Console(width=250)
    assert not wall_clock.announce(wall_clock.plan([load(tmp_path)], tmp_path), console)
    assert "The runs on Mininet are left out, the report is of virtual time: Mininet needs root" in capsys.readouterr().out
    never = load(tmp_path, FILE.replace('without = ["tcp.timer_granularity_s"]\n', ""))
    with pytest.raises(Refusal, match="flow tcp: the kernel's TCP cannot be given timer_granularity_s"):
        wall_clock.announce(wall_clock.plan([never], tmp_path), console)
    assert not wall_clock.announce(
        wall_clock.plan(
            [
                load(
                    tmp_path,
                    FILE.replace("[mininet]", "[quick]")
                    .replace("at = { n = 1 }", "n = [1]")
                    .replace('without = ["tcp.timer_granularity_s"]\n', ""),
                )
            ],
            tmp_path,
        ),
        console,
    )
    assert "none of these rows has a [mininet] table" in capsys.readouterr().out


def test_the_files_at_hand_can_run_there() -> None:
    """What the ledger's rows say of Mininet, whatever the machine."""
    chosen = {
        run.row.id: run
        for run in wall_clock.plan(
            [read_row.load(loader.find(name)) for name in ("als-3", "als-plain", "als-t1", "daa-7", "rap-4", "trabol-3", "ssvp-3")],
            Path("nowhere"),
        )
    }
    assert set(chosen) == {"als-3", "als-plain", "als-t1", "daa-7", "rap-4", "trabol-3", "ssvp-3"}
    for run in chosen.values():
        assert [reason for flow in run.experiment.flows if (reason := flows.obstacle(flow))] == []


@pytest.mark.root
@pytest.mark.timeout(240)
@pytest.mark.skipif(bool(LACKING), reason=LACKING)
@pytest.mark.long
def test_a_row_is_run_for_real_once_and_shown_beside_virtual_time(tmp_path: Path) -> None:
    (tmp_path / "both.toml").write_text(FILE)

    def paper() -> str:
        command = [
            sys.executable,
            "-m",
            "fairlane",
            "paper",
            str(tmp_path / "both.toml"),
            "--mininet",
            "--grpc-port",
            str(GRPC_PORT),
            "--workers",
            "1",
            "--out",
            str(tmp_path / "paper"),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    first = paper()
    assert "1 to go by the wall clock, one after another: about 20 s." in first and "1/1  both n=1 seed=1 on Mininet: 8 s" in first
    results = tmp_path / "paper" / "mininet" / "both" / "n=1_seed=1"
    summary = json.loads((results / "summary.json").read_text())
    assert (summary["fabric"], summary["target"], summary["duration_s"], summary["seed"]) == ("mininet", "embedded", 8.0, 1)
    assert (results / "raw" / "cbr.receiver.jsonl").is_file()
    kept = json.loads((tmp_path / "paper" / "mininet" / "both.json").read_text())
    (point,) = kept["points"]
    assert point["axes"] == {"n": 1} and len(point["virtual"]["cbr_bps"]) == 2 and len(point["runs"]) == 1
    assert point["virtual"]["cbr_bps"][0] == pytest.approx(200e3, rel=0.05)
    # A run that says itself that the machine did not keep up may have lost more: that is its verdict, and no fault of the row.
    if summary["fidelity"]["verdict"] == "true":
        assert point["runs"][0]["values"]["cbr_bps"] == pytest.approx(200e3, rel=0.05)
    assert point["runs"][0]["values"]["utilisation"] > 0.7
    page = (tmp_path / "paper" / "index.html").read_text()
    assert page.count("Virtual time compared with wall clock (Mininet, embedded switch)") == 1 and "On Mininet, wall clock: rates" in page
    made = (results / "run.json").stat().st_mtime_ns
    second = paper()
    assert "1 are there already." in second and "on Mininet: 8 s" not in second
    assert (results / "run.json").stat().st_mtime_ns == made and (tmp_path / "paper" / "index.html").read_text() == page
