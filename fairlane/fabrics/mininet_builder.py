"""A topology as a Mininet network: namespaces for hosts, a process for each switch; the switches' ports do the rest.

Places of the parts:
  link rate, queue      in the sending switch port (`--port-rate`, `--port-queue`; BMv2's over Thrift): the P4 program sees that queue
  host -> switch        the host's own interface: netem where the kernel has it, otherwise tbf (a rate only)
  loss, jitter, changes, traces, framing: in the switch port, also for packets from a host over such a link (`link_plans.py`)
  delay, switch port    in the sending switch port (`--port-delay`)
  delay, host -> switch netem where the kernel has it; otherwise the switch port towards the host carries both directions'
                        delay, so that every round trip is right, though the two one-way delays are not
  any delay, BMv2       netem behind the switch and on the host; on a kernel without it, a delay line (`delay_lines.py`) in the link
Offloads are off on every interface, and so is IPv6, but on hosts of a network of IPv6: only the experiment's packets appear, and the wire carries them as the kernel sends them.
"""

from __future__ import annotations

import dataclasses
import errno
import os
import re
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Interface, IPv6Interface, ip_interface
from pathlib import Path
from typing import TYPE_CHECKING

from mininet.link import Link as MininetLink
from mininet.log import setLogLevel
from mininet.net import Mininet
from mininet.node import Host, Switch

from fairlane import probes
from fairlane.fabrics import captures, delay_lines, leftovers
from fairlane.fabrics.bmv2_ports import PacketSizes
from fairlane.fabrics.delay_lines import Precision
from fairlane.fabrics.flows import HostTcp
from fairlane.fabrics.leftovers import RunRecord
from fairlane.fabrics.link_plans import LinkPlans
from fairlane.fabrics.processes import Process, spawn, stop_all
from fairlane.fabrics.switch_process import EMBEDDED, FIRST_GRPC_PORT, PortSetting, SwitchSettings, Target
from fairlane.fabrics.targets import Toolchain
from fairlane.topologies import addressing as addresses
from fairlane.topologies.addressing import Addressing, HostAddress
from fairlane.topologies.model import ETHERNET_BYTES, Port, Topology, machine

if TYPE_CHECKING:
    from fairlane.fabrics.bmv2_switches import Bmv2Switches

_OFFLOADS = "rx off tx off sg off tso off gso off gro off"
_READY_TIMEOUT_S = 15.0
# How much of a port's rate the pings take that measure the round trips.
_PINGS_SHARE = 0.2
# Of the tables of routes of hosts' further links; the kernel's own are 253 to 255.
_FIRST_TABLE = 1000


class FabricError(RuntimeError):
    """The network could not be built, or does not match its declaration."""


MTU, JUMBO_MTU = 1500, 9216
"""Largest IP datagrams of links (bytes): of flows with larger packets than the first, the second, which has room for headers that programs add."""


@dataclass(frozen=True)
class HostShaping:
    """How hosts' interfaces get rate and delay on this kernel: "netem", "tbf" or "none", which leaves the delay to the switch's
    port. delay "line": a delay line in each link holds both directions', of links between switches too."""

    rate: str
    delay: str

    @staticmethod
    def probe(target: Target = EMBEDDED) -> HostShaping:
        netem = probes.has_qdisc("netem")
        delay = "netem" if netem else "none" if target.own_links else "line"
        return HostShaping("tbf" if probes.has_qdisc("tbf") else "netem" if netem else "none", delay)

    def sentence(self) -> str:
        """What was chosen, and why."""
        delay = {
            "netem": "delay of host links: netem on the host, and the switch's port",
            "none": "no netem in this kernel: delays are in the switches' ports, both directions' of a host link in the one towards the host",
            "line": "no netem in this kernel, and BMv2 has no delays: fairlane-link delays each direction of a link",
        }[self.delay]
        rate = {"tbf": "tbf", "netem": "netem", "none": "nothing: this kernel has neither tbf nor netem"}[self.rate]
        return f"{delay}; hosts' sending rate is limited by {rate}"

    def command(self, interface: str, rate_bps: float, delay_s: float, queue_packets: int, mtu: int = MTU) -> str | None:
        """The tc command for a host's interface, None where nothing is to do or can be done. mtu: the largest IP datagram (bytes)."""
        frame = mtu + ETHERNET_BYTES
        if delay_s > 0 and self.delay == "netem":
            limit = queue_packets + int(rate_bps * delay_s / 8 / 64) + 1
            return f"tc qdisc replace dev {interface} root netem delay {delay_s * 1e6:.0f}us rate {rate_bps:.0f}bit limit {limit}"
        if self.rate == "tbf":
            # A bucket of two frames, or of 250 us where that is more: bursts stay short.
            burst = max(2 * frame, int(rate_bps * 250e-6 / 8))
            return f"tc qdisc replace dev {interface} root tbf rate {rate_bps:.0f}bit burst {burst} limit {queue_packets * frame}"
        if self.rate == "netem":
            return f"tc qdisc replace dev {interface} root netem rate {rate_bps:.0f}bit limit {queue_packets}"
        return None


def port_settings(
    topology: Topology, prefix: str, host_delay_in_switch: bool, delays: bool = True, uplinks: Collection[int] = ()
) -> dict[str, tuple[PortSetting, ...]]:
    """The ports of each switch. host_delay_in_switch: ports towards hosts carry the delay of both directions. delays: False where
    something else delays, and no port. uplinks: indices of links whose two directions the switch delays, each by itself."""
    hosts = set(topology.hosts)
    settings = {}
    for name in topology.switches:
        settings[name] = tuple(
            PortSetting(
                p.number,
                interface_name(topology, prefix, name, p.number),
                p.link.rate_bps,
                p.link.queue_packets,
                _port_delay_s(p, topology, p.peer in hosts and host_delay_in_switch and p.link_index not in uplinks) if delays else 0.0,
                p.link.uncounted_bytes,
                p.link.priorities,
                p.link.scheduling,
            )
            for p in topology.ports()[name]
        )
    return settings


def _port_delay_s(port: Port, topology: Topology, both: bool) -> float:
    """both: the other direction's, too."""
    return port.link.delay_s + (topology.other_way(port).delay_s if both else 0.0)


def interface_name(topology: Topology, prefix: str, switch: str, port: int) -> str:
    """`f3a2-s1-p2`: at most 15 characters, so a switch with a long name goes by its number."""
    name = f"{prefix}{switch}-p{port}"
    return name if len(name) <= 15 else f"{prefix}{topology.switches.index(switch) + 1}-p{port}"


class FairlaneHost(Host):
    """A host that knows its address, so that the prompt's `h1 ping h2`, `pingpair` and `iperf` find it. All that is started on it carries the
    run's mark, and ends with the run."""

    def __init__(self, name: str, *, mark: str, **params: object) -> None:
        self._mark = mark
        super().__init__(name, **params)

    def _popen(self, cmd: list[str], **params: object) -> subprocess.Popen[str]:
        return super()._popen(cmd, **{"env": {**os.environ, leftovers.MARK: self._mark}, **params})

    def know(self, address: IPv4Interface | IPv6Interface) -> None:
        """Its address, which is configured without Mininet."""
        self.intf().ip, self.intf().prefixLen = str(address.ip), address.network.prefixlen


class FairlaneSwitch(Switch):
    """A switch whose data plane is a process in the root namespace, for every target: `launch` starts it."""

    def __init__(self, name: str, *, settings: SwitchSettings, launch: Callable[[SwitchSettings], Process], **params: object) -> None:
        self.settings = settings
        self._launch = launch
        self.process: Process | None = None
        super().__init__(name, dpid=f"{settings.device_id:x}", **params)

    def start(self, controllers: object) -> None:
        self.process = self._launch(self.settings)

    def stop(self, deleteIntfs: bool = True) -> None:  # Mininet's name
        if self.process is not None:
            stop_all([self.process])
        super().stop(deleteIntfs)

    def wait_ready(self) -> None:
        """Wait until it serves P4Runtime; FabricError with its last words when it does not, or when another process does in its place."""
        assert self.process is not None
        deadline = time.monotonic() + _READY_TIMEOUT_S
        while time.monotonic() < deadline:
            if self.process.exit_code() is not None:
                raise FabricError(f"switch {self.name} {self.process.how_it_ended()} at once:\n{self.process.last_words(8)}")
            owner = probes.listener(self.settings.grpc_port)
            if owner is not None and self.process.leads(owner):
                return
            if owner is not None:
                raise FabricError(
                    f"{self.settings.address} is served by process {owner}, not by this run's switch {self.name}:"
                    f" --grpc-port picks other ports.\n{self.process.last_words(8)}"
                )
            time.sleep(0.02)
        raise FabricError(
            f"switch {self.name} serves no P4Runtime on {self.settings.address} after {_READY_TIMEOUT_S:g} s:\n{self.process.last_words(8)}"
        )


@dataclass(frozen=True)
class RoundTrip:
    """A path's round trip: declared by the topology, and the least of several measured ones (seconds)."""

    sender: str
    receiver: str
    declared_s: float
    measured_s: float

    @property
    def holds(self) -> bool:
        return abs(self.measured_s - self.declared_s) <= max(0.2 * self.declared_s, 0.001)


class MininetNetwork:
    """A running network. Construct it, `start` it, and always `stop` it at the end."""

    def __init__(
        self,
        topology: Topology,
        *,
        folder: Path,
        record: RunRecord,
        toolchain: Toolchain,
        first_grpc_port: int = FIRST_GRPC_PORT,
        seed: int = 1,
        pcap: bool = False,
        host_tcp: Mapping[str, HostTcp] | None = None,
        count_flows: bool = False,
        packet_sizes: PacketSizes = PacketSizes(1000, 1000),
        plans: LinkPlans | None = None,
        program: Path | None = None,
    ) -> None:
        """host_tcp: of hosts whose kernel is set for TCP. count_flows: switches count each conversation, where they can. packet_sizes: of the flows: links with packets
        above 1500 bytes have a larger MTU, and some targets' rates are in packets. plans: of the
        links; None: they lose nothing and do not change. program: compiled, for targets that read
        queues from its registers; None: it has such a register."""
        setLogLevel("error")
        self.topology = topology
        self._seed = seed
        self.addressing: Addressing = addresses.assign(topology)
        self.shaping = HostShaping.probe(toolchain.target)
        self._folder = folder
        self._record = record
        self._toolchain = toolchain
        self._host_tcp = dict(host_tcp or {})
        self._mtu = JUMBO_MTU if packet_sizes.largest > MTU else MTU
        self._ping_bytes = addresses.ping_bytes(topology) if toolchain.target.own_links else packet_sizes.largest
        self._bmv2 = None if toolchain.target.own_links else _bmv2_switches(packet_sizes, program)
        self._lines = delay_lines.plan(topology, record.prefix) if self.shaping.delay == "line" else ()
        self._plans = LinkPlans(topology) if plans is None else plans
        self._starts = 0
        self.delays: Process | None = None
        self.net = Mininet(topo=None, build=False, controller=None, switch=FairlaneSwitch, host=FairlaneHost, link=MininetLink)
        uplinks = self._plans.uplinks
        ports = port_settings(topology, record.prefix, self.shaping.delay == "none", self.shaping.delay != "line", uplinks)
        for index, name in enumerate(topology.switches):
            settings = SwitchSettings(
                name,
                index + 1,
                first_grpc_port + index,
                ports[name],
                log=folder / f"{name}.log",
                stats=folder / f"{name}.csv",
                seed=seed * 1000 + index,
                pcap=folder / "pcap" if pcap else None,
                links=self._plan_file(name) if name in self._plans.switches else None,
                count_flows=count_flows,
            )
            if settings.links is not None:
                self._plans.write(name, settings.links)
            record.add(self.net.addSwitch(name, settings=settings, launch=self._launch).pid)
        for name in topology.machines:
            address = self.addressing.hosts[name]
            ip = f"{address.ip}/{self.addressing.prefix_length}"
            record.add(self.net.addHost(name, ip=ip, mac=address.mac, mark=record.mark).pid)
        for index in range(len(topology.links)):
            self._add_link(index)
        self._configure_root()
        for name in topology.hosts:
            self._configure_host(name)
        # Mininet would otherwise configure the hosts again when it starts, and lose their routes.
        self.net.built = True

    @property
    def switches(self) -> list[FairlaneSwitch]:
        return list(self.net.switches)

    def sentences(self) -> list[str]:
        """The choice for this network, and its consequences."""
        return [self.shaping.sentence(), *(self._bmv2.sentences(self.topology) if self._bmv2 else ())]

    def start(self) -> None:
        """Start the delay lines and all switches, and wait until each serves P4Runtime and has its queues."""
        if self._lines:
            self.delays = self.start_delays()
        self.net.start()
        for switch in self.switches:
            switch.wait_ready()
            self._configure_queues(switch)
        if self._bmv2 is not None:
            self._bmv2.start_records([s.settings for s in self.switches])

    def begin_links(self, begin_ns: int) -> None:
        """From now on links lose and delay frames at random; changes and traces begin at begin_ns, in Unix time."""
        waiting = {}
        for switch in self.switches:
            if switch.name in self._plans.switches and switch.process is not None:
                self._plans.write(switch.name, self._plan_file(switch.name), begin_ns)
                waiting[switch.name] = switch
                switch.process.signal(signal.SIGHUP)
        deadline = time.monotonic() + _READY_TIMEOUT_S
        while waiting:
            waiting = {name: switch for name, switch in waiting.items() if b"links read" not in switch.settings.log.read_bytes()}
            for name, switch in waiting.items():
                assert switch.process is not None
                if switch.process.exit_code() is not None or time.monotonic() > deadline:
                    raise FabricError(f"switch {name} did not take its links' file:\n{switch.process.last_words(8)}")
            time.sleep(0.02)

    def _plan_file(self, switch: str) -> Path:
        return self._folder / f"{switch}.links.json"

    def start_delays(self) -> Process:
        """The process that delays frames; also a new one where that has died."""
        program = probes.program("fairlane-link")
        if program is None:
            raise FabricError("fairlane-link is not built: run 'make build'")
        self._starts += 1
        log = self._folder / "fairlane-link.log"
        written = log.stat().st_size if log.exists() else 0
        process = spawn("fairlane-link", delay_lines.command(program, self._lines, self._folder / f"delays.{self._starts}.json"), log)
        self._record.add(process.pid)
        deadline = time.monotonic() + _READY_TIMEOUT_S
        while b"ready" not in log.read_bytes()[written:]:
            if process.exit_code() is not None or time.monotonic() > deadline:
                if not shutil.disk_usage(self._folder).free:
                    # It may be ready, and cannot say so.
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(log))
                raise FabricError(f"fairlane-link {process.how_it_ended()} and carries no frames:\n{process.last_words(8)}")
            time.sleep(0.02)
        return process

    def wrong_checksums(self, host: str) -> int:
        """Datagrams that a host's kernel has dropped for a wrong header or checksum of IP, UDP, TCP or ICMP since the network's start."""
        read = ["mnexec", "-a", str(self.net[host].pid), "cat"]
        counts = _kernel_counts(_shell([*read, "/proc/net/snmp"]))
        if self.topology.ip == 6:  # TCP's are among those of IPv4
            lines = (line.split() for line in _shell([*read, "/proc/net/snmp6"]).splitlines())
            counts |= {name: int(value) for name, value in lines}
        return sum(value for name, value in counts.items() if name in ("Ip.InHdrErrors", "Ip6InHdrErrors") or name.endswith("InCsumErrors"))

    def precision(self) -> Precision | None:
        """The delay lines' precision, once the network has stopped; None without delay lines."""
        return delay_lines.precision([self._folder / f"delays.{n + 1}.json" for n in range(self._starts)])

    def restart(self, switch: FairlaneSwitch) -> Process:
        """Restart a switch that has died; it comes up empty, and the controller fills it. The embedded switch continues its
        statistics in another file: `s1.csv`, then `s1.2.csv`."""
        if self._bmv2 is None:
            starts = len(list(self._folder.glob(f"{switch.name}*.csv"))) + 1
            switch.settings = dataclasses.replace(switch.settings, stats=self._folder / f"{switch.name}.{starts}.csv")
        switch.start(None)
        assert switch.process is not None
        if self._bmv2 is not None:
            self._configure_queues(switch)
        return switch.process

    def _configure_queues(self, switch: FairlaneSwitch) -> None:
        if self._bmv2 is not None:
            reason = self._bmv2.configure(switch.settings)
            if reason is not None:
                raise FabricError(f"switch {switch.name}: its queues could not be set: {reason}")

    def spawn(self, host: str, name: str, argv: Sequence[str], log: Path, with_children: bool = False) -> Process:
        """Start a program on a host; see `fairlane.fabrics.processes.spawn`."""
        process = spawn(name, argv, log, namespace_pid=self.net[machine(host)].pid, with_children=with_children)
        self._record.add(process.pid)
        return process

    def round_trips(self, pairs: Iterable[tuple[str, str]], count: int = 12) -> list[RoundTrip]:
        """Ping each receiver from its sender, all at the same time."""
        pairs = list(dict.fromkeys(pairs))
        # Each at a pace of its own: no two stand in each other's way in a queue time and again. On BMv2 a ping takes as long as any packet,
        # so that many of them would fill a slow link.
        intervals = [0.05 + 0.0031 * (index % 16) for index in range(len(pairs))]
        share = addresses.busiest_share(
            self.topology, [(*pair, 1 / interval) for pair, interval in zip(pairs, intervals)], self._ping_bytes, self._seed
        )
        stretch = max(1.0, share / _PINGS_SHARE)
        running = []
        for (sender, receiver), interval in zip(pairs, intervals):
            log = self._folder / f"ping-{sender}-{receiver}.log"
            own, other = (self.addressing.hosts[host].ip for host in (sender, receiver))
            argv = ["ping", "-n", "-I", own, "-c", str(count), "-i", f"{interval * stretch:.4f}", "-W", "2", other]
            running.append(self.spawn(sender, f"ping {sender} -> {receiver}", argv, log))
        trips = []
        for (sender, receiver), process in zip(pairs, running):
            process.wait(10.0 + 0.1 * stretch * count)
            output = process.log.read_text(errors="replace")
            found = re.search(r"= ([\d.]+)/", output)
            if not found:
                stop_all(running)
                raise FabricError(f"{receiver} does not answer {sender}: ping said\n{output.strip()}")
            declared = addresses.round_trip_s(self.topology, sender, receiver, seed=self._seed)
            trips.append(RoundTrip(sender, receiver, declared, float(found[1]) / 1000))
            process.log.unlink()
        return trips

    def stop(self) -> None:
        if self._bmv2 is not None:
            self._bmv2.stop()
        if self.delays is not None:
            # While its interfaces are there: a frame that it cannot send counts as lost.
            stop_all([self.delays])
        self.net.stop()
        if (self._folder / "pcap").is_dir():
            captures.name_after_links(
                self._folder / "pcap", self.topology, lambda switch, port: interface_name(self.topology, self._record.prefix, switch, port)
            )
        for line in self._lines:
            # Mininet knows one end of each pair that it made, and none of these.
            subprocess.run(["ip", "link", "del", line.far], capture_output=True, check=False)

    def _launch(self, settings: SwitchSettings) -> Process:
        if settings.pcap is not None:
            settings.pcap.mkdir(exist_ok=True)
        process = spawn(f"switch {settings.name}", self._toolchain.switch_command(settings), settings.log)
        self._record.add(process.pid)
        return process

    def _add_link(self, index: int) -> None:
        ends = self.topology.ends(index)
        line = next((x for x in self._lines if x.link_index == index), None)
        a, b = (machine(port.node) for port in ends)
        first, second = map(self._end, ends)
        if line is not None:
            # The pair that Mininet makes ends at the delay line; a second one leads from there to the switch.
            switch = first if line.switch == a else second
            _shell(["ip", "link", "add", line.far, "type", "veth", "peer", "name", switch[1], "address", switch[2]])
            near = (switch[0], line.near, f"02:02:00:00:{index >> 8:02x}:{index & 255:02x}")
            first, second = (near, second) if line.switch == a else (first, near)
        self.net.addLink(a, b, port1=first[0], port2=second[0], intfName1=first[1], intfName2=second[1], addr1=first[2], addr2=second[2])

    def _end(self, port: Port) -> tuple[int, str, str]:
        """Port number, interface name and Ethernet address of a link's end."""
        if port.node in self.addressing.hosts:
            return port.number, _host_interface(port), self.addressing.hosts[port.node].mac
        name = interface_name(self.topology, self._record.prefix, port.node, port.number)
        return port.number, name, self.addressing.port_macs[port.node, port.number]

    def _configure_root(self) -> None:
        names = [p.interface for s in self.switches for p in s.settings.ports]
        names += [end for line in self._lines for end in (line.near, line.far)]
        lines = []
        for name in names:
            lines += [
                f"ethtool -K {name} {_OFFLOADS} >/dev/null",
                f"echo 1 > /proc/sys/net/ipv6/conf/{name}/disable_ipv6",
                f"ip link set {name} mtu {self._mtu} up",
            ]
        _shell(["sh", "-ec", "\n".join(_without_ipv6(lines))])

    def _configure_host(self, name: str) -> None:
        """name: of a host, or of another of its links. Each link has an address, and what is sent from there leaves by it: the first link has the main table of
        routes, another one a table of its own, of its port's number."""
        node = self.net[machine(name)]
        port = self.topology.ports()[name][0]
        address = self.addressing.hosts[name]
        interface = _host_interface(port)
        tcp = self._host_tcp.get(machine(name), HostTcp((), ()))
        first = name in self.topology.machines
        table = ["table", "main" if first else str(_FIRST_TABLE + port.number)]
        lines = [
            f"ethtool -K {interface} {_OFFLOADS} >/dev/null",
            "ip link set lo up",
            *(_ipv4 if self.topology.ip == 4 else _ipv6)(interface, address, self.addressing.prefix_length, self._mtu),
            shlex.join(["ip", "route", "replace", address.gateway_ip, "dev", interface, "scope", "link", *table]),
            shlex.join(["ip", "route", "replace", "default", "via", address.gateway_ip, "dev", interface, *table, *tcp.route]),
            *([] if first else [shlex.join(["ip", *(["-6"] if self.topology.ip == 6 else []), "rule", "add", "from", address.ip, *table])]),
            *(f"sysctl -q -w {shlex.quote(s)}" for s in tcp.sysctls),
        ]
        shape = self.shaping.command(interface, port.link.rate_bps, port.link.delay_s, port.link.queue_packets, self._mtu)
        if shape is not None and port.link_index not in self._plans.uplinks:
            lines.append(shape)
        _shell(["mnexec", "-a", str(node.pid), "sh", "-ec", "\n".join(_without_ipv6(lines))])
        if first:
            node.know(ip_interface(f"{address.ip}/{self.addressing.prefix_length}"))


def _host_interface(port: Port) -> str:
    """`h1-eth0`. port: of a host."""
    return f"{machine(port.node)}-eth{port.number}"[-15:]


def _bmv2_switches(sizes: PacketSizes, program: Path | None) -> Bmv2Switches:
    # Its Thrift library is imported only where it is needed.
    from fairlane.fabrics.bmv2_stats import reports_queues
    from fairlane.fabrics.bmv2_switches import Bmv2Switches

    return Bmv2Switches(sizes, program is None or reports_queues(program))


def _kernel_counts(text: str) -> dict[str, int]:
    """Of /proc/net/snmp, by name ("Udp.InCsumErrors"): each protocol has a line of names and one of values."""
    lines = [line.split() for line in text.splitlines()]
    return {
        f"{names[0].removesuffix(':')}.{name}": int(value)
        for names, values in zip(lines[::2], lines[1::2])
        for name, value in zip(names[1:], values[1:])
    }


def _ipv4(interface: str, address: HostAddress, prefix_length: int, mtu: int) -> list[str]:
    """The address of a host's interface. All hosts of a switch share a subnet, but only the gateway is a neighbour: routes go through the switch."""
    return [
        "echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6",
        f"ip link set {interface} mtu {mtu} up",
        f"ip addr replace {address.ip}/{prefix_length} dev {interface}",
        f"ip neigh replace {address.gateway_ip} lladdr {address.gateway_mac} nud permanent dev {interface}",
        f"ip route del {ip_interface(f'{address.ip}/{prefix_length}').network} dev {interface}",
    ]


def _ipv6(interface: str, address: HostAddress, prefix_length: int, mtu: int) -> list[str]:
    """The same over IPv6: no link-local address, no search for routers or for others with its address, and the gateway is known."""
    settings = {"disable_ipv6": 0, "addr_gen_mode": 1, "accept_ra": 0, "accept_dad": 0, "router_solicitations": 0}
    return [
        f"ip link set {interface} down",
        *(f"echo {value} > /proc/sys/net/ipv6/conf/{interface}/{name}" for name, value in settings.items()),
        f"ip link set {interface} mtu {mtu} up",
        f"ip addr replace {address.ip}/{prefix_length} dev {interface} nodad noprefixroute",
        f"ip neigh replace {address.gateway_ip} lladdr {address.gateway_mac} nud permanent dev {interface}",
    ]


def _without_ipv6(lines: list[str]) -> list[str]:
    """A kernel without IPv6 has nothing to turn off."""
    return lines if Path("/proc/sys/net/ipv6").is_dir() else [line for line in lines if "ipv6" not in line]


def _shell(argv: list[str]) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    if done.returncode != 0:
        raise FabricError(f"could not configure an interface: {done.stderr.strip() or done.stdout.strip()}\nthe commands were:\n{argv[-1]}")
    return done.stdout
