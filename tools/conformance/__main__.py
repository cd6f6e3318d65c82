"""Counts how our P4 compiler and switch stand against a checkout of p4c: see README.md."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from fairlane import probes
from tools.conformance import errors, p4info, panics, psa, samples, stf, warnings
from tools.conformance.checkout import Checkout, NoCheckout
from tools.conformance.compilers import Compiler
from tools.conformance.report import Count, Known, show
from tools.conformance.runs import Runner
from tools.conformance.suite import Suite

ROOT = Path(__file__).resolve().parents[2]
KINDS: dict[str, Callable[[Suite], Count | list[Count]]] = {
    "samples": samples.count,
    "errors": errors.count,
    "warnings": warnings.count,
    "p4info": p4info.count,
    "stf": stf.count,
    "psa": psa.count,
    "panics": panics.count,
}
# The needs of each kind beyond our compiler.
NEEDS = {"samples": ("p4c-bm2-ss",), "p4info": ("p4c-bm2-ss",), "stf": ("p4c-bm2-ss", "fairlane-stf"), "psa": ("fairlane-stf",)}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.conformance", description=__doc__)
    parser.add_argument("--p4c", type=Path, required=True, metavar="DIR", help="a checkout of p4c")
    parser.add_argument("--only", action="append", choices=list(KINDS), help="one kind of count; may be given again")
    parser.add_argument("--bin", type=Path, metavar="DIR", help="the folder of fairlane-compile and fairlane-stf (else .venv/bin)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="programs at a time (else as many as processors)")
    parser.add_argument("--cache", type=Path, default=ROOT / "build/conformance", metavar="DIR", help="where results are kept")
    parser.add_argument("--no-cache", action="store_true", help="run everything")
    parser.add_argument("--verbose", action="store_true", help="messages as they are: equal causes do not meet")
    arguments = parser.parse_args()
    if arguments.bin is not None:
        os.environ["FAIRLANE_BIN"] = str(arguments.bin.resolve())
    kinds = arguments.only or list(KINDS)
    try:
        checkout = Checkout.at(arguments.p4c)
        programs = {name: _program(name) for name in {"fairlane-compile", *(n for k in kinds for n in NEEDS.get(k, ()))}}
    except (NoCheckout, FileNotFoundError) as error:
        parser.error(str(error))
    runner = Runner(None if arguments.no_cache else arguments.cache)
    nowhere = Path("/nonexistent")
    suite = Suite(
        checkout=checkout,
        ours=Compiler(programs["fairlane-compile"], checkout, runner, ours=True),
        p4c=Compiler(programs.get("p4c-bm2-ss", nowhere), checkout, runner, ours=False),
        stf=programs.get("fairlane-stf", nowhere),
        runner=runner,
        jobs=arguments.jobs,
    )
    known = Known.load()
    as_filed = True
    for kind in kinds:
        started = time.monotonic()
        counts = KINDS[kind](suite)
        for count in counts if isinstance(counts, list) else [counts]:
            text, fine = show(count, known, arguments.verbose)
            print(text, flush=True)
            as_filed &= fine
        print(f"  ({time.monotonic() - started:.1f} s)\n", flush=True)
    runner.forget_unused()
    return 0 if as_filed else 1


def _program(name: str) -> Path:
    found = probes.program(name)
    if found is None:
        raise FileNotFoundError(f"{name} is not installed: `make build` makes ours; tools/conformance/README.md says how to get p4c")
    return found.resolve()


if __name__ == "__main__":
    sys.exit(main())
