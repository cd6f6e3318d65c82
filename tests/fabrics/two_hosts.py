"""Two hosts with a switch between them that sends on whatever comes, in virtual time."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path

from fairlane import specs
from fairlane.fabrics import targets, virtual_fabric
from fairlane.hosts.algorithms import base

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


def program(folder: Path) -> str:
    """The switch's program, compiled in a folder."""
    (folder / "forward.p4").write_text(FORWARD)
    path, _ = targets.compiler().compile(folder / "forward.p4", folder)
    return path.read_text()


def wire(program: str, seed: int = 1, **link):
    """A network whose links have the keys of `specs.Link`."""
    network = virtual_fabric.native.Network(seed)
    network.add_switch("s1", 1)
    for i in (1, 2):
        network.add_host(f"h{i}", f"10.0.1.{i}", f"02:00:00:01:00:0{i}", f"02:01:00:01:00:0{i}")
        network.connect(f"h{i}", 0, "s1", i, specs.Link(**link))
    network.load("s1", program)
    return network


def add(network, name: str, sender: base.Sender, receiver: base.Receiver, stop_ns: int, **options) -> None:
    """A flow over RTP from h1 to h2, by algorithms in Python. options: those of `specs.Session` and `specs.RtpOptions`."""
    limits = {field.name: options.pop(field.name) for field in dataclasses.fields(specs.RtpOptions) if field.name in options}
    network.add_rtp_flow(
        specs.FlowPath(name, "h1", "h2", 5004, 0, stop_ns),
        specs.Half(sender, random.Random(1), ssrc=1, cname="s"),
        specs.Half(receiver, random.Random(2), ssrc=2, cname="r"),
        specs.Session(**{"packet_bytes": 1000, "session_bandwidth_bps": 1e6, **options}),
        specs.RtpOptions(**limits),
    )
