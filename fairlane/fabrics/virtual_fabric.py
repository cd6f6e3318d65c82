"""The fabric in virtual time: an experiment's network, controller and flows in one process, on a clock that only events move.

It writes the same records as the Mininet fabric (docs/results.md, `raw/`), so all later stages are the same.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TextIO, TypeAlias, TypeVar

from fairlane import specs
from fairlane.controller.als import AlsPlane
from fairlane.controller.changes import Change as ControllerChange
from fairlane.controller.plane import own_file
from fairlane.controller.plane.engine import PlaneError
from fairlane.controller.timetable import NS
from fairlane.errors import CANNOT_RUN_HERE, ProgramRefused, Refusal, RunFailed
from fairlane.experiments import paths
from fairlane.experiments.commands import CommandSettings
from fairlane.experiments.kinds import AlgorithmSettings, TcpSettings
from fairlane.experiments.model import Experiment, Flow
from fairlane.fabrics import control_plane, descriptors, flows, partition_plan, partitions, raw, targets
from fairlane.fabrics.flows import Timing
from fairlane.fabrics.outcome import Outcome
from fairlane.fabrics.own_headers import Headers
from fairlane.fabrics.packets import PacketRecord
from fairlane.fabrics.partition_plan import Plan
from fairlane.fabrics.partitions import Part
from fairlane.fabrics.progress import Progress, Silent, Snapshot, receivers
from fairlane.fabrics.record_files import RecordFiles
from fairlane.fabrics.switch_process import FIRST_GRPC_PORT
from fairlane.fabrics.targets import Compiles
from fairlane.fabrics.virtual_control import VirtualControl
from fairlane.hosts.algorithms import ALGORITHMS
from fairlane.hosts.algorithms.base import Receiver
from fairlane.hosts.records import FlowWriter, version_of
from fairlane.schemes.base import Scheduler
from fairlane.topologies import addressing
from fairlane.topologies.model import CPU_PORT, Link, machine
from fairlane.topologies.trace import OPPORTUNITY_BYTES

try:
    from fairlane import native
except ImportError:
    native = None  # type: ignore[assignment]
if TYPE_CHECKING:
    from fairlane.fabrics.ranks import Ranks
    from fairlane.native import Network

_Algorithm = TypeVar("_Algorithm")
Hosts: TypeAlias = dict[str, addressing.HostAddress]
"""Addresses by name."""
# Whole observation intervals before the first flow: the switches get their entries, and counting begins.
_INTERVALS_BEFORE = 2
# After the last flow: what is on the way arrives, receivers say goodbye.
_AFTER_S = 1.0
STEP_NS = NS
SHOW_EVERY_S = 0.25
"""Between two states of a run on the console."""


class Driving(Protocol):
    """What takes a run to its end; `fairlane.live.view.LiveRun` does."""

    def drive(self, active: ActiveRun, progress: Progress) -> list[dict[str, Any]]:
        """What was changed on the way."""


@dataclass(frozen=True)
class Needed:
    """Records that are worth writing: counters of some ports, by switch and number, and of algorithms' flows some kinds of records."""

    ports: frozenset[tuple[str, int]]
    kinds: frozenset[str]


@dataclass(frozen=True)
class Options:
    """toolchain: of it only the compiler is used. control_delay_s: one way between the controller and each switch. pcap: a folder
    for captures of every link. trace: a file for the log of every packet. live: who drives the run in place of `advance`, and may
    change it. needed: records to write, None for all; the run is the same. delays: whether to measure those of each packet. packets: a record of their
    stays in queues. cores: processes over which the network is divided; None: as many as make the run faster. ranks: of MPI, over which it is divided in their place: each of them
    runs this. The records are the same. explains: switches are ready to keep a packet's steps, and slower."""

    toolchain: Compiles
    control_delay_s: float = 0.001
    pcap: Path | None = None
    trace: Path | None = None
    live: Driving | None = None
    needed: Needed | None = None
    delays: bool = True
    packets: PacketRecord | None = None
    cores: int | None = 1
    ranks: Ranks | None = None
    explains: bool = False


@dataclass
class ActiveRun:
    """A run that is under way. experiment: as it is now, with what was changed on the way. hosts: addresses by name. headers: of flows' own."""

    network: Network
    experiment: Experiment
    hosts: Hosts
    controller: VirtualControl
    records: Records
    timing: Timing
    headers: Headers
    begin_ns: int = field(init=False)
    flows_end_ns: int = field(init=False)
    end_ns: int = field(init=False)

    def __post_init__(self) -> None:
        self.begin_ns = round(self.timing.begin_s * NS)
        self.flows_end_ns = round(self.timing.end_s * NS)
        self.end_ns = round((self.timing.end_s + _AFTER_S) * NS)

    def snapshot(self) -> Snapshot:
        experiment, records = self.experiment, self.records
        latest = self.controller.latest.get(experiment.bottleneck)
        return Snapshot(
            self.network.now_ns / NS - self.timing.begin_s,
            experiment.duration_s,
            records.rates_bps(),
            None if latest is None else latest.connections,
            None if latest is None else latest.fair_rate_bps,
            records.queue_packets(*experiment.bottleneck),
            None if latest is None else latest.utilisation_ppm / 1e6,
        )


def check_built() -> None:
    """Refusal when the network's module is missing."""
    if native is None:
        raise Refusal("the module fairlane.native is not built: run 'make build'.", CANNOT_RUN_HERE)


def run(experiment: Experiment, options: Options, folder: Path, progress: Progress) -> Outcome:
    """Run an experiment; its raw records are in `folder` afterwards, of several ranks in the first one's. RunFailed: it ended early."""
    check_built()
    captures = 2 * len(experiment.topology.links) if options.pcap is not None else 0
    what = f"{len(experiment.topology.switches)} switches' counters" + (f", {captures} captures of links" if captures else "")
    tables = len(experiment.topology.switches) * (2 if _has_queues(experiment) else 1)
    descriptors.provide(tables + captures, what)
    timing = _timing(experiment)
    network, addresses, controller = build(experiment, options, folder, control_plane.changes(experiment, round(timing.begin_s * NS)))
    if controller.sentence:
        progress.say(controller.sentence)
    headers = Headers(controller.program, experiment.topology.ip)
    try:
        _schedule_changes(network, experiment, timing)
        for index, flow in enumerate(experiment.flows):
            if flow.start_s < experiment.duration_s:
                add_flow(network, flow, addresses.hosts, timing, experiment.seed * 1000 + index, headers)
        for flow in experiment.flows:
            if flow.after and flow.start_s < experiment.duration_s:
                network.start_after(flow.name, list(flow.after), round(flow.after_s * NS))
    except ValueError as error:
        raise Refusal(f"{experiment.id}: {error}") from error
    network.mark([round((timing.begin_s + at) * NS) for at in experiment.sampled_s])
    if options.delays:
        network.measure_delays(*(round((timing.begin_s + at) * NS) for at in experiment.window_s))
    _record_packets(network, options, experiment, round(timing.begin_s * NS))

    started = time.monotonic()
    changes: list[dict[str, Any]] = []
    divided = _plan(experiment, options, progress)

    def carry_out(part: Part | None) -> Left:
        """Of one part, or of all of it."""
        records = Records(network, experiment, folder, timing, headers, options.needed, part)
        active = ActiveRun(network, experiment, addresses.hosts, controller, records, timing, headers)
        try:
            if options.live is None:
                advance(active, progress if part is None or part.own == 0 else Silent())
            else:
                changes.extend(options.live.drive(active, progress))
                active_experiment.append(active.experiment)
            return Left(records.delays() if options.delays else [], records.wrong_checksums(), _work(network))
        finally:
            records.close()

    active_experiment: list[Experiment] = []
    try:
        done = None
        if divided is None:
            left = carry_out(None)
        else:
            done = _carry_out_parts(network, divided, experiment, options, folder, carry_out)
            if done is None:
                return Outcome(timing)
            links = [f"{there}->{to}" for there, to, *_ in network.channel_stats()]
            left = merge_records(done.results, folder, links)
        left.write(folder, experiment, timing, options.delays)
        if options.packets is not None:
            options.packets.finish()
    finally:
        controller.close()
        progress.close()
    _say_speed(network.now_ns, left.work, time.monotonic() - started, progress.say)
    if done is not None:
        progress.say(partitions.said(done.costs, "processes" if options.ranks is None else "ranks"))
    if not controller.ready:
        raise RunFailed("the switches never got their first entries: the control channel's delay is longer than the run")
    outcome = Outcome(timing, shaping="links and queues in virtual time, exact to the nanosecond", live_changes=changes)
    if changes:
        outcome.changed = experiment = active_experiment[-1]
    outcome.round_trips = [
        {"sender": f.sender, "receiver": r, "declared_s": trip, "measured_s": trip, "holds": True}
        for f in experiment.flows
        for r in f.all_receivers
        for trip in [addressing.round_trip_s(experiment.topology, f.sender, r, seed=experiment.seed)]
    ]
    return outcome


def _record_packets(network: Network, options: Options, experiment: Experiment, begin_ns: int) -> None:
    """Refusal when a file cannot be made, or is there already."""
    try:
        if options.pcap is not None:
            options.pcap.mkdir(parents=True, exist_ok=True)
            network.capture(options.pcap)
        if options.trace is not None:
            network.trace(options.trace)
        if options.packets is not None:
            network.record_packets(options.packets.written, begin_ns, options.packets.ports(experiment.topology))
    except OSError as error:
        raise Refusal(f"packets cannot be recorded: {error}") from error


def _timing(experiment: Experiment) -> Timing:
    """The first flow starts in a phase of the observation interval that the seed draws, as on the other fabric."""
    interval = experiment.settings.control.interval_s
    phase = random.Random(f"{experiment.seed}/phase").uniform(0.1, 0.9)
    begin_ns = round((_INTERVALS_BEFORE + phase) * interval * NS)
    return Timing(begin_ns / NS, begin_ns / NS + experiment.duration_s)


def build(
    experiment: Experiment, options: Options, folder: Path, changes: Sequence[ControllerChange] = ()
) -> tuple[Network, addressing.Addressing, VirtualControl]:
    """The network of an experiment with its control plane, without its flows: (network, addressing, controller). folder: for the compiled
    program, the controller's configuration and its records. changes: those that the controller is told of."""
    json_path, p4info_path = targets.compiled(experiment, options.toolchain, folder)
    plane = control_plane.plane_of(experiment, p4info_path)
    topology = experiment.topology
    addresses = addressing.assign(topology)
    network = native.Network(experiment.seed, control_delay_ns=round(options.control_delay_s * NS), explains=options.explains)
    for i, name in enumerate(topology.switches):
        network.add_switch(name, i + 1, cpu_port=CPU_PORT, priorities=max(p.link.priorities for p in topology.ports()[name]))
    for name in topology.hosts:
        host = addresses.hosts[name]
        network.add_host(name, host.ip, host.mac, host.gateway_mac)
    seen: set[int] = set()
    for ports in topology.ports().values():
        for port in ports:
            if port.link_index not in seen:
                seen.add(port.link_index)
                there, back = _link(port.link), _link(topology.other_way(port))
                network.connect(port.node, port.number, port.peer, port.peer_port, there, back)
    numbers = {name: FIRST_GRPC_PORT + i for i, name in enumerate(topology.switches)}
    controller = _controller(experiment, addresses, numbers, (json_path, p4info_path), plane, folder, changes)
    network.set_control_plane(controller)
    return network, addresses, controller


def _controller(
    experiment: Experiment,
    addresses: addressing.Addressing,
    numbers: dict[str, int],
    program: tuple[Path, Path],
    plane: control_plane.Plane,
    folder: Path,
    changes: Sequence[ControllerChange],
) -> VirtualControl:
    """With its configuration in `folder`. program: BMv2 JSON and P4Info."""
    config, network = control_plane.write_for(plane, experiment, addresses, numbers, program, folder)
    try:
        made = own_file.made(plane.file, plane.kind)
        if isinstance(made, AlsPlane) and config is not None:
            made.config = config
        return VirtualControl(made, network, folder, changes, file=plane.file, sentence=plane.sentence(experiment))
    except PlaneError as error:
        raise ProgramRefused(str(error), control_plane.PLANE_KEY) from error


def _link(link: Link) -> specs.Link:
    return specs.Link(
        rate_bps=round(link.rate_bps),
        delay_ns=round(link.delay_s * NS),
        queue_packets=link.queue_packets,
        loss=link.gemodel.native if link.gemodel else link.loss or None,
        jitter_ns=round(link.jitter_s * NS),
        jitter_std_ns=round(link.jitter_std_s * NS),
        reorder=link.reorder,
        reorder_delay_ns=round(link.reorder_delay_s * NS),
        duplicate=link.duplicate,
        corrupt=link.corrupt,
        overhead_bytes=-link.uncounted_bytes,
        **_scheduler(link.scheduling),
    )


def _has_queues(experiment: Experiment) -> bool:
    """Whether some port has several."""
    return any(link.priorities > 1 for link in experiment.topology.links)


def _scheduler(scheduler: Scheduler | None) -> dict[str, int]:
    if scheduler is None:
        return {}
    if scheduler.weight is not None:
        return {"weight": scheduler.weight}
    return {} if scheduler.shift_s is None else {"time_shift_ns": round(scheduler.shift_s * NS)}


def _schedule_changes(network: Network, experiment: Experiment, timing: Timing) -> None:
    for change, node, port in experiment.changes:
        at_ns = round((timing.begin_s + change.at_s) * NS)
        if change.rate_bps is not None:
            network.schedule_rate(at_ns, node, port, round(change.rate_bps))
        if change.loss is not None or change.gemodel is not None:
            network.schedule_loss(at_ns, node, port, change.gemodel.native if change.gemodel else change.loss or None)
        if any(value is not None for value in change.impairing):
            impairments = specs.Impairments(
                reorder=change.reorder,
                reorder_delay_ns=None if change.reorder_delay_s is None else round(change.reorder_delay_s * NS),
                duplicate=change.duplicate,
                corrupt=change.corrupt,
            )
            network.schedule_impairments(at_ns, node, port, impairments)
        if change.up is not None:
            for end in experiment.topology.both_ends(node, port):
                network.schedule_state(at_ns, end.node, end.number, change.up)
        if change.delay_s is not None:
            network.schedule_delay(at_ns, node, port, round(change.delay_s * NS))
        if change.jitter_s is not None or change.jitter_std_s is not None:
            network.schedule_jitter(at_ns, node, port, round((change.jitter_s or 0) * NS), round((change.jitter_std_s or 0) * NS))
    begin_ns = round(timing.begin_s * NS)
    for p in (port for ports in experiment.topology.ports().values() for port in ports):
        if p.trace is None:
            continue
        if p.trace.opportunities_ms:
            network.schedule_opportunities(begin_ns, p.node, p.number, p.trace.opportunities_ns, OPPORTUNITY_BYTES)
        else:
            network.schedule_rates(begin_ns, p.node, p.number, p.trace.rates_ns_bps)


def add_flow(network: Network, flow: Flow, hosts: Hosts, timing: Timing, seed: int, headers: Headers) -> None:
    """ValueError when the network refuses it. seed: of the flow's own random numbers. Refusal: as of `Headers.of`."""
    settings = flow.settings
    rtp_port = paths.RTP_PORT + flow.port_offset
    if isinstance(settings, TcpSettings):
        flavour = flow.kind.removeprefix("tcp-")
        if flavour == "reno" and not settings.paper_reno:
            flavour = "sack"  # what Linux makes of "reno"
        tcp = specs.Tcp(
            flavour=flavour,
            packet_bytes=settings.packet_bytes,
            bytes=settings.file_bytes,
            options=settings.network_options(version_of(hosts[flow.sender].ip)) | ({"handshake": False} if flow.answers else {}),
            sending_jitter_ns=round(settings.sending_jitter_s * NS),
        )
        network.add_tcp_flow(_path(flow, timing, paths.TCP_PORT + flow.port_offset), tcp)
    elif isinstance(settings, AlgorithmSettings):
        _add_algorithm_flow(network, flow, settings, hosts, timing, seed, headers, rtp_port)
    elif isinstance(settings, CommandSettings):
        raise flows.only_real(flow)
    else:
        application = flows.source(settings).application()
        assert application is not None, "such a source limits its flow"
        network.add_source_flow(_path(flow, timing, rtp_port), application, packet_bytes=settings.packet_bytes)


def _times_ns(flow: Flow, timing: Timing) -> tuple[int, int]:
    return round(timing.start_s(flow) * NS), round(timing.stop_s(flow) * NS)


def _path(flow: Flow, timing: Timing, port: int) -> specs.FlowPath:
    return specs.FlowPath(flow.name, flow.sender, flow.receiver, port, *_times_ns(flow, timing))


@dataclass(frozen=True)
class End:
    """Of an algorithm's flow: what both fabrics draw from a flow's seed in the same way."""

    ssrc: int
    rng: random.Random
    cname: str

    @staticmethod
    def of(flow: Flow, role: str, seed: int, ip: str) -> End:
        ssrc = random.Random(f"{seed}/{role}").getrandbits(32)
        return End(ssrc, random.Random(f"{seed}/{role}/{ssrc}"), f"{flow.kind}-{ssrc:08x}@{ip}")

    def half(self, algorithm: _Algorithm) -> specs.Half[_Algorithm]:
        return specs.Half(algorithm, self.rng, ssrc=self.ssrc, cname=self.cname)


def _add_algorithm_flow(
    network: Network, flow: Flow, settings: AlgorithmSettings, hosts: Hosts, timing: Timing, seed: int, headers: Headers, rtp_port: int
) -> None:
    algorithm = ALGORITHMS[flow.kind]
    sender = End.of(flow, "sender", seed, hosts[flow.sender].ip)
    receivers = [End.of(flow, "receiver", flows.receiver_seed(seed, n), hosts[host].ip) for n, host in enumerate(flow.all_receivers)]
    source = settings.source
    session = specs.Session(
        packet_bytes=settings.packet_bytes,
        session_bandwidth_bps=settings.maximum_rate_bps,
        pacing_jitter=settings.pacing_jitter,
        exact_loss=settings.loss_resolution == "exact",
        delay_threshold_ns=source.delay_threshold_ns,
    )
    sending_half = algorithm.sender(settings.parameters)
    carried = sending_half.carried = headers.of(flow)
    if algorithm.layered:
        layered = [
            _layered_receiver(flow, n, end, algorithm.receiver(settings.parameters), timing)
            for n, end in enumerate(receivers)
            if flows.takes_part(flow, n, timing)
        ]
        base_group = str(IPv4Address(settings.parameters.group_addresses[0]))
        group = specs.GroupPath(flow.name, flow.sender, base_group, rtp_port, *_times_ns(flow, timing))
        network.add_layered_flow(group, sender.half(sending_half), layered, session)
        return
    receiving_half = algorithm.receiver(settings.parameters)
    receiving_half.carried = carried
    options = specs.RtpOptions(
        report_interval_ns=None if settings.report_interval_s is None else round(settings.report_interval_s * NS),
        application=source.application(),
        buffer_packets=source.buffer_packets,
        circuit_breaker=settings.circuit_breaker.native(),
    )
    path = _path(flow, timing, rtp_port)
    network.add_rtp_flow(path, sender.half(sending_half), receivers[0].half(receiving_half), session, options)


def _layered_receiver(flow: Flow, number: int, end: End, half: Receiver, timing: Timing) -> specs.LayeredReceiver[Receiver]:
    """One that is there from the sender's start is so a little before it."""
    joins_s = flow.receiver_start_s[number] if flow.receiver_start_s else flow.start_s
    start_ns = None if joins_s <= flow.start_s else round((timing.begin_s + joins_s) * NS)
    return specs.LayeredReceiver(flow.all_receivers[number], end.half(half), start_ns=start_ns)


def advance(active: ActiveRun, progress: Progress) -> None:
    """To the end, as fast as it goes."""
    network = active.network
    shown = 0.0
    while network.now_ns < active.end_ns:
        network.run_until(min(network.now_ns + STEP_NS, active.end_ns))
        active.records.drain()
        if time.monotonic() - shown >= SHOW_EVERY_S:
            shown = time.monotonic()
            progress.show(active.snapshot())


def _plan(experiment: Experiment, options: Options, progress: Progress) -> Plan | None:
    """None, where one process simulates the network; why it does so although more are asked for, is said. Refusal: more ranks than there can be parts."""
    asked = options.cores if options.ranks is None else options.ranks.count
    if asked == 1:
        return None
    if options.live is not None:
        found: Plan | str = "a run with a page that changes it is simulated by one process"
    elif options.trace is not None or options.packets is not None:
        found = "--trace and --packets have the packets of all switches in one order, so one process simulates the network"
    else:
        found = partitions.obstacle() or partition_plan.plan(experiment, asked, options.control_delay_s)
    if options.ranks is not None:
        return _for_ranks(found, options.ranks.count)
    if isinstance(found, Plan):
        return found
    if found and options.cores is not None:
        progress.say(f"--cores: {found}.")
    return None


def _for_ranks(found: Plan | str, count: int) -> Plan:
    if isinstance(found, str):
        raise Refusal(f"--mpi: {found}: leave mpiexec and --mpi out.")
    if found.parts < count:
        raise Refusal(f"--mpi: {count} ranks are too many: this network has {found.parts} parts at most: mpiexec -n {found.parts}.")
    return found


def _carry_out_parts(
    network: Network, plan: Plan, experiment: Experiment, options: Options, folder: Path, carry_out: Callable[[Part], Left]
) -> partitions.Done[Left] | None:
    """By processes of this machine, or by ranks. None in a rank that is not the first."""
    if options.ranks is None:
        return partitions.run(network, plan, experiment.topology.switches, carry_out)
    from fairlane.fabrics import machines

    folders = {"raw": folder} | ({} if options.pcap is None else {"pcap": options.pcap})
    return machines.run(options.ranks, network, plan, experiment.topology.switches, carry_out, folders)


def _work(network: Network) -> dict[str, int]:
    work = network.work()
    return {"data_packets": work["data_packets"], "link_traversals": work["link_traversals"], "switch_packets": work["switch_packets"]}


def _say_speed(now_ns: int, work: dict[str, int], wall_s: float, say: Callable[[str], None]) -> None:
    say(
        f"virtual time: {now_ns / NS:.1f} s in {wall_s:.1f} s; {work['data_packets']} data packets, {work['link_traversals']}"
        f" link traversals ({work['link_traversals'] / max(wall_s, 1e-9) / 1e6:.2f} million a second), {work['switch_packets']} packets through switches"
    )


@dataclass
class Left:
    """What is written when a run is over, of all of it or of one part. delays: lines of delays.jsonl, with their places in it. wrong_checksums: by host, None if no link corrupts
    frames. work: counts of `Network.work`."""

    delays: list[tuple[tuple[int, int, int, int], str]]
    wrong_checksums: dict[str, int] | None
    work: dict[str, int]

    def write(self, folder: Path, experiment: Experiment, timing: Timing, delays: bool) -> None:
        if delays:
            with _opened(folder / raw.DELAYS) as file:
                file.writelines(line for _, line in sorted(self.delays))
        if self.wrong_checksums is not None:
            hosts = experiment.topology.hosts
            counts = {host: self.wrong_checksums.get(host, 0) for host in hosts}
            of_machines = {name: sum(n for host, n in counts.items() if machine(host) == name) for name in map(machine, hosts)}
            raw.write_wrong_checksums(folder, of_machines)


def merge_records(parts: Sequence[Left], folder: Path, links: Iterable[str]) -> Left:
    """What the parts of a network have left, as one process would have. The parts' files of links become one. links: all directions, in their order."""
    raw.merge_links(folder, [_links_file(folder, part) for part in range(len(parts))], {link: n for n, link in enumerate(links)})
    delays = [line for part in parts for line in part.delays]
    counted = [part.wrong_checksums for part in parts if part.wrong_checksums is not None]
    sums = {host: n for counts in counted for host, n in counts.items()} if counted else None
    return Left(delays, sums, {kind: sum(part.work[kind] for part in parts) for kind in parts[0].work})


def _links_file(folder: Path, part: int) -> Path:
    """Until the parts are over."""
    return folder / f"{raw.LINKS}.part-{part}"


class Records:
    """Writes what the network has recorded, as the run goes on: memory does not grow with the run's length. part: of one part of a network, what that has."""

    def __init__(
        self,
        network: Network,
        experiment: Experiment,
        folder: Path,
        timing: Timing,
        headers: Headers,
        needed: Needed | None = None,
        part: Part | None = None,
    ) -> None:
        self._network = network
        self._timing = timing
        self._headers = headers
        self._needed = needed
        self._part = part
        self.folder = folder
        self._switches, hosts = list(experiment.topology.switches), experiment.topology.hosts
        self._host_ports = experiment.topology.ports()
        self._hosts = [host for host in hosts if self._has_host(host)]
        self._only = None if needed is None else {(self._switches.index(switch), port) for switch, port in needed.ports}
        self._ports = self._of_switches("csv", network.port_columns())
        self._queues = self._of_switches("queues.csv", native.QUEUE_COLUMNS) if _has_queues(experiment) else {}
        self._links: TextIO | None = None
        self._links_file = folder / raw.LINKS if part is None else _links_file(folder, part.own)
        self._checks_sums = experiment.corrupts
        self._ip = experiment.topology.ip
        self._flows: list[Flow] = []
        self._all_flows: list[Flow] = []
        self._logs = RecordFiles()
        self._writers: dict[tuple[str, str], FlowWriter] = {}
        for flow in experiment.flows:
            if flow.start_s < experiment.duration_s:
                self.add_flow(flow)

    def _has_switch(self, switch: str) -> bool:
        return self._part is None or self._part.has(switch)

    def _has_host(self, host: str) -> bool:
        return self._part is None or self._has_switch(self._host_ports[host][0].peer)

    def _of_switches(self, ending: str, columns: str) -> dict[int, TextIO]:
        """A table for each switch, by its number."""
        found = {n: _opened(self.folder / f"{name}.{ending}") for n, name in enumerate(self._switches) if self._has_switch(name)}
        for file in found.values():
            file.write(columns + "\n")
        return found

    def add_flow(self, flow: Flow) -> None:
        """One that the network has."""
        self._all_flows.append(flow)
        here = [role for role, host in zip(flows.record_roles(flow), (flow.sender, *flow.all_receivers)) if self._has_host(host)]
        if here:
            self._flows.append(flow)
        for role in here:
            self._writers[flow.name, role] = FlowWriter(
                self._logs.new(self.folder / f"{flow.name}.{role}.jsonl"),
                flow.settings.packet_bytes,
                role == "sender",
                kinds=self._needed.kinds if self._needed else None,
                extension_bytes=self._headers.bytes_of(flow),
                ip=self._ip,
            )

    def drain(self) -> None:
        rows = self._network.take_port_rows(self._only)
        for number, file in self._ports.items():
            file.write(rows[number])
        if self._queues:
            rows = self._network.take_queue_rows(self._only)
            for number, file in self._queues.items():
                file.write(rows[number])
        if of_links := self._network.take_link_rows():
            if self._links is None:
                self._links = _opened(self._links_file)
                self._links.write(native.LINK_COLUMNS + "\n")
            self._links.write(of_links)
        for flow in self._flows:
            for role, log in zip(flows.record_roles(flow), self._take_logs(flow)):
                writer = self._writers.get((flow.name, role))
                if writer is None:  # of another part
                    continue
                for time_ns, kind, fields in log:
                    writer.write(time_ns, kind, fields)

    def delays(self) -> list[tuple[tuple[int, int, int, int], str]]:
        """Of single packets, as far as the network has measured them: a line for each place, queues of switches first, then flows."""
        found = []
        for of, number, part, queue, text in self._network.delays():
            if of == "wait":
                at = (0, number, part, queue)
                place = f'"switch":"{self._switches[number]}","port":{part},"queue":{queue}'
            else:
                at = (1, number, int(of == "one_way"), part)
                flow = self._all_flows[number]
                hosts = [host for n, host in enumerate(flow.all_receivers) if flows.takes_part(flow, n, self._timing)]
                place = f'"flow":"{flow.name}"' + (f',"receiver":"{hosts[part]}"' if of == "one_way" else "")
            found.append((at, f'{{"of":"{of}",{place},{text}}}\n'))
        return found

    def flush(self) -> None:
        """Whoever reads the files finds all that was drained."""
        for file in self._tables():
            file.flush()
        self._logs.flush()

    def _take_logs(self, flow: Flow) -> list[Iterable[Any]]:
        """As `record_roles` orders them."""
        if not flow.receivers:
            return list(self._network.take_flow_logs(flow.name))
        sender, receivers = self._network.take_layered_logs(flow.name)
        return [sender, *(receivers.get(host, ()) for host in flow.receivers)]

    def rates_bps(self) -> dict[str, float]:
        """As `Snapshot` has them, over the last interval."""
        last = {name: self._host_ports[host][0] for name, host in receivers(self._flows).items() if self._has_host(host)}
        intervals = {name: self._network.port_interval(self._switches.index(p.peer), p.peer_port) for name, p in last.items()}
        return {name: 0.0 if interval is None else interval[0] for name, interval in intervals.items()}

    def queue_packets(self, switch: str, port: int) -> float | None:
        """The mean of the last interval; None before the first."""
        interval = self._network.port_interval(self._switches.index(switch), port)
        return None if interval is None else interval[1]

    def wrong_checksums(self) -> dict[str, int] | None:
        """Of each host; None if no link corrupts frames."""
        if not self._checks_sums:
            return None
        return {host: self._network.wrong_checksums(host) or 0 for host in self._hosts}

    def close(self) -> None:
        self.drain()
        for file in self._tables():
            file.close()
        self._logs.close()

    def _tables(self) -> list[TextIO]:
        return [*self._ports.values(), *self._queues.values(), *([] if self._links is None else [self._links])]


def _opened(path: Path) -> TextIO:
    return path.open("w", encoding="utf-8", newline="\n")
