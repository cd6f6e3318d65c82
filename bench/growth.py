"""How a run grows with its flows: 80 switches, 1,024 hosts, web search files between any two of them. `python -m bench.growth [--flows 1250 2500 5000 10000]`.

Each size is a process of its own: seconds of processor time to load the file, to simulate, and to evaluate and write the results; the most memory, and the folder's size.
Flows grow by the time in which they arrive, so that the load of the network is the same.
"""

from __future__ import annotations

import argparse
import itertools
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from fairlane import execute
from fairlane.experiments import loader
from fairlane.fabrics.base import Settings
from fairlane.fabrics.places import VIRTUAL
from fairlane.fabrics.progress import Silent
from fairlane.inputs import located_toml
from fairlane.results.result_folder import ResultFolder

PER_S = 50_000
"""Flows that arrive each second: with 20 kB on average, 8 Gb/s of 1,024 hosts with 1 Gb/s each."""
_TEXT = """
title = "Many short flows over leaves and spines"
bottleneck = "leaf1->spine1"
duration_s = {duration_s}
window_from = 0.0
[topology]
kind = "leaf-spine"
leaves = 64
spines = 16
hosts_per_leaf = 16
trunk = {{ rate_bps = 1_000_000_000, delay_s = 0.000_01, queue_packets = 100 }}
access = {{ rate_bps = 1_000_000_000, delay_s = 0.000_01, queue_packets = 100 }}
[tcp]
packet_bytes = 1500
[[workloads]]
name = "web"
kind = "tcp-cubic"
arrivals = {{ kind = "deterministic", per_s = {per_s} }}
sizes = {{ kind = "lognormal", mean_bytes = 20_000, sigma = 1.5 }}
pattern = "all-to-all"
stop_s = {stop_s}
"""


def one(flows: int) -> dict[str, float]:
    """A run of about so many flows."""
    stop_s = flows / PER_S
    text = _TEXT.format(duration_s=stop_s + 0.3, stop_s=stop_s, per_s=PER_S)
    times = [time.process_time()]
    experiment = loader.from_document(located_toml.parse(text, "growth"), "growth")
    times.append(time.process_time())
    with tempfile.TemporaryDirectory(prefix="fairlane-growth-") as folder:
        out = Path(folder, "out")
        results = ResultFolder(out)
        (results.work / "raw").mkdir()
        outcome = VIRTUAL.ready(experiment, Settings()).run(results.work / "raw", Silent())
        times.append(time.process_time())
        execute.publish(experiment, outcome, results)
        times.append(time.process_time())
        complete = json.loads((out / "summary.json").read_text())["kinds"][0]
        size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    load_s, simulate_s, evaluate_s = (after - before for before, after in itertools.pairwise(times))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "flows": len(experiment.flows),
        "load_s": load_s,
        "simulate_s": simulate_s,
        "evaluate_s": evaluate_s,
        "memory_mib": memory,
        "disk_mb": size / 1e6,
        "completion_p99_s": complete["completion_s"]["p99"],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flows", type=int, nargs="+", default=[1250, 2500, 5000, 10_000])
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(one(given.one)))
        return 0
    header = f"{'flows':>7} {'load s':>8} {'simulate s':>11} {'evaluate s':>11} {'MiB':>7} {'MB on disk':>11} {'p99 s':>9}"
    print(header, flush=True)
    for flows in given.flows:
        done = subprocess.run([sys.executable, "-m", "bench.growth", "--one", str(flows)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            print(done.stderr, file=sys.stderr)
            return 1
        row = json.loads(done.stdout.splitlines()[-1])
        print(
            f"{row['flows']:>7} {row['load_s']:>8.2f} {row['simulate_s']:>11.2f} {row['evaluate_s']:>11.2f} {row['memory_mib']:>7.0f}"
            f" {row['disk_mb']:>11.1f} {row['completion_p99_s']:>9.4f}",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
