"""Speed of the network in virtual time: SACK flows over one bottleneck with RED, als.p4 executed for each packet at each switch.

    python bench/virtual.py [--flows 100] [--rate-mbps 100] [--seconds 20]
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

from experiments.model import Control, Experiment, Flow, FlowGroup, Paper, Settings, Tcp
from fairlane import control_plane, targets, virtual_fabric
from fairlane.flows import Timing
from fairlane.virtual_control import VirtualController
from topologies import builders
from topologies.builders import LinkSpec
from topologies.model import Red


def experiment(flows: int, rate_bps: float, seconds: float, switches: int = 2) -> Experiment:
    """`flows` SACK flows from one end of a row of switches to the other; a buffer of 0.1 s."""
    red = Red(0.25, 0.75, 0.1, 0.002, 1000)
    queue = max(20, round(rate_bps * 0.1 / 8000))
    trunk, access = LinkSpec(rate_bps, 0.01, queue, red), LinkSpec(10 * rate_bps, 0.001, 1000)
    topology = builders.chain([(1, switches)] * flows, switches, trunk, access)
    groups = (FlowGroup("tcp", "tcp-sack", flows),)
    settings = Settings("speed", Paper("-", "-", "-"), "s1->s2", {}, groups, duration_s=seconds, control=Control(), tcp=Tcp(1000, False))
    ends = tuple(Flow(f"tcp-{i}", "tcp-sack", f"h{i + 1}", f"h{flows + i + 1}", i * 0.001) for i in range(flows))
    return Experiment("speed", settings, topology, ends, ("s1", 1), seconds, 1)


def measure(case: Experiment) -> dict[str, float]:
    """Counts of one run, and the processor and wall time of its packets; building the network is not counted."""
    options = virtual_fabric.Options(targets.compiler())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = options.toolchain.compile(Path(case.settings.control.program), folder)
        network, addresses = virtual_fabric.build(case, options)
        ports = {s: 9559 + i for i, s in enumerate(case.topology.switches)}
        controller = VirtualController(control_plane.configuration(case, addresses, ports, *files), folder)
        network.set_control_plane(controller)
        timing = Timing(1.5, 1.5 + case.duration_s)
        for flow in case.flows:
            virtual_fabric.add_flow(network, flow, case, addresses.hosts, timing, 1)
        network.run_until(1_000_000_000)
        wall, cpu = time.perf_counter(), time.process_time()
        network.run_until(round(timing.end_s * 1e9))
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        controller.close()
    work = network.work()
    return {**work, "wall_s": wall, "cpu_s": cpu, "traversals_per_cpu_s": work["link_traversals"] / cpu,
            "packets_per_cpu_s": work["data_packets"] / cpu, "us_per_switch_packet": 1e6 * cpu / work["switch_packets"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--flows", type=int, default=100)
    parser.add_argument("--rate-mbps", type=float, default=100.0)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--switches", type=int, default=2)
    args = parser.parse_args()
    result = measure(experiment(args.flows, args.rate_mbps * 1e6, args.seconds, args.switches))
    print(json.dumps({k: round(v, 3) for k, v in result.items()}, indent=1))


if __name__ == "__main__":
    main()
