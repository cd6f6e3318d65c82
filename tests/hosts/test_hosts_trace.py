"""One recorded trace through both drivers of the ends of flows: what the network in virtual time makes them do, the hosts' loop does too."""

from __future__ import annotations

import itertools
import random
import struct
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest

native = pytest.importorskip("fairlane.native", reason="the module fairlane.native is not built: make build")

from fairlane import specs
from fairlane.fabrics import targets
from fairlane.hosts.agent import algorithm_parameters
from fairlane.hosts.algorithms import ALGORITHMS
from fairlane.hosts.algorithms.base import AckDetail
from fairlane.hosts.sources import Source

SECOND = 10**9
SEED = 7
STOP_NS = 30 * SECOND + 12_345_678
"""Not at an instant at which records are written: what comes first then does not matter."""
LINGER_NS = SECOND // 2
RATE_BPS = 1e6
ADDRESSES = {"h1": "10.0.1.1", "h2": "10.0.1.2"}
GROUPS = ("239.1.0.1", "239.1.0.2", "239.1.0.3")

# What comes by one port leaves by the other, at a priority drawn at random: frames that wait overtake each other.
REORDERING = """
#include <core.p4>
#include <v1model.p4>
struct headers_t {}
struct metadata_t {}
parser P(packet_in p, out headers_t h, inout metadata_t m, inout standard_metadata_t s) { state start { transition accept; } }
control V(inout headers_t h, inout metadata_t m) { apply {} }
control I(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    apply {
        s.egress_spec = s.ingress_port == 1 ? 9w2 : 9w1;
        random(s.priority, 3w0, 3w1);
    }
}
control E(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) { apply {} }
control D(packet_out p, in headers_t h) { apply {} }
V1Switch(P(), V(), I(), E(), V(), D()) main;
"""


PERSISTENT = Source()


@dataclass(frozen=True)
class Flow:
    name: str
    port: int
    kind: str | None
    source: Source = PERSISTENT
    params: tuple[str, ...] = ()

    def halves(self) -> tuple[Any, Any, Any]:
        parameters = algorithm_parameters(self.kind, RATE_BPS, 1000, list(self.params))
        return parameters, ALGORITHMS[self.kind].sender(parameters), ALGORITHMS[self.kind].receiver(parameters)

    def rng(self, role: str) -> random.Random:
        return random.Random(f"{self.name}/{role}")


FLOWS = [
    Flow("video", 5004, "rap", Source("mpeg4", rate_scale=0.5, buffer_packets=20)),
    Flow("paced", 5006, "rap"),
    Flow("window", 5008, "gaimd"),
    Flow("equation", 5010, "tfrc"),
    Flow("rtcp", 5012, "als"),
    Flow("layers", 5014, "als-layered", params=(f"group_addresses={','.join(GROUPS)}",)),
    Flow("talk", 5016, None, Source("on-off", rate_bps=200e3)),
    Flow("poisson", 5020, None, Source("renewal", rate_bps=100e3, sizes="exponential", mean_bytes=300.0)),
    Flow("steady", 5018, "ssvp", Source("cbr", rate_bps=100e3)),
]


SESSION = specs.Session(packet_bytes=1000, session_bandwidth_bps=RATE_BPS, pacing_jitter=0.1)


def half(flow: Flow, algorithm: Any, role: str) -> specs.Half:
    return specs.Half(algorithm, flow.rng(role), ssrc=flow.port + (role == "receiver"), cname=role)


def limits(flow: Flow) -> specs.RtpOptions:
    return specs.RtpOptions(application=flow.source.application(), buffer_packets=flow.source.buffer_packets)


def in_virtual_time(folder: Path) -> dict[str, tuple[list, list]]:
    """The records of each flow's ends. Captures of all links are in `folder` afterwards."""
    (folder / "reordering.p4").write_text(REORDERING)
    program, _ = targets.compiler().compile(folder / "reordering.p4", folder)
    network = native.Network(SEED)
    network.add_switch("s1", 1, priorities=2)
    free = specs.Link(rate_bps=100_000_000)
    narrow = specs.Link(rate_bps=1_500_000, delay_ns=5_000_000, queue_packets=25, loss=0.02, jitter_ns=2_000_000)
    for i in (1, 2):
        network.add_host(f"h{i}", ADDRESSES[f"h{i}"], f"02:00:00:01:00:0{i}", f"02:01:00:01:00:0{i}")
        network.connect(f"h{i}", 0, "s1", i, free, narrow)
    network.load("s1", program.read_text())
    for flow in FLOWS:
        path = specs.FlowPath(flow.name, "h1", "h2", flow.port, 0, STOP_NS)
        if flow.kind is None:
            network.add_source_flow(path, flow.source.application(), packet_bytes=1000)
            continue
        _, sending, receiving = flow.halves()
        sender, receiver = half(flow, sending, "sender"), half(flow, receiving, "receiver")
        if ALGORITHMS[flow.kind].layered:
            group = specs.GroupPath(flow.name, "h1", GROUPS[0], flow.port, 0, STOP_NS)
            network.add_layered_flow(group, sender, [specs.LayeredReceiver("h2", receiver)], SESSION)
        else:
            network.add_rtp_flow(path, sender, receiver, SESSION, limits(flow))
    network.capture(folder)
    network.run_until(STOP_NS + 2 * LINGER_NS)
    return {flow.name: network.take_flow_logs(flow.name) for flow in FLOWS}


def captured(folder: Path, link: str, flow: Flow) -> list[tuple[int, bool, int, bytes]]:
    """Instant, whether to the RTCP port, destination, and payload of the flow's UDP datagrams that arrived at a link's end."""
    raw, at, found = (folder / f"{link}.pcap").read_bytes(), 24, []
    while at < len(raw):
        seconds, nanoseconds, size, _ = struct.unpack_from("<IIII", raw, at)
        frame, at = raw[at + 16 : at + 16 + size], at + 16 + size
        header = 14 + 4 * (frame[14] & 15)
        if frame[23] == 17:
            port, length = struct.unpack_from("!HH", frame, header + 2)
            if port - flow.port in (0, 1):
                payload = frame[header + 8 : header + length]
                found.append((seconds * SECOND + nanoseconds, port != flow.port, int.from_bytes(frame[30:34], "big"), payload))
    return found


def on_a_host(flow: Flow, role: str, folder: Path) -> tuple[list, list, list]:
    """Records of a flow's end that the hosts' loop drives through what came to it in virtual time; what it sent; its groups."""
    own, peer = ("h1", "h2") if role == "sender" else ("h2", "h1")
    came = [
        (at, rtcp, to if IPv4Address(to).is_multicast else None, payload) for at, rtcp, to, payload in captured(folder, f"s1-{own}", flow)
    ]
    make, layered = native.HostEnd, flow.kind is not None and ALGORITHMS[flow.kind].layered
    place = specs.Place(
        ADDRESSES[own], ADDRESSES[peer], flow.port, start_ns=0, stop_ns=STOP_NS + (LINGER_NS if role == "receiver" else 0), epoch_ns=0,
        name=flow.name, seed=SEED, base_group=GROUPS[0] if layered else None, arrivals=came,
        marks_ns=[0, STOP_NS] if role == "receiver" else [])  # fmt: skip
    if flow.kind is None:
        end = make.source(place, flow.source.application(), packet_bytes=1000) if role == "sender" else make.sink(place)
    else:
        _, sender, receiver = flow.halves()
        if role == "sender":
            end = make.sender(place, half(flow, sender, role), SESSION, limits(flow))
        else:
            reception = specs.Reception(
                session_bandwidth_bps=RATE_BPS, acks=sender.interests.acks is not AckDetail.NONE, media=flow.source.limits,
                stream=f"flow {flow.name} receiver h2" if layered else None)  # fmt: skip
            end = make.receiver(place, half(flow, receiver, role), reception)
    end.run_until(STOP_NS + 2 * LINGER_NS)
    return end.take_log(), *end.sent()


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, tuple[list, list]]]:
    folder = tmp_path_factory.mktemp("trace")
    return folder, in_virtual_time(folder)


@pytest.mark.parametrize("role", ["sender", "receiver"])
@pytest.mark.parametrize("flow", FLOWS, ids=lambda flow: flow.name)
def test_both_drivers_do_the_same(flow: Flow, role: str, recorded: tuple[Path, dict[str, tuple[list, list]]]) -> None:
    folder, logs = recorded
    log, sent, groups = on_a_host(flow, role, folder)
    own = "h1" if role == "sender" else "h2"
    left = [(rtcp, to, payload) for _, rtcp, to, payload in captured(folder, f"{own}-s1", flow)]
    assert [(rtcp, to, payload) for _, to, rtcp, payload in sent] == left
    assert list(log) == list(logs[flow.name][role == "receiver"])
    assert [IPv4Address(group) for _, group, joins in groups if joins] == [IPv4Address(f["group"]) for _, kind, f in log if kind == "join"]


def test_the_trace_has_what_it_should(recorded: tuple[Path, dict[str, tuple[list, list]]]) -> None:
    """Losses, packets out of order, RTCP, layers that are joined and left, and an application that is held back."""
    folder, logs = recorded
    numbers = [int.from_bytes(payload[20:28], "big") for _, rtcp, _, payload in captured(folder, "s1-h2", FLOWS[1]) if not rtcp]
    assert sum(a > b for a, b in itertools.pairwise(numbers)) > 100
    kinds = {name: [{kind for _, kind, _ in log} for log in ends] for name, ends in logs.items()}
    assert "loss" in kinds["paced"][0] and "feedback" in kinds["rtcp"][0] and "feedback" in kinds["equation"][0]
    assert {"control", "join", "layer_data"} <= kinds["layers"][1] and "layer_sent" in kinds["layers"][0]
    assert [f for _, kind, f in logs["video"][0] if kind == "application"][-1]["discarded_packets"] > 0
    assert all(log for ends in logs.values() for log in ends)
