"""What ranks of MPI need to exchange at the end of a window: the reduction alone, and messages of some sizes.

mpiexec -n 2 python -m bench.exchange [--rounds 2000]

For each size the time of an exchange in which each rank sends so many bytes to the next one, median and fifth percentile; 0 is the reduction alone. The median means something on an idle
machine with a core for each rank, the percentile also where others use it a little.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time

from fairlane.fabrics import rank_guard, ranks
from fairlane.fabrics.ranks import NEVER, Ranks

SIZES = (0, 100, 1_000, 10_000, 100_000, 1_000_000)


def measure(found: Ranks, size: int, rounds: int) -> tuple[float, float]:
    """Median and fifth percentile, in seconds."""
    content = bytes(size)
    ours = [((found.own + 1) % found.count, content)] if size and found.count > 1 else []
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        found.exchange(NEVER, ours)
        times.append(time.perf_counter() - began)
    return statistics.median(times), sorted(times)[len(times) // 20]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2000)
    options = parser.parse_args()

    def work(found: Ranks) -> None:
        if found.own == 0:
            print(f"{found.count} ranks, {options.rounds} rounds\n    bytes   median us    5 % us")
        for size in SIZES:
            measure(found, size, 20)
            rounds = max(20, options.rounds // (1 + size // 20_000))
            median_s, low_s = measure(found, size, rounds)
            if found.own == 0:
                print(f"{size:9} {median_s * 1e6:11.1f} {low_s * 1e6:9.1f}", flush=True)

    rank_guard.guarded()
    ranks.together(work)
    return 0


if __name__ == "__main__":
    sys.exit(main())
