"""What every kind of count works with: the checkout, the programs under test, the cache, the number of jobs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tools.conformance.checkout import Checkout
from tools.conformance.compilers import Compiler
from tools.conformance.runs import Runner

T = TypeVar("T")
NOWHERE = Path("/nonexistent")


@dataclass(frozen=True)
class Suite:
    checkout: Checkout
    ours: Compiler
    p4c: Compiler
    stf: Path
    runner: Runner
    jobs: int
    replay: Path = NOWHERE
    smith: Path = NOWHERE
    testgen: Path = NOWHERE
    random: int = 2000
    packets: int = 200
    seed: int = 1
    tests: int = 10
    every: int = 1

    def map(self, work: Callable[[Path], T], programs: Iterable[Path]) -> list[tuple[Path, T]]:
        """The work on each program, in the programs' order; the work is in processes of its own, so threads do."""
        programs = list(programs)
        with ThreadPoolExecutor(self.jobs) as pool:
            return list(zip(programs, pool.map(work, programs), strict=True))

    @functools.cache  # noqa: B019 - one suite lives as long as the program
    def accepted_by_p4c(self) -> list[Path]:
        """The v1model samples for which p4c-bm2-ss writes a program."""
        return [p for p, compiled in self.map(self.p4c.compile, self.checkout.v1model_samples()) if compiled.accepted]
