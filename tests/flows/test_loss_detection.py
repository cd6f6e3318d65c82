"""A file whose last segment is lost: the retransmission timer repairs it, or a tail loss probe (RFC 8985), two round trips after the last ACK."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fairlane.fabrics import virtual_fabric

pytestmark = pytest.mark.skipif(virtual_fabric.native is None, reason="the module fairlane.native is not built: make build")

RUN = """
title = "A file whose last segment is lost"
bottleneck = "s1->s2"
duration_s = 5.0
[topology]
kind = "dumbbell"
pairs = 1
bottleneck = { rate_bps = 10_000_000, delay_s = 0.02, queue_packets = 200 }
access = { rate_bps = 1_000_000_000 }
[[flows]]
name = "file"
kind = "tcp-sack"
parameters = { file_bytes = 100_000, loss_detection = "DETECTION" }
[tcp]
min_rto_s = MIN_RTO
"""
LOSS = """
[[changes]]
at_s = {begin:.6f}
link = "s1->s2"
loss = 0.999999
[[changes]]
at_s = {end:.6f}
link = "s1->s2"
loss = 0.0
"""
RTT_S = 0.04
SEGMENT_S = 0.0008


def completion_s(tmp_path: Path, detection: str, lost_s: float | None = None, min_rto_s: float = 1.0) -> float:
    """lost_s: until then the bottleneck's link loses what arrives at its end, for three quarters of a segment's time."""
    file, out = tmp_path / "run.toml", tmp_path / f"{detection}-{lost_s}"
    text = RUN.replace("DETECTION", detection).replace("MIN_RTO", str(min_rto_s))
    file.write_text(text + ("" if lost_s is None else LOSS.format(begin=lost_s - 0.75 * SEGMENT_S, end=lost_s)))
    subprocess.run([sys.executable, "-m", "fairlane", "run", str(file), "--out", str(out)], check=True, capture_output=True, timeout=60)
    (flow,) = json.loads((out / "summary.json").read_text())["flows"]
    return flow["completion_s"]


def test_a_probe_repairs_a_lost_tail_in_place_of_the_timer(tmp_path: Path) -> None:
    whole = completion_s(tmp_path, "dupack")
    assert completion_s(tmp_path, "rack") == whole, "without a loss nothing differs"
    # the last segment has crossed the bottleneck half a round trip before it is acknowledged
    lost = whole - RTT_S / 2 + SEGMENT_S / 2
    by_timer, by_probe = (completion_s(tmp_path, detection, lost) for detection in ("dupack", "rack"))
    assert 1.0 + RTT_S <= by_timer - whole <= 1.0 + 4 * RTT_S, (
        "the least RTO, SRTT and 1 s, and the way of the retransmission and of its ACK"
    )
    # SRTT holds up to 36 segments of queue, 29 ms; the ACK of a single segment may be delayed by 40 ms
    assert 2 * RTT_S <= by_probe - whole <= 2 * (RTT_S + 0.029) + 0.04 + 1.1 * RTT_S, "twice SRTT, then the probe's round trip"
