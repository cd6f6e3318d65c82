"""Prague and CUBIC over DualPI2 in virtual time, beside what the L4S team published. Prints the tables of docs/prague-against-l4s.md."""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import fairlane

PAGE = Path(__file__).resolve().parents[2] / "docs" / "prague-against-l4s.md"
BEGIN, END = "<!-- table: begin -->\n", "<!-- table: end -->"
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
PACKET_BYTES = 1500


def run(case: tuple[str, int, int]) -> tuple[float, float]:
    """Mb/s of all 40 s, and the mean round trip of their second half in ms: the link's and its queue's."""
    kind, rate_mbps, rtt_ms = case
    result = fairlane.run(
        "dumbbell",
        f"{kind}:1",
        bottleneck=f"{rate_mbps}mbit",
        rtt=f"{rtt_ms}ms",
        queue="dualpi2",
        buffer="2000packets",
        packet_bytes=PACKET_BYTES,
        duration_s=40.0,
    )
    waiting_ms = result.bottleneck["mean_queue_packets"] * (PACKET_BYTES + 14) * 8 / (rate_mbps * 1e3)
    return result.flows["goodput_bps"].mean() / 1e6, rtt_ms + waiting_ms


def main() -> int:
    cases = [(kind, *place) for place in PUBLISHED for kind in ("tcp-prague", "tcp-cubic")]
    with ProcessPoolExecutor(2) as pool:
        found = dict(zip(cases, pool.map(run, cases)))
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
    print("\n".join(lines))
    if PAGE.exists():
        before, _, rest = PAGE.read_text().partition(BEGIN)
        PAGE.write_text(before + BEGIN + "\n".join(lines) + "\n" + END + rest.partition(END)[2])
    return 0


if __name__ == "__main__":
    sys.exit(main())
