"""`topology.json`: hosts, switches and links, as `run_exercise.py` of the P4 tutorials reads them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Interface, NetmaskValueError
from pathlib import Path
from typing import Any

from fairlane.inputs import located_json
from fairlane.inputs.located_toml import Document, KeyPath, show
from fairlane.inputs.schema import nearest
from fairlane.topologies.model import CPU_PORT, MAX_PORT
from fairlane.tutorials import commands
from fairlane.tutorials.commands import HostCommand

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_MAC = re.compile(r"(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}")
_DELAY = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*(us|usec|usecs|ms|msec|msecs|s|sec|secs)?")
_SECONDS = {"u": 1e-6, "m": 1e-3, "s": 1.0}


@dataclass(frozen=True)
class Host:
    """ip: with its prefix length; Mininet's /8 where the file has none."""

    name: str
    ip: IPv4Interface
    mac: str
    commands: tuple[HostCommand, ...]

    @property
    def gateway(self) -> tuple[str, str] | None:
        """Address and Ethernet address of the default route's next hop, where the commands tell both."""
        known = dict(c.neighbour for c in self.commands if c.neighbour is not None)
        for command in self.commands:
            if command.default_via in known:
                return command.default_via, known[command.default_via]
        return None


@dataclass(frozen=True)
class Switch:
    """runtime_json, program: as in the file. cpu_port: None means no CPU port, as in the tutorials."""

    name: str
    runtime_json: str | None
    program: str | None
    cpu_port: int | None
    priority_queues: int


@dataclass(frozen=True)
class Link:
    """a: a host, or a switch with its port. b: a switch with its port. Ports of hosts are 0. rate_bps: None is unlimited."""

    a: str
    a_port: int
    b: str
    b_port: int
    delay_s: float
    rate_bps: float | None


@dataclass(frozen=True)
class TutorialTopology:
    """notes: the keys of the file that are ignored."""

    document: Document
    path: Path
    hosts: tuple[Host, ...]
    switches: tuple[Switch, ...]
    links: tuple[Link, ...]
    notes: tuple[str, ...]

    def ports(self, switch: str) -> dict[int, Link]:
        """The links of a switch by port, in the order of the numbers."""
        found = {}
        for link in self.links:
            if link.a == switch:
                found[link.a_port] = link
            if link.b == switch:
                found[link.b_port] = link
        return dict(sorted(found.items()))

    def host_link(self, host: str) -> Link:
        return next(link for link in self.links if link.a == host)


def read(path: Path) -> TutorialTopology:
    """ConfigError names file, line and key."""
    return _Reader(located_json.read(path), path).read()


class _Reader:
    def __init__(self, document: Document, path: Path) -> None:
        self._document = document
        self._path = path
        self._notes: list[str] = []

    def read(self) -> TutorialTopology:
        document = self._document
        for key in ("hosts", "switches", "links"):
            if key not in document.values:
                raise document.error((), f"missing key {key!r}: a topology of the P4 tutorials has hosts, switches and links")
        self._unknown((), ("hosts", "switches", "links"))
        hosts = tuple(self._host(name) for name in self._table(("hosts",)))
        switches = tuple(self._switch(name) for name in self._table(("switches",)))
        if not switches:
            raise document.error(("switches",), "a network needs at least one switch")
        for name in {h.name for h in hosts} & {s.name for s in switches}:
            raise document.error(("switches", name), f"a host has the same name, {name}")
        links = self._links({h.name for h in hosts}, {s.name for s in switches})
        for host in hosts:
            count = sum(link.a == host.name for link in links)
            if count != 1:
                raise document.error(("hosts", host.name), f"the host has {count} links; a host has exactly one")
        return TutorialTopology(document, self._path, hosts, switches, links, tuple(self._notes))

    def _host(self, name: str) -> Host:
        path: KeyPath = ("hosts", name)
        table = self._named(path, ("ip", "mac", "commands"))
        for key in ("ip", "mac"):
            if key not in table:
                raise self._document.error(path, f"missing key {key!r}")
        text = self._text((*path, "ip"))
        try:
            ip = IPv4Interface(text if "/" in text else f"{text}/8")
        except (AddressValueError, NetmaskValueError) as error:
            raise self._document.error((*path, "ip"), f"{error}; as in 10.0.1.1/24") from error
        mac = self._text((*path, "mac"))
        if not _MAC.fullmatch(mac) or int(mac[:2], 16) & 1:
            raise self._document.error((*path, "mac"), f"{mac!r} is not the Ethernet address of a host, such as 08:00:00:00:01:11")
        parsed = []
        for i, command in enumerate(self._list((*path, "commands"))):
            here = (*path, "commands", i)
            if not isinstance(command, str):
                raise self._document.error(here, f"expected a string, got {command!r}")
            try:
                parsed.append(commands.parse(command))
            except ValueError as error:
                raise self._document.error(here, str(error)) from error
        return Host(name, ip, mac.lower(), tuple(parsed))

    def _switch(self, name: str) -> Switch:
        path: KeyPath = ("switches", name)
        table = self._named(path, ("runtime_json", "program", "cpu_port", "priority_queues", "cli_input"))
        if "cli_input" in table:
            raise self._document.error(
                (*path, "cli_input"),
                "commands of simple_switch_CLI go to BMv2's Thrift port, which this switch does not have:"
                " write them as table_entries of a runtime_json file (docs/tutorials-files.md shows how)",
            )
        runtime = self._text((*path, "runtime_json")) if "runtime_json" in table else None
        program = self._text((*path, "program")) if "program" in table else None
        cpu_port = self._number((*path, "cpu_port"), 1, CPU_PORT) if "cpu_port" in table else None
        queues = self._number((*path, "priority_queues"), 1, 32) if "priority_queues" in table else 1
        return Switch(name, runtime, program, cpu_port, queues)

    def _links(self, hosts: set[str], switches: set[str]) -> tuple[Link, ...]:
        links: list[Link] = []
        taken: dict[tuple[str, int], int] = {}
        for i, value in enumerate(self._list(("links",))):
            path: KeyPath = ("links", i)
            if not isinstance(value, list) or not 2 <= len(value) <= 4:
                raise self._document.error(
                    path, 'as in ["h1", "s1-p1"] or ["s1-p3", "s2-p4", "5ms", 10]: two ends, then latency, then bandwidth in Mbit/s'
                )
            ends = [self._end((*path, j), value[j], hosts, switches) for j in (0, 1)]
            ends.sort(key=lambda end: end[0] not in hosts)
            (a, a_port), (b, b_port) = ends
            if b in hosts:
                raise self._document.error(path, f"links host {a} to host {b}: hosts link to switches")
            if a == b:
                raise self._document.error(path, f"loops back to the same switch, {a}")
            for end in ends:
                if end[0] in switches and end in taken:
                    raise self._document.error(path, f"port {end[1]} of {end[0]} is used by links[{taken[end]}] already")
                taken[end] = i
            delay_s = self._delay((*path, 2), value[2]) if len(value) > 2 else 0.0
            rate_bps = self._rate((*path, 3), value[3]) if len(value) > 3 else None
            links.append(Link(a, a_port, b, b_port, delay_s, rate_bps))
        return tuple(links)

    def _end(self, path: KeyPath, text: object, hosts: set[str], switches: set[str]) -> tuple[str, int]:
        if not isinstance(text, str):
            raise self._document.error(path, f"expected a string, got {text!r}")
        name, dash, port = text.partition("-")
        if not dash and name in hosts:
            return name, 0
        if name in hosts:
            raise self._document.error(path, f"{text!r}: hosts have no port numbers: write {name!r}")
        if name not in switches:
            raise self._document.error(path, f"no host or switch {name!r}{nearest(name, sorted(hosts | switches))}")
        if not re.fullmatch(r"p[0-9]{1,3}", port) or not 1 <= int(port[1:]) <= MAX_PORT:
            raise self._document.error(path, f"{text!r}: write a switch's port as in {name}-p1, from 1 to {MAX_PORT}")
        return name, int(port[1:])

    def _delay(self, path: KeyPath, value: object) -> float:
        """Milliseconds as a number; a string with or without a unit, and then as `tc` takes it: microseconds."""
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e6:
            return value / 1e3
        found = _DELAY.fullmatch(value.strip()) if isinstance(value, str) else None
        if found is None:
            raise self._document.error(path, f'{value!r} is not a latency: write milliseconds, or a string such as "5ms"')
        return float(found[1]) * _SECONDS[(found[2] or "us")[0]]

    def _rate(self, path: KeyPath, value: object) -> float | None:
        if value is None:
            return None
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not 1e-3 <= value <= 1e6:
            raise self._document.error(path, f"{value!r} is not a bandwidth: write Mbit/s, from 0.001")
        return value * 1e6

    def _named(self, path: KeyPath, known: tuple[str, ...]) -> dict[str, Any]:
        name = path[-1]
        assert isinstance(name, str)
        if not _NAME.fullmatch(name):
            raise self._document.error(path, f"{name!r} is not a node name: use a letter, then letters and digits")
        if len(name) > 10:
            raise self._document.error(
                path, f"{name!r} is too long: interfaces' names are at most 15 characters, so a node's are at most 10"
            )
        table = self._table(path)
        self._unknown(path, known)
        return table

    def _unknown(self, path: KeyPath, known: tuple[str, ...]) -> None:
        for key in self._document.at(path):
            if key not in known:
                file, line = self._document.place((*path, key))
                self._notes.append(f"{file}:{line}: {show((*path, key))}: this key is ignored{nearest(key, known)}")

    def _table(self, path: KeyPath) -> dict[str, Any]:
        value = self._document.at(path)
        if not isinstance(value, dict):
            raise self._document.error(path, "expected an object")
        return value

    def _list(self, path: KeyPath) -> list[Any]:
        parent = self._document.at(path[:-1])
        if path[-1] not in parent:
            return []
        value = parent[path[-1]]
        if not isinstance(value, list):
            raise self._document.error(path, "expected an array")
        return value

    def _text(self, path: KeyPath) -> str:
        value = self._document.at(path)
        if not isinstance(value, str) or not value:
            raise self._document.error(path, f"expected a string, got {value!r}")
        return value

    def _number(self, path: KeyPath, low: int, high: int) -> int:
        value = self._document.at(path)
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 6:
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise self._document.error(path, f"expected a number from {low} to {high}, got {value!r}")
        return value
