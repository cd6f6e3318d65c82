"""Packets and bytes of flows whose programs keep no records, as switches counted them: where a flow enters the network, and where it leaves.

A conversation belongs to the flow whose port it has; one without such a port, as of ICMP, to the flow between its hosts whose programs have no ports.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fairlane.arrays import np
from fairlane.experiments import kinds, paths
from fairlane.experiments.model import SAMPLED_S, Experiment
from fairlane.fabrics import raw
from fairlane.topologies import addressing


@dataclass(frozen=True)
class Sums:
    """Of one flow at one place, at some instants, in seconds since the run began. bytes: of IP datagrams. payload_bytes: behind the headers of IP and of
    TCP, UDP or ICMP; what comes twice counts twice."""

    times_s: np.ndarray
    packets: np.ndarray
    bytes: np.ndarray
    payload_bytes: np.ndarray


@dataclass(frozen=True)
class Counted:
    """sent: as it comes to the switch next to the sender. received: as it leaves the switch next to the receiver."""

    sent: Sums
    received: Sums


_DRAINED_S = 0.4
"""After the end of a run, until what was on the way has arrived."""
_Grown = dict[float, tuple[int, int, int]]
"""Packets, bytes and payload of an interval, by the Unix time of its end."""


def of_run(folder: Path, experiment: Experiment, begin_s: float) -> dict[str, Counted]:
    """By the names of flows of real programs. begin_s: Unix time of the run's begin."""
    wanted = {flow.name: flow for flow in experiment.flows if flow.commands is not None}
    if not wanted:
        return {}
    ips = {name: host.ip for name, host in addressing.assign(experiment.topology).hosts.items()}
    owner: dict[tuple[frozenset[str], int], str] = {}
    for flow in experiment.flows:
        for host in flow.all_receivers:
            first = (paths.TCP_PORT if flow.commands is not None or kinds.is_tcp(flow.kind) else paths.RTP_PORT) + flow.port_offset
            owner |= {(frozenset((ips[flow.sender], ips[host])), port): flow.name for port in (first, first + 1)}
    plain = {(ips[f.sender], ips[f.receiver]): f.name for f in wanted.values() if f.commands is not None and not f.commands.has_ports}
    grown: dict[tuple[str, str], _Grown] = defaultdict(dict)
    edge = {host: experiment.topology.ports()[host][0] for f in wanted.values() for host in (f.sender, f.receiver)}
    for switch in sorted({port.peer for port in edge.values()}):
        for row in raw.conversations(folder, switch):
            ends = frozenset((row.source, row.destination))
            name = owner.get((ends, row.source_port)) or owner.get((ends, row.destination_port)) or plain.get((row.source, row.destination))
            found = wanted.get(name or "")
            if found is None or (row.source, row.destination) != (ips[found.sender], ips[found.receiver]):
                continue
            port = edge[found.sender if row.direction == "in" else found.receiver]
            if (port.peer, port.peer_port) == (switch, row.port):
                sums = grown[found.name, row.direction]
                before = sums.get(row.unix_s, (0, 0, 0))
                sums[row.unix_s] = (before[0] + row.packets, before[1] + row.bytes, before[2] + row.payload_bytes)
    end_s = begin_s + experiment.duration_s
    return {name: Counted(*(_sums(grown[name, way], begin_s, end_s) for way in ("in", "out"))) for name in wanted}


def _sums(grown: Mapping[float, tuple[int, int, int]], begin_s: float, end_s: float) -> Sums:
    """A sum that did not grow has no rows: it stands still until the interval of the next one begins."""
    times: list[float] = []
    sums: list[tuple[int, int, int]] = []
    so_far = (0, 0, 0)
    for until_s in sorted(grown):
        if not begin_s < until_s <= end_s + _DRAINED_S:
            continue  # Fairlane's own pings, before and after the run
        since_s = until_s - SAMPLED_S
        if not times or since_s > times[-1]:
            times.append(since_s)
            sums.append(so_far)
        packets, size, payload = grown[until_s]
        so_far = (so_far[0] + packets, so_far[1] + size, so_far[2] + payload)
        times.append(until_s)
        sums.append(so_far)
    if not times:
        return Sums(np.zeros(1), np.zeros(1), np.zeros(1), np.zeros(1))
    columns = np.asarray(sums, dtype=float).reshape(len(sums), 3)
    return Sums(np.asarray(times, dtype=float) - begin_s, columns[:, 0], columns[:, 1], columns[:, 2])
