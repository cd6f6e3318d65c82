"""Our side of ``run_bbr.py``: BBR over the users' network in virtual time. Prints the table of docs/bbr-against-ns3.md."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.oracle import tables
from tests.oracle.aqm import run

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs" / "bbr-against-ns3.md"
FIGURES = ("goodput", "beside", "mean_queue", "retransmitted")


def ours(case: dict[str, Any]) -> dict[str, float]:
    return run({**case, "min_rto_s": 1.0})


def reference() -> list[tuple[dict[str, Any], dict[str, float]]]:
    """(case, ns-3's figures): goodput in full segments, the rest in packets."""
    rows = json.loads((HERE / "data" / "bbr.json").read_text())
    payload = rows[0]["case"]["packet_bytes"] - 42
    return [
        (r["case"], {**r["ns3"], "goodput": r["ns3"]["received_bytes"] / payload, "beside": r["ns3"]["beside_bytes"] / payload})
        for r in rows
    ]


def cell(case: dict[str, Any]) -> tuple[str, ...]:
    flows = f"{case['flows']} BBR" + (f", {case['beside']} CUBIC" if case["beside"] else "")
    return f"{case['rate_bps'] / 1e6:g}", str(case["rtt_ms"]), str(case["buffer"]), flows, f"{case['from']:g} to {case['seconds']}"


def main() -> int:
    lines = [
        "| Mb/s | RTT ms | buffer | flows | seconds | BBR's packets, ns-3 | here | ratio | CUBIC's, ns-3 | here | mean queue, ns-3 | here | ratio "
        "| retransmitted, ns-3 | here |",
        "|" + "---|" * 15,
    ]
    for name, ns3, here in tables.cells(reference(), ours, cell, FIGURES):
        beside = f"{ns3['beside']:.0f} | {here['beside']:.0f}" if here["beside"] else "- | -"
        queue = f"{here['mean_queue'] / ns3['mean_queue']:.2f}" if ns3["mean_queue"] else "-"
        lines.append(
            f"| {' | '.join(name)} | {ns3['goodput']:.0f} | {here['goodput']:.0f} | {here['goodput'] / ns3['goodput']:.3f} | {beside} "
            f"| {ns3['mean_queue']:.2f} | {here['mean_queue']:.2f} | {queue} | {ns3['retransmitted']:.0f} | {here['retransmitted']:.0f} |"
        )
    tables.put(PAGE, lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
