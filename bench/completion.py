"""Completion times of the same files here and in ns-3: `python -m bench.completion`.

Files arrive at random at a dumbbell and at a leaf-spine network (`fairlane.experiments.workloads`). ns-3 (`completion.cc`) gets the same network, arrivals, sizes and ways. Each
row is a percentile of the files of a range of sizes: on either side the geometric mean over the seeds, and the ratio of both with its 95% interval. Needs g++ and Debian's libns3-dev.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import math
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairlane import api
from fairlane.arithmetic import exp, log
from fairlane.experiments import loader, paths
from fairlane.experiments.model import Experiment
from fairlane.inputs import located_toml
from fairlane.results.completions import PERCENTILES, empty_network_s, percentile
from fairlane.studies import intervals
from tests.oracle import ns3, tables

SOURCE = Path(__file__).with_suffix(".cc")
PAGE = SOURCE.parents[1] / "docs" / "completion-against-ns3.md"
FIGURE = PAGE.with_suffix(".png")
DATA = SOURCE.parents[1] / "tests" / "oracle" / "data" / "completion.json"
"""ns-3's seconds of the files that are sent one after another."""
SIZES: tuple[tuple[str, float, float], ...] = (("to 100 kB", 0, 1e5), ("100 kB to 1 MB", 1e5, 1e6), ("above 1 MB", 1e6, math.inf))
"""Ranges of files, in bytes: above the first number, to the second."""

_DUMBBELL = """
bottleneck = "s1->s2"
[topology]
kind = "dumbbell"
pairs = 8
bottleneck = { rate_bps = 100_000_000, delay_s = 0.0095, queue_packets = 165 }
access = { rate_bps = 1_000_000_000, delay_s = 0.00025, queue_packets = 1000 }
"""
_LEAF_SPINE = """
bottleneck = "leaf1->spine1"
[topology]
kind = "leaf-spine"
leaves = 4
spines = 2
hosts_per_leaf = 4
trunk = { rate_bps = 2_000_000_000, delay_s = 0.000005, queue_packets = 100 }
access = { rate_bps = 1_000_000_000, delay_s = 0.000005, queue_packets = 100 }
"""


@dataclass(frozen=True, eq=False)
class Case:
    """name: of its rows. network: tables of an experiment. arrivals: keys of a workload. arrivals_s: how long files arrive; rest_s: until all are complete.
    tcp: keys of [tcp]; ns3: options of completion.cc, which set the same. seeds: how many, from 1 on."""

    name: str
    network: str
    kind: str
    arrivals: str
    arrivals_s: float
    rest_s: float
    tcp: dict[str, Any]
    ns3: dict[str, Any] = field(default_factory=dict)
    seeds: int = 6

    def experiment(self, seed: int) -> Experiment:
        """Files that arrive at random."""
        end_s = self.arrivals_s + self.rest_s
        workload = f'[[workloads]]\nname = "file"\nkind = "{self.kind}"\nstop_s = {self.arrivals_s}\nsizes = "web-search"\n{self.arrivals}'
        return self._loaded(f"duration_s = {end_s}\nseed = {seed}\n", workload)

    def one_after_another(self) -> Experiment:
        """Files of `ALONE_BYTES` from the first host to the last one, each alone in the network."""
        flows = (
            f'[[flows]]\nname = "file-{n}"\nkind = "{self.kind}"\nhosts = [["h1", "h16"]]\nstart_s = {n}\nparameters = {{ file_bytes = {size} }}\n'
            for n, size in enumerate(ALONE_BYTES)
        )
        return self._loaded(f"duration_s = {len(ALONE_BYTES)}\n", "".join(flows))

    def _loaded(self, settings: str, traffic: str) -> Experiment:
        tcp = "".join(f"{key} = {json.dumps(value)}\n" for key, value in {**_TCP, **self.tcp}.items())
        text = f'title = "{self.name}"\nwindow_from = 0.0\n{settings}{self.network}[tcp]\n{tcp}{traffic}'
        return loader.from_document(located_toml.parse(text, self.name), "completion")


ALONE_BYTES = (100, 10_000, 100_000, 1_000_000)
_SEGMENT_BYTES = 1460
_WINDOW_PACKETS = 30_000
"""More than the largest file: ns-3.37 stops with a null pointer where data fill the receiver's window (`TcpTxBuffer::NextSeg`)."""
# [RFC 5681 eq 3] adds the same for every ACK. Without timestamps, ns-3 measures round trips to the nanosecond.
_TCP: dict[str, Any] = {
    "packet_bytes": _SEGMENT_BYTES + 40,
    "timestamps": False,
    "byte_counting": False,
    "rtt_estimator": "rfc6298",
    "timer_granularity_s": 1e-6,
    "max_window_packets": _WINDOW_PACKETS,
}
_BY_SEGMENT = {"byte_counting": True, "delayed_ack": False}
"""ns-3's CUBIC counts segments; with an ACK for each, slow start is [RFC 5681 eq 2]'s."""
_WIDE = {"min_rto_s": 0.2, "initial_rto_s": 0.2}
_SHORT = {"min_rto_s": 0.01, "initial_rto_s": 0.01, "delayed_ack_timeout_s": 0.001}
_WIDE_NS3 = {"min_rto_s": 0.2, "initial_rto_s": 0.2}
_SHORT_NS3 = {"min_rto_s": 0.01, "initial_rto_s": 0.01, "delayed_ack_s": 0.001}
_PAIRS = "arrivals = { load = 0.6 }\n"
_ALL = 'arrivals = { load = 0.5, of = "hosts" }\npattern = "all-to-all"\n'
CASES = (
    Case("dumbbell", _DUMBBELL, "tcp-sack", _PAIRS, 60, 60, _WIDE, {"tcp": "sack", **_WIDE_NS3}),
    Case("dumbbell, CUBIC", _DUMBBELL, "tcp-cubic", _PAIRS, 60, 60, {**_WIDE, **_BY_SEGMENT}, {"tcp": "cubic", **_WIDE_NS3, "acks": 1}, 3),
    Case("leaf-spine", _LEAF_SPINE, "tcp-sack", _ALL, 0.3, 1, _SHORT, {"tcp": "sack", **_SHORT_NS3}),
)


def described(experiment: Experiment) -> str:
    """The input of completion.cc."""
    number = {node.name: n for n, node in enumerate(experiment.topology.nodes)}
    lines = [f"nodes {len(number)}"]
    for link in experiment.topology.links:
        a, b = (number[end.split(":")[0]] for end in link.ends)
        lines.append(f"link {a} {b} {link.rate_bps:.0f} {link.delay_s * 1e9:.0f} {link.queue_packets}")
    for flow in experiment.flows:
        ways = [
            [number[port.node] for port in way] + [number[way[-1].peer]]
            for way in (paths.there(experiment, flow), paths.back(experiment, flow))
        ]
        words = [
            f"file {flow.start_s * 1e9:.0f} {flow.tcp_settings.file_bytes}",
            *(f"{len(way)} {' '.join(map(str, way))}" for way in ways),
        ]
        lines.append(" ".join(words))
    return "\n".join(lines) + "\n"


def there(program: Path, case: Case, experiment: Experiment) -> dict[str, Any]:
    """ns-3's: seconds of each file, nan where it is not complete; segments sent again, timeouts."""
    options = {**case.ns3, "seconds": experiment.duration_s, "segment": _SEGMENT_BYTES, "max_window": _SEGMENT_BYTES * _WINDOW_PACKETS}
    command = [str(program), *(f"--{key}={value}" for key, value in options.items())]
    done = subprocess.run(command, input=described(experiment), check=True, capture_output=True, text=True)
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    return {
        "completion_s": [int(row["completion_ns"]) / 1e9 if int(row["completion_ns"]) >= 0 else math.nan for row in rows],
        "retransmitted": sum(int(row["retransmitted"]) for row in rows),
        "timeouts": sum(int(row["timeouts"]) for row in rows),
    }


def here(experiment: Experiment) -> dict[str, Any]:
    """Ours: the same."""
    with tempfile.TemporaryDirectory() as folder:
        result = api.run_experiment(experiment, out=Path(folder) / "out")
        timeouts = 0
        for flow in experiment.flows:
            lines = (Path(folder) / "out" / "raw" / f"{flow.name}.sender.jsonl").read_text().splitlines()
            timeouts += max((record.get("timeouts", 0) for record in map(json.loads, lines)), default=0)
    flows = result.summary["flows"]
    return {
        "completion_s": [math.nan if flow["completion_s"] is None else flow["completion_s"] for flow in flows],
        "retransmitted": sum(flow["lost_packets"] or 0 for flow in flows),
        "timeouts": timeouts,
    }


@dataclass(frozen=True)
class Outcome:
    """Of a case and a seed."""

    bytes: list[int]
    least_s: list[float]
    ns3: dict[str, Any]
    ours: dict[str, Any]


def measure(program: Path, case: Case, seed: int) -> Outcome:
    return compared(program, case, case.experiment(seed))


def compared(program: Path, case: Case, experiment: Experiment) -> Outcome:
    """Of an experiment of a case."""
    sizes = [flow.tcp_settings.file_bytes or 0 for flow in experiment.flows]
    least = [empty_network_s(experiment, flow, handshake=True) for flow in experiment.flows]
    return Outcome(sizes, least, there(program, case, experiment), here(experiment))


def of_range(outcome: Outcome, side: dict[str, Any], low: float, high: float) -> list[float]:
    return [seconds for size, seconds in zip(outcome.bytes, side["completion_s"]) if low < size <= high]


def rows(outcomes: Sequence[Outcome]) -> Iterator[tuple[str, int, int, float, float, float, tuple[float, float] | None]]:
    """(sizes, files of all seeds, percentile, seconds in ns-3, here, ratio, interval)."""
    for name, low, high in SIZES:
        for part in PERCENTILES:
            theirs = [percentile(of_range(o, o.ns3, low, high), part) for o in outcomes]
            ours = [percentile(of_range(o, o.ours, low, high), part) for o in outcomes]
            logs = [log(b) - log(a) for a, b in zip(theirs, ours)]
            interval = intervals.of_mean(logs)
            ends = interval and (exp(interval[0]), exp(interval[1]))
            files = sum(len(of_range(o, o.ours, low, high)) for o in outcomes)
            yield name, files, part, _geometric(theirs), _geometric(ours), exp(statistics.fmean(logs)), ends


def _geometric(values: Sequence[float]) -> float:
    return exp(statistics.fmean(log(value) for value in values))


def table(found: dict[Case, list[Outcome]]) -> list[str]:
    lines = ["| network | sizes | files | percentile | ns-3, ms | here, ms | here / ns-3 | 95% |", "|" + "---|" * 8]
    for case, outcomes in found.items():
        for sizes, files, part, theirs, ours, ratio, ends in rows(outcomes):
            spread = f"{ends[0]:.2f} to {ends[1]:.2f}" if ends else ""
            lines.append(
                f"| {case.name} | {sizes} | {files} | p{part} | {1000 * theirs:.2f} | {1000 * ours:.2f} | {ratio:.2f} | {spread} |"
            )
    return lines


def counts(found: dict[Case, list[Outcome]]) -> list[str]:
    head = " | ".join(f"{what}, ns-3 | here" for what in ("segments sent again", "timeouts", "not complete"))
    lines = [f"| network | {head} |", "|" + "---|" * 7]
    for case, outcomes in found.items():
        sides = [o.ns3 for o in outcomes], [o.ours for o in outcomes]
        cells = [sum(one[key] for one in side) for key in ("retransmitted", "timeouts") for side in sides]
        cells += [sum(math.isnan(seconds) for one in side for seconds in one["completion_s"]) for side in sides]
        lines.append(f"| {case.name} | {' | '.join(map(str, cells))} |")
    return lines


def drawn(found: dict[Case, list[Outcome]], parts: Sequence[int] = (50, 99), groups: int = 12) -> None:
    """Slowdown by size, on both sides: percentiles of groups of as many files each, in the order of their sizes."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots((len(found) + 1) // 2, 2, figsize=(10, 3.6 * ((len(found) + 1) // 2)), layout="constrained", squeeze=False)
    for place in axes.flat[len(found) :]:
        place.set_axis_off()
    for place, (case, outcomes) in zip(axes.flat, found.items()):
        files = sorted(
            (size, theirs / least, ours / least)
            for o in outcomes
            for size, least, theirs, ours in zip(o.bytes, o.least_s, o.ns3["completion_s"], o.ours["completion_s"])
        )
        cut = [files[n * len(files) // groups : (n + 1) * len(files) // groups] for n in range(groups)]
        sizes = [statistics.median(size for size, _, _ in group) for group in cut]
        for part, style in zip(parts, ("-", "--")):
            for name, column, colour in (("ns-3", 1, "#D55E00"), ("here", 2, "#0072B2")):
                values = [percentile([file[column] for file in group], part) for group in cut]
                place.plot(sizes, values, style, color=colour, marker=".", label=f"{name}, p{part}")
        place.set(xscale="log", yscale="log", xlabel="size, bytes", ylabel="slowdown", title=case.name)
        place.grid(alpha=0.3, which="both")
        place.legend(fontsize=8)
    figure.savefig(FIGURE, dpi=100, metadata={"Software": None})
    plt.close(figure)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", help="names of cases")
    parser.add_argument(
        "--seeds",
        type=int,
        nargs="*",
    )
    parser.add_argument("--jobs", type=int, default=1, help="runs at once (default 1)")
    parser.add_argument("--write", action="store_true", help="put tables and figure in the page")
    given = parser.parse_args()
    if given.write and (given.only or given.seeds):
        parser.error("--write: the page has all cases and seeds; leave out --only and --seeds")
    unknown = set(given.only or ()) - {case.name for case in CASES}
    if unknown:
        parser.error(f"--only: no case {', '.join(sorted(unknown))}; there are {', '.join(case.name for case in CASES)}")
    chosen = [case for case in CASES if not given.only or case.name in given.only]
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(given.jobs) as pool:
        program = ns3.compiled(SOURCE, Path(folder))
        if program is None:
            print(ns3.MISSING, file=sys.stderr)
            return 1
        waiting = {case: [pool.submit(measure, program, case, seed) for seed in given.seeds or range(1, case.seeds + 1)] for case in chosen}
        found = {case: [future.result() for future in futures] for case, futures in waiting.items()}
        alone = {case.name: there(program, case, case.one_after_another())["completion_s"] for case in chosen}
    if given.write:
        DATA.write_text(
            "{\n" + ",\n".join(f"{json.dumps(name)}: {json.dumps(seconds)}" for name, seconds in alone.items()) + "\n}\n", encoding="utf-8"
        )
        tables.put(PAGE, table(found))
        tables.put(PAGE, counts(found), "counts")
        drawn(found)
    else:
        print("\n".join([*table(found), "", *counts(found)]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
