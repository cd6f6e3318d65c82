"""Makes random programs, and compares what comes out of them with what the specification says; exit status 1 when any differs. See README.md."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from fairlane import probes
from tools.bmv2 import process
from tools.oracle_programs import cases, crossed, live, snippets, stf_run
from tools.oracle_programs.cases import Case, make
from tools.oracle_programs.minimise import minimise
from tools.oracle_programs.stf_run import Verdict

ROOT = Path(__file__).resolve().parents[2]
WAYS = ("stf", "p4runtime", "thrift", "crossed")
SHOWN_EACH_S = 10


@dataclass(frozen=True)
class Settings:
    way: str
    packets: int
    programs: Path
    """The folder of fairlane-stf and the others."""
    out: Path
    p4c: str | None
    bmv2: bool
    minimise: bool


@dataclass
class Total:
    """What a run counts. ends: by pair of compiler and switch (or way), and kind of verdict."""

    ends: Counter[tuple[str, str]] = field(default_factory=Counter)
    packets: int = 0
    out: int = 0
    given: Counter[tuple[str, str]] = field(default_factory=Counter)
    found: list[str] = field(default_factory=list)

    def add(self, other: Total) -> None:
        self.ends += other.ends
        self.packets += other.packets
        self.out += other.out
        self.given += other.given
        self.found += other.found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.oracle_programs", description=__doc__)
    parser.add_argument("--programs", type=int, default=5000, help="how many (crossed: that p4c takes)")
    parser.add_argument("--seed", type=int, default=1, help="of the first; the others follow")
    parser.add_argument("--packets", type=int, default=8, help="for each program")
    parser.add_argument("--by", choices=WAYS, default="stf", help="how entries and packets come (crossed: also by p4c and BMv2)")
    parser.add_argument("--bin", type=Path, help="folder of fairlane-compile, fairlane-stf and fairlane-switch")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--no-minimise", action="store_true", help="keep programs that differ as they are")
    parser.add_argument("--out", type=Path, default=ROOT / "build/oracle_programs", help="for the programs that differ")
    arguments = parser.parse_args()
    stf = arguments.bin / "fairlane-stf" if arguments.bin else probes.program("fairlane-stf")
    if stf is None or not stf.is_file():
        parser.error("fairlane-stf is not built: run `make build`")
    p4c, bmv2 = shutil.which("p4c-bm2-ss"), process.why_absent()
    if arguments.by == "crossed" and p4c is None and bmv2 is not None:
        parser.error(f"there is nothing to cross with: p4c-bm2-ss is not in PATH, {bmv2}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    settings = Settings(arguments.by, arguments.packets, stf.parent, arguments.out, p4c, bmv2 is None, not arguments.no_minimise)
    begun = time.monotonic()
    total = run(settings, arguments.seed, arguments.programs, arguments.jobs)
    report(total, settings, arguments.seed, time.monotonic() - begun)
    ours = [kind for (pair, kind), n in total.ends.items() if n and kind != "passed" and not pair.startswith("p4c") and "BMv2" not in pair]
    return 1 if ours else 0


def run(settings: Settings, seed: int, programs: int, jobs: int) -> Total:
    """Seeds from the first on, until so many programs count."""
    total = Total()
    size = max(1, min(25, programs // max(jobs, 1)))
    shown, counted, at = time.monotonic(), 0, seed
    with ProcessPoolExecutor(jobs) as pool:
        waiting: list[Future[Total]] = []
        while counted < programs:
            while len(waiting) < jobs * 2 and (settings.way == "crossed" or at < seed + programs):
                waiting.append(
                    pool.submit(
                        some, settings, list(range(at, min(at + size, at + size if settings.way == "crossed" else seed + programs)))
                    )
                )
                at += size
            got = waiting.pop(0).result()
            total.add(got)
            counted += _counted(got)
            for line in got.found:
                print(line, flush=True)
            if time.monotonic() - shown > SHOWN_EACH_S:
                shown = time.monotonic()
                print(f"{counted} programs", file=sys.stderr, flush=True)
        for left in waiting:
            left.cancel()
    return total


def _counted(total: Total) -> int:
    """Programs; crossed, those that p4c takes, if there is a p4c."""
    pair = next((p for p in ("p4c, our switch", "ours, our switch") if any(one == p for one, _ in total.ends)), None)
    return sum(
        n for (one, kind), n in total.ends.items() if pair is None or (one == pair and not (one == "p4c, our switch" and kind == "refused"))
    )


def some(settings: Settings, seeds: Sequence[int]) -> Total:
    """Some programs one after the other, on one switch where there has to be one."""
    total = Total()
    features = snippets.PLAIN if settings.way == "crossed" else None
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="oracle-programs-")))
        play = player(settings, folder, stack)
        for seed in seeds:
            case = make(seed, settings.packets, features)
            total.packets += len(case.expected)
            total.out += sum(packet is not None for packet in case.expected)
            total.given += case.given
            for pair, verdict in play(case).items():
                total.ends[pair, verdict.kind] += 1
                if verdict.kind != "passed" and not (pair.startswith("p4c") and verdict.kind == "refused"):
                    total.found.append(keep(settings, case, pair, verdict, play))
    return total


def player(settings: Settings, folder: Path, stack: ExitStack) -> Callable[[Case], dict[str, Verdict]]:
    if settings.way == "stf":
        return lambda case: {"stf": stf_run.play(case, folder, settings.programs / "fairlane-stf")}
    if settings.way == "crossed":
        return lambda case: crossed.verdicts(case, folder, settings.programs, settings.p4c, settings.bmv2)
    switch = stack.enter_context(live.Switch(settings.programs))
    return lambda case: {settings.way: switch.play(case, folder, settings.way)}


def keep(settings: Settings, case: Case, pair: str, verdict: Verdict, play: Callable[[Case], dict[str, Verdict]]) -> str:
    """Writes the program, and the smallest that ends so; the line that tells of it."""
    name = f"{case.name}.{pair.replace(', ', '-').replace(' ', '-')}"
    small = case
    if settings.minimise and verdict.kind in ("differs", "crashed"):
        small = minimise(case, lambda one: play(one)[pair].kind == verdict.kind)
    for suffix, one in (("", small), (".whole", case)):
        (settings.out / f"{name}{suffix}.p4").write_text(one.source(), encoding="utf-8")
        (settings.out / f"{name}{suffix}.stf").write_text(cases.stf(one), encoding="utf-8")
    first = (verdict.said.strip().splitlines() or [""])[0]
    return f"{case.name}: {pair}: {verdict.kind}: {first} (kept as {settings.out / name}.p4)"


def report(total: Total, settings: Settings, seed: int, seconds: float) -> None:
    programs = _counted(total)
    print(
        f"{settings.way}: {programs} programs from seed {seed}, {total.packets} packets, {total.out} of them leave "
        f"({seconds:.0f} s, {programs / seconds:.1f} programs/s)"
    )
    for line in _rows(total):
        print(line)


def _rows(total: Total) -> Iterator[str]:
    for pair in dict.fromkeys(pair for pair, _ in sorted(total.ends)):
        yield f"  {pair}: " + ", ".join(f"{n} {kind}" for (one, kind), n in sorted(total.ends.items()) if one == pair)
    kinds = ("bit", "int", "bool", "enum", "type", "typedef")
    for way in dict.fromkeys(way for way, _ in sorted(total.given)):
        yield f"  action data by {way}: " + ", ".join(f"{kind} {total.given[way, kind]}" for kind in kinds)


if __name__ == "__main__":
    sys.exit(main())
