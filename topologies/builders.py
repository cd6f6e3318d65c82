"""Networks from a few parameters: those of the papers, and those of data centres. Senders come first: h1, h2, ...; receivers follow."""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from fairlane.inputs import schema
from fairlane.schemes.base import Parameters
from fairlane.topologies.impairments import Gemodel
from fairlane.topologies.model import (
    MAX_HOSTS,
    MAX_HOSTS_OF_A_SWITCH,
    MAX_PORT,
    MAX_SWITCHES,
    OF_THE_TRACE,
    Back,
    Link,
    Node,
    Topology,
    TopologyError,
    queue_field,
    scheme_fields,
)
from fairlane.topologies.trace import Trace


@dataclass(frozen=True)
class LinkSpec:
    """What a kind of link is like; see `Link` for units and ranges."""

    rate_bps: float = OF_THE_TRACE
    delay_s: float = 0.0
    queue_packets: int = 1000
    schemes: tuple[Parameters, ...] = scheme_fields()
    queue: str | None = queue_field()
    loss: float = 0.0
    jitter_s: float = 0.0
    jitter_std_s: float = 0.0
    framing: Literal["ethernet", "ip"] = "ethernet"
    trace: Trace | None = None
    trace_back: Trace | None = None
    gemodel: Gemodel | None = field(default=None, metadata={schema.OPTIONAL: True})
    reorder: float = field(default=0.0, metadata={schema.OPTIONAL: True})
    reorder_delay_s: float = field(default=0.0, metadata={schema.OPTIONAL: True})
    duplicate: float = field(default=0.0, metadata={schema.OPTIONAL: True})
    corrupt: float = field(default=0.0, metadata={schema.OPTIONAL: True})
    back: Back | None = field(default=None, metadata={schema.OPTIONAL: True})

    def __post_init__(self) -> None:
        self.between("a", "b")  # the checks of Link

    def between(self, a: str, b: str) -> Link:
        return Link((a, b), **{field.name: getattr(self, field.name) for field in dataclasses.fields(self)})


def dumbbell(pairs: int, bottleneck: LinkSpec, access: LinkSpec) -> Topology:
    """`pairs` senders h1.. on s1, as many receivers on s2 (sender i talks to receiver i), one link between s1 and s2.

    The bottleneck is port 1 of both switches.
    """
    if not 1 <= pairs < MAX_PORT:
        raise TopologyError(f"pairs: a dumbbell has 1 to {MAX_PORT - 1} pairs of hosts, got {pairs}")
    senders = [f"h{i + 1}" for i in range(pairs)]
    receivers = [f"h{i + 1}" for i in range(pairs, 2 * pairs)]
    return Topology(
        nodes=(*(Node(h, "host") for h in senders + receivers), Node("s1", "switch"), Node("s2", "switch")),
        links=(bottleneck.between("s1", "s2"), *(access.between(h, "s1") for h in senders), *(access.between(h, "s2") for h in receivers)),
    )


def chain(paths: Sequence[tuple[int, int]], switches: int, trunk: LinkSpec, access: LinkSpec) -> Topology:
    """`switches` in a row, s1 to sN. Each path (i, j) has a sender on switch i and a receiver on switch j, counted from 1.

    The max-min topology of the ALS paper (figure 5) is five switches in a row.
    """
    if not 2 <= switches <= MAX_SWITCHES:
        raise TopologyError(f"switches: a chain has 2 to {MAX_SWITCHES}, got {switches}")
    for n, (start, end) in enumerate(paths):
        if not (1 <= start <= switches and 1 <= end <= switches and start != end):
            raise TopologyError(f"paths: path {n} from switch {start} to {end}: two different switches of 1 to {switches}")
    ends = Counter(end for path in paths for end in path)
    for switch, count in ends.items():
        if count > MAX_HOSTS_OF_A_SWITCH:
            raise TopologyError(f"paths: {count} paths begin or end at switch {switch}, which has at most {MAX_HOSTS_OF_A_SWITCH} hosts")
    names = [f"s{i + 1}" for i in range(switches)]
    hosts = [f"h{i + 1}" for i in range(2 * len(paths))]
    return Topology(
        nodes=(*(Node(h, "host") for h in hosts), *(Node(s, "switch") for s in names)),
        links=(
            *(trunk.between(a, b) for a, b in itertools.pairwise(names)),
            *(access.between(hosts[n], names[start - 1]) for n, (start, _) in enumerate(paths)),
            *(access.between(hosts[len(paths) + n], names[end - 1]) for n, (_, end) in enumerate(paths)),
        ),
    )


def tree(branches: Sequence[LinkSpec], hosts_per_leaf: int, access: LinkSpec) -> Topology:
    """A root s1 with host h1, and a leaf switch s2, s3, ... for each branch, with `hosts_per_leaf` hosts each."""
    if not branches:
        raise TopologyError("branches: a tree has at least one")
    if len(branches) >= MAX_PORT:
        raise TopologyError(f"branches: a tree has at most {MAX_PORT - 1}, got {len(branches)}")
    _check_hosts("hosts_per_leaf", hosts_per_leaf, MAX_PORT - 1, len(branches))
    leaves = [f"s{i + 2}" for i in range(len(branches))]
    hosts = [f"h{i + 1}" for i in range(1 + hosts_per_leaf * len(branches))]
    below = [(host, leaves[n // hosts_per_leaf]) for n, host in enumerate(hosts[1:])]
    return Topology(
        nodes=(*(Node(h, "host") for h in hosts), *(Node(s, "switch") for s in ("s1", *leaves))),
        links=(
            *(spec.between("s1", leaf) for spec, leaf in zip(branches, leaves)),
            access.between(hosts[0], "s1"),
            *(access.between(host, leaf) for host, leaf in below),
        ),
    )


def parking_lot(switches: int, trunk: LinkSpec, access: LinkSpec) -> Topology:
    """A `chain` in which one flow crosses all links, and one more flow crosses each link: h1 sends along the chain, and sender i + 1 from switch i to switch i + 1.

    Receivers follow in the order of the senders. It is the network of max-min shares: where all links have one rate, the long flow has half of it, as each short one.
    """
    if not 2 <= switches <= MAX_SWITCHES:
        raise TopologyError(f"switches: a parking lot has 2 to {MAX_SWITCHES}, got {switches}")
    return chain([(1, switches), *((i, i + 1) for i in range(1, switches))], switches, trunk, access)


def ring(switches: int, hosts_per_switch: int, trunk: LinkSpec, access: LinkSpec) -> Topology:
    """`switches` in a circle, s1 to sN, each with `hosts_per_switch` hosts: h1.. on s1, then those of s2, and so on. If N is even, opposite switches have two ways of
    equal cost. Port 1 of a switch leads onwards, port 2 back."""
    if not 3 <= switches <= MAX_SWITCHES:
        raise TopologyError(f"switches: a ring has 3 to {MAX_SWITCHES}, got {switches}")
    _check_hosts("hosts_per_switch", hosts_per_switch, MAX_HOSTS_OF_A_SWITCH - 2, switches)
    names = [f"s{i + 1}" for i in range(switches)]
    return Topology(
        nodes=(*_hosts(switches * hosts_per_switch), *(Node(s, "switch") for s in names)),
        links=(
            *(trunk.between(f"{a}:1", f"{b}:2") for a, b in itertools.pairwise([*names, names[0]])),
            *(access.between(f"h{n + 1}", names[n // hosts_per_switch]) for n in range(switches * hosts_per_switch)),
        ),
    )


def leaf_spine(leaves: int, spines: int, hosts_per_leaf: int, trunk: LinkSpec, access: LinkSpec) -> Topology:
    """Each of the switches leaf1.. is linked to each of the switches spine1..: its port i to spine i. Hosts h1.. are on leaf1, the next on leaf2, and so on.

    Between hosts of two leaves there are as many ways of equal cost as spines.
    """
    if not 1 <= leaves <= MAX_PORT:
        raise TopologyError(f"leaves: 1 to {MAX_PORT}, as many as a spine has ports, got {leaves}")
    if not 1 <= spines < MAX_PORT:
        raise TopologyError(f"spines: 1 to {MAX_PORT - 1}, because a leaf has {MAX_PORT} ports, got {spines}")
    _check_hosts("hosts_per_leaf", hosts_per_leaf, MAX_PORT - spines, leaves)
    leaf_names, spine_names = [f"leaf{i + 1}" for i in range(leaves)], [f"spine{i + 1}" for i in range(spines)]
    return Topology(
        nodes=(*_hosts(leaves * hosts_per_leaf), *(Node(s, "switch") for s in leaf_names + spine_names)),
        links=(
            *(trunk.between(leaf, spine) for leaf in leaf_names for spine in spine_names),
            *(access.between(f"h{n + 1}", leaf_names[n // hosts_per_leaf]) for n in range(leaves * hosts_per_leaf)),
        ),
    )


def fat_tree(k: int, trunk: LinkSpec, access: LinkSpec, core: LinkSpec | None = None) -> Topology:
    """The fat tree of k-port switches of Al-Fares, Loukissas and Vahdat (SIGCOMM 2008, section 3): k pods, each of k/2 edge switches edge1_1.. (pod and place) and
    k/2 aggregation switches agg1_1.., and (k/2)^2 core switches core1..; k^3/4 hosts, k/2 on each edge switch, h1.. on edge1_1.

    Aggregation switch j of each pod is linked to the cores (j - 1) k/2 + 1 to j k/2. trunk: links in a pod. core: those to the cores; None: as `trunk`.
    """
    if k % 2 or not 2 <= k <= MAX_FAT_TREE:
        raise TopologyError(f"k: an even number of ports, 2 to {MAX_FAT_TREE}, got {k}")
    half, core = k // 2, core or trunk
    pods, places = range(1, k + 1), range(1, half + 1)
    cores = [f"core{i + 1}" for i in range(half * half)]
    edges = [f"edge{pod}_{i}" for pod in pods for i in places]
    return Topology(
        nodes=(
            *_hosts(k * half * half),
            *(Node(s, "switch") for s in edges),
            *(Node(f"agg{pod}_{j}", "switch") for pod in pods for j in places),
            *(Node(s, "switch") for s in cores),
        ),
        links=(
            *(trunk.between(f"edge{pod}_{i}", f"agg{pod}_{j}") for pod in pods for i in places for j in places),
            *(core.between(f"agg{pod}_{j}", cores[(j - 1) * half + i - 1]) for pod in pods for j in places for i in places),
            *(access.between(f"h{n + 1}", edges[n // half]) for n in range(k * half * half)),
        ),
    )


MAX_FAT_TREE = 48
"""Ports of a switch: 27,648 hosts and 2,880 switches."""


def _hosts(count: int) -> list[Node]:
    return [Node(f"h{i + 1}", "host") for i in range(count)]


def _check_hosts(key: str, count: int, most: int, switches: int) -> None:
    """count: of the hosts on each of so many switches."""
    if not 1 <= count <= most:
        raise TopologyError(f"{key}: 1 to {most}, because a switch has {MAX_PORT} ports, got {count}")
    if count * switches > MAX_HOSTS:
        raise TopologyError(f"{key}: {count} on each of {switches} switches: a network has at most {MAX_HOSTS} hosts")
