"""The RAP paper's scenarios in ns-2: writes `experiments/reference/ID-ns2.json`, which is committed and which the report shows beside our runs.

    python tests/oracle/run_rap.py                     all rows that name such a file under [ledger]; minutes on two cores
    python tests/oracle/run_rap.py rap-3 rap-4         some of them
    python tests/oracle/run_rap.py --missing           only points that the data have not
    python tests/oracle/run_rap.py --at n=1 --at flavour=tcp-tahoe rap-3     prints single points and writes nothing

Each point's scenario is read from the experiment file itself: rates, delays, buffer, RED, numbers and kinds of flows, duration,
window. Set equal: packets of 100 B and acknowledgements of 40 B on the wire (links here have `framing = "ip"`), waiting packets, and of TCP the
window, the first window, ticks, the first and the least RTO, limited transmit, no delayed acknowledgements and no handshake; flows start
within the first second.

Jitter: ns-2's TCP adds up to the file's `tcp.sending_jitter_s` to each sending, RAP up to a fifth of it to each gap: the whole would cost
RAP 6% of its rate. Acknowledgements have none. A run in which SRTT of a RAP agent froze is left out and another seed taken, ten at most.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from fairlane.experiments import loader, sweep
from fairlane.experiments.model import Experiment
from fairlane.paper import read_row

TCL = Path(__file__).with_name("rates.tcl")
SEEDS = 5
SPARE = 10
"""Seeds tried in place of runs in which a RAP agent's SRTT froze."""
RAP_JITTER = 0.2
"""RAP's part of TCP's jitter."""


def options(experiment: Experiment, jitter: float = 1.0, rap_jitter: float = RAP_JITTER) -> dict[str, Any]:
    """What rates.tcl needs to know of an experiment. jitter: of a TCP sending, in parts of the file's."""
    node, port = experiment.bottleneck
    ports = experiment.topology.ports()
    trunk = ports[node][port - 1].link
    rap = next(g for g in experiment.settings.flows if g.kind in ("rap", "rap-fine"))
    tcp = next(g for g in experiment.settings.flows if g.kind.startswith("tcp-"))
    flow = next(f for f in experiment.flows if f.kind == rap.kind)
    access = ports[flow.sender][0].link
    if (trunk.framing, access.framing) != ("ip", "ip"):
        raise SystemExit(f'{experiment.id}: ns-2\'s links carry datagrams: give bottleneck and access framing = "ip"')
    sender = next(f for f in experiment.flows if f.kind == tcp.kind).settings
    start, end = experiment.window_s
    given = {
        "agent": "rap",
        "fine": int(rap.kind == "rap-fine"),
        "flavour": tcp.kind.removeprefix("tcp-"),
        "adaptive": rap.count,
        "sacks": tcp.count,
        "rate_bps": round(trunk.rate_bps),
        "delay_ms": round(1e3 * trunk.delay_s, 6),
        "access_bps": round(access.rate_bps),
        "access_ms": round(1e3 * access.delay_s, 6),
        "buffer_packets": trunk.queue_packets,
        "packet_bytes": flow.settings.packet_bytes,
        "seconds": end,
        "from": start,
        "jitter_s": round(jitter * sender.sending_jitter_s, 9),
        "rap_jitter": rap_jitter,
        "starts_s": rap.start_jitter_s,
        "initial_window": sender.initial_window_packets,
        "limited_transmit": int(sender.limited_transmit),
        "initial_rto": sender.initial_rto_s,
        "min_rto": sender.min_rto_s,
        "tcp_tick": sender.timer_granularity_s,
    }
    if (red := trunk.aqm) is not None:
        given |= {
            "red": 1,
            "min_threshold": round(red.minimum * trunk.queue_packets, 6),
            "max_threshold": round(red.maximum * trunk.queue_packets, 6),
            "max_p": red.max_p,
            "weight": red.weight,
        }
    return given


def run(given: dict[str, Any], seed: int) -> dict[str, Any]:
    """One run: mean rates of the RAP and the TCP flows in bit/s, and what the queue and TCP did."""
    argv = ["ns", str(TCL), *(str(x) for pair in {**given, "seed": seed}.items() for x in pair)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=3600)
    rates: dict[int, float] = {}
    totals: dict[str, float] = {}
    for words in map(str.split, done.stdout.splitlines()):
        if words and words[0] == "flow":
            rates[int(words[1])] = float(words[2])
        elif words:
            totals |= {k: float(v) for k, v in zip(words[::2], words[1::2])}
    raps = given["adaptive"]
    flows = raps + given["sacks"]
    rap_bps, tcp_bps = (sum(rates.get(i, 0.0) for i in part) / len(part) for part in (range(raps), range(raps, flows)))
    return {
        "seed": seed,
        "frozen": int(totals["frozen"]),
        "rap_bps": round(rap_bps, 1),
        "tcp_bps": round(tcp_bps, 1),
        "ratio": round(rap_bps / tcp_bps, 4) if tcp_bps else None,
        "outstanding": round(totals["outstanding"], 2),
        "timeouts": int(totals["timeouts"]),
        "cuts": int(totals["cuts"]),
        "drops": int(totals["drops"]),
        "queue": round(totals["queue"], 2),
        "queue_swing": round(totals["deviation"] / totals["queue"], 4) if totals["queue"] else None,
    }


def cell(given: dict[str, Any], seeds: int = SEEDS) -> dict[str, Any]:
    """Runs of one point, without those in which an SRTT froze unless nothing else came. Without jitter and with one start all seeds
    would be the same: one run."""
    runs, frozen = [], []
    for seed in range(1, seeds + SPARE + 1):
        one = run(given, seed)
        (frozen if one.pop("frozen") else runs).append(one)
        if len(runs) == seeds:
            break
    return {"runs": runs or frozen[:seeds], "frozen_runs": len(frozen)}


def points(identity: str, at: list[str]) -> dict[tuple, Experiment]:
    """The experiment of each point of a row, by its axes."""
    document = sweep.narrowed(loader.read(loader.find(identity)), at)
    expanded = sweep.expand(sweep.without(document, sweep.REPORT_KEYS))
    return {p.axes: loader.from_document(p.document, identity) for p in expanded.points if p.seed == expanded.seeds[0]}


def write(path: Path, cells: list[dict[str, Any]]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text('{"program": "ns-2", "cells": [\n' + ",\n".join(json.dumps(c) for c in cells) + "\n]}\n")


def show(identity: str, found: dict[str, Any]) -> None:
    ratios = sorted(run["ratio"] for run in found["runs"])
    print(
        identity,
        " ".join(f"{k}={v}" for k, v in found["axes"].items()),
        f"ratio {ratios[len(ratios) // 2]:.3f} ({ratios[0]:.2f} to {ratios[-1]:.2f}), {found['frozen_runs']} frozen",
        flush=True,
    )


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("ids", nargs="*")
    parser.add_argument("--at", action="append", default=[])
    parser.add_argument("--missing", action="store_true")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--jitter", type=float, default=1.0)
    parser.add_argument("--rap-jitter", type=float, default=RAP_JITTER)
    parser.add_argument("--out", type=Path, help="instead of where the row looks")
    args = parser.parse_args()
    if shutil.which("ns") is None:
        print("ns-2 is not installed (Debian: apt install ns2); the committed data stay as they are")
        return 0
    with concurrent.futures.ThreadPoolExecutor(max(1, (os.cpu_count() or 1))) as pool:
        for identity in args.ids or [name for name in loader.names() if read_row.reference_file(loader.find(name)) is not None]:
            path = args.out or read_row.reference_file(loader.find(identity))
            known = {tuple(c["axes"].items()): c for c in json.loads(path.read_text())["cells"]} if args.missing and path.exists() else {}
            experiments = points(identity, args.at)
            todo = {
                pool.submit(cell, options(e, args.jitter, args.rap_jitter), args.seeds): axes
                for axes, e in experiments.items()
                if axes not in known
            }
            for future in concurrent.futures.as_completed(todo):
                axes = todo[future]
                known[axes] = {"axes": dict(axes), **future.result()}
                show(identity, known[axes])
                if not args.at or args.out:
                    write(path, [known[a] for a in experiments if a in known])
    return 0


if __name__ == "__main__":
    sys.exit(main())
