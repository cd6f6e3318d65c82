"""The command lines of the targets, and what BMv2 cannot be."""

from __future__ import annotations

from pathlib import Path

from topologies import bmv2_ports
from topologies.model import Link
from topologies.switch_process import PortSetting, SwitchSettings, bmv2_command, embedded_command

PORTS = (PortSetting(1, "f000-s1-p1", 10e6, 250, 0.005), PortSetting(2, "f000-s1-p2", 100e6, 1000, 0.0))
SETTINGS = SwitchSettings("s1", 1, 9559, PORTS, Path("s1.log"), Path("s1.csv"), seed=7)


def test_the_embedded_switch_is_told_everything() -> None:
    assert embedded_command(Path("fairlane-switch"), SETTINGS) == [
        "fairlane-switch", "-i", "1@f000-s1-p1", "-i", "2@f000-s1-p2", "--no-p4", "--device-id", "1",
        "--port-rate", "1=10000000bit", "--port-queue", "1=250p", "--port-delay", "1=5000000ns",
        "--port-rate", "2=100000000bit", "--port-queue", "2=1000p",
        "--stats", "s1.csv", "--stats-interval", "0.1", "--seed", "7", "--", "--grpc-server-addr", "127.0.0.1:9559", "--cpu-port", "510"]


def test_bmv2_is_told_only_what_it_knows() -> None:
    assert bmv2_command(Path("simple_switch_grpc"), SETTINGS) == [
        "simple_switch_grpc", "-i", "1@f000-s1-p1", "-i", "2@f000-s1-p2", "--no-p4", "--device-id", "1",
        "--log-console", "-L", "warn", "--thrift-port", "10559", "--", "--grpc-server-addr", "127.0.0.1:9559", "--cpu-port", "510"]


def test_rates_in_packets_are_right_for_the_experiments_packets() -> None:
    # 10 Mb/s of 1000 bytes and an Ethernet header: 1232.7 packets a second.
    assert bmv2_ports.queue_commands(PORTS, 1000) == (
        "set_queue_depth 250 1\nset_queue_rate 1233 1\nset_queue_depth 1000 2\nset_queue_rate 12327 2\n")


def test_what_bmv2_cannot_be_is_known_before_it_starts() -> None:
    links = (Link(("h1", "s1"), 1e8), Link(("s1", "s2"), 1e7, delay_s=0.005))
    assert bmv2_ports.obstacle(links, has_netem=False, cli=Path("cli")) == (
        "link s1 - s2 has a delay of 5 ms, BMv2 has none, and this kernel has no netem")
    assert "simple_switch_CLI is not in PATH" in bmv2_ports.obstacle(links, has_netem=True, cli=None)
    assert bmv2_ports.obstacle(links[:1], has_netem=False, cli=Path("cli")) is None
