"""RAP against SACK as in table 1 of the RAP paper: what it costs in virtual time, with als.p4 executed at both switches, and in ns-2.

    python bench/rap_sack.py [--flows 32] [--seconds 120]     one run, its counts and times
    python bench/rap_sack.py --compare [--rounds 3]           beside ns-2 (Debian's ns2), in turns
    python bench/rap_sack.py --profile                        where the time goes

`dumbbell` is also what `tests/oracle/run_rates.py` compares with ns-2's agents.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fairlane import specs
from fairlane.controller.timetable import NS
from fairlane.experiments import loader
from fairlane.experiments.kinds import TcpSettings
from fairlane.experiments.model import Control, Experiment, FlowGroup, Settings
from fairlane.fabrics import targets, virtual_fabric
from fairlane.fabrics.virtual_control import VirtualControl
from fairlane.hosts.algorithms import ALGORITHMS
from fairlane.hosts.algorithms.base import Receiver, Sender
from fairlane.inputs import located_toml
from fairlane.topologies import builders
from fairlane.topologies.builders import LinkSpec

BEGIN_S = 2.0
"""Flows start from here on: the switches have their entries."""
TCL = Path(__file__).resolve().parents[1] / "tests" / "oracle" / "rates.tcl"


@dataclass(frozen=True)
class Dumbbell:
    """`adaptive` flows of `kind` and `sacks` SACK flows over one drop-tail bottleneck; table 1 of the RAP paper by default.

    access_delay_s: one way, on each side: "Tot. Delay of Side-Links 6 ms". buffer_rtts: buffer in round trips of propagation at the
    bottleneck's rate. pacing_jitter: part of a gap by which each packet of a paced flow is moved. TCP, links that count datagrams, and jitter
    of TCP's sendings are those of `experiments/_rap.toml`."""

    kind: str = "rap"
    adaptive: int = 32
    sacks: int = 32
    rate_per_flow_bps: float = 40_000.0
    delay_s: float = 0.02
    access_rate_bps: float = 10e6
    access_delay_s: float = 0.003
    buffer_rtts: float = 4.0
    packet_bytes: int = 100
    seconds: float = 120.0
    seed: int = 1
    pacing_jitter: float = 0.1
    switches: int = 2
    """In a row; the bottleneck's delay is shared among the links between them."""
    window_from: float = 0.25
    """Goodput counts from this part of the run on."""

    @property
    def rate_bps(self) -> float:
        return self.rate_per_flow_bps * (self.adaptive + self.sacks)

    @property
    def rtt_s(self) -> float:
        return 2 * (self.delay_s + 2 * self.access_delay_s)

    @property
    def buffer_packets(self) -> int:
        return round(self.buffer_rtts * self.rtt_s * self.rate_bps / (8 * self.packet_bytes))

    @property
    def tcp(self) -> TcpSettings:
        slot_s = 8 * self.packet_bytes / self.rate_bps
        given = located_toml.read(loader.FOLDER / "_rap.toml").values["tcp"]
        return TcpSettings.of(given | {"packet_bytes": self.packet_bytes, "sending_jitter_s": slot_s})

    def experiment(self) -> Experiment:
        flows = self.adaptive + self.sacks
        access = LinkSpec(self.access_rate_bps, self.access_delay_s, 10_000, framing="ip")
        trunk = LinkSpec(self.rate_bps, self.delay_s / (self.switches - 1), self.buffer_packets, framing="ip")
        topology = builders.chain([(1, self.switches)] * flows, self.switches, trunk, access)
        settings = Settings("rates", "s1->s2", {}, (FlowGroup("flows", "tcp-sack", flows),), duration_s=self.seconds, control=Control())
        return Experiment("rates", settings, topology, (), ("s1", 1), self.seconds, self.seed)


@dataclass
class Outcome:
    """goodput_bps: of each flow, bits of whole datagrams that arrived from `window_from` on. work: the network's own counts."""

    goodput_bps: list[float]
    work: dict[str, int]
    wall_s: float
    cpu_s: float
    dropped: int
    halves: list[Sender]
    rates: list[list[tuple[float, float]]]
    """Of each adaptive flow: (second, bit/s that its algorithm set)."""


def run(
    case: Dumbbell, parameters: dict[str, Any] | None = None, wrap=lambda half: half, profile: cProfile.Profile | None = None
) -> Outcome:
    """One run; the building of the network is not in the times. `wrap`: put around each algorithm half and the
    control plane."""
    options = virtual_fabric.Options(targets.compiler())
    experiment = case.experiment()
    with tempfile.TemporaryDirectory() as name:
        network, _, controller = virtual_fabric.build(experiment, options, Path(name))
        network.set_control_plane(wrap(controller))
        halves = _add_flows(network, case, parameters or {}, wrap)
        network.run_until(int(BEGIN_S * NS))
        wall, cpu = time.perf_counter(), time.process_time()
        if profile is not None:
            profile.enable()
        end_s = BEGIN_S + case.seconds
        samples, rates = [], [[] for _ in range(case.adaptive)]
        for at_s in (BEGIN_S + case.window_from * case.seconds, end_s):
            network.run_until(int(at_s * NS))
            samples.append(_received_bits(network, case, rates))
        if profile is not None:
            profile.disable()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        controller.close()
    goodput = [(after - before) / ((1 - case.window_from) * case.seconds) for before, after in zip(*samples)]
    work = network.work()
    delivered = next(row for row in network.channel_stats() if row[:2] == ("s1", "s2"))[3]
    return Outcome(goodput, work, wall, cpu, work["data_packets"] - delivered, halves, rates)


def _add_flows(network, case: Dumbbell, changes: dict[str, Any], wrap) -> list[Sender]:
    algorithm = ALGORITHMS[case.kind]
    fields = {"max_rate_bps": case.access_rate_bps, "packet_bytes": case.packet_bytes} | changes
    parameters = algorithm.parameters(**{k: v for k, v in fields.items() if k in algorithm.parameters.__dataclass_fields__})
    flows = case.adaptive + case.sacks
    starts = random.Random(f"{case.seed}/starts")
    halves = []
    tcp = case.tcp
    for i in range(flows):
        ends = (f"h{i + 1}", f"h{flows + i + 1}")
        times = (int((BEGIN_S + starts.random()) * NS), int((BEGIN_S + case.seconds + 1) * NS))
        if i < case.adaptive:
            sender: Sender = wrap(algorithm.sender(parameters))
            receiver: Receiver = wrap(algorithm.receiver(parameters))
            halves.append(sender)
            network.add_rtp_flow(
                specs.FlowPath(f"f{i}", *ends, 5004, *times),
                specs.Half(sender, random.Random(f"{case.seed}/{i}/s"), ssrc=2 * i + 1, cname=f"s{i}"),
                specs.Half(receiver, random.Random(f"{case.seed}/{i}/r"), ssrc=2 * i + 2, cname=f"r{i}"),
                specs.Session(
                    packet_bytes=case.packet_bytes, session_bandwidth_bps=case.rate_per_flow_bps, pacing_jitter=case.pacing_jitter
                ),
            )
        else:
            network.add_tcp_flow(
                specs.FlowPath(f"f{i}", *ends, 5201, *times),
                specs.Tcp(
                    flavour="sack",
                    packet_bytes=tcp.packet_bytes,
                    options=tcp.network_options(4),
                    sending_jitter_ns=round(tcp.sending_jitter_s * NS),
                ),
            )
    return halves


def _received_bits(network, case: Dumbbell, rates: list[list[tuple[float, float]]]) -> list[float]:
    bits = []
    for i in range(case.adaptive + case.sacks):
        sent, received = network.take_flow_logs(f"f{i}")
        if i < case.adaptive:
            rates[i] += [(t / NS, f["rate_bps"]) for t, kind, f in sent if kind == "sent"]
        last = next((f for _, kind, f in reversed(received) if kind in ("data", "tcp_data")), None)
        if last is None:
            bits.append(0.0)
        elif "received_bytes" in last:
            bits.append(8.0 * last["received_bytes"])
        else:
            bits.append(8.0 * last["delivered_bytes"] * case.packet_bytes / (case.packet_bytes - 40))
    return bits


def ns2(case: Dumbbell) -> dict[str, Any]:
    """The same in ns-2: goodput of each flow, link traversals, CPU and wall seconds, frozen SRTTs."""
    tcp = case.tcp
    given = {
        "agent": {"rap": "rap", "rap-fine": "rap", "tfrc": "tfrc"}[case.kind],
        "fine": int(case.kind == "rap-fine"),
        "adaptive": case.adaptive,
        "sacks": case.sacks,
        "rate_bps": int(case.rate_bps),
        "delay_ms": case.delay_s * 1e3,
        "access_bps": int(case.access_rate_bps),
        "access_ms": case.access_delay_s * 1e3,
        "buffer_packets": case.buffer_packets,
        "packet_bytes": case.packet_bytes,
        "seconds": case.seconds,
        "from": case.window_from * case.seconds,
        "seed": case.seed,
        "jitter_s": round(tcp.sending_jitter_s, 9),
        "tcp_tick": tcp.timer_granularity_s,
        "initial_window": tcp.initial_window_packets,
        "limited_transmit": int(tcp.limited_transmit),
        "initial_rto": tcp.initial_rto_s,
        "min_rto": tcp.min_rto_s,
    }
    argv = ["ns", str(TCL), *(str(x) for pair in given.items() for x in pair)]
    before, wall = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime, time.perf_counter()
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=900)
    wall, cpu = time.perf_counter() - wall, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    goodput, totals = [], {}
    for words in map(str.split, done.stdout.splitlines()):
        if words[0] == "flow":
            goodput.append(float(words[2]))
        elif words[0] == "drops":
            totals = {k: int(v) for k, v in zip(words[::2], words[1::2])}
    traversals = 3 * (totals["departures"] + totals["back"]) + totals["drops"]
    return {
        "goodput_bps": goodput,
        "cpu_s": cpu,
        "wall_s": wall,
        "link_traversals": traversals,
        "data_packets": totals["departures"] + totals["drops"],
        "frozen": totals["frozen"],
        "dropped": totals["drops"],
    }


def compare(case: Dumbbell, rounds: int) -> None:
    """In turns, so that other load on the machine affects both."""
    if shutil.which("ns") is None:
        print("no ns-2 here (apt-get install ns2): nothing to compare with")
        return
    ours, theirs = [], []
    for _ in range(rounds):
        theirs.append(ns2(case))
        ours.append(run(case))
    rows = {
        "fairlane": [(r.wall_s, r.cpu_s, r.work["link_traversals"], r.work["data_packets"]) for r in ours],
        "ns-2": [(r["wall_s"], r["cpu_s"], r["link_traversals"], r["data_packets"]) for r in theirs],
    }
    print(f"{case.adaptive} {case.kind} and {case.sacks} SACK flows, {case.seconds:g} s; median of {rounds} rounds in turns")
    print(f"{'':9} {'wall s':>7} {'CPU s':>7} {'data packets':>13} {'traversals':>11} {'million trav./CPU s':>20}")
    medians = {}
    for name, runs in rows.items():
        wall, cpu, traversals, packets = (statistics.median(column) for column in zip(*runs))
        medians[name] = (wall, cpu, traversals / cpu)
        print(f"{name:9} {wall:7.2f} {cpu:7.2f} {packets:13.0f} {traversals:11.0f} {traversals / cpu / 1e6:20.3f}")
    (our_wall, our_cpu, our_speed), (wall, cpu, speed) = medians["fairlane"], medians["ns-2"]
    print(
        f"fairlane / ns-2: wall time {our_wall / wall:.2f}, CPU time {our_cpu / cpu:.2f}, speed by traversals {our_speed / speed:.2f} (floor 0.33)"
    )
    print(f"P4 executions: {ours[0].work['switch_packets']}, which ns-2 has none of")


class Counting:
    """Around an algorithm half or the control plane: counts its handlers' calls and the CPU time in them. Nothing else changes."""

    calls: Counter[str] = Counter()
    seconds: Counter[str] = Counter()

    HANDLERS = (
        "on_start",
        "on_feedback",
        "on_leave",
        "on_ack",
        "on_loss",
        "on_timer",
        "on_control",
        "on_gap",
        "on_answer",
        "on_digest",
        "on_stream",
    )

    def __init__(self, half: Sender | Receiver | VirtualControl) -> None:
        self.half = half
        self.interests = getattr(half, "interests", None)
        for name in self.HANDLERS:
            if hasattr(half, name):
                setattr(self, name, self._counted(type(half).__name__ + "." + name, getattr(half, name)))

    def _counted(self, name: str, handler):
        def call(*arguments):
            began = time.thread_time()
            try:
                return handler(*arguments)
            finally:
                Counting.calls[name] += 1
                Counting.seconds[name] += time.thread_time() - began

        return call


def profile(case: Dumbbell) -> None:
    """Splits a packet's time: in Python's handlers, between Rust and Python, and in the network by taking parts away."""
    plain = min((run(case) for _ in range(2)), key=lambda r: r.cpu_s)
    packets = plain.work["data_packets"]
    counted = run(case, wrap=Counting)
    calls, seconds = sum(Counting.calls.values()), sum(Counting.seconds.values())
    print(
        f"{packets} data packets, {plain.work['switch_packets']} P4 executions, {plain.work['events']} events, {plain.cpu_s:.2f} s of CPU:"
        f" {1e6 * plain.cpu_s / packets:.2f} us for each data packet, {1e6 * plain.cpu_s / plain.work['link_traversals']:.2f} for each link traversal"
    )
    print(
        f"Python's handlers: {calls} calls ({calls / packets:.3f} for each data packet), {seconds:.2f} s in them"
        f" = {1e6 * seconds / packets:.2f} us for each data packet; with counting {counted.cpu_s:.2f} s of CPU in all"
    )
    for name, count in Counting.calls.most_common():
        print(f"  {name:28} {count:8} calls {1e6 * Counting.seconds[name] / count:7.2f} us each")
    # Two switches more: what a pass through a switch, with the link behind it, adds. Their control plane's part is taken away.
    Counting.seconds.clear()
    longer = run(replace(case, switches=4), wrap=Counting)
    passes = longer.work["switch_packets"] - counted.work["switch_packets"]
    hop_us = 1e6 * (longer.cpu_s - sum(Counting.seconds.values()) - (counted.cpu_s - seconds)) / passes
    through_us = hop_us * plain.work["switch_packets"] / packets
    print(
        f"a pass through als.p4, its queue and its link: {hop_us:.2f} us (by two more switches); {plain.work['switch_packets'] / packets:.2f}"
        f" passes for each data packet, acknowledgements too = {through_us:.2f} us for each data packet"
    )
    print(
        f"the rest, hosts, TCP, and calls into Python: {1e6 * (counted.cpu_s - seconds) / packets - through_us:.2f} us for each data packet"
    )
    profiler = cProfile.Profile()
    run(case, profile=profiler)
    print("cProfile, by time in the function itself (run_until is all of Rust):")
    pstats.Stats(profiler, stream=sys.stdout).sort_stats("tottime").print_stats(12)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kind", choices=sorted(ALGORITHMS), default="rap")
    parser.add_argument("--flows", type=int, default=32, help="of each kind")
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--compare", action="store_true", help="beside ns-2")
    parser.add_argument("--profile", action="store_true", help="where the time goes")
    args = parser.parse_args()
    case = replace(Dumbbell(), kind=args.kind, adaptive=args.flows, sacks=args.flows, seconds=args.seconds)
    if args.compare:
        compare(case, args.rounds)
    elif args.profile:
        profile(case)
    else:
        result = run(case)
        adaptive, tcp = result.goodput_bps[: args.flows], result.goodput_bps[args.flows :]
        print(f"{result.work}\nwall {result.wall_s:.2f} s, CPU {result.cpu_s:.2f} s, dropped {result.dropped}")
        print(
            f"mean goodput: {args.kind} {statistics.mean(adaptive):.0f} bit/s, SACK {statistics.mean(tcp):.0f} bit/s,"
            f" ratio {statistics.mean(adaptive) / statistics.mean(tcp):.3f}"
        )


if __name__ == "__main__":
    main()
