"""What an experiment file says, as plain data. Units are in the names; ranges are checked when the data is made."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal

from fairlane.experiments.commands import CommandSettings
from fairlane.experiments.kinds import AlgorithmSettings, FlowSettings, TcpSettings
from fairlane.experiments.workloads import Workload
from fairlane.hosts.algorithms import scheme_of
from fairlane.inputs import schema
from fairlane.schemes import registry
from fairlane.schemes.base import Parameters, Scheme
from fairlane.topologies import impairments
from fairlane.topologies.impairments import Gemodel
from fairlane.topologies.model import MAX_DURATION_S, Port, Topology, check_delay, check_jitter, check_rate

MAX_PORT_OFFSET = 60_000
"""Above TCP's first port, 5201, there are so many."""
SAMPLED_S = 0.1
"""Between two periodic records of what ports and receivers have counted."""
LONG_S = 1500.0
"""Up to here they are read as often; of longer runs as often as of this one, so that memory does not grow with time."""
LEAST_BINS = 5
"""Of a table. A run with fewer of the usual length has shorter ones."""
MOST_BINS = 100_000


def _bin_s(usual_s: float, duration_s: float) -> float:
    """The usual length, or 1, 2 or 5 times a power of ten that gives the least number of bins."""
    most_s = duration_s / LEAST_BINS * (1 + 1e-9)
    if usual_s <= most_s:
        return usual_s
    exponent = Decimal(most_s).adjusted()
    # Written down and read again, it is the nearest number to its decimals.
    return max(value for digit in (1, 2, 5) if (value := float(f"{digit}e{exponent}")) <= most_s)


@dataclass(frozen=True)
class Paper:
    """The figure's place in the paper, and the paper's findings there (shown with the result)."""

    reference: str
    section: str
    figure: str
    reports: tuple[str, ...] = ()


@dataclass(frozen=True)
class Open:
    """A parameter that the paper leaves open: which value was taken, and why. `effect`: how the result moves with it."""

    parameter: str
    reason: str
    effect: str = ""


@dataclass(frozen=True)
class Control:
    """Settings of the switches' control plane. plane: Python file with a control plane of one's own for `program`, in place of Fairlane's controller; ""
    for none (docs/own-program.md). utilisation_target: U_l in (0, 1]. interval_s: observation interval, > 0. counter: "exact", a digest
    for each connection, or "sketch", an estimate that costs the same for any number of them (docs/connection-counter.md). protection: the
    switches limit a connection that keeps sending more than its share (docs/flow-protection.md). source_guard: they believe a source address
    only where its host's packets come in (docs/threats.md).
    multicast_router_links: "s1->s2", a direction of a link to which packets to every group go, with or without members, as on a sender's
    own link. plain_switches: they forward and manage queues, and leave R_d and U in senders' control packets as they are [ALS sec 3.5], and give
    no explicit feedback to data packets. reroute_s: so long after a link fails, or works again, the controller's new routes leave for the switches, >= 0. schemes: the parameters of those that are at every port where a flow asks for them, each under the
    scheme's name, as [control.rcp]."""

    program: str = "p4src/als.p4"
    plane: str = ""
    utilisation_target: float = 0.9
    interval_s: float = 1.0
    counter: Literal["exact", "sketch"] = "exact"
    protection: bool = False
    source_guard: bool = False
    multicast_router_links: tuple[str, ...] = ()
    plain_switches: tuple[str, ...] = ()
    reroute_s: float = 0.05
    schemes: tuple[Parameters, ...] = field(default=(), metadata={schema.TABLES: registry.parameters_everywhere})
    __pydantic_config__ = {"arbitrary_types_allowed": True}  # for records that are read back: `schemes` are objects then

    def __post_init__(self) -> None:
        if not 0 < self.utilisation_target <= 1:
            raise ValueError(f"utilisation_target: must be in (0, 1], got {self.utilisation_target:g}")
        if not self.interval_s > 0:
            raise ValueError(f"interval_s: must be positive, got {self.interval_s:g} s")
        check_delay("reroute_s", self.reroute_s)
        given = {one.scheme.name: one for one in self.schemes}
        every = (given.get(name) or kind() for name, kind in registry.parameters_everywhere().items())
        object.__setattr__(self, "schemes", tuple(every))

    @property
    def defines(self) -> tuple[str, ...]:
        """Macros that the P4 program is compiled with, besides those that the network wants (`Experiment.defines`)."""
        return ("CONNECTION_SKETCH",) if self.counter == "sketch" else ()


@dataclass(frozen=True)
class FlowGroup:
    """`count` flows of one kind. The first starts at start_s, each later one join_interval_s after the one before; start_jitter_s: each
    later by a part of this that the seed draws. stop_s: when all of them stop; None: at the end of the run.

    hosts: [sender, receiver] of each flow, or one pair for all of them; when left out, the next free pairs of a dumbbell or chain in order. A layered kind may
    have several receivers, [sender, receiver, receiver]; receiver_start_s: when each of them joins, in their order; left out: with
    the sender. receivers: of a layered kind, instead of hosts: the topology's first host sends to so many hosts that follow it, as
    from the root of a tree. parameters, packet_bytes: of this group; they override the table of its kind (`fairlane.experiments.kinds`).
    after: a flow with a file, or a group of so many, that this flow waits for: it starts after_s after that one is complete, and not before start_s.
    """

    name: str
    kind: str
    count: int = 1
    start_s: float = 0.0
    join_interval_s: float = 0.0
    start_jitter_s: float = 0.0
    stop_s: float | None = None
    hosts: tuple[tuple[str, ...], ...] = ()
    receivers: int | None = None
    receiver_start_s: tuple[float, ...] = ()
    packet_bytes: int | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    after: str = ""
    after_s: float = 0.0

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", self.name):
            raise ValueError(f"name: use letters, digits, '_', '.' and '-', because records are files of that name; got {self.name!r}")
        if self.after_s and not self.after:
            raise ValueError("after_s: belongs to after, the flow to wait for")
        if self.count < 1:
            raise ValueError(f"count: at least 1, got {self.count}")
        for name in ("start_s", "join_interval_s", "start_jitter_s", "after_s"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ValueError(f"{name}: must not be negative, got {getattr(self, name):g} s")
        for start_s in self.receiver_start_s:
            if not 0 <= start_s < float("inf"):
                raise ValueError(f"receiver_start_s: must not be negative, got {start_s:g} s")
        if self.stop_s is not None and not self.last_start_s < self.stop_s < float("inf"):
            raise ValueError(
                f"stop_s: the last of {self.count} flows may start as late as {self.last_start_s:g} s, but flows stop at {self.stop_s:g} s"
            )
        if self.hosts and len(self.hosts) not in (1, self.count):
            raise ValueError(f"hosts: {len(self.hosts)} pairs for {self.count} flows: give one for each, or one for all")
        if self.receivers is not None and (self.receivers < 1 or self.hosts or self.count > 1):
            raise ValueError(f"receivers: give at least 1, for one flow and without hosts; got {self.receivers}")
        if self.receiver_start_s and self.receivers not in (None, len(self.receiver_start_s)):
            raise ValueError(f"receiver_start_s: {len(self.receiver_start_s)} times for {self.receivers} receivers")
        if (
            self.receiver_start_s
            and self.receivers is None
            and any(len(ends) - 1 != len(self.receiver_start_s) for ends in self.hosts or ((),))
        ):
            raise ValueError(f"receiver_start_s: {len(self.receiver_start_s)} times, but another number of receivers in hosts")

    @property
    def last_start_s(self) -> float:
        """The latest that the last of the group may start."""
        return self.start_s + (self.count - 1) * self.join_interval_s + self.start_jitter_s


@dataclass(frozen=True)
class Flow:
    """One flow: from `sender` to `receiver` from start_s to stop_s, or to the end of the run. A layered one has further receivers in
    `receivers`, the first included, and the time at which each joins in `receiver_start_s`. port_offset: even, from the first UDP and TCP port of flows:
    flows between the same two hosts, in either direction, have different ones. after: flows that it waits for: it starts after_s seconds after the last of
    them is complete, and not before start_s. answers: it goes over the connection of the flow that it waits for, in the other direction.
    query: of a workload that asks, the query that the flow is a part of."""

    name: str
    kind: str
    sender: str
    receiver: str
    start_s: float
    settings: FlowSettings
    stop_s: float | None = None
    receivers: tuple[str, ...] = ()
    receiver_start_s: tuple[float, ...] = ()
    port_offset: int = 0
    after: tuple[str, ...] = ()
    after_s: float = 0.0
    answers: bool = False
    query: str = ""

    @property
    def all_receivers(self) -> tuple[str, ...]:
        return self.receivers or (self.receiver,)

    @property
    def algorithm_settings(self) -> AlgorithmSettings:
        """TypeError: its kind has no algorithm."""
        if not isinstance(self.settings, AlgorithmSettings):
            raise TypeError(f"{self.kind} has no algorithm")
        return self.settings

    @property
    def tcp_settings(self) -> TcpSettings:
        """TypeError: its kind is not TCP."""
        if not isinstance(self.settings, TcpSettings):
            raise TypeError(f"{self.kind} is not TCP")
        return self.settings

    @property
    def shown_kind(self) -> str:
        """In tables and plots."""
        return f"{self.kind} {self.settings.label}" if isinstance(self.settings, CommandSettings) else self.kind

    @property
    def commands(self) -> CommandSettings | None:
        """Of a flow whose ends are real programs."""
        return self.settings if isinstance(self.settings, CommandSettings) else None


@dataclass(frozen=True)
class Change:
    """A change during the run. at_s: seconds since the run began. link: a direction of a link, "s1->s2". up: both directions of the link fail (False), or work again
    (True); routes follow after `Control.reroute_s`. Values that are None
    stay: rate_bps; delay_s: one way; loss: part of the frames lost, in [0, 1), or gemodel, in bursts; jitter_s or jitter_std_s: on top of delay_s; reorder,
    reorder_delay_s, duplicate, corrupt: as of a `Link`. Or switch, and als: whether its ports write their
    fair rates into senders' control packets from then on."""

    at_s: float
    link: str = ""
    rate_bps: float | None = None
    delay_s: float | None = None
    loss: float | None = None
    jitter_s: float | None = None
    jitter_std_s: float | None = None
    switch: str = ""
    als: bool | None = None
    gemodel: Gemodel | None = field(default=None, metadata={schema.OPTIONAL: True})
    reorder: float | None = field(default=None, metadata={schema.OPTIONAL: True})
    reorder_delay_s: float | None = field(default=None, metadata={schema.OPTIONAL: True})
    duplicate: float | None = field(default=None, metadata={schema.OPTIONAL: True})
    corrupt: float | None = field(default=None, metadata={schema.OPTIONAL: True})
    up: bool | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.at_s < float("inf"):
            raise ValueError(f"at_s: must not be negative, got {self.at_s:g} s")
        if self.rate_bps is not None:
            check_rate("rate_bps", self.rate_bps)
        if self.delay_s is not None:
            check_delay("delay_s", self.delay_s)
        impairments.check_loss(self.loss or 0.0, self.gemodel)
        impairments.check(self.reorder or 0.0, self.reorder_delay_s, self.duplicate or 0.0, self.corrupt or 0.0)
        check_jitter(self.jitter_s or 0.0, self.jitter_std_s or 0.0)
        of_a_link = (self.rate_bps, self.delay_s, self.jitter_s, self.jitter_std_s, self.up, *self.losing, *self.impairing)
        if bool(self.link) == bool(self.switch):
            raise ValueError("give either link or switch")
        if self.switch and (self.als is None or any(value is not None for value in of_a_link)):
            raise ValueError("switch: only als of a switch can change: give als = true or als = false, and no key of a link")
        if self.link and self.als is not None:
            raise ValueError("als: belongs to a switch: give switch instead of link")
        if self.link and all(value is None for value in of_a_link):
            raise ValueError(
                "nothing changes: give rate_bps, delay_s, loss, gemodel, jitter_s, jitter_std_s, reorder, reorder_delay_s, duplicate, corrupt or up"
            )

    @property
    def losing(self) -> tuple[float | None, Gemodel | None]:
        return self.loss, self.gemodel

    @property
    def impairing(self) -> tuple[float | None, ...]:
        return self.reorder, self.reorder_delay_s, self.duplicate, self.corrupt


@dataclass(frozen=True)
class Check:
    """An expected outcome: low <= metric <= high. `paper`: what the paper says of it."""

    name: str
    metric: str
    low: float = float("-inf")
    high: float = float("inf")
    paper: str = ""

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError(f"low: {self.low:g} is above high, {self.high:g}")
        if self.low == float("-inf") and self.high == float("inf"):
            raise ValueError("low: a check without low and high cannot fail")


@dataclass(frozen=True)
class Settings:
    """The keys of an experiment file, before topology and flows are computed. bottleneck: the output port that the
    report follows, as "s1->s2". window_from: start of the window of all figures, as a fraction of the duration. link_bin_s, flow_bin_s: lengths of the
    bins of links.csv and flows.csv; None: see `Experiment`. Tables of flow
    kinds (`fairlane.experiments.kinds`) are next to these keys."""

    title: str
    bottleneck: str
    topology: dict[str, Any]
    flows: tuple[FlowGroup, ...] = ()
    workloads: tuple[Workload, ...] = ()
    paper: Paper | None = None
    changes: tuple[Change, ...] = ()
    checks: tuple[Check, ...] = ()
    open: tuple[Open, ...] = ()
    inherits: str = ""
    duration_s: float = 60.0
    seed: int = 1
    window_from: float = 0.5
    link_bin_s: float | None = None
    flow_bin_s: float | None = None
    control: Control = field(default_factory=Control)

    def __post_init__(self) -> None:
        if not 0 < self.duration_s <= MAX_DURATION_S:
            raise ValueError(f"duration_s: must be positive and at most {MAX_DURATION_S:g} s, got {self.duration_s:g} s")
        if not 0 <= self.window_from < 1:
            raise ValueError(f"window_from: must be in [0, 1), got {self.window_from:g}")
        for name in ("link_bin_s", "flow_bin_s"):
            bin_s = getattr(self, name)
            if bin_s is not None and not self.duration_s / MOST_BINS <= bin_s < float("inf"):
                raise ValueError(
                    f"{name}: {bin_s:g} s would make more than {MOST_BINS} bins: give {self.duration_s / MOST_BINS:g} s or more"
                )
        if not 0 <= self.seed < 2**32:
            raise ValueError(f"seed: must be in 0 to 2^32 - 1, got {self.seed}")

    @property
    def groups(self) -> dict[str, str]:
        """The kind of each group of flows and each workload, by name."""
        return {group.name: group.kind for group in self.flows} | {workload.name: workload.kind for workload in self.workloads}


@dataclass(frozen=True)
class Experiment:
    """Everything a run needs to know. id: the file's name. bottleneck: switch and its output port number. changes: by time, those
    within the run; each with the node and port number that sends on its link, of a switch's own change the switch and -1."""

    id: str
    settings: Settings
    topology: Topology
    flows: tuple[Flow, ...]
    bottleneck: tuple[str, int]
    duration_s: float
    seed: int
    changes: tuple[tuple[Change, str, int], ...] = ()

    def flow(self, name: str) -> Flow:
        """The flow of that name; KeyError for an unknown name."""
        for flow in self.flows:
            if flow.name == name:
                return flow
        raise KeyError(name)

    def link_rates_bps(self, port: Port) -> list[tuple[float, float]]:
        """What the link of an output port has from each time on, from the run's beginning; of a trace, the mean of each observation interval."""
        if port.trace is not None:
            return port.trace.means_bps(self.settings.control.interval_s, self.duration_s)
        rates = [(0.0, port.link.rate_bps)]
        rates += [(c.at_s, c.rate_bps) for c, node, number in self.changes if (node, number) == (port.node, port.number) and c.rate_bps]
        return rates

    @property
    def everywhere(self) -> tuple[Parameters, ...]:
        """The parameters of schemes that flows ask for, or settings of the control plane, which every port has."""
        control = self.settings.control
        names = {scheme_of(flow.kind) for flow in self.flows}
        asked = (one for name, one in registry.SCHEMES.items() if name in names or (one.asked_by and getattr(control, one.asked_by)))
        given = {one.scheme.name: one for one in control.schemes}
        return tuple(given.get(scheme.name) or scheme.parameters() for scheme in registry.in_order(asked))

    @property
    def defines(self) -> tuple[str, ...]:
        """Macros that the P4 program is compiled with, beside its choice of schemes."""
        links = (link.aqm for link in self.topology.links if link.aqm is not None)
        of_schemes = {macro for parameters in (*links, *self.everywhere) for macro in parameters.macros}
        of_ip = ("IPV6",) if self.topology.ip == 6 else ()
        return (*self.settings.control.defines, *of_ip, *sorted(of_schemes))

    @property
    def schemes(self) -> list[Scheme]:
        """Those that the P4 program needs: of its links, those that flows ask for, and those of every program."""
        links = (link.aqm for link in self.topology.links if link.aqm is not None)
        return registry.in_order((*registry.standing(), *(parameters.scheme for parameters in (*links, *self.everywhere))))

    @property
    def corrupts(self) -> bool:
        """Whether a link corrupts frames at some time."""
        return any(link.corrupt for link in self.topology.directions) or any(change.corrupt for change, _, _ in self.changes)

    @property
    def link_bin_s(self) -> float:
        """Length of the bins of links.csv: 0.1 s, longer in runs of more than `LONG_S`, shorter in runs that have few of them."""
        return self.settings.link_bin_s or _bin_s(0.1 * math.ceil(self.duration_s / LONG_S), self.duration_s)

    @property
    def flow_bin_s(self) -> float:
        """The same of flows.csv: 1 s."""
        return self.settings.flow_bin_s or _bin_s(1.0, self.duration_s)

    def bin_edges_s(self, bin_s: float) -> list[float]:
        """From the run's begin on; the last bin ends where the run ends, and may be shorter."""
        whole = math.ceil(self.duration_s / bin_s * (1 - 1e-9))
        return [*(i * bin_s for i in range(whole)), float(self.duration_s)]

    @property
    def sampled_s(self) -> list[float]:
        """Instants at which the sums of ports and flows are to be recorded, beside each 0.1 s: the run's begin and end, the window's, and the edges of bins
        that are shorter than that."""
        short = {at for bin_s in (self.link_bin_s, self.flow_bin_s) if bin_s < SAMPLED_S for at in self.bin_edges_s(bin_s)}
        return sorted({0.0, *self.window_s, *short})

    @property
    def window_s(self) -> tuple[float, float]:
        return self.settings.window_from * self.duration_s, self.duration_s
