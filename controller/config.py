"""The controller's configuration: the program, its switches, their ports and routes. A JSON file, checked before use."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

from fairlane.inputs import schema
from fairlane.schemes import registry
from fairlane.topologies.model import MAX_PORT


class ConfigError(ValueError):
    """A configuration that cannot be used; the message names file and key."""


@dataclass(frozen=True)
class Port:
    """An output port. rate_bps: b of the fair rate and of utilisation. schemes: each under its name in the file; without one, only the full queue drops.
    als: whether the port writes its fair rate into senders' control packets. peer, peer_port: the switch at the link's other end and
    its port; "" towards hosts. multicast_router: packets to every group go there, with or without members [RFC 4541 sec 2.1.2], as they
    do on a sender's own link."""

    number: int
    rate_bps: int
    schemes: tuple[Any, ...] = dataclasses.field(default=(), metadata={schema.TABLES: registry.settings})
    als: bool = True
    peer: str = ""
    peer_port: int = 0
    multicast_router: bool = False


@dataclass(frozen=True, slots=True)
class Hop:
    """A port, with the Ethernet addresses that the frame gets ("02:00:00:00:00:01")."""

    port: int
    src_mac: str
    dst_mac: str


@dataclass(frozen=True, slots=True)
class Route:
    """IPv4 or IPv6 prefix -> port, with the Ethernet addresses that the frame gets ("02:00:00:00:00:01"). others: further ports of equal cost, over which flows are spread."""

    prefix: str
    port: int
    src_mac: str
    dst_mac: str
    others: tuple[Hop, ...] = dataclasses.field(default=(), metadata={schema.OPTIONAL: True})

    @property
    def hops(self) -> tuple[Hop, ...]:
        """All of them, by port."""
        return tuple(sorted((Hop(self.port, self.src_mac, self.dst_mac), *self.others), key=lambda hop: hop.port))


@dataclass(frozen=True)
class Source:
    """A host's IP address, and a port where its packets come in."""

    address: str
    port: int


@dataclass(frozen=True)
class Igmp:
    """How the switch learns group members. query_interval_s: between general queries; 0: sends none, and a membership lasts until its
    leave. query_response_s: hosts answer within this time, 0.1 to 25.5. robustness: number of successive queries that may be lost.
    max_groups_per_port: the controller refuses further joins, so that no host can fill the switches' tables."""

    query_interval_s: float = 0.0
    query_response_s: float = 10.0
    robustness: int = 2
    max_groups_per_port: int = 64

    def __post_init__(self) -> None:
        if not 0.1 <= self.query_response_s <= 25.5:
            raise ValueError(f"query_response_s: must be in 0.1 to 25.5, got {self.query_response_s:g} s")
        if not (self.query_interval_s == 0 or self.query_response_s < self.query_interval_s < float("inf")):
            raise ValueError(
                f"query_interval_s: 0 or more than query_response_s ({self.query_response_s:g} s), got {self.query_interval_s:g} s"
            )
        for name in ("robustness", "max_groups_per_port"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}: at least 1, got {getattr(self, name)}")

    @property
    def membership_interval_s(self) -> float:
        """[RFC 2236 sec 8.4]: how long a membership outlives its last report."""
        return self.robustness * self.query_interval_s + self.query_response_s


@dataclass(frozen=True)
class Tls:
    """Files in PEM. ca: of the authority that signed the switches' certificates. certificate, key: of this controller, for switches that
    check it; "" means none."""

    ca: str
    certificate: str = ""
    key: str = ""

    def __post_init__(self) -> None:
        if bool(self.certificate) != bool(self.key):
            raise ValueError(f"{'key' if self.certificate else 'certificate'}: missing: give certificate and key together")


@dataclass(frozen=True)
class Switch:
    name: str
    device_id: int
    address: str
    ports: tuple[Port, ...]
    routes: tuple[Route, ...] = ()
    sources: tuple[Source, ...] = ()
    """For schemes with `of_source`, such as the guard of sources."""
    seed: int = dataclasses.field(default=0, metadata={schema.OPTIONAL: True})
    """Of its choice among ports of equal cost, 64 bits."""


@dataclass(frozen=True)
class Config:
    """utilisation_target: U_l, 0.9 in the ALS paper. interval_s: observation interval, 1 s there.
    grace_s: how long after an interval's end its digests may arrive. election_id: of this controller. tls: None means no TLS."""

    p4info: str
    bmv2_json: str
    switches: tuple[Switch, ...]
    utilisation_target: float = 0.9
    interval_s: float = 1.0
    grace_s: float = 0.05
    election_id: int = 1
    igmp: Igmp = Igmp()
    tls: Tls | None = None


def read(path: Path) -> Config:
    """Read and check a configuration file; ConfigError names the file and the key at fault."""
    try:
        raw = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from error
    try:
        config = _placed(parse(raw), Path(path).parent)
        if config.tls is not None:
            _check_readable(config.tls)
        return config
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error


def _placed(config: Config, folder: Path) -> Config:
    """Its program's files are named from the folder of the configuration."""
    return dataclasses.replace(config, p4info=str(folder / config.p4info), bmv2_json=str(folder / config.bmv2_json))


def _check_readable(tls: Tls) -> None:
    """Before anything is started: later it would be one switch that does not answer."""
    for key in ("ca", "certificate", "key"):
        name = getattr(tls, key)
        try:
            if name:
                Path(name).read_bytes()
        except OSError as error:
            raise ConfigError(f"tls.{key}: {name}: {error.strerror}") from error


def parse(raw: Any) -> Config:
    config: Config = _build(Config, raw, "")
    if not config.switches:
        raise ConfigError("switches: at least one is needed")
    if not 0 < config.utilisation_target <= 1:
        raise ConfigError(f"utilisation_target: must be in (0, 1], got {config.utilisation_target}")
    if not 0 < config.grace_s < config.interval_s:
        raise ConfigError(f"grace_s: must be above 0 and below interval_s, got {config.grace_s}")
    _unique([s.name for s in config.switches], "switches", "name")
    _unique([s.address for s in config.switches], "switches", "address")
    for i, switch in enumerate(config.switches):
        where = f"switches[{i}]"
        _unique([p.number for p in switch.ports], f"{where}.ports", "number")
        known = {p.number for p in switch.ports}
        for j, port in enumerate(switch.ports):
            if port.rate_bps <= 0:
                raise ConfigError(f"{where}.ports[{j}].rate_bps: must be positive, got {port.rate_bps}")
            if not 0 <= port.number <= MAX_PORT:
                raise ConfigError(f"{where}.ports[{j}].number: must be in 0..{MAX_PORT}, got {port.number}")
            if port.peer:
                _check_peer(config, switch, port, f"{where}.ports[{j}].peer")
            elif port.multicast_router:
                raise ConfigError(f"{where}.ports[{j}].multicast_router: port {port.number} leads to no switch")
        for j, source in enumerate(switch.sources):
            if source.port not in known:
                raise ConfigError(f"{where}.sources[{j}].port: switch {switch.name} has no port {source.port}")
            try:
                ip_address(source.address)
            except ValueError as error:
                raise ConfigError(f"{where}.sources[{j}].address: {error}") from error
        for j, route in enumerate(switch.routes):
            _check_route(route, f"{where}.routes[{j}]", known, switch.name)
    return config


def read_route(raw: Any, where: str, ports: Collection[int]) -> Route:
    """ConfigError names the key at fault. ports: of the switch."""
    route: Route = _build(Route, raw, where)
    _check_route(route, where, ports, "")
    return route


def _check_route(route: Route, where: str, ports: Collection[int], switch: str) -> None:
    try:
        ip_network(route.prefix)
    except ValueError as error:
        raise ConfigError(f"{where}.prefix: {error}") from error
    hops: tuple[Route | Hop, ...] = (route, *route.others)
    for n, hop in enumerate(hops):
        place = f"{where}.others[{n - 1}]" if n else where
        if hop.port not in ports:
            raise ConfigError(f"{place}.port: {f'switch {switch}' if switch else 'the switch'} has no port {hop.port}")
        for key in ("src_mac", "dst_mac"):
            try:
                mac(getattr(hop, key))
            except ValueError as error:
                raise ConfigError(f"{place}.{key}: {error}") from error


def _check_peer(config: Config, switch: Switch, port: Port, where: str) -> None:
    """The two ends of a link name each other."""
    peer = next((s for s in config.switches if s.name == port.peer), None)
    if peer is None:
        raise ConfigError(f"{where}: no switch {port.peer!r}")
    other = next((p for p in peer.ports if p.number == port.peer_port), None)
    if other is None or (other.peer, other.peer_port) != (switch.name, port.number):
        raise ConfigError(f"{where}: port {port.peer_port} of {peer.name} does not lead back to port {port.number} of {switch.name}")


def mac(text: str) -> int:
    """The 48-bit value of an Ethernet address; ValueError for invalid text."""
    parts = text.split(":")
    if len(parts) != 6 or not all(len(p) == 2 for p in parts):
        raise ValueError(f"{text!r} is not an Ethernet address such as 02:00:00:00:00:01")
    return int("".join(parts), 16)


def _unique(values: list[Any], where: str, key: str) -> None:
    for value in values:
        if values.count(value) > 1:
            raise ConfigError(f"{where}: two entries have {key} {value!r}")


_JSON_TYPES: dict[str, type | tuple[type, ...]] = {"int": int, "float": (int, float), "str": str, "bool": bool}
_NESTED = {
    "switches": (Switch, True),
    "ports": (Port, True),
    "routes": (Route, True),
    "others": (Hop, True),
    "sources": (Source, True),
    "igmp": (Igmp, False),
    "tls": (Tls, False),
}


def _build(kind: type, raw: Any, where: str) -> Any:
    if not isinstance(raw, dict):
        raise ConfigError(f"{where or 'top'}: expected an object, got {type(raw).__name__}")
    fields = {f.name: f for f in dataclasses.fields(kind)}
    tables = {name: field.metadata[schema.TABLES]() for name, field in fields.items() if schema.TABLES in field.metadata}
    prefix = f"{where}." if where else ""
    values: dict[str, Any] = dict.fromkeys(tables, ())
    for key, value in raw.items():
        of = next((name for name, kinds in tables.items() if key in kinds), None)
        if of is not None:
            values[of] += () if value is None else (_build(tables[of][key], value, f"{prefix}{key}"),)
            continue
        if key not in fields or key in tables:
            keys = [key for name in fields for key in tables.get(name, (name,))]
            raise ConfigError(f"{prefix}{key}: unknown key; {kind.__name__} has {', '.join(keys)}")
        if key == "routes" and isinstance(value, dict):
            value = _listed(value, f"{prefix}{key}")
        if key in _NESTED and value is not None:
            nested, many = _NESTED[key]
            if not many:
                value = _build(nested, value, f"{prefix}{key}")
            elif isinstance(value, list):
                value = tuple(_build(nested, item, f"{prefix}{key}[{i}]") for i, item in enumerate(value))
            else:
                raise ConfigError(f"{prefix}{key}: expected a list")
        elif isinstance(value, list):
            value = tuple(value)
        expected = _JSON_TYPES.get(str(fields[key].type))
        if expected and (not isinstance(value, expected) or (isinstance(value, bool) and expected is not bool)):
            raise ConfigError(f"{prefix}{key}: expected {fields[key].type}, got {value!r}")
        values[key] = value
    for name, f in fields.items():
        if name not in values and f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING:
            raise ConfigError(f"{prefix}{name}: missing")
    try:
        return kind(**values)
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from error


_LISTED = 256
"""Routes of a switch that are written one by one."""


def to_json(config: Config) -> str:
    """The text that `read` reads back: `parse(json.loads(to_json(c))) == c`. A switch with more than `_LISTED` routes has
    `"routes": {"ways": [{"port": 1, ...}], "to": {"10.0.2.0/23": 0, ...}}`, since a large network has a million routes and few ways: of each prefix its way's number."""
    written = schema.plain(dataclasses.replace(config, switches=tuple(dataclasses.replace(s, routes=()) for s in config.switches)))
    for place, switch in zip(written["switches"], config.switches):
        place["routes"] = _by_ways(switch.routes) if len(switch.routes) > _LISTED else schema.plain(switch.routes)
    return json.dumps(written, indent=1)


def _by_ways(routes: tuple[Route, ...]) -> Any:
    numbers: dict[tuple[Any, ...], int] = {}
    to = {route.prefix: numbers.setdefault((route.port, route.src_mac, route.dst_mac, route.others), len(numbers)) for route in routes}
    if len(to) < len(routes):
        return schema.plain(routes)
    ways = [schema.plain(Route("", *way)) for way in numbers]
    return {"ways": [{key: value for key, value in way.items() if key != "prefix"} for way in ways], "to": to}


def _listed(raw: dict[str, Any], where: str) -> list[Any]:
    """Routes as `_by_ways` wrote them, one by one."""
    ways, to = raw.get("ways"), raw.get("to")
    if raw.keys() != {"ways", "to"} or not isinstance(ways, list) or not isinstance(to, dict):
        raise ConfigError(f"{where}: expected a list, or an object with a list 'ways' and an object 'to'")
    for prefix, number in to.items():
        if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < len(ways) or not isinstance(ways[number], dict):
            raise ConfigError(f"{where}.to.{prefix}: expected the number of a way, 0 to {len(ways) - 1}, got {number!r}")
    return [{"prefix": prefix, **ways[number]} for prefix, number in to.items()]
