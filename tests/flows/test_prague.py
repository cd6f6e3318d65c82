"""TCP Prague and BBR as flow kinds (switch/net/tcp has their equations' tests): what they make of a link, alone and beside others."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from scapy.layers.inet import IP, TCP
from scapy.utils import PcapReader

import fairlane
from fairlane import ad_hoc, floors
from fairlane.experiments.model import Experiment
from fairlane.fabrics import virtual_fabric

pytestmark = pytest.mark.skipif(virtual_fabric.native is None, reason="the module fairlane.native is not built: make build")

HOW = {"bottleneck": "20mbit", "rtt": "20ms", "buffer": "500packets", "duration_s": 20.0}
NOT_ECT, ECT1, CE = 0, 1, 3


def test_prague_keeps_a_full_link_at_a_queue_of_a_packet_or_two() -> None:
    for queue in ("step", "dualpi2"):
        link = fairlane.run("dumbbell", "tcp-prague:1", queue=queue, **HOW).bottleneck
        assert link["marks"] > 100 and not link["drops"], queue
        assert link["utilisation"] > 0.96 and link["mean_queue_packets"] < 3, queue


def test_data_say_ect_1_and_acknowledgements_count_marks(tmp_path: Path) -> None:
    command = ["dumbbell", "--flow", "tcp-prague:1", "--bottleneck", "20mbit", "--rtt", "20ms", "--queue", "step", "--duration", "5"]
    command += ["--pcap", str(tmp_path / "pcap"), "--out", str(tmp_path / "out")]
    subprocess.run([sys.executable, "-m", "fairlane", "run", *command], check=True, capture_output=True, timeout=120)
    forth: Counter[int] = Counter()
    with PcapReader(str(tmp_path / "pcap" / "s1-s2.pcap")) as reader:
        for frame in reader:
            if TCP in frame and len(frame[TCP].payload):
                forth[frame[IP].tos & 3] += 1
    assert forth.keys() == {ECT1, CE} and forth[CE] > 100
    counts = []
    with PcapReader(str(tmp_path / "pcap" / "s2-s1.pcap")) as reader:
        for frame in reader:
            if TCP in frame and not frame[TCP].flags.S:
                flags = int(frame[TCP].flags)
                # AE, CWR, ECE [RFC 9768 sec 3.2.2]
                counts.append((flags >> 8 & 1) << 2 | (flags >> 6 & 3))
    assert counts[0] == 5
    told = sum((after - before) % 8 for before, after in itertools.pairwise(counts))
    # Some packets were under way when it ended.
    assert forth[CE] - 60 <= told <= forth[CE]


def test_prague_and_cubic_share_dualpi2() -> None:
    """The L4S team's testbed: 65.8 and 29.7 Mb/s of 100 at 20 ms (docs/prague-against-l4s.md)."""
    how = {"bottleneck": "100mbit", "rtt": "20ms", "buffer": "2000packets", "packet_bytes": 1500, "duration_s": 20.0}
    rates = fairlane.run("dumbbell", ["tcp-prague:1", "tcp-cubic:1"], queue="dualpi2", **how).per_flow["goodput_bps"] / 1e6
    assert 45 < rates["tcp-prague"] < 80 and 15 < rates["tcp-cubic"] < 50
    assert rates.sum() > 90


def test_bbr_fills_a_link_with_a_short_queue_and_no_mark() -> None:
    link = fairlane.run("dumbbell", "tcp-bbr:1", **HOW).bottleneck
    assert link["utilisation"] > 0.95 and link["mean_queue_packets"] < 15 and not link["drops"]
    # Version 1 says nothing of marks: its packets are not ECN-capable.
    assert fairlane.run("dumbbell", "tcp-bbr:1", queue="step", ecn=True, **HOW).bottleneck["marks"] == 0


def test_prague_without_marks_is_told() -> None:
    assert "tcp-dctcp, tcp-prague: the queue of " in floors.warnings(_experiment("droptail"))[0]
    assert floors.warnings(_experiment("dualpi2")) == []


def _experiment(queue: str) -> Experiment:
    return ad_hoc.experiment("dumbbell", ad_hoc.Options(flows=("tcp-prague:2", "tcp-dctcp:1"), queue=queue), 10.0, 1)
