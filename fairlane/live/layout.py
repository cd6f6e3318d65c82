"""The positions of nodes in the picture of a network: switches in columns by their distance from the first sender, hosts around them."""

from __future__ import annotations

from collections import deque
from typing import Any

from fairlane.experiments.model import Experiment
from fairlane.topologies.model import Topology


def layout(experiment: Experiment) -> dict[str, Any]:
    """nodes: [{name, kind, x, y}] in units of a grid, links: [{ends, ports}]; width and height of all."""
    topology = experiment.topology
    depth = _depths(topology, topology.ports()[experiment.flows[0].sender][0].peer)
    columns: dict[int, list[str]] = {}
    for name in topology.switches:
        columns.setdefault(depth[name], []).append(name)
    last = max(columns)
    hosts = {s: [p.peer for p in topology.ports()[s] if p.peer not in depth] for s in topology.switches}
    left, right, around = _sides(hosts, columns, last, {f.sender for f in experiment.flows})
    tallest = max([len(left), len(right), *(len(c) for c in columns.values()), 2])
    places: dict[str, tuple[float, float]] = {}
    # A host's column is as high as the picture; between hosts and switches there is a line.
    for x, names in ((0.0, left), (last + 2.0, right)):
        for i, name in enumerate(names):
            places[name] = (x, _spread(i, len(names)))
    for column, names in columns.items():
        for i, name in enumerate(names):
            behind = [places[h][1] for h in hosts[name] if h in places]
            y = sum(behind) / len(behind) if behind and len(names) > 1 else _spread(i, len(names))
            places[name] = (column + 1.0, y)
    for switch, names in around.items():
        x, y = places[switch]
        for i, name in enumerate(names):
            above = i % 2 == 0
            n, of = i // 2, (len(names) + (1 if above else 0)) // 2
            places[name] = (x + (0.0 if of < 2 else 0.7 * (_spread(n, of) - 0.5)), y - 0.38 if above else y + 0.38)
    shown = [*((n.name, n.kind) for n in topology.nodes), *((name, "host") for name in topology.hosts[len(topology.machines) :])]
    nodes = [{"name": name, "kind": kind, "x": round(places[name][0], 4), "y": round(places[name][1], 4)} for name, kind in shown]
    return {"nodes": nodes, "links": _links(topology), "columns": last + 2, "rows": tallest}


def _links(topology: Topology) -> list[dict[str, Any]]:
    ports = topology.ports()
    found: dict[int, dict[str, Any]] = {}
    for name in topology.switches:
        for port in ports[name]:
            if port.link_index not in found:
                found[port.link_index] = {
                    "from": name,
                    "to": port.peer,
                    "port": f"{name}:{port.number}",
                    "back": f"{port.peer}:{port.peer_port}" if port.peer in topology.switches else None,
                }
    return list(found.values())


def _depths(topology: Topology, first: str) -> dict[str, int]:
    switches = set(topology.switches)
    depth, todo = {first: 0}, deque([first])
    while todo:
        node = todo.popleft()
        for port in topology.ports()[node]:
            if port.peer in switches and port.peer not in depth:
                depth[port.peer] = depth[node] + 1
                todo.append(port.peer)
    return depth


def _sides(
    hosts: dict[str, list[str]], columns: dict[int, list[str]], last: int, senders: set[str]
) -> tuple[list[str], list[str], dict[str, list[str]]]:
    """Hosts at the left end, at the right end, and those around the switches between."""
    if last == 0:
        here = [h for s in columns[0] for h in hosts[s]]
        return [h for h in here if h in senders], [h for h in here if h not in senders], {}
    around = {s: hosts[s] for column, names in columns.items() if 0 < column < last for s in names if hosts[s]}
    return [h for s in columns[0] for h in hosts[s]], [h for s in columns[last] for h in hosts[s]], around


def _spread(index: int, count: int) -> float:
    return (index + 0.5) / count
