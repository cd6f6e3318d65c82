"""One network in several processes: a fat tree of 80 switches and 128 hosts at 10 Gb/s, the same bytes for 1, 2, 4 and 8 of them.

python -m bench.partitions [--k 8] [--seconds 0.1] [--flows 64] [--counts 1,2,4,8] [--ranks 4] [--rounds 3]

--ranks: after the counts of processes, these counts of ranks of MPI, started by mpiexec. For each count, medians of rounds in turns: time on the wall and its ratio to one process; the processor time of the busiest process, and its ratio to one process: what as many idle cores
could give at most. What was exchanged and waited for: windows, packets, messages and bytes between processes, part of the time in which the others were waited for, and the balance: processor time
of the busiest process over the mean. The digest is of all raw records. Waiting and times mean something on an idle machine with as many cores.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairlane import ad_hoc
from fairlane.fabrics import partition_plan, partitions, targets, virtual_fabric
from fairlane.fabrics.partitions import Cost
from fairlane.fabrics.progress import Silent

if TYPE_CHECKING:
    from fairlane.fabrics.ranks import Ranks

RESULTS = Path(__file__).resolve().parent.parent / "results" / "bench" / "partitions.json"


def experiment(k: int, flows: int, seconds: float, rtt: str) -> Any:
    """Flows from the first half of the pods to the second; every link has 10 Gb/s."""
    options = ad_hoc.Options(
        flows=(f"tcp-cubic:{flows}",),
        bottleneck="10gbit",
        side_rate="10gbit",
        rtt=rtt,
        buffer="200packets",
        packet_bytes=1500,
        settings=(f"topology.k={k}",),
    )
    return ad_hoc.experiment("fat-tree", options, seconds, 1)


def digest(folder: Path) -> str:
    """Of all records; the controller's configuration names files by their place."""
    whole = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            whole.update(path.name.encode() + path.read_bytes().replace(bytes(folder), b""))
    return whole.hexdigest()[:16]


def measure(k: int, flows: int, seconds: float, rtt: str, count: int, ranks: Ranks | None = None) -> dict[str, Any]:
    """One run, in a process of its own; or in one of several ranks, of which the first finds all."""
    case = experiment(k, flows, seconds, rtt)
    costs: list[Cost] = []
    partitions.said = lambda found, parts: costs.extend(found) or ""  # type: ignore[func-returns-value,assignment]
    with tempfile.TemporaryDirectory() as name:
        began, used = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF).ru_utime
        virtual_fabric.run(case, virtual_fabric.Options(targets.compiler(), cores=count, ranks=ranks), Path(name), Silent())
        wall_s, cpu_s = time.monotonic() - began, resource.getrusage(resource.RUSAGE_SELF).ru_utime - used
        found = digest(Path(name))
    busiest = max((cost.cpu_s for cost in costs), default=cpu_s)
    return {
        "processes": count,
        "by": "ranks" if ranks else "processes",
        "wall_s": wall_s,
        "busiest_cpu_s": busiest,
        "windows": costs[0].windows if costs else 0,
        "frames": sum(cost.frames for cost in costs),
        "messages": sum(cost.messages for cost in costs),
        "bytes": sum(cost.sent_bytes for cost in costs),
        "waited_s": max((cost.waited_s for cost in costs), default=0.0),
        "balance": busiest * len(costs) / sum(cost.cpu_s for cost in costs) if costs else 1.0,
        "lookahead_s": costs[0].lookahead_s if costs else 0.0,
        "digest": found,
    }


def measure_ranks(options: argparse.Namespace, count: int) -> dict[str, Any]:
    """One run by ranks: mpiexec starts this file again, and its first rank prints what it has found."""
    given = ["--k", options.k, "--flows", options.flows, "--seconds", options.seconds, "--rtt", options.rtt]
    command = ["mpiexec", "-n", count, sys.executable, "-m", "bench.partitions", *given, "--mpi"]
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def be_rank(options: argparse.Namespace) -> None:
    from fairlane.fabrics import rank_guard, ranks

    def work(all_ranks: Ranks) -> None:
        found = measure(options.k, options.flows, options.seconds, options.rtt, all_ranks.count, all_ranks)
        if all_ranks.own == 0:
            print(json.dumps(found))

    rank_guard.guarded()
    ranks.together(work)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--k", type=int, default=8)
    parser.add_argument("--flows", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=0.1)
    parser.add_argument("--rtt", default="100us")
    parser.add_argument("--counts", default="1,2,4,8")
    parser.add_argument("--ranks", default="")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mpi", action="store_true", help=argparse.SUPPRESS)  # this is a rank of measure_ranks
    options = parser.parse_args()
    if options.mpi:
        be_rank(options)
        return 0
    ways = [("processes", int(count)) for count in options.counts.split(",")]
    ways += [("ranks", int(count)) for count in options.ranks.split(",") if count]
    rounds: dict[tuple[str, int], list[dict[str, Any]]] = {way: [] for way in ways}
    for _ in range(options.rounds):
        for by, count in ways:
            if by == "ranks":
                rounds[by, count].append(measure_ranks(options, count))
                continue
            with ProcessPoolExecutor(1) as pool:
                done = pool.submit(measure, options.k, options.flows, options.seconds, options.rtt, count).result()
            rounds[by, count].append(done)
    rows = []
    for way in ways:
        found = rounds[way]
        rows.append(
            found[0] | {key: statistics.median(one[key] for one in found) for key in ("wall_s", "busiest_cpu_s", "waited_s", "balance")}
        )
    first = rows[0]
    print(
        f"fat tree k = {options.k}, {options.flows} flows, {options.seconds} s; {partition_plan.cores()} cores here; medians of {options.rounds}"
    )
    print("             wall s  faster  busiest s  faster  windows     packets messages      bytes  waited s  balance  digest")
    for row in rows:
        print(
            f"{row['processes']:2} {row['by']:9} {row['wall_s']:7.2f} {first['wall_s'] / row['wall_s']:7.2f} {row['busiest_cpu_s']:10.2f}"
            f" {first['busiest_cpu_s'] / row['busiest_cpu_s']:7.2f} {row['windows']:8} {row['frames']:11} {row['messages']:8} {row['bytes']:10} {row['waited_s']:9.2f}"
            f" {row['balance']:8.2f}  {row['digest']}"
        )
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    digests = {one["digest"] for found in rounds.values() for one in found}
    if len(digests) != 1:
        print("the records differ")
    return 0 if len(digests) == 1 else 1


if __name__ == "__main__":
    sys.exit(main())
