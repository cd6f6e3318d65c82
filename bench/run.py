"""All benchmarks in one run (`make bench`): every part's table, then all goals with what this run made of them; each part's
measurements as JSON in a folder.

    python bench/run.py [--quick] [--only forward,packets] [--out results/bench]

About a quarter of an hour, three minutes with --quick (fewer rounds and shorter measurements: for a look, not for a record). A part that
cannot run here is reported with the reason, and the others run all the same.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import control
import forward
import packets
from veths import CannotRun, missing

ROOT = Path(__file__).resolve().parent.parent
CARGO_BENCH = [
    str(ROOT / "scripts" / "cargo"),
    "bench",
    "--manifest-path",
    str(ROOT / "switch" / "Cargo.toml"),
    "--locked",
    "-p",
    "fairlane-pipeline",
]


def run_forward(quick: bool, target: Path) -> list[tuple[bool, str]]:
    reason = missing()
    if reason:
        raise CannotRun(reason)
    result = forward.run(forward.Times(1.0, 0.4) if quick else forward.Times(), 1 if quick else 5, [64, 1000])
    return _finish(result, forward.table(result), forward.verdicts(result), target)


def run_packets(quick: bool, target: Path) -> list[tuple[bool, str]]:
    result = packets.run(50_000, 5_000, 1) if quick else packets.run(200_000, 20_000, 5)
    return _finish(result, packets.table(result), packets.verdicts(result), target)


def run_tables(quick: bool, target: Path) -> list[tuple[bool, str]]:
    command = [*CARGO_BENCH, "--bench", "tables", "--", "--json", str(target.resolve()), *(["--quick"] if quick else [])]
    if subprocess.run(command, check=False).returncode != 0:
        raise CannotRun("the benchmark of the tables failed")
    result = json.loads(target.read_text())
    most = max(row["entries"] for row in result["rows"])
    return [
        (
            row["flat"] <= result["flat_goal"],
            f"{row['table']}: a packet costs {row['flat']:.2f} times as much with {most:,} entries as with 10"
            f" (goal {result['flat_goal']:g})",
        )
        for row in result["rows"]
        if row["entries"] == most and row["table"].startswith("LPM")
    ]


def run_control(quick: bool, target: Path) -> list[tuple[bool, str]]:
    result = control.run(100_000, 1000, 2000, 3.0, 1) if quick else control.run(1_000_000, 1000, 20_000, 8.0, 3)
    return _finish(result, control.table(result), control.verdicts(result), target)


def run_virtual(quick: bool, _target: Path) -> list[tuple[bool, str]]:
    for arguments in (["--compare"],) if quick else (["--compare"], ["--growth"]):
        if subprocess.run([sys.executable, str(ROOT / "bench" / "virtual.py"), *arguments], check=False).returncode != 0:
            raise CannotRun(f"bench/virtual.py {arguments[0]} failed")
    return []


Part = Callable[[bool, Path], list[tuple[bool, str]]]
PARTS: dict[str, tuple[str, Part]] = {
    "forward": ("forwarding through network interfaces", run_forward),
    "packets": ("als.p4 without I/O, and compiling it", run_packets),
    "tables": ("lookups by kind and number of entries", run_tables),
    "control": ("inserts, and what reads and pushes do to traffic", run_control),
    "virtual": ("the network in virtual time", run_virtual),
}
NOT_QUICK = ("virtual",)


def _finish(result: dict, table: str, verdicts: list[tuple[bool, str]], target: Path) -> list[tuple[bool, str]]:
    result["verdicts"] = [{"met": met, "goal": text} for met, text in verdicts]
    target.write_text(json.dumps(result, indent=2) + "\n")
    print(table, flush=True)
    return verdicts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="about three minutes")
    parser.add_argument("--only", help=f"parts, separated by commas: {', '.join(PARTS)}")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "bench", help="folder for the measurements (default: results/bench)")
    arguments = parser.parse_args()
    wanted = arguments.only.split(",") if arguments.only else [part for part in PARTS if not (arguments.quick and part in NOT_QUICK)]
    unknown = [part for part in wanted if part not in PARTS]
    if unknown:
        parser.error(f"--only: there is no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    load = os.getloadavg()[0]
    if load > 0.5 * (os.cpu_count() or 1):
        print(f"the machine is busy (load {load:.1f}): compare rows with each other, not with other runs", file=sys.stderr)
    began, judged, failed = time.monotonic(), [], []
    for part in wanted:
        title, run = PARTS[part]
        print(f"\n== {part}: {title} ({time.monotonic() - began:.0f} s)\n", flush=True)
        try:
            judged += run(arguments.quick, arguments.out / f"{part}.json")
        except CannotRun as error:
            failed.append(part)
            print(f"cannot run: {error}", flush=True)
        except KeyboardInterrupt:
            return 130
    print(f"\n== goals ({time.monotonic() - began:.0f} s)\n")
    for met, text in judged:
        print(f"{'met' if met else 'MISSED':7}{text}")
    if failed:
        print(f"not measured: {', '.join(failed)}")
    print(f"\nmeasurements: {arguments.out}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
