"""A network as plain data: nodes, and links with rate, delay and queue. No fabric, no clock, no process."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

from fairlane.topologies.trace import Trace

WAY_TO_AN_OWN_AQM = "; for a queue management of your own, write 'red' and give your P4 file with --program FILE.p4 (docs/own-aqm.md)"
Discipline = Annotated[Literal["red", "codel", "pie", "pi2", "dualpi2", "step", "droptail"], WAY_TO_AN_OWN_AQM]

# Port numbers of v1model are 9 bits wide. The last two have other uses: packets to and from the controller (CPU_PORT of
# p4src/constants.p4), and drops.
CPU_PORT = 510
MAX_PORT = CPU_PORT - 1
# Each switch has the subnet 10.0.NUMBER.0/24 (`fairlane.topologies.addressing`), whose last address is the hosts' gateway.
MAX_SWITCHES = 254
MAX_HOSTS_OF_A_SWITCH = 253
ETHERNET_BYTES = 14
# What switch and virtual network count in 64 bits of nanoseconds and bits, with room to add.
MAX_RATE_BPS = 1e12
MAX_DELAY_S = 1000.0
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


@dataclass(frozen=True)
class Red:
    """Random early detection of a queue (Floyd and Jacobson 1993), thresholds as fractions of the buffer.

    minimum, maximum: in [0, 1], minimum < maximum. max_p: drop probability just below the maximum, in (0, 1].
    weight: of the moving average, in (0, 1). mean_packet_bytes: typical packet, for the decay in idle time. ecn: between the
    thresholds, packets of an ECN-capable transport are marked instead of dropped [RFC 3168 sec 5, 7]. The defaults: the maximum three times
    the minimum, as Floyd advises, and their paper's weight.
    """

    minimum: float = 0.25
    maximum: float = 0.75
    max_p: float = 0.1
    weight: float = 0.002
    mean_packet_bytes: int = 1000
    ecn: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.minimum < self.maximum <= 1:
            raise ValueError(f"minimum: RED needs 0 <= minimum < maximum <= 1, got {self.minimum} and {self.maximum}")
        check_red(self.max_p, self.weight, self.mean_packet_bytes)


@dataclass(frozen=True)
class Codel:
    """CoDel of a queue [RFC 8289]: packets are dropped while all of them wait longer than a target for an interval.

    target_s: in [1e-6, interval_s). interval_s: about the longest round trip, at most 1000. The defaults: [RFC 8289 sec 4.3] and
    [RFC 8289 sec 4.2]. ecn: packets of an ECN-capable transport are marked instead of dropped.
    """

    target_s: float = 0.005
    interval_s: float = 0.1
    ecn: bool = False

    def __post_init__(self) -> None:
        if not 1e-6 <= self.target_s < self.interval_s <= MAX_DELAY_S:
            raise ValueError(
                f"target_s: CoDel needs 1e-6 <= target_s < interval_s <= {MAX_DELAY_S:g}, got {self.target_s:g} s and {self.interval_s:g} s"
            )


# `p4src/pie.p4` and `p4src/pi2.p4` hold gains as 32-bit integers x 2^-48 per microsecond.
_MAX_GAIN = 15.0


@dataclass(frozen=True)
class Pie:
    """PIE of a queue [RFC 8033]: arrivals are dropped with a probability that a controller of the queue's delay sets.

    target_s: in [1e-5, 1]. update_s: between updates of the probability, in [0.001, 1]. alpha, beta: gains of the delay's distance from the
    target and of its growth, per second, in [0.002, 15]. burst_s: how long a queue that was idle may grow without drops, in [0, 1000]. The
    defaults: [RFC 8033 sec 4.2] (target), [RFC 8033 sec 4.4] (burst), [RFC 8033 sec A] (gains). ecn: packets of an ECN-capable transport
    are marked instead of dropped, while the probability is below 0.1.
    """

    target_s: float = 0.015
    update_s: float = 0.015
    alpha: float = 0.125
    beta: float = 1.25
    burst_s: float = 0.15
    ecn: bool = False

    def __post_init__(self) -> None:
        check_controller("PIE", self.target_s, self.update_s, self.alpha, self.beta)
        if not 0 <= self.burst_s <= MAX_DELAY_S:
            raise ValueError(f"burst_s: from 0 to {MAX_DELAY_S:g} s, got {self.burst_s:g} s")


@dataclass(frozen=True)
class Pi2:
    """PI2 of a queue (the Classic queue of [RFC 9332 sec A]): PIE's controller without its steps; arrivals are dropped with its probability squared.

    Values and ranges as for PIE; the defaults: the formulas of [RFC 9332 sec A.1] (figure 2), for a longest round trip of 0.1 s. ecn: packets of
    ECT(0) are marked instead of dropped, and those of ECT(1) with twice the probability, not squared.
    """

    target_s: float = 0.015
    update_s: float = 0.015
    alpha: float = 0.15
    beta: float = 3.0
    ecn: bool = False

    def __post_init__(self) -> None:
        check_controller("PI2", self.target_s, self.update_s, self.alpha, self.beta)


LOW_LATENCY_QUEUE = 1
"""The priority of DualPI2's low-latency queue; the Classic one has 0 (`p4src/dualpi2.p4`)."""


@dataclass(frozen=True)
class Dualpi2:
    """DualPI2 of a queue [RFC 9332 sec A]: packets of ECT(1) or CE wait in a queue of their own, the low-latency queue, coupled to PI2 of the others.

    target_s, update_s, alpha, beta: of the controller, ranges as for PIE; the defaults are those of the reference implementation
    [RFC 9332 sec A.1], whose update interval is a multiple of 4 ms. Packets of ECT(0) are marked instead of dropped, except in overload.
    min_threshold_s, range_s: low-latency packets are marked, with a likelihood that grows from 0 to 1, from a waiting time of the first on, over
    the second [RFC 9332 sec A.1] figure 5; both in [0, 1000]; a range of 0 is a step. decisions: whether a likelihood becomes marks and drops by
    the RFC's recur(), at even distances, or at random, as in the reference implementation [RFC 9332 sec 2.5.1].

    scheduler: which queue sends next [RFC 9332 sec 4.2.2], weighted round robin (recommended in [RFC 9332 sec A.2]) or a time-shifted FIFO.
    weight: w of the ratio w:1 in which the low-latency and the Classic queue send while both wait, in [1, 10000]; 15 is a Classic weight of 1/16.
    shift_s: of the time-shifted FIFO; a low-latency packet goes first unless a Classic one has waited so much longer, in [0, 1000].
    """

    target_s: float = 0.015
    update_s: float = 0.016
    alpha: float = 0.16
    beta: float = 3.2
    min_threshold_s: float = 0.0008
    range_s: float = 0.0004
    decisions: Literal["recur", "random"] = "recur"
    scheduler: Literal["wrr", "ts-fifo"] = "wrr"
    weight: int = 15
    shift_s: float = 0.05
    ecn: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_controller("DualPI2", self.target_s, self.update_s, self.alpha, self.beta)
        check_delay("min_threshold_s", self.min_threshold_s)
        check_delay("range_s", self.range_s)
        check_delay("shift_s", self.shift_s)
        check_choice("decisions", self.decisions, ("recur", "random"))
        check_choice("scheduler", self.scheduler, ("wrr", "ts-fifo"))
        if not 1 <= self.weight <= 10_000:
            raise ValueError(f"weight: an integer from 1 to 10000, got {self.weight}")


def check_choice(name: str, given: str, known: tuple[str, ...]) -> None:
    """ValueError for a word that is none of those known."""
    if given not in known:
        raise ValueError(f"{name}: give {' or '.join(map(repr, known))}, got {given!r}")


def check_controller(name: str, target_s: float, update_s: float, alpha: float, beta: float) -> None:
    """ValueError for values of a proportional integral controller that its P4 program cannot hold."""
    if not 1e-5 <= target_s <= 1:
        raise ValueError(f"target_s: {name} needs 1e-5 to 1 s, got {target_s:g} s")
    if not 1e-3 <= update_s <= 1:
        raise ValueError(f"update_s: {name} needs 0.001 to 1 s, got {update_s:g} s")
    for key, gain in (("alpha", alpha), ("beta", beta)):
        if not 0.002 <= gain <= _MAX_GAIN:
            raise ValueError(f"{key}: {name} needs 0.002 to {_MAX_GAIN:g} per second, got {gain:g}")


@dataclass(frozen=True)
class Step:
    """Step marking of a queue [RFC 8257 sec 3.1]: packets of an ECN-capable transport are marked, none is dropped.

    threshold_s: a packet is marked that waited longer, in [0, 1000]; 0.001 where neither is given. threshold_packets: and one that met so many
    waiting packets (K), in [1, 2^31).
    """

    threshold_s: float | None = None
    threshold_packets: int | None = None
    ecn: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.threshold_s is None and self.threshold_packets is None:
            object.__setattr__(self, "threshold_s", 0.001)
        if self.threshold_s is not None and not 0 <= self.threshold_s <= MAX_DELAY_S:
            raise ValueError(f"threshold_s: from 0 to {MAX_DELAY_S:g} s, got {self.threshold_s:g} s")
        if self.threshold_packets is not None and not 1 <= self.threshold_packets < 2**31:
            raise ValueError(f"threshold_packets: from 1 to {2**31 - 1}, got {self.threshold_packets}")


def check_red(max_p: float, weight: float, mean_packet_bytes: float) -> None:
    """ValueError for a value of RED outside its range, whatever its thresholds are counted in."""
    if not 0 < max_p <= 1:
        raise ValueError(f"max_p: must be in (0, 1], got {max_p}")
    if not 0 < weight < 1:
        raise ValueError(f"weight: must be in (0, 1), got {weight}")
    if mean_packet_bytes < 1:
        raise ValueError(f"mean_packet_bytes: must be positive, got {mean_packet_bytes}")


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


SCHEMES: dict[
    Literal["red", "codel", "pie", "pi2", "dualpi2", "step"], type[Red] | type[Codel] | type[Pie] | type[Pi2] | type[Dualpi2] | type[Step]
] = {
    "red": Red,
    "codel": Codel,
    "pie": Pie,
    "pi2": Pi2,
    "dualpi2": Dualpi2,
    "step": Step,
}


@dataclass(frozen=True)
class Link:
    """A full-duplex link. Both directions have the same rate, delay and queue.

    ends: two node names, each with a port behind a colon where it matters ("s1:3"); ports not given are numbered in order.
    rate_bps: > 0; left out: the mean of the trace. delay_s: one-way propagation delay, >= 0. queue_packets: waiting packets each sending port holds, > 0.
    queue: "red", "codel", "pie", "pi2", "dualpi2" or "step", with the parameters of that name, or "droptail": only a full queue drops. Left out: the one that is given. A switch
    manages its queues; a host's are drop-tail. loss: part of the frames, drawn at random, that the link loses in each direction, in
    [0, 1). jitter_s: delay drawn from [0, jitter_s] on top, without changing the order. jitter_std_s: instead, the absolute value of a Gaussian of this standard
    deviation, at most three times it [RFC 8868 sec 4.5.3], and no frame comes sooner after the one before than that takes at the link's rate
    [RFC 8868 sec 4.5.2]. framing: what rate_bps counts, whole Ethernet
    frames or the IP datagrams in them. trace: what each direction's capacity follows from the run's beginning on, in place of rate_bps.
    trace_back: what the direction from the second end to the first follows instead.
    """

    ends: tuple[str, str]
    rate_bps: float = OF_THE_TRACE
    delay_s: float = 0.0
    queue_packets: int = 1000
    red: Red | None = None
    codel: Codel | None = None
    pie: Pie | None = None
    pi2: Pi2 | None = None
    dualpi2: Dualpi2 | None = None
    step: Step | None = None
    queue: Discipline | None = None
    loss: float = 0.0
    jitter_s: float = 0.0
    jitter_std_s: float = 0.0
    framing: Literal["ethernet", "ip"] = "ethernet"
    trace: Trace | None = None
    trace_back: Trace | None = None

    def __post_init__(self) -> None:
        if self.trace_back is not None and self.trace is None:
            raise ValueError("trace_back: the way back has a trace, and the way there has none: give 'trace' as well")
        if self.rate_bps is OF_THE_TRACE:
            if self.trace is None:
                raise ValueError("missing key 'rate_bps'")
            object.__setattr__(self, "rate_bps", self.trace.mean_bps())
        discipline = self.queue or next((name for name in SCHEMES if getattr(self, name) is not None), "droptail")
        if discipline not in (*SCHEMES, "droptail"):
            raise ValueError(f"queue: must be {', '.join(map(repr, SCHEMES))} or 'droptail', got {discipline!r}")
        given = [name for name in SCHEMES if getattr(self, name) is not None]
        if self.queue is None and len(given) > 1:
            raise ValueError(f'queue: {given[0]} and {given[1]} are both given: write queue = "{given[0]}" or queue = "{given[1]}"')
        object.__setattr__(self, "queue", discipline)
        for name, scheme in SCHEMES.items():
            object.__setattr__(self, name, (getattr(self, name) or scheme()) if name == discipline else None)
        if self.framing not in ("ethernet", "ip"):
            raise ValueError(f"framing: must be 'ethernet' or 'ip', got {self.framing!r}")
        if not 0 <= self.loss < 1:
            raise ValueError(f"loss: must be a probability in [0, 1), got {self.loss:g}")
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

    @property
    def marks(self) -> bool:
        """Whether its queues mark packets by ECN."""
        scheme = self.red or self.codel or self.pie or self.pi2 or self.dualpi2 or self.step
        return scheme is not None and scheme.ecn

    @property
    def mean_jitter_s(self) -> float:
        """Of a frame before which no other is held back."""
        return self.jitter_s / 2 + _MEAN_STDS * self.jitter_std_s

    @property
    def priorities(self) -> int:
        """Queues of each port, the highest the most urgent."""
        return LOW_LATENCY_QUEUE + 1 if self.dualpi2 else 1

    @property
    def uncounted_bytes(self) -> int:
        """Of each frame, the bytes that rate_bps does not count."""
        return ETHERNET_BYTES if self.framing == "ip" else 0


@dataclass(frozen=True)
class Port:
    """One end of a link: what leaves here goes to `peer`. first: the link names this end first."""

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
        return self.link.trace if self.first else self.link.trace_back or self.link.trace


@dataclass(frozen=True)
class Topology:
    """Checked when constructed: TopologyError names the fault and its place."""

    nodes: tuple[Node, ...]
    links: tuple[Link, ...]

    def __post_init__(self) -> None:
        self._check_nodes()
        self.ports()
        self._check_hosts()
        self._check_connected()

    @cached_property
    def worked_out(self) -> dict[tuple[str, ...], Any]:
        """What others compute from nodes and links, which never change: routes and paths (`fairlane.topologies.addressing`)."""
        return {}

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(n.name for n in self.nodes if n.kind == "host")

    @property
    def switches(self) -> tuple[str, ...]:
        return tuple(n.name for n in self.nodes if n.kind == "switch")

    def ports(self) -> dict[str, tuple[Port, ...]]:
        """The ports of each node, by number: host ports count from 0, switch ports from 1."""
        return self._ports

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
        ports: dict[str, list[Port]] = {n.name: [] for n in self.nodes}
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
                numbers.append(number)
            (a, _), (b, _) = ends
            ports[a].append(Port(a, numbers[0], b, numbers[1], self.links[i], i))
            ports[b].append(Port(b, numbers[1], a, numbers[0], self.links[i], i, first=False))
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
                f"{len(switches)} switches: a network has at most {MAX_SWITCHES}, because each has a subnet 10.0.N.0/24",
                ("nodes", switches[MAX_SWITCHES]),
            )

    def _check_hosts(self) -> None:
        ports, switches = self.ports(), set(self.switches)
        attached: dict[str, int] = defaultdict(int)
        for i, node in enumerate(self.nodes):
            if node.kind == "host":
                count = len(ports[node.name])
                if count != 1:
                    raise TopologyError(f"host {node.name} has {count} links; a host has exactly one", ("nodes", i))
                if ports[node.name][0].peer not in switches:
                    raise TopologyError(
                        f"host {node.name} is linked to host {ports[node.name][0].peer}; hosts link to switches", ("nodes", i)
                    )
                attached[ports[node.name][0].peer] += 1
                if attached[ports[node.name][0].peer] > MAX_HOSTS_OF_A_SWITCH:
                    raise TopologyError(
                        f"{ports[node.name][0].peer} has more than {MAX_HOSTS_OF_A_SWITCH} hosts: its subnet has no further address",
                        ("nodes", i),
                    )

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


def _split(end: str, index: int) -> tuple[str, int | None]:
    name, colon, port = end.partition(":")
    if not colon:
        return name, None
    if not port.isascii() or not port.isdigit() or len(port) > len(str(MAX_PORT)):
        raise TopologyError(f"link end {end!r}: write a node, or a node and its port as in 's1:3'", ("links", index))
    return name, int(port)
