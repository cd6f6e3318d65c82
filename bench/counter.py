"""The connection counter from ten to a million connections: what it counts, how long after an interval's end its fair rates are in
force, and how much memory controller and switch hold.

The real switch (fairlane-switch) and the real controller (python -m controller), P4Runtime over gRPC between them, frames over veth
pairs from as many source addresses as there are connections. For each number of connections, once with the exact counter and once
with the sketch (docs/connection-counter.md).

    python bench/counter.py [--sizes 10,100,1000] [--intervals 20] [--frames-per-s 100000] [--exact-to 100000] [--json FILE] [--plot FILE]

Each connection sends in each interval, so a million of them need more than a million frames: where --frames-per-s does not do for an
interval of a second, the interval is as many seconds as needed, and the table reports it. Needs root.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(Path(__file__).resolve().parent), str(ROOT)]

import itertools

from fairlane.controller import config as controller_config
from fairlane.controller.config import Config, Port, Route, Switch
from fairlane.controller.p4info import P4Info
from fairlane.controller.sketch import slots_of_each, worst_error
from forward import machine, stop
from veths import SWITCH_PORTS, CannotRun, Network, missing, network, program

SIZES = (10, 100, 1_000, 10_000, 100_000, 1_000_000)
COUNTERS = ("exact", "sketch")
START_S = 120.0
OUT = 2
"""The port whose connections are counted."""
SPARE = 1.5
"""Frames for each connection and interval. A connection's frames come one round apart, so that each is in every interval."""


@dataclass(frozen=True)
class Row:
    """One number of connections with one counter. stated_error: by how many connections an interval may be off. found: n_conn of each
    interval in which all of them sent. delays_ms: from an interval's end until its fair rates are in force, of which the grace takes 50.
    kib: resident memory of controller and switch, after the first interval and after the last. lost: frames that did not come out.
    skipped: intervals that the controller did not close."""

    counter: str
    connections: int
    interval_s: float
    stated_error: int
    found: list[int]
    delays_ms: list[float]
    controller_kib: tuple[int, int]
    switch_kib: tuple[int, int]
    sent: int
    lost: int
    skipped: int

    @property
    def errors(self) -> list[float]:
        return [found / self.connections - 1 for found in self.found]

    @property
    def holds(self) -> bool:
        """The exact counter is right in every interval; the sketch is within its stated error."""
        return bool(self.found) and all(abs(found - self.connections) <= self.stated_error for found in self.found)

    @property
    def in_time(self) -> bool:
        return self.skipped == 0 and bool(self.delays_ms) and percentile(self.delays_ms, 99) < 1000 * self.interval_s


def percentile(values: Iterable[float], percent: float) -> float:
    """The smallest value that at least so many per cent are not above."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(percent / 100 * len(ordered)) - 1)]


def compile_als(counter: str, folder: Path) -> tuple[Path, Path]:
    compiler = program("fairlane-compile") or program("p4c-bm2-ss")
    if compiler is None:
        raise CannotRun("no P4 compiler: neither fairlane-compile (make build) nor p4c-bm2-ss")
    outputs = folder / f"{counter}.json", folder / f"{counter}.p4info.txtpb"
    define = ["-DCONNECTION_SKETCH"] if counter == "sketch" else []
    source = ROOT / "p4src/als.p4"
    done = subprocess.run(
        [compiler, *define, "-o", outputs[0], "--p4runtime-files", outputs[1], "-I", source.parent, source],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise CannotRun(f"{source} does not compile:\n{done.stderr}")
    return outputs


def configuration(json_path: Path, p4info: Path, interval_s: float) -> Config:
    ports = tuple(Port(number, 10_000_000_000) for number in SWITCH_PORTS)
    route = Route("10.0.2.2/32", OUT, "02:00:00:00:00:02", "02:00:00:00:02:02")
    switch = Switch("s1", 1, "127.0.0.1:9559", ports, (route,))
    return Config(str(p4info), str(json_path), (switch,), interval_s=interval_s)


def resident_kib(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise CannotRun(f"process {pid} has ended")


def measure(net: Network, counter: str, connections: int, intervals: int, frames_per_s: float, folder: Path) -> Row:
    folder.mkdir()
    json_path, p4info = compile_als(counter, folder)
    interval_s = float(max(1, math.ceil(SPARE * connections / frames_per_s)))
    config = folder / "controller.json"
    config.write_text(controller_config.to_json(configuration(json_path, p4info, interval_s)))
    slots = slots_of_each(P4Info.read(p4info).registers["sketch_epoch"].size, len(SWITCH_PORTS)) if counter == "sketch" else 0
    stated = worst_error(connections, slots) if slots else 0

    switch_program = program("fairlane-switch")
    if switch_program is None:
        raise CannotRun("fairlane-switch is not built: run `make build`")
    ports = [word for number, name in SWITCH_PORTS.items() for word in ("-i", f"{number}@{name}", "--port-queue", f"{number}=10000p")]
    command = [switch_program, *ports, "--no-p4", "--device-id", "1", "--", "--grpc-server-addr", "127.0.0.1:9559", "--cpu-port", "510"]
    running: list[subprocess.Popen] = []
    with (folder / "log").open("w") as log:

        def start(node: str, words: list) -> subprocess.Popen:
            running.append(
                subprocess.Popen(
                    net.command(node, [str(w) for w in words]),
                    stdout=subprocess.PIPE if node == "h1" else log,
                    stderr=log,
                    text=True,
                    cwd=ROOT,
                )
            )
            return running[-1]

        try:
            switch = start("s1", command)
            control = start("s1", [sys.executable, "-m", "fairlane.controller", "--config", config, "--out", folder])
            wait(lambda: "switch ready" in events(folder), START_S, folder / "log", running)
            lasting = (intervals + 3) * interval_s
            rate = max(100, round(SPARE * connections / interval_s))
            before = net.received("h2")
            sender = start(
                "h1",
                [
                    program("fairlane-blast"),
                    "send",
                    "eth0",
                    "--size",
                    64,
                    "--seconds",
                    lasting,
                    "--rate",
                    rate,
                    "--source",
                    "10.128.0.1",
                    "--sources",
                    connections,
                    "--destination",
                    "10.0.2.2",
                ],
            )
            wait(lambda: net.received("h2") > before, START_S, folder / "log", running)
            began = time.time()
            # The interval that sending begins in, and the one after it, whose memory is the first to look at.
            sleep_until(began + 2.5 * interval_s)
            first = resident_kib(control.pid), resident_kib(switch.pid)
            sleep_until(began + lasting - 0.3 * interval_s)
            last = resident_kib(control.pid), resident_kib(switch.pid)
            sent = json.loads(sender.communicate(timeout=lasting + START_S)[0])["sent"]
            lasting = min(lasting, time.time() - began)
            time.sleep(interval_s + 0.5)
            lost = sent - (net.received("h2") - before)
        finally:
            for process in reversed(running):
                stop(process)
    records = closed(folder / "controller.csv", began, lasting, interval_s)
    possible = math.floor((began + lasting) / interval_s) - first_epoch(began, interval_s)
    # Sources take turns: so many frames in a row are so many connections, and an interval with fewer (the generator had to wait) has fewer.
    found = [n for n, _, frames in records if frames >= connections]
    return Row(
        counter,
        connections,
        interval_s,
        stated,
        found,
        [1000 * delay for _, delay, _ in records],
        (first[0], last[0]),
        (first[1], last[1]),
        sent,
        lost,
        possible - len(records),
    )


def first_epoch(began: float, interval_s: float) -> int:
    """The epoch at whose end the first interval begins that is looked at. A controller's first whole interval only tells how many frames
    there were before the next."""
    return math.ceil(began / interval_s) + 1


def closed(path: Path, began: float, lasting: float, interval_s: float) -> list[tuple[int, float, int]]:
    """n_conn, delay and frames of each interval within the time of sending. Interval e ends e intervals after the Unix epoch."""
    with path.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if int(row["port"]) == OUT]
    found = []
    for before, row in itertools.pairwise(rows):
        end = int(row["epoch"]) * interval_s
        if first_epoch(began, interval_s) < int(row["epoch"]) and end <= began + lasting and int(row["epoch"]) == int(before["epoch"]) + 1:
            frames = int(row["transmitted_packets"]) - int(before["transmitted_packets"])
            found.append((int(row["connections"]), float(row["time_s"]) - end, frames))
    return found


def events(folder: Path) -> str:
    path = folder / "controller.jsonl"
    return path.read_text() if path.exists() else ""


def wait(ready: Callable[[], bool], seconds: float, log: Path, running: list[subprocess.Popen]) -> None:
    deadline = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > deadline or any(process.poll() is not None for process in running):
            raise CannotRun(f"switch and controller did not come up:\n{log.read_text(errors='replace')[-2000:]}")
        time.sleep(0.05)


def sleep_until(instant: float) -> None:
    time.sleep(max(0.0, instant - time.time()))


def run(sizes: Iterable[int], intervals: int, frames_per_s: float, exact_to: int, say: Callable[[str], None] = print) -> list[Row]:
    """Fewer intervals where they are long: for each size at most `intervals` seconds, and at least five intervals."""
    rows = []
    say(HEADING)
    with tempfile.TemporaryDirectory(prefix="fairlane-bench-") as folder, network() as net:
        net.ip("s1", "link", "set", "lo", "up")
        for connections in sizes:
            for counter in COUNTERS:
                if counter == "exact" and connections > exact_to:
                    continue
                seconds = max(1, math.ceil(SPARE * connections / frames_per_s))
                count = max(min(5, intervals), intervals // seconds)
                rows.append(measure(net, counter, connections, count, frames_per_s, Path(folder) / f"{counter}-{connections}"))
                say(line(rows[-1]))
    return rows


HEADING = (
    "counter  connections  interval  intervals  mean n_conn   mean error  worst error    stated  delay p50    p99 (ms)"
    "  controller MiB   switch MiB  frames lost"
)


def line(row: Row) -> str:
    if not row.found:
        return f"{row.counter:7} {row.connections:12,}  {row.interval_s:6.0f} s  no interval was closed"
    worst = max(row.errors, key=abs)
    return (
        f"{row.counter:7} {row.connections:12,}  {row.interval_s:6.0f} s  {len(row.found):9}  {sum(row.found) / len(row.found):11,.1f}"
        f"  {sum(row.errors) / len(row.errors):+10.3%}  {worst:+10.3%}  {row.stated_error / row.connections:8.3%}"
        f"  {percentile(row.delays_ms, 50):9.1f}  {percentile(row.delays_ms, 99):10.1f}"
        f"  {row.controller_kib[0] / 1024:6.1f} {row.controller_kib[1] / 1024:6.1f}  {row.switch_kib[0] / 1024:6.1f} {row.switch_kib[1] / 1024:5.1f}"
        f"  {row.lost:,} of {row.sent:,}{'' if row.holds else '  NOT WITHIN ITS ERROR'}{'' if row.in_time else '  LATE'}"
    )


def plot(rows: list[Row], path: Path, intervals_of: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    colours = {"exact": "#0072b2", "sketch": "#d55e00"}
    figure, (above, below) = pyplot.subplots(2, 1, figsize=(7, 6.4), sharex=True, constrained_layout=True)
    for counter in COUNTERS:
        mine = [row for row in rows if row.counter == counter and row.found]
        if not mine:
            continue
        shift = 0.93 if counter == "exact" else 1.07
        marker = "o" if counter == "exact" else "s"
        points = [(row.connections * shift, 100 * error) for row in mine for error in row.errors]
        above.plot(
            *zip(*points), marker, color=colours[counter], markersize=4, alpha=0.5, linestyle="none", label=f"{counter}, each interval"
        )
        sizes = [row.connections for row in mine]
        below.plot(
            sizes,
            [percentile(row.delays_ms, 99) for row in mine],
            marker=marker,
            color=colours[counter],
            label=f"{counter}, 99th percentile",
        )
        below.plot(
            sizes,
            [percentile(row.delays_ms, 50) for row in mine],
            marker=marker,
            markersize=3,
            linestyle=":",
            color=colours[counter],
            label=f"{counter}, median",
        )
        if counter == "sketch":
            band = [100 * row.stated_error / row.connections for row in mine]
            above.fill_between(
                sizes, [-b for b in band], band, color=colours[counter], alpha=0.15, linewidth=0, label="stated error of the sketch"
            )
    above.set_xscale("log")
    above.set_yscale("symlog", linthresh=1)
    above.set_ylabel("error of n_conn, per cent")
    above.axhline(0, color="0.6", linewidth=0.8)
    below.axhline(50, color="0.6", linewidth=0.8)
    below.annotate("grace: 50 ms", (sizes[0], 50), xytext=(0, 3), textcoords="offset points", fontsize=8, color="0.4")
    below.set_yscale("log")
    below.set_ylabel("from an interval's end until its\nfair rates are in force, ms")
    below.set_xlabel("connections")
    for axes in (above, below):
        axes.legend(frameon=False, fontsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(f"Connection counters: real switch and controller, {intervals_of}", fontsize=10)
    figure.savefig(path, dpi=120)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="numbers of connections")
    parser.add_argument("--intervals", type=int, default=20, help="intervals of a second to measure; fewer where they are longer")
    parser.add_argument("--frames-per-s", type=float, default=100_000, help="what the switch is given at most")
    parser.add_argument("--exact-to", type=int, default=100_000, help="connections up to which the exact counter is measured")
    parser.add_argument("--json", type=Path, help="where the results go")
    parser.add_argument("--plot", type=Path, help="where the plot goes (PNG)")
    arguments = parser.parse_args()
    lacking = missing()
    if lacking is not None:
        print(f"bench/counter.py {lacking}", file=sys.stderr)
        return 2
    try:
        rows = run(
            [int(size) for size in arguments.sizes.split(",")],
            arguments.intervals,
            arguments.frames_per_s,
            arguments.exact_to,
            lambda text: print(text, flush=True),
        )
    except CannotRun as error:
        print(f"bench/counter.py: {error}", file=sys.stderr)
        return 2
    if arguments.json:
        arguments.json.write_text(json.dumps({"machine": machine(), "rows": [asdict(row) for row in rows]}, indent=1) + "\n")
    if arguments.plot:
        plot(rows, arguments.plot, f"{arguments.intervals} seconds each")
    return 0


if __name__ == "__main__":
    sys.exit(main())
