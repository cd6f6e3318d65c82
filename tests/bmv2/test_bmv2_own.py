"""What a user writes, on stock BMv2: a scheme with a header of its own, a queue with state per flow, a program from zero with its control plane. BMv2 is
not part of this project: where it is absent all of this is skipped."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fairlane import probes
from tests import missing

pytestmark = [pytest.mark.root, pytest.mark.timeout(180)]
if reason := missing.for_mininet("simple_switch_grpc", built=("fairlane-link", "fairlane-compile")):
    pytest.skip(reason, allow_module_level=True)

EXAMPLES = probes.ROOT / "docs/examples"
# Not 9559: a run of someone else may be under way.
BMV2 = ("--fabric", "mininet", "--target", "bmv2", "--grpc-port", "27759", "--no-rtt-check")


def run(folder: Path, *argv: str) -> tuple[dict[str, Any], str]:
    """The summary of a run whose results are in folder/out, and what it printed."""
    command = [sys.executable, "-m", "fairlane", "run", *argv, *BMV2, "--out", str(folder / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=probes.ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    summary = json.loads((folder / "out/summary.json").read_text())
    assert (summary["target"], summary["events"]) == ("bmv2", [])
    return summary, done.stdout


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_each_switch_writes_into_a_header_of_ones_own(tmp_path: Path) -> None:
    folder = EXAMPLES / "telemetry"
    summary, _ = run(tmp_path, str(folder / "telemetry.toml"), "--scheme", str(folder), "--duration", "8")
    assert all(flow["goodput_bps"] > 1e6 for flow in summary["flows"])
    for number in range(3):
        sent = [record for record in lines(tmp_path / f"out/raw/flow-{number}.sender.jsonl") if record["kind"] == "sent"]
        # Without a header that comes back, they would stay at the first window.
        assert len({record["window_packets"] for record in sent}) > 3


def test_a_queue_with_state_per_flow_drops_from_the_fast_one(tmp_path: Path) -> None:
    flows = ("--flow", "rap:3", "--flow", "cbr:1", "--set", "cbr.rate_bps=8e6")
    summary, _ = run(tmp_path, "dumbbell", *flows, "--scheme", str(EXAMPLES / "afd"), "--queue", "afd", "--duration", "12")
    lost = {flow["kind"]: flow["loss_fraction"] for flow in summary["flows"]}
    assert lost["cbr"] > 2 * lost["rap"]
    bottleneck = next(link for link in summary["links"] if link["name"] == summary["bottleneck"])
    assert bottleneck["drops"]["afd"] > 100
    assert 5 < bottleneck["mean_queue_packets"] < 50


NETWORK = """
title = "events"
bottleneck = "s1->s2"
duration_s = 3
[topology]
kind = "dumbbell"
pairs = 1
bottleneck = { rate_bps = 1e7, delay_s = 0.01, queue_packets = 50 }
access = { rate_bps = 1e8 }
[[flows]]
name = "c"
kind = "cbr"
stop_s = 1.0
[cbr]
rate_bps = 1e6
"""


def without(text: str, *lines: str) -> str:
    for line in lines:
        assert line in text
        text = text.replace(line, "")
    return text


def test_a_control_plane_of_ones_own_has_its_events(tmp_path: Path) -> None:
    """All of tests/schemes/test_plane.py but registers and changes of links, which BMv2 does not have."""
    source = probes.ROOT / "tests/schemes/plane_events"
    program = source.with_suffix(".p4").read_text()
    assert "limit.read(wanted, 0);" in program
    (tmp_path / "own.p4").write_text(program.replace("limit.read(wanted, 0);", "wanted = 3;"))
    plane = source.with_suffix(".py").read_text()
    asked = ('switch.register("I.limit").write(0, 3)', 'packets=await switch.register("I.packets").read(0),')
    (tmp_path / "own.py").write_text(without(plane, *asked))
    (tmp_path / "events.toml").write_text(NETWORK)
    files = ("--program", str(tmp_path / "own.p4"), "--control", str(tmp_path / "own.py"))
    run(tmp_path, str(tmp_path / "events.toml"), *files)
    found: dict[str, list[dict[str, Any]]] = {}
    for record in lines(tmp_path / "out/raw/control.jsonl"):
        found.setdefault(record["event"], []).append(record)
    assert {record["switch"] for record in found["start"]} == {"s1", "s2"}
    assert "action=Group(id=1), values={}, priority=7" in found["start"][0]["marks"][0]
    assert found["refused"][0]["what"].partition(": ")[2].startswith("NOT_FOUND ")
    assert {(record["switch"], record["to"]) for record in found["packet"]} >= {("s1", "10.0.2.1"), ("s2", "10.0.2.1")}
    assert (found["digest"][0]["name"], set(found["digest"][0]["values"])) == ("seen_t", {"source", "port"})
    assert {(record["switch"], record["action"]) for record in found["idle"]} >= {("s1", "I.send"), ("s2", "I.copies")}
    last = found["interval"][-1]
    green, yellow, red = last["colours"]
    assert green < red and yellow < red and last["paced"] > 50


def test_a_program_from_zero_carries_measured_flows(tmp_path: Path) -> None:
    labels = EXAMPLES / "labels"
    files = ("--program", str(labels / "labels.p4"), "--control", str(labels / "labels.py"))
    summary, printed = run(tmp_path, "dumbbell", "--flow", "rap:4", "--duration", "8", *files)
    assert len(summary["flows"]) == 4 and all(flow["goodput_bps"] > 0 for flow in summary["flows"])
    # Nobody reports its queues, so they are not 0.
    assert all(link["mean_queue_packets"] is None for link in summary["links"])
    assert "the program has no register red_queue" in printed
    records = lines(tmp_path / "out/raw/control.jsonl")
    assert {record["switch"] for record in records} == {"s1", "s2"} and max(record["packets"] for record in records) > 200
