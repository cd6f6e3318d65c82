"""Prague, CUBIC and DCTCP over DualPI2 in virtual time, beside what the L4S team published, and SCReAM beside Prague. Writes the tables of
docs/prague-against-l4s.md."""

from __future__ import annotations

import math
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import fairlane
from tests.oracle import tables

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "prague-against-l4s.md"
PROGRAM = ROOT / "p4src" / "dualpi2.p4"
# github.com/L4STeam/l4steam.github.io, iccrg-exp, 2024-10-24: Mb/s of 40 s, and mean RTT in ms.
PUBLISHED = {
    (20, 5): (19.1, 6.6, 19.1, 11.5),
    (20, 20): (19.0, 21.5, 18.9, 23.8),
    (20, 40): (18.3, 41.1, 18.3, 42.7),
    (20, 80): (16.4, 81.2, 17.1, 82.2),
    (100, 5): (95.6, 6.0, 95.6, 9.5),
    (100, 20): (94.9, 20.9, 94.1, 22.8),
    (100, 40): (92.4, 40.6, 90.7, 42.0),
    (100, 80): (61.6, 80.3, 86.5, 81.6),
}
PUBLISHED_DCTCP = {(100, 20): (50.5, 20.7)}
"""The same for DCTCP. Their queue took every ECN-capable packet for low latency (`any_ect`), so that DCTCP's ECT(0) is in that queue, too."""
PACKET_BYTES = 1500
BESIDE_PRAGUE = {
    "SCReAM without ECN": ("scream", ()),
    "SCReAM, ECT(0)": ("scream", ("scream.ecn=true",)),
    "SCReAM, ECT(1)": ("scream", ("scream.l4s=true",)),
    "NADA, ECT(0)": ("nada", ("nada.ecn=true",)),
    "CUBIC": ("tcp-cubic", ()),
}
"""Beside one Prague, and alone, on 20 Mb/s and 20 ms. Media can use the whole link. SCReAM ramps up by 1 Mb/s each second, which RFC 8298 names as a high setting."""


def measure(flows: Sequence[str], rate_mbps: int, rtt_ms: int, **options: Any) -> tuple[fairlane.Result, float]:
    """What a run gave, and the mean round trip of its second half in ms: the link's and its queue's."""
    result = fairlane.run(
        "dumbbell",
        flows,
        bottleneck=f"{rate_mbps}mbit",
        rtt=f"{rtt_ms}ms",
        queue="dualpi2",
        buffer="2000packets",
        packet_bytes=PACKET_BYTES,
        **options,
    )
    return result, rtt_ms + result.bottleneck["mean_queue_packets"] * (PACKET_BYTES + 14) * 8 / (rate_mbps * 1e3)


def run(case: tuple[str, int, int]) -> tuple[float, float]:
    """Mb/s of all 40 s, and the mean round trip. DCTCP's packets go to the queue of low latency."""
    kind, rate_mbps, rtt_ms = case
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "dualpi2.p4"
        text = PROGRAM.read_text().replace("hdr.ipv4.diffserv & 1 == 1", "hdr.ipv4.diffserv & 3 != 0")
        assert text != PROGRAM.read_text()
        program.write_text(text)
        programs = [program] if kind == "tcp-dctcp" else []
        result, rtt = measure([f"{kind}:1"], rate_mbps, rtt_ms, duration_s=40.0, programs=programs)
    return result.flows["goodput_bps"].mean() / 1e6, rtt


def beside(case: tuple[str, bool]) -> list[float]:
    """Mb/s of the flow and of Prague, over the second half of 120 s; mean round trip; marks of both queues; drops."""
    kind, settings = BESIDE_PRAGUE[case[0]]
    media = () if kind.startswith("tcp") else (f"{kind}.maximum_rate_bps=20e6",)
    ramp = ("scream.ramp_up_bps_per_s=1e6",) if kind == "scream" else ()
    result, rtt = measure(
        [f"{kind}:1", *(["tcp-prague:1"] if case[1] else [])], 20, 20, duration_s=120.0, settings=[*settings, *media, *ramp]
    )
    rates = result.per_flow.groupby("kind")["goodput_bps"].sum() / 1e6
    link = result.bottleneck
    return [rates[kind], rates["tcp-prague"] if case[1] else math.nan, rtt, link["marks"], sum(link["drops"].values())]


def main() -> int:
    cases = [(kind, *place) for place in PUBLISHED for kind in ("tcp-prague", "tcp-cubic", "tcp-dctcp")]
    pairs = [(name, with_prague) for name in BESIDE_PRAGUE for with_prague in (True, False)]
    with ProcessPoolExecutor(2) as pool:
        found = dict(zip(cases, pool.map(run, cases)))
        found_beside = dict(zip(pairs, pool.map(beside, pairs)))
    lines = [
        "| Mb/s | RTT ms | Prague Mb/s, published | here | ratio | RTT, published | here | CUBIC Mb/s, published | here | ratio | RTT, published | here |",
        "|" + "---|" * 12,
    ]
    for place, (prague, prague_ms, cubic, cubic_ms) in PUBLISHED.items():
        row = [f"{place[0]} | {place[1]}"]
        for kind, rate, rtt in (("tcp-prague", prague, prague_ms), ("tcp-cubic", cubic, cubic_ms)):
            ours, ours_ms = found[(kind, *place)]
            row.append(f"{rate} | {ours:.1f} | {ours / rate:.2f} | {rtt} | {ours_ms:.1f}")
        lines.append(f"| {' | '.join(row)} |")
    tables.put(PAGE, lines, "table")
    lines = ["| Mb/s | RTT ms | DCTCP Mb/s, published | here | RTT, published | here |", "|" + "---|" * 6]
    for place in PUBLISHED:
        known = PUBLISHED_DCTCP.get(place, ("", ""))
        ours, ours_ms = found[("tcp-dctcp", *place)]
        lines.append(f"| {place[0]} | {place[1]} | {known[0]} | {ours:.1f} | {known[1]} | {ours_ms:.1f} |")
    tables.put(PAGE, lines, "dctcp")
    lines = ["| flow | alone, Mb/s | RTT ms | beside Prague, Mb/s | Prague, Mb/s | RTT ms | marks | drops |", "|" + "---|" * 8]
    for name in BESIDE_PRAGUE:
        alone, _, alone_ms, *_ = found_beside[name, False]
        rate, prague, rtt, marks, drops = found_beside[name, True]
        lines.append(f"| {name} | {alone:.2f} | {alone_ms:.1f} | {rate:.2f} | {prague:.2f} | {rtt:.1f} | {marks} | {drops} |")
    tables.put(PAGE, lines, "beside")
    return 0


if __name__ == "__main__":
    sys.exit(main())
