"""Flows over several ways of equal cost: the switches' choice is that of `fairlane.topologies.equal_cost`, and as even as a random one."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane import api
from fairlane.experiments import loader, paths
from fairlane.fabrics import virtual_fabric
from fairlane.topologies import addressing, builders, equal_cost
from fairlane.topologies.builders import LinkSpec
from fairlane.topologies.equal_cost import TCP, UDP, FiveTuple
from fairlane.topologies.model import Port, Topology

LINK = LinkSpec(1e9, 1e-6, 1000)
# The number that a chi-squared variable exceeds with probability 1e-4, by its degrees of freedom.
CHI_SQUARED = {1: 15.14, 3: 21.11, 15: 44.26, 31: 68.9}

needs_switch = pytest.mark.skipif(virtual_fabric.native is None, reason="the module fairlane.native is not built: make build")


def of(address: st.SearchStrategy[str]) -> st.SearchStrategy[FiveTuple]:
    ports = st.integers(0, 65535)
    return st.builds(FiveTuple, address, address, st.sampled_from([1, TCP, UDP]), ports, ports)


@given(of(st.ip_addresses(v=4).map(str)), st.integers(0, 2**64 - 1), st.integers(1, 20))
def test_rtcp_takes_the_way_of_its_rtp(flow: FiveTuple, seed: int, count: int) -> None:
    """[RFC 3550 sec 11]: RTP has the even port, RTCP the next odd one."""
    rtp = FiveTuple(flow.source, flow.destination, UDP, flow.source_port & ~1, flow.destination_port & ~1)
    rtcp = FiveTuple(flow.source, flow.destination, UDP, flow.source_port | 1, flow.destination_port | 1)
    ports = range(count)
    assert equal_cost.chosen(ports, seed, rtp) == equal_cost.chosen(ports, seed, rtcp)


def flows_between_pods(topology: Topology, hosts_of_a_pod: int, count: int, draw: random.Random) -> list[tuple[str, str, FiveTuple]]:
    """From the first pod to the second, so that every flow has all cores to choose from."""
    addresses = addressing.host_addresses(topology)
    found = []
    for n in range(count):
        a = f"h{1 + draw.randrange(hosts_of_a_pod)}"
        b = f"h{1 + hosts_of_a_pod + draw.randrange(hosts_of_a_pod)}"
        found.append((a, b, FiveTuple(addresses[a].ip, addresses[b].ip, TCP, 10_000 + n, 5201)))
    return found


def chi_squared(counts: list[int]) -> float:
    mean = sum(counts) / len(counts)
    return sum((count - mean) ** 2 for count in counts) / mean


@pytest.mark.parametrize("k", [4, 8])
@pytest.mark.parametrize("seed", range(5))
def test_cores_of_a_fat_tree_have_binomial_shares(k: int, seed: int) -> None:
    """Each of n flows takes each of the (k/2)^2 cores with the same chance. With hashes of two stages that are correlated, as a CRC's are whose seeds differ, k/2 cores
    would have all flows, or some aggregation switch would use one core alone."""
    topology = builders.fat_tree(k, LINK, LINK)
    cores = (k // 2) ** 2
    flows = flows_between_pods(topology, cores, 2000, random.Random(seed))
    taken = [addressing.path(topology, a, b, flow, seed) for a, b, flow in flows]
    used = Counter(p.node for way in taken for p in way if p.node.startswith("core"))
    assert sum(used.values()) == len(flows)
    assert chi_squared([used[f"core{i + 1}"] for i in range(cores)]) < CHI_SQUARED[cores - 1]
    # A binomial count of 2000 flows is within five standard deviations of its mean.
    mean = len(flows) / cores
    assert all(abs(count - mean) < 5 * (mean * (1 - 1 / cores)) ** 0.5 for count in used.values())


def test_seeds_of_a_run_draw_other_ways() -> None:
    topology = builders.leaf_spine(2, 4, 4, LINK, LINK)
    flow = FiveTuple("10.0.1.1", "10.0.2.1", TCP, 5201, 5201)
    used = Counter(addressing.path(topology, "h1", "h5", flow, seed)[2].node for seed in range(400))
    assert len(used) == 4 and chi_squared(list(used.values())) < CHI_SQUARED[3]


def test_one_way_has_the_lowest_port() -> None:
    topology = Topology(*(lambda t: (t.nodes, t.links, "single"))(builders.leaf_spine(2, 4, 1, LINK, LINK)))
    flows = [FiveTuple("10.0.1.1", "10.0.2.1", TCP, n, 5201) for n in range(50)]
    assert {addressing.path(topology, "h1", "h2", flow, 3)[2].node for flow in flows} == {"spine1"}
    assert all(len(route.hops) == 1 for routes in addressing.routes(topology).values() for route in routes)


@given(
    st.sampled_from([builders.fat_tree(4, LINK, LINK), builders.ring(6, 1, LINK, LINK), builders.leaf_spine(3, 5, 2, LINK, LINK)]),
    st.data(),
)
def test_the_chance_of_a_port_is_its_part_of_many_flows(topology: Topology, data: st.DataObject) -> None:
    edges = sorted({topology.ports()[h][0].peer for h in topology.hosts})
    source, destination = data.draw(st.permutations(edges))[:2]
    leaving = [p for s in topology.switches for p in topology.ports()[s]]
    chances = {(p.node, p.number): addressing.chance(topology, source, destination, p) for p in leaving}
    # What comes to a switch leaves it.
    for switch in topology.switches:
        comes = sum(chances[p.peer, p.peer_port] for p in topology.ports()[switch] if p.peer in topology.switches)
        goes = sum(chances[p.node, p.number] for p in topology.ports()[switch])
        assert goes - comes == pytest.approx((switch == source) - (switch == destination))
    a, b = (next(h for h in topology.hosts if topology.ports()[h][0].peer == s) for s in (source, destination))
    addresses = addressing.host_addresses(topology)
    flows = [FiveTuple(addresses[a].ip, addresses[b].ip, TCP, n, 80) for n in range(400)]
    used: Counter[tuple[str, int]] = Counter()
    for flow in flows:
        used.update((p.node, p.number) for p in addressing.path(topology, a, b, flow, 7)[1:-1])
    for key, chance in chances.items():
        assert abs(used[key] - 400 * chance) <= 5 * (400 * chance * (1 - chance)) ** 0.5 + 1e-9


NETWORK = """
title = "Flows over ways of equal cost"
bottleneck = "edge1_1->agg1_1"
duration_s = 1
seed = SEED
[topology]
ip = 4
kind = "fat-tree"
k = 4
trunk = { rate_bps = 1_000_000_000, delay_s = 0.000_01 }
access = { rate_bps = 1_000_000_000, delay_s = 0.000_01 }
"""


@needs_switch
@pytest.mark.parametrize(("seed", "ip"), [(1, 4), (2, 4), (3, 6)])
def test_switches_choose_as_the_paths_say(tmp_path: Path, seed: int, ip: int) -> None:
    """Every port of every switch has received just the packets of the flows, there and back, whose paths enter by it: TCP segments and RTP with its RTCP."""
    draw = random.Random(seed)
    lines = [NETWORK.replace("SEED", str(seed)).replace("ip = 4", f"ip = {ip}")]
    for n in range(60):
        kind = ("tcp-sack", "cbr", "als")[n % 3]
        a, b = draw.sample(range(1, 17), 2)
        lines.append(f'[[flows]]\nname = "f{n}"\nkind = "{kind}"\nhosts = [["h{a}", "h{b}"]]\nstop_s = 0.3')
    lines.append("[tcp]\nfile_bytes = 20_000\n[cbr]\nrate_bps = 400_000\n[als]\n")
    file = tmp_path / "run.toml"
    file.write_text("\n".join(lines))
    experiment = loader.load(file)
    captures = tmp_path / "pcap"
    api.run_experiment(experiment, out=tmp_path / "out", pcap=captures)
    known: dict[tuple[FiveTuple, str], set[tuple[str, str]]] = {}
    for flow in experiment.flows:
        tuple_ = paths.five_tuple(experiment.topology, flow.kind, flow.sender, flow.receiver, flow.port_offset)
        for way, packets in ((paths.there(experiment, flow), tuple_), (paths.back(experiment, flow), tuple_.back)):
            for port in way:
                known.setdefault((packets, "there"), set()).add((port.node, port.peer))
    links = {words: ways for (one, _), ways in known.items() for words in [one.words]}
    seen: Counter[tuple[str, str]] = Counter()
    for capture in captures.iterdir():
        for packet in headers(capture):
            link = tuple(capture.stem.split("-"))
            assert link in links[packet.words], (packet, link)
            seen[link] += 1
    assert len(seen) > 60 and sum(seen.values()) > 5000
    # All four cores are on some way.
    assert {node for node, _ in seen if node.startswith("core")} == {f"core{i}" for i in range(1, 5)}


def headers(capture: Path) -> list[FiveTuple]:
    """Of the packets of a capture in pcap's format: fields of Ethernet, IP and TCP or UDP at their places."""
    data, at, found = capture.read_bytes(), 24, []
    while at < len(data):
        length = int.from_bytes(data[at + 8 : at + 12], "little")
        frame = data[at + 16 : at + 16 + length]
        at += 16 + length
        if frame[12:14] == bytes((8, 0)):
            transport, protocol = 14 + 4 * (frame[14] & 15), frame[23]
            source, destination = (str(IPv4Address(frame[i : i + 4])) for i in (26, 30))
        else:
            transport, protocol = 54, frame[20]
            source, destination = (str(IPv6Address(frame[i : i + 16])) for i in (22, 38))
            if protocol == 0:  # hop-by-hop options
                transport, protocol = transport + 8 * (1 + frame[55]), frame[54]
        ports = (int.from_bytes(frame[i : i + 2], "big") for i in (transport, transport + 2))
        found.append(FiveTuple(source, destination, protocol, *ports))
    return found


def test_hosts_of_one_switch_need_no_choice() -> None:
    topology = builders.fat_tree(4, LINK, LINK)
    for a, b in itertools.permutations(("h1", "h2"), 2):
        way: tuple[Port, ...] = addressing.path(topology, a, b)
        assert [p.node for p in way] == [a, "edge1_1"]


def test_with_a_control_plane_of_ones_own_one_way_is_the_default(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("")
    for more, network, routing in (
        ("", "", "ecmp"),
        ('[control]\nplane = "own.py"\n', "", "single"),
        ('[control]\nplane = "own.py"\n', 'routing = "ecmp"\n', "ecmp"),
    ):
        text = NETWORK.replace("SEED", "1").replace("k = 4\n", f"k = 4\n{network}")
        (tmp_path / "net.toml").write_text(f'{text}\n{more}[[flows]]\nname = "f"\nkind = "cbr"\n')
        assert loader.load(tmp_path / "net.toml").topology.routing == routing
    with pytest.raises(loader.ConfigError, match=r"net.toml:\d+: topology.routing: expected one of 'ecmp', 'single', got 'hash'"):
        (tmp_path / "net.toml").write_text(
            NETWORK.replace("SEED", "1").replace("k = 4\n", 'k = 4\nrouting = "hash"\n') + '[[flows]]\nname = "f"\nkind = "cbr"\n'
        )
        loader.load(tmp_path / "net.toml")
