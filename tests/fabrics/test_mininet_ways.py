"""Ways of equal cost and links that fail, on Mininet as in virtual time: packets take the ways that are computed, and what a failed link loses is counted. Under a minute."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from fairlane import probes
from fairlane.experiments import loader, paths
from fairlane.fabrics import leftovers, raw
from fairlane.results import unfinished
from fairlane.topologies import addressing, equal_cost
from tests import missing
from tests.experiments.test_equal_cost import headers
from tests.fabrics.late import summary_of

ROOT = probes.ROOT
# Not 9559: a run of someone else may be under way.
GRPC_PORT = 28159

pytestmark = [pytest.mark.root, pytest.mark.timeout(180)]
if reason := missing.for_mininet("iperf3"):
    pytest.skip(reason, allow_module_level=True)

NETWORK = """\
title = "Two leaves and three spines"
bottleneck = "leaf1->spine1"
duration_s = DURATION
window_from = 0.0
[topology]
kind = "leaf-spine"
routing = "ecmp"
leaves = 2
spines = 3
hosts_per_leaf = 6
trunk = { rate_bps = 10_000_000, delay_s = 0.005, queue_packets = 50 }
access = { rate_bps = 100_000_000, delay_s = 0.001 }
[cbr]
rate_bps = 200_000
packet_bytes = 250
"""
# Several flows with one receiver, and a pair of hosts with several flows.
MANY = """
[tcp]
packet_bytes = 1000
[[flows]]
name = "cbr"
kind = "cbr"
count = 6
hosts = [["h1", "h7"], ["h2", "h7"], ["h3", "h7"], ["h8", "h4"], ["h8", "h5"], ["h1", "h7"]]
[[flows]]
name = "als"
kind = "als"
count = 2
hosts = [["h4", "h9"], ["h5", "h9"]]
[[flows]]
name = "bulk"
kind = "tcp-cubic"
count = 3
hosts = [["h1", "h10"], ["h2", "h10"], ["h3", "h11"]]
[[flows]]
name = "file"
kind = "tcp-cubic"
count = 4
hosts = [["h12", "h1"], ["h12", "h2"], ["h11", "h1"], ["h6", "h12"]]
start_s = 1.0
parameters = { file_bytes = 100_000 }
"""
FAILS_S, WORKS_S, REROUTE_S = 2.0, 5.0, 0.5
FAILING = f"""
[control]
plane = "own.py"
reroute_s = {REROUTE_S}
[[changes]]
at_s = {FAILS_S}
link = "spine2->leaf1"
up = false
[[changes]]
at_s = {WORKS_S}
link = "leaf1->spine2"
up = true
[[flows]]
name = "f"
kind = "cbr"
count = 8
hosts = [["h1", "h7"], ["h2", "h8"], ["h3", "h9"], ["h4", "h10"], ["h5", "h11"], ["h7", "h1"], ["h8", "h2"], ["h9", "h3"]]
"""
OWN = """
from fairlane.controller.als import AlsPlane
class Own(AlsPlane):
    def on_port_change(self, switch, port):
        self.record(switch=switch.name, peer=port.peer, up=port.up)
        return super().on_port_change(switch, port)
"""


def run(tmp_path: Path, text: str, duration_s: float, *more: str, name: str = "out") -> Path:
    """The folder of results, of the run alone: `late.summary_of` says whether its figures mean something."""
    file = tmp_path / "run.toml"
    file.write_text(NETWORK.replace("DURATION", str(duration_s)) + text)
    (tmp_path / "own.py").write_text(OWN)
    try:
        command = [sys.executable, "-m", "fairlane", "run", str(file), "--seed", "3", "--out", str(tmp_path / name), *more]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode in (0, 5), done.stdout + done.stderr
    finally:
        leftovers.clean()
    return tmp_path / name


def on_mininet(*more: str) -> tuple[str, ...]:
    return ("--fabric", "mininet", "--target", "embedded", "--grpc-port", str(GRPC_PORT), *more)


def test_packets_take_the_ways_that_are_computed(tmp_path: Path) -> None:
    """Each packet of a flow, there and back, is on a link of the flow's way; and each flow is seen on all of its way's. A busy machine changes none of that."""
    out = run(tmp_path, MANY, 4.0, *on_mininet("--pcap", "x"))
    events = json.loads((out / "summary.json").read_text())["events"]
    # Of a busy machine: pings that its full queues keep waiting.
    assert [event for event in events if not event["what"].startswith("a path no longer answers")] == []
    experiment = unfinished.read(out / "raw").experiment
    ways: dict[tuple[int, int], set[tuple[str, str]]] = {}
    silent: set[tuple[int, int]] = set()
    for flow in experiment.flows:
        there = paths.five_tuple(experiment.topology, flow.kind, flow.sender, flow.receiver, flow.port_offset)
        # RTP and its RTCP are one here: the hash leaves out the last bit of their ports.
        ways[there.words] = {(p.node, p.peer) for p in paths.there(experiment, flow)}
        ways[there.back.words] = {(p.node, p.peer) for p in paths.back(experiment, flow)}
        if flow.kind == "cbr":
            silent.add(there.back.words)
    assert len(ways) == 2 * len(experiment.flows), "flows have ports of their own"
    seen: dict[tuple[int, int], set[tuple[str, str]]] = {words: set() for words in ways}
    others = 0
    for capture in (out / "raw" / "pcap").glob("*.pcap"):
        start, end = capture.stem.split("-")
        for packet in [] if end.endswith(".sent") else headers(capture):
            if packet.words in ways:
                assert (start, end) in ways[packet.words], (packet, start, end, ways[packet.words])
                seen[packet.words].add((start, end))
            else:
                others += packet.protocol != equal_cost.ICMP
    # Beside them there are the connections by which iperf3's ends talk about their tests.
    assert others < 500, others
    assert all(seen[words] == (set() if words in silent else way) for words, way in ways.items()), (seen, ways)
    assert {node for way in ways.values() for node, _ in way if node.startswith("spine")} == {"spine1", "spine2", "spine3"}


def counted(out: Path) -> int:
    """Packets that failed links lost, in the whole run."""
    rows = [
        pd.read_csv(out / "raw" / f"{switch}.csv").groupby("port").last() for switch in ("leaf1", "leaf2", "spine1", "spine2", "spine3")
    ]
    return int(sum(table["drop_link_down"].sum() for table in rows))


def lost(summary: dict[str, Any]) -> dict[str, int]:
    return {flow["name"]: flow["lost_packets"] for flow in summary["flows"]}


@pytest.mark.long
def test_a_failed_link_loses_as_much_as_in_virtual_time(tmp_path: Path) -> None:
    """The flows of the link lose 100 packets a second for half a second, then take another way; the others lose none. The control plane learns of both ends."""
    outs = {name: run(tmp_path, FAILING, 8.0, *more, name=name) for name, more in (("virtual", ()), ("mininet", on_mininet()))}
    experiment = loader.load(tmp_path / "run.toml", seed=3)
    hit = {f.name for f in experiment.flows if any("spine2" in (p.node, p.peer) for p in paths.there(experiment, f))}
    assert 0 < len(hit) < 8
    begin_s = json.loads((outs["mininet"] / "summary.json").read_text())["begin_unix_s"]
    said = [line for line in raw.json_lines(outs["mininet"] / "raw" / "control.jsonl") if "up" in line]
    assert sorted((line["switch"], line["peer"], line["up"]) for line in said) == [
        ("leaf1", "spine2", False), ("leaf1", "spine2", True), ("spine2", "leaf1", False), ("spine2", "leaf1", True)
    ]  # fmt: skip
    for line in said:
        since_s = line["t"] - begin_s - (WORKS_S if line["up"] else FAILS_S) - REROUTE_S
        assert -0.001 < since_s < 2.0, line
    summaries = {name: summary_of(out) for name, out in outs.items()}
    for name, out in outs.items():
        assert {flow for flow, n in lost(summaries[name]).items() if n} == hit, name
        assert sum(lost(summaries[name]).values()) == counted(out), name
        # 6 ms on the way to the link and on it, beside the half second.
        assert all(abs(n - 50) <= 3 for flow, n in lost(summaries[name]).items() if flow in hit), (name, lost(summaries[name]))
    assert counted(outs["mininet"]) == pytest.approx(counted(outs["virtual"]), rel=0.05)
    # Where the flows were: on the failed link, and on the others.
    for name, out in outs.items():
        links = pd.read_csv(out / "links.csv").set_index("link")
        parts = {"before": (0.5, FAILS_S), "failed": (FAILS_S + REROUTE_S + 0.2, WORKS_S), "after": (WORKS_S + REROUTE_S + 0.2, 7.9)}
        for part, (a, b) in parts.items():
            for spine in (1, 2, 3):
                rows = links.loc[f"leaf1->spine{spine}"]
                mean = rows[(rows["time_s"] > a + 0.05) & (rows["time_s"] <= b + 0.05)]["utilisation"].mean()
                used = [
                    f
                    for f in experiment.flows
                    if any((p.node, p.peer) == ("leaf1", f"spine{spine}") for p in paths.there(experiment, f, at_s=b))
                ]
                # 100 frames a second, each 264 bytes.
                assert mean * 10e6 == pytest.approx(len(used) * 211_200, rel=0.05, abs=3000), (name, part, spine)


@pytest.mark.long
def test_flows_use_the_links_that_they_name(tmp_path: Path) -> None:
    """A host with two links, its packets on each of them, and the rates of virtual time."""
    example, outs = ROOT / "docs/examples/two-links.toml", {}
    try:
        for name, more in (("virtual", ()), ("mininet", on_mininet("--pcap", "x"))):
            outs[name] = tmp_path / name
            command = [sys.executable, "-m", "fairlane", "run", str(example), "--out", str(outs[name]), *more]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
            assert done.returncode in (0, 5), done.stdout + done.stderr
    finally:
        leftovers.clean()
    experiment = unfinished.read(outs["mininet"] / "raw").experiment
    assert json.loads((outs["mininet"] / "summary.json").read_text())["events"] == []
    ips = {name: host.ip for name, host in addressing.host_addresses(experiment.topology).items()}
    for end, there, back in (("h1", "h1-s1", "s1-h1"), ("h1:1", "h1.1-s2", "s2-h1.1")):
        sent, got = (headers(outs["mininet"] / "raw" / "pcap" / f"{file}.pcap") for file in (there, back))
        assert len(sent) > 300 and {packet.source for packet in sent} == {ips[end]}
        assert len(got) > 300 and {packet.destination for packet in got} == {ips[end]}
    goodputs = [{flow["name"]: flow["goodput_bps"] for flow in summary_of(out)["flows"]} for out in outs.values()]
    assert goodputs[1] == pytest.approx(goodputs[0], rel=0.07)
