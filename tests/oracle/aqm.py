"""Our side of ``run_aqm.py``: the users' network, P4 programs and TCP, in virtual time. Prints the table of docs/aqm-against-ns3.md."""

from __future__ import annotations

import json
import math
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import fairlane
from fairlane import ad_hoc
from fairlane.inputs.located_toml import tomllib
from tests.oracle import tables

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs" / "aqm-against-ns3.md"
FIGURES = ("goodput", "drops", "marks", "mean_queue")


def run(case: dict[str, Any]) -> dict[str, float]:
    """The figures of one case: goodput in full segments, and drops, marks and the mean queue in packets, over the second half."""
    kind, timestamps = f"tcp-{case.get('tcp', 'sack')}", case.get("timestamps", True)
    beside = ("tcp-cubic:" + str(case["beside"]),) if case.get("beside") else ()
    options = ad_hoc.Options(
        flows=(f"{kind}:{case['flows']}", *beside),
        bottleneck=f"{case['rate_bps'] / 1e6:g}mbit",
        rtt=f"{case['rtt_ms']}ms",
        queue={"FIFO": "droptail"}.get(case["queue"], case["queue"].lower()),
        ecn=True if case["ecn"] else None,
        buffer=f"{case['buffer']}packets",
        side_rate="1000mbit",
        side_delay="0.001ms",
        packet_bytes=case["packet_bytes"] - 14,
        start_jitter="1s",
        settings=(
            "tcp.delayed_ack=false",
            f"tcp.initial_window_packets={case.get('initial_window', 2)}",
            "tcp.timer_granularity_s=0.001",
            "tcp.rtt_estimator=rfc6298",  # ns-3 bounds the whole RTO, too
            *(() if timestamps else ("tcp.timestamps=false",)),
            *((f"tcp.min_rto_s={case['min_rto_s']}",) if "min_rto_s" in case else ()),
        ),
    )
    file = ad_hoc.text("dumbbell", options, case["seconds"], case["seed"])
    file = f"window_from = {case['from'] / case['seconds']}\n{file}"
    if case["queue"] == "Step":
        assert "threshold_s = 0.001" in file
        file = file.replace("threshold_s = 0.001", f"threshold_packets = {case['threshold']}")
    if case["queue"] == "RED":
        thresholds = f"minimum = {case['threshold'] / case['buffer']}, maximum = {case['maximum'] / case['buffer']}"
        assert "minimum = 0.25, maximum = 0.75" in file
        file = file.replace("minimum = 0.25, maximum = 0.75", thresholds)
    if "other_bps" in case:
        file += varied(case)
    if "more_rtt_ms" in case:
        file = mixed(file, case)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "aqm.toml"
        path.write_text(file)
        result = fairlane.run(path)
    link = result.bottleneck
    seconds = case["seconds"] - case["from"]
    payload = case["packet_bytes"] - 14 - (52 if timestamps else 40)
    packets = result.per_flow.groupby("kind")["goodput_bps"].sum() * seconds / 8 / payload
    return {
        "goodput": packets[kind],
        "beside": packets.get("tcp-cubic", 0.0) if beside else 0.0,
        "retransmitted": sum(result.per_flow["lost_packets"]),
        "drops": sum(link["drops"].values()),
        "marks": link.get("marks", 0),
        "mean_queue": link["mean_queue_packets"],
    }


def varied(case: dict[str, Any], period_s: float = 20.0) -> str:
    """The changes of the bottleneck's capacity."""
    rates = [case["other_bps"] if n % 2 else case["rate_bps"] for n in range(math.ceil(case["seconds"] / period_s))]
    return "".join(f'\n[[changes]]\nat_s = {n * period_s}\nlink = "s1->s2"\nrate_bps = {rate}\n' for n, rate in enumerate(rates) if n)


def mixed(file: str, case: dict[str, Any]) -> str:
    """The dumbbell as a graph, in which every second sender's link is longer."""
    document = tomllib.loads(file)
    topology = document["topology"]
    nodes = [("s1", "switch"), ("s2", "switch")]
    links = [{"ends": ["s1", "s2"], **topology["bottleneck"]}]
    for pair in range(topology["pairs"]):
        sender, receiver = f"h{2 * pair + 1}", f"h{2 * pair + 2}"
        nodes += [(sender, "host"), (receiver, "host")]
        longer_s = case["more_rtt_ms"] / 2e3 if pair % 2 else 0.0
        links.append({**topology["access"], "ends": [sender, "s1"], "delay_s": topology["access"]["delay_s"] + longer_s})
        links.append({**topology["access"], "ends": [receiver, "s2"]})
    before, rest = file.split("[topology]\n")
    after = rest[rest.index("\n[") :]
    described = [f'\n[[topology.nodes]]\nname = "{name}"\nkind = "{kind}"\n' for name, kind in nodes]
    described += ["\n[[topology.links]]\n" + "".join(f"{key} = {_toml(value)}\n" for key, value in link.items()) for link in links]
    hosts = [[f"h{2 * pair + 1}", f"h{2 * pair + 2}"] for pair in range(topology["pairs"])]
    after = re.sub(r"(\[\[flows\]\]\n)", rf"\1hosts = {json.dumps(hosts)}\n", after)
    return before + '[topology]\nkind = "graph"\n' + "".join(described) + after


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(inner)}" for key, inner in value.items()) + " }"
    return json.dumps(value)


def reference() -> list[tuple[dict[str, Any], dict[str, float]]]:
    """(case, ns-3's figures)."""
    rows = json.loads((HERE / "data" / "aqm.json").read_text())
    return [(r["case"], {**r["ns3"], "goodput": r["ns3"]["received_bytes"] / (r["case"]["packet_bytes"] - 54)}) for r in rows]


def cell(case: dict[str, Any]) -> tuple[str, ...]:
    marks = "marks" if case["ecn"] else "drops"
    rate, rtt = f"{case['rate_bps'] / 1e6:g}", str(case["rtt_ms"])
    if "other_bps" in case:
        rate += f", {case['other_bps'] / 1e6:g}"
    if "more_rtt_ms" in case:
        rtt += f", {case['rtt_ms'] + case['more_rtt_ms']}"
    return case["queue"], marks, rate, rtt, str(case["flows"])


def main() -> int:
    lines = [
        "| queue | it | Mb/s | RTT ms | flows | goodput packets, ns-3 | here | ratio | mean queue, ns-3 | here | ratio | drops, ns-3 | here | marks, ns-3 | here | ratio of both |",
        "|" + "---|" * 16,
    ]
    for name, ns3, ours in tables.cells(reference(), run, cell, FIGURES):
        both = (ours["drops"] + ours["marks"]) / (ns3["drops"] + ns3["marks"])
        lines.append(
            f"| {' | '.join(name)} | {ns3['goodput']:.0f} | {ours['goodput']:.0f} | {ours['goodput'] / ns3['goodput']:.3f} "
            f"| {ns3['mean_queue']:.2f} | {ours['mean_queue']:.2f} | {ours['mean_queue'] / ns3['mean_queue']:.2f} "
            f"| {ns3['drops']:.0f} | {ours['drops']:.0f} | {ns3['marks']:.0f} | {ours['marks']:.0f} | {both:.2f} |"
        )
    tables.put(PAGE, lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
