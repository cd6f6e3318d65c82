"""Makes random programs, and compares their output with the specification; exit status 1 if any differs. See README.md."""

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
from tools.oracle_programs import cases, crossed, known, live, p4c_limits, snippets, stf_run
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
    peers: bool
    """Differences of the compiler and switch beside ours are kept and minimised, too."""


@dataclass
class Total:
    """What a run counts. ends: by pair of compiler and switch (or way), and kind of verdict."""

    ends: Counter[tuple[str, str]] = field(default_factory=Counter)
    packets: int = 0
    out: int = 0
    given: Counter[tuple[str, str]] = field(default_factory=Counter)
    found: list[str] = field(default_factory=list)
    ours: int = 0
    """Verdicts that are a matter of ours."""
    faults: dict[str, list[str]] = field(default_factory=dict)
    """Known faults of the others, with the programs whose differences they explain."""
    skipped: Counter[str] = field(default_factory=Counter)
    """Programs without a run, by p4c's reason to refuse them."""

    def add(self, other: Total) -> None:
        self.ends += other.ends
        self.packets += other.packets
        self.out += other.out
        self.given += other.given
        self.found += other.found
        self.ours += other.ours
        for fault, names in other.faults.items():
            self.faults.setdefault(fault, []).extend(names)
        self.skipped += other.skipped


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.oracle_programs", description=__doc__)
    parser.add_argument("--programs", type=int, default=5000, help="how many (crossed: that p4c takes)")
    parser.add_argument("--seed", type=int, default=1, help="of the first; the others follow")
    parser.add_argument("--packets", type=int, default=8, help="for each program")
    parser.add_argument("--by", choices=WAYS, default="stf", help="how entries and packets come (crossed: also by p4c and BMv2)")
    parser.add_argument("--bin", type=Path, help="folder of fairlane-compile, fairlane-stf and fairlane-switch")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--no-minimise", action="store_true", help="keep programs that differ as they are")
    parser.add_argument("--minimise-peers", action="store_true", help="crossed: keep and minimise differences of p4c and BMv2, too")
    parser.add_argument("--out", type=Path, default=ROOT / "build/oracle_programs", help="for the programs that differ")
    arguments = parser.parse_args()
    stf = arguments.bin / "fairlane-stf" if arguments.bin else probes.program("fairlane-stf")
    if stf is None or not stf.is_file():
        parser.error("fairlane-stf is not built: run `make build`")
    p4c, bmv2 = shutil.which("p4c-bm2-ss"), process.why_absent()
    if arguments.by == "crossed" and p4c is None and bmv2 is not None:
        parser.error(f"there is nothing to cross with: p4c-bm2-ss is not in PATH, {bmv2}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    settings = Settings(
        arguments.by, arguments.packets, stf.parent, arguments.out, p4c, bmv2 is None, not arguments.no_minimise, arguments.minimise_peers
    )
    begun = time.monotonic()
    total = run(settings, arguments.seed, arguments.programs, arguments.jobs)
    report(total, settings, arguments.seed, time.monotonic() - begun)
    return 1 if total.ours else 0


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
            if settings.way == "crossed" and settings.p4c and (reason := p4c_limits.refused(case.program)):
                total.skipped[reason] += 1
                continue
            total.packets += len(case.expected)
            total.out += sum(packet is not None for packet in case.expected)
            total.given += case.given
            found = play(case)
            for pair, verdict in found.items():
                total.ends[pair, verdict.kind] += 1
                if verdict.kind == "passed":
                    continue
                ours = crossed.ours(pair, found)
                total.ours += ours
                if verdict.kind == "known":
                    names = total.faults.setdefault(verdict.said, [])
                    names += [case.name] if case.name not in names else []
                if ours or verdict.kind in ("differs", "crashed") or (verdict.kind == "known" and settings.peers):
                    total.found.append(keep(settings, case, pair, verdict, play, ours))
    return total


def player(settings: Settings, folder: Path, stack: ExitStack) -> Callable[[Case], dict[str, Verdict]]:
    if settings.way == "stf":
        return lambda case: {"stf": stf_run.play(case, folder, settings.programs / "fairlane-stf")}
    if settings.way == "crossed":
        return lambda case: crossed.verdicts(case, folder, settings.programs, settings.p4c, settings.bmv2)
    switch = stack.enter_context(live.Switch(settings.programs))
    return lambda case: {settings.way: switch.play(case, folder, settings.way)}


def keep(settings: Settings, case: Case, pair: str, verdict: Verdict, play: Callable[[Case], dict[str, Verdict]], ours: bool) -> str:
    """Writes the program, and the smallest that ends so; the line that tells of it. A difference that is not ours is only listed, as a rule."""
    first = (verdict.said.strip().splitlines() or [""])[0]
    line = f"{case.name}: {pair}: {verdict.kind}: {first}"
    if not (ours or settings.peers):
        return line
    name = f"{case.name}.{pair.replace(', ', '-').replace(' ', '-')}"
    small = case
    if settings.minimise and verdict.kind != "refused":
        why = verdict.said if verdict.kind == "known" else None
        small = minimise(case, lambda one: (new := play(one)[pair]).kind == verdict.kind and why in (None, new.said))
    for suffix, one in (("", small), (".whole", case)):
        (settings.out / f"{name}{suffix}.p4").write_text(one.source(), encoding="utf-8")
        (settings.out / f"{name}{suffix}.stf").write_text(cases.stf(one), encoding="utf-8")
    return f"{line} (kept as {settings.out / name}.p4)"


def report(total: Total, settings: Settings, seed: int, seconds: float) -> None:
    programs = _counted(total)
    print(
        f"{settings.way}: {programs} programs from seed {seed}, {total.packets} packets, {total.out} of them leave "
        f"({seconds:.0f} s, {programs / seconds:.1f} programs/s)"
    )
    for line in [*_rows(total), *_others(total)]:
        print(line)


def _rows(total: Total) -> Iterator[str]:
    for pair in dict.fromkeys(pair for pair, _ in sorted(total.ends)):
        yield f"  {pair}: " + ", ".join(f"{n} {kind}" for (one, kind), n in sorted(total.ends.items()) if one == pair)
    kinds = ("bit", "int", "bool", "enum", "type", "typedef")
    for way in dict.fromkeys(way for way, _ in sorted(total.given)):
        yield f"  action data by {way}: " + ", ".join(f"{kind} {total.given[way, kind]}" for kind in kinds)


def _others(total: Total) -> Iterator[str]:
    """What the compiler and switch beside ours make of the programs."""
    if total.skipped:
        reasons = ", ".join(f"{n} {reason}" for reason, n in total.skipped.most_common())
        yield f"  {total.skipped.total()} programs skipped, which p4c or BMv2 refuses: {reasons}"
    for names, programs in sorted(total.faults.items()):
        yield f"  known, {names}: {len(programs)} ({', '.join(programs)})"
    for fault in known.FAULTS:
        if any(fault.name in names for names in total.faults):
            yield f"    {fault.name}, {fault.whose}: {fault.why}"
            yield f"    evidence: {fault.evidence}"


if __name__ == "__main__":
    sys.exit(main())
