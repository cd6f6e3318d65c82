"""A tutorials' topology as a Mininet network, as `run_exercise.py` makes it: `eth0` on every host, switches s1, s2, ... with device ids
0, 1, ... and P4Runtime on ports that count up, so that the exercises' own controllers find them.

The ports of the embedded switch set latency and bandwidth; hosts' interfaces do too, where the kernel can.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from google.protobuf import text_format
from mininet.link import Link as MininetLink
from mininet.log import setLogLevel
from mininet.net import Mininet

from fairlane import probes
from fairlane.controller.grpc_client import GrpcSwitch, SwitchError
from fairlane.controller.p4info import P4Info
from fairlane.errors import RunFailed
from fairlane.fabrics.leftovers import RunRecord
from fairlane.fabrics.mininet_builder import FabricError, FairlaneHost, FairlaneSwitch, HostShaping
from fairlane.fabrics.processes import Process, spawn
from fairlane.fabrics.switch_process import SwitchSettings
from fairlane.fabrics.targets import Toolchain
from fairlane.tutorials.programs import ELECTION_ID, QUEUE_PACKETS, SwitchProgram
from fairlane.tutorials.topology import Host, Link, TutorialTopology

_OFFLOADS = "rx off tx off sg off tso off gso off gro off"


@dataclass(frozen=True)
class Ping:
    """received of sent echoes. least_s: the shortest round trip, None where nothing came back."""

    source: str
    target: str
    sent: int
    received: int
    least_s: float | None


class TutorialNetwork:
    """A running network. Construct it, `start` it, and always `stop` it at the end."""

    def __init__(
        self,
        topology: TutorialTopology,
        programs: Sequence[SwitchProgram],
        *,
        folder: Path,
        record: RunRecord,
        toolchain: Toolchain,
        first_grpc_port: int,
        pcap: Path | None,
        say: Callable[[str], None],
    ) -> None:
        setLogLevel("error")
        self.topology = topology
        self._programs = {p.switch.name: p for p in programs}
        self._folder = folder
        self._record = record
        self._toolchain = toolchain
        self._pcap = pcap
        self._say = say
        self._shaping = HostShaping.probe()
        self.net = Mininet(topo=None, build=False, controller=None, switch=FairlaneSwitch, host=FairlaneHost, link=MininetLink)
        for index, switch in enumerate(topology.switches):
            settings = SwitchSettings(
                switch.name,
                index,
                first_grpc_port + index,
                (),
                folder / f"{switch.name}.log",
                folder / f"{switch.name}.csv",
                seed=index + 1,
                pcap=pcap,
            )
            record.add(self.net.addSwitch(switch.name, settings=settings, launch=self._launch).pid)
        for host in topology.hosts:
            record.add(self.net.addHost(host.name, ip=None, mac=host.mac, mark=record.mark).pid)
        for link in topology.links:
            self._add_link(link)
        self._configure_root()
        for host in topology.hosts:
            self._configure_host(host)
        # Mininet would otherwise configure the hosts again when it starts.
        self.net.built = True

    def start(self) -> None:
        """Start all switches, wait until each serves P4Runtime, and write the entries of the runtime files."""
        self.net.start()
        for switch in self.net.switches:
            try:
                switch.wait_ready()
            except FabricError as error:
                raise RunFailed(str(error)) from error
        for switch in self.net.switches:
            self._program(switch)

    def stop(self) -> None:
        self.net.stop()

    def ping_all(self, count: int = 2) -> list[Ping]:
        """Every host pings every other, all at the same time. Pairs without an answer are asked once more and given more time, so that a busy machine
        does not pass for a wrong table."""
        pairs = [(s, t) for s in self.topology.hosts for t in self.topology.hosts if s is not t]
        first = self._ping(pairs, count, 1)
        silent = [pair for pair, ping in zip(pairs, first, strict=True) if ping.received == 0]
        again = {(p.source, p.target): replace(p, sent=p.sent + count) for p in self._ping(silent, count, 3)}
        return [again.get((p.source, p.target), p) for p in first]

    def _ping(self, pairs: Sequence[tuple[Host, Host]], count: int, wait_s: int) -> list[Ping]:
        running = []
        for source, target in pairs:
            log = self._folder / f"ping-{source.name}-{target.name}.log"
            argv = ["ping", "-n", "-c", str(count), "-i", "0.2", "-W", str(wait_s), str(target.ip.ip)]
            process = spawn(f"ping {source.name} -> {target.name}", argv, log, namespace_pid=self.net[source.name].pid)
            self._record.add(process.pid)
            running.append((source.name, target.name, process))
        results = []
        for sender, receiver, process in running:
            process.wait(10.0 + count + wait_s)
            output = process.log.read_text(errors="replace")
            received = re.search(r"(\d+) received", output)
            least = re.search(r"= ([\d.]+)/", output)
            results.append(Ping(sender, receiver, count, int(received[1]) if received else 0, float(least[1]) / 1e3 if least else None))
            process.log.unlink()
        return results

    def _launch(self, settings: SwitchSettings) -> Process:
        if settings.pcap is not None:
            settings.pcap.mkdir(parents=True, exist_ok=True)
        process = spawn(f"switch {settings.name}", self._command(settings), settings.log)
        self._record.add(process.pid)
        return process

    def _command(self, settings: SwitchSettings) -> list[str]:
        """`simple_switch_grpc`'s options, which both switches take; the embedded one has rates and delays besides."""
        switch = self._programs[settings.name].switch
        embedded = self._toolchain.target.own_links
        command = [str(self._toolchain.switch), "--no-p4", "--device-id", str(settings.device_id)]
        hosts = {h.name for h in self.topology.hosts}
        for number, link in self.topology.ports(settings.name).items():
            command += ["-i", f"{number}@{self._interface(settings.name, number)}"]
            if not embedded:
                continue
            if link.rate_bps is not None:
                command += ["--port-rate", f"{number}={link.rate_bps:.0f}bit"]
            both_ways = link.a in hosts and self._shaping.delay == "none"
            if link.delay_s > 0:
                command += ["--port-delay", f"{number}={link.delay_s * (2 if both_ways else 1) * 1e9:.0f}ns"]
        if embedded:
            command += ["--port-queue", f"all={QUEUE_PACKETS}p", "--stats", str(settings.stats), "--log-console", "-L", "info"]
        else:
            command += ["--log-console", "-L", "warn", "--thrift-port", str(settings.thrift_port)]
        if settings.pcap is not None:
            command += ["--pcap", str(settings.pcap)]
        command += ["--", "--grpc-server-addr", settings.address]
        if switch.cpu_port is not None:
            command += ["--cpu-port", str(switch.cpu_port)]
        if switch.priority_queues > 1:
            command += ["--priority-queues", str(switch.priority_queues)]
        return command

    def _program(self, switch: FairlaneSwitch) -> None:
        program = self._programs[switch.name]
        session = GrpcSwitch(
            switch.name,
            switch.settings.address,
            switch.settings.device_id,
            ELECTION_ID,
            on_message=lambda message: None,
            on_closed=lambda reason: None,
            timeout_s=10.0,
        )
        try:
            session.connect()
            session.push_pipeline(P4Info.read(program.p4info).message, program.json, cookie=1)
            self._say(
                f"{switch.name}: {program.origin}, P4Runtime on {switch.settings.address}, device id {switch.settings.device_id}; "
                + (
                    f"{len(program.updates)} entries of {program.runtime.document.name}"
                    if program.runtime is not None
                    else "no runtime_json: your controller writes its entries"
                )
            )
            if program.runtime is not None:
                requests = self._folder / f"{switch.name}-p4runtime-requests.txt"
                requests.write_text("".join(f"{text_format.MessageToString(u.update)}---\n" for u in program.updates))
            for located in program.updates:
                try:
                    session.apply([located.update])
                except SwitchError as error:
                    assert program.runtime is not None
                    raise program.runtime.document.error(located.path, str(error)) from error
        except SwitchError as error:
            raise RunFailed(str(error)) from error
        finally:
            session.close()

    def _interface(self, switch: str, port: int) -> str:
        return f"{self._record.prefix}{switch}-p{port}"[:15]

    def _add_link(self, link: Link) -> None:
        host = next((h for h in self.topology.hosts if h.name == link.a), None)
        first = "eth0" if host is not None else self._interface(link.a, link.a_port)
        self.net.addLink(
            link.a,
            link.b,
            port1=link.a_port,
            port2=link.b_port,
            intfName1=first,
            intfName2=self._interface(link.b, link.b_port),
            addr1=host.mac if host is not None else self._mac(link.a, link.a_port),
            addr2=self._mac(link.b, link.b_port),
        )

    def _mac(self, switch: str, port: int) -> str:
        """Of a switch's interface: no program sees it, but Mininet wants both ends' or none."""
        index = next(i for i, s in enumerate(self.topology.switches) if s.name == switch)
        return f"02:f1:{index // 256:02x}:{index % 256:02x}:{port // 256:02x}:{port % 256:02x}"

    def _configure_root(self) -> None:
        lines = []
        for switch in self.topology.switches:
            for number in self.topology.ports(switch.name):
                name = self._interface(switch.name, number)
                lines += [f"ethtool -K {name} {_OFFLOADS} >/dev/null", *_no_ipv6(name), f"ip link set {name} up"]
        _shell(["sh", "-ec", "\n".join(lines)])

    def _configure_host(self, host: Host) -> None:
        pid = self.net[host.name].pid
        link = self.topology.host_link(host.name)
        lines = [
            "ip link set lo up",
            *_no_ipv6("all"),
            *_no_ipv6("default"),
            f"ethtool -K eth0 {_OFFLOADS} >/dev/null",
            f"ip link set eth0 address {host.mac} up",
            f"ip addr replace {host.ip} dev eth0",
        ]
        if link.rate_bps is not None or (link.delay_s > 0 and self._shaping.delay == "netem"):
            shape = self._shaping.command("eth0", link.rate_bps or 10e9, link.delay_s, 1000)
            lines += [] if shape is None else [shape]
        _shell(["mnexec", "-a", str(pid), "sh", "-ec", "\n".join(lines)])
        self.net[host.name].know(host.ip)
        for command in host.commands:
            done = subprocess.run(["mnexec", "-a", str(pid), *command.argv], capture_output=True, text=True, check=False, timeout=10)
            # As in the tutorials, a host goes on without: a route that its address made already is the usual case.
            if done.returncode != 0 and "File exists" not in done.stderr:
                self._say(f"note: {host.name}: {command.text!r} failed: {done.stderr.strip() or done.stdout.strip()}")


def _no_ipv6(name: str) -> list[str]:
    """A kernel without IPv6 has nothing to turn off."""
    return [f"echo 1 > /proc/sys/net/ipv6/conf/{name}/disable_ipv6"] if Path("/proc/sys/net/ipv6").is_dir() else []


def _shell(argv: list[str]) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    if done.returncode != 0:
        raise RunFailed(f"could not configure an interface: {done.stderr.strip() or done.stdout.strip()}\nthe commands were:\n{argv[-1]}")


def obstacle(topology: TutorialTopology) -> str | None:
    """Why BMv2 cannot be this network's switches, None where it can: its ports have neither rates in bits nor delays."""
    for i, link in enumerate(topology.links):
        if link.rate_bps is not None or link.delay_s > 0:
            file, line = topology.document.place(("links", i))
            return f"{file}:{line}: links[{i}] has a latency or bandwidth, which BMv2's ports do not have{_netem()}"
    return None


def _netem() -> str:
    return "" if probes.has_qdisc("netem") else ", and this kernel has no netem"
