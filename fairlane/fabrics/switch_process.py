"""The settings of a switch process: one description, and the command line of each target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fairlane.schemes.base import Scheduler
from fairlane.topologies.model import CPU_PORT

# IANA's port of P4Runtime; further switches count up.
FIRST_GRPC_PORT = 9559


@dataclass(frozen=True)
class PortSetting:
    """One port. rate_bps and queue_packets of the queue to its link; delay_s is added to each frame that leaves. uncounted_bytes: of each
    frame, those that the rate does not count. priorities: queues. scheduler: which of them sends
    next, in place of strict priority."""

    number: int
    interface: str
    rate_bps: float
    queue_packets: int
    delay_s: float
    uncounted_bytes: int = 0
    priorities: int = 1
    scheduler: Scheduler | None = None


@dataclass(frozen=True)
class SwitchSettings:
    """log: the switch's output. stats: CSV that the embedded switch writes each stats_interval_s. links: its file of `link_plans.py`. count_flows: the embedded switch counts
    each conversation, too."""

    name: str
    device_id: int
    grpc_port: int
    ports: tuple[PortSetting, ...]
    log: Path
    stats: Path
    stats_interval_s: float = 0.1
    seed: int = 1
    pcap: Path | None = None
    links: Path | None = None
    count_flows: bool = False

    @property
    def thrift_port(self) -> int:
        return thrift_port(self.grpc_port)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.grpc_port}"


def thrift_port(grpc_port: int) -> int:
    """BMv2's own control port, clear of the other switches' gRPC ports."""
    return grpc_port + (1000 if grpc_port <= 64535 else -1000)


def embedded_command(program: Path, settings: SwitchSettings) -> list[str]:
    """Fairlane's own switch: rates, queues and delays are its own."""
    command = [str(program)]
    for port in settings.ports:
        command += ["-i", f"{port.number}@{port.interface}"]
    command += ["--no-p4", "--device-id", str(settings.device_id)]
    for port in settings.ports:
        command += ["--port-rate", f"{port.number}={port.rate_bps:.0f}bit", "--port-queue", f"{port.number}={port.queue_packets}p"]
        if port.delay_s > 0:
            command += ["--port-delay", f"{port.number}={port.delay_s * 1e9:.0f}ns"]
        if port.uncounted_bytes:
            command += ["--port-overhead", f"{port.number}={-port.uncounted_bytes}"]
        if port.scheduler is not None and port.scheduler.weight is not None:
            command += ["--port-weight", f"{port.number}={port.scheduler.weight}"]
        elif port.scheduler is not None and port.scheduler.shift_s is not None:
            command += ["--port-time-shift", f"{port.number}={port.scheduler.shift_s * 1e9:.0f}ns"]
    if settings.links is not None:
        command += ["--links", str(settings.links)]
    command += ["--stats", str(settings.stats), "--stats-interval", f"{settings.stats_interval_s:g}", "--seed", str(settings.seed)]
    if settings.count_flows:
        command.append("--count-flows")
    if settings.pcap is not None:
        command += ["--pcap", str(settings.pcap)]
    command += ["--", "--grpc-server-addr", settings.address, "--cpu-port", str(CPU_PORT)]
    priorities = max((port.priorities for port in settings.ports), default=1)
    return command + (["--priority-queues", str(priorities)] if priorities > 1 else [])


def bmv2_command(program: Path, settings: SwitchSettings) -> list[str]:
    """simple_switch_grpc: its ports' rates, queues and delays are set once it runs (`fairlane/fabrics/bmv2_ports.py`)."""
    command = [str(program)]
    for port in settings.ports:
        command += ["-i", f"{port.number}@{port.interface}"]
    command += [
        "--no-p4",
        "--device-id",
        str(settings.device_id),
        "--log-console",
        "-L",
        "warn",
        "--thrift-port",
        str(settings.thrift_port),
    ]
    if settings.pcap is not None:
        command += ["--pcap", str(settings.pcap)]
    return command + ["--", "--grpc-server-addr", settings.address, "--cpu-port", str(CPU_PORT)]


@dataclass(frozen=True)
class Target:
    """A switch. name: as on the command line and in records. words: in tables. program: in PATH. command: its command line, from the program and a switch's
    settings. own_links: whether its ports have rates in bit/s, capacities and delays of their own. Otherwise Thrift sets queues, whose rates
    are in packets per second, and delays are elsewhere."""

    name: Literal["embedded", "bmv2"]
    words: str
    program: str
    command: Callable[[Path, SwitchSettings], list[str]]
    own_links: bool

    def services(self, grpc_port: int) -> dict[int, str]:
        """The TCP ports on which a switch with this P4Runtime port serves, and the protocol of each."""
        return {grpc_port: "P4Runtime"} if self.own_links else {grpc_port: "P4Runtime", thrift_port(grpc_port): "Thrift"}

    def __str__(self) -> str:
        return self.name


EMBEDDED = Target("embedded", "embedded", "fairlane-switch", embedded_command, own_links=True)
BMV2 = Target("bmv2", "BMv2", "simple_switch_grpc", bmv2_command, own_links=False)
TARGETS = (EMBEDDED, BMV2)
