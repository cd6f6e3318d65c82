"""Trivial algorithms in Python over the network in virtual time: what they are told, what leaves, what is recorded."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from fairlane import targets, virtual_fabric
from hosts.algorithms import base

pytestmark = pytest.mark.skipif(virtual_fabric.fairlane_virtual is None, reason="the module fairlane_virtual is not built: make build")

SECOND = 10**9
FORWARD = """
#include <core.p4>
#include <v1model.p4>
struct headers_t {}
struct metadata_t {}
parser P(packet_in p, out headers_t h, inout metadata_t m, inout standard_metadata_t s) { state start { transition accept; } }
control V(inout headers_t h, inout metadata_t m) { apply {} }
control I(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    apply { s.egress_spec = s.ingress_port == 1 ? 9w2 : 9w1; }
}
control E(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) { apply {} }
control D(packet_out p, in headers_t h) { apply {} }
V1Switch(P(), V(), I(), E(), V(), D()) main;
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A switch of two ports that sends on whatever comes."""
    folder = tmp_path_factory.mktemp("forward")
    (folder / "forward.p4").write_text(FORWARD)
    path, _ = targets.compiler().compile(folder / "forward.p4", folder)
    return path.read_text()


def wire(program: str, seed: int = 1, **link):
    network = virtual_fabric.fairlane_virtual.Network(seed)
    network.add_switch("s1", 1)
    for i in (1, 2):
        network.add_host(f"h{i}", f"10.0.1.{i}", f"02:00:00:01:00:0{i}", f"02:01:00:01:00:0{i}")
        network.connect(f"h{i}", 0, "s1", i, virtual_fabric.fairlane_virtual.Link(**link))
    network.load("s1", program)
    return network


def add(network, sender: base.Sender, receiver: base.Receiver, stop_ns: int = 20 * SECOND, **options) -> None:
    network.add_rtp_flow("f", "h1", "h2", 5004, 0, stop_ns, sender, random.Random(1), receiver, random.Random(2),
                         **{"packet_bytes": 1000, "session_bandwidth_bps": 1e6, "sender_ssrc": 1, "receiver_ssrc": 2, "sender_cname": "s",
                            "receiver_cname": "r", "phase": 0.0, **options})


class Responsive(base.Sender):
    """Sends at what arrived, and a little more; says its round trip in the data."""

    def __init__(self) -> None:
        self.heard: list[tuple[float, base.Feedback]] = []

    def on_start(self, now_s, rng):
        return (base.SetRate(0.5e6),)

    def on_feedback(self, now_s, feedback, rng):
        self.heard.append((now_s, feedback))
        return (base.SetRate(max(1e5, 1.05 * feedback.receive_rate_bps)), base.StampData(feedback.rtt_s))


class Periodic(base.Receiver):
    """Reports four times a second."""

    interests = base.Interests(gaps=True)

    def __init__(self) -> None:
        self.gaps: list[base.Gap] = []
        self.receptions: list[base.ReceptionState] = []

    def on_start(self, now_s, rng):
        return (base.SetTimer("report", now_s + 0.25),)

    def on_gap(self, now_s, gap, rng):
        self.gaps.append(gap)
        return (base.Note("gap", (("packets", gap.last_lost_sequence - gap.first_lost_sequence + 1),)),)

    def on_timer(self, now_s, timer, reception, rng):
        self.receptions.append(reception)
        return (base.SendFeedback(0.5 if self.gaps else None), base.SetTimer("report", now_s + 0.25))


def test_own_feedback_reaches_the_sender_and_its_records(program: str, tmp_path: Path) -> None:
    network = wire(program, rate_bps=2_000_000, delay_ns=5_000_000, queue_packets=10)
    sender, receiver = Responsive(), Periodic()
    add(network, sender, receiver)
    network.capture(tmp_path)
    network.run_until(21 * SECOND)
    sent, received = network.take_flow_logs("f")
    reports = [fields for _, kind, fields in sent if kind == "feedback"]
    # It grows past the link, and finds its end.
    assert len(reports) == len(sender.heard) > 75
    assert max(f.receive_rate_bps for _, f in sender.heard) > 1.9e6
    assert receiver.gaps and any(f.loss_event_rate == 0.5 for _, f in sender.heard) and sender.heard[0][1].loss_event_rate is None
    assert all(f.rtt_s >= 0.02 and 0 <= f.loss_fraction < 1 and f.reporter == 2 for _, f in sender.heard)
    lost = sum(g.last_lost_sequence - g.first_lost_sequence + 1 for g in receiver.gaps)
    assert lost == sum(fields["packets"] for _, kind, fields in received if kind == "gap")
    assert lost >= sum(r["lost_packets"] for r in reports) > 0
    stamped = [r.sender_rtt_s for r in receiver.receptions]
    assert stamped[0] is None and min(abs(stamped[-1] - f.rtt_s) for _, f in sender.heard[-4:]) <= 0.5e-6
    ends = [fields for log in (sent, received) for _, kind, fields in log if kind == "end"]
    assert [e["rtcp_sent_packets"] for e in ends] == [0, 0] and ends[0]["feedback_packets"] == len(reports)
    # On the wire: 44 bytes from data port to data port, version 1, type 2.
    scapy = pytest.importorskip("scapy.all")
    frames = [f for f in scapy.rdpcap(str(tmp_path / "s1-h1.pcap")) if f.haslayer(scapy.UDP)]
    assert len(frames) >= len(reports)
    for frame in frames:
        payload = bytes(frame[scapy.UDP].payload)
        assert (frame[scapy.UDP].sport, frame[scapy.UDP].dport, len(payload), payload[0]) == (5004, 5004, 44, 0x12)


def test_a_stamp_without_room_is_refused(program: str) -> None:
    network = wire(program)

    class Stamps(base.Sender):
        def on_start(self, now_s, rng):
            return (base.SetRate(1e5), base.StampData(0.1))

    add(network, Stamps(), base.Receiver(), packet_bytes=56)
    with pytest.raises(RuntimeError, match="flow f: StampData needs packets of 60 bytes"):
        network.run_until(SECOND)
