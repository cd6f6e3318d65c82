"""A flow whose file is complete, or that was stopped, has no share from then on, and is in no mean and no index of a window in which it was not active."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fairlane import api
from fairlane.cli import app
from fairlane.experiments import loader
from fairlane.fabrics import raw, virtual_fabric
from fairlane.live import finished
from fairlane.live.shares import Shares
from fairlane.results import report
from fairlane.results.figures import Figures, FlowFigures
from fairlane.studies import measures

pytestmark = pytest.mark.skipif(virtual_fabric.native is None, reason="the module fairlane.native is not built: make build")

RUN = """
title = "Files beside a flow"
bottleneck = "s1->s2"
duration_s = DURATION
window_from = FROM
[topology]
kind = "dumbbell"
pairs = 9
bottleneck = { rate_bps = 10_000_000, delay_s = 0.01, queue_packets = 100 }
access = { rate_bps = 100_000_000 }
[[flows]]
name = "bg"
kind = "tcp-cubic"
"""
SHORT = """[[flows]]
name = "short"
kind = "tcp-cubic"
count = COUNT
start_s = START
"""
FILE = "parameters = { file_bytes = 100_000 }\n"


def run(tmp_path: Path, more: str, duration: float = 10.0, window_from: float = 0.5, count: int = 1, start: float = 0.0) -> api.Result:
    text = RUN.replace("DURATION", str(duration)).replace("FROM", str(window_from)) + SHORT + more
    file = tmp_path / "run.toml"
    file.write_text(text.replace("COUNT", str(count)).replace("START", str(start)))
    return api.run_experiment(loader.load(file), out=tmp_path / "out")


@pytest.mark.parametrize(("more", "ends"), [(FILE, True), ("stop_s = 2.0\n", False)])
@pytest.mark.parametrize("count", [1, 8])
def test_a_flow_that_has_ended_counts_no_more(tmp_path: Path, more: str, ends: bool, count: int) -> None:
    result = run(tmp_path, more, count=count)
    bg, *others = result.summary["flows"]
    (kind,) = result.summary["kinds"]
    assert bg["fair_share_bps"] == pytest.approx(10e6) and math.isnan(bg["completion_s"])
    assert (kind["flows"], kind["jain_index"], kind["share"]) == (1, pytest.approx(1.0), pytest.approx(1.0))
    assert kind["mean_goodput_bps"] == bg["goodput_bps"] and kind["mean_loss_fraction"] == bg["loss_fraction"]
    for one in others:
        assert math.isnan(one["goodput_bps"]) and math.isnan(one["fair_share_bps"]) and math.isnan(one["loss_fraction"])
        assert (one["sent_packets"], one["lost_packets"]) == (0, 0)
        assert (one["completion_s"] > 0) == ends
    written = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert written["flows"][1]["goodput_bps"] is None and written["flows"][0]["completion_s"] is None
    rows = result.flows[result.flows["flow"] != "bg"]
    assert rows["time_s"].max() <= 3.0
    found = measures.measure(
        result.recorded,
        {"m": "= all.mean_bps", "least": "= all.min_bps", "j": "= all.jain", "w": "= all.worst_case_fairness", "cov": "= all.cov"},
        {},
    )
    alone = measures.measure(result.recorded, {"m": "= bg.mean_bps", "cov": "= bg.cov"}, {})
    assert found["m"] == found["least"] == alone["m"] and found["j"] == found["w"] == pytest.approx(1.0) and found["cov"] == alone["cov"]


def test_a_file_is_complete_when_its_last_byte_is_acknowledged(tmp_path: Path) -> None:
    """Over a window that has all of it, goodput times the time until it was complete is the file: alone for a while, then beside others."""
    result = run(tmp_path, FILE, window_from=0.0, count=8, start=1.0)
    for one in result.summary["flows"][1:]:
        # At 10 Mb/s a file takes at least 80 ms and a round trip.
        assert 0.1 < one["completion_s"] < 5.0
        assert one["goodput_bps"] * one["completion_s"] == pytest.approx(8 * 100_000)
        assert 10e6 / 9 * 0.999 <= one["fair_share_bps"] < 10e6
        records = list(raw.flow_records(tmp_path / "out" / "raw", one["name"], "sender"))
        start, end = records[0], records[-1]
        assert (end["kind"], end["bytes"]) == ("complete", 100_000)
        assert end["t"] - start["t"] == pytest.approx(one["completion_s"])
        received = [r for r in raw.flow_records(tmp_path / "out" / "raw", one["name"], "receiver") if r["kind"] == "data"]
        assert max(r["received_payload_bytes"] for r in received) == 100_000
    # The flow that stays has the link to itself before and afterwards.
    bg = result.summary["flows"][0]
    assert 5e6 < bg["fair_share_bps"] < 10e6


def test_a_file_that_is_not_complete_has_no_time(tmp_path: Path) -> None:
    result = run(tmp_path, FILE.replace("100_000", "100_000_000"), duration=3.0)
    assert math.isnan(result.summary["flows"][1]["completion_s"])
    assert result.summary["kinds"][0]["flows"] == 2


def test_a_file_that_ends_within_the_first_bin_is_drawn(tmp_path: Path) -> None:
    """No flow has a share at the end of any bin."""
    command = ["run", "dumbbell", "--flow", "tcp-sack:1", "--set", "tcp-sack.file_bytes=16000", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    assert (tmp_path / "out" / "rates.png").stat().st_size > 5000


def test_the_table_says_what_was_not_active(capsys: pytest.CaptureFixture[str]) -> None:
    from fairlane.terminal import OwnConsole

    here = FlowFigures("bg", "tcp-cubic", 9e6, 10e6, 1000, 10)
    gone = FlowFigures("short", "tcp-cubic", math.nan, math.nan, 0, 0, 0.218, 1.5)
    OwnConsole(width=120).print(report._flows(Figures((0.0, 1.0), [here, gone], [], [])))
    line = next(line for line in capsys.readouterr().out.splitlines() if "short" in line)
    assert [cell.strip() for cell in line.strip("│").split("│")] == ["short", "tcp-cubic", "-", "-", "-", "0", "0", "-", "0.218", "1.50"]


def test_a_flow_that_is_complete_has_no_share_on_the_live_page(tmp_path: Path) -> None:
    """Its schedule does not say when a file will be complete, its records do: bg has all of the link again from then on."""
    result = run(tmp_path, FILE, start=2.0)
    session = finished.open_results(tmp_path / "out")
    (end_s,) = session.sampler.complete.values()
    assert end_s == pytest.approx(2.0 + result.summary["flows"][1]["completion_s"])
    assert session.shares.at(2.05) == {"bg": pytest.approx(5e6), "short": pytest.approx(5e6)}
    assert session.shares.at(end_s + 0.01) == {"bg": pytest.approx(10e6)}
    shares = session.shares
    assert [time_s for time_s, _ in shares.events] == sorted(time_s for time_s, _ in shares.events)


def test_shares_that_were_told_stay_when_a_file_is_complete(tmp_path: Path) -> None:
    run(tmp_path, FILE, start=2.0)
    shares = Shares(loader.load(tmp_path / "run.toml"))
    shares.advance(2.1)
    told = list(shares.events)
    shares.advance(3.0, {"short": 2.4})
    assert shares.events[: len(told)] == told
    assert shares.at(2.3)["bg"] == pytest.approx(5e6) and shares.at(2.5) == {"bg": pytest.approx(10e6)}
