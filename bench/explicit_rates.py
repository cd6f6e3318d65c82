"""How fast flows reach their shares of a link when as many more join, and what waits meanwhile: the tables of docs/explicit-rates.md.

    python bench/explicit_rates.py [rcp] [xcp] [abc] [als]

Flows run on a link of 10 Mb/s; at half of the time as many more join. The share of RCP, XCP and ABC is C / N of whole frames, and reached when the rates of all
flows stay within 5 % of it for the rest of the run: RCP's sending rate; of XCP and ABC, which have windows, the rate of arrivals over ten round trips,
within 5 % or a packet of the window: windows have whole packets in flight.
ALS's share is its fair rate with U_l = 0.9; its senders add AIR to it, so what counts is the same around the mean of each flow's last tenth.
Virtual time, one seed.
"""

from __future__ import annotations

import json
import sys
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
    *(
        (kind, n, rtt_ms, 20.0 if kind == "rcp" else 80.0, RCP)
        for kind in ("rcp", "xcp", "abc")
        for n in (1, 4, 16)
        for rtt_ms in (20, 60, 120)
    ),
    *(("als", n, 60, 600.0, ALS) for n in (1, 4)),
]


def sending_rates(folder: Path) -> list[tuple[np.ndarray, np.ndarray]]:
    """Of each flow: instants in seconds, and bit/s from then on."""
    found = []
    for path in sorted(folder.glob("raw/*.sender.jsonl")):
        records = [json.loads(line) for line in path.read_text().splitlines()]
        found.append(tuple(np.array(column) for column in zip(*((r["t"], r["rate_bps"]) for r in records if r["kind"] == "sent"))))
    return found


def arrival_rates(folder: Path, over_s: float, end_s: float) -> list[tuple[np.ndarray, np.ndarray]]:
    """The same of arrivals, each over the time before it. Receivers count each 0.1 s."""
    found = []
    for path in sorted(folder.glob("raw/*.receiver.jsonl")):
        records = [
            r for r in map(json.loads, path.read_text().splitlines()) if r["kind"] == "data" and r["received_packets"] and r["t"] < end_s
        ]
        times, packets = (np.array([r[key] for r in records]) for key in ("t", "received_packets"))
        steps = max(1, round(over_s / 0.1))
        if packets[-1] < packets.max():
            raise ValueError(f"{path}: received_packets is no running count")
        found.append((times[steps:], 8 * DATAGRAM * (packets[steps:] - packets[:-steps]) / (times[steps:] - times[:-steps])))
    return found


def settled_s(
    rates: list[tuple[np.ndarray, np.ndarray]], share_bps: float | None, end_s: float, tail_s: float, step_bps: float = 0.0
) -> float:
    """step_bps: of a packet in a round trip. The last instant at which a rate began to be outside its share's band, on the network's clock. share_bps: None: each flow's own mean of the
    last tail_s."""
    last = 0.0
    for times, values in rates:
        share = share_bps or float(values[times > end_s - tail_s].mean())
        outside = np.abs(values - share) > max(WITHIN * share, 1.01 * step_bps)
        until = np.append(times[1:], end_s)
        last = max(last, float(until[outside].max(initial=0.0)))
    return last


def row(kind: str, count: int, rtt_ms: int, duration_s: float, how: dict[str, str]) -> str:
    join_s = duration_s / 2
    flows = [f"{kind}:{count}", f"{kind}:{count}@{join_s:g}s"]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        run = fairlane.run("dumbbell", flows, bottleneck="10mbit", rtt=f"{rtt_ms}ms", duration_s=duration_s, out=out, **how)
        sent = sending_rates(out)
        begin_s, joined_s = (f(float(times[0]) for times, _ in sent) for f in (min, max))
        over_s = max(0.2, 0.01 * rtt_ms)
        windows = kind in ("xcp", "abc")
        end_s = begin_s + duration_s
        rates = arrival_rates(out, over_s, end_s) if windows else sent
        share = RATE_BPS * DATAGRAM / FRAME / (2 * count) if kind != "als" else None
        after_s = settled_s(rates, share, end_s, duration_s / 10, 8000 * DATAGRAM / rtt_ms if windows else 0.0) - joined_s
        means = np.array([float(values[times > end_s - duration_s / 10].mean()) for times, values in rates])
        jain = means.sum() ** 2 / (means.size * (means**2).sum())
    links = run.links[run.links.link == "s1->s2"]
    late = links[links.time_s > join_s]
    expected = RATE_BPS * DATAGRAM / FRAME / (2 * count)
    drops = sum(run.bottleneck["drops"].values())
    cells = (
        kind, f"{count} -> {2 * count}", rtt_ms,
        *((f"{after_s:.2f}", f"{1000 * after_s / rtt_ms:.0f}") if after_s < 0.9 * (end_s - joined_s) else ("not", "")), f"{means.mean() / expected:.3f}", f"{jain:.3f}",
        f"{late.queue_packets.max():.0f}", f"{links.queue_packets[links.time_s > 0.9 * duration_s].mean():.1f}", drops,
    )  # fmt: skip
    return f"| {' | '.join(map(str, cells))} |"


def main() -> None:
    kinds = sys.argv[1:]
    print(
        "| kind | flows | RTT ms | seconds until settled | round trips | rate / (C / N) | Jain's index | longest queue, packets | mean queue at the end | drops |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for each in ROWS:
        if not kinds or each[0] in kinds:
            print(row(*each), flush=True)


if __name__ == "__main__":
    main()
