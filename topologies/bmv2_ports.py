"""Rates, queues and delays of BMv2's ports, which its command line cannot set.

Rate and depth of a port's queue go through its Thrift interface (`simple_switch_CLI`), the rate in packets per second: right for
packets of one size. Delay is netem's, behind the switch; its queue is only as long as what is on the way.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from topologies.model import Link
from topologies.switch_process import PortSetting

ETHERNET_HEADER_BYTES = 14


def obstacle(links: Sequence[Link], has_netem: bool, cli: Path | None) -> str | None:
    """Why BMv2 cannot serve these links on this machine; None when it can."""
    delayed = next((x for x in links if x.delay_s > 0), None)
    if delayed is not None and not has_netem:
        return f"link {' - '.join(delayed.ends)} has a delay of {delayed.delay_s * 1e3:g} ms, BMv2 has none, and this kernel has no netem"
    if cli is None:
        return "simple_switch_CLI is not in PATH, and without it BMv2's ports have no rates (build BMv2 with Thrift)"
    return None


def queue_commands(ports: Sequence[PortSetting], packet_bytes: int) -> str:
    """What `simple_switch_CLI` reads. packet_bytes: size of a packet, IP header included, that the rates are right for."""
    lines = []
    for port in ports:
        rate_pps = max(1, round(port.rate_bps / 8 / (packet_bytes + ETHERNET_HEADER_BYTES)))
        lines += [f"set_queue_depth {port.queue_packets} {port.number}", f"set_queue_rate {rate_pps} {port.number}"]
    return "\n".join(lines) + "\n"


def apply(ports: Sequence[PortSetting], cli: Path, thrift_port: int, packet_bytes: int) -> str | None:
    """Set a running switch's ports; what went wrong, None when nothing did."""
    done = subprocess.run([str(cli), "--thrift-port", str(thrift_port)], input=queue_commands(ports, packet_bytes),
                          capture_output=True, text=True, check=False, timeout=30)
    if done.returncode != 0 or "Error" in done.stdout:
        return (done.stderr or done.stdout).strip()
    for port in ports:
        if port.delay_s > 0:
            limit = int(port.rate_bps * port.delay_s / 8 / 64) + 100
            netem = ["tc", "qdisc", "replace", "dev", port.interface, "root", "netem", "delay", f"{port.delay_s * 1e6:.0f}us", "limit", str(limit)]
            done = subprocess.run(netem, capture_output=True, text=True, check=False, timeout=30)
            if done.returncode != 0:
                return done.stderr.strip()
    return None
