"""Counts how our P4 compiler and switch stand against a checkout of p4c: see README.md."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from fairlane import probes
from tools.bmv2 import process
from tools.conformance import errors, generated_tests, p4info, panics, psa, random_programs, samples, stf, warnings
from tools.conformance.checkout import Checkout, NoCheckout
from tools.conformance.compilers import Compiler
from tools.conformance.report import Count, Known, show
from tools.conformance.runs import Runner
from tools.conformance.suite import NOWHERE, Suite

ROOT = Path(__file__).resolve().parents[2]
KINDS: dict[str, Callable[[Suite], Count | list[Count]]] = {
    "samples": samples.count,
    "errors": errors.count,
    "warnings": warnings.count,
    "p4info": p4info.count,
    "stf": stf.count,
    "psa": psa.count,
    "panics": panics.count,
    "testgen": generated_tests.count,
    "random": random_programs.count,
}
# The needs of each kind beyond our compiler.
NEEDS = {
    "samples": ("p4c-bm2-ss",),
    "p4info": ("p4c-bm2-ss",),
    "stf": ("p4c-bm2-ss", "fairlane-stf"),
    "psa": ("fairlane-stf",),
    "testgen": ("p4c-bm2-ss", "fairlane-stf", "p4testgen"),
    "random": ("p4c-bm2-ss", "fairlane-replay", "p4smith"),
}
# Kinds that also need BMv2. Without their programs they are left out, unless --only names them.
WITH_BMV2 = ("testgen", "random")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.conformance", description=__doc__)
    parser.add_argument("--p4c", type=Path, required=True, metavar="DIR", help="a checkout of p4c")
    parser.add_argument("--only", action="append", choices=list(KINDS), help="one kind of count; may be given again")
    parser.add_argument("--bin", type=Path, metavar="DIR", help="the folder of fairlane-compile and fairlane-stf (else .venv/bin)")
    parser.add_argument("--random", type=int, default=Suite.random, metavar="N", help="random programs (%(default)s)")
    parser.add_argument(
        "--seed", type=int, default=Suite.seed, help="of the first random program; the next has the next seed (%(default)s)"
    )
    parser.add_argument("--packets", type=int, default=Suite.packets, metavar="N", help="for each random program (%(default)s)")
    parser.add_argument("--tests", type=int, default=Suite.tests, metavar="N", help="generated packet tests for each sample (%(default)s)")
    parser.add_argument("--every", type=int, default=Suite.every, metavar="N", help="generated tests for every Nth sample (%(default)s)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="programs at a time (else as many as processors)")
    parser.add_argument("--cache", type=Path, default=ROOT / "build/conformance", metavar="DIR", help="where results are kept")
    parser.add_argument("--no-cache", action="store_true", help="run everything")
    parser.add_argument("--verbose", action="store_true", help="messages as they are: equal causes do not meet")
    arguments = parser.parse_args()
    if arguments.bin is not None:
        os.environ["FAIRLANE_BIN"] = str(arguments.bin.resolve())
    kinds = arguments.only or list(KINDS)
    for kind in WITH_BMV2:
        absent = _absent(kind)
        if kind in kinds and absent:
            if arguments.only:
                parser.error(f"{kind}: {absent}; tools/conformance/README.md says how to get it")
            print(f"{kind}: left out: {absent}", flush=True)
            kinds.remove(kind)
    try:
        checkout = Checkout.at(arguments.p4c)
        programs = {name: _program(name) for name in {"fairlane-compile", *(n for k in kinds for n in NEEDS.get(k, ()))}}
    except (NoCheckout, FileNotFoundError) as error:
        parser.error(str(error))
    runner = Runner(None if arguments.no_cache else arguments.cache)
    suite = Suite(
        checkout=checkout,
        ours=Compiler(programs["fairlane-compile"], checkout, runner, ours=True),
        p4c=Compiler(programs.get("p4c-bm2-ss", NOWHERE), checkout, runner, ours=False),
        stf=programs.get("fairlane-stf", NOWHERE),
        runner=runner,
        jobs=arguments.jobs,
        replay=programs.get("fairlane-replay", NOWHERE),
        smith=programs.get("p4smith", NOWHERE),
        testgen=programs.get("p4testgen", NOWHERE),
        random=arguments.random,
        packets=arguments.packets,
        seed=arguments.seed,
        tests=arguments.tests,
        every=arguments.every,
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


def _absent(kind: str) -> str | None:
    """What a kind with BMv2 lacks."""
    missing = [name for name in NEEDS[kind] if probes.program(name) is None]
    return f"{', '.join(missing)} not installed" if missing else process.why_absent()


def _program(name: str) -> Path:
    found = probes.program(name)
    if found is None:
        raise FileNotFoundError(f"{name} is not installed: `make build` makes ours; tools/conformance/README.md says how to get p4c")
    # The name says which program it is: a link is not followed.
    return found.absolute()


if __name__ == "__main__":
    sys.exit(main())
