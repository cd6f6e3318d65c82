"""Speed of the network in virtual time: SACK flows over one bottleneck with RED, als.p4 executed for each packet at each switch.

python bench/virtual.py [--flows 100] [--rate-mbps 100] [--seconds 20]    one run
python bench/virtual.py --compare [--htsim DIR]                           beside ns-2 (Debian's ns2) with the same scenario, in turns; DIR: the
                                                                          folder sim of csg-htsim, after `make libhtsim.a` there
python bench/virtual.py --growth                                          cost of a packet over numbers of flows and switches
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from fairlane import specs
from fairlane.experiments.kinds import TcpSettings
from fairlane.experiments.model import Control, Experiment, Flow, FlowGroup, Settings
from fairlane.fabrics import targets, virtual_fabric
from fairlane.fabrics.flows import Timing
from fairlane.p4src.schemes.red.scheme import Red
from fairlane.topologies import builders
from fairlane.topologies.builders import LinkSpec
from fairlane.topologies.model import Node, Topology

MAX_PAIRS = 200
"""Hosts on one switch; more flows share pairs."""


def experiment(flows: int, rate_bps: float, seconds: float, switches: int = 2) -> Experiment:
    """`flows` SACK flows from one end of a row of switches to the other, or over one switch to one host; a buffer of 0.1 s."""
    red = Red(0.25, 0.75, 0.1, 0.002, 1000)
    queue = max(20, round(rate_bps * 0.1 / 8000))
    pairs = min(flows, MAX_PAIRS)
    trunk, access = LinkSpec(rate_bps, 0.01, queue, (red,)), LinkSpec(10 * rate_bps, 0.001, 1000)
    if switches == 1:
        senders = [f"h{i + 1}" for i in range(pairs)]
        sink = f"h{pairs + 1}"
        topology = Topology(
            (*(Node(h, "host") for h in (*senders, sink)), Node("s1", "switch")),
            (trunk.between("s1", sink), *(access.between(h, "s1") for h in senders)),
        )
    else:
        topology = builders.chain([(1, switches)] * pairs, switches, trunk, access)
    first_receiver, receivers = pairs + 1, 1 if switches == 1 else pairs
    groups = (FlowGroup("tcp", "tcp-sack", flows),)
    settings = Settings("speed", "s1->s2", {}, groups, duration_s=seconds, control=Control())
    tcp = TcpSettings(packet_bytes=1000, paper_reno=False)
    ends = tuple(
        Flow(f"tcp-{i}", "tcp-sack", f"h{i % pairs + 1}", f"h{first_receiver + i % pairs % receivers}", i * 0.001, tcp)
        for i in range(flows)
    )
    return Experiment("speed", settings, topology, ends, ("s1", 1), seconds, 1)


def measure(case: Experiment) -> dict[str, float]:
    """Counts of one run, and the processor and wall time of its packets; building the network is not counted."""
    options = virtual_fabric.Options(targets.compiler())
    with tempfile.TemporaryDirectory() as name:
        network, _, controller = virtual_fabric.build(case, options, Path(name))
        timing = Timing(1.5, 1.5 + case.duration_s)
        for index, flow in enumerate(case.flows):
            start, stop = round(timing.start_s(flow) * 1e9), round(timing.end_s * 1e9)
            path = specs.FlowPath(flow.name, flow.sender, flow.receiver, 5201 + index // MAX_PAIRS, start, stop)
            tcp = specs.Tcp(flavour="sack", packet_bytes=flow.settings.packet_bytes, options=flow.settings.network_options(4))
            network.add_tcp_flow(path, tcp)
        network.run_until(1_000_000_000)
        wall, cpu = time.perf_counter(), time.process_time()
        network.run_until(round(timing.end_s * 1e9))
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        controller.close()
    work = network.work()
    return {
        **work,
        "wall_s": wall,
        "cpu_s": cpu,
        "traversals_per_cpu_s": work["link_traversals"] / cpu,
        "packets_per_cpu_s": work["data_packets"] / cpu,
        "us_per_switch_packet": 1e6 * cpu / work["switch_packets"],
    }


def other(command: Sequence[str], flows: int, rate_bps: float, seconds: float) -> dict[str, float]:
    """The same scenario in a simulator that prints its link traversals: these, and the processor time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = subprocess.run([*command, str(flows), str(rate_bps / 1e6), str(seconds)], capture_output=True, text=True, check=True)
    cpu = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    return {"link_traversals": int(done.stdout), "cpu_s": cpu}


def others(htsim: Path | None, folder: Path) -> dict[str, tuple[str, ...]]:
    """Commands of the simulators that are here."""
    found = {}
    if shutil.which("ns"):
        found["ns-2"] = ("ns", str(Path(__file__).with_name("dumbbell.tcl")))
    else:
        print("no ns-2 here (apt-get install ns2)")
    if htsim is not None:
        library = htsim / "libhtsim.a"
        if not library.is_file():
            raise SystemExit(f"{library}: no such file; run 'make libhtsim.a' in {htsim}")
        source, program = Path(__file__).with_name("htsim.cc"), folder / "htsim"
        subprocess.run(["g++", "-O3", "-std=c++11", "-w", "-I", str(htsim), "-o", str(program), str(source), str(library)], check=True)
        found["csg-htsim"] = (str(program),)
    return found


def compare(flows: int, rate_bps: float, seconds: float, htsim: Path | None, rounds: int = 5) -> None:
    """In turns, so that other load on the machine affects all."""
    with tempfile.TemporaryDirectory() as name:
        commands = others(htsim, Path(name))
        runs: dict[str, list[dict[str, float]]] = {name: [] for name in ("fairlane", *commands)}
        for _ in range(rounds):
            for simulator, command in commands.items():
                runs[simulator].append(other(command, flows, rate_bps, seconds))
            runs["fairlane"].append(measure(experiment(flows, rate_bps, seconds)))
    print(f"{flows} TCP flows, {rate_bps / 1e6:g} Mb/s, {seconds:g} s; median of {rounds} rounds in turns")
    print(f"{'':10} {'link traversals':>16} {'CPU s':>7} {'million/CPU s':>14} {'fairlane is':>12}")
    speeds = {simulator: statistics.median(one["link_traversals"] / one["cpu_s"] for one in of_one) for simulator, of_one in runs.items()}
    for simulator, of_one in runs.items():
        cpu = statistics.median(one["cpu_s"] for one in of_one)
        ratio = speeds["fairlane"] / speeds[simulator]
        print(f"{simulator:10} {of_one[0]['link_traversals']:16} {cpu:7.2f} {speeds[simulator] / 1e6:14.3f} {ratio:10.2f} x")
    print(
        f"fairlane with {runs['fairlane'][0]['switch_packets']} executions of als.p4; ns-2 with RED and SACK, csg-htsim as bench/htsim.cc says"
    )


def growth(seconds: float) -> None:
    """Cost of a packet: it should not grow with flows (only with the logarithm), nor that of a link traversal with switches."""
    print(f"SACK flows over 50 Mb/s with RED, {seconds:g} s; als.p4 executed for each packet at each switch")
    print(
        f"{'flows':>6} {'switches':>9} {'data packets':>13} {'wall s':>7} {'wall us/packet':>15} {'CPU us/packet':>14} {'CPU us/traversal':>17}"
        f" {'CPU us/switch packet':>21}"
    )
    for switches in (1, 5, 20):
        for flows in (1, 10, 100, 1000):
            r = measure(experiment(flows, 50e6, seconds, switches))
            print(
                f"{flows:6} {switches:9} {r['data_packets']:13} {r['wall_s']:7.2f} {1e6 * r['wall_s'] / r['data_packets']:15.2f}"
                f" {1e6 * r['cpu_s'] / r['data_packets']:14.2f} {1e6 * r['cpu_s'] / r['link_traversals']:17.2f} {r['us_per_switch_packet']:21.2f}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--flows", type=int, default=100)
    parser.add_argument("--rate-mbps", type=float, default=100.0)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--switches", type=int, default=2)
    parser.add_argument("--compare", action="store_true", help="beside ns-2")
    parser.add_argument("--htsim", type=Path, metavar="DIR", help="the folder sim of csg-htsim: beside it, too")
    parser.add_argument("--growth", action="store_true", help="over numbers of flows and switches")
    args = parser.parse_args()
    if args.compare:
        compare(args.flows, args.rate_mbps * 1e6, args.seconds, args.htsim)
    elif args.growth:
        growth(min(args.seconds, 5.0))
    else:
        result = measure(experiment(args.flows, args.rate_mbps * 1e6, args.seconds, args.switches))
        print(json.dumps({k: round(v, 3) for k, v in result.items()}, indent=1))


if __name__ == "__main__":
    main()
