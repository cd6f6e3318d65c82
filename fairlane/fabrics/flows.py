"""Programs on the hosts: the command of each end of a flow, by kind."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairlane import python_child
from fairlane.errors import Refusal
from fairlane.experiments import commands
from fairlane.experiments.commands import CommandSettings
from fairlane.experiments.kinds import ALWAYS_ECN, AlgorithmSettings, Mpeg4Settings, OnOffSettings, RenewalSettings, TcpSettings
from fairlane.experiments.model import Experiment, Flow
from fairlane.experiments.paths import RTP_PORT, TCP_PORT
from fairlane.fabrics.bmv2_ports import PacketSizes
from fairlane.hosts.algorithms import header_of
from fairlane.hosts.records import headers_bytes
from fairlane.hosts.sources import Source
from fairlane.hosts.tcp_iperf3 import LEAST_MSS, PAPER_RENO_SYSCTLS, PAPER_SACK_SYSCTLS
from fairlane.topologies.addressing import HostAddress
from fairlane.topologies.model import in_files, machine

_LAST_PORT = 65534
# A program that serves another one stays so long after it.
_STAYS_S = 0.5
# Between the seeds of a flow's receivers: further than the flows of any experiment lie apart.
_SEEDS_APART = 1_000_000_007


@dataclass(frozen=True)
class Timing:
    """When a run's flows live, in Unix time."""

    begin_s: float
    end_s: float

    def start_s(self, flow: Flow) -> float:
        return self.begin_s + flow.start_s

    def stop_s(self, flow: Flow) -> float:
        return self.end_s if flow.stop_s is None else min(self.end_s, self.begin_s + flow.stop_s)


@dataclass(frozen=True)
class Program:
    """One end of a flow. host: where it runs. name: for messages and log files. may_end: before its flow's stop, with exit code 0."""

    host: str
    name: str
    argv: tuple[str, ...]
    with_children: bool
    may_end: bool = False


def packet_sizes(experiment: Experiment) -> PacketSizes:
    """Of all flows' data packets."""
    sizes = [f.settings.packet_bytes for f in experiment.flows]
    return PacketSizes(min(sizes), max(sizes))


def record_roles(flow: Flow) -> tuple[str, ...]:
    """Names of a flow's ends in the names of its record files, `FLOW.ROLE.jsonl`: the sender, then each receiver."""
    return ("sender", *(f"receiver-{in_files(host)}" for host in flow.receivers)) if flow.receivers else ("sender", "receiver")


def programs(
    flow: Flow,
    hosts: Mapping[str, HostAddress],
    timing: Timing,
    seed: int,
    log: Mapping[str, str],
    run_seed: int | None = None,
    marks_s: Sequence[float] = (),
    switch_program: Path | None = None,
) -> list[Program]:
    """Receivers first, then the sender. log: the JSON-lines file of each of `record_roles`. marks_s: instants, in seconds since the run began, at which the sums of
    ends are to be recorded. switch_program: BMv2 JSON, which has the layouts of flows' own headers."""
    if flow.commands is not None:
        return _commands(flow, flow.commands, hosts, timing, log)
    make = _tcp if isinstance(flow.settings, TcpSettings) else _algorithm
    sender, *receivers = record_roles(flow)
    # (role, its name, host, peer, when it begins, seed): each receiver has random numbers of its own.
    ends = [
        ("receiver", name, host, flow.sender, _receiver_start_s(flow, n, timing), receiver_seed(seed, n))
        for n, (name, host) in enumerate(zip(receivers, flow.all_receivers))
        if takes_part(flow, n, timing)
    ]
    ends.append(("sender", sender, flow.sender, flow.receiver, timing.start_s(flow), seed))
    made = []
    for role, name, host, peer, start_s, own_seed in ends:
        module, arguments = make(flow, timing, role, start_s, own_seed)
        if module == "fairlane.hosts.agent" and run_seed is not None:
            arguments += ["--flow", flow.name, "--run-seed", str(run_seed)]  # the draws of virtual time
        if module == "fairlane.hosts.agent":
            own = (timing.start_s(flow), timing.stop_s(flow)) if role == "receiver" else ()
            if header_of(flow.kind) is not None:
                arguments += ["--program", str(switch_program)]
            arguments += [word for at in sorted({*(timing.begin_s + at for at in marks_s), *own}) for word in ("--mark", f"{at:.6f}")]
        argv = (
            *python_child.of_module(module),
            "--role",
            role,
            "--local",
            hosts[host].ip,
            "--peer",
            hosts[peer].ip,
            *arguments,
            "--log",
            log[name],
        )
        made.append(Program(host, f"{flow.name}.{name}", argv, with_children=module == "fairlane.hosts.tcp_iperf3"))
    return made


def _commands(
    flow: Flow, settings: CommandSettings, hosts: Mapping[str, HostAddress], timing: Timing, log: Mapping[str, str]
) -> list[Program]:
    """The end that waits for the other comes first, and stays a little longer."""
    start_s, stop_s = timing.start_s(flow), timing.stop_s(flow)
    made = []
    for role, host in sorted((("receiver", flow.receiver), ("sender", flow.sender)), key=lambda end: not settings.waits(end[0])):
        if not settings.program(role):
            continue
        output = Path(log[role]).with_suffix("")
        values = {
            "sender": hosts[flow.sender].ip,
            "receiver": hosts[flow.receiver].ip,
            "port": str(TCP_PORT + flow.port_offset),
            "port_2": str(TCP_PORT + flow.port_offset + 1),
            "seconds": str(math.ceil(stop_s - start_s - 1e-6)),
            "output": str(output),
            "python": sys.executable,
        }
        waits = settings.waits(role)
        argv = (
            *python_child.of_module("fairlane.hosts.command"),
            "--role",
            role,
            "--start-at",
            f"{0.0 if waits else start_s:.6f}",
            "--stop-at",
            f"{stop_s + (_STAYS_S if waits else 0.0):.6f}",
            "--stop-signal",
            settings.stop_signal,
            "--grace",
            f"{settings.grace_s:g}",
            "--exit-codes",
            ",".join(map(str, settings.exit_codes)),
            "--log",
            log[role],
            "--output",
            f"{output}.out",
            "--",
            *(commands.filled(argument, values) for argument in settings.program(role)),
        )
        made.append(Program(host, f"{flow.name}.{role}", argv, with_children=True, may_end=True))
    return made


def with_tcp_ports(experiment: Experiment) -> Experiment:
    """The same with other TCP ports where hosts need them. Real programs listen on them, so that a host has each of them once, unlike in virtual time, where
    flows between other hosts may have the same. ValueError: a host has no more."""
    taken: dict[str, set[int]] = {}
    made = []
    for flow in experiment.flows:
        if isinstance(flow.settings, TcpSettings | CommandSettings):
            offset = flow.port_offset
            of_hosts = [taken.setdefault(machine(host), set()) for host in (flow.sender, flow.receiver)]
            while any(offset in offsets for offsets in of_hosts):
                offset += 2
            if TCP_PORT + offset > _LAST_PORT:
                raise ValueError(f"{flow.name}: {flow.sender} and {flow.receiver} have no TCP port left")
            for offsets in of_hosts:
                offsets.add(offset)
            flow = dataclasses.replace(flow, port_offset=offset)
        made.append(flow)
    return dataclasses.replace(experiment, flows=tuple(made))


def is_file(flow: Flow) -> bool:
    """A kernel's TCP ends by itself: `fairlane.hosts.tcp_files` sends it. Flows without an end are iperf3's."""
    return isinstance(flow.settings, TcpSettings) and flow.settings.file_bytes is not None


def file_programs(experiment: Experiment, hosts: Mapping[str, HostAddress], timing: Timing, folder: Path) -> list[Program]:
    """One for each host at an end of a file, receivers and senders of all of them. Their plans are in `folder`."""
    from fairlane.hosts.tcp_files import LINGERS_S, Transfer  # Linux's alone

    answered = {flow.after[0] for flow in experiment.flows if flow.answers}
    plans: dict[str, list[dict[str, Any]]] = {}
    for flow in experiment.flows:
        if not is_file(flow) or flow.start_s >= experiment.duration_s:
            continue
        settings = flow.tcp_settings
        mss = settings.packet_bytes - headers_bytes(experiment.topology.ip)
        for role, host, peer in (("sender", flow.sender, flow.receiver), ("receiver", flow.receiver, flow.sender)):
            transfer = Transfer(
                flow.name,
                role == "sender",
                hosts[host].ip,
                hosts[peer].ip,
                TCP_PORT + flow.port_offset,
                settings.file_bytes or 0,
                timing.start_s(flow),
                timing.stop_s(flow),
                kernel_congestion(flow),
                settings.packet_bytes,
                mss if mss >= LEAST_MSS else None,
                flow.after,
                flow.after_s,
                flow.answers,
                flow.name in answered,
            )
            plans.setdefault(host, []).append(dataclasses.asdict(transfer))
    made = []
    for host, transfers in plans.items():
        plan = folder / f"files.{in_files(host)}.json"
        plan.write_text(json.dumps({"end_s": timing.end_s + LINGERS_S, "transfers": transfers}) + "\n", encoding="utf-8", newline="\n")
        argv = (*python_child.of_module("fairlane.hosts.tcp_files"), str(plan))
        made.append(Program(host, f"files.{in_files(host)}", argv, with_children=False))
    return made


def processes(experiment: Experiment) -> int:
    """How many of them all flows have on the hosts."""
    hosts = {host for flow in experiment.flows if is_file(flow) for host in (flow.sender, flow.receiver)}
    return len(hosts) + sum(len(record_roles(flow)) for flow in experiment.flows if not is_file(flow))


def takes_part(flow: Flow, number: int, timing: Timing) -> bool:
    """Whether a receiver does: a shortened run may end before it would join."""
    return _receiver_start_s(flow, number, timing) < timing.stop_s(flow)


def _receiver_start_s(flow: Flow, number: int, timing: Timing) -> float:
    """A receiver is there before its sender, unless it is to join later."""
    joins_later = bool(flow.receiver_start_s) and flow.receiver_start_s[number] > flow.start_s
    return timing.begin_s + flow.receiver_start_s[number] if joins_later else timing.begin_s - 0.5


def receiver_seed(seed: int, number: int) -> int:
    """Of a flow's receiver, counted from 0, from the flow's seed."""
    return seed + number * _SEEDS_APART


def _algorithm(flow: Flow, timing: Timing, role: str, start_s: float, seed: int) -> tuple[str, list[str]]:
    settings = flow.settings
    assert not isinstance(settings, TcpSettings | CommandSettings)
    # A receiver stays for what is still on the way.
    stop = timing.stop_s(flow) + (0.0 if role == "sender" else 0.5)
    arguments = [
        "--port",
        str(RTP_PORT + flow.port_offset),
        "--start-at",
        f"{start_s:.6f}",
        "--stop-at",
        f"{stop:.6f}",
        "--packet-bytes",
        str(settings.packet_bytes),
        "--seed",
        str(seed),
        "--source",
        source(settings).text(),
    ]
    if not isinstance(settings, AlgorithmSettings):
        return "fairlane.hosts.agent", [*arguments, "--algorithm", "none"]
    arguments += [
        "--algorithm",
        flow.kind,
        "--max-rate",
        f"{settings.maximum_rate_bps:.0f}",
        "--pacing-jitter",
        f"{settings.pacing_jitter:g}",
        "--loss-resolution",
        settings.loss_resolution,
        "--circuit-breaker",
        settings.circuit_breaker.text(),
    ]
    if settings.report_interval_s is not None:
        arguments += ["--report-interval", f"{settings.report_interval_s:g}"]
    for name, value in settings.given.items():
        if value is not None:
            arguments += ["--param", f"{name}={_argument(value)}"]
    return "fairlane.hosts.agent", arguments


def source(settings: AlgorithmSettings | OnOffSettings | RenewalSettings | Mpeg4Settings) -> Source:
    """What produces the data of a flow that is not TCP's."""
    if isinstance(settings, AlgorithmSettings):
        return settings.source
    if isinstance(settings, OnOffSettings):
        return Source("on-off", rate_bps=settings.rate_bps, on_s=settings.on_s, off_s=settings.off_s, shape=settings.shape)
    if isinstance(settings, RenewalSettings):
        own = dataclasses.asdict(settings)
        del own["packet_bytes"]
        return Source("renewal", **own)
    return Source("mpeg4", rate_scale=settings.rate_scale)


def only_real(flow: Flow) -> Refusal:
    """Of a flow that is real programs."""
    return Refusal(f"flow {flow.name}: kind {flow.kind} runs real programs, and virtual time has none: add --fabric mininet.")


def carries_film(flow: Flow) -> bool:
    """Whether pictures are encoded at the flow's rate."""
    return isinstance(flow.settings, AlgorithmSettings) and flow.settings.source.kind == "film"


def _argument(value: object) -> str:
    if isinstance(value, (tuple, list)):
        return ",".join(map(_argument, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _tcp(flow: Flow, timing: Timing, role: str, start_s: float, seed: int) -> tuple[str, list[str]]:
    arguments = [
        "--port",
        str(TCP_PORT + flow.port_offset),
        "--packet-bytes",
        str(flow.settings.packet_bytes),
        "--congestion",
        kernel_congestion(flow),
    ]
    if role == "sender":
        arguments += ["--start-at", f"{start_s:.6f}", "--stop-at", f"{timing.stop_s(flow):.6f}"]
    return "fairlane.hosts.tcp_iperf3", arguments


def obstacle(flow: Flow) -> str | None:
    """Why processes on real hosts cannot be this flow, whatever the machine; None when they can."""
    if isinstance(flow.settings, AlgorithmSettings) and carries_film(flow) and not Path(flow.settings.source.file).is_file():
        name = flow.settings.source.file
        return (
            f"source.file: no pictures in {name!r}: name a YUV4MPEG2 file"
            if name
            else "source.file: real hosts need the film's pictures, a YUV4MPEG2 file"
        )
    if isinstance(flow.settings, TcpSettings) and flow.settings.only_virtual():
        return f"the kernel's TCP cannot be given {', '.join(flow.settings.only_virtual())}"
    return None


def kernel_congestion(flow: Flow) -> str:
    """The kernel's module that is a flow's TCP: with SACK or without, Reno is one."""
    name = flow.kind.removeprefix("tcp-")
    return "reno" if name == "sack" else name


@dataclass(frozen=True)
class HostTcp:
    """What makes a host's kernel the TCP of its flows. sysctls: of its namespace, "name=value". route: options of its default route, as
    `ip route` takes them."""

    sysctls: tuple[str, ...]
    route: tuple[str, ...]


def host_tcp(experiment: Experiment) -> dict[str, HostTcp]:
    """Of each host at an end of a TCP flow. ValueError: two flows of one host want different kernels."""
    found: dict[str, tuple[HostTcp, str]] = {}
    for flow in experiment.flows:
        if not isinstance(flow.settings, TcpSettings):
            continue
        wanted = _kernel_settings(flow.kind, flow.settings, experiment.topology.ip)
        for host in map(machine, (flow.sender, *flow.all_receivers)):
            have, other = found.setdefault(host, (wanted, flow.name))
            if have != wanted:
                raise ValueError(f"{other} and {flow.name} set TCP differently, and both are at {host}, whose kernel has one setting")
    return {host: settings for host, (settings, _) in found.items()}


def _kernel_settings(kind: str, settings: TcpSettings, ip: int) -> HostTcp:
    sysctls = dict({"tcp-reno": PAPER_RENO_SYSCTLS, "tcp-sack": PAPER_SACK_SYSCTLS}.get(kind, {}) if settings.paper_reno else {})
    if not settings.timestamps:
        sysctls["net.ipv4.tcp_timestamps"] = "0"
    if kind == "tcp-prague":
        # Accurate ECN (RFC 9768), which Prague needs.
        sysctls["net.ipv4.tcp_ecn"] = "3"
    elif settings.ecn or kind in ALWAYS_ECN:
        sysctls["net.ipv4.tcp_ecn"] = "1"
    route: list[str] = []
    mss = settings.packet_bytes - headers_bytes(ip)
    if mss < LEAST_MSS:
        route += ["advmss", str(mss)]
    if settings.delayed_ack is False:
        route += ["quickack", "1"]
    if settings.min_rto_s is not None:
        route += ["rto_min", f"{max(1, round(settings.min_rto_s * 1e3))}ms"]
    return HostTcp(tuple(f"{k}={v}" for k, v in sysctls.items()), tuple(route))
