"""One file with burst loss, reordering, copies, corruption and an asymmetric path, and one with packets of 9000 bytes, in virtual time and on Mininet: means
agree. Two minutes."""

from __future__ import annotations

import json
import subprocess
import sys
from math import sqrt
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from fairlane import probes
from fairlane.fabrics import leftovers
from tests import missing
from tests.fabrics.late import summary_of

ROOT = probes.ROOT
FILE = ROOT / "docs" / "examples" / "impaired-links.toml"
# Not 9559: a run of someone else may be under way.
GRPC_PORT = 29759

pytestmark = [pytest.mark.root, pytest.mark.timeout(400)]
if reason := missing.for_mininet("iperf3"):
    pytest.skip(reason, allow_module_level=True)

SOURCE = """\
title = "A source of a constant rate"
bottleneck = "s1->s2"
duration_s = 30.0
window_from = 0.1
[topology]
kind = "dumbbell"
pairs = 1
[topology.bottleneck]
rate_bps = 10_000_000
delay_s = 0.01
gemodel = { p = 0.01, r = 0.2 }
reorder = 0.03
reorder_delay_s = 0.01
duplicate = 0.03
corrupt = 0.02
[topology.bottleneck.back]
rate_bps = 1_000_000
delay_s = 0.03
[topology.access]
rate_bps = 100_000_000
[[flows]]
name = "f"
kind = "cbr"
packet_bytes = 500
parameters = { rate_bps = 2_400_000.0 }
"""

LARGE = """\
title = "Packets of 9000 bytes"
bottleneck = "s1->s2"
duration_s = 15.0
window_from = 0.4
[topology]
kind = "dumbbell"
pairs = 2
bottleneck = { rate_bps = 20_000_000, delay_s = 0.01, queue_packets = 20 }
access = { rate_bps = 100_000_000, delay_s = 0.001, queue_packets = 100 }
[[flows]]
name = "als"
kind = "als"
packet_bytes = 9000
[[flows]]
name = "tcp"
kind = "tcp-cubic"
packet_bytes = 9000
"""


def summaries(tmp_path: Path, file: Path) -> dict[str, dict[str, Any]]:
    """Of the runs on both fabrics. Skips where the machine did not keep up."""
    runs = {"virtual": [], "mininet": ["--fabric", "mininet", "--target", "embedded", "--grpc-port", str(GRPC_PORT)]}
    try:
        for name, more in runs.items():
            command = [sys.executable, "-m", "fairlane", "run", str(file), "--out", str(tmp_path / name), *more]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
            assert done.returncode in (0, 5), done.stdout + done.stderr
    finally:
        leftovers.clean()
    for name in runs:
        summary_of(tmp_path / name)
    return {name: json.loads((tmp_path / name / "summary.json").read_text()) for name in runs}


def counts(summary: dict[str, Any], link: str) -> dict[str, int]:
    return next(one for one in summary["impairments"] if one["link"] == link)


def test_rates_and_checksums_are_the_same_on_both_fabrics(tmp_path: Path) -> None:
    """Each fabric's rates within 4.5 standard errors of the formulas, and both goodputs within 5 % of another."""
    (tmp_path / "e.toml").write_text(SOURCE)
    found = summaries(tmp_path, tmp_path / "e.toml")
    goodputs = []
    for name, summary in found.items():
        one = counts(summary, "s1->s2")
        sent = one["offered_packets"]
        assert sent == pytest.approx(600 * 27, rel=0.02), name
        mean, rho = 0.01 / 0.21, 0.79
        assert abs(one["lost_packets"] - sent * mean) <= 4.5 * sqrt(sent * mean * (1 - mean) * (1 + rho) / (1 - rho)), (name, one)
        arrived = sent - one["lost_packets"]
        for count, p in (("duplicated_packets", 0.03), ("corrupted_packets", 0.02), ("reordered_packets", 0.03)):
            assert abs(one[count] - arrived * p) <= 4.5 * sqrt(arrived * p), (name, count, one)
        caught = summary["wrong_checksums"]
        assert caught["h1"] == caught["s1"] == 0 and caught["s2"] > 0 and caught["h2"] > 0, (name, caught)
        # Counted in the whole run, of which the window is 0.9.
        assert 0.9 * (caught["s2"] + caught["h2"]) == pytest.approx(one["corrupted_packets"], rel=0.2), (name, caught, one)
        (flow,) = summary["flows"]
        goodputs.append(flow["goodput_bps"])
        assert flow["lost_packets"] == pytest.approx(one["lost_packets"] + one["corrupted_packets"], rel=0.03), (name, flow, one)
    assert goodputs[1] == pytest.approx(goodputs[0], rel=0.05)


@pytest.mark.long
def test_means_agree_with_virtual_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A seed loses the same on both fabrics as long as the same frames come."""
    found = summaries(tmp_path, FILE)
    table = pd.DataFrame(
        {
            name: {
                "goodput of all flows, bit/s": sum(flow["goodput_bps"] for flow in summary["flows"]),
                "goodput of ALS, bit/s": sum(flow["goodput_bps"] for flow in summary["flows"] if flow["kind"] == "als"),
                "utilisation": next(link["utilisation"] for link in summary["links"] if link["name"] == "s1->s2"),
                "frames on the way back": counts(summary, "s2->s1")["offered_packets"],
                "copies, part of frames": counts(summary, "s1->s2")["duplicated_packets"] / counts(summary, "s1->s2")["offered_packets"],
            }
            for name, summary in found.items()
        }
    )
    table["ratio"] = table.mininet / table.virtual
    with capsys.disabled():
        print(f"\n{table.to_string(float_format='%.4g')}")
    assert table.ratio["goodput of all flows, bit/s"] == pytest.approx(1, abs=0.05), table.to_string()
    assert table.ratio["utilisation"] == pytest.approx(1, abs=0.05), table.to_string()
    trips = [trip["measured_s"] for trip in found["mininet"]["round_trips"]]
    assert trips == pytest.approx([0.059] * len(trips), rel=0.1)


@pytest.mark.long
def test_packets_of_9000_bytes(tmp_path: Path) -> None:
    (tmp_path / "e.toml").write_text(LARGE)
    found = summaries(tmp_path, tmp_path / "e.toml")
    rates = {name: {flow["name"]: flow for flow in summary["flows"]} for name, summary in found.items()}
    for name, flows in rates.items():
        total = flows["als"]["goodput_bps"] + flows["tcp"]["goodput_bps"]
        assert total == pytest.approx(20e6 * 8972 / 9014, rel=0.06), (name, flows)
        als = flows["als"]
        assert als["goodput_bps"] * 9 / (als["sent_packets"] - als["lost_packets"]) == pytest.approx(8 * 8972, rel=0.03), (name, als)
    assert rates["mininet"]["als"]["goodput_bps"] == pytest.approx(rates["virtual"]["als"]["goodput_bps"], rel=0.05)
