"""Checks before a run starts anything. Each failure is one sentence with the remedy."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from fairlane import probes
from fairlane.errors import CANNOT_RUN_HERE, Refusal
from fairlane.experiments.kinds import TCP_KINDS
from fairlane.experiments.model import Experiment
from fairlane.fabrics import flows
from fairlane.fabrics.switch_process import EMBEDDED, Target
from fairlane.hosts import film

# Program -> Debian package.
PROGRAMS = {"ip": "iproute2", "ping": "iputils-ping", "ethtool": "ethtool", "mnexec": "mininet", "sysctl": "procps"}

# Two sockets and a record; and what Python has open.
_FILES_OF_A_TRANSFER, _FILES_OF_A_PROCESS = 3, 100
_ONLY_VIRTUAL = "Linux has no such module; virtual time has"
_KERNEL_HINTS = {"tahoe": _ONLY_VIRTUAL, "newreno": _ONLY_VIRTUAL, "prague": "the L4S team's kernel has it, github.com/L4STeam/linux"}


def check_machine(experiment: Experiment) -> None:
    """An experiment that real hosts can run; root, Mininet, and the programs that it needs."""
    for flow in experiment.flows:
        reason = flows.obstacle(flow)
        if reason is not None:
            raise Refusal(f"flow {flow.name}: {reason}: run it without --fabric mininet.")
    try:
        flows.host_tcp(experiment)
    except ValueError as error:
        raise Refusal(f"{error}: give them hosts of their own, or run it without --fabric mininet.") from error
    probes.need_linux()
    if not probes.is_root():
        raise Refusal("Mininet needs root (network namespaces, raw sockets): run it with sudo, or as root.", CANNOT_RUN_HERE)
    probes.need("mininet", "--fabric mininet")
    if not probes.has_mininet():
        raise Refusal("Mininet is not installed: apt-get install mininet, then make setup.", CANNOT_RUN_HERE)
    programs = dict(PROGRAMS)
    if any(f.kind in TCP_KINDS and not flows.is_file(f) for f in experiment.flows):
        programs["iperf3"] = "iperf3"
    if experiment.topology.ip == 6 and not Path("/proc/sys/net/ipv6").is_dir():
        raise Refusal(
            "topology.ip: 6, and this kernel has no IPv6: boot it without ipv6.disable=1, or run in virtual time.", CANNOT_RUN_HERE
        )
    missing = {name: package for name, package in programs.items() if probes.program(name) is None}
    if missing:
        raise Refusal(f"missing programs: {', '.join(missing)}. apt-get install {' '.join(missing.values())}", CANNOT_RUN_HERE)
    _check_commands(experiment)
    _check_files(experiment)
    films = [f for f in experiment.flows if flows.carries_film(f)]
    lacking = film.missing() if films else None
    if lacking is not None:
        raise no_gstreamer(f"flow {films[0].name}: a film", lacking)
    for flow in experiment.flows:
        if flow.kind in TCP_KINDS:
            algorithm = flows.kernel_congestion(flow)
            if algorithm not in probes.congestion_controls():
                raise Refusal(
                    f"flow {flow.name}: this kernel has no TCP {algorithm}; it has {', '.join(probes.congestion_controls())}"
                    f" ({_KERNEL_HINTS.get(algorithm, f'modprobe tcp_{algorithm} may add it')}).",
                    CANNOT_RUN_HERE,
                )


def _check_commands(experiment: Experiment) -> None:
    """The programs of flows of kind `command` are there. A name with a place in it is known later."""
    for flow in experiment.flows:
        for role in ("sender", "receiver") if flow.commands is not None else ():
            name = next(iter(flow.commands.program(role)), "") if flow.commands is not None else ""
            if name and "{" not in name and shutil.which(name) is None:
                raise Refusal(
                    f"flow {flow.name}: no program {name!r} for its {role} in PATH here: install it, or give its path.", CANNOT_RUN_HERE
                )


def _check_files(experiment: Experiment) -> None:
    """No host has more files than its process can have open."""
    import resource

    count: Counter[str] = Counter()
    for flow in experiment.flows:
        if flows.is_file(flow):
            count.update((flow.sender, flow.receiver))
    host, files = max(count.items(), key=lambda item: item[1], default=("", 0))
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = _FILES_OF_A_TRANSFER * files + _FILES_OF_A_PROCESS
    if hard != resource.RLIM_INFINITY and needed > hard:
        raise Refusal(
            f"{host} has {files:,} flows with a file, which need up to {needed:,} open files, and a process may open {hard:,}: raise the hard limit,"
            f" as root with 'ulimit -Hn {needed}' in the shell that starts the run.",
            CANNOT_RUN_HERE,
        )


def no_gstreamer(what: str, lacking: str) -> Refusal:
    """lacking: as `film.missing` says it."""
    return Refusal(f"{what} needs GStreamer, and here is missing: {lacking}. apt-get install {film.PACKAGES}", CANNOT_RUN_HERE)


def check_new(pcap: Path | None, trace: Path | None, packets: Path | None = None) -> None:
    """Captures and logs that would take no other file's place. Refusal."""
    for option, file in (("--trace", trace), ("--packets", packets)):
        if file is None:
            continue
        if os.path.lexists(file):
            raise Refusal(f"{option} {file}: exists already, and is not overwritten. Give another name, or remove it.")
        if not file.absolute().parent.is_dir():
            raise Refusal(f"{option} {file}: no folder {file.absolute().parent}")
    if pcap is not None and os.path.lexists(pcap):
        if not pcap.is_dir():
            raise Refusal(f"--pcap {pcap}: is no folder. Give a folder, which may be new.")
        if found := sorted(path.name for path in pcap.glob("*.pcap")):
            raise Refusal(f"--pcap {pcap}: has {found[0]} already, and captures are not overwritten. Give another folder, or remove it.")


def check_ports(ports: Sequence[int], target: Target = EMBEDDED) -> None:
    """The switches' P4Runtime ports must be free, and with BMv2 its Thrift ports."""
    for first in ports:
        for port, protocol in target.services(first).items():
            _check_port(port, protocol)


def _check_port(port: int, protocol: str) -> None:
    if probes.port_in_use(port):
        raise Refusal(
            f"port {port} is taken, and a switch serves {protocol} on it. 'ss -ltnp sport = :{port}' shows the process;"
            " 'make stop' ends a run of Fairlane; --grpc-port picks other ports."
        )
