"""Topologies as data: what is refused, and that automatic addresses and routes lead everywhere."""

from __future__ import annotations

import dataclasses
import ipaddress
import itertools
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlane.p4src.schemes.red.scheme import Red
from fairlane.topologies import addressing, builders, equal_cost
from fairlane.topologies.builders import LinkSpec
from fairlane.topologies.equal_cost import FiveTuple
from fairlane.topologies.model import Link, Node, Topology, TopologyError

TRUNK = LinkSpec(10e6, 0.005, 100, (Red(0.5, 0.95, 0.1, 0.002),))
ACCESS = LinkSpec(100e6)


def graph(links: list[tuple[str, str]], hosts: str = "h1 h2", switches: str = "s1 s2") -> Topology:
    nodes = [Node(n, "host") for n in hosts.split()] + [Node(n, "switch") for n in switches.split()]
    return Topology(tuple(nodes), tuple(Link(ends, 1e6) for ends in links))


GOOD = [("h1", "s1"), ("h2", "s2")]


@pytest.mark.parametrize(
    ("links", "message"),
    [
        ([*GOOD, ("s1:3", "s1:3")], "the link loops back to the same port: s1, port 3"),
        ([*GOOD, ("s1:3", "s1:4")], "the link loops back to the same node: s1"),
        ([*GOOD, ("s1", "s9")], "link to unknown node 's9'"),
        ([*GOOD, ("s1:3", "s2:3"), ("s1:3", "s2:4")], "port 3 of s1 is used by links[2] already"),
        ([*GOOD, ("s1:510", "s2")], "port 510 of s1: switch ports are 1 to 509"),
        ([*GOOD, ("s1:x", "s2")], "link end 's1:x': write a node, or a node and its port as in 's1:3'"),
        (GOOD, "h2 cannot be reached from h1"),
        ([("h1", "s1"), ("s1", "s2")], "host h2 has no link: give it one to a switch"),
        ([("h1", "h2"), ("s1", "s2")], "host h1 is linked to host h2; hosts link to switches"),
    ],
)
def test_impossible_networks_are_refused(links: list[tuple[str, str]], message: str) -> None:
    with pytest.raises(TopologyError) as refused:
        graph(links)
    assert str(refused.value) == message


def test_two_nodes_of_one_name() -> None:
    with pytest.raises(TopologyError, match=r"two nodes are called 's1' \(nodes\[0\] is the other\)"):
        Topology((Node("s1", "switch"), Node("s1", "switch")), ())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rate_bps": 0.0}, "rate_bps: a link of 0 bit/s never sends: give a positive rate"),
        ({"rate_bps": float("nan")}, "rate_bps: a link of nan bit/s never sends: give a positive rate"),
        ({"delay_s": -0.001}, "delay_s: must not be negative, got -0.001 s"),
        ({"framing": "ppp"}, "framing: must be 'ethernet' or 'ip', got 'ppp'"),
        ({"queue_packets": 0}, "queue_packets: a queue of 0 packets cannot hold any: give at least 1"),
    ],
)
def test_impossible_links_are_refused(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError) as refused:
        Link(("a", "b"), **{"rate_bps": 1e6, **arguments})
    assert str(refused.value) == message


def test_ports_not_given_fill_the_gaps() -> None:
    topology = graph([*GOOD, ("s1:1", "s2")])
    assert [(p.number, p.peer) for p in topology.ports()["s1"]] == [(1, "s2"), (2, "h1")]
    assert [(p.number, p.peer) for p in topology.ports()["s2"]] == [(1, "h2"), (2, "s1")]
    assert [(p.number, p.peer, p.peer_port) for p in topology.ports()["h1"]] == [(0, "s1", 2)]


def test_dumbbell_of_the_papers() -> None:
    topology = builders.dumbbell(10, TRUNK, ACCESS)
    assert topology.ports()["s1"][0].peer == "s2" and topology.ports()["s1"][0].number == 1
    assert [p.node for p in addressing.path(topology, "h1", "h11")] == ["h1", "s1", "s2"]
    # 2 x 5 ms, and 98 bytes each way over 100, 10 and 100 Mb/s.
    assert addressing.round_trip_s(topology, "h1", "h11") == pytest.approx(0.010 + 2 * 98 * 8 * (1 / 10e6 + 2 / 100e6))


def test_pings_share_the_ports_that_they_cross() -> None:
    topology = builders.dumbbell(10, TRUNK, ACCESS)
    pings = [(f"h{i}", f"h{i + 10}", 14.0) for i in range(1, 11)]
    # As large as the packets of the flows, as for a switch that counts packets: they come back over the trunk, too.
    assert addressing.busiest_share(topology, pings, 1014) == pytest.approx(10 * 14 * 1014 * 8 / 10e6)
    against = [*pings[:9], ("h20", "h10", 14.0)]
    assert addressing.busiest_share(topology, against, 1014) == pytest.approx(10 * 14 * 1014 * 8 / 10e6)
    assert addressing.busiest_share(topology, []) == 0.0


topologies_of_all_kinds: st.SearchStrategy[Topology] = st.one_of(
    st.builds(builders.leaf_spine, st.integers(1, 4), st.integers(1, 5), st.integers(1, 4), st.just(TRUNK), st.just(ACCESS)),
    st.builds(builders.fat_tree, st.sampled_from([2, 4, 6]), st.just(TRUNK), st.just(ACCESS)),
    st.builds(builders.ring, st.integers(3, 9), st.integers(1, 3), st.just(TRUNK), st.just(ACCESS)),
    st.builds(builders.parking_lot, st.integers(2, 7), st.just(TRUNK), st.just(ACCESS)),
    st.builds(builders.dumbbell, st.integers(1, 30), st.just(TRUNK), st.just(ACCESS)),
    st.integers(2, 7).flatmap(
        lambda n: st.builds(
            builders.chain,
            st.lists(st.tuples(st.integers(1, n), st.integers(1, n)).filter(lambda p: p[0] != p[1]), min_size=1, max_size=8),
            st.just(n),
            st.just(TRUNK),
            st.just(ACCESS),
        )
    ),
    st.builds(builders.tree, st.lists(st.just(TRUNK), min_size=1, max_size=5), st.integers(1, 4), st.just(ACCESS)),
)


@settings(max_examples=40)
@given(topologies_of_all_kinds, st.data())
def test_routes_lead_from_every_host_to_every_other(topology: Topology, data: st.DataObject) -> None:
    addresses = addressing.assign(topology)
    macs = [h.mac for h in addresses.hosts.values()] + list(addresses.port_macs.values())
    assert len(set(macs)) == len(macs)
    assert len({h.ip for h in addresses.hosts.values()}) == len(topology.hosts)
    source, destination = (data.draw(st.sampled_from(topology.hosts)) for _ in range(2))
    if source == destination:
        return
    # Walk hop by hop, as the switches do: longest prefix, then the frame's new addresses must be those of the next hop.
    ports = topology.ports()
    target = ipaddress.IPv4Address(addresses.hosts[destination].ip)
    flow = FiveTuple(addresses.hosts[source].ip, str(target), 6, data.draw(st.integers(0, 65535)), 5201)
    seed = data.draw(st.integers(0, 9))
    node, mac, hops = ports[source][0].peer, addresses.hosts[source].gateway_mac, []
    while node != destination:
        assert mac in {addresses.port_macs[node, p.number] for p in ports[node]}
        matching = [r for r in addresses.routes[node] if target in ipaddress.IPv4Network(r.prefix)]
        route = max(matching, key=lambda r: ipaddress.IPv4Network(r.prefix).prefixlen)
        hop = equal_cost.chosen(route.hops, equal_cost.seed_of(seed, node), flow)
        hops.append((node, hop.port))
        mac = hop.dst_mac
        node = next(p.peer for p in ports[node] if p.number == hop.port)
        assert len(hops) <= len(topology.switches)
    assert mac == addresses.hosts[destination].mac
    assert hops == [(p.node, p.number) for p in addressing.path(topology, source, destination, flow, seed)[1:]]


def test_the_way_of_least_delay_is_taken() -> None:
    nodes = (Node("h1", "host"), Node("h2", "host"), *(Node(s, "switch") for s in ("s1", "s2", "s3")))
    links = (
        Link(("h1", "s1"), 1e6),
        Link(("h2", "s3"), 1e6),
        Link(("s1", "s3"), 1e6, delay_s=0.1),
        Link(("s1", "s2"), 1e6, delay_s=0.01),
        Link(("s2", "s3"), 1e6, delay_s=0.01),
    )
    assert [p.node for p in addressing.path(Topology(nodes, links), "h1", "h2")] == ["h1", "s1", "s2", "s3"]


def test_a_larger_network_has_larger_subnets() -> None:
    """Up to 254 switches of up to 253 hosts, addresses are as they always were."""
    link = Link(("s1", "s2"), 1e6)
    switches = [Node(f"s{i}", "switch") for i in range(1, 256)]
    links = [dataclasses.replace(link, ends=(a.name, b.name)) for a, b in itertools.pairwise(switches)]
    small = addressing.routes(Topology(tuple(switches[:254]), tuple(links[:253])))
    assert (len(small), small["s1"][-1].prefix) == (254, "10.0.254.0/24")
    host, access = Node("h1", "host"), dataclasses.replace(link, ends=("h1", "s255"))
    large = addressing.assign(Topology((*switches, host), (*links, access)))
    assert large.hosts["h1"] == addressing.HostAddress("10.1.254.1", "02:00:00:ff:00:01", "10.1.255.254", "02:01:00:ff:00:02")
    # No packet is ever for a switch without hosts.
    assert [route.prefix for route in large.routes["s1"]] == ["10.1.254.0/23"]


def test_a_switch_has_as_many_hosts_as_ports() -> None:
    """More are refused where the network is made, so that a file is refused before anything starts."""
    link = Link(("s1", "s2"), 1e6)
    hosts = [Node(f"h{i}", "host") for i in range(1, 511)]
    links = [dataclasses.replace(link, ends=(host.name, "s1")) for host in hosts]
    for count, last in ((253, "10.0.1.253"), (254, "10.0.2.254"), (509, "10.0.3.253")):
        addresses = addressing.assign(Topology((Node("s1", "switch"), *hosts[:count]), tuple(links[:count])))
        assert len({address.ip for address in addresses.hosts.values()}) == count
        assert len({address.mac for address in addresses.hosts.values()} | set(addresses.port_macs.values())) == 2 * count
        assert addresses.hosts[f"h{count}"].ip == last
        assert last != addresses.hosts["h1"].gateway_ip
    with pytest.raises(TopologyError, match=r"s1 has more links than ports \(509\)") as refusal:
        Topology((Node("s1", "switch"), *hosts), tuple(links))
    assert refusal.value.where == ("links", 509)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: builders.chain([(1, 2)], 40_000, TRUNK, ACCESS), "switches: a chain has 2 to 3500, got 40000"),
        (
            lambda: builders.chain([(1, 2)] * 600, 2, TRUNK, ACCESS),
            "paths: 600 paths begin or end at switch 1, which has at most 509 hosts",
        ),
        (lambda: builders.tree([TRUNK], 10**12, ACCESS), "hosts_per_leaf: 1 to 508, because a switch has 509 ports, got 1000000000000"),
        (lambda: builders.tree([TRUNK] * 40_000, 1, ACCESS), "branches: a tree has at most 508, got 40000"),
        (lambda: builders.leaf_spine(2, 2, 1000, TRUNK, ACCESS), "hosts_per_leaf: 1 to 507, because a switch has 509 ports, got 1000"),
        (lambda: builders.leaf_spine(600, 2, 1, TRUNK, ACCESS), "leaves: 1 to 509, as many as a spine has ports, got 600"),
        (lambda: builders.leaf_spine(2, 509, 1, TRUNK, ACCESS), "spines: 1 to 508, because a leaf has 509 ports, got 509"),
        (lambda: builders.fat_tree(5, TRUNK, ACCESS), "k: an even number of ports, 2 to 48, got 5"),
        (lambda: builders.ring(2, 1, TRUNK, ACCESS), "switches: a ring has 3 to 3500, got 2"),
        (
            lambda: builders.ring(1000, 101, TRUNK, ACCESS),
            "hosts_per_switch: 101 on each of 1000 switches: a network has at most 100000 hosts",
        ),
        (lambda: builders.ring(3, 508, TRUNK, ACCESS), "hosts_per_switch: 1 to 507, because a switch has 509 ports, got 508"),
        (lambda: builders.parking_lot(1, TRUNK, ACCESS), "switches: a parking lot has 2 to 3500, got 1"),
        (lambda: builders.dumbbell(509, TRUNK, ACCESS), "pairs: a dumbbell has 1 to 508 pairs of hosts, got 509"),
    ],
)
def test_builders_name_the_number_at_fault(make: Callable[[], Topology], message: str) -> None:
    """Before a huge number fills the memory."""
    with pytest.raises(TopologyError) as refused:
        make()
    assert str(refused.value) == message


@settings(max_examples=30)
@given(st.data())
def test_arrivals_are_the_ports_that_paths_enter_by(data: st.DataObject) -> None:
    """Held against the paths themselves, over random connected graphs with two hosts on some switches."""
    count = data.draw(st.integers(1, 6), "switches")
    switches = [f"s{i + 1}" for i in range(count)]
    links = [(switches[data.draw(st.integers(0, i - 1))], switches[i]) for i in range(1, count)]
    links += data.draw(st.lists(st.sampled_from([(a, b) for a in switches for b in switches if a < b]), max_size=4)) if count > 1 else []
    at = data.draw(st.lists(st.sampled_from(switches), min_size=2, max_size=7), "hosts")
    hosts = [f"h{i + 1}" for i in range(len(at))]
    topology = graph([*links, *zip(hosts, at)], " ".join(hosts), " ".join(switches))
    addresses = addressing.host_addresses(topology)
    wanted: dict[str, set[tuple[str, int]]] = {s: set() for s in switches}
    for a in hosts:
        for b in hosts:
            # Each flow takes one of the ways: so many flows take all of them.
            for n in range(60 if a != b else 0):
                for port in addressing.path(topology, a, b, FiveTuple(addresses[a].ip, addresses[b].ip, 6, n, 1))[:-1]:
                    wanted[port.peer].add((a, port.peer_port))
    found = addressing.arrivals(topology)
    assert {s: set(pairs) for s, pairs in found.items()} == wanted
    assert all(len(pairs) == len(set(pairs)) for pairs in found.values())
