"""The TCP cases of `run_tcp.py` in the virtual network: hosts, two switches that run p4src/als.p4, and the controller.

    python tests/oracle/tcp_network.py      runs all cases and writes their tables into docs/tcp-against-ns2.md

    h1..hN -- s1 ==bottleneck== s2 -- h(N+1)..h(2N)

ns-2 counts 1000 B for a data packet on the link, so the IPv4 datagram is 986 B here, beside 14 B of Ethernet header. A packet of 100 B is
an IPv4 datagram of 100 B, so that its segment has 60 B, and the link is faster by its header. Access links are
fast and without delay, as ns-2's agents sit on the bottleneck's own nodes. The switches get their program and entries before the flows
begin.
"""

from __future__ import annotations

import csv
import dataclasses
import json
import random
import statistics
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from fairlane import specs
from fairlane.controller.config import Config, Port, Route, Switch
from fairlane.fabrics import targets
from fairlane.fabrics.virtual_control import VirtualControl
from fairlane.p4src.schemes.red.scheme import RedOfPort
from fairlane.topologies import addressing, builders
from fairlane.topologies.builders import LinkSpec

HERE = Path(__file__).resolve().parent
PROGRAM = HERE.parents[1] / "p4src" / "als.p4"
NS = 1_000_000_000
ETHERNET_BYTES = 14
FRAME_BYTES = 1000
DATAGRAM_BYTES = FRAME_BYTES - ETHERNET_BYTES
WINDOW_PACKETS = 10_000
BEGIN_S = 2
ACCESS = LinkSpec(10e9, 0.0, WINDOW_PACKETS)
BOTTLENECK = ("s1", 1)

# What tcp_common.tcl sets.
OPTIONS = dict(
    initial_window_segments=2,
    initial_rto_ns=NS,
    min_rto_ns=NS // 5,
    max_rto_ns=60 * NS,
    delayed_ack_timeout_ns=NS // 10,
    limited_transmit=True,
    timestamps=False,
    byte_counting=False,
)

# ns-2's slow start threshold is a whole number of segments; Reno, SACK and CUBIC do not take their window from it.
HALVES = {"tahoe": "window-segments", "newreno": "window-segments"}

# Rules of ns-2's senders that RFC 6675, RFC 6298 and RFC 5681 changed: the profile fall-floyd-1996.
SACK1 = {"sack_recovery": "sack1", "rtt_estimator": "ticks", "hold_ssthresh": False}


def rows(name: str) -> list[dict]:
    """The committed cases and ns-2's results."""
    return json.loads((HERE / "data" / name).read_text())


def run(case: dict, **options) -> dict:
    """One case; the names of its results are those of `run_tcp.run`. options: of TCP, instead of ns-2's."""
    from fairlane import native

    flows, seconds = case.get("flows", 1), case["seconds"]
    packet, datagram = case.get("packet_bytes", FRAME_BYTES), case.get("packet_bytes", DATAGRAM_BYTES)
    rate_bps = case["rate_bps"] * (datagram + ETHERNET_BYTES) // packet
    topology = builders.dumbbell(flows, LinkSpec(rate_bps, case["rtt_ms"] / 2000, case["buffer_packets"]), ACCESS)
    addresses = addressing.assign(topology)
    network = native.Network(case.get("seed", 1), record_interval_ns=NS)
    for i, name in enumerate(topology.switches):
        network.add_switch(name, i + 1, cpu_port=510)
    for name in topology.hosts:
        host = addresses.hosts[name]
        network.add_host(name, host.ip, host.mac, host.gateway_mac)
    linked = set()
    for port in (port for ports in topology.ports().values() for port in ports):
        if port.link_index not in linked:
            linked.add(port.link_index)
            link = port.link
            network.connect(
                port.node,
                port.number,
                port.peer,
                port.peer_port,
                specs.Link(rate_bps=round(link.rate_bps), delay_ns=round(link.delay_s * NS), queue_packets=link.queue_packets),
            )
    with tempfile.TemporaryDirectory() as folder:
        files = targets.compiler().compile(PROGRAM, Path(folder), ("RED_ECN",) if case.get("ecn") else ())
        controller = VirtualControl.of(_configuration(case, topology, addresses, *files), Path(folder))
        network.set_control_plane(controller)
        tcp = {
            **OPTIONS,
            "max_window": WINDOW_PACKETS * (datagram - 40) // 256 * 256,
            "timer_granularity_ns": case.get("tick_ms", 10) * NS // 1000,
            "reduction_base": HALVES.get(case["flavour"], "window"),
            "delayed_ack": bool(case["delayed_ack"]),
            "ecn": bool(case.get("ecn")),
            **options,
        }
        rng = random.Random(case.get("seed", 1))
        for i in range(flows):
            start = BEGIN_S + (i * 0.618033988749895) % 1.0 * (flows > 1) + case.get("jitter", 0) * rng.random()
            path = specs.FlowPath(f"tcp-{i}", f"h{i + 1}", f"h{flows + i + 1}", 5201, round(start * NS), (BEGIN_S + seconds) * NS)
            network.add_tcp_flow(path, specs.Tcp(flavour=case["flavour"], packet_bytes=datagram, options=tcp))
        network.run_until((BEGIN_S + seconds) * NS)
        controller.close()
    results = _results(network, flows, seconds)
    return {**results, "received_bytes": results.pop("delivered_bytes") // (datagram - 40) * packet}


def _configuration(case: dict, topology, addresses, json_path: Path, p4info_path: Path) -> Config:
    ports = topology.ports()
    red = None
    if "max_p" in case:
        red = RedOfPort(case["min_threshold"], case["max_threshold"], case["max_p"], case["weight"], FRAME_BYTES, bool(case.get("ecn")))
    switches = tuple(
        Switch(
            name,
            i + 1,
            f"127.0.0.1:{9559 + i}",
            tuple(
                Port(p.number, round(p.link.rate_bps), (red,) if red is not None and (name, p.number) == BOTTLENECK else ())
                for p in ports[name]
            ),
            tuple(Route(r.prefix, *dataclasses.astuple(r.hops[0])) for r in addresses.routes[name]),
        )
        for i, name in enumerate(topology.switches)
    )
    return Config(str(p4info_path), str(json_path), switches)


def _results(network, flows: int, seconds: int) -> dict:
    integral, drops = {}, 0
    rows = network.take_port_rows()[0]
    for row in csv.DictReader(rows.splitlines(), network.port_columns().split(",")):
        time_s = float(row["time_s"])
        if int(row["port"]) == BOTTLENECK[1]:
            integral[time_s] = float(row["queue_integral_packet_s"])
        if time_s == BEGIN_S + seconds:
            # What RED discards in ingress counts at the port that it came by.
            drops += sum(int(count) for column, count in row.items() if column.startswith("drop_"))
    delivered, totals = 0, dict.fromkeys(("loss_events", "timeouts", "retransmitted"), 0)
    for i in range(flows):
        sender, receiver = network.take_flow_logs(f"tcp-{i}")
        sent = [fields for _, kind, fields in sender if kind == "tcp_sent"][-1]
        delivered += [fields for _, kind, fields in receiver if kind == "tcp_data"][-1]["delivered_bytes"]
        for name in totals:
            totals[name] += sent[name]
    queue = (integral[BEGIN_S + seconds] - integral[BEGIN_S]) / seconds
    return {"delivered_bytes": delivered, **totals, "drops": drops, "mean_queue": queue}


def run_all(cases: list[tuple[dict, dict]]) -> list[dict]:
    """Results of (case, options), in two processes."""
    with ProcessPoolExecutor(2) as pool:
        return list(pool.map(_run_pair, cases))


def _run_pair(pair: tuple[dict, dict]) -> dict:
    return run(pair[0], **pair[1])


def ratio(ours: float, theirs: float) -> float:
    return ours / theirs if theirs else 1.0 if not ours else float("inf")


def medians(results: Iterable[dict]) -> dict:
    results = list(results)
    return {name: statistics.median(r[name] for r in results) for name in results[0]}


def single_runs(delayed_acks_too: bool = True) -> list[tuple[dict, dict, dict, str]]:
    """(case, ns-2's results, options, name of the rule) of one flow. CUBIC at 10 ms runs under ns-2's rule as well, and two cells under
    RFC 6298's minimum RTO on both sides; SACK runs under ns-2's rules as well. delayed_acks_too: at 10 ms as well."""
    runs = []
    for row in rows("tcp_single.json"):
        case = row["case"]
        if case["delayed_ack"] and case["rtt_ms"] == 10 and not delayed_acks_too:
            continue
        runs.append((case, row["ns2"], {}, ""))
        if case["flavour"] == "cubic" and case["rtt_ms"] == 10:
            runs.append((case, row["ns2"], {"reno_friendliness": "linux26"}, "Linux 2.6"))
        if case["flavour"] == "sack":
            runs.append((case, row["ns2"], SACK1, "Sack1"))
    for row in rows("tcp_causes.json"):
        runs.append((row["case"], row["ns2"], {"min_rto_ns": NS * row["case"]["min_rto_ms"] // 1000}, "RTO >= 1 s"))
    return runs


def small_segment_runs() -> list[tuple[dict, dict, dict, str]]:
    """The same of one flow with segments of 60 B, and a clock of 0.1 s. SACK runs under ns-2's rules as well."""
    runs = []
    for row in rows("tcp_small_segments.json"):
        runs.append((row["case"], row["ns2"], {}, ""))
        if row["case"]["flavour"] == "sack":
            runs.append((row["case"], row["ns2"], SACK1, "Sack1"))
    return runs


def red_runs() -> dict[tuple[float, str], list[tuple[dict, dict]]]:
    """(case, ns-2's results) of ten flows over RED, by minimum threshold and flavour; one for each seed."""
    runs: dict[tuple[float, str], list[tuple[dict, dict]]] = {}
    for row in rows("tcp_network_red.json"):
        runs.setdefault((row["case"]["min_threshold"], row["case"]["flavour"]), []).append((row["case"], row["ns2"]))
    return runs


def ecn_runs() -> dict[str, list[tuple[dict, dict]]]:
    """(case, ns-2's results) of ten ECN-capable flows over RED that marks, by flavour; one for each seed."""
    runs: dict[str, list[tuple[dict, dict]]] = {}
    for row in rows("tcp_network_ecn.json"):
        runs.setdefault(row["case"]["flavour"], []).append((row["case"], row["ns2"]))
    return runs


def report() -> str:
    """The tables of docs/tcp-against-ns2.md, all cells run anew."""
    single, red = single_runs() + small_segment_runs(), {**red_runs(), **{("marks", flavour): runs for flavour, runs in ecn_runs().items()}}
    results = run_all([(case, options) for case, _, options, _ in single] + [(case, {}) for runs in red.values() for case, _ in runs])
    lines = [
        "| flavour | link Mb/s | packet B | RTT ms | buffer | delayed ACKs | rule | Mb/s, ns-2 | Mb/s | ratio | loss events, ns-2 | loss events | ratio "
        "| timeouts, ns-2 | timeouts | drops, ns-2 | drops | mean queue, ns-2 | mean queue |",
        "|" + "---|" * 19,
    ]
    for (case, ns2, _, rule), ours in zip(single, results):
        lines.append(
            f"{cell(case, rule)} {_mbps(ns2, case)} | {_mbps(ours, case)} | {ratio(ours['received_bytes'], ns2['received_bytes']):.3f} "
            f"| {ns2['loss_events']} | {ours['loss_events']} | {ratio(ours['loss_events'], ns2['loss_events']):.2f} "
            f"| {ns2['timeouts']} | {ours['timeouts']} | {ns2['drops']} | {ours['drops']} | {ns2['mean_queue']:.2f} | {ours['mean_queue']:.2f} |"
        )
    lines += [
        "",
        "| thresholds | flavour | mean queue, ns-2 | mean queue | ratio | Mb/s, ns-2 | Mb/s | ratio | loss events, ns-2 | loss events | timeouts, ns-2 "
        "| timeouts | drops, ns-2 | drops |",
        "|" + "---|" * 14,
    ]
    rest = iter(results[len(single) :])
    for runs in red.values():
        ns2, ours, case = medians(r for _, r in runs), medians(next(rest) for _ in runs), runs[0][0]
        lines.append(
            f"{red_cell(case)} {ns2['mean_queue']:.2f} "
            f"| {ours['mean_queue']:.2f} | {ratio(ours['mean_queue'], ns2['mean_queue']):.3f} "
            f"| {_mbps(ns2, case)} | {_mbps(ours, case)} | {ratio(ours['received_bytes'], ns2['received_bytes']):.3f} | {ns2['loss_events']} "
            f"| {ours['loss_events']} | {ns2['timeouts']} | {ours['timeouts']} | {ns2['drops']} | {ours['drops']} |"
        )
    return "\n".join(lines) + "\n"


def cell(case: dict, rule: str) -> str:
    """How a row of one flow begins."""
    return (
        f"| {case['flavour']} | {case['rate_bps'] / 1e6:g} | {case.get('packet_bytes', FRAME_BYTES)} | {case['rtt_ms']} | {case['buffer_packets']} "
        f"| {'yes' if case['delayed_ack'] else 'no'} | {rule} |"
    )


def red_cell(case: dict) -> str:
    """How a row of ten flows over RED begins."""
    marks = ", marks" if case.get("ecn") else ""
    return f"| {case['min_threshold']:g}, {case['max_threshold']:g} of {case['buffer_packets']}{marks} | {case['flavour']} |"


def _mbps(result: dict, case: dict) -> str:
    return f"{result['received_bytes'] * 8 / case['seconds'] / 1e6:.3f}"


def main() -> int:
    """Prints the tables and puts them between the marks of docs/tcp-against-ns2.md."""
    tables = report()
    print(tables)
    page = HERE.parents[1] / "docs" / "tcp-against-ns2.md"
    begin, end = "<!-- tables: begin -->\n", "<!-- tables: end -->"
    before, _, rest = page.read_text().partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        print(f"{page} has no marks {begin.strip()} and {end}: nothing written", file=sys.stderr)
        return 1
    page.write_text(before + begin + tables + end + after)
    return 0


if __name__ == "__main__":
    sys.exit(main())
