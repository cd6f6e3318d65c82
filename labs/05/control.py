"""Runs with a student's `counting.py` in place of the controller's own, and two pictures of the results.

    python -m fairlane.labs.05.control            counting.py and connection_sketch.p4 of labs/05, of 05, or of the current folder
    python -m fairlane.labs.05.control FOLDER     those of another folder

draws results/lab-05/counting.png: n of the bottleneck in each second of joins.toml, as both ways of counting have it, and how far off the
sketch's estimate is for 1 to 10,000 connections.
"""

from __future__ import annotations

import importlib.util
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Literal
from unittest import mock

from fairlane import api
from fairlane.controller import core, sketch
from fairlane.p4src.schemes.fair_rate import scheme as fair_rate

FOLDER = Path(__file__).resolve().parent
SLOTS = 1024
SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)


@contextmanager
def installed(counting: ModuleType | SimpleNamespace) -> Iterator[None]:
    """The controller of runs in this process counts by the classes and functions of a module."""
    with (
        mock.patch.object(core, "ConnectionCounter", counting.ConnectionCounter),
        mock.patch.object(fair_rate, "fair_rate_bps", counting.fair_rate_bps),
        mock.patch.object(sketch, "estimate", counting.estimate),
    ):
        yield


def run(counting: ModuleType | SimpleNamespace, counter: Literal["exact", "sketch"], program: Path, scratch: Path) -> api.Result:
    """joins.toml with one of the counters. program: the student's connection_sketch.p4. scratch: a folder for the experiment's file."""
    path = scratch / f"joins-{counter}.toml"
    path.write_text((FOLDER / "joins.toml").read_text().replace("[topology]", f'[control]\ncounter = "{counter}"\n\n[topology]', 1))
    with installed(counting):
        return api.run(path, programs=[program] if counter == "sketch" else [])


def errors(counting: ModuleType, slots: int = SLOTS) -> list[tuple[int, float, float]]:
    """(n, estimate over n less one, stated standard error) of connections that hit slots by chance."""
    draw = random.Random(5)
    return [
        (n, counting.estimate(len({draw.randrange(slots) for _ in range(n)}), slots) / n - 1, counting.standard_error(n, slots))
        for n in SIZES
    ]


def main(folder: Path) -> int:
    import tempfile

    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    spec = importlib.util.spec_from_file_location("counting", folder / "counting.py")
    assert spec is not None and spec.loader is not None
    counting = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(counting)
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    with tempfile.TemporaryDirectory() as scratch:
        for counter, style in (("exact", "-"), ("sketch", "--")):
            result = run(counting, counter, folder / "connection_sketch.p4", Path(scratch))
            rates = result.fair_rates[(result.fair_rates["link"] == "s1->s2") & (result.fair_rates["time_s"] >= 0)]
            left.step(rates["time_s"], rates["connections"], style, where="post", label=counter)
            exact = result.checks.set_index("name").loc["seconds with n exact", "value"]
            print(f"{counter:6} n is right in {100 * exact:.0f}% of the seconds from {result.summary['window_s'][0]:g} s on")
    left.set(xlabel="time (s)", ylabel="n of s1->s2", title="joins.toml")
    left.legend()
    sizes, off, stated = zip(*errors(counting), strict=True)
    right.plot(sizes, [100 * e for e in off], "o", label="estimate")
    for sign in (-3, 3):
        right.plot(sizes, [100 * sign * e for e in stated], color="0.6", label="3 standard errors" if sign > 0 else None)
    right.set(xscale="log", xlabel="connections", ylabel="error (%)", title=f"linear counting, {SLOTS} slots")
    right.legend()
    picture = Path("results") / "lab-05" / "counting.png"
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture)
    print(f"plot: {picture}")
    return 0


if __name__ == "__main__":
    from fairlane.labs.grading import labs

    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else labs.answer(labs.load("05"))))
