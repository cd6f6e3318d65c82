"""The networks of experiments without a file (`fairlane.ad_hoc`): `[topology]` of each, its report's link, and the hosts of its flows."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from fairlane.errors import Refusal
from fairlane.inputs import located_toml, toml_text
from fairlane.topologies import addressing
from fairlane.topologies import load as topology_load
from fairlane.topologies.model import Topology

TOPOLOGIES = {
    "dumbbell": "senders on one switch, receivers on another, one link between them: the bottleneck",
    "chain": "switches in a row (--switches, default 3); every flow crosses all links between them",
    "tree": "a sender on the root, receivers on leaf switches (--switches, default 3); one bottleneck to each leaf",
    "parking-lot": "switches in a row (--switches, default 3); one flow crosses all links, the next ones a link each",
    "ring": "switches in a circle (--switches, default 4); flows from the first half of the hosts to the second",
    "leaf-spine": "leaves (--switches, default 2), each linked to two spines (--set topology.spines=4); flows from the first half of the leaves to the second",
    "fat-tree": "k-port switches in k pods (--set topology.k=8, default 4); flows from the first half of the pods to the second",
}
GRAPHML = ".graphml"
_SWITCHES = {"chain": 3, "tree": 3, "parking-lot": 3, "ring": 4, "leaf-spine": 2}
"""The default of --switches, where a topology takes it."""


def describes(name: str) -> bool:
    """Whether a name on the command line is one of a network, with options for the rest."""
    return name in TOPOLOGIES or name.endswith(GRAPHML)


@dataclass(frozen=True)
class Place:
    """What a network says beside `[topology]`. bottleneck: the link that the report follows. links: between switches, on the longest way of a flow. hosts: of the flows,
    in their order; None: the network's own pairs."""

    bottleneck: str
    links: int
    hosts: list[list[str]] | None = None


def switches_of(kind: str, asked: int | None) -> int:
    """The number of --switches; asked: None where it was not given. Refusal: this network takes none."""
    if asked is not None and kind not in _SWITCHES:
        why = {
            "dumbbell": "a dumbbell always has two switches",
            "fat-tree": "a fat tree has those of k ports: --set topology.k=8",
        }.get(kind, f"{kind} says what it has")
        raise Refusal(f"--switches: {why}; only {', '.join(_SWITCHES)} take a number.")
    return asked or _SWITCHES.get(kind, 2)


def table(kind: str, flows: int, switches: int, trunk: Mapping[str, Any], access: Mapping[str, Any], beside: Path) -> dict[str, Any]:
    """The keys of `[topology]` for so many flows. beside: the folder of the file that is to have them."""
    # Half of the hosts send.
    hosts = -(-2 * flows // switches)
    own: dict[str, Any] = {
        "dumbbell": {"pairs": flows, "bottleneck": trunk},
        "chain": {"switches": switches, "paths": [[1, switches]] * flows, "trunk": trunk},
        "tree": {"branches": [trunk] * switches, "hosts_per_leaf": -(-flows // switches)},
        "parking-lot": {"switches": switches, "trunk": trunk},
        "ring": {"switches": switches, "hosts_per_switch": hosts, "trunk": trunk},
        "leaf-spine": {"leaves": switches, "spines": 2, "hosts_per_leaf": hosts, "trunk": trunk},
        "fat-tree": {"k": 4, "trunk": trunk},
    }.get(kind, {"graphml": Path(os.path.relpath(kind, beside)).as_posix(), "trunk": trunk})
    return {"kind": kind if kind in TOPOLOGIES else "graphml", **own, "access": access}


def with_settings(table: Mapping[str, Any], given: Mapping[tuple[str, ...], Any]) -> dict[str, Any]:
    """The same with the values of `--set topology.KEY=VALUE` and `--set topology.LINK.KEY=VALUE`, by their keys."""
    changed = dict(table)
    for (key, *inner), value in given.items():
        if not inner:
            changed[key] = value
        elif isinstance(changed.get(key), Mapping):
            changed[key] = {**changed[key], inner[0]: value}
        else:
            links = ", ".join(name for name, link in changed.items() if isinstance(link, Mapping))
            raise Refusal(
                f"--set topology.{key}.{inner[0]}: {changed['kind']} has the links {links} on the command line; --save writes a file to change"
            )
    return changed


def place(kind: str, table: Mapping[str, Any], flows: int, switches: int, beside: Path) -> Place:
    """What follows from `[topology]`. beside: as of `table`. ConfigError: the network cannot be."""
    if kind in ("dumbbell", "tree"):
        return Place("s1->s2", 1, _of_leaves(flows, switches) if kind == "tree" else None)
    if kind == "chain":
        return Place("s1->s2", switches - 1)
    lines = ["[topology]", *(f"{key} = {toml_text.value(value)}" for key, value in table.items())]
    document = located_toml.parse("\n".join(lines), str(beside / f"{Path(kind).name} as --save writes it"))
    topology = topology_load.from_document(document, ("topology",))
    machines, half = topology.machines, len(topology.machines) // 2
    pairs = [[a, b] for a, b in zip(machines[:half], machines[half:]) if _edge(topology, a) != _edge(topology, b)]
    if not pairs:
        raise Refusal(
            f"{kind}: no link between switches is on the way from the first half of its hosts to the second: give it more switches"
        )
    first, last = (_edge(topology, host) for host in pairs[0])
    onward = addressing.next_ports(topology, first, last)[0]
    links = max(len(addressing.path(topology, a, b)) for a, b in pairs) - 2
    return Place(f"{first}->{onward.peer}", links, list(islice(cycle(pairs), flows)))


def _edge(topology: Topology, host: str) -> str:
    return topology.ports()[host][0].peer


def _of_leaves(flows: int, switches: int) -> list[list[str]]:
    """From the root around the leaves in turn, so that each kind is on all of them."""
    per_leaf = -(-flows // switches)
    return [["h1", f"h{2 + leaf * per_leaf + n}"] for n in range(per_leaf) for leaf in range(switches)]
