"""ABC, RCP and XCP beside CUBIC on recorded cellular links: the table and the picture of docs/abc-on-cellular-links.md.

    git clone https://github.com/ravinet/mahimahi ../mahimahi
    python bench/cellular.py ../mahimahi/traces/Verizon-LTE-short.down [FILE ...] [--picture docs/abc-on-cellular-links.png]

A trace is a file in Mahimahi's format; Fairlane takes it as it is (docs/traces.md). The path is that of the ABC authors' script `exp.sh`: a round trip of 100 ms, 250
packets of 1500 bytes, 12 Mb/s on the way back, one flow for 140 s. Delays are those of each packet that crosses the bottleneck, from its arrival there
to its last bit, without the first 2 s. Virtual time, seed 1.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import tempfile
from collections import deque
from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

FAIRLANE = Path(sys.executable).with_name("fairlane")
DURATION_S, FROM_S, PACKET_BYTES, OPPORTUNITY_BITS = 140.0, 2.0, 1500, 12_000
LINK_DELAY_S, ACCESS_DELAY_S = 0.046, 0.002


@dataclass(frozen=True)
class Scheme:
    kind: str
    queue: str = ""
    control: str = ""


TOLD = "interval_s = 0.01"
"""The controller learns and tells the mean rate of the link each 10 ms, in place of each second."""
SCHEMES = {
    "abc": Scheme("abc", control=f"{TOLD}\nabc = {{ told = true }}"),
    "abc, rate measured": Scheme("abc"),
    "cubic + CoDel 5 ms": Scheme("tcp-cubic", 'queue = "codel"'),
    "cubic + CoDel 50 ms": Scheme("tcp-cubic", 'queue = "codel"\ncodel = { target_s = 0.05 }'),
    "cubic + drop-tail": Scheme("tcp-cubic"),
    "rcp": Scheme("rcp", control=TOLD),
    "rcp, each second": Scheme("rcp"),
    "xcp": Scheme("xcp", control=TOLD),
}
EXPERIMENT = """title = "one flow over a cellular link"
bottleneck = "s1->s2"
duration_s = {duration_s}
seed = 1

[topology]
kind = "dumbbell"
pairs = 1

[topology.bottleneck]
trace = "{trace}"
trace_back = "{back}"
framing = "ip"
delay_s = {link_delay_s}
queue_packets = 250
{queue}

[topology.access]
rate_bps = 1_000_000_000
delay_s = {access_delay_s}
queue_packets = 10_000

[control]
{control}

[[flows]]
name = "flow"
kind = "{kind}"
packet_bytes = {packet_bytes}
"""


@dataclass
class Crossing:
    """Of the bottleneck: when packets left, in seconds, how long each had been there, and how many opportunities there were."""

    left_s: np.ndarray
    delays_s: np.ndarray
    offered_bits: float
    drops: int

    @property
    def row(self) -> tuple[float, float, float, float]:
        """Mb/s, utilisation, mean and 95th percentile of the delay in ms."""
        bits = 8 * PACKET_BYTES * self.left_s.size
        milliseconds = 1e3 * self.delays_s
        return bits / (DURATION_S - FROM_S) / 1e6, bits / self.offered_bits, milliseconds.mean(), float(np.percentile(milliseconds, 95))


def offered_bits(trace: Path) -> float:
    """Of the opportunities from FROM_S to the end."""
    times = np.loadtxt(trace) / 1e3
    turns = np.arange(int(DURATION_S / times[-1]) + 1)
    every = (times[None, :] + turns[:, None] * times[-1]).ravel()
    return OPPORTUNITY_BITS * float(((every >= FROM_S) & (every < DURATION_S)).sum())


def crossing(events: Path, trace: Path, begin_s: float) -> Crossing:
    """From the log of a run that begins at an instant: packets leave s1's port in the order in which they came, and what a queue management drops as it leaves never ends its
    transmission. So the packets at s2 are those that were dequeued and not dropped at that instant."""
    waiting: deque[tuple[float, bool]] = deque()
    sent: deque[float] = deque()
    left, delays, drops = [], [], 0
    port: str | None = None
    with events.open() as file:
        for time_ns, event, node, number, length, cause, *_ in csv.reader(file):
            if event == "enqueue" and node == "s1" and (port is None or number == port) and int(length) > PACKET_BYTES // 2:
                port = number
                waiting.append((int(time_ns) / 1e9, True))
            elif event == "dequeue" and node == "s1" and number == port:
                sent.append(waiting.popleft()[0])
            elif event == "drop" and node == "s1":
                drops += 1
                if cause not in ("tail", "ingress") and sent:
                    sent.pop()
            elif event == "receive" and node == "s2" and int(length) > PACKET_BYTES // 2:
                arrived = sent.popleft()
                now = int(time_ns) / 1e9 - LINK_DELAY_S
                if FROM_S <= now - begin_s < DURATION_S:
                    left.append(now - begin_s)
                    delays.append(now - arrived)
    return Crossing(np.array(left), np.array(delays), offered_bits(trace), drops)


def run(scheme: Scheme, trace: Path) -> Crossing:
    with tempfile.TemporaryDirectory() as folder:
        back, file, events = (Path(folder) / name for name in ("back.csv", "cellular.toml", "events.csv"))
        back.write_text("time_s,rate_bps\n0,12000000\n")
        file.write_text(
            EXPERIMENT.format(
                trace=trace.resolve(),
                back=back,
                queue=scheme.queue,
                control=scheme.control,
                kind=scheme.kind,
                duration_s=DURATION_S,
                link_delay_s=LINK_DELAY_S,
                access_delay_s=ACCESS_DELAY_S,
                packet_bytes=PACKET_BYTES,
            )
        )
        command = [FAIRLANE, "run", file, "--trace", events, "--out", Path(folder) / "run"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        begins = json.loads((Path(folder) / "run/raw/flow.sender.jsonl").open().readline())
        return crossing(events, trace, begins["t"])


def draw(trace: Path, found: dict[str, Crossing], path: Path) -> None:
    """Rates above and delays below, over quarters of a second of the first minute."""
    figure, axes = plt.subplots(2, 1, figsize=(9, 6), sharex=True, layout="constrained")
    bins = np.arange(0.0, 60.25, 0.25)
    rate = lambda times: OPPORTUNITY_BITS * np.histogram(times, bins)[0] / 0.25 / 1e6
    axes[0].fill_between(bins[:-1], rate(np.loadtxt(trace) / 1e3), step="post", color="#dddddd", label="the link")
    for name, color in (("abc", "#AA4499"), ("cubic + CoDel 5 ms", "#999933"), ("cubic + drop-tail", "#D55E00")):
        seen = found[name]
        axes[0].step(bins[:-1], rate(seen.left_s), where="post", color=color, linewidth=1, label=name)
        high = [
            1e3 * np.percentile(d, 95) if d.size else np.nan for d in np.split(seen.delays_s, np.searchsorted(seen.left_s, bins[1:]))[:-1]
        ]
        axes[1].step(bins[:-1], high, where="post", color=color, linewidth=1, label=name)
    axes[0].set(title=trace.name, ylabel="rate (Mb/s)", ylim=(0, None))
    axes[1].set(xlabel="time (s)", ylabel="delay at the bottleneck, 95th percentile (ms)", yscale="log", ylim=(1, None), xlim=(0, 60))
    axes[0].legend(fontsize=8)
    for each in axes:
        each.grid(alpha=0.3)
    figure.savefig(path, dpi=100, metadata={"Software": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("traces", nargs="+", type=Path)
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--schemes", nargs="+", default=list(SCHEMES), choices=list(SCHEMES))
    args = parser.parse_args()
    print("| trace | scheme | Mb/s | utilisation | mean delay ms | 95th percentile ms | drops |\n|---|---|---|---|---|---|---|")
    for trace in args.traces:
        found = {}
        for name in args.schemes:
            found[name] = run(SCHEMES[name], trace)
            rate, utilisation, mean, high = found[name].row
            print(f"| {trace.name} | {name} | {rate:.2f} | {utilisation:.3f} | {mean:.0f} | {high:.0f} | {found[name].drops} |", flush=True)
        if args.picture and trace == args.traces[0]:
            draw(trace, found, args.picture)


if __name__ == "__main__":
    main()
