"""What runs on the hosts: the command of each end of a flow, by kind."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass

from experiments.model import Experiment, Flow
from hosts.tcp_iperf3 import PAPER_RENO_SYSCTLS
from topologies.addressing import HostAddress

ALS_PORT = 5004
TCP_PORT = 5201


@dataclass(frozen=True)
class Timing:
    """When a run's flows live, in Unix time."""

    begin_s: float
    end_s: float

    def start_s(self, flow: Flow) -> float:
        return self.begin_s + flow.start_s


@dataclass(frozen=True)
class Program:
    """One end of a flow. host: where it runs. name: for messages and log files."""

    host: str
    name: str
    argv: tuple[str, ...]
    with_children: bool


def programs(flow: Flow, experiment: Experiment, hosts: Mapping[str, HostAddress], timing: Timing, seed: int,
             log: Mapping[str, str]) -> list[Program]:
    """Receiver first, then sender. log: the JSON-lines file of each role."""
    make = _als if flow.kind == "als" else _tcp
    addresses = {"receiver": hosts[flow.receiver].ip, "sender": hosts[flow.sender].ip}
    ends = []
    for role, peer in (("receiver", "sender"), ("sender", "receiver")):
        module, arguments = make(flow, experiment, timing, role, seed)
        argv = (sys.executable, "-m", module, "--role", role, "--local", addresses[role], "--peer", addresses[peer],
                *arguments, "--log", log[role])
        host = flow.receiver if role == "receiver" else flow.sender
        ends.append(Program(host, f"{flow.name}.{role}", argv, with_children=module == "hosts.tcp_iperf3"))
    return ends


def _als(flow: Flow, experiment: Experiment, timing: Timing, role: str, seed: int) -> tuple[str, list[str]]:
    als = experiment.settings.als
    # A receiver is there before its sender, and stays for what is still on the way.
    start = timing.start_s(flow) if role == "sender" else timing.begin_s - 0.5
    stop = timing.end_s if role == "sender" else timing.end_s + 0.5
    parameters = {"initial_air_bps": als.initial_air_bps, "adaptation_interval_s": als.adaptation_interval_s,
                  "initial_rate_bps": als.initial_rate_bps}
    arguments = [
        "--algorithm", "als", "--port", str(ALS_PORT), "--start-at", f"{start:.6f}", "--stop-at", f"{stop:.6f}",
        "--packet-bytes", str(als.packet_bytes), "--max-rate", f"{als.maximum_rate_bps:.0f}", "--seed", str(seed),
        "--pacing-jitter", f"{als.pacing_jitter:g}", "--loss-resolution", als.loss_resolution,
    ]
    for name, value in parameters.items():
        arguments += ["--param", f"{name}={value:g}"]
    return "hosts.agent", arguments


def _tcp(flow: Flow, experiment: Experiment, timing: Timing, role: str, seed: int) -> tuple[str, list[str]]:
    tcp = experiment.settings.tcp
    arguments = ["--port", str(TCP_PORT), "--packet-bytes", str(tcp.packet_bytes), "--congestion", flow.kind.removeprefix("tcp-")]
    if role == "sender":
        arguments += ["--start-at", f"{timing.start_s(flow):.6f}", "--stop-at", f"{timing.end_s:.6f}"]
    return "hosts.tcp_iperf3", arguments


def host_sysctls(experiment: Experiment) -> list[str]:
    """Kernel settings of each host's namespace."""
    return [f"{k}={v}" for k, v in PAPER_RENO_SYSCTLS.items()] if experiment.settings.tcp.paper_reno else []
