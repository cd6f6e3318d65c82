"""Prague, CUBIC and DCTCP over DualPI2 in virtual time, beside what the L4S team published, and SCReAM beside Prague. Writes the tables of
docs/prague-against-l4s.md, or those that the arguments name."""

from __future__ import annotations

import math
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import fairlane
from fairlane import ad_hoc
from fairlane.inputs.located_toml import tomllib
from tests.oracle import tables

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "prague-against-l4s.md"
PROGRAM = ROOT / "p4src" / "schemes" / "dualpi2" / "dualpi2.p4"
# github.com/L4STeam/l4steam.github.io, iccrg-exp, 2024-10-24: Mb/s of 40 s, and mean RTT in ms.
PUBLISHED = {
    (20, 5): (19.1, 6.6, 19.1, 11.5),
    (20, 20): (19.0, 21.5, 18.9, 23.8),
    (20, 40): (18.3, 41.1, 18.3, 42.7),
    (20, 80): (16.4, 81.2, 17.1, 82.2),
    (100, 5): (95.6, 6.0, 95.6, 9.5),
    (100, 20): (94.9, 20.9, 94.1, 22.8),
    (100, 40): (92.4, 40.6, 90.7, 42.0),
    (100, 80): (61.6, 80.3, 86.5, 81.6),
}
PUBLISHED_DCTCP = {(100, 20): (50.5, 20.7)}
"""The same for DCTCP. Their queue took every ECN-capable packet for low latency (`any_ect`), so that DCTCP's ECT(0) is in that queue, too."""
PAIR = ("tcp-prague", "tcp-cubic")
PUBLISHED_PAIR = (65.8, 29.7)
"""Mb/s of both in one run, at 100 Mb/s and 20 ms."""
AS_TEXT: dict[str, Any] = {}
AS_REFERENCE: dict[str, Any] = {"decisions": "random"}
"""Parameters of DualPI2: the RFC's recur(), and random numbers, as the testbed's `sch_dualpi2.c` has."""
SEEDS = (1, 2, 3, 4, 5, 6)
PACKET_BYTES = 1500
BESIDE_PRAGUE = {
    "SCReAM without ECN": ("scream", ()),
    "SCReAM, ECT(0)": ("scream", ("scream.ecn=true",)),
    "SCReAM, ECT(1)": ("scream", ("scream.l4s=true",)),
    "NADA, ECT(0)": ("nada", ("nada.ecn=true",)),
    "CUBIC": ("tcp-cubic", ()),
}
"""Beside one Prague, and alone, on 20 Mb/s and 20 ms. Media can use the whole link. SCReAM ramps up by 1 Mb/s each second, which RFC 8298 names as a high setting."""


def measure(
    flows: Sequence[str],
    rate_mbps: int,
    rtt_ms: int,
    duration_s: float,
    settings: Sequence[str] = (),
    parameters: Mapping[str, Any] = AS_TEXT,
    seed: int = 1,
    programs: Sequence[Path] = (),
) -> tuple[fairlane.Result, float]:
    """What a run gave, and the mean round trip of its second half in ms: the link's and its queue's. parameters: DualPI2's."""
    options = ad_hoc.Options(
        tuple(flows),
        bottleneck=f"{rate_mbps}mbit",
        rtt=f"{rtt_ms}ms",
        queue="dualpi2",
        buffer="2000packets",
        packet_bytes=PACKET_BYTES,
        settings=tuple(settings),
    )
    document = tomllib.loads(ad_hoc.text("dumbbell", options, duration_s, seed))
    document["topology"]["bottleneck"]["dualpi2"].update(parameters)
    result = fairlane.run(document, programs=programs)
    return result, rtt_ms + result.bottleneck["mean_queue_packets"] * (PACKET_BYTES + 14) * 8 / (rate_mbps * 1e3)


def run(case: tuple[str, int, int]) -> tuple[float, float]:
    """Mb/s of all 40 s, and the mean round trip. DCTCP's packets go to the queue of low latency."""
    kind, rate_mbps, rtt_ms = case
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "dualpi2.p4"
        text = PROGRAM.read_text().replace("hdr.IP.diffserv & 1 == 1", "hdr.IP.diffserv & 3 != 0")
        assert text != PROGRAM.read_text()
        program.write_text(text)
        programs = [program] if kind == "tcp-dctcp" else []
        result, rtt = measure([f"{kind}:1"], rate_mbps, rtt_ms, duration_s=40.0, programs=programs)
    return result.flows["goodput_bps"].mean() / 1e6, rtt


def at_random(case: tuple[str, int, int, int]) -> float:
    """Mb/s of all 40 s, with another seed and the reference's decisions."""
    kind, rate_mbps, rtt_ms, seed = case
    result, _ = measure([f"{kind}:1"], rate_mbps, rtt_ms, 40.0, parameters=AS_REFERENCE, seed=seed)
    return result.flows["goodput_bps"].mean() / 1e6


def pair(case: tuple[str, int]) -> list[float]:
    """Mb/s of one Prague and of one CUBIC beside it, in the second half of 40 s. case: decisions, and a seed."""
    result, _ = measure([f"{kind}:1" for kind in PAIR], 100, 20, 40.0, parameters={"decisions": case[0]}, seed=case[1])
    rates = result.per_flow.groupby("kind")["goodput_bps"].sum() / 1e6
    return [rates[kind] for kind in PAIR]


def beside(case: tuple[str, bool]) -> list[float]:
    """Mb/s of the flow and of Prague, over the second half of 120 s; mean round trip; marks of both queues; drops."""
    kind, settings = BESIDE_PRAGUE[case[0]]
    media = () if kind.startswith("tcp") else (f"{kind}.maximum_rate_bps=20e6",)
    ramp = ("scream.ramp_up_bps_per_s=1e6",) if kind == "scream" else ()
    result, rtt = measure(
        [f"{kind}:1", *(["tcp-prague:1"] if case[1] else [])], 20, 20, duration_s=120.0, settings=[*settings, *media, *ramp]
    )
    rates = result.per_flow.groupby("kind")["goodput_bps"].sum() / 1e6
    link = result.bottleneck
    return [rates[kind], rates["tcp-prague"] if case[1] else math.nan, rtt, link["marks"], sum(link["drops"].values())]


def spread(rates: Sequence[float]) -> str:
    """Two cells of a table: median, and from, to."""
    return f"{statistics.median(rates):.1f} | {min(rates):.1f}, {max(rates):.1f}"


def write_grid(pool: ProcessPoolExecutor) -> None:
    cases = [(kind, *place) for place in PUBLISHED for kind in PAIR]
    found = dict(zip(cases, pool.map(run, cases)))
    lines = [
        "| Mb/s | RTT ms | Prague Mb/s, published | here | ratio | RTT, published | here | CUBIC Mb/s, published | here | ratio | RTT, published | here |",
        "|" + "---|" * 12,
    ]
    for place, (prague, prague_ms, cubic, cubic_ms) in PUBLISHED.items():
        row = [f"{place[0]} | {place[1]}"]
        for kind, rate, rtt in (("tcp-prague", prague, prague_ms), ("tcp-cubic", cubic, cubic_ms)):
            ours, ours_ms = found[(kind, *place)]
            row.append(f"{rate} | {ours:.1f} | {ours / rate:.2f} | {rtt} | {ours_ms:.1f}")
        lines.append(f"| {' | '.join(row)} |")
    tables.put(PAGE, lines, "table")


def write_random(pool: ProcessPoolExecutor) -> None:
    cases = [(kind, *place, seed) for place in PUBLISHED for kind in PAIR for seed in SEEDS]
    found = dict(zip(cases, pool.map(at_random, cases)))
    lines = [
        "| Mb/s | RTT ms | Prague Mb/s, published | at random, median | from, to | CUBIC Mb/s, published | at random, median | from, to |",
        "|" + "---|" * 8,
    ]
    for place, (prague, _, cubic, _) in PUBLISHED.items():
        row = [f"{place[0]} | {place[1]}"]
        for kind, rate in zip(PAIR, (prague, cubic)):
            row.append(f"{rate} | {spread([found[(kind, *place, seed)] for seed in SEEDS])}")
        lines.append(f"| {' | '.join(row)} |")
    tables.put(PAGE, lines, "random")


def write_pair(pool: ProcessPoolExecutor) -> None:
    cases = [(decisions, seed) for decisions in ("recur", "random") for seed in SEEDS]
    found = dict(zip(cases, pool.map(pair, cases)))
    lines = ["| decisions | Prague Mb/s, median | from, to | CUBIC Mb/s, median | from, to |", "|" + "---|" * 5]
    lines.append(f"| published, one run | {PUBLISHED_PAIR[0]} | | {PUBLISHED_PAIR[1]} | |")
    for decisions in ("recur", "random"):
        row = [spread([found[decisions, seed][flow] for seed in SEEDS]) for flow in range(2)]
        lines.append(f"| {decisions} | {' | '.join(row)} |")
    tables.put(PAGE, lines, "pair")


def write_dctcp(pool: ProcessPoolExecutor) -> None:
    found = dict(zip(PUBLISHED, pool.map(run, [("tcp-dctcp", *place) for place in PUBLISHED])))
    lines = ["| Mb/s | RTT ms | DCTCP Mb/s, published | here | RTT, published | here |", "|" + "---|" * 6]
    for place in PUBLISHED:
        known = PUBLISHED_DCTCP.get(place, ("", ""))
        ours, ours_ms = found[place]
        lines.append(f"| {place[0]} | {place[1]} | {known[0]} | {ours:.1f} | {known[1]} | {ours_ms:.1f} |")
    tables.put(PAGE, lines, "dctcp")


def write_beside(pool: ProcessPoolExecutor) -> None:
    pairs = [(name, with_prague) for name in BESIDE_PRAGUE for with_prague in (True, False)]
    found = dict(zip(pairs, pool.map(beside, pairs)))
    lines = ["| flow | alone, Mb/s | RTT ms | beside Prague, Mb/s | Prague, Mb/s | RTT ms | marks | drops |", "|" + "---|" * 8]
    for name in BESIDE_PRAGUE:
        alone, _, alone_ms, *_ = found[name, False]
        rate, prague, rtt, marks, drops = found[name, True]
        lines.append(f"| {name} | {alone:.2f} | {alone_ms:.1f} | {rate:.2f} | {prague:.2f} | {rtt:.1f} | {marks} | {drops} |")
    tables.put(PAGE, lines, "beside")


TABLES = {"table": write_grid, "random": write_random, "pair": write_pair, "dctcp": write_dctcp, "beside": write_beside}


def main(names: Sequence[str]) -> int:
    with ProcessPoolExecutor(2) as pool:
        for name in names or TABLES:
            TABLES[name](pool)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
