"""What runs on the hosts: the command of each end of a flow, by kind."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass

from experiments.kinds import SOURCE_KINDS, AlgorithmSettings, TcpSettings
from experiments.model import Experiment, Flow
from hosts.tcp_iperf3 import PAPER_RENO_SYSCTLS
from topologies.addressing import HostAddress

RTP_PORT = 5004
TCP_PORT = 5201


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
    """One end of a flow. host: where it runs. name: for messages and log files."""

    host: str
    name: str
    argv: tuple[str, ...]
    with_children: bool


def programs(flow: Flow, hosts: Mapping[str, HostAddress], timing: Timing, seed: int, log: Mapping[str, str]) -> list[Program]:
    """Receiver first, then sender. log: the JSON-lines file of each role."""
    make = _tcp if isinstance(flow.settings, TcpSettings) else _algorithm
    addresses = {"receiver": hosts[flow.receiver].ip, "sender": hosts[flow.sender].ip}
    ends = []
    for role, peer in (("receiver", "sender"), ("sender", "receiver")):
        module, arguments = make(flow, timing, role, seed)
        argv = (sys.executable, "-m", module, "--role", role, "--local", addresses[role], "--peer", addresses[peer],
                *arguments, "--log", log[role])
        host = flow.receiver if role == "receiver" else flow.sender
        ends.append(Program(host, f"{flow.name}.{role}", argv, with_children=module == "hosts.tcp_iperf3"))
    return ends


def _algorithm(flow: Flow, timing: Timing, role: str, seed: int) -> tuple[str, list[str]]:
    settings = flow.settings
    assert isinstance(settings, AlgorithmSettings)
    # A receiver is there before its sender, and stays for what is still on the way.
    start = timing.start_s(flow) if role == "sender" else timing.begin_s - 0.5
    stop = timing.stop_s(flow) + (0.0 if role == "sender" else 0.5)
    arguments = [
        "--algorithm", flow.kind, "--port", str(RTP_PORT), "--start-at", f"{start:.6f}", "--stop-at", f"{stop:.6f}",
        "--packet-bytes", str(settings.packet_bytes), "--max-rate", f"{settings.maximum_rate_bps:.0f}", "--seed", str(seed),
        "--pacing-jitter", f"{settings.pacing_jitter:g}", "--loss-resolution", settings.loss_resolution,
    ]
    for name, value in settings.given.items():
        if value is not None:
            arguments += ["--param", f"{name}={_argument(value)}"]
    return "hosts.agent", arguments


def _argument(value: object) -> str:
    if isinstance(value, (tuple, list)):
        return ",".join(map(_argument, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _tcp(flow: Flow, timing: Timing, role: str, seed: int) -> tuple[str, list[str]]:
    arguments = ["--port", str(TCP_PORT), "--packet-bytes", str(flow.settings.packet_bytes), "--congestion", flow.kind.removeprefix("tcp-")]
    if role == "sender":
        arguments += ["--start-at", f"{timing.start_s(flow):.6f}", "--stop-at", f"{timing.stop_s(flow):.6f}"]
    return "hosts.tcp_iperf3", arguments


def obstacle(flow: Flow) -> str | None:
    """Why processes on real hosts cannot be this flow, whatever the machine; None when they can."""
    if flow.kind in SOURCE_KINDS:
        return f"the source {flow.kind} is in virtual time only"
    if isinstance(flow.settings, TcpSettings) and flow.settings.only_virtual():
        return f"the kernel's TCP cannot be given {', '.join(flow.settings.only_virtual())}"
    return None


def host_sysctls(experiment: Experiment) -> list[str]:
    """Kernel settings of each host's namespace."""
    paper_reno = any(isinstance(f.settings, TcpSettings) and f.settings.paper_reno and f.kind == "tcp-reno" for f in experiment.flows)
    return [f"{k}={v}" for k, v in PAPER_RENO_SYSCTLS.items()] if paper_reno else []
