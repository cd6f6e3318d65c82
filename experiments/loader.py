"""Reads experiment files: inheritance, checks, and the resulting topology and flows."""

from __future__ import annotations

import dataclasses
import math
import os
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from fairlane.arithmetic import total
from fairlane.experiments import commands, fabrics, kinds, paths, sweep, workloads
from fairlane.experiments.model import MAX_PORT_OFFSET, Change, Experiment, Flow, FlowGroup, Settings
from fairlane.experiments.workloads import Workload
from fairlane.hosts.algorithms import ALGORITHMS, scheme_of
from fairlane.hosts.arguments import MIN_PACKET_BYTES
from fairlane.hosts.records import IP_HEADER_BYTES
from fairlane.inputs import located_toml, schema
from fairlane.inputs.located_toml import ConfigError, Document, KeyPath
from fairlane.schemes import registry
from fairlane.topologies import addressing
from fairlane.topologies import load as topology_load
from fairlane.topologies.model import ETHERNET_BYTES, MAX_DURATION_S, MAX_HOPS, Port, Topology, machine

FOLDER = Path(__file__).parent
PROGRAM, PLANE = "program", "plane"
OWN_FILES = (PROGRAM, PLANE)
"""Keys of [control] that name files: a P4 program, and the control plane of one."""
LaidOver: TypeAlias = Callable[[Document, Sequence[str]], Document]
"""A fabric's own keys laid over a file, and its sweep narrowed."""
# Metric names that a check may use: fairlane.results.metrics and fairlane.results.metrics_layers compute them.
METRICS = (
    "als_mean_loss_fraction",
    "bottleneck_utilisation",
    "connections_exact_fraction",
    "desired_rate_within_fair_rate_fraction",
    "fair_rate_delay_s",
    "max_min_reached_10_percent_s",
    "max_min_reached_s",
    "max_min_share_error",
    "tcp_als_rate_ratio",
    "probing_joins",
    "rtcp_bandwidth_fraction",
    "rtcp_interval_over_rule",
    "rtcp_interval_rule_s",
    "rtcp_interval_s",
    *(f"{layer}_layer_{when}_kbps" for layer in ("base", "upper") for when in ("before", "after")),
    *(f"layers_of_receiver_{receiver}_{when}" for receiver in range(3) for when in ("before", "after")),
    *(f"{name}_als_tcp_ratio_{when}" for name in ("lowest", "highest") for when in ("before", "after")),
)
OF_CONTROLLER = ("connections_exact_fraction", "desired_rate_within_fair_rate_fraction", "fair_rate_delay_s")
"""Those that come from records of Fairlane's controller."""


def names() -> list[str]:
    """Ids of the experiments at hand; files whose name begins with an underscore are for others to inherit."""
    return sorted(p.stem for p in FOLDER.glob("*.toml") if not p.name.startswith("_"))


def find(name: str) -> Path:
    """The file of an experiment id, or a path to a file elsewhere. ConfigError names the nearest id."""
    if name.endswith(".toml"):
        path = Path(name)
        if not path.is_file():
            raise ConfigError(f"{name}: no such file")
        return path
    path = FOLDER / f"{name}.toml"
    if name not in names():
        raise ConfigError(f"unknown experiment {name!r}{schema.nearest(name, names())}")
    return path


def load(
    path: Path,
    duration_s: float | None = None,
    seed: int | None = None,
    at: Sequence[str] = (),
    laid_over: LaidOver = sweep.narrowed,
    ip: int | None = None,
) -> Experiment:
    """Read an experiment; `duration_s`, `seed` and `ip`, the version of IP, replace the file's. at: "AXIS=VALUE" for axes of its sweep, whose first values are
    taken otherwise. laid_over: the file as its fabric runs it (`Fabric.laid_over`). ConfigError names file, line and key."""
    document = read(path)
    if ip is not None:
        document = located_toml.parse(f"topology.ip = {ip}", f"--ip {ip}").over(document)
    check_mininet(document, path.stem)
    return from_document(sweep.plain(laid_over(document, at)), path.stem, duration_s, seed)


def check_mininet(document: Document, name: str) -> None:
    """Every point that a file's [mininet] makes of it, whether it is to run there or not."""
    if sweep.MININET in document.values:
        for point in sweep.expand(sweep.without(fabrics.laid_over(document), sweep.REPORT_KEYS)).points:
            from_document(point.document, name)


def from_document(document: Document, name: str, duration_s: float | None = None, seed: int | None = None) -> Experiment:
    """The experiment that a document describes, inheritance done; otherwise as `load`. name: its id."""
    settings = schema.build(Settings, document, others=kinds.tables())
    kinds.check_tables(document)
    _check_schedule(settings, document)
    if duration_s is not None or seed is not None:
        try:
            settings = dataclasses.replace(
                settings,
                duration_s=settings.duration_s if duration_s is None else check_duration(duration_s),
                seed=settings.seed if seed is None else seed,
            )
        except ValueError as error:
            raise ConfigError(str(error)) from error
    settings = _with_own_files(settings, document)
    topology = routed(topology_load.from_document(document, ("topology",)), settings)
    for i, switch in enumerate(settings.control.plain_switches):
        _check_switch(switch, topology, document, ("control", "plain_switches", i))
    flows = _flows(settings, topology, document)
    for i, check in enumerate(settings.checks):
        if check.metric not in METRICS:
            raise document.error(("checks", i, "metric"), f"unknown metric {check.metric!r}{schema.nearest(check.metric, METRICS)}")
    return Experiment(
        name,
        settings,
        topology,
        flows,
        _bottleneck(settings, topology, document),
        settings.duration_s,
        settings.seed,
        _changes(settings, topology, document),
    )


def routed(topology: Topology, settings: Settings) -> Topology:
    """With a control plane of one's own, a network has one way between two switches unless its file says otherwise: that is what `Switch.toward` gives it."""
    single = settings.control.plane and "routing" not in settings.topology and topology.routing != "single"
    return dataclasses.replace(topology, routing="single") if single else topology


def _with_own_files(settings: Settings, document: Document) -> Settings:
    """The same with the places of files that [control] names. ConfigError: there is no such file."""
    found: dict[str, Any] = {key: str(path) for key in OWN_FILES if (path := own_file_of(document, key)) is not None}
    return dataclasses.replace(settings, control=dataclasses.replace(settings.control, **found)) if found else settings


def own_file_of(document: Document, key: str) -> Path | None:
    """A file of one's own that a document's [control] names under a key of `OWN_FILES`: beside the document's file, or in the current folder; None: no
    file, or a program of Fairlane's. ConfigError: there is no such file."""
    control = document.values.get("control")
    name = control.get(key) if isinstance(control, dict) else None
    if not isinstance(name, str) or (key == PLANE and not name):
        return None
    if key == PROGRAM and not Path(name).is_absolute() and _is_file(FOLDER.parent / name):
        return None
    beside = Path(document.place(("control", key))[0]).parent / name
    found = next((path for path in (beside, Path(name)) if _is_file(path)), None)
    if found is None:
        more = "; Fairlane's own are p4src/als.p4 and others of p4src/" if key == PROGRAM else ": give a Python file (docs/own-program.md)"
        raise document.error(("control", key), f"no file {beside}{more}")
    return found


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name that no file can have
        return False


def _check_schedule(settings: Settings, document: Document) -> None:
    """Every flow starts within the file's own duration, and every change is in it; a shorter --duration may leave some out."""
    for i, group in enumerate(settings.flows):
        if group.last_start_s >= settings.duration_s:
            keys = ("start_s", *(k for k in ("join_interval_s", "start_jitter_s") if group.start_s < settings.duration_s))
            key = next((k for k in reversed(keys) if k in document.values["flows"][i]), None)
            raise document.error(
                ("flows", i, key) if key else ("flows", i),
                f"the last of {group.count} flows starts at {group.last_start_s:g} s, after the run's end at {settings.duration_s:g} s",
            )
        for start_s in group.receiver_start_s:
            if start_s >= settings.duration_s:
                raise document.error(
                    ("flows", i, "receiver_start_s"), f"a receiver joins at {start_s:g} s, after the run's end at {settings.duration_s:g} s"
                )
    for i, change in enumerate(settings.changes):
        if change.at_s >= settings.duration_s:
            raise document.error(("changes", i, "at_s"), f"{change.at_s:g} s is after the run's end at {settings.duration_s:g} s")


def check_duration(duration_s: float) -> float:
    """ConfigError unless it is a positive number of seconds, not above MAX_DURATION_S."""
    if not 0 < duration_s <= MAX_DURATION_S:
        raise ConfigError(f"--duration {duration_s:g}: give a positive number of seconds, at most {MAX_DURATION_S:g}")
    return duration_s


def read(path: Path) -> Document:
    """A file merged over the files that it inherits from."""
    return _with_ancestors(path)


def _with_ancestors(path: Path, seen: tuple[Path, ...] = ()) -> Document:
    document = located_toml.read(path)
    parent = document.values.get("inherits", "")
    if not isinstance(parent, str) or not parent:
        return document
    parent_path = path.parent / f"{parent}.toml"
    if parent_path in (*seen, path):
        raise document.error(("inherits",), f"{parent!r} inherits from this file in turn")
    if not parent_path.is_file():
        raise document.error(("inherits",), f"no file {parent_path}")
    return document.over(_with_ancestors(parent_path, (*seen, path)))


def _flows(settings: Settings, topology: Topology, document: Document) -> tuple[Flow, ...]:
    hosts = topology.machines
    known = dict.fromkeys(topology.hosts)
    # Builders put all senders before all receivers.
    free = list(zip(hosts[: len(hosts) // 2], hosts[len(hosts) // 2 :]))
    found: list[tuple[int, int, tuple[str, ...]]] = []
    for i, group in enumerate(settings.flows):
        where = ("flows", i)
        if group.kind not in kinds.names():
            raise document.error((*where, "kind"), kinds.unknown(group.kind))
        _check_scheme(group.kind, document, (*where, "kind"))
        for n in range(group.count):
            if group.hosts:
                at = n if len(group.hosts) > 1 else 0
                ends = group.hosts[at]
                _check_ends(group, ends, known, document, (*where, "hosts", at))
            elif group.receivers is not None:
                ends = hosts[: 1 + group.receivers]
                if group.receivers >= len(hosts):
                    raise document.error(
                        (*where, "receivers"),
                        f"{group.receivers} receivers and a sender on {len(hosts)} hosts: give the topology more hosts",
                    )
                _check_ends(group, ends, known, document, (*where, "receivers"))
            elif free:
                ends = free.pop(0)
            else:
                raise document.error((*where, "count"), f"more flows than the {len(hosts) // 2} pairs of hosts")
            found.append((i, n, ends))
    _check_groups(settings, document)
    ports = Ports()
    offsets = []
    for i, _, (sender, *receivers) in found:
        try:
            offsets.append(ports.take(sender, receivers))
        except ValueError as error:
            raise document.error(("flows", i), str(error)) from error
    taken = ways([(settings.flows[i].kind, ends, offset) for (i, _, ends), offset in zip(found, offsets)], topology, settings.seed)
    # Flows of a group on ways of the same rates share their settings.
    made: dict[tuple[int, kinds.Way], kinds.FlowSettings] = {}
    flows: list[Flow] = []
    for (i, n, (sender, *receivers)), way, port_offset in zip(found, taken, offsets):
        group = settings.flows[i]
        if (i, way) not in made:
            made[i, way] = _of_group(kinds.settings(document, group.kind, ("flows", i), way), group, document, ("flows", i))
        name = _flow_name(group, n)
        jitter_s = random.Random(f"{settings.seed}/start/{name}").random() * group.start_jitter_s if group.start_jitter_s else 0.0
        start_s = group.start_s + n * group.join_interval_s + jitter_s
        many = len(receivers) > 1 or bool(group.receiver_start_s)
        joins = (group.receiver_start_s or (start_s,) * len(receivers)) if many else ()
        flows.append(
            Flow(
                name,
                group.kind,
                sender,
                receivers[0],
                start_s,
                made[i, way],
                group.stop_s,
                tuple(receivers) if many else (),
                joins,
                port_offset,
            )
        )
    flows = _with_order(flows, settings, document)
    for i, workload in enumerate(settings.workloads):
        flows += _of_workload(settings, workload, topology, document, ("workloads", i), ports)
    _check_distinct(flows, document)
    _check_commands(flows, document)
    _check_ip(flows, topology, document)
    _check_lengths(flows, topology, settings.seed, document)
    return tuple(flows)


def _with_order(flows: list[Flow], settings: Settings, document: Document) -> list[Flow]:
    """Flows that wait for others, each with those of a group before its own."""
    if not any(group.after for group in settings.flows):
        return flows
    of_group: dict[str, list[Flow]] = {}
    known: dict[str, Flow] = {}
    made = []
    at = 0
    for i, group in enumerate(settings.flows):
        own = flows[at : at + group.count]
        at += group.count
        if group.after:
            where = ("flows", i, "after")
            others = of_group.get(group.after) or ([known[group.after]] * group.count if group.after in known else [])
            if not others:
                raise document.error(where, f"no flow {group.after!r} before this one{schema.nearest(group.after, known)}")
            if len(others) not in (1, group.count):
                raise document.error(
                    where, f"{group.after} has {len(others)} flows, and {group.name} {group.count}: give one of them, or as many"
                )
            others = others * group.count if len(others) == 1 else others
            for flow, other in zip(own, others):
                _check_after(flow, other, document, where)
            own = [dataclasses.replace(flow, after=(other.name,), after_s=group.after_s) for flow, other in zip(own, others)]
        of_group[group.name] = own
        known |= {flow.name: flow for flow in own}
        made += own
    return made


def _check_after(flow: Flow, other: Flow, document: Document, where: KeyPath) -> None:
    if not isinstance(flow.settings, kinds.TcpSettings):
        raise document.error(where, f"{flow.kind} cannot wait for another flow: only kinds of TCP can")
    if not isinstance(other.settings, kinds.TcpSettings) or other.settings.file_bytes is None:
        raise document.error(where, f"{other.name} has no end to wait for: give it a kind of TCP and file_bytes")
    if flow.sender not in (other.sender, other.receiver):
        raise document.error(
            where,
            f"{flow.sender} learns nothing of the end of {other.name}, from {other.sender} to {other.receiver}: a flow waits for one of its sender's",
        )


def _of_group(settings: kinds.FlowSettings, group: FlowGroup, document: Document, where: KeyPath) -> kinds.FlowSettings:
    """Commands with a label, and with the folder of the file that describes them."""
    if not isinstance(settings, commands.CommandSettings):
        return settings
    folder = Path(document.place((*where, "kind"))[0]).parent
    here, there = Path.cwd(), folder.absolute()
    name = os.path.relpath(there) if there.is_relative_to(here) else str(there)
    return dataclasses.replace(
        settings,
        sender=tuple(commands.at_home(argument, name) for argument in settings.sender),
        receiver=tuple(commands.at_home(argument, name) for argument in settings.receiver),
        label=settings.label or group.name,
    )


def _check_commands(flows: list[Flow], document: Document) -> None:
    """Packets of programs without ports belong to one of them."""
    seen: dict[tuple[str, str], str] = {}
    for flow in flows:
        if flow.commands is not None and not flow.commands.has_ports:
            other = seen.setdefault((flow.sender, flow.receiver), flow.name)
            if other != flow.name:
                raise document.error(
                    ("flows",),
                    f"{other} and {flow.name}: commands without {{port}} between the same hosts, whose packets nobody can tell apart: give one of "
                    "them {port}, or other hosts",
                )


def _check_ip(flows: list[Flow], topology: Topology, document: Document) -> None:
    """Over IPv6 headers are longer, and there are no groups."""
    if topology.ip == 4:
        return
    where = ("topology", "ip")
    least = MIN_PACKET_BYTES + IP_HEADER_BYTES[6] - IP_HEADER_BYTES[4]
    for flow in flows:
        algorithm = ALGORITHMS.get(flow.kind)
        if flow.receivers or (algorithm is not None and algorithm.layered):
            raise document.error(
                where,
                f"6: {flow.name} sends to multicast groups, and groups are of IPv4: leave ip out, or give {flow.name} another kind than {flow.kind}",
            )
        if flow.commands is None and flow.settings.packet_bytes < least:
            raise document.error(
                where,
                f"6: packets of {flow.name} have {flow.settings.packet_bytes} bytes, and over IPv6 need {least} or more: set its packet_bytes",
            )


def _check_groups(settings: Settings, document: Document) -> None:
    """A workload has its name for itself: its flows are a group."""
    seen = {group.name for group in settings.flows}
    for i, workload in enumerate(settings.workloads):
        if workload.name in seen:
            raise document.error(("workloads", i, "name"), f"{workload.name!r} is the name of other flows, too")
        seen.add(workload.name)


def _of_workload(
    settings: Settings, workload: Workload, topology: Topology, document: Document, where: KeyPath, ports: Ports
) -> Iterator[Flow]:
    if workload.kind not in kinds.names():
        raise document.error((*where, "kind"), kinds.unknown(workload.kind))
    if not kinds.is_tcp(workload.kind):
        raise document.error((*where, "kind"), f"{workload.kind} does not end with a file: a workload is of a TCP kind")
    own = kinds.settings(document, workload.kind, where, kinds.Way(0.0, 0.0, 1))
    assert isinstance(own, kinds.TcpSettings)
    try:
        per_s = _arrivals_per_s(workload, own, settings, topology, document, where)
        arrivals = workloads.drawn(workload, topology.machines, per_s, settings.seed, settings.duration_s)
    except ValueError as error:
        key, _, rest = str(error).partition(": ")
        raise document.error((*where, key) if key in document.at(where) else where, rest) from error
    sized: dict[int, kinds.TcpSettings] = {}
    for n, arrival in enumerate(arrivals):
        name = f"{workload.name}-{arrival.query}.{arrival.part}" if arrival.query else f"{workload.name}-{n}"
        if arrival.file_bytes not in sized:
            sized[arrival.file_bytes] = dataclasses.replace(own, file_bytes=arrival.file_bytes)
        offset = ports.take(arrival.sender, [arrival.receiver])
        yield Flow(
            name,
            workload.kind,
            arrival.sender,
            arrival.receiver,
            arrival.at_s,
            sized[arrival.file_bytes],
            port_offset=offset,
            after=tuple(f"{workload.name}-{query}.{part}" for query, part in arrival.after),
            after_s=arrival.after_s,
            answers=arrival.answers,
            query=f"{workload.name}-{arrival.query}" if arrival.query else "",
        )


def _arrivals_per_s(
    workload: Workload, own: kinds.TcpSettings, settings: Settings, topology: Topology, document: Document, where: KeyPath
) -> float:
    """load: bits of files and headers, as links count them, over the capacity. ValueError as of `workloads.ends`."""
    arrivals = workload.arrivals
    if arrivals.trace is not None:
        return math.nan
    senders, receivers = workloads.ends(workload, topology.machines)
    if arrivals.load is None:
        assert arrivals.per_s is not None
        return arrivals.per_s
    assert workload.sizes is not None
    bits = 8 * (workload.requests or 1) * workload.sizes.mean_bytes * (own.packet_bytes + ETHERNET_BYTES) / own.payload_bytes(topology.ip)
    if arrivals.of == "hosts":
        of = receivers if workload.asks else senders
        capacity_bps = total(topology.ports()[sender][0].link.rate_bps for sender in of)
        return arrivals.load * capacity_bps / (bits * (workload.fan_in or 1))
    link = arrivals.of or settings.bottleneck
    found = _output_port(link, topology)
    if found is None:
        links = [f"{p.node}->{p.peer}" for on_node in topology.ports().values() for p in on_node]
        raise document.error((*where, "arrivals"), f"of: no link {link!r}{schema.nearest(link, [*links, 'hosts'])}")
    port = topology.port(*found)
    flows = _flows_through(workload, senders, receivers, topology, port)
    if flows == 0:
        raise document.error((*where, "arrivals"), f"of: no flow of {workload.name} crosses {link}")
    return arrivals.load * port.link.rate_bps / (bits * flows)


def _flows_through(workload: Workload, senders: Sequence[str], receivers: Sequence[str], topology: Topology, port: Port) -> float:
    """Flows of one arrival that cross a port, on average."""
    edge = {host: topology.ports()[host][0].peer for host in topology.hosts}
    flows = 0.0
    for sender, others, count in workloads.chances(workload, senders, receivers):
        if port.node == sender:
            flows += count
        if port.node in edge:  # the link of a host
            continue
        through = 0.0
        if port.peer in edge:
            through = others.count(port.peer)
        else:
            for switch, hosts in Counter(edge[other] for other in others).items():
                through += hosts * addressing.chance(topology, edge[sender], switch, port)
        flows += count * through / len(others)
    return flows


class Ports:
    """Gives flows their UDP and TCP ports: two flows between the same hosts, in either direction, have none in common."""

    def __init__(self, flows: Iterable[Flow] = ()) -> None:
        """flows: those that have theirs already."""
        self._next: dict[frozenset[str], int] = {}
        for flow in flows:
            for receiver in flow.all_receivers:
                pair = frozenset((flow.sender, receiver))
                self._next[pair] = max(self._next.get(pair, 0), flow.port_offset + 2)

    def take(self, sender: str, receivers: Sequence[str]) -> int:
        """The `Flow.port_offset` of the next flow. ValueError: its hosts have no more ports."""
        pairs = [frozenset((sender, receiver)) for receiver in receivers]
        offset = max(self._next.get(pair, 0) for pair in pairs)
        if offset > MAX_PORT_OFFSET:
            raise ValueError(
                f"{sender} and {receivers[0]} have {MAX_PORT_OFFSET // 2 + 1} flows already, as many as two hosts have ports for"
            )
        self._next.update(dict.fromkeys(pairs, offset + 2))
        return offset


def _check_scheme(kind: str, document: Document, where: KeyPath) -> None:
    name = scheme_of(kind)
    everywhere = [scheme.name for scheme in registry.SCHEMES.values() if scheme.everywhere]
    if name and name not in everywhere:
        raise document.error(
            where,
            f"{kind} asks for a scheme {name!r} at every port, and there is none{schema.nearest(name, everywhere)}; "
            "give the folder of your own by --scheme FOLDER (docs/own-header.md)",
        )


def ways(flows: Sequence[tuple[str, tuple[str, ...], int]], topology: Topology, seed: int) -> list[kinds.Way]:
    """Of flows, each given by its kind, its hosts (from the first to all others) and `Flow.port_offset`. seed: of the run."""

    def path(kind: str, sender: str, receiver: str, offset: int) -> tuple[Port, ...]:
        return addressing.path(topology, sender, receiver, paths.five_tuple(topology, kind, sender, receiver, offset), seed)

    taken = [
        {(p.node, p.number): p.link.rate_bps for receiver in receivers for p in path(kind, sender, receiver, offset)}
        for kind, (sender, *receivers), offset in flows
    ]
    crossing = Counter(key for path in taken for key in path)
    made = []
    for (_, (sender, *_), _), links in zip(flows, taken):
        slowest_bps, count = min((rate_bps, -crossing[key]) for key, rate_bps in links.items())
        made.append(kinds.Way(topology.ports()[sender][0].link.rate_bps, slowest_bps, -count))
    return made


def _check_ends(group: FlowGroup, ends: tuple[str, ...], hosts: dict[str, None], document: Document, where: KeyPath) -> None:
    for name in ends:
        if name not in hosts:
            raise document.error(where, f"no host {name!r}{schema.nearest(name, hosts)}")
    if len(ends) < 2:
        raise document.error(where, f"a sender and a receiver are needed, got {len(ends)} host{'s' if len(ends) != 1 else ''}")
    algorithm = kinds.algorithm(group.kind)
    if len(ends) > 2 and not (algorithm and algorithm.layered):
        raise document.error(where, f"{group.kind} has one receiver, got {len(ends) - 1}")
    machines = [machine(end) for end in ends]
    if machines[0] in machines[1:]:
        raise document.error(where, f"{machines[0]} cannot send to itself")
    if len(set(machines)) < len(machines):
        raise document.error(where, "a receiver is named twice")


def _check_distinct(flows: list[Flow], document: Document) -> None:
    seen: set[str] = set()
    for flow in flows:
        if flow.name in seen:
            raise document.error(("flows",), f"two flows are called {flow.name!r}")
        seen.add(flow.name)
    if not flows:
        raise document.error(("flows",), "an experiment needs at least one flow")


def _check_lengths(flows: list[Flow], topology: Topology, seed: int, document: Document) -> None:
    """No way has more switches than a packet's time to live, whatever it chooses."""
    if len(topology.switches) <= MAX_HOPS:
        return
    for flow in flows:
        for receiver in flow.all_receivers:
            tuple_ = paths.five_tuple(topology, flow.kind, flow.sender, receiver, flow.port_offset)
            switches = len(addressing.path(topology, flow.sender, receiver, tuple_, seed)) - 1
            if switches > MAX_HOPS:
                raise document.error(
                    ("flows",),
                    f"{flow.name}: {switches} switches are on the way from {flow.sender} to {receiver}, and a packet, whose time to live is "
                    f"{MAX_HOPS + 1}, passes {MAX_HOPS}: take hosts that are nearer",
                )


def _flow_name(group: FlowGroup, index: int) -> str:
    return f"{group.name}-{index}" if group.count > 1 else group.name


def _check_switch(name: str, topology: Topology, document: Document, where: KeyPath) -> None:
    if name not in topology.switches:
        raise document.error(where, f"no switch {name!r}{schema.nearest(name, topology.switches)}")


def _bottleneck(settings: Settings, topology: Topology, document: Document) -> tuple[str, int]:
    found = _output_port(settings.bottleneck, topology)
    if found is None or found[0] not in topology.switches:
        raise document.error(("bottleneck",), f"no link {settings.bottleneck!r}; write it as 's1->s2', from a switch to its neighbour")
    return found


def _output_port(link: str, topology: Topology) -> tuple[str, int] | None:
    """Node and port number that send on a direction of a link."""
    start, arrow, end = link.partition("->")
    for port in topology.ports().get(start, ()):
        if arrow and port.peer == end:
            return start, port.number
    return None


def _holds_back(name: str, port: tuple[str, int], settings: Settings, topology: Topology) -> bool:
    """Whether the link, or a change of it, has a `reorder_delay_s`."""
    link = topology.port(*port).link
    return bool(link.reorder_delay_s) or any(change.reorder_delay_s for change in settings.changes if change.link == name)


def _changes(settings: Settings, topology: Topology, document: Document) -> tuple[tuple[Change, str, int], ...]:
    """By time; at equal times, in the order of the file."""
    links = [f"{p.node}->{p.peer}" for ports in topology.ports().values() for p in ports]
    found = []
    for i, change in enumerate(settings.changes):
        if change.switch:
            _check_switch(change.switch, topology, document, ("changes", i, "switch"))
            port: tuple[str, int] | None = (change.switch, -1)
        else:
            port = _output_port(change.link, topology)
        if port is None:
            raise document.error(
                ("changes", i, "link"), f"no link {change.link!r}, from one node to its neighbour{schema.nearest(change.link, links)}"
            )
        if change.up is not None and topology.port(*port).link.trace is not None:
            raise document.error(("changes", i, "up"), f"{change.link} follows a trace: leave out one of the two")
        if change.rate_bps is not None and topology.port(*port).trace is not None:
            raise document.error(("changes", i, "rate_bps"), f"{change.link} follows a trace: leave out one of the two")
        if change.reorder and not _holds_back(change.link, port, settings, topology):
            raise document.error(
                ("changes", i, "reorder"), f"for how long does {change.link} hold frames back? Give 'reorder_delay_s' as well"
            )
        if change.at_s < settings.duration_s:
            found.append((change, *port))
    return tuple(sorted(found, key=lambda c: c[0].at_s))
