"""The Mininet fabric for real: namespaces, interfaces, and that nothing stays behind. The switch is a process that only sleeps
where forwarding does not matter."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlane import probes
from fairlane.fabrics import leftovers
from fairlane.fabrics.flows import HostTcp
from fairlane.fabrics.leftovers import RunRecord
from fairlane.fabrics.processes import Identity
from fairlane.fabrics.switch_process import EMBEDDED
from fairlane.fabrics.targets import Toolchain
from fairlane.topologies import builders
from fairlane.topologies.builders import LinkSpec

pytestmark = pytest.mark.root
if not probes.is_root():
    pytest.skip("needs root", allow_module_level=True)
if not probes.has_mininet():
    pytest.skip("needs Mininet (apt-get install mininet)", allow_module_level=True)

from fairlane.fabrics.mininet_builder import FabricError, HostShaping, MininetNetwork, interface_name, port_settings
from tests.waiting import until

ROOT = probes.ROOT
TOPOLOGY = builders.dumbbell(2, LinkSpec(10e6, 0.005, 100), LinkSpec(100e6, 0.001, 50))


# In a session of its own, whose parent has ended; prints its number.
DAEMON = "out=$(mktemp) && setsid -f sh -c 'echo $$ > '$out'; exec sleep 300' && sleep 0.3 && cat $out && rm $out"


def toolchain(folder: Path, script: str = "exec sleep 60") -> Toolchain:
    switch = folder / "switch"
    switch.write_text(f"#!/bin/sh\n{script}\n")
    switch.chmod(0o755)
    return Toolchain(EMBEDDED, switch, switch, "a test")


@pytest.fixture
def network(tmp_path: Path) -> Iterator[MininetNetwork]:
    record = RunRecord.create("a test")
    built = None
    try:
        built = MininetNetwork(
            TOPOLOGY,
            folder=tmp_path,
            record=record,
            toolchain=toolchain(tmp_path),
            first_grpc_port=19559,
            host_tcp={"h1": HostTcp(("net.ipv4.tcp_sack=0",), ("advmss", "60"))},
        )
        yield built
    finally:
        if built is not None:
            built.stop()
        assert leftovers.interfaces(record.prefix) == []
        assert record.release() == [], "stop left something behind"


def on_host(network: MininetNetwork, host: str, *argv: str) -> str:
    return subprocess.run(["mnexec", "-a", str(network.net[host].pid), *argv], capture_output=True, text=True, check=True).stdout


def test_hosts_are_what_the_topology_says(network: MininetNetwork) -> None:
    address = network.addressing.hosts["h1"]
    assert f"inet {address.ip}/24" in on_host(network, "h1", "ip", "addr", "show", "h1-eth0")
    assert address.mac in on_host(network, "h1", "ip", "link", "show", "h1-eth0")
    assert "inet6" not in on_host(network, "h1", "ip", "addr")
    # Hosts of one switch talk through it: no route but the gateway's.
    routes = [line.strip() for line in on_host(network, "h1", "ip", "route").splitlines()]
    assert routes == [f"default via {address.gateway_ip} dev h1-eth0 advmss 60", f"{address.gateway_ip} dev h1-eth0 scope link"]
    assert f"{address.gateway_ip} dev h1-eth0 lladdr {address.gateway_mac} PERMANENT" in on_host(network, "h1", "ip", "neigh")
    assert [on_host(network, h, "sysctl", "-n", "net.ipv4.tcp_sack").strip() for h in ("h1", "h2")] == ["0", "1"]
    assert Path("/proc/sys/net/ipv4/tcp_sack").read_text().strip() == "1", "the machine's own setting must not change"


def test_hosts_know_their_addresses(network: MininetNetwork) -> None:
    """Without them, the prompt's `h1 ping h2` and `pingpair` look for a host called None."""
    for name in TOPOLOGY.hosts:
        assert network.net[name].IP() == network.addressing.hosts[name].ip
    assert network.net["h1"].intf().prefixLen == 24


def test_offloads_are_off_at_both_ends(network: MininetNetwork) -> None:
    names = [p.interface for s in network.switches for p in s.settings.ports]
    outputs = [subprocess.run(["ethtool", "-k", n], capture_output=True, text=True, check=True).stdout for n in names]
    outputs += [on_host(network, h, "ethtool", "-k", f"{h}-eth0") for h in TOPOLOGY.hosts]
    for output in outputs:
        for feature in (
            "tx-checksumming",
            "rx-checksumming",
            "tcp-segmentation-offload",
            "generic-segmentation-offload",
            "generic-receive-offload",
            "scatter-gather",
        ):
            assert re.search(rf"^{feature}: off", output, re.MULTILINE), feature


def test_the_switch_gets_rates_queues_and_delays(network: MininetNetwork, tmp_path: Path) -> None:
    settings = network.switches[0].settings
    command = network._toolchain.switch_command(settings)
    assert (settings.ports[0].rate_bps, settings.ports[0].queue_packets, settings.ports[0].delay_s) == (10e6, 100, 0.005)
    for word in ("--port-rate", "1=10000000bit", "--port-queue", "1=100p", "--port-delay", "1=5000000ns", "--no-p4"):
        assert word in command
    assert command[command.index("--") :] == ["--", "--grpc-server-addr", "127.0.0.1:19559", "--cpu-port", "510"]


@pytest.mark.parametrize(("in_switch", "to_host"), [(True, 0.002), (False, 0.001)])
def test_a_host_links_delay_is_somewhere_once(in_switch: bool, to_host: float) -> None:
    ports = port_settings(TOPOLOGY, "fxxx-", in_switch)["s1"]
    assert [p.delay_s for p in ports] == [0.005, to_host, to_host]


def test_interface_names_fit() -> None:
    assert interface_name(TOPOLOGY, "f3a2-", "s1", 250) == "f3a2-s1-p250"
    chain = builders.chain([(1, 2)], 2, LinkSpec(1e6), LinkSpec(1e6))
    renamed = type("T", (), {"switches": ("a-rather-long-name", "another-long-name")})()
    assert interface_name(renamed, "f3a2-", "another-long-name", 509) == "f3a2-2-p509"
    assert len(interface_name(chain, "f3a2-", "s1", 509)) <= 15


def test_hosts_send_no_faster_than_their_link(network: MininetNetwork) -> None:
    if HostShaping.probe().rate != "tbf":
        pytest.skip("this kernel has no tbf")
    assert "rate 100Mbit" in on_host(network, "h1", "tc", "qdisc", "show", "dev", "h1-eth0")


def test_a_switch_that_does_not_start_is_reported_with_its_last_words(tmp_path: Path) -> None:
    record = RunRecord.create("a test")
    built = MininetNetwork(
        TOPOLOGY, folder=tmp_path, record=record, first_grpc_port=19559, toolchain=toolchain(tmp_path, "echo no licence to switch; exit 3")
    )
    try:
        with pytest.raises(FabricError, match="switch s1 ended with code 3 at once:\nno licence to switch"):
            built.start()
    finally:
        built.stop()
        assert record.release() == []


def test_a_killed_run_leaves_only_what_the_next_one_removes(tmp_path: Path) -> None:
    toolchain(tmp_path)
    script = f"""
import time
from pathlib import Path
from fairlane.fabrics.leftovers import RunRecord
from fairlane.fabrics.switch_process import EMBEDDED
from fairlane.fabrics.targets import Toolchain
from fairlane.topologies import builders
from fairlane.topologies.builders import LinkSpec
from fairlane.fabrics.mininet_builder import MininetNetwork
record = RunRecord.create("a test")
folder = Path({str(tmp_path)!r})
network = MininetNetwork(builders.dumbbell(2, LinkSpec(1e7), LinkSpec(1e8)), folder=folder, record=record,
                         toolchain=Toolchain(EMBEDDED, folder / "switch", folder / "switch", ""), first_grpc_port=19559)
network.net.start()
network.spawn("h1", "child", ["sh", "-c", "sleep 300 & sleep 300"], folder / "child.log", with_children=True)
print(record.prefix, network.net["h1"].cmd({DAEMON!r}).strip(), flush=True)
time.sleep(300)
"""
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    prefix, daemon_pid = process.stdout.readline().split()
    daemon = Identity.of(int(daemon_pid))
    assert daemon is not None
    assert len(leftovers.interfaces(prefix)) == 6
    record = next(r for r in leftovers.records() if r.prefix == prefix)
    members = [m for c in record.children for m in c.session()]
    assert len(members) >= 8  # four hosts' and two switches' shells, two switches, the child
    assert not [r for r in leftovers.clean() if prefix in r], "a live run is left alone"
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    until(lambda: not [m for m in members if m.alive()], what="the end of the run's children")
    leftovers.clean()
    assert leftovers.interfaces(prefix) == [] and not daemon.alive()
    assert prefix not in [r.prefix for r in leftovers.records()]
