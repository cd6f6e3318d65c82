"""The command lines of the targets, and what BMv2 cannot be."""

from __future__ import annotations

import json
from pathlib import Path

from fairlane.fabrics import bmv2_ports, delay_lines
from fairlane.fabrics.delay_lines import DelayLine
from fairlane.fabrics.switch_process import PortSetting, SwitchSettings, bmv2_command, embedded_command, thrift_port
from fairlane.topologies import builders
from fairlane.topologies.builders import LinkSpec
from fairlane.topologies.model import Link, Node, Topology

PORTS = (PortSetting(1, "f000-s1-p1", 10e6, 250, 0.005), PortSetting(2, "f000-s1-p2", 100e6, 1000, 0.0))
SETTINGS = SwitchSettings("s1", 1, 9559, PORTS, Path("s1.log"), Path("s1.csv"), seed=7)


def test_the_embedded_switch_is_told_everything() -> None:
    assert embedded_command(Path("fairlane-switch"), SETTINGS) == [
        "fairlane-switch",
        "-i",
        "1@f000-s1-p1",
        "-i",
        "2@f000-s1-p2",
        "--no-p4",
        "--device-id",
        "1",
        "--port-rate",
        "1=10000000bit",
        "--port-queue",
        "1=250p",
        "--port-delay",
        "1=5000000ns",
        "--port-rate",
        "2=100000000bit",
        "--port-queue",
        "2=1000p",
        "--stats",
        "s1.csv",
        "--stats-interval",
        "0.1",
        "--seed",
        "7",
        "--",
        "--grpc-server-addr",
        "127.0.0.1:9559",
        "--cpu-port",
        "510",
    ]


def test_bmv2_is_told_only_what_it_knows() -> None:
    assert bmv2_command(Path("simple_switch_grpc"), SETTINGS) == [
        "simple_switch_grpc",
        "-i",
        "1@f000-s1-p1",
        "-i",
        "2@f000-s1-p2",
        "--no-p4",
        "--device-id",
        "1",
        "--log-console",
        "-L",
        "warn",
        "--thrift-port",
        "10559",
        "--",
        "--grpc-server-addr",
        "127.0.0.1:9559",
        "--cpu-port",
        "510",
    ]


def test_rates_in_packets_are_right_for_the_experiments_packets() -> None:
    # 10 Mb/s of 1000 bytes and an Ethernet header: 1232.7 packets a second.
    assert [bmv2_ports.rate_pps(rate, 1000) for rate in (10e6, 100e6, 1.0)] == [1233, 12327, 1]


def test_a_thrift_port_is_clear_of_the_other_switches_and_exists() -> None:
    assert (thrift_port(9559), thrift_port(64535), thrift_port(64536), thrift_port(65000)) == (10559, 65535, 63536, 64000)


def dumbbell(bottleneck_bps: float, delay_s: float = 0.0) -> Topology:
    return builders.dumbbell(2, LinkSpec(bottleneck_bps, delay_s), LinkSpec(1e9))


def test_what_bmv2_cannot_be_is_known_before_it_starts() -> None:
    topology = dumbbell(1e7, 0.005)
    assert bmv2_ports.obstacle(topology, has_netem=False, has_delay_line=False) == (
        "link s1 - s2 has a delay of 5 ms, but BMv2 has no delays, this kernel has no netem, and fairlane-link is not built ('make build')"
    )
    assert bmv2_ports.obstacle(topology, has_netem=True, has_delay_line=False) is None
    assert bmv2_ports.obstacle(topology, has_netem=False, has_delay_line=True) is None
    assert bmv2_ports.obstacle(dumbbell(1e7), has_netem=False, has_delay_line=False) is None


def test_what_a_rate_in_packets_means_is_said() -> None:
    alike, mixed = bmv2_ports.PacketSizes(1000, 1000), bmv2_ports.PacketSizes(186, 1000)
    said = bmv2_ports.sentences(dumbbell(1e7), alike)
    assert len(said) == 1 and "in packets of 1000 bytes (1014 with Ethernet header)" in said[0]
    assert bmv2_ports.sentences(dumbbell(1e7), mixed)[1:] == [
        "warning: packets have 186 to 1000 bytes: a link full of the small ones carries 20% of its rate"
    ]
    fast = bmv2_ports.sentences(dumbbell(1e8), alike)[1:]
    assert fast == [
        "warning: s1->s2 at 100 Mb/s carries 12327 packets/s of 1000 bytes, and BMv2 forwards about 8000 on a machine of two"
        " cores: the link will not be full"
    ]
    # Links to hosts are fast in every experiment, and never full.
    assert bmv2_ports.reluctance(dumbbell(1e7), alike) is None


def test_netem_holds_what_is_on_the_way_and_no_queue() -> None:
    command = bmv2_ports.netem_command(PORTS[0])
    assert command[-4:] == ["delay", "5000us", "limit", str(int(10e6 * 0.005 / 8 / 64) + 100)]
    assert command[command.index("dev") + 1] == "f000-s1-p1"


def test_a_delay_line_for_each_link_with_a_delay_on_the_switchs_side() -> None:
    topology = Topology(
        (Node("h1", "host"), Node("h2", "host"), Node("s1", "switch"), Node("s2", "switch")),
        (Link(("h1", "s1"), 1e8), Link(("s1", "s2"), 1e7, 0.005), Link(("s2", "h2"), 1e8, 0.0001)),
    )
    lines = delay_lines.plan(topology, "f000-")
    assert lines == (DelayLine(1, 0.005, "f000-l1a", "f000-l1b", "s2"), DelayLine(2, 0.0001, "f000-l2a", "f000-l2b", "s2"))
    assert delay_lines.command(Path("fairlane-link"), lines, Path("d.json")) == [
        "fairlane-link",
        "--link",
        "f000-l1a,f000-l1b=5000000ns",
        "--link",
        "f000-l2a,f000-l2b=100000ns",
        "--report",
        "d.json",
    ]


def test_precision_is_over_all_directions_and_all_reports(tmp_path: Path) -> None:
    def direction(frames: int, mean: float, p99: float, **counts: int) -> dict:
        return {
            "from": "a",
            "to": "b",
            "frames": frames,
            "late_mean_us": mean,
            "late_p50_us": 1.0,
            "late_p99_us": p99,
            "late_max_us": 2 * p99,
            "dropped": 0,
            "missed": 0,
            "failed": 0,
            **counts,
        }

    first, second, never = (tmp_path / name for name in ("1.json", "2.json", "3.json"))
    first.write_text(json.dumps([direction(300, 10.0, 50.0), direction(0, 0.0, 0.0, dropped=1)]))
    second.write_text(json.dumps([direction(100, 50.0, 90.0, missed=2, failed=4)]))
    found = delay_lines.precision([first, second, never])
    assert found == delay_lines.Precision(400, 20.0, 90.0, 180.0, 7)
    assert (
        found.sentence()
        == "delay lines: 400 frames, 7 of them lost; they left 20 us late on average, 99% within 90 us, the latest after 0.2 ms"
    )
    assert delay_lines.precision([never]) is None
