"""Flows over the cores of a fat tree: `python -m bench.equal_cost --k 8`.

Hosts of the first half of the pods send to hosts of the second half, each flow a few packets a second without feedback, in virtual time. Each core switch counts the packets that
come to it: the flows of each core, against the binomial distribution of flows that choose among the cores at random.
"""

from __future__ import annotations

import argparse
import math
import random
import tempfile
from collections import Counter
from pathlib import Path

import pandas as pd

from fairlane import api
from fairlane.experiments import loader, paths
from fairlane.inputs import located_toml

_TEXT = """
title = "Flows over the cores of a fat tree"
bottleneck = "edge1_1->agg1_1"
duration_s = 2
seed = {seed}
[topology]
kind = "fat-tree"
k = {k}
trunk = {{ rate_bps = 1_000_000_000, delay_s = 0.000_01 }}
access = {{ rate_bps = 1_000_000_000, delay_s = 0.000_01 }}
[cbr]
rate_bps = 80_000
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--k", type=int, default=8, help="ports of a switch, an even number (default 8)")
    parser.add_argument("--flows", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    draw = random.Random(given.seed)
    half = given.k**3 // 8
    pairs = [(f"h{1 + draw.randrange(half)}", f"h{1 + half + draw.randrange(half)}") for _ in range(given.flows)]
    listed = ", ".join(f'["{a}", "{b}"]' for a, b in pairs)
    text = _TEXT.format(k=given.k, seed=given.seed) + f'[[flows]]\nname = "f"\nkind = "cbr"\ncount = {given.flows}\nhosts = [{listed}]\n'
    experiment = loader.from_document(located_toml.parse(text, "fat tree"), "fat-tree")
    expected = Counter(p.node for flow in experiment.flows for p in paths.there(experiment, flow) if p.node.startswith("core"))
    cores = [s for s in experiment.topology.switches if s.startswith("core")]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        api.run_experiment(experiment, out=out)
        packets = {}
        for core in cores:
            rows = pd.read_csv(out / "raw" / f"{core}.csv")
            packets[core] = int(rows[rows["time_s"] == rows["time_s"].max()]["rx_packets"].sum())
    each, mean = sum(packets.values()) / given.flows, given.flows / len(cores)
    deviation = math.sqrt(mean * (1 - 1 / len(cores)))
    print(f"{given.flows} flows over {len(cores)} cores: {mean:.1f} each, standard deviation {deviation:.1f}")
    print("core    packets  flows by packets  flows by paths  deviations from the mean")
    for core in cores:
        flows = packets[core] / each
        print(f"{core:7} {packets[core]:7}  {flows:16.1f}  {expected[core]:14}  {(expected[core] - mean) / deviation:+.2f}")
    squares = sum((expected[core] - mean) ** 2 for core in cores) / mean
    print(f"chi-squared {squares:.1f}, with {len(cores) - 1} degrees of freedom")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
