"""Hours of the same: does a switch, or a process that runs experiments in virtual time, need more and more memory or descriptors?

    python bench/soak.py [--hours 2] [--every 5] [--out results/soak]

A switch forwards frames at an even, low rate from sources that change. Meanwhile a client inserts, modifies and deletes entries, takes and
acknowledges the digests that new sources cause, reads a register, and pushes the pipeline once a minute. Another process runs an experiment
in virtual time, over and over. Every few seconds the resident memory and the open descriptors of both go into `samples.csv`, with the way of the slowest frame
in a thousand. At the end `soak.png` shows them. Least squares over the medians of twenty equal parts of the time, the first of which is left out
(caches fill), give the slope with its interval. Growth that is certain (the whole interval above zero) and that a day would turn into more than `LIMITS`
says so, and the exit code is 1. The slope of the second half stands beside it: memory that levels off does not grow there. Needs root.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import dataclasses
import json
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import grpc
import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parent))

from finsy.proto import p4r

from control import HERE, Pipeline, Session
from fairlane.studies import intervals
from forward import machine, show, stop
from veths import SWITCH_PORTS, CannotRun, Network, missing, network, program

ADDRESS = "127.0.0.1:9559"
RATE_PER_S, SIZE, SOURCES = 1000, 200, 500
ENTRIES, CHURN = 2000, 200
PUSH_EVERY_S = 60.0
TRAFFIC_S = 10.0
PARTS = 20
LIMITS = {"rss_mb": 50.0, "descriptors": 10.0}
"""Growth over a day that would matter."""


class Client(Session):
    """The primary client: keeps the table moving, and acknowledges digests."""

    def __init__(self, address: str, pipeline: Pipeline) -> None:
        self.digests = self.writes = self.pushes = 0
        self.pipeline = pipeline
        self._rng = random.Random(1)
        super().__init__(address)

    def _drain(self) -> None:
        with contextlib.suppress(grpc.RpcError, ValueError):
            for message in self._answers:
                if message.HasField("digest"):
                    self.digests += len(message.digest.data)
                    ack = p4r.StreamMessageRequest()
                    ack.digest_ack.digest_id, ack.digest_ack.list_id = message.digest.digest_id, message.digest.list_id
                    self._outgoing.put(ack)

    def begin(self) -> None:
        """A pipeline, which forgets its entries, and all entries anew."""
        self.push(self.pipeline)
        self.pushes += 1
        digest = p4r.DigestEntry(digest_id=self.pipeline.info.digests[0].preamble.id)
        digest.config.max_timeout_ns, digest.config.max_list_size, digest.config.ack_timeout_ns = 10**7, 100, 10**9
        self._write(p4r.Update.INSERT, [p4r.Entity(digest_entry=digest)])
        self._write(p4r.Update.INSERT, [self._entry(number, 0) for number in range(ENTRIES)])

    def churn(self) -> None:
        some = self._rng.sample(range(ENTRIES), CHURN)
        self._write(p4r.Update.MODIFY, [self._entry(number, self._rng.randrange(65536)) for number in some])
        self._write(p4r.Update.DELETE, [self._entry(number, None) for number in some])
        self._write(p4r.Update.INSERT, [self._entry(number, 1) for number in some])
        self.read(p4r.Entity(register_entry=p4r.RegisterEntry(register_id=self.pipeline.id("registers", "seen"))))

    def _entry(self, number: int, value: int | None) -> p4r.Entity:
        entry = p4r.TableEntry(table_id=self.pipeline.id("tables", "hosts"))
        # Every other source has an entry; the others cause digests.
        entry.match.add(field_id=1).exact.value = (0x0A000101 + 2 * number).to_bytes(4, "big")
        if value is not None:
            entry.action.action.action_id = self.pipeline.id("actions", "mark")
            entry.action.action.params.add(param_id=1, value=value.to_bytes(2, "big").lstrip(b"\0") or b"\0")
        return p4r.Entity(table_entry=entry)

    def _write(self, kind: int, entities: list[p4r.Entity]) -> None:
        request = p4r.WriteRequest(device_id=0, election_id=self.election)
        for entity in entities:
            request.updates.add(type=kind).entity.CopyFrom(entity)
        self.stub.Write(request)
        self.writes += len(entities)


def client(folder: Path) -> int:
    """The client process, in the switch's namespace, until its input ends: a line a second of what it has done."""
    session = Client(ADDRESS, Pipeline.compiled(HERE / "control.p4", folder))
    stopped = threading.Event()

    def wait() -> None:
        sys.stdin.read()
        stopped.set()

    threading.Thread(target=wait, daemon=True).start()
    session.begin()
    pushed = time.monotonic()
    while not stopped.wait(1.0):
        if time.monotonic() - pushed > PUSH_EVERY_S:
            session.begin()
            pushed = time.monotonic()
        session.churn()
        print(json.dumps({"digests": session.digests, "writes": session.writes, "pushes": session.pushes}), flush=True)
    session.close()
    return 0


def virtual(experiment: str) -> int:
    """The process of virtual time, until its input ends."""
    from fairlane import api

    threading.Thread(target=lambda: (sys.stdin.read(), signal.raise_signal(signal.SIGTERM)), daemon=True).start()
    for number in range(1, 1_000_000):
        begun = time.monotonic()
        api.run(experiment, duration_s=20, seed=number)
        print(json.dumps({"runs": number}), flush=True)
        # A quarter of a processor.
        time.sleep(3 * (time.monotonic() - begun))
    return 0


@dataclasses.dataclass
class Told:
    """What a child process last said of its work."""

    process: subprocess.Popen
    last: dict[str, int] = dataclasses.field(default_factory=dict)

    def follow(self) -> None:
        for line in self.process.stdout:
            with contextlib.suppress(ValueError):
                self.last = json.loads(line)


def rss_mb(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 / 1e6


def descriptors(pid: int) -> int:
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


class Traffic(threading.Thread):
    """Frames in pieces of some seconds. way_ms: of the slowest frame in a thousand of the last piece."""

    def __init__(self, net: Network) -> None:
        super().__init__(daemon=True)
        self._net, self._blast = net, program("fairlane-blast") or "fairlane-blast"
        self.way_ms, self.sent, self.received = float("nan"), 0, 0
        self.failure = ""

    def run(self) -> None:
        try:
            while True:
                self._piece()
        except (subprocess.SubprocessError, ValueError, OSError) as error:
            self.failure = str(error)

    def _piece(self) -> None:
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        count = subprocess.Popen(self._net.command("h2", [self._blast, "count", "eth0", "--seconds", f"{TRAFFIC_S + 5:g}"]), **pipes)
        count.stderr.readline()
        send = [self._blast, "send", "eth0", "--size", str(SIZE), "--seconds", f"{TRAFFIC_S:g}", "--rate", str(RATE_PER_S)]
        # Addresses move on, so that digests are of new ones.
        send += ["--source", "10.0.1.1", "--sources", str(SOURCES)]
        sent = json.loads(subprocess.run(self._net.command("h1", send), capture_output=True, text=True, check=True).stdout)
        came = json.loads(count.communicate(timeout=60)[0])
        self.sent, self.received, self.way_ms = self.sent + sent["sent"], self.received + came["frames"], came["slowest_in_1000_ms"]


@contextlib.contextmanager
def _running(command: list[str], log: Path, **how: object) -> Iterator[subprocess.Popen]:
    with log.open("wb") as output:
        process = subprocess.Popen(command, stderr=output, **{"stdout": output, **how})  # type: ignore[call-overload]
    try:
        yield process
    finally:
        stop(process)


COLUMNS = ("time_s", "process", "rss_mb", "descriptors", "way_ms", "sent", "received", "digests", "writes", "pushes", "runs")


def soak(seconds: float, every_s: float, out: Path) -> None:
    """Run it, and write samples.csv."""
    compiler = program("fairlane-compile") or "fairlane-compile"
    outputs = ["-o", str(out / "control.json"), "--p4runtime-files", str(out / "control.p4info.txtpb")]
    subprocess.run([compiler, "-D", "DIGEST", *outputs, str(HERE / "control.p4")], check=True)
    ports = [word for number, name in SWITCH_PORTS.items() for word in ("-i", f"{number}@{name}")]
    switch = [program("fairlane-switch") or "fairlane-switch", *ports, "--no-p4", "--", "--grpc-server-addr", ADDRESS]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    me = [sys.executable, __file__, "--folder", str(out)]
    with (
        network() as net,
        contextlib.ExitStack() as stack,
        (out / "samples.csv").open("w", newline="", buffering=1) as file,
    ):
        net.ip("s1", "link", "set", "lo", "up")
        process = stack.enter_context(_running(net.command("s1", switch), out / "switch.log"))
        told = {
            "client": Told(stack.enter_context(_running(net.command("s1", [*me, "--child", "client"]), out / "client.log", **pipes))),
            "virtual": Told(stack.enter_context(_running([*me, "--child", "virtual"], out / "virtual.log", **pipes))),
        }
        for one in told.values():
            threading.Thread(target=one.follow, daemon=True).start()
        begun = time.monotonic()
        while not told["client"].last:
            if any(p.poll() is not None for p in (process, told["client"].process)) or time.monotonic() > begun + 60:
                raise CannotRun(f"the switch or its client does not start: {(out / 'client.log').read_text()[-1000:]}")
            time.sleep(0.1)
        traffic = Traffic(net)
        traffic.start()
        _sample(file, seconds, every_s, {"switch": process, "virtual": told["virtual"].process}, told, traffic)


def _sample(
    file: TextIO, seconds: float, every_s: float, watched: dict[str, subprocess.Popen], told: dict[str, Told], traffic: Traffic
) -> None:
    rows = csv.DictWriter(file, COLUMNS, restval="")
    rows.writeheader()
    begun = time.monotonic()
    while (now := time.monotonic() - begun) < seconds:
        for name, process in {**watched, "client": told["client"].process}.items():
            if process.poll() is not None:
                raise CannotRun(f"the process {name} ended with code {process.returncode} after {now:.0f} s")
        if traffic.failure:
            raise CannotRun(f"traffic ended: {traffic.failure}")
        for name, process in watched.items():
            row = {"time_s": round(now, 2), "process": name, "rss_mb": rss_mb(process.pid), "descriptors": descriptors(process.pid)}
            if name == "switch":
                row |= {"way_ms": traffic.way_ms, "sent": traffic.sent, "received": traffic.received, **told["client"].last}
            rows.writerow(row | (told["virtual"].last if name == "virtual" else {}))
        time.sleep(every_s)


@dataclasses.dataclass(frozen=True)
class Slope:
    """per_day: with the ends of its 95% interval; later: the same of the second half."""

    process: str
    what: str
    median: float
    per_day: float
    low: float
    high: float
    later: tuple[float, float, float]

    @property
    def grows(self) -> bool:
        return self.low > 0 and self.per_day > LIMITS.get(self.what, float("inf"))

    def sentence(self) -> str:
        return (
            f"{self.process}: {self.what} {self.median:.4g}, growth {self.per_day:+.3g} a day (95%: {self.low:+.3g} to {self.high:+.3g}),"
            f" in the second half {self.later[0]:+.3g} ({self.later[1]:+.3g} to {self.later[2]:+.3g})"
            + (": more than a day may bring" if self.grows else "")
        )


def slopes(samples: pd.DataFrame) -> list[Slope]:
    """Of each process's memory and descriptors, and of the frames' ways, over the medians of parts."""
    found = []
    for process, rows in samples.groupby("process", sort=False):
        for what in ("rss_mb", "descriptors", "way_ms"):
            values = rows[["time_s", what]].dropna()
            if values.empty:
                continue
            parts = np.array_split(values.to_numpy(), PARTS)[1:]
            x, y = (np.array([np.median(part[:, i]) for part in parts if len(part)]) for i in (0, 1))
            (slope, half), (later, later_half) = (intervals.slope(x[n:] / 86_400.0, y[n:]) for n in (0, len(x) // 2))
            ends = (later, later - later_half, later + later_half)
            found.append(Slope(str(process), what, float(np.median(y)), slope, slope - half, slope + half, ends))
    return found


def draw(samples: pd.DataFrame, found: list[Slope], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 8), layout="constrained")
    axes = figure.subplots(3, 1, sharex=True)
    for axis, what, title in zip(
        axes, ("rss_mb", "descriptors", "way_ms"), ("resident memory, MB", "open descriptors", "way of 1 frame in 1000, ms")
    ):
        for process, rows in samples.groupby("process", sort=False):
            if rows[what].notna().any():
                said = next(s for s in found if (s.process, s.what) == (process, what))
                label = f"{process}: {said.per_day:+.3g} a day ({said.low:+.3g} to {said.high:+.3g})"
                axis.plot(rows["time_s"] / 60, rows[what], ".", markersize=2, label=label)
        axis.set_ylabel(title)
        axis.set_ylim(bottom=0)
        axis.legend(loc="lower right", fontsize="small")
    axes[-1].set_xlabel("minutes")
    figure.savefig(path, dpi=110)


def evaluate(out: Path) -> list[Slope]:
    """soak.png and soak.json of a folder with samples.csv, which may still be growing."""
    samples = pd.read_csv(out / "samples.csv")
    found = slopes(samples)
    draw(samples, found, out / "soak.png")
    last = samples.groupby("process").last()
    done = {c: int(last[c].max()) for c in ("sent", "received", "digests", "writes", "pushes", "runs") if last[c].notna().any()}
    summary = {"seconds": float(samples["time_s"].max()), "done": done, "slopes": [dataclasses.asdict(s) for s in found]}
    (out / "soak.json").write_text(json.dumps({"machine": machine(), **summary}, indent=2) + "\n")
    print(f"{summary['seconds']:.0f} s: " + ", ".join(f"{value:,} {name}" for name, value in done.items()))
    for slope in found:
        print(slope.sentence())
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hours", type=float, default=2.0, help="how long (default: 2)")
    parser.add_argument("--every", type=float, default=5.0, help="seconds between samples (default: 5)")
    parser.add_argument("--out", type=Path, default=Path("results/soak"), help="folder of samples and picture (default: results/soak)")
    parser.add_argument("--evaluate", action="store_true", help="only evaluate the samples in --out")
    parser.add_argument("--child", choices=["client", "virtual"], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        return client(arguments.folder) if arguments.child == "client" else virtual("als-3")
    if arguments.evaluate:
        return int(any(s.grows for s in evaluate(arguments.out)))
    if arguments.hours <= 0 or arguments.every <= 0:
        parser.error("--hours and --every must be positive")
    reason = missing()
    if reason:
        print(f"soak: {reason}", file=sys.stderr)
        return 3
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    arguments.out.mkdir(parents=True, exist_ok=True)
    code = 0
    try:
        soak(arguments.hours * 3600, arguments.every, arguments.out)
    except KeyboardInterrupt:
        show("soak: ended early; what was sampled is evaluated")
    except (CannotRun, subprocess.SubprocessError) as error:
        print(f"soak: {error}", file=sys.stderr)
        code = 4
    if len(pd.read_csv(arguments.out / "samples.csv")) < 2 * PARTS:
        print(f"soak: fewer than {PARTS} samples of each process: nothing to evaluate", file=sys.stderr)
        return code or 4
    return int(any(s.grows for s in evaluate(arguments.out))) or code


if __name__ == "__main__":
    sys.exit(main())
