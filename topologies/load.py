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

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairlane.inputs import located_toml, schema
from fairlane.inputs.located_toml import Document, KeyPath
from fairlane.topologies import builders
from fairlane.topologies.builders import LinkSpec
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
class _Graph:
    kind: str
    nodes: tuple[Node, ...]
    links: tuple[Link, ...]

    def topology(self) -> Topology:
        return Topology(self.nodes, self.links)


_KINDS = {"dumbbell": _Dumbbell, "chain": _Chain, "tree": _Tree, "graph": _Graph}


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
    if not isinstance(table["kind"], str) or table["kind"] not in _KINDS:
        raise document.error(path + ("kind",), f"unknown kind {table['kind']!r}{schema.nearest(str(table['kind']), _KINDS)}")
    described: Any = schema.build(_KINDS[table["kind"]], document, path)
    try:
        topology: Topology = described.topology()
    except TopologyError as error:
        first, _, rest = str(error).partition(": ")
        where = error.where or ((first,) if rest and first in table else ())
        raise document.error(path + where, rest if where == (first,) else str(error)) from error
    return topology
