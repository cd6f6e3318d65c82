"""Addresses and routes, computed from a topology.

Switch number i (from 1, in the order of the nodes) has a subnet, and its hosts are the first addresses of it; they send everything to the gateway, whose Ethernet
address is that of the switch port: static ARP, no broadcast. Where 254 switches with 253 hosts each are enough, the subnet is 10.0.i.0/24, its hosts are 10.0.i.1,
.2, ..., and the gateway is 10.0.i.254. A larger network divides 10.0.0.0/8 into subnets of 512 addresses (`Plan`). In a network of IPv6 each address has these 32
bits behind the prefix fd00::/96 of local addresses (RFC 4193): host 10.0.1.1 is fd00::a00:101, and the subnet fd00::a00:100/120.

Routes have the least delay, then the fewest hops. Where several ports of a switch are alike in both, it spreads flows over them (`fairlane.topologies.equal_cost`), or
with `routing = "single"` takes the lowest.
"""

from __future__ import annotations

import functools
import heapq
import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import TypeAlias

from fairlane.arithmetic import total
from fairlane.topologies import equal_cost
from fairlane.topologies.equal_cost import FiveTuple
from fairlane.topologies.model import Link, Port, Topology

Down: TypeAlias = frozenset[int]
"""Links that have failed, by their place in `Topology.links`."""
HEALTHY: tuple[Down, ...] = (frozenset(),)
"""What has failed, before and now: where no way leads to a switch any more, routes stay as they were."""
_HOPS = 15
"""Bits of the number of hops in the cost of a way: more than a network has switches."""


IPV6_PREFIX = 0xFD << 120
"""The first 96 bits of all IPv6 addresses; switch/net/endpoint/src/ip.rs has them, too."""


@dataclass(frozen=True)
class Plan:
    """How addresses are given. host_bits: of an address, those behind the prefix of its switch's subnet. ip: the version."""

    host_bits: int
    ip: int = 4

    @staticmethod
    def of(topology: Topology) -> Plan:
        """The one of 24 bits where it has enough addresses: 254 subnets, each of 253 hosts and a gateway."""
        ports, hosts = topology.ports(), set(topology.hosts)
        small = len(topology.switches) <= 254 and all(sum(p.peer in hosts for p in ports[s]) <= 253 for s in topology.switches)
        return Plan(8 if small else 9, topology.ip)

    @property
    def small(self) -> bool:
        """Whether subnets have 256 addresses."""
        return self.host_bits == 8

    @property
    def bits(self) -> int:
        """Of an address."""
        return 32 if self.ip == 4 else 128

    @property
    def prefix_length(self) -> int:
        """Of each switch's subnet."""
        return self.bits - self.host_bits

    @property
    def gateway(self) -> int:
        """Its number in a subnet: the last address before the one of broadcasts."""
        return (1 << self.host_bits) - 2

    def address(self, switch: int, number: int) -> str:
        """number: in the switch's subnet, hosts from 1."""
        address = (10 << 24) + (switch << self.host_bits) + number
        return str(IPv4Address(address) if self.ip == 4 else IPv6Address(IPV6_PREFIX + address))

    def subnet(self, switch: int) -> str:
        return f"{self.address(switch, 0)}/{self.prefix_length}"


@dataclass(frozen=True)
class HostAddress:
    """ip: IPv4 or IPv6, without prefix length. gateway_mac: of the switch port that the host hangs on."""

    ip: str
    mac: str
    gateway_ip: str
    gateway_mac: str


@dataclass(frozen=True, slots=True)
class Hop:
    """A port to send by, and the Ethernet addresses the frame gets."""

    port: int
    src_mac: str
    dst_mac: str


@dataclass(frozen=True, slots=True)
class Route:
    """One entry of a switch's longest-prefix table. hops: of equal cost, by port; flows are spread over them."""

    prefix: str
    hops: tuple[Hop, ...]


@dataclass(frozen=True)
class Addressing:
    """prefix_length: of the switches' subnets. hosts: by name. port_macs: by switch name and port number. routes: by switch name."""

    prefix_length: int
    hosts: dict[str, HostAddress]
    port_macs: dict[tuple[str, int], str]
    routes: dict[str, tuple[Route, ...]]


def assign(topology: Topology, failed: tuple[Down, ...] = HEALTHY) -> Addressing:
    """The addresses of every host and switch port, and each switch's routes. failed: as of `next_ports`."""
    port_macs, hosts = port_addresses(topology), host_addresses(topology)
    return Addressing(Plan.of(topology).prefix_length, hosts, port_macs, routes(topology, failed))


def port_addresses(topology: Topology) -> dict[tuple[str, int], str]:
    """Ethernet addresses, by switch and port number."""
    ports = topology.ports()
    return {(s, p.number): _mac(1, i + 1, p.number) for i, s in enumerate(topology.switches) for p in ports[s]}


def host_addresses(topology: Topology) -> dict[str, HostAddress]:
    """By name."""
    known = topology.worked_out
    if ("hosts",) not in known:
        known["hosts",] = _host_addresses(topology)
    found: dict[str, HostAddress] = known["hosts",]
    return found


def _host_addresses(topology: Topology) -> dict[str, HostAddress]:
    plan, ports, host_set = Plan.of(topology), topology.ports(), set(topology.hosts)
    hosts: dict[str, HostAddress] = {}
    for i, s in enumerate(topology.switches, 1):
        attached = [p for p in ports[s] if p.peer in host_set]
        for j, port in enumerate(attached, 1):
            hosts[port.peer] = HostAddress(plan.address(i, j), _mac(0, i, j), plan.address(i, plan.gateway), _mac(1, i, port.number))
    return hosts


def _mac(kind: int, switch: int, number: int) -> str:
    """kind: 0 of a host, 1 of a switch's port."""
    return f"02:{kind:02x}:{switch >> 8:02x}:{switch & 255:02x}:{number >> 8:02x}:{number & 255:02x}"


def routes(topology: Topology, failed: tuple[Down, ...] = HEALTHY) -> dict[str, tuple[Route, ...]]:
    """By switch name. failed: as of `next_ports`."""
    plan, ports, host_set = Plan.of(topology), topology.ports(), set(topology.hosts)
    port_macs, hosts = port_addresses(topology), host_addresses(topology)
    number = {name: i for i, name in enumerate(topology.switches, 1)}
    # In a small network, to switches without hosts, too.
    targets = [t for t in topology.switches if plan.small or any(p.peer in host_set for p in ports[t])]

    def hop(port: Port) -> Hop:
        there = hosts[port.peer].mac if port.peer in host_set else port_macs[port.peer, port.peer_port]
        return Hop(port.number, port_macs[port.node, port.number], there)

    subnets = {t: plan.subnet(number[t]) for t in targets}
    found = {}
    for s in topology.switches:
        local = [Route(f"{hosts[p.peer].ip}/{plan.bits}", (hop(p),)) for p in ports[s] if p.peer in host_set]
        hops = {p.number: hop(p) for p in ports[s]}
        onward = [(t, next_ports(topology, s, t, failed)) for t in targets if t != s]
        onward.sort(key=lambda way: (_distances(topology, way[0], HEALTHY[0]).get(s, 0), way[1][0].number, way[0]))
        # A large network has a million routes, and few groups of ports.
        groups: dict[tuple[int, ...], tuple[Hop, ...]] = {}
        remote = []
        for t, by in onward:
            ports_there = tuple([p.number for p in by])
            if ports_there not in groups:
                groups[ports_there] = tuple(hops[n] for n in ports_there)
            remote.append(Route(subnets[t], groups[ports_there]))
        found[s] = tuple(local + remote)
    return found


def path(
    topology: Topology, source: str, destination: str, flow: FiveTuple | None = None, seed: int = 0, failed: tuple[Down, ...] = HEALTHY
) -> tuple[Port, ...]:
    """The output ports that a packet takes from host to host, the source's own first. flow: of which it is; None: an echo request. seed: of the run. failed: as of
    `next_ports`."""
    known = topology.worked_out
    key = ("path", source, destination, failed)
    if key in known:
        only: tuple[Port, ...] = known[key]
        return only
    ports = topology.ports()
    if source == destination:
        return ()
    hop, edge = ports[source][0], ports[destination][0]
    taken, spread = [hop], False
    while hop.peer != edge.peer:
        onward = next_ports(topology, hop.peer, edge.peer, failed)
        if len(onward) > 1:
            spread = True
            flow = flow or ping(topology, source, destination)
        hop = onward[0] if flow is None else equal_cost.chosen(onward, _seed_of(seed, hop.peer), flow)
        taken.append(hop)
    taken.append(topology.port(edge.peer, edge.peer_port))
    if not spread:  # every flow between these hosts takes it
        known[key] = tuple(taken)
    return tuple(taken)


def ping(topology: Topology, source: str, destination: str) -> FiveTuple:
    """Of an echo request."""
    hosts = host_addresses(topology)
    return FiveTuple(hosts[source].ip, hosts[destination].ip, equal_cost.ICMP if topology.ip == 4 else equal_cost.ICMPV6)


_seed_of = functools.lru_cache(1 << 16)(equal_cost.seed_of)


def chance(topology: Topology, source: str, destination: str, port: Port) -> float:
    """That a flow from switch to switch leaves by a port of a switch, if each switch chooses among its ports of equal cost at random."""
    known = topology.worked_out
    key = ("chances", source, destination)
    if key not in known:
        found: dict[tuple[str, int], float] = {}
        there = {source: 1.0}
        # The farthest first: all that comes to a switch is known before it is shared out.
        todo = [(-_distances(topology, destination, HEALTHY[0])[source], source)]
        while todo:
            _, at = heapq.heappop(todo)
            if at == destination:
                continue
            onward = next_ports(topology, at, destination)
            for one in onward:
                found[at, one.number] = part = there[at] / len(onward)
                if one.peer not in there:
                    heapq.heappush(todo, (-_distances(topology, destination, HEALTHY[0])[one.peer], one.peer))
                there[one.peer] = there.get(one.peer, 0.0) + part
        known[key] = found
    part_of: dict[tuple[str, int], float] = known[key]
    return part_of.get((port.node, port.number), 0.0)


def arrivals(topology: Topology, history: Iterable[tuple[Down, ...]] = (HEALTHY,)) -> dict[str, list[tuple[str, int]]]:
    """Of each switch: every host whose packets come to it, and the port where they may come in, on their way to any other host. history: what has failed, at each
    time of a run (`next_ports`)."""
    ports = topology.ports()
    edges = {h: ports[h][0] for h in topology.hosts}
    # Hosts on one switch share their ways.
    ways: dict[str, set[tuple[str, int]]] = {s: set() for s in topology.switches}
    wanted = {edge.peer for edge in edges.values()}
    for failed in history:
        for first in wanted:
            for last in wanted - {first}:
                todo, seen = [first], {first}
                while todo:
                    at = todo.pop()
                    for hop in next_ports(topology, at, last, failed) if at != last else ():
                        ways[first].add((hop.peer, hop.peer_port))
                        if hop.peer not in seen:
                            seen.add(hop.peer)
                            todo.append(hop.peer)
    found: dict[str, list[tuple[str, int]]] = {s: [] for s in topology.switches}
    for host, edge in edges.items():
        for switch, port in sorted({(edge.peer, edge.peer_port), *ways[edge.peer]}):
            found[switch].append((host, port))
    return found


def ping_bytes(topology: Topology) -> int:
    """The frame of an echo request as ping sends it: Ethernet, IP and ICMP headers, and 56 bytes of data."""
    return 98 if topology.ip == 4 else 118


def round_trip_s(topology: Topology, source: str, destination: str, seed: int = 0) -> float:
    """Round trip of a ping through empty queues: propagation and sending times, both ways. seed: of the run."""
    bytes_ = ping_bytes(topology)
    there = path(topology, source, destination, seed=seed)
    back = path(topology, destination, source, seed=seed)
    times = [[p.link.delay_s + bytes_ * 8 / p.link.rate_bps for p in way] for way in (there, back[::-1])]
    return total(one + other for one, other in itertools.zip_longest(*times, fillvalue=0.0))


def busiest_share(topology: Topology, pings: Iterable[tuple[str, str, float]], bytes_: int = 98, seed: int = 0) -> float:
    """The largest share of a switch port's rate that pings of `bytes_` take, each given as (source, destination, pings per second)."""
    load: dict[Port, float] = {}
    for source, destination, per_s in pings:
        for port in (*path(topology, source, destination, seed=seed)[1:], *path(topology, destination, source, seed=seed)[1:]):
            load[port] = load.get(port, 0.0) + per_s * bytes_ * 8 / port.link.rate_bps
    return max(load.values(), default=0.0)


def toward(topology: Topology, switch: str) -> dict[str, int]:
    """By name of each host, the number of the switch's port on the way there, the lowest of several of equal cost."""
    ports = topology.ports()
    edges = {host: ports[host][0] for host in topology.hosts}
    onward = {t: next_ports(topology, switch, t)[0].number for t in {edge.peer for edge in edges.values()} if t != switch}
    return {host: edge.peer_port if edge.peer == switch else onward[edge.peer] for host, edge in edges.items()}


def next_ports(topology: Topology, switch: str, toward: str, failed: tuple[Down, ...] = HEALTHY) -> tuple[Port, ...]:
    """The ports of a switch on the ways of least cost to another, by number: least delay, then fewest hops. failed: what has failed, before and now; where no way
    is left, those before it failed."""
    known: dict[str, tuple[Port, ...]] = topology.worked_out.setdefault(("next", toward, failed), {})
    if switch not in known:
        found: tuple[Port, ...] = ()
        for down in reversed(failed):
            found = tuple(_onward(topology, switch, toward, down))
            if found:
                break
        known[switch] = found if topology.routing == "ecmp" else found[:1]
    return known[switch]


def _onward(topology: Topology, switch: str, toward: str, down: Down) -> Iterator[Port]:
    distances = _distances(topology, toward, down)
    if switch in distances:
        for port in topology.ports()[switch]:
            if port.link_index not in down and port.peer in distances and _cost(port.link) + distances[port.peer] == distances[switch]:
                yield port


def _cost(link: Link) -> int:
    """Of one direction. Delays in whole nanoseconds, so that the order in which they are added does not matter."""
    return (round(link.delay_s * 1e9) << _HOPS) + 1


def _distances(topology: Topology, target: str, down: Down) -> Mapping[str, int]:
    """The cost of the way from each switch that has one."""
    known = topology.worked_out
    key = ("distances", target, down)
    if key not in known:
        known[key] = _measured(topology, target, down)
    found: Mapping[str, int] = known[key]
    return found


def _measured(topology: Topology, target: str, down: Down) -> dict[str, int]:
    known = topology.worked_out
    if ("costs",) not in known:
        switches = set(topology.switches)
        known["costs",] = {
            s: [(p.peer, p.link_index, _cost(topology.other_way(p))) for p in topology.ports()[s] if p.peer in switches] for s in switches
        }
    costs: dict[str, list[tuple[str, int, int]]] = known["costs",]
    best: dict[str, int] = {}
    todo = [(0, target)]
    while todo:
        cost, name = heapq.heappop(todo)
        if name in best:
            continue
        best[name] = cost
        for peer, link, more in costs[name]:
            if peer not in best and link not in down:
                heapq.heappush(todo, (cost + more, peer))
    return best
