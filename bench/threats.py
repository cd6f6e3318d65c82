"""What other people on the network can do to counting and to fair rates, without and with the table of sources: als.p4 in virtual time.

    python bench/threats.py [--json FILE]
    python bench/threats.py --cost [--rounds 9]     # of the table, in nanoseconds of CPU a packet, in turns

Four ALS flows share 10 Mb/s through two switches. From 20 s to 30 s a fifth host on the senders' switch attacks:

    spoofed sources      220 small packets a second, each from another address
    forged reports       20 receiver reports a second to a sender, in its receiver's name, by an attacker who knows the flow's SSRC: R_d is 10 kb/s
    ... own address      the same from the attacker's own address, which no table of sources can tell
    ALSF flood           1,000 control packets a second from other addresses, each asking for 10 Mb/s
    ... own address      the same from the attacker's own
    IGMP flood           200 joins a second, each of another group, from other addresses
    ... own address      the same from the attacker's own

n and R_f are those of the bottleneck during the attack and after it; the rates are those of the first ALS flow, whose reports are forged, and of the others. The seeds and
the instants are fixed: the same table comes out everywhere.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import json
import random
import socket
import statistics
import struct
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from als_program import ipv4
from fairlane import specs
from fairlane.controller.timetable import NS
from fairlane.experiments import loader
from fairlane.experiments.model import Experiment
from fairlane.fabrics import raw, targets, virtual_fabric
from fairlane.fabrics.progress import Progress, Silent
from fairlane.fabrics.virtual_fabric import ActiveRun
from fairlane.inputs import located_toml
from fairlane.native import emit_rtcp
from fairlane.topologies import addressing
from forward import show

FLOWS, FROM_S, TO_S, DURATION_S = 4, 20.0, 30.0, 50.0
ROUTER_ALERT = bytes((0x94, 4, 0, 0))
RTCP_PORT = 5005
TEXT = f"""title = "ALS under attack"
bottleneck = "s1->s2"
duration_s = {DURATION_S}
[control]
source_guard = GUARD
[topology]
kind = "dumbbell"
pairs = {FLOWS + 1}
bottleneck = {{ rate_bps = 10e6, delay_s = 0.01, queue_packets = 80, queue = "red" }}
access = {{ rate_bps = 100e6, delay_s = 0.001, queue_packets = 1000 }}
[[flows]]
name = "als"
kind = "als"
count = {FLOWS}
"""


@dataclasses.dataclass(frozen=True)
class Hosts:
    """Addresses: of the attacker, of the first flow's ends, and of the attacker's own counterpart. ssrc: of the first flow's sender."""

    attacker: addressing.HostAddress
    sender: str
    receiver: str
    other: str
    ssrc: int


Frames = Iterator[bytes]
Attack = tuple[float, Callable[[Hosts, random.Random], Frames]]
"""Frames a second, and the frames."""


def _udp(port: int, payload: bytes) -> bytes:
    return struct.pack("!HHHH", port, port, 8 + len(payload), 0) + payload


def _someone(rng: random.Random) -> str:
    return socket.inet_ntoa(struct.pack("!I", 0x0A000000 | rng.getrandbits(24)))


def spoofed(hosts: Hosts, rng: random.Random) -> Frames:
    while True:
        yield ipv4(_someone(rng), hosts.other, 17, _udp(9, bytes(18)))


def _report(ssrc: int, low_bps: int) -> bytes:
    return emit_rtcp(
        specs.Compound(7, blocks=[(ssrc, 255, 1000, 1000, 0, 0, 0)], cname=b"forged", from_receiver=(7, low_bps, 1_000_000, []))
    )


def forged(hosts: Hosts, rng: random.Random) -> Frames:
    while True:
        yield ipv4(hosts.receiver, hosts.sender, 17, _udp(RTCP_PORT, _report(hosts.ssrc, 10_000)))


def own_name(hosts: Hosts, rng: random.Random) -> Frames:
    while True:
        yield ipv4(hosts.attacker.ip, hosts.sender, 17, _udp(RTCP_PORT, _report(hosts.ssrc, 10_000)))


def _alsf(hosts: Hosts, rng: random.Random, source: Callable[[], str]) -> Frames:
    while True:
        ssrc = rng.getrandbits(32)
        compound = emit_rtcp(specs.Compound(ssrc, sender=(0, 0, 0, 0), cname=b"x", from_sender=(ssrc, 10_000_000, 0, [])))
        yield ipv4(source(), hosts.other, 17, _udp(RTCP_PORT, compound), ROUTER_ALERT)


def _igmp(hosts: Hosts, rng: random.Random, source: Callable[[], str]) -> Frames:
    while True:
        group = struct.pack("!I", 0xEF000000 | rng.getrandbits(24))
        body = struct.pack("!BBH", 0x16, 0, 0) + group  # a report of version 2 (RFC 2236)
        total = sum(struct.unpack("!4H", body))
        total = (total & 0xFFFF) + (total >> 16)
        yield ipv4(source(), socket.inet_ntoa(group), 2, body[:2] + struct.pack("!H", 0xFFFF & ~total) + group, ROUTER_ALERT, ttl=1)


ATTACKS: dict[str, Attack | None] = {
    "none": None,
    "spoofed sources": (220.0, spoofed),
    "forged reports": (20.0, forged),
    "forged reports, own address": (20.0, own_name),
    "ALSF flood": (1000.0, lambda hosts, rng: _alsf(hosts, rng, lambda: _someone(rng))),
    "ALSF flood, own address": (1000.0, lambda hosts, rng: _alsf(hosts, rng, lambda: hosts.attacker.ip)),
    "IGMP flood": (200.0, lambda hosts, rng: _igmp(hosts, rng, lambda: _someone(rng))),
    "IGMP flood, own address": (200.0, lambda hosts, rng: _igmp(hosts, rng, lambda: hosts.attacker.ip)),
}


@dataclasses.dataclass
class Attacker:
    """Drives a run in virtual time with an attack in it."""

    attack: Attack | None

    def drive(self, active: ActiveRun, progress: Progress) -> list[dict[str, Any]]:
        if self.attack is not None:
            per_s, make = self.attack
            names = active.experiment.topology.hosts
            flow = active.experiment.flows[0]
            host = names[FLOWS]
            sender, receiver, other = (active.hosts[name].ip for name in (flow.sender, flow.receiver, names[-1]))
            ssrc = virtual_fabric.End.of(flow, "sender", active.experiment.seed * 1000, sender).ssrc
            hosts = Hosts(active.hosts[host], sender, receiver, other, ssrc)
            header = bytes.fromhex(hosts.attacker.gateway_mac.replace(":", "") + hosts.attacker.mac.replace(":", ""))
            frames = make(hosts, random.Random(1))
            for i in range(round(per_s * (TO_S - FROM_S))):
                frame = next(frames)
                active.network.schedule_frame(active.begin_ns + round((FROM_S + i / per_s) * NS), host, header + frame[12:])
        virtual_fabric.advance(active, progress)
        return []


def _experiment(guard: bool) -> Experiment:
    return loader.from_document(located_toml.parse(TEXT.replace("GUARD", str(guard).lower()), "threats"), "threats")


def run(attack: str, guard: bool) -> dict[str, float]:
    """n and R_f (median and extremes over the attack), Mb/s of the flows, group members, and spoofed frames dropped."""
    experiment = _experiment(guard)
    with tempfile.TemporaryDirectory(prefix="fairlane-threats-") as name:
        folder = Path(name)
        options = virtual_fabric.Options(targets.compiler(), live=Attacker(ATTACKS[attack]))
        outcome = virtual_fabric.run(experiment, options, folder, Silent())
        control = raw.controller_records(folder)
        control["time_s"] -= outcome.timing.begin_s
        node, number = experiment.bottleneck
        control = control[(control["switch"] == node) & (control["port"] == number)]
        during = control[(control["time_s"] > FROM_S + 2) & (control["time_s"] < TO_S)]
        rates = [_rates(folder, f.name, outcome.timing.begin_s) for f in experiment.flows]
        with (folder / "memberships.csv").open() as file:
            members = sum(1 for _ in csv.DictReader(file))
    return {
        "connections": float(during["connections"].median()),
        "most_connections": float(during["connections"].max()),
        "fair_rate_bps": float(during["fair_rate_bps"].median()),
        "first_bps": rates[0][0],
        "others_bps": statistics.fmean(r[0] for r in rates[1:]),
        "first_after_bps": rates[0][1],
        "others_after_bps": statistics.fmean(r[1] for r in rates[1:]),
        "memberships": members,
    }


def _rates(folder: Path, flow: str, begin_s: float) -> tuple[float, float]:
    """Received bit/s of a flow during the attack, and in the 10 s after it."""
    data = [(r["t"] - begin_s, r["received_bytes"]) for r in raw.flow_records(folder, flow, "receiver") if r.get("kind") == "data"]

    def between(a: float, b: float) -> float:
        inside = [(t, count) for t, count in data if a <= t <= b]
        (t0, first), (t1, last) = inside[0], inside[-1]
        return (last - first) * 8 / (t1 - t0)

    return between(FROM_S + 2, TO_S), between(TO_S, TO_S + 10)


def cost(rounds: int) -> str:
    """Of als.p4 without I/O, with and without the table, in turns: medians, and the median of the ratios of each turn."""
    from als_program import data_frame, with_entries, write_pcap
    from packets import SENDERS, build_runner, run_ours

    with tempfile.TemporaryDirectory(prefix="fairlane-threats-") as name:
        folder = Path(name)
        loaded = {}
        program = Path(__file__).resolve().parent.parent / "p4src" / "als.p4"
        for title, options in (("without", ((), ())), ("with", (("CHOSEN",), (program.parent / "schemes" / "sources", program.parent)))):
            (folder / title).mkdir()
            compiled, _ = targets.compiler().compile(program, folder / title, *options)
            loaded[title] = with_entries(compiled, folder / f"{title}.json")
        runner = build_runner()
        write_pcap(folder / "frames.pcap", [data_frame(1000, sender) for sender in range(SENDERS)])
        turns = []
        for number in range(rounds):
            ns = {title: run_ours(runner, file, folder / "frames.pcap", 200_000)["busy"]["ns_median"] for title, file in loaded.items()}
            turns.append((ns["without"], ns["with"]))
            show(f"turn {number + 1} of {rounds}: {ns['without']:.0f} ns without the table, {ns['with']:.0f} ns with it")
    without, with_ = (statistics.median(side) for side in zip(*turns))
    more = statistics.median(b - a for a, b in turns)
    return f"{without:.0f} ns a packet without the table, {with_:.0f} ns with it; in the same turn {more:+.0f} ns (median of {rounds})"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="also write every figure to this file")
    parser.add_argument("--cost", action="store_true", help="measure the table's cost instead")
    parser.add_argument("--rounds", type=int, default=9, help="turns of --cost (default: 9)")
    arguments = parser.parse_args()
    if arguments.cost:
        print(cost(arguments.rounds))
        return 0
    results = []
    print(
        f"{'attack':30}{'table':>6}{'n':>6}{'most':>6}{'R_f':>8}{'first':>8}{'others':>8}{'after: first':>14}{'others':>8}{'joins':>7}   (Mb/s)"
    )
    for attack in ATTACKS:
        for guard in (False, True):
            show(f"{attack}, {'with' if guard else 'without'} the table")
            found = run(attack, guard)
            results.append({"attack": attack, "guard": guard, **found})
            mbps = {key: value / 1e6 for key, value in found.items()}
            print(
                f"{attack:30}{'yes' if guard else 'no':>6}{found['connections']:>6.0f}{found['most_connections']:>6.0f}{mbps['fair_rate_bps']:>8.3f}"
                f"{mbps['first_bps']:>8.3f}{mbps['others_bps']:>8.3f}{mbps['first_after_bps']:>14.3f}{mbps['others_after_bps']:>8.3f}{found['memberships']:>7.0f}",
                flush=True,
            )
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
