"""Topologies from TOML: one of the papers' kinds by its numbers, or a graph of nodes and links.

kind = "dumbbell"                    kind = "graph"
pairs = 10                           [[nodes]]
[bottleneck]                         name = "s1"
rate_bps = 10_000_000                kind = "switch"
delay_s = 0.005                      [[links]]
[access]                             ends = ["h1", "s1:2"]
rate_bps = 100_000_000               rate_bps = 10_000_000
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from fairlane.inputs import located_toml, schema
from fairlane.inputs.located_toml import Document, KeyPath
from fairlane.topologies import builders, graphml
from fairlane.topologies.builders import LinkSpec
from fairlane.topologies.graphml import Graph
from fairlane.topologies.model import Link, Node, Topology, TopologyError


@dataclass(frozen=True)
class _Dumbbell:
    kind: str
    pairs: int
    bottleneck: LinkSpec
    access: LinkSpec

    def topology(self) -> Topology:
        return builders.dumbbell(self.pairs, self.bottleneck, self.access)


@dataclass(frozen=True)
class _Chain:
    kind: str
    switches: int
    paths: tuple[tuple[int, int], ...]
    trunk: LinkSpec
    access: LinkSpec

    def topology(self) -> Topology:
        return builders.chain(self.paths, self.switches, self.trunk, self.access)


@dataclass(frozen=True)
class _Tree:
    kind: str
    branches: tuple[LinkSpec, ...]
    hosts_per_leaf: int
    access: LinkSpec

    def topology(self) -> Topology:
        return builders.tree(self.branches, self.hosts_per_leaf, self.access)


@dataclass(frozen=True)
class _LeafSpine:
    kind: str
    leaves: int
    spines: int
    hosts_per_leaf: int
    trunk: LinkSpec
    access: LinkSpec

    def topology(self) -> Topology:
        return builders.leaf_spine(self.leaves, self.spines, self.hosts_per_leaf, self.trunk, self.access)


@dataclass(frozen=True)
class _FatTree:
    kind: str
    k: int
    trunk: LinkSpec
    access: LinkSpec
    core: LinkSpec | None = None

    def topology(self) -> Topology:
        return builders.fat_tree(self.k, self.trunk, self.access, self.core)


@dataclass(frozen=True)
class _Ring:
    kind: str
    switches: int
    hosts_per_switch: int
    trunk: LinkSpec
    access: LinkSpec

    def topology(self) -> Topology:
        return builders.ring(self.switches, self.hosts_per_switch, self.trunk, self.access)


@dataclass(frozen=True)
class _ParkingLot:
    kind: str
    switches: int
    trunk: LinkSpec
    access: LinkSpec

    def topology(self) -> Topology:
        return builders.parking_lot(self.switches, self.trunk, self.access)


@dataclass(frozen=True)
class _GraphMl:
    kind: str
    graphml: Graph
    trunk: LinkSpec
    access: LinkSpec
    hosts_per_switch: int = 1
    speed_scale: float = 1.0

    def topology(self) -> Topology:
        return graphml.wan(self.graphml, self.hosts_per_switch, self.trunk, self.access, self.speed_scale)


@dataclass(frozen=True)
class _Graph:
    kind: str
    nodes: tuple[Node, ...]
    links: tuple[Link, ...]

    def topology(self) -> Topology:
        return Topology(self.nodes, self.links)


_KINDS = {
    "dumbbell": _Dumbbell,
    "chain": _Chain,
    "parking-lot": _ParkingLot,
    "tree": _Tree,
    "ring": _Ring,
    "leaf-spine": _LeafSpine,
    "fat-tree": _FatTree,
    "graphml": _GraphMl,
    "graph": _Graph,
}


def load(path: Path) -> Topology:
    """A topology file; ConfigError names file, line and key."""
    return from_document(located_toml.read(path))


def from_document(document: Document, path: KeyPath = ()) -> Topology:
    """The topology that the table at `path` describes."""
    table: Any = document.values
    for part in path:
        table = table[part]
    if not isinstance(table, dict):
        raise document.error(path, "expected a table")
    if "kind" not in table:
        raise document.error(path, "missing key 'kind'")
    routing: Literal["ecmp", "single"] = "ecmp"
    if "routing" in table:
        routing = schema.convert(Literal["ecmp", "single"], document, path + ("routing",))
    ip: Literal[4, 6] = schema.convert(Literal[4, 6], document, path + ("ip",)) if "ip" in table else 4
    if not isinstance(table["kind"], str) or table["kind"] not in _KINDS:
        raise document.error(path + ("kind",), f"unknown kind {table['kind']!r}{schema.nearest(str(table['kind']), _KINDS)}")
    described: Any = schema.build(_KINDS[table["kind"]], document, path, others=("routing", "ip"))
    try:
        topology: Topology = described.topology()
        if (routing, ip) != (topology.routing, topology.ip):
            topology = dataclasses.replace(topology, routing=routing, ip=ip)
    except TopologyError as error:
        first, _, rest = str(error).partition(": ")
        where = error.where or ((first,) if rest and first in table else ())
        raise document.error(path + where, rest if where == (first,) else str(error)) from error
    return topology
