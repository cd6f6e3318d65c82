"""How fast flows reach their shares of a link when as many more join, and what waits meanwhile: the tables of docs/explicit-rates.md.

    python bench/explicit_rates.py

Flows run on a link of 10 Mb/s; at half of the time as many more join. RCP's share is C / N of whole frames, and reached when the sending rates of all flows stay
within 5 % of it for the rest of the run. ALS's share is its fair rate with U_l = 0.9; its senders add AIR to it, so what counts is the same around the
mean of each flow's last tenth. Virtual time, one seed.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np

import fairlane

RATE_BPS = 10e6
FRAME, DATAGRAM = 1014, 1000
WITHIN = 0.05
ALS = {"queue": "red", "buffer": "250packets"}
RCP = {"buffer": "4bdp"}
ROWS = [
    *(("rcp", n, rtt_ms, 20.0, RCP) for n in (1, 4, 16) for rtt_ms in (20, 60, 120)),
    *(("als", n, 60, 600.0, ALS) for n in (1, 4)),
]


def sending_rates(folder: Path) -> list[tuple[np.ndarray, np.ndarray]]:
    """Of each flow: instants in seconds, and bit/s from then on."""
    found = []
    for path in sorted(folder.glob("raw/*.sender.jsonl")):
        records = [json.loads(line) for line in path.read_text().splitlines()]
        found.append(tuple(np.array(column) for column in zip(*((r["t"], r["rate_bps"]) for r in records if r["kind"] == "sent"))))
    return found


def settled_s(rates: list[tuple[np.ndarray, np.ndarray]], share_bps: float | None, end_s: float, tail_s: float) -> float:
    """The last instant at which a rate began to be outside its share's band, on the network's clock. share_bps: None: each flow's own mean of the
    last tail_s."""
    last = 0.0
    for times, values in rates:
        share = share_bps or float(values[times > end_s - tail_s].mean())
        outside = np.abs(values / share - 1) > WITHIN
        until = np.append(times[1:], end_s)
        last = max(last, float(until[outside].max(initial=0.0)))
    return last


def row(kind: str, count: int, rtt_ms: int, duration_s: float, how: dict[str, str]) -> str:
    join_s = duration_s / 2
    flows = [f"{kind}:{count}", f"{kind}:{count}@{join_s:g}s"]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        run = fairlane.run("dumbbell", flows, bottleneck="10mbit", rtt=f"{rtt_ms}ms", duration_s=duration_s, out=out, **how)
        rates = sending_rates(out)
        begin_s = min(float(times[0]) for times, _ in rates)
        share = RATE_BPS * DATAGRAM / FRAME / (2 * count) if kind == "rcp" else None
        joined_s = max(float(times[0]) for times, _ in rates)
        after_s = settled_s(rates, share, begin_s + duration_s, duration_s / 10) - joined_s
    links = run.links[run.links.link == "s1->s2"]
    late = links[links.time_s > join_s]
    final = np.mean([float(values[-1]) for _, values in rates])
    expected = RATE_BPS * DATAGRAM / FRAME / (2 * count)
    drops = sum(run.bottleneck["drops"].values())
    cells = (
        kind, f"{count} -> {2 * count}", rtt_ms, f"{after_s:.2f}", f"{1000 * after_s / rtt_ms:.0f}", f"{final / expected:.3f}",
        f"{late.queue_packets.max():.0f}", f"{links.queue_packets[links.time_s > 0.9 * duration_s].mean():.1f}", drops,
    )  # fmt: skip
    return f"| {' | '.join(map(str, cells))} |"


def main() -> None:
    print(
        "| kind | flows | RTT ms | seconds until settled | round trips | rate / (C / N) | longest queue, packets | mean queue at the end | drops |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for each in ROWS:
        print(row(*each), flush=True)


if __name__ == "__main__":
    main()
