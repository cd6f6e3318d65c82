"""Wide-area networks from GraphML, as the Internet Topology Zoo has them (Knight et al., "The Internet Topology Zoo", IEEE JSAC 29(9), 2011).

A node of the file is a switch with hosts, an edge a link. Of nodes: `label` names the switch, `Latitude` and `Longitude` are in degrees. Of edges: `LinkSpeedRaw` is in
bit/s. All may be missing. Delay: the length of the great circle, on a sphere of the Earth's mean radius, at the speed of light in glass:

    a = sin^2((lat2 - lat1) / 2) + cos(lat1) cos(lat2) sin^2((lon2 - lon1) / 2)
    delay = 2 R asin(sqrt(a)) n / c,   R = 6371.0088 km, n = 1.468, c = 299792.458 km/s

in whole microseconds, each of which is 204 m.
"""

from __future__ import annotations

import math
import re
import unicodedata
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from fairlane.arithmetic import asin, cos, sin, square
from fairlane.inputs.located_toml import Document, KeyPath
from fairlane.topologies.builders import LinkSpec
from fairlane.topologies.model import MAX_HOSTS, MAX_PORT, MAX_SWITCHES, Link, Node, Topology, TopologyError

KEY = "graphml"
"""Of a topology: the file."""
EARTH_KM, GLASS, LIGHT_KM_S = 6371.0088, 1.468, 299792.458
_MOST_BYTES = 32_000_000


class GraphError(ValueError):
    """A file that is no GraphML; the message names the file, and the node or edge."""


@dataclass(frozen=True)
class Place:
    """A node. name: made of its label, for a switch. Degrees are None where the file has none."""

    name: str
    latitude: float | None = None
    longitude: float | None = None


@dataclass(frozen=True)
class Edge:
    """Between two nodes, by their places in the list. speed_bps: None where the file has none."""

    ends: tuple[int, int]
    speed_bps: float | None = None


@dataclass(frozen=True)
class Graph:
    """What a file says."""

    places: tuple[Place, ...]
    edges: tuple[Edge, ...]

    @staticmethod
    def from_document(document: Document, path: KeyPath) -> Graph:
        """The graph of the file that the value at `path` names."""
        try:
            return read(file_of(document, path))
        except GraphError as error:
            raise document.error(path, str(error)) from error


def file_of(document: Document, path: KeyPath) -> Path:
    """The file that the value at `path` names, beside the document's. ConfigError: there is none."""
    value = document.at(path)
    if not isinstance(value, str) or not value:
        raise document.error(path, f"expected a file's name, got {value!r}")
    file = Path(document.place(path)[0]).parent / value
    if not file.is_file():
        raise document.error(path, f"no file {file}; topology-zoo.org has some hundred networks as GraphML")
    return file


def read(path: Path) -> Graph:
    """GraphError: the file cannot be read, or is no GraphML."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise GraphError(f"{path}: more than {_MOST_BYTES / 1e6:g} MB")
        return parse(path.read_bytes(), str(path))
    except OSError as error:
        raise GraphError(f"{path}: {error.strerror}") from error


def parse(data: bytes, file: str) -> Graph:
    """The text of a file; `file` is for messages."""
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        raise GraphError(f"{file}: GraphML has no document type or entities: leave them out")
    try:
        root = ElementTree.fromstring(data)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise GraphError(f"{file}: no XML: {error}") from error
    graph = next((one for one in root if _tag(one) == "graph"), None)
    if _tag(root) != "graphml" or graph is None:
        raise GraphError(f"{file}: no GraphML: expected <graphml> with a <graph>")
    names = {one.get("id"): (one.get("for", "all"), one.get("attr.name", "")) for one in root if _tag(one) == "key"}
    numbers: dict[str, int] = {}
    places: list[Place] = []
    taken: set[str] = set()
    for one in graph:
        if _tag(one) == "node":
            name = one.get("id")
            if name is None or name in numbers:
                raise GraphError(f"{file}: node {len(places) + 1}: {'no id' if name is None else f'a second node has the id {name!r}'}")
            numbers[name] = len(places)
            values = _data(one, names)
            where = f"{file}: node {name!r}"
            at = (_number(values, "Latitude", where, 90), _number(values, "Longitude", where, 180))
            places.append(Place(_name(values.get("label") or name, taken), *at))
    edges = []
    for one in graph:
        if _tag(one) == "edge":
            ends = one.get("source"), one.get("target")
            where = f"{file}: edge {ends[0]!r} - {ends[1]!r}"
            if ends[0] not in numbers or ends[1] not in numbers:
                raise GraphError(f"{where}: no such node")
            if ends[0] == ends[1]:
                raise GraphError(f"{where}: it loops back to the same node: take it out")
            speed_bps = _number(_data(one, names), "LinkSpeedRaw", where, math.inf)
            if speed_bps is not None and speed_bps <= 0:
                raise GraphError(f"{where}: LinkSpeedRaw is {speed_bps:g} bit/s: give a positive rate, or none")
            edges.append(Edge((numbers[ends[0]], numbers[ends[1]]), speed_bps))
    if not places:
        raise GraphError(f"{file}: a graph without nodes")
    return Graph(tuple(places), tuple(edges))


def wan(graph: Graph, hosts_per_switch: int, trunk: LinkSpec, access: LinkSpec, speed_scale: float = 1.0) -> Topology:
    """Each node of the graph as a switch with `hosts_per_switch` hosts: h1.. on the first, and so on. trunk: of its links; their rate and delay hold where the graph has no
    speed, or a node no coordinates. speed_scale: factor of the graph's speeds, so that a network of 10 Gb/s can be simulated at less."""
    if not len(graph.places) <= MAX_SWITCHES:
        raise TopologyError(f"{KEY}: {len(graph.places)} nodes: a network has at most {MAX_SWITCHES} switches")
    if not 1 <= hosts_per_switch <= MAX_PORT or hosts_per_switch * len(graph.places) > MAX_HOSTS:
        raise TopologyError(f"hosts_per_switch: 1 to {min(MAX_PORT, MAX_HOSTS // len(graph.places))}, got {hosts_per_switch}")
    if not 0 < speed_scale < math.inf:
        raise TopologyError(f"speed_scale: must be positive, got {speed_scale:g}")
    links = []
    for edge in graph.edges:
        a, b = (graph.places[end] for end in edge.ends)
        try:
            links.append(_link(a, b, edge, trunk, speed_scale))
        except ValueError as error:
            raise TopologyError(f"{KEY}: the link {a.name} - {b.name}: {error}") from error
    hosts = [f"h{n + 1}" for n in range(hosts_per_switch * len(graph.places))]
    return Topology(
        nodes=(*(Node(h, "host") for h in hosts), *(Node(place.name, "switch") for place in graph.places)),
        links=(*links, *(access.between(h, graph.places[n // hosts_per_switch].name) for n, h in enumerate(hosts))),
    )


def _link(a: Place, b: Place, edge: Edge, trunk: LinkSpec, speed_scale: float) -> Link:
    rate_bps = trunk.rate_bps if edge.speed_bps is None else edge.speed_bps * speed_scale
    delay_s = delay_between_s(a, b)
    return replace(trunk, rate_bps=rate_bps, delay_s=trunk.delay_s if delay_s is None else delay_s).between(a.name, b.name)


def delay_between_s(a: Place, b: Place) -> float | None:
    """Of light in glass along the great circle; None where a place has no coordinates."""
    if a.latitude is None or a.longitude is None or b.latitude is None or b.longitude is None:
        return None
    lat1, lat2 = math.radians(a.latitude), math.radians(b.latitude)
    part = square(sin((lat2 - lat1) / 2))
    part += cos(lat1) * cos(lat2) * square(sin(math.radians(b.longitude - a.longitude) / 2))
    return round(2 * EARTH_KM * asin(min(1.0, math.sqrt(part))) * GLASS / LIGHT_KM_S * 1e6) / 1e6


def _tag(element: ElementTree.Element) -> str:
    return str(element.tag).rpartition("}")[2]


def _data(element: ElementTree.Element, names: Mapping[str | None, tuple[str, str]]) -> dict[str, str]:
    """The values of a node or edge, by names."""
    kind = _tag(element)
    found = {}
    for one in element:
        what, name = names.get(one.get("key"), ("", ""))
        if _tag(one) == "data" and what in (kind, "all") and name:
            found[name] = (one.text or "").strip()
    return found


def _number(values: Mapping[str, str], name: str, where: str, most: float) -> float | None:
    if not values.get(name):
        return None
    try:
        value = float(values[name])
    except ValueError:
        raise GraphError(f"{where}: {name} is {values[name]!r}, which is no number") from None
    if not abs(value) <= most or math.isinf(value):
        raise GraphError(f"{where}: {name} is {value:g}, which is out of range")
    return value


def _name(label: str, taken: set[str]) -> str:
    """A switch's name: letters without accents, digits, `_` and `-`."""
    plain = unicodedata.normalize("NFKD", label).encode("ascii", "ignore").decode()
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", plain).strip("_") or "n"
    name = name if name[0].isalpha() else f"n{name}"
    if re.fullmatch(r"h[0-9]+", name):  # as hosts are called
        name = f"n_{name}"
    unique, n = name, 2
    while unique in taken:
        unique, n = f"{name}_{n}", n + 1
    taken.add(unique)
    return unique
