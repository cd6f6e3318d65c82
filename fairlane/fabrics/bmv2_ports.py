"""Rates, queues and delays of BMv2's ports, which its command line cannot set.

Its Thrift port sets a queue's rate and capacity, the rate in packets per second: exact for packets of one size.
The P4 program sees that queue, and RED acts on it; see docs/decisions/bmv2-rates-in-packets.md. netem adds the delay, behind the
switch, with a queue only as long as the traffic on its way; or, on a kernel without it, a delay line's (`fairlane/fabrics/delay_lines.py`).
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from fairlane.fabrics.switch_process import PortSetting
from fairlane.topologies.model import ETHERNET_BYTES, Topology

# What one simple_switch_grpc built for release forwards of als.p4 on a machine like the project's, with the other running
# (docs/experiments/als-3.md); its default build, with logging compiled in, does less.
FORWARDING_PPS = 8000


@dataclass(frozen=True)
class PacketSizes:
    """Of the flows' data packets, IP header included (bytes)."""

    smallest: int
    largest: int


def obstacle(topology: Topology, has_netem: bool, has_delay_line: bool) -> str | None:
    """Why BMv2 cannot be this network on this machine; None when it can."""
    dual = next((x for x in topology.links if x.priorities > 1), None)
    if dual is not None:
        return f"link {' - '.join(dual.ends)} has two queues ({dual.queue}) that share its rate, and each of BMv2's priority queues has a rate of its own"
    delayed = next((x for x in topology.links if x.delay_s > 0), None)
    if delayed is not None and not has_netem and not has_delay_line:
        return (
            f"link {' - '.join(delayed.ends)} has a delay of {delayed.delay_s * 1e3:g} ms, but BMv2 has no delays, this kernel has no netem,"
            " and fairlane-link is not built ('make build')"
        )
    return None


def reluctance(topology: Topology, sizes: PacketSizes) -> str | None:
    """Why BMv2 is a poor choice for this network, though it would run; None when it is not."""
    switches = set(topology.switches)
    # Links to hosts have spare capacity; only links between switches may be full.
    trunks = [p for name in topology.switches for p in topology.ports()[name] if p.peer in switches]
    fastest = max(trunks, key=lambda p: p.link.rate_bps, default=None)
    if fastest is not None and (pps := rate_pps(fastest.link.rate_bps, sizes.largest)) > FORWARDING_PPS:
        return (
            f"{fastest.node}->{fastest.peer} at {fastest.link.rate_bps / 1e6:g} Mb/s carries {pps} packets/s of {sizes.largest} bytes,"
            f" and BMv2 forwards about {FORWARDING_PPS} on a machine of two cores"
        )
    return None


def rate_pps(rate_bps: float, packet_bytes: int) -> int:
    """A link's rate in packets of `packet_bytes`, IP header included."""
    return max(1, round(rate_bps / 8 / (packet_bytes + ETHERNET_BYTES)))


def sentences(topology: Topology, sizes: PacketSizes) -> list[str]:
    """What a run should know about its rates."""
    frame = sizes.largest + ETHERNET_BYTES
    said = [
        f"BMv2 counts packets: each port sends its link's rate in packets of {sizes.largest} bytes ({frame} with Ethernet header)."
        " Acknowledgements and control packets count as much as these, so a port that sends them too stays below its rate in bit/s"
    ]
    if sizes.smallest != sizes.largest:
        part = (sizes.smallest + ETHERNET_BYTES) / frame
        said.append(
            f"warning: packets have {sizes.smallest} to {sizes.largest} bytes: a link full of the small ones carries {part:.0%} of its rate"
        )
    reason = reluctance(topology, sizes)
    if reason is not None:
        said.append(f"warning: {reason}: the link will not be full")
    return said


def apply(ports: Sequence[PortSetting], thrift_port: int, sizes: PacketSizes) -> None:
    """Set a running switch's ports. `bmv2_thrift.Bmv2Error` names the error."""
    # Only runs on BMv2 need it: the command line stays quick.
    from fairlane.fabrics.bmv2_thrift import Bmv2Error, Bmv2Thrift

    with Bmv2Thrift.connect(thrift_port) as switch:
        for port in ports:
            switch.set_queue(port.number, rate_pps(port.rate_bps, sizes.largest), port.queue_packets)
    for port in ports:
        if port.delay_s > 0:
            done = subprocess.run(netem_command(port), capture_output=True, text=True, check=False, timeout=30)
            if done.returncode != 0:
                raise Bmv2Error(done.stderr.strip())


def netem_command(port: PortSetting) -> list[str]:
    """Delay behind the switch: room for all the frames of at least 64 bytes that can be on the way."""
    limit = int(port.rate_bps * port.delay_s / 8 / 64) + 100
    return ["tc", "qdisc", "replace", "dev", port.interface, "root", "netem", "delay", f"{port.delay_s * 1e6:.0f}us", "limit", str(limit)]
