"""IPv6 from end to end: the same experiment over both versions and on both fabrics; every checksum as Wireshark computes it."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from ipaddress import IPv6Address
from pathlib import Path
from typing import Any

import pytest

from fairlane import probes
from fairlane.experiments import loader
from fairlane.inputs.located_toml import ConfigError
from fairlane.topologies import addressing
from tests.fabrics.late import summary_of

needs_switch = pytest.mark.skipif(probes.program("fairlane-switch") is None, reason="not built: run `make build`")
needs_mininet = pytest.mark.skipif(
    not (probes.is_root() and probes.has_mininet() and Path("/proc/sys/net/ipv6").is_dir()), reason="needs root, Mininet and IPv6"
)

FILE = """
title = "IPv6"
bottleneck = "s1->s2"
duration_s = 12
seed = 3
[topology]
kind = "dumbbell"
pairs = 5
bottleneck = { rate_bps = 10_000_000, delay_s = 0.01, queue_packets = 50, queue = "red", red = { ecn = true } }
access = { rate_bps = 100_000_000, delay_s = 0.001 }
[tcp]
ecn = true
"""
KINDS = ("als", "rap", "tcp-sack", "cbr", "rcp")


def written(folder: Path, kinds: tuple[str, ...] = KINDS, more: str = "") -> Path:
    flows = (f'[[flows]]\nname = "{kind}"\nkind = "{kind}"\n' for kind in kinds)
    file = folder / "ipv6.toml"
    file.write_text(FILE + more + "\n".join(flows), encoding="utf-8")
    return file


def run(file: Path, out: Path, ip: int, fabric: str = "virtual", **options: Any) -> dict[str, Any]:
    command = [shutil.which("fairlane", path=str(probes.VENV_BIN)) or "fairlane", "run", str(file), "--ip", str(ip), "--fabric", fabric]
    command += [word for key, value in options.items() for word in (f"--{key}", str(value))]
    done = subprocess.run([*command, "--out", str(out)], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode in ((0, 5) if fabric == "mininet" else (0,)), done.stdout + done.stderr
    return summary_of(out)


def goodputs(summary: dict[str, Any]) -> dict[str, float]:
    return {flow["name"]: float(flow["goodput_bps"]) for flow in summary["flows"]}


def tshark(capture: Path, folder: Path, display: str, *fields: str) -> list[list[str]]:
    """Wireshark's fields of the packets that a filter takes, all checksums verified."""
    copy = Path("/tmp") / f"{folder.name}-{capture.name}"  # where tshark may read as another user
    shutil.copy(capture, copy)
    checks = [word for name in ("ip", "tcp", "udp") for word in ("-o", f"{name}.check_checksum:TRUE")]
    command = ["tshark", "-r", str(copy), *checks, "-Y", display, "-T", "fields", *(word for field in fields for word in ("-e", field))]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    copy.unlink()
    return [line.split("\t") for line in done.stdout.splitlines()]


def test_addresses_hold_those_of_ipv4(tmp_path: Path) -> None:
    file = written(tmp_path)
    four, six = (loader.load(file, ip=ip) for ip in (None, 6))
    assert (four.topology.ip, six.topology.ip) == (4, 6)
    assert "IPV6" in six.defines and "IPV6" not in four.defines
    old, new = (addressing.host_addresses(experiment.topology) for experiment in (four, six))
    for host, address in new.items():
        assert IPv6Address(address.ip).packed[-4:] == bytes(map(int, old[host].ip.split(".")))
        assert (address.mac, address.gateway_mac) == (old[host].mac, old[host].gateway_mac)
    prefixes = [route.prefix for route in addressing.routes(six.topology)["s1"]]
    assert prefixes == [f"fd00::a00:10{n}/128" for n in range(1, 6)] + ["fd00::a00:200/120"]


@pytest.mark.parametrize(
    ("kinds", "more", "what"),
    [
        (("als-layered",), "", r"ipv6\.toml:.*: topology\.ip: 6: als-layered sends to multicast groups.*leave ip out"),
        (("rap",), "[rap]\npacket_bytes = 60\n", r"topology\.ip: 6: packets of rap have 60 bytes.*76 or more"),
    ],
)
def test_what_cannot_go_over_ipv6_is_refused(tmp_path: Path, kinds: tuple[str, ...], more: str, what: str) -> None:
    file = written(tmp_path, kinds, more)
    file.write_text(file.read_text(encoding="utf-8").replace('kind = "dumbbell"', 'kind = "dumbbell"\nip = 6'), encoding="utf-8")
    with pytest.raises(ConfigError, match=what):
        loader.load(file)
    assert loader.load(file, ip=4).topology.ip == 4


def test_versions_are_4_and_6(tmp_path: Path) -> None:
    file = written(tmp_path)
    file.write_text(file.read_text(encoding="utf-8").replace('kind = "dumbbell"', 'kind = "dumbbell"\nip = 5'), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"ipv6\.toml:\d+: topology\.ip:.*5"):
        loader.load(file)


@needs_switch
def test_goodputs_are_those_of_ipv4(tmp_path: Path) -> None:
    """But for the header's 20 bytes more of each 1000. Responsive flows have luck of their own in so short a run, so that their sum is compared."""
    file = written(tmp_path)
    four, six = (goodputs(run(file, tmp_path / str(ip), ip)) for ip in (4, 6))
    assert six["cbr"] == pytest.approx(four["cbr"] * 940 / 960, rel=0.02)
    assert sum(six.values()) == pytest.approx(sum(four.values()) * 940 / 960, rel=0.03)
    for name in ("als", "rap", "tcp-sack"):
        assert six[name] == pytest.approx(four[name], rel=0.5)


@needs_switch
@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed (apt-get install tshark)")
def test_wireshark_finds_all_checksums_right_and_rates_written(tmp_path: Path) -> None:
    captures = tmp_path / "pcap"
    run(written(tmp_path), tmp_path / "out", 6, pcap=captures, duration=4)
    seen: Counter[str] = Counter()
    for capture in sorted(captures.iterdir()):
        rows = tshark(capture, tmp_path, "ipv6", "udp.checksum.status", "tcp.checksum.status", "ipv6.opt.router_alert", "ipv6.hopopts.nxt")
        assert tshark(capture, tmp_path, "!ipv6", "frame.number") == []
        for udp, tcp, alert, _ in rows:
            assert (udp or tcp) == "1", (capture.name, udp, tcp)
            seen["udp" if udp else "tcp"] += 1
            seen["alert"] += bool(alert)
            assert alert in ("", "65503")
    assert seen["udp"] > 5000 and seen["tcp"] > 500 and seen["alert"] >= 4
    # The switch has written a rate: control packets differ before and after it.
    before, after = (
        {
            row[0]
            for row in tshark(captures / f"{link}.pcap", tmp_path, "ipv6.opt.router_alert && ipv6.src == fd00::a00:101", "udp.checksum")
        }
        for link in ("h1-s1", "s1-s2")
    )
    assert before and after and before != after


@needs_switch
def test_tcp_takes_segments_of_the_path_mtu(tmp_path: Path) -> None:
    """A full packet has packet_bytes, of which the headers are 72 bytes."""
    file = written(tmp_path, ("tcp-sack",))
    captures = tmp_path / "pcap"
    run(file, tmp_path / "out", 6, pcap=captures, duration=2)
    data, at, lengths = (captures / "h1-s1.pcap").read_bytes(), 24, Counter[int]()
    while at < len(data):
        length = int.from_bytes(data[at + 8 : at + 12], "little")
        lengths[length] += 1
        at += 16 + length
    assert max(lengths) == 1014 and lengths[1014] > 100


@needs_switch
@needs_mininet
@pytest.mark.long
def test_mininet_has_the_means_of_virtual_time(tmp_path: Path) -> None:
    file = written(tmp_path, ("als", "cbr", "tcp-sack"))
    virtual, real = (goodputs(run(file, tmp_path / fabric, 6, fabric)) for fabric in ("virtual", "mininet"))
    assert real["cbr"] == pytest.approx(virtual["cbr"], rel=0.05)
    assert real["als"] == pytest.approx(virtual["als"], rel=0.1)
    assert sum(real.values()) == pytest.approx(sum(virtual.values()), rel=0.05)


@needs_switch
@needs_mininet
@pytest.mark.long
def test_files_run_over_ipv6_on_mininet(tmp_path: Path) -> None:
    """They have a process of their own, which is not iperf3."""
    file = written(tmp_path, ("tcp-cubic",), "[tcp-cubic]\nfile_bytes = 400_000\n")
    flow = run(file, tmp_path / "out", 6, "mininet")["flows"][0]
    # 0.33 s at the link's rate, and a few round trips of 24 ms; more after a loss.
    assert 0.35 < flow["completion_s"] < 1.5
