"""A topology as a Mininet network: namespaces for hosts, a process for each switch, everything else in the switches' ports.

Where things live:
  link rate, queue      in the sending switch port (`--port-rate`, `--port-queue`): the P4 program sees that queue
  host -> switch        the host's own interface: netem where the kernel has it, otherwise tbf (a rate only)
  delay, switch port    in the sending switch port (`--port-delay`)
  delay, host -> switch netem where the kernel has it; otherwise the switch port towards the host carries both directions'
                        delay, so that every round trip is right, though the two one-way delays are not
Offloads are off on every interface, and IPv6: no packet but the experiment's, and what the kernel gives is what is sent.
"""

from __future__ import annotations

import dataclasses
import re
import shlex
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mininet.link import Link as MininetLink
from mininet.log import setLogLevel
from mininet.net import Mininet
from mininet.node import Host, Switch

from fairlane import probes
from fairlane.flows import HostTcp
from fairlane.leftovers import RunRecord
from fairlane.processes import Process, spawn, stop_all
from fairlane.targets import Toolchain
from topologies import addressing as addresses
from topologies import bmv2_ports
from topologies.addressing import Addressing
from topologies.model import Port, Topology
from topologies.switch_process import PortSetting, SwitchSettings

_OFFLOADS = "rx off tx off sg off tso off gso off gro off"
# IANA's port of P4Runtime; further switches count up.
FIRST_GRPC_PORT = 9559
_READY_TIMEOUT_S = 15.0


class FabricError(RuntimeError):
    """The network could not be built, or is not what it was declared to be."""


@dataclass(frozen=True)
class HostShaping:
    """How hosts' interfaces get rate and delay on this kernel: "netem", "tbf" or "none"."""

    rate: str
    delay: str

    @staticmethod
    def probe() -> HostShaping:
        netem = probes.has_qdisc("netem")
        return HostShaping("tbf" if probes.has_qdisc("tbf") else "netem" if netem else "none", "netem" if netem else "none")

    def sentence(self) -> str:
        """What was chosen, and why."""
        delay = ("delay of host links: netem on the host, and the switch's port" if self.delay == "netem" else
                 "no netem in this kernel: delays are in the switches' ports, both directions' of a host link in the one towards the host")
        rate = {"tbf": "tbf", "netem": "netem", "none": "nothing: this kernel has neither tbf nor netem"}[self.rate]
        return f"{delay}; hosts' sending rate is held by {rate}"

    def command(self, interface: str, rate_bps: float, delay_s: float, queue_packets: int) -> str | None:
        """The tc command for a host's interface, None where nothing is to do or can be done."""
        if delay_s > 0 and self.delay == "netem":
            limit = queue_packets + int(rate_bps * delay_s / 8 / 64) + 1
            return f"tc qdisc replace dev {interface} root netem delay {delay_s * 1e6:.0f}us rate {rate_bps:.0f}bit limit {limit}"
        if self.rate == "tbf":
            # A bucket of two frames, or of 250 us where that is more: bursts stay short.
            burst = max(2 * 1514, int(rate_bps * 250e-6 / 8))
            return f"tc qdisc replace dev {interface} root tbf rate {rate_bps:.0f}bit burst {burst} limit {queue_packets * 1514}"
        if self.rate == "netem":
            return f"tc qdisc replace dev {interface} root netem rate {rate_bps:.0f}bit limit {queue_packets}"
        return None


def port_settings(topology: Topology, prefix: str, host_delay_in_switch: bool) -> dict[str, tuple[PortSetting, ...]]:
    """The ports of each switch. host_delay_in_switch: ports towards hosts carry the delay of both directions."""
    hosts = set(topology.hosts)
    settings = {}
    for name in topology.switches:
        settings[name] = tuple(
            PortSetting(p.number, interface_name(topology, prefix, name, p.number), p.link.rate_bps, p.link.queue_packets,
                        p.link.delay_s * (2 if p.peer in hosts and host_delay_in_switch else 1))
            for p in topology.ports()[name])
    return settings


def interface_name(topology: Topology, prefix: str, switch: str, port: int) -> str:
    """`f3a2-s1-p2`: at most 15 characters, so a switch with a long name goes by its number."""
    name = f"{prefix}{switch}-p{port}"
    return name if len(name) <= 15 else f"{prefix}{topology.switches.index(switch) + 1}-p{port}"


class FairlaneSwitch(Switch):
    """A switch whose data plane is a process in the root namespace, whatever the target: `launch` starts it."""

    def __init__(self, name: str, *, settings: SwitchSettings, launch: Callable[[SwitchSettings], Process], **params) -> None:
        self.settings = settings
        self._launch = launch
        self.process: Process | None = None
        super().__init__(name, dpid=f"{settings.device_id:x}", **params)

    def start(self, controllers: object) -> None:
        self.process = self._launch(self.settings)

    def stop(self, deleteIntfs: bool = True) -> None:  # noqa: N803: Mininet's name
        if self.process is not None:
            stop_all([self.process])
        super().stop(deleteIntfs)

    def wait_ready(self) -> None:
        """Wait until it serves P4Runtime; FabricError with its last words when it does not."""
        assert self.process is not None
        deadline = time.monotonic() + _READY_TIMEOUT_S
        while time.monotonic() < deadline:
            if self.process.exit_code() is not None:
                raise FabricError(f"switch {self.name} {self.process.how_it_ended()} at once:\n{self.process.last_words(8)}")
            if probes.answers(self.settings.grpc_port):
                return
            time.sleep(0.02)
        raise FabricError(f"switch {self.name} serves no P4Runtime on {self.settings.address} after {_READY_TIMEOUT_S:g} s:\n"
                          f"{self.process.last_words(8)}")


@dataclass(frozen=True)
class RoundTrip:
    """A path's round trip: what the topology says, and the least of several measured ones (seconds)."""

    sender: str
    receiver: str
    declared_s: float
    measured_s: float

    @property
    def holds(self) -> bool:
        return abs(self.measured_s - self.declared_s) <= max(0.2 * self.declared_s, 0.001)


class MininetNetwork:
    """A running network. Make it, `start`, and `stop` in the end whatever happened."""

    def __init__(self, topology: Topology, *, folder: Path, record: RunRecord, toolchain: Toolchain,
                 first_grpc_port: int = FIRST_GRPC_PORT, seed: int = 1, pcap: bool = False, host_tcp: Mapping[str, HostTcp] | None = None,
                 packet_bytes: int = 1000) -> None:
        """host_tcp: of hosts whose kernel is set for TCP. packet_bytes: usual size of a packet, for targets whose rates are in packets."""
        setLogLevel("error")
        self.topology = topology
        self.addressing: Addressing = addresses.assign(topology)
        self.shaping = HostShaping.probe()
        self._folder = folder
        self._record = record
        self._toolchain = toolchain
        self._host_tcp = dict(host_tcp or {})
        self._packet_bytes = packet_bytes
        self.net = Mininet(topo=None, build=False, controller=None, switch=FairlaneSwitch, host=Host, link=MininetLink)
        ports = port_settings(topology, record.prefix, self.shaping.delay == "none")
        for index, name in enumerate(topology.switches):
            settings = SwitchSettings(
                name, index + 1, first_grpc_port + index, ports[name], log=folder / f"{name}.log", stats=folder / f"{name}.csv",
                seed=seed * 1000 + index, pcap=folder / "pcap" if pcap else None)
            record.add(self.net.addSwitch(name, settings=settings, launch=self._launch).pid)
        for name in topology.hosts:
            address = self.addressing.hosts[name]
            record.add(self.net.addHost(name, ip=f"{address.ip}/{addresses.PREFIX_LENGTH}", mac=address.mac).pid)
        for link in topology.links:
            self._add_link(link.ends)
        self._configure_root()
        for name in topology.hosts:
            self._configure_host(name)
        # Mininet would otherwise configure the hosts again when it starts, and lose their routes.
        self.net.built = True

    @property
    def switches(self) -> list[FairlaneSwitch]:
        return list(self.net.switches)

    def start(self) -> None:
        """Start all switches and wait until each serves P4Runtime."""
        cli = probes.program("simple_switch_CLI")
        self.net.start()
        for switch in self.switches:
            switch.wait_ready()
            if self._toolchain.target == "bmv2" and cli is not None:
                reason = bmv2_ports.apply(switch.settings.ports, cli, switch.settings.thrift_port, self._packet_bytes)
                if reason is not None:
                    raise FabricError(f"switch {switch.name}: its queues could not be set: {reason}")

    def restart(self, switch: FairlaneSwitch) -> Process:
        """Start a switch anew that has died; it comes up empty, and the controller fills it. Its statistics go on in another
        file: `s1.csv`, then `s1.2.csv`."""
        starts = len(list(self._folder.glob(f"{switch.name}*.csv"))) + 1
        switch.settings = dataclasses.replace(switch.settings, stats=self._folder / f"{switch.name}.{starts}.csv")
        switch.start(None)
        assert switch.process is not None
        return switch.process

    def spawn(self, host: str, name: str, argv: Sequence[str], log: Path, with_children: bool = False) -> Process:
        """Start a program on a host; see `fairlane.processes.spawn`."""
        process = spawn(name, argv, log, namespace_pid=self.net[host].pid, with_children=with_children)
        self._record.add(process.pid)
        return process

    def round_trips(self, pairs: Iterable[tuple[str, str]], count: int = 8) -> list[RoundTrip]:
        """Ping each receiver from its sender, all at the same time."""
        pairs = list(pairs)
        running = []
        for sender, receiver in pairs:
            log = self._folder / f"ping-{sender}-{receiver}.log"
            argv = ["ping", "-n", "-c", str(count), "-i", "0.05", "-W", "2", self.addressing.hosts[receiver].ip]
            running.append(self.spawn(sender, f"ping {sender} -> {receiver}", argv, log))
        trips = []
        for (sender, receiver), process in zip(pairs, running):
            process.wait(10.0)
            output = process.log.read_text(errors="replace")
            found = re.search(r"= ([\d.]+)/", output)
            if not found:
                stop_all(running)
                raise FabricError(f"{receiver} does not answer {sender}: ping said\n{output.strip()}")
            declared = addresses.round_trip_s(self.topology, sender, receiver)
            trips.append(RoundTrip(sender, receiver, declared, float(found[1]) / 1000))
            process.log.unlink()
        return trips

    def stop(self) -> None:
        self.net.stop()

    def _launch(self, settings: SwitchSettings) -> Process:
        if settings.pcap is not None:
            settings.pcap.mkdir(exist_ok=True)
        process = spawn(f"switch {settings.name}", self._toolchain.switch_command(settings), settings.log)
        self._record.add(process.pid)
        return process

    def _add_link(self, ends: tuple[str, str]) -> None:
        a, b = (end.partition(":")[0] for end in ends)
        index = next(i for i, link in enumerate(self.topology.links) if link.ends == ends)
        first, second = (self._end(node, index) for node in (a, b))
        self.net.addLink(a, b, port1=first[0], port2=second[0], intfName1=first[1], intfName2=second[1],
                         addr1=first[2], addr2=second[2])

    def _end(self, node: str, link_index: int) -> tuple[int, str, str]:
        """Port number, interface name and Ethernet address of a link's end."""
        port: Port = next(p for p in self.topology.ports()[node] if p.link_index == link_index)
        if node in self.addressing.hosts:
            return port.number, f"{node}-eth{port.number}"[-15:], self.addressing.hosts[node].mac
        name = interface_name(self.topology, self._record.prefix, node, port.number)
        return port.number, name, self.addressing.port_macs[node, port.number]

    def _configure_root(self) -> None:
        names = [p.interface for s in self.switches for p in s.settings.ports]
        lines = []
        for name in names:
            lines += [f"ethtool -K {name} {_OFFLOADS} >/dev/null",
                      f"echo 1 > /proc/sys/net/ipv6/conf/{name}/disable_ipv6",
                      f"ip link set {name} mtu 1500 up"]
        _shell(["sh", "-ec", "\n".join(_without_ipv6(lines))])

    def _configure_host(self, name: str) -> None:
        node = self.net[name]
        port = self.topology.ports()[name][0]
        address = self.addressing.hosts[name]
        interface = f"{name}-eth{port.number}"[-15:]
        tcp = self._host_tcp.get(name, HostTcp((), ()))
        lines = [
            "echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6",
            f"ethtool -K {interface} {_OFFLOADS} >/dev/null",
            "ip link set lo up",
            f"ip link set {interface} mtu 1500 up",
            f"ip addr replace {address.ip}/{addresses.PREFIX_LENGTH} dev {interface}",
            f"ip route replace default via {address.gateway_ip} dev {interface}",
            f"ip neigh replace {address.gateway_ip} lladdr {address.gateway_mac} nud permanent dev {interface}",
            # All hosts of a switch share a subnet, but only the gateway is a neighbour: routes go through the switch.
            f"ip route del {_subnet(address.ip)} dev {interface}",
            f"ip route add {address.gateway_ip} dev {interface} scope link",
            shlex.join(["ip", "route", "replace", "default", "via", address.gateway_ip, "dev", interface, *tcp.route]),
            *(f"sysctl -q -w {shlex.quote(s)}" for s in tcp.sysctls),
        ]
        shape = self.shaping.command(interface, port.link.rate_bps, port.link.delay_s, port.link.queue_packets)
        if shape is not None:
            lines.append(shape)
        _shell(["mnexec", "-a", str(node.pid), "sh", "-ec", "\n".join(_without_ipv6(lines))])


def _subnet(ip: str) -> str:
    return ip.rpartition(".")[0] + f".0/{addresses.PREFIX_LENGTH}"


def _without_ipv6(lines: list[str]) -> list[str]:
    """A kernel without IPv6 has nothing to turn off."""
    return lines if Path("/proc/sys/net/ipv6").is_dir() else [line for line in lines if "ipv6" not in line]


def _shell(argv: list[str]) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    if done.returncode != 0:
        raise FabricError(f"could not configure an interface: {done.stderr.strip() or done.stdout.strip()}\nthe commands were:\n{argv[-1]}")
