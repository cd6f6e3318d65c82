"""Sends generated packets through our switch and BMv2; exit status 1 when any differs. See README.md."""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import time
from pathlib import Path

from fairlane import probes
from tools.bmv2 import process
from tools.differential import suite
from tools.differential.compare import Comparison, Differs, Result
from tools.differential.minimise import minimise


def main() -> int:
    cases = suite.load()
    parser = argparse.ArgumentParser(prog="python -m tools.differential", description=__doc__)
    parser.add_argument("program", nargs="*", help=f"of {', '.join(c.name for c in cases)} (else all)")
    parser.add_argument("--packets", type=int, default=1_000_000, help="for each program")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--json",
        choices=("ours", "p4c", "crossed"),
        default="ours",
        help="the compiler of the JSON that both switches run; crossed: ours for our switch, p4c for BMv2",
    )
    parser.add_argument(
        "--out", type=Path, default=suite.ROOT / "build/differential", help="for programs, set-ups and tests of what differs"
    )
    arguments = parser.parse_args()
    reason = process.why_absent()
    if reason is not None:
        parser.error(f"there is no BMv2 to compare with: {reason}")
    wanted = arguments.program or [c.name for c in cases]
    unknown = set(wanted) - {c.name for c in cases}
    if unknown:
        parser.error(f"unknown program {', '.join(sorted(unknown))}")
    # So that the switches end with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    arguments.out.mkdir(parents=True, exist_ok=True)
    good = True
    for case in cases:
        if case.name in wanted:
            good &= run(case, arguments.packets, arguments.seed, arguments.json, arguments.out)
    return 0 if good else 1


def run(case: suite.Case, packets: int, seed: int, compiler: str, out: Path) -> bool:
    """One program; prints one line when all is the same, else what differs."""
    crossed = compiler == "crossed"
    bmv2_json = compile_with("p4c", case, out) if crossed else None
    ours = compile_with("ours" if crossed else compiler, case, out)
    comparison = Comparison.prepare(case, ours, out, tool("fairlane-replay"), seed, bmv2_json)
    shown = [time.monotonic()]

    def progress(result: Result) -> None:
        if time.monotonic() - shown[0] > 10:
            shown[0] = time.monotonic()
            print(f"{case.name}: {result.packets} packets ({result.packets / result.seconds:.0f}/s)", file=sys.stderr, flush=True)

    try:
        result = comparison.run(packets, progress)
    except Differs as differs:
        print(f"{case.name}: DIFFERS in batch {differs.number}, seed {seed}: {differs}", flush=True)
        test = minimise(comparison, differs.packets) if differs.packets else None
        if test is None:
            print("  not with this batch's packets alone, one at a time: order, queues or what came before matter", flush=True)
        else:
            path = out / f"{case.name}.differs.stf"
            path.write_text(test, encoding="utf-8")
            print(f"{test}  (kept as {path})", flush=True)
        return False
    order = f", {result.reordered} batches in another order at a port" if case.order == "none" else ""
    print(
        f"{case.name}: {result.packets} packets, no difference: {result.out} out, {result.dropped} dropped, "
        f"{result.cells} registers and counters equal{order} ({result.seconds:.0f} s)",
        flush=True,
    )
    return True


def compile_with(compiler: str, case: suite.Case, out: Path) -> Path:
    path = out / f"{case.name}.{compiler}.json"
    program = tool("fairlane-compile" if compiler == "ours" else "p4c-bm2-ss")
    done = subprocess.run([program, "-o", path, case.program], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{case.program}: {program} refuses it:\n{done.stderr}")
    return path


def tool(name: str) -> Path:
    found = probes.program(name)
    if found is None:
        raise SystemExit(f"{name} is not installed: run `make build`")
    return found


if __name__ == "__main__":
    sys.exit(main())
