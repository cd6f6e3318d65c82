"""Runs for lab 9: the sending rates of SSVP's figure 3, from the experiment `ssvp-3b` (persistent sources, additive equation 5).

    python -m fairlane.labs.09.runs                  how smooth both are at each buffer, by labs/09/figure.py
    python -m fairlane.labs.09.runs --plot FILE.png  the figure: rates of three flows and their sum, SSVP left, SSVP-ADP right

A run takes about a second of processor time. What it gave is kept in build/lab-09 and taken again while nothing that it depends on has changed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fairlane.arrays import np
from fairlane.experiments import loader
from fairlane.fabrics import targets, virtual_fabric
from fairlane.fabrics.progress import Silent
from fairlane.labs.grading import labs
from fairlane.results import palette, series
from fairlane.studies import store

EXPERIMENT = "ssvp-3b"
KINDS = ("ssvp", "ssvp-adp")
BUFFERS = {1: "b=1", 2: "b=2", 3: "b=3", 4: "base", 8: "b=8"}
"""Variants of the experiment, by the bottleneck's buffer in packets. The paper's is half of the bandwidth-delay product, 4 packets."""
PRODUCT_PACKETS = 8
PERIOD_S = 0.15
KEPT = Path("build") / "lab-09"
_FROM_S, _TO_S = 2.0, 60.0


def rates(kind: str, buffer_packets: int = 4, seed: int = 1) -> list[list[float]]:
    """The rate that each of three flows sets, averaged over 150 ms, in bit/s, from 2 to 60 s: a row for each flow."""
    inputs = store.digest_of(
        [store.program_digest(), store.algorithm_digest(kind), Path(__file__).read_text(encoding="utf-8"), buffer_packets, seed]
    )
    path = KEPT / f"{kind}-{buffer_packets}-{seed}-{inputs[:16]}.json"
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        found = _run(kind, buffer_packets, seed)
    KEPT.mkdir(parents=True, exist_ok=True)
    for old in KEPT.glob(f"{kind}-{buffer_packets}-{seed}-*.json"):
        old.unlink(missing_ok=True)
    unfinished = path.with_suffix(f".{os.getpid()}.tmp")
    unfinished.write_text(json.dumps(found), encoding="utf-8", newline="\n")
    unfinished.replace(path)
    return found


def _run(kind: str, buffer_packets: int, seed: int) -> list[list[float]]:
    experiment = loader.load(loader.find(EXPERIMENT), None, seed, [f"kind={kind}", f"variant={BUFFERS[buffer_packets]}"])
    with TemporaryDirectory(prefix="fairlane-lab-09-") as name:
        outcome = virtual_fabric.run(experiment, virtual_fabric.Options(targets.compiler()), Path(name), Silent())
        recorded = series.load(Path(name), experiment, outcome.timing)
    return [_averaged(record.sending_rate) for record in recorded.flows]


def _averaged(set_to: Sequence[tuple[float, float]]) -> list[float]:
    """Means over the periods of a rate that changes at some instants. set_to: (seconds, bit/s)."""
    times, values = (np.asarray(column, dtype=float) for column in zip(*set_to))
    ends = np.concatenate([times, [_TO_S + PERIOD_S]])
    bits = np.concatenate([[0.0], np.cumsum(values * np.diff(ends))])
    edges = np.arange(_FROM_S, _TO_S + 1e-9, PERIOD_S)
    return (np.diff(np.interp(edges, ends, bits)) / PERIOD_S).tolist()


def plot(path: Path, buffer_packets: int = 4) -> None:
    """The paper's figure 3, from our runs."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, both = plt.subplots(1, 2, figsize=(11, 4), sharey=True, constrained_layout=True)
    for axes, kind in zip(both, KINDS):
        found = [[rate / 1e3 for rate in flow] for flow in rates(kind, buffer_packets)]
        times = [_FROM_S + PERIOD_S * (period + 0.5) for period in range(len(found[0]))]
        for number, flow in enumerate(found):
            axes.plot(times, flow, linewidth=0.9, color=palette.OTHERS[number], label=f"flow {number}")
        axes.plot(times, [sum(at) for at in zip(*found)], linewidth=1.2, color="black", label="their sum")
        axes.set_title(f"{palette.label(kind)}, a buffer of {buffer_packets} packets")
        axes.set_xlabel("time (s)")
        axes.grid(alpha=0.3)
    both[0].set_ylim(0, 1.05 * max(max(map(sum, zip(*rates(kind, buffer_packets)))) for kind in KINDS) / 1e3)
    both[0].set_ylabel("sending rate, averaged over 150 ms (kb/s)")
    both[1].legend(loc="upper right", fontsize=8, ncols=4)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _student(folder: Path) -> Any:
    spec = importlib.util.spec_from_file_location("lab_figure", folder / "figure.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(argv: list[str] | None = None) -> int:
    """A table, or a picture."""
    parser = argparse.ArgumentParser(prog="python -m fairlane.labs.09.runs", description="SSVP's figure 3: runs for lab 9.")
    parser.add_argument("--plot", type=Path, metavar="FILE.png", help="draw the figure instead of the table")
    parser.add_argument("--buffer", type=int, choices=BUFFERS, default=4, help="of the figure, in packets; default: %(default)s")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--answer", type=Path, metavar="FOLDER", help="where figure.py is; default: labs/09, 09, or the current folder")
    args = parser.parse_args(argv)
    if args.plot is not None:
        plot(args.plot, args.buffer)
        return 0
    figure = _student(args.answer or labs.answer(labs.load("09")))
    print("buffer  equation 17   CoV of SSVP  of SSVP-ADP   ratio")
    for buffer_packets in BUFFERS:
        fixed, adaptive = (figure.smoothness(rates(kind, buffer_packets, args.seed)) for kind in KINDS)
        ratio = adaptive / fixed if fixed else float("nan")
        print(
            f"{buffer_packets:6}  beta {figure.beta(buffer_packets, PRODUCT_PACKETS):6.3f}  {fixed:12.4f}  {adaptive:11.4f}  {ratio:6.3f}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
