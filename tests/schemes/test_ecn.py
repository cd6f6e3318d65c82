"""RED that marks (p4src/schemes/red/red.p4, [RFC 3168 sec 5, 7]): which packets it marks, what TCP makes of it, and what is written down."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from scapy.layers.inet import IP
from scapy.utils import PcapReader, checksum

import fairlane
from fairlane.errors import Refusal
from fairlane.fabrics import virtual_fabric

pytestmark = pytest.mark.skipif(virtual_fabric.native is None, reason="the module fairlane.native is not built: make build")

NOT_CAPABLE, CAPABLE, CONGESTION = 0, 2, 3
TCP, UDP = 6, 17


def codepoints(capture: Path) -> Counter[tuple[int, int]]:
    """Packets of an Ethernet capture by protocol and ECN codepoint; each IPv4 checksum must be right."""
    found: Counter[tuple[int, int]] = Counter()
    with PcapReader(str(capture)) as reader:
        for frame in reader:
            if IP in frame:
                packet = frame[IP]
                assert checksum(bytes(packet)[: packet.ihl * 4]) == 0
                found[packet.proto, packet.tos & 3] += 1
    return found


def test_marks_capable_packets_and_drops_others(tmp_path: Path) -> None:
    command = ["dumbbell", "--flow", "tcp-sack:6", "--flow", "rap:2", "--bottleneck", "5mbit", "--rtt", "30ms", "--buffer", "60packets"]
    command += ["--queue", "red", "--ecn", "--duration", "12", "--pcap", str(tmp_path / "pcap"), "--out", str(tmp_path / "out")]
    subprocess.run([sys.executable, "-m", "fairlane", "run", *command], check=True, capture_output=True, timeout=120)
    arrived = sum((codepoints(p) for p in (tmp_path / "pcap").glob("h*-s1.pcap")), Counter())
    left = codepoints(tmp_path / "pcap" / "s1-s2.pcap")
    assert not arrived[TCP, CONGESTION] and arrived[TCP, CAPABLE] > 1000 and arrived[UDP, NOT_CAPABLE] > 1000
    assert left[TCP, CONGESTION] > 20 and not left[UDP, CONGESTION] and not left[UDP, CAPABLE]
    rows = (tmp_path / "out" / "raw" / "controller.csv").read_text().splitlines()
    column = rows[0].split(",").index("marks")
    marked = max(int(row.split(",")[column]) for row in rows[1:] if row.split(",")[1:3] == ["s1", "1"])
    # The last interval's end comes before the run's.
    assert 0.8 * left[TCP, CONGESTION] <= marked <= left[TCP, CONGESTION]


def test_marks_are_no_losses_and_slow_tcp_down() -> None:
    how = {"bottleneck": "10mbit", "rtt": "40ms", "queue": "red", "duration_s": 20.0}
    marks, drops = (fairlane.run("dumbbell", "tcp-sack:8", ecn=ecn, **how) for ecn in (True, None))
    link, plain = marks.bottleneck, drops.bottleneck
    assert link["marks"] > 50 and "marks" not in plain
    assert sum(link["drops"].values()) < 0.2 * sum(plain["drops"].values())
    # The same control by other means: TCP keeps the queue between the thresholds (a quarter and three quarters of 50 packets).
    assert 8 < link["mean_queue_packets"] < 37
    assert link["utilisation"] > plain["utilisation"] - 0.03


def test_flows_without_ecn_meet_the_same_red() -> None:
    """Where no packet can be marked, the program with marks does what the one without does."""
    how = {"bottleneck": "4mbit", "rtt": "40ms", "queue": "red", "duration_s": 10.0, "settings": ["tcp.ecn=false"]}
    marks, drops = (fairlane.run("dumbbell", "tcp-sack:4", ecn=ecn, **how) for ecn in (True, None))
    assert marks.bottleneck.pop("marks") == 0
    assert marks.bottleneck == drops.bottleneck
    assert marks.per_flow.equals(drops.per_flow)


def test_ecn_wants_a_queue_that_marks() -> None:
    with pytest.raises(Refusal, match="--ecn: a queue that marks is --queue red, codel, pie, pi2, dualpi2 or step, not droptail"):
        fairlane.run("dumbbell", "tcp-sack:1", ecn=True)
    with pytest.raises(Refusal, match="ecn='yes': write it as in ecn=True"):
        fairlane.run("dumbbell", "tcp-sack:1", queue="red", ecn="yes")


@pytest.mark.parametrize(("kind", "settings"), [("nada", ()), ("scream", ()), ("scream", ("scream.l4s=true",))])
def test_media_flows_answer_to_marks(kind: str, settings: tuple[str, ...]) -> None:
    """Over CoDel that marks, beside drop-tail without ECN: a shorter queue, no packet lost, the link still used."""
    how = {"bottleneck": "1mbit", "rtt": "50ms", "buffer": "60packets", "duration_s": 40.0}
    most = f"{kind}.max_rate_bps=1.5e6"
    marks = fairlane.run("dumbbell", f"{kind}:1", queue="codel", ecn=True, settings=[most, *settings], **how).bottleneck
    plain = fairlane.run("dumbbell", f"{kind}:1", settings=[most], **how).bottleneck
    assert marks["marks"] >= 3 and sum(marks["drops"].values()) == 0
    assert marks["mean_queue_packets"] < 0.9 * plain["mean_queue_packets"]
    assert marks["utilisation"] > 0.7


def test_abe_fills_a_link_whose_queue_is_kept_short() -> None:
    """[RFC 8511 sec 4]: one flow over CoDel, a bandwidth-delay product of 200 packets. Without losses in either run."""
    how = {"bottleneck": "20mbit", "rtt": "80ms", "queue": "codel", "ecn": True, "buffer": "4bdp", "duration_s": 40.0}
    for kind, gain in (("tcp-sack", 0.1), ("tcp-cubic", 0.03)):
        off, on = (fairlane.run("dumbbell", f"{kind}:1", settings=[f"{kind}.abe={abe}"], **how).bottleneck for abe in ("false", "true"))
        assert off["marks"] > 0 and on["marks"] > 0 and sum(off["drops"].values()) == sum(on["drops"].values()) == 0
        assert on["utilisation"] > off["utilisation"] + gain, kind
        # CoDel's target of 5 ms is 12 packets
        assert on["mean_queue_packets"] < 12, kind
