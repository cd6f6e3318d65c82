"""A tutorials' topology in virtual time: no root, no processes. Hosts there speak IPv4 to their gateway, over TCP and UDP, and neither
ARP nor ICMP; so instead of pings each host sends every other one a few bytes over TCP, which must be acknowledged."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairlane import specs
from fairlane.controller.messages import p4r
from fairlane.controller.p4info import P4Info
from fairlane.controller.timetable import NS
from fairlane.errors import RunFailed
from fairlane.tutorials.programs import ELECTION_ID, QUEUE_PACKETS, SwitchProgram
from fairlane.tutorials.topology import Host, TutorialTopology

_PIPELINE = 0
_STREAM = 1
# Tokens from this on are entries, by their place in the file.
_FIRST_ENTRY = 16
_SETTLE_S = 1.0
"""Longer than all entries take to be written."""
_TRANSFER_S = 2.0
"""For one transfer: beyond a few round trips and one lost first packet, which TCP sends again after a second."""
BYTES = 1000
_PORT = 5001


@dataclass(frozen=True)
class Transfer:
    """arrived: all bytes came. reason: why it was not tried, or ""."""

    source: str
    target: str
    arrived: bool
    reason: str = ""


def run(topology: TutorialTopology, programs: Sequence[SwitchProgram], pcap: Path | None, say: Callable[[str], None]) -> list[Transfer]:
    """Build, write the entries of the runtime files, and try every ordered pair of hosts."""
    from fairlane import native

    network = native.Network(1)
    for index, program in enumerate(programs):
        network.add_switch(program.switch.name, index, cpu_port=program.switch.cpu_port, priorities=program.switch.priority_queues)
    for host in topology.hosts:
        network.add_host(host.name, str(host.ip.ip), host.mac, host.gateway[1] if host.gateway is not None else host.mac)
    for link in topology.links:
        rate = None if link.rate_bps is None else round(link.rate_bps)
        made = specs.Link(rate_bps=rate, delay_ns=round(link.delay_s * NS), queue_packets=QUEUE_PACKETS)
        network.connect(link.a, link.a_port, link.b, link.b_port, made)
    plane = _ControlPlane(programs)
    network.set_control_plane(plane)
    if pcap is not None:
        pcap.mkdir(parents=True, exist_ok=True)
        network.capture(pcap)
    pairs = [(a, b) for a in topology.hosts for b in topology.hosts if a is not b]
    tried: list[tuple[str, str, str]] = []
    transfers = []
    for a, b in pairs:
        reason = _reason(a, b)
        if reason:
            transfers.append(Transfer(a.name, b.name, False, reason))
            continue
        begin = round((_SETTLE_S + len(tried) * _TRANSFER_S) * NS)
        name = f"{a.name}-{b.name}"
        path = specs.FlowPath(name, a.name, b.name, _PORT + len(tried), begin, begin + round(_TRANSFER_S * NS))
        network.add_tcp_flow(path, specs.Tcp(flavour="sack", packet_bytes=600, bytes=BYTES))
        tried.append((a.name, b.name, name))
    network.run_until(round((_SETTLE_S + (len(tried) + 1) * _TRANSFER_S) * NS))
    plane.check()
    for program in programs:
        said = (
            f"{len(program.updates)} entries of {program.runtime.document.name}"
            if program.runtime is not None
            else "no runtime_json: nothing writes its entries here"
        )
        say(f"{program.switch.name}: {program.origin}; {said}")
    for source, target, name in tried:
        _, receiver = network.take_flow_logs(name)
        delivered = max((fields["delivered_bytes"] for _, kind, fields in receiver if kind == "tcp_data"), default=0)
        transfers.append(Transfer(source, target, delivered >= BYTES))
    order = {(a.name, b.name): i for i, (a, b) in enumerate(pairs)}
    return sorted(transfers, key=lambda t: order[t.source, t.target])


def _reason(a: Host, b: Host) -> str:
    """Why a transfer cannot be tried: both ends have to send to a gateway that their commands name."""
    for one, other in ((a, b), (b, a)):
        if other.ip.ip in one.ip.network:
            return f"{one.name} and {other.name} are neighbours, which find each other by ARP; virtual time has no ARP"
        if one.gateway is None:
            return f"{one.name} has no gateway with an Ethernet address (route add default gw, arp -s)"
    return ""


class _ControlPlane:
    """Writes each switch's pipeline and entries once; the handlers that `Network.set_control_plane` calls."""

    def __init__(self, programs: Sequence[SwitchProgram]) -> None:
        self._programs = list(programs)
        self._left = {i: 1 + len(p.updates) for i, p in enumerate(programs)}

    def check(self) -> None:
        unfinished = [self._programs[i].switch.name for i, left in self._left.items() if left]
        if unfinished:
            raise RunFailed(f"{', '.join(unfinished)}: not all entries were written within {_SETTLE_S:g} s of virtual time")

    def on_start(self, now_ns: int) -> list[tuple[Any, ...]]:
        actions: list[tuple[Any, ...]] = []
        for index, program in enumerate(self._programs):
            hello = p4r.StreamMessageRequest()
            hello.arbitration.device_id = index
            hello.arbitration.election_id.low = ELECTION_ID
            request = p4r.SetForwardingPipelineConfigRequest(
                device_id=index, action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT
            )
            request.election_id.low = ELECTION_ID
            request.config.p4info.CopyFrom(P4Info.read(program.p4info).message)
            request.config.p4_device_config = program.json.read_bytes()
            request.config.cookie.cookie = zlib.crc32(request.config.p4_device_config) or 1
            actions += [
                ("stream", index, _STREAM, hello.SerializeToString()),
                ("set_pipeline", index, _PIPELINE, request.SerializeToString()),
            ]
        return actions

    def on_timer(self, now_ns: int, timer: int) -> list[tuple[Any, ...]]:
        return []

    def on_stream(self, now_ns: int, switch: int, message: bytes) -> list[tuple[Any, ...]]:
        return []

    def on_answer(self, now_ns: int, switch: int, token: int, code: str, text: str, responses: list[bytes]) -> list[tuple[Any, ...]]:
        program = self._programs[switch]
        if token == _STREAM:
            return []
        if code != "OK":
            if token == _PIPELINE:
                raise RunFailed(f"{program.switch.name} refuses the pipeline {program.json}: {text}")
            assert program.runtime is not None
            raise program.runtime.document.error(
                program.updates[token - _FIRST_ENTRY].path, f"{program.switch.name} refuses a write: {text}"
            )
        self._left[switch] -= 1
        if token != _PIPELINE:
            return []
        actions: list[tuple[Any, ...]] = []
        for i, located in enumerate(program.updates):
            request = p4r.WriteRequest(device_id=switch, updates=[located.update])
            request.election_id.low = ELECTION_ID
            actions.append(("write", switch, _FIRST_ENTRY + i, request.SerializeToString()))
        return actions
