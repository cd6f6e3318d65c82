"""Addresses and routes, computed from a topology.

Switch number i (from 1, in the order of the nodes) has the subnet 10.0.i.0/24; its hosts are 10.0.i.1, .2, ... and send
everything to 10.0.i.254, whose Ethernet address is that of the switch port: static ARP, no broadcast.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable
from dataclasses import dataclass

from fairlane.arithmetic import total
from fairlane.topologies.model import Port, Topology

PREFIX_LENGTH = 24


@dataclass(frozen=True)
class HostAddress:
    """ip: without prefix length (it is /24). gateway_mac: of the switch port that the host hangs on."""

    ip: str
    mac: str
    gateway_ip: str
    gateway_mac: str


@dataclass(frozen=True)
class Route:
    """One entry of a switch's longest-prefix table: where to send, and the Ethernet addresses the frame gets."""

    prefix: str
    port: int
    src_mac: str
    dst_mac: str


@dataclass(frozen=True)
class Addressing:
    """hosts: by name. port_macs: by switch name and port number. routes: by switch name."""

    hosts: dict[str, HostAddress]
    port_macs: dict[tuple[str, int], str]
    routes: dict[str, tuple[Route, ...]]


def assign(topology: Topology) -> Addressing:
    """The addresses of every host and switch port, and each switch's routes. A `Topology` has no more of them than there are addresses."""
    ports = topology.ports()
    switches = topology.switches
    number = {name: i + 1 for i, name in enumerate(switches)}
    host_set = set(topology.hosts)
    port_macs = {(s, p.number): f"02:01:00:{number[s]:02x}:{p.number >> 8:02x}:{p.number & 255:02x}" for s in switches for p in ports[s]}
    hosts: dict[str, HostAddress] = {}
    for s in switches:
        attached = [p for p in ports[s] if p.peer in host_set]
        for j, port in enumerate(attached):
            hosts[port.peer] = HostAddress(
                f"10.0.{number[s]}.{j + 1}", f"02:00:00:{number[s]:02x}:00:{j + 1:02x}", f"10.0.{number[s]}.254", port_macs[s, port.number]
            )
    routes = {}
    for s in switches:
        next_ports = _next_ports(s, topology)
        local = [
            Route(f"{hosts[p.peer].ip}/32", p.number, port_macs[s, p.number], hosts[p.peer].mac) for p in ports[s] if p.peer in host_set
        ]
        remote = [
            Route(f"10.0.{number[t]}.0/{PREFIX_LENGTH}", p.number, port_macs[s, p.number], port_macs[p.peer, p.peer_port])
            for t, p in next_ports.items()
        ]
        routes[s] = tuple(local + remote)
    return Addressing(hosts, port_macs, routes)


def path(topology: Topology, source: str, destination: str) -> tuple[Port, ...]:
    """The output ports that a packet takes from host to host, the source's own first."""
    known = topology.worked_out
    if ("path", source, destination) not in known:
        known["path", source, destination] = _path(topology, source, destination)
    found: tuple[Port, ...] = known["path", source, destination]
    return found


def _path(topology: Topology, source: str, destination: str) -> tuple[Port, ...]:
    ports = topology.ports()
    if source == destination:
        return ()
    hop = ports[source][0]
    taken = [hop]
    edge = ports[destination][0]
    while hop.peer != edge.peer:
        hop = _next_ports(hop.peer, topology)[edge.peer]
        taken.append(hop)
    known = topology.worked_out
    if ("ports", edge.peer) not in known:
        known["ports", edge.peer] = {p.number: p for p in ports[edge.peer]}
    taken.append(known["ports", edge.peer][edge.peer_port])
    return tuple(taken)


def arrivals(topology: Topology) -> dict[str, list[tuple[str, int]]]:
    """Of each switch: every host whose packets come to it, and the port where they come in, on their way to any other host."""
    ports = topology.ports()
    edges = {h: ports[h][0] for h in topology.hosts}
    onward = {s: _next_ports(s, topology) for s in topology.switches}
    # Hosts on one switch share their ways.
    ways: dict[str, set[tuple[str, int]]] = {s: set() for s in topology.switches}
    wanted = {edge.peer for edge in edges.values()}
    for first in wanted:
        for last in wanted - {first}:
            at = first
            while at != last:
                hop = onward[at][last]
                at = hop.peer
                ways[first].add((at, hop.peer_port))
    found: dict[str, list[tuple[str, int]]] = {s: [] for s in topology.switches}
    for host, edge in edges.items():
        for switch, port in sorted({(edge.peer, edge.peer_port), *ways[edge.peer]}):
            found[switch].append((host, port))
    return found


def round_trip_s(topology: Topology, source: str, destination: str, bytes_: int = 98) -> float:
    """Round trip of a packet of `bytes_` through empty queues: propagation both ways, and sending times."""
    there, back = path(topology, source, destination), path(topology, destination, source)
    times = [[p.link.delay_s + bytes_ * 8 / p.link.rate_bps for p in way] for way in (there, back[::-1])]
    return total(one + other for one, other in itertools.zip_longest(*times, fillvalue=0.0))


def busiest_share(topology: Topology, pings: Iterable[tuple[str, str, float]], bytes_: int = 98) -> float:
    """The largest share of a switch port's rate that pings of `bytes_` take, each given as (source, destination, pings per second)."""
    load: dict[Port, float] = {}
    for source, destination, per_s in pings:
        for port in (*path(topology, source, destination)[1:], *path(topology, destination, source)[1:]):
            load[port] = load.get(port, 0.0) + per_s * bytes_ * 8 / port.link.rate_bps
    return max(load.values(), default=0.0)


def toward(topology: Topology, switch: str) -> dict[str, int]:
    """By name of each host that can be reached, the number of the switch's port on the way there."""
    ports = topology.ports()
    edges = {host: ports[host][0] for host in topology.hosts}
    onward = {name: port.number for name, port in _next_ports(switch, topology).items()}
    return {
        host: edge.peer_port if edge.peer == switch else onward[edge.peer]
        for host, edge in edges.items()
        if edge.peer == switch or edge.peer in onward
    }


def _next_ports(start: str, topology: Topology) -> dict[str, Port]:
    """For each other switch, the port of `start` on the way there: least delay, then fewest hops, then lowest port."""
    known = topology.worked_out
    if ("next", start) not in known:
        known["next", start] = _routed(start, topology)
    found: dict[str, Port] = known["next", start]
    return found


def _routed(start: str, topology: Topology) -> dict[str, Port]:
    ports = topology.ports()
    switches = set(topology.switches)
    best: dict[str, tuple[float, int, int]] = {}
    first: dict[str, Port] = {}
    todo: list[tuple[float, int, int, str, Port | None]] = [(0.0, 0, 0, start, None)]
    while todo:
        delay, hops, lowest, name, port = heapq.heappop(todo)
        if name in best:
            continue
        best[name] = (delay, hops, lowest)
        if port is not None:
            first[name] = port
        for p in ports[name]:
            if p.peer in switches and p.peer not in best:
                via = port or p
                heapq.heappush(todo, (delay + p.link.delay_s, hops + 1, via.number, p.peer, via))
    return first
