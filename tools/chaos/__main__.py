"""make chaos: faults in a seeded order, and how each run ended.

    python -m tools.chaos [--seed 1] [--faults 30] [--only mininet] [--out results/chaos]

Each fault strikes a command that runs: on Mininet, in virtual time, with a live page, or a study. In order means: an exit code that the fault may lead to, no traceback, nothing left behind
once `fairlane clean` has run, raw records where a run ended without results for want of something, and no run called true that was hit where its figures
suffer. Exit code 1 where one is not. Needs root, for Mininet and for small disks.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fairlane import errors, probes
from fairlane.fabrics import leftovers
from tools.chaos.faults import CLOCK, FAULTS, UNTRUE, Fault
from tools.chaos.subject import ROOT, Place, Subject

_HANGS_AFTER_S = 90.0
_FIRST_PORT = 12059
_PORTS_OF_A_SEED = 2000
"""More than BMv2's Thrift ports are above its P4Runtime ports, so that two seeds can strike at once."""


@dataclasses.dataclass(frozen=True)
class Ended:
    """code: None where it hung. wrong: what is not in order, empty for none."""

    seed: int
    number: int
    fault: str
    struck: str
    code: int | None
    verdict: str
    said: str
    wrong: list[str]
    seconds: float


@contextmanager
def _disk(folder: Path, kilobytes: int) -> Iterator[None]:
    """A file system of that size at the folder; 0: none of its own."""
    if not kilobytes:
        yield
        return
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "chaos", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False)


def strike(fault: Fault, seed: int, number: int, work: Path) -> Ended:
    """One fault, at an instant that seed and number draw."""
    rng = random.Random(f"{seed}/{number}/{fault.key}")
    folder = work / f"{seed}-{number}"
    folder.mkdir()
    begun = time.monotonic()
    before = set(_interfaces())
    with _disk(folder, fault.disk_kb):
        subject = Subject(
            fault.place, folder, _FIRST_PORT + _PORTS_OF_A_SEED * (seed % 10) + 10 * (number % 50), fault.arguments, fault.limits
        )
        struck = (fault.limits and f"ulimit {fault.limits}") or (f"a disk of {fault.disk_kb} kB" if fault.disk_kb else "")
        if fault.strike is not None:
            if subject.wait_until_up():
                time.sleep(rng.uniform(0.0, 2.0 if subject.on_mininet else 0.3))
            try:
                struck = fault.strike(subject, rng)
            except LookupError as error:
                struck = f"nothing to hit: {error}"
            except AssertionError as error:
                struck = f"FOUND: {error}"
        try:
            code = subject.wait(_HANGS_AFTER_S)
        finally:
            subject.end()
        wrong = ["it hung"] if code is None else [] if code in fault.ends else [f"exit code {code}, not one of {fault.ends}"]
        if fault.place is Place.STUDY and code != 0:
            # Continues where it was.
            code = Subject(fault.place, folder, 0, (), "").wait(_HANGS_AFTER_S)
            wrong += [] if code == 0 else [f"the study does not go on: {code}"]
        said = subject.printed()
        verdict, lost = _verdict(subject, code)
        wrong += lost
        if struck.startswith("FOUND"):
            wrong.append(struck)
        if "Traceback (most recent call last)" in said:
            wrong.append("a traceback")
        if fault.marked and code == 0 and verdict not in UNTRUE and not struck.startswith("nothing"):
            wrong.append(f"verdict {verdict}")
        if code == -9 and subject.on_mininet:
            subprocess.run([sys.executable, "-m", "fairlane", "clean"], cwd=ROOT, capture_output=True, check=False)
        wrong += _left(subject, before)
    last = next((line for line in reversed(said.strip().splitlines()) if line.startswith("fairlane:")), "")
    return Ended(seed, number, fault.key, struck, code, verdict, last[:300], wrong, round(time.monotonic() - begun, 1))


def _verdict(subject: Subject, code: int | None) -> tuple[str, list[str]]:
    """What a run says of itself, and what it lost."""
    if subject.place is Place.STUDY:
        return "", [] if (subject.out / "runs.csv").exists() or code != 0 else ["no runs.csv"]
    summary = subject.out / "summary.json"
    if code == 0:
        if not summary.exists():
            return "", ["exit code 0 without results"]
        return json.loads(summary.read_text())["fidelity"]["verdict"], []
    promised = "raw records are in" in subject.printed()
    if promised and not (subject.out / "raw").is_dir():
        return "", ["the raw records that it speaks of are not there"]
    return "", [] if promised or not subject.out.exists() else [f"code {code}, and a result folder"]


def _interfaces() -> list[str]:
    return [path.name for path in Path("/sys/class/net").iterdir()]


def _left(subject: Subject, before: set[str]) -> list[str]:
    """Processes, interfaces and records that stay; asked for a second, as a kernel takes its time."""
    end = time.monotonic() + 5.0
    while True:
        found = [f"process {pid} is left" for pid in subject.session()]
        owned = [r for r in leftovers.records() if r.owner.pid == subject.pid]
        found += [f"the record {r.prefix} is left" for r in owned]
        found += [f"interface {name} is left" for r in owned for name in leftovers.interfaces(r.prefix)]
        if not found or time.monotonic() > end:
            return found
        time.sleep(0.2)


def order(known: Sequence[Fault], seed: int, count: int) -> list[Fault]:
    """Every fault once before any comes twice, in an order that the seed draws."""
    rng = random.Random(seed)
    found: list[Fault] = []
    while len(found) < count:
        found += rng.sample(known, len(known))
    return found[:count]


def _table(ended: list[Ended]) -> str:
    lines = [f"{'fault':45}{'times':>6}{'bad':>5}   ended with"]
    for key in sorted({e.fault for e in ended}):
        those = [e for e in ended if e.fault == key]
        codes = Counter(f"{'hung' if e.code is None else e.code}{f' {e.verdict}' if e.verdict else ''}" for e in those)
        lines.append(
            f"{key:45}{len(those):>6}{sum(bool(e.wrong) for e in those):>5}   {', '.join(f'{n} x {code}' for code, n in codes.most_common())}"
        )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seed", type=int, default=1, help="of order, instants and targets (default: 1)")
    parser.add_argument("--faults", type=int, help="how many (default: each once)")
    parser.add_argument("--only", default="", help="those whose name contains this")
    parser.add_argument("--clock", action="store_true", help="also step this machine's clock by 2 s and back, which all its programs see")
    parser.add_argument("--out", type=Path, default=Path("results/chaos"), help="folder for faults.jsonl (default: results/chaos)")
    parser.add_argument("--table", action="store_true", help="only the table of the faults in --out")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    file = arguments.out / "faults.jsonl"
    if not arguments.table:
        if not probes.is_root():
            print("chaos: needs root", file=sys.stderr)
            return errors.CANNOT_RUN_HERE
        faults = FAULTS + (CLOCK,) * arguments.clock
        if probes.program("simple_switch_grpc") is None:
            print("chaos: no simple_switch_grpc in PATH: no faults on BMv2", flush=True)
            faults = tuple(f for f in faults if f.place is not Place.BMV2)
        known = [f for f in faults if arguments.only in f.key]
        if not known:
            parser.error(f"--only {arguments.only}: no such fault; there are {', '.join(f.key for f in faults)}")
        with tempfile.TemporaryDirectory(prefix="fairlane-chaos-") as name, file.open("a") as log:
            for number, fault in enumerate(order(known, arguments.seed, arguments.faults or len(known))):
                try:
                    ended = strike(fault, arguments.seed, number, Path(name))
                except KeyboardInterrupt:
                    print("chaos: ended early; what struck before counts", flush=True)
                    break
                log.write(json.dumps(dataclasses.asdict(ended)) + "\n")
                log.flush()
                wrong = f"  WRONG: {'; '.join(ended.wrong)}" if ended.wrong else ""
                print(f"{number + 1:3} {ended.fault} ({ended.struck}): {ended.code} {ended.verdict} {ended.said}{wrong}", flush=True)
                if ended.wrong:
                    kept = arguments.out / f"{arguments.seed}-{number}.log"
                    shutil.copyfile(Path(name) / f"{arguments.seed}-{number}.log", kept)
    rows: list[dict[str, Any]] = [json.loads(line) for line in file.read_text().splitlines()]
    ended_all = [Ended(**row) for row in rows]
    print(_table(ended_all))
    bad = sum(bool(e.wrong) for e in ended_all)
    print(f"{len(ended_all)} faults over {len({e.seed for e in ended_all})} seeds, {bad} not in order")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
