"""The networks of the papers, from a few parameters. Senders come first: h1, h2, ...; receivers follow."""

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
    MAX_HOSTS_OF_A_SWITCH,
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
    gemodel: Gemodel | None = field(default=None, metadata=schema.SELDOM)
    reorder: float = field(default=0.0, metadata=schema.SELDOM)
    reorder_delay_s: float = field(default=0.0, metadata=schema.SELDOM)
    duplicate: float = field(default=0.0, metadata=schema.SELDOM)
    corrupt: float = field(default=0.0, metadata=schema.SELDOM)
    back: Back | None = field(default=None, metadata=schema.SELDOM)

    def __post_init__(self) -> None:
        self.between("a", "b")  # the checks of Link

    def between(self, a: str, b: str) -> Link:
        return Link((a, b), **{field.name: getattr(self, field.name) for field in dataclasses.fields(self)})


def dumbbell(pairs: int, bottleneck: LinkSpec, access: LinkSpec) -> Topology:
    """`pairs` senders h1.. on s1, as many receivers on s2 (sender i talks to receiver i), one link between s1 and s2.

    The bottleneck is port 1 of both switches.
    """
    if not 1 <= pairs <= 250:
        raise TopologyError(f"pairs: a dumbbell has 1 to 250 pairs of hosts, got {pairs}")
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
    if len(branches) >= MAX_SWITCHES:
        raise TopologyError(f"branches: a tree has at most {MAX_SWITCHES - 1}, got {len(branches)}")
    if not 1 <= hosts_per_leaf <= MAX_HOSTS_OF_A_SWITCH:
        raise TopologyError(f"hosts_per_leaf: 1 to {MAX_HOSTS_OF_A_SWITCH}, got {hosts_per_leaf}")
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
