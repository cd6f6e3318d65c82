"""A network as plain data: nodes, and links with rate, delay and queue. No fabric, no clock, no process."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from fairlane.inputs import schema
from fairlane.schemes import registry
from fairlane.schemes.base import MAX_DELAY_S, Average, Parameters, Scheduler
from fairlane.topologies import impairments
from fairlane.topologies.impairments import Gemodel
from fairlane.topologies.trace import Trace

WAY_TO_AN_OWN_AQM = "; for a queue management of your own, give its folder with --scheme FOLDER (docs/own-scheme.md)"


def queues() -> tuple[str, ...]:
    """What a link's `queue` may be: a scheme's name, or "droptail"."""
    return (*registry.names(), registry.DROPTAIL)


def scheme_fields() -> Any:
    """The field `schemes` of a link: each scheme's parameters under the scheme's name."""
    return field(default=(), metadata={schema.TABLES: registry.parameters})


def queue_field() -> Any:
    """The field `queue` of a link."""
    return field(default=None, metadata={schema.CHOICES: queues, schema.WAY_OUT: WAY_TO_AN_OWN_AQM})


# Port numbers of v1model are 9 bits wide. The last two have other uses: packets to and from the controller (CPU_PORT of
# p4src/constants.p4), and drops.
CPU_PORT = 510
MAX_PORT = CPU_PORT - 1
# Each switch has a subnet of 10.0.0.0/8 of its own (`fairlane.topologies.addressing`). Its hosts are as many as it has ports.
MAX_HOSTS_OF_A_SWITCH = MAX_PORT
# A switch has a route to each other one and to each of its hosts, and room for 4,096 (p4src/forward.p4).
MAX_SWITCHES = 3_500
MAX_HOSTS = 100_000
MAX_HOPS = 63
"""Switches that a packet passes: hosts send it with a time to live of 64, and each takes one away."""
ETHERNET_BYTES = 14
# What switch and virtual network count in 64 bits of nanoseconds and bits, with room to add.
MAX_RATE_BPS = 1e12
MAX_QUEUE_PACKETS = 10_000_000
MAX_DURATION_S = 1e7
"""Of a run, about 116 days."""
OF_THE_TRACE = math.nan
"""The rate of a link that has a trace and states none."""


class TopologyError(ValueError):
    """A network that cannot be. `where` is the place in the data, such as ("links", 2)."""

    def __init__(self, what: str, where: tuple[str | int, ...] = ()) -> None:
        super().__init__(what)
        self.where = where


@dataclass(frozen=True)
class Node:
    """name: a letter, then letters, digits, `_` or `-`."""

    name: str
    kind: Literal["host", "switch"]


def check_rate(name: str, rate_bps: float) -> None:
    """ValueError for a rate that no link has."""
    if not rate_bps > 0:
        raise ValueError(f"{name}: a link of {rate_bps:g} bit/s never sends: give a positive rate")
    if not rate_bps <= MAX_RATE_BPS:
        raise ValueError(f"{name}: at most {MAX_RATE_BPS:g} bit/s, got {rate_bps:g} bit/s")


def check_delay(name: str, delay_s: float) -> None:
    """ValueError for a delay that no link has."""
    if not delay_s >= 0:
        raise ValueError(f"{name}: must not be negative, got {delay_s:g} s")
    if not delay_s <= MAX_DELAY_S:
        raise ValueError(f"{name}: at most {MAX_DELAY_S:g} s, got {delay_s:g} s")


JITTER_STDS = 3
"""N_STD: Gaussian jitter ends at so many standard deviations [RFC 8868 sec 4.5.3]."""
_MEAN_STDS = 0.79712025216877
"""Mean of min(|x|, n) of a Gaussian: sqrt(2 / pi) (1 - exp(-n^2 / 2)) up to the bound n = JITTER_STDS, and n erfc(n / sqrt(2)) beyond it."""


def check_jitter(jitter_s: float, jitter_std_s: float) -> None:
    """ValueError for a jitter that no link has."""
    check_delay("jitter_s", jitter_s)
    check_delay("jitter_std_s", jitter_std_s)
    if jitter_s and jitter_std_s:
        raise ValueError("jitter_std_s: jitter is uniform up to jitter_s, or Gaussian of jitter_std_s: leave out one of the two")


@dataclass(frozen=True)
class Back:
    """What the direction from a link's second end to its first has instead; None: the same. The keys are those of `Link`. `rate_bps` or `trace` replaces
    both, `loss` or `gemodel` both, `jitter_s` or `jitter_std_s` both."""

    rate_bps: float | None = None
    delay_s: float | None = None
    queue_packets: int | None = None
    loss: float | None = None
    gemodel: Gemodel | None = None
    jitter_s: float | None = None
    jitter_std_s: float | None = None
    reorder: float | None = None
    reorder_delay_s: float | None = None
    duplicate: float | None = None
    corrupt: float | None = None
    trace: Trace | None = None

    @property
    def given(self) -> dict[str, Any]:
        return {one.name: value for one in dataclasses.fields(self) if (value := getattr(self, one.name)) is not None}


@dataclass(frozen=True)
class Link:
    """A full-duplex link. Both directions have the same rate, delay and queue, but for what `back` says.

    ends: two node names, each with a port behind a colon where it matters ("s1:3"); ports not given are numbered in order.
    rate_bps: > 0; left out: the mean of the trace. delay_s: one-way propagation delay, >= 0. queue_packets: waiting packets each sending port holds, > 0.
    queue: the name of a scheme (`fairlane.schemes`), whose parameters are under that name, or "droptail": only a full queue drops. Left out: the one that is given. schemes: parameters
    that are given; once made, those of `queue` alone. A switch manages its queues; a host's are drop-tail. loss: part of the frames, drawn at random, that the link loses in each direction, in
    [0, 1). jitter_s: delay drawn from [0, jitter_s] on top, without changing the order. jitter_std_s: instead, the absolute value of a Gaussian of this standard
    deviation, at most three times it [RFC 8868 sec 4.5.3], and no frame comes sooner after the one before than that takes at the link's rate
    [RFC 8868 sec 4.5.2]. framing: what rate_bps counts, whole Ethernet
    frames or the IP datagrams in them. trace: the capacity of each direction over time, from the start of the run; replaces rate_bps.
    trace_back: what the direction from the second end to the first follows instead. gemodel: loss in bursts in place of loss. reorder: probability in
    [0, 1] that a frame is held back and arrives reorder_delay_s later, behind frames that were sent after it. duplicate: that a second copy follows a frame at
    once. corrupt: that one bit of a frame's datagram is flipped. back: what the direction from the second end to the first has instead.
    """

    ends: tuple[str, str]
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
    __pydantic_config__ = {"arbitrary_types_allowed": True}  # for records that are read back: `schemes` are objects then

    def __post_init__(self) -> None:
        if self.trace_back is not None and self.back is not None and {"rate_bps", "trace"} & self.back.given.keys():
            raise ValueError("trace_back: 'back' says what the way back has: leave out 'trace_back'")
        if self.trace_back is not None and self.trace is None:
            raise ValueError("trace_back: the way back has a trace, and the way there has none: give 'trace' as well")
        if self.rate_bps is OF_THE_TRACE:
            if self.trace is None:
                raise ValueError("missing key 'rate_bps'")
            object.__setattr__(self, "rate_bps", self.trace.mean_bps())
        given = {one.scheme.name: one for one in self.schemes}
        discipline = self.queue or next(iter(given), registry.DROPTAIL)
        if discipline not in queues():
            raise ValueError(f"queue: must be {', '.join(map(repr, registry.names()))} or 'droptail', got {discipline!r}")
        if self.queue is None and len(given) > 1:
            first, second = list(given)[:2]
            raise ValueError(f'queue: {first} and {second} are both given: write queue = "{first}" or queue = "{second}"')
        object.__setattr__(self, "queue", discipline)
        scheme = registry.SCHEMES.get(discipline)
        object.__setattr__(self, "schemes", () if scheme is None else (given.get(discipline) or scheme.parameters(),))
        if self.framing not in ("ethernet", "ip"):
            raise ValueError(f"framing: must be 'ethernet' or 'ip', got {self.framing!r}")
        impairments.check_loss(self.loss, self.gemodel)
        impairments.check(self.reorder, self.reorder_delay_s, self.duplicate, self.corrupt)
        check_jitter(self.jitter_s, self.jitter_std_s)
        if self.jitter_std_s and self.trace is not None:
            raise ValueError(
                "jitter_std_s: keeps frames apart at the link's rate, which a trace changes: give it to another link of the path"
            )
        check_rate("rate_bps", self.rate_bps)
        for key, trace in (("trace", self.trace), ("trace_back", self.trace_back)):
            if trace is None:
                continue
            for _, rate_bps in trace.rates:
                if rate_bps:
                    check_rate(key, rate_bps)
            if trace.length_s > MAX_DURATION_S:
                raise ValueError(f"{key}: at most {MAX_DURATION_S:g} s, got {trace.length_s:g} s")
        check_delay("delay_s", self.delay_s)
        if self.queue_packets < 1:
            raise ValueError(f"queue_packets: a queue of {self.queue_packets} packets cannot hold any: give at least 1")
        if self.queue_packets > MAX_QUEUE_PACKETS:
            raise ValueError(f"queue_packets: at most {MAX_QUEUE_PACKETS} packets, got {self.queue_packets:g}")
        try:
            _ = self.backward
        except ValueError as error:
            raise ValueError(f"back: {error}") from error

    @cached_property
    def backward(self) -> Link:
        """The link as its second end sends on it; itself where both directions are alike."""
        if self.back is None and self.trace_back is None:
            return self
        given: dict[str, Any] = {} if self.trace_back is None else {"trace": self.trace_back}
        if self.back is not None:
            given |= impairments.instead(self.back.given)
            if "trace" in self.back.given:
                given.setdefault("rate_bps", OF_THE_TRACE)
        return dataclasses.replace(self, back=None, trace_back=None, **given)

    @property
    def marks(self) -> bool:
        """Whether its queues mark packets by ECN."""
        return self.aqm is not None and self.aqm.marks

    @property
    def aqm(self) -> Parameters | None:
        """The scheme that manages its switches' queues; None for drop-tail."""
        return self.schemes[0] if self.schemes else None

    @property
    def average(self) -> Average | None:
        """The average of its queue by which the scheme decides."""
        return None if self.aqm is None else self.aqm.average(self.queue_packets)

    @property
    def scheduling(self) -> Scheduler | None:
        """Which of several queues sends next; None: strict priority."""
        return None if self.aqm is None else self.aqm.scheduling

    @property
    def causes(self) -> dict[str, str]:
        """Causes of drops by the scheme: the column that counts each."""
        return {} if self.aqm is None else {counter.cause: counter.column for counter in self.aqm.scheme.counters if counter.cause}

    @property
    def mean_jitter_s(self) -> float:
        """Of a frame before which no other is held back."""
        return self.jitter_s / 2 + _MEAN_STDS * self.jitter_std_s

    @property
    def priorities(self) -> int:
        """Queues of each port, the highest the most urgent."""
        return 1 if self.aqm is None else self.aqm.priorities

    @property
    def uncounted_bytes(self) -> int:
        """Of each frame, the bytes that rate_bps does not count."""
        return ETHERNET_BYTES if self.framing == "ip" else 0


@dataclass(frozen=True)
class Port:
    """One end of a link: what leaves here goes to `peer`. link: as this end sends on it (`Link.backward`). first: the link names this end first."""

    node: str
    number: int
    peer: str
    peer_port: int
    link: Link = field(repr=False)
    link_index: int = 0
    first: bool = True

    @property
    def trace(self) -> Trace | None:
        """What the capacity of this direction follows."""
        return self.link.trace


@dataclass(frozen=True)
class Topology:
    """Checked when constructed: TopologyError names the fault and its place. routing: between ways of equal cost, "ecmp" spreads flows, and "single" takes the lowest
    port. ip: the version of IP, 4 or 6."""

    nodes: tuple[Node, ...]
    links: tuple[Link, ...]
    routing: Literal["ecmp", "single"] = "ecmp"
    ip: Literal[4, 6] = field(default=4, metadata={schema.OPTIONAL: True})

    def __post_init__(self) -> None:
        self._check_nodes()
        self.ports()
        self._check_hosts()
        self._check_connected()

    @cached_property
    def worked_out(self) -> dict[tuple[Any, ...], Any]:
        """What others compute from nodes and links, which never change: routes and paths (`fairlane.topologies.addressing`)."""
        return {}

    @cached_property
    def machines(self) -> tuple[str, ...]:
        """The hosts, each once."""
        return tuple(n.name for n in self.nodes if n.kind == "host")

    @cached_property
    def hosts(self) -> tuple[str, ...]:
        """The ends of flows: a host for each of its links. The first link's is the host itself, `h1`; another one has its port, `h1:1`."""
        return (*self.machines, *(name for name in self.ports() if machine(name) != name))

    def other_way(self, port: Port) -> Link:
        """The link of a port as its other end sends on it."""
        link = self.links[port.link_index]
        return link.backward if port.first else link

    def both_ends(self, node: str, number: int) -> tuple[Port, Port]:
        """A port, by its node and number, and the one at the other end of its link."""
        port = self.port(node, number)
        first, second = self.ends(port.link_index)
        return (first, second) if port.first else (second, first)

    def ends(self, link: int) -> tuple[Port, Port]:
        """The two ports of a link, by its place in `links`."""
        return self._ends[link]

    @cached_property
    def _ends(self) -> list[tuple[Port, Port]]:
        found: list[list[Port]] = [[] for _ in self.links]
        for port in itertools.chain.from_iterable(self.ports().values()):
            found[port.link_index].append(port)
        return [(a, b) if a.first else (b, a) for a, b in found]

    @property
    def directions(self) -> tuple[Link, ...]:
        """Each link as its first end sends on it, and as its second."""
        return tuple(way for link in self.links for way in (link, link.backward))

    @cached_property
    def switches(self) -> tuple[str, ...]:
        return tuple(n.name for n in self.nodes if n.kind == "switch")

    def ports(self) -> dict[str, tuple[Port, ...]]:
        """The ports of each switch, and the one of each of `hosts`, by number: host ports count from 0, switch ports from 1."""
        return self._ports

    def port(self, node: str, number: int) -> Port:
        """A node's port of that number; KeyError: it has none."""
        return self._by_number[node, number]

    @cached_property
    def _by_number(self) -> dict[tuple[str, int], Port]:
        return {(port.node, port.number): port for ports in self._ports.values() for port in ports}

    @cached_property
    def _ports(self) -> dict[str, tuple[Port, ...]]:
        kinds = {n.name: n.kind for n in self.nodes}
        taken: dict[str, dict[int, int]] = defaultdict(dict)
        wanted: list[list[tuple[str, int | None]]] = []
        for i, link in enumerate(self.links):
            ends = [_split(end, i) for end in link.ends]
            for name, number in ends:
                if name not in kinds:
                    raise TopologyError(f"link to unknown node {name!r}", ("links", i))
                if number is None:
                    continue
                low = 0 if kinds[name] == "host" else 1
                if not low <= number <= MAX_PORT:
                    raise TopologyError(f"port {number} of {name}: {kinds[name]} ports are {low} to {MAX_PORT}", ("links", i))
            (a, a_port), (b, b_port) = ends
            if a == b:
                same = f", port {a_port}" if a_port is not None and a_port == b_port else ""
                raise TopologyError(f"the link loops back to the same {'port: ' if same else 'node: '}{a}{same}", ("links", i))
            for name, number in ends:
                if number is not None:
                    if number in taken[name]:
                        raise TopologyError(f"port {number} of {name} is used by links[{taken[name][number]}] already", ("links", i))
                    taken[name][number] = i
            wanted.append(ends)
        numbered: list[list[tuple[str, int]]] = []
        for i, ends in enumerate(wanted):
            numbers = []
            for name, number in ends:
                if number is None:
                    number = 0 if kinds[name] == "host" else 1
                    while number in taken[name]:
                        number += 1
                    if number > MAX_PORT:
                        raise TopologyError(f"{name} has more links than ports ({MAX_PORT})", ("links", i))
                    taken[name][number] = i
                numbers.append((name, number))
            numbered.append(numbers)
        ports: dict[str, list[Port]] = {n.name: [] for n in self.nodes}
        for i, ends_there in enumerate(numbered):
            (a, a_number), (b, b_number) = [
                (name if kinds[name] == "switch" or number == min(taken[name]) else f"{name}:{number}", number)
                for name, number in ends_there
            ]
            ports.setdefault(a, []).append(Port(a, a_number, b, b_number, self.links[i], i))
            ports.setdefault(b, []).append(Port(b, b_number, a, a_number, self.links[i].backward, i, first=False))
        return {name: tuple(sorted(ps, key=lambda p: p.number)) for name, ps in ports.items()}

    def _check_nodes(self) -> None:
        seen: dict[str, int] = {}
        for i, node in enumerate(self.nodes):
            if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", node.name):
                raise TopologyError(f"node name {node.name!r}: use a letter, then letters, digits, _ or -", ("nodes", i))
            if node.name in seen:
                raise TopologyError(f"two nodes are called {node.name!r} (nodes[{seen[node.name]}] is the other)", ("nodes", i))
            seen[node.name] = i
        switches = [i for i, node in enumerate(self.nodes) if node.kind == "switch"]
        if not switches:
            raise TopologyError("a network needs at least one switch", ("nodes",))
        if len(switches) > MAX_SWITCHES:
            raise TopologyError(
                f"{len(switches)} switches: a network has at most {MAX_SWITCHES}, because each has a route to each other one",
                ("nodes", switches[MAX_SWITCHES]),
            )
        hosts = [i for i, node in enumerate(self.nodes) if node.kind == "host"]
        if len(hosts) > MAX_HOSTS:
            raise TopologyError(f"{len(hosts)} hosts: a network has at most {MAX_HOSTS}", ("nodes", hosts[MAX_HOSTS]))

    def _check_hosts(self) -> None:
        ports, switches = self.ports(), set(self.switches)
        places = {node.name: i for i, node in enumerate(self.nodes)}
        for name in self.hosts:
            where = ("nodes", places[machine(name)])
            if not ports[name]:
                raise TopologyError(f"host {name} has no link: give it one to a switch", where)
            if ports[name][0].peer not in switches:
                raise TopologyError(f"host {name} is linked to host {ports[name][0].peer}; hosts link to switches", where)

    def _check_connected(self) -> None:
        ports = self.ports()
        reached, todo = {self.nodes[0].name}, [self.nodes[0].name]
        while todo:
            for port in ports[todo.pop()]:
                if port.peer not in reached:
                    reached.add(port.peer)
                    todo.append(port.peer)
        for i, node in enumerate(self.nodes):
            if node.name not in reached:
                raise TopologyError(f"{node.name} cannot be reached from {self.nodes[0].name}", ("nodes", i))


def machine(host: str) -> str:
    """The host that one of `Topology.hosts` is a link of."""
    return host.partition(":")[0]


def in_files(host: str) -> str:
    """One of `Topology.hosts` in the name of a file: `h1.1`, because some systems have no colons there."""
    return host.replace(":", ".")


def _split(end: str, index: int) -> tuple[str, int | None]:
    name, colon, port = end.partition(":")
    if not colon:
        return name, None
    if not port.isascii() or not port.isdigit() or len(port) > len(str(MAX_PORT)):
        raise TopologyError(f"link end {end!r}: write a node, or a node and its port as in 's1:3'", ("links", index))
    return name, int(port)
