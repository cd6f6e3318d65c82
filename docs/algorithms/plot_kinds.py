"""Draws KIND.png of each flow kind's page: `python docs/algorithms/plot_kinds.py [KIND ...]`, without names all of them.

Each row is one run of `fairlane run` in virtual time, by the command that the picture's page shows: sending rate (windows: goodput)
and loss against time, with the mean over the second half. Seeded: the same picture each time.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import pandas as pd

from fairlane.results import palette

FAIRLANE = Path(sys.executable).with_name("fairlane")
DAA_PATH = "--bottleneck 10mbit --rtt 10ms --queue red --buffer 250packets --start-jitter 5s --duration 1000 --seed 1"
SSVP_PATH = "--bottleneck 1mbit --rtt 64ms --buffer 4packets --start-jitter 1s --duration 60 --seed 1"
SSVP_SHARED = "--bottleneck 10mbit --rtt 64ms --buffer 40packets --start-jitter 1s --duration 60 --seed 1"
SHARED = "--set tcp.delayed_ack=false --bottleneck 10mbit --rtt 64ms --start-jitter 1s --duration 60 --seed 1"
MEDIA_PATH = "--set {kind}.max_rate_bps=1500000 --bottleneck 1mbit --rtt 100ms --buffer 37packets --duration 120 --seed 1"
TRABOL_PATH = "--bottleneck 100mbit --rtt 2ms --buffer 100packets --duration 120 --seed 1"


@dataclass(frozen=True)
class Run:
    """One row of a picture."""

    title: str
    command: str
    """What follows `fairlane run`."""
    bin_s: float = 1.0


PICTURES = {
    "als": (
        Run(
            "three flows, 3 Mb/s, one joins every 30 s",
            "dumbbell --flow als:1 --flow als:1@30s --flow als:1@60s --queue red --bottleneck 3mbit --rtt 20ms --duration 120 --seed 1",
        ),
    ),
    "rcp": (
        Run(
            "three flows, 10 Mb/s, one joins every 10 s",
            "dumbbell --flow rcp:1 --flow rcp:1@10s --flow rcp:1@20s --bottleneck 10mbit --rtt 60ms --buffer 4bdp --duration 40 --seed 1",
        ),
        Run("two flows and one TCP", "dumbbell --flow rcp:2 --flow tcp-sack:1 --bottleneck 10mbit --rtt 60ms --duration 40 --seed 1"),
    ),
    "xcp": (
        Run(
            "three flows, 10 Mb/s, one joins every 10 s",
            "dumbbell --flow xcp:1 --flow xcp:1@10s --flow xcp:1@20s --bottleneck 10mbit --rtt 60ms --duration 40 --seed 1",
        ),
        Run("two flows and one TCP", "dumbbell --flow xcp:2 --flow tcp-sack:1 --bottleneck 10mbit --rtt 60ms --duration 40 --seed 1"),
    ),
    "abc": (
        Run(
            "three flows, 10 Mb/s, one joins every 10 s",
            "dumbbell --flow abc:1 --flow abc:1@10s --flow abc:1@20s --bottleneck 10mbit --rtt 60ms --buffer 4bdp --duration 40 --seed 1",
        ),
        Run("one flow over a link that varies", "docs/examples/abc-walk.toml"),
    ),
    "aimd-rtcp": (
        Run("one TCP, two AIMD over RTCP [DAA fig 3]", f"dumbbell --flow tcp-reno:1 --flow aimd-rtcp:2 {DAA_PATH}", 5.0),
        Run(
            "the same, each report's loss by itself",
            f"dumbbell --flow tcp-reno:1 --flow aimd-rtcp:2 --set aimd-rtcp.smoothing=1 {DAA_PATH}",
            5.0,
        ),
    ),
    "daa": (
        Run("one TCP, two DAA [DAA fig 7]", f"dumbbell --flow tcp-reno:1 --flow daa:2 {DAA_PATH}", 5.0),
        Run(
            "the same, loss not rounded to 1/256",
            f'dumbbell --flow tcp-reno:1 --flow daa:2 --set daa.loss_resolution="exact" {DAA_PATH}',
            5.0,
        ),
    ),
    "cbr": (
        Run(
            "one TCP; 6 Mb/s more from 20 s, another 6 Mb/s from 40 s",
            "dumbbell --flow tcp-reno:1 --flow cbr:1@20s --flow cbr:1@40s --set cbr.rate_bps=6000000 --set cbr.pacing_jitter=0.2 "
            "--bottleneck 10mbit --rtt 64ms --duration 60 --seed 1",
        ),
    ),
    "ssvp": (
        Run("three flows, 1 Mb/s [SSVP fig 3]", f"dumbbell --flow ssvp:3 {SSVP_PATH}"),
        Run("the same, equation 5 as printed", f'dumbbell --flow ssvp:3 --set ssvp.increase="as-printed" {SSVP_PATH}'),
        Run("two beside two TCP, 10 Mb/s", f"dumbbell --flow ssvp:2 --flow tcp-sack:2 {SSVP_SHARED}"),
        Run(
            "the same, equation 5 as printed",
            f'dumbbell --flow ssvp:2 --flow tcp-sack:2 --set ssvp.increase="as-printed" {SSVP_SHARED}',
        ),
    ),
    "ssvp-adp": (
        Run("three flows, 1 Mb/s [SSVP fig 3]", f"dumbbell --flow ssvp-adp:3 {SSVP_PATH}"),
        Run("the same, equation 5 as printed", f'dumbbell --flow ssvp-adp:3 --set ssvp-adp.increase="as-printed" {SSVP_PATH}'),
        Run("two beside two TCP, 10 Mb/s", f"dumbbell --flow ssvp-adp:2 --flow tcp-sack:2 {SSVP_SHARED}"),
        Run(
            "the same, equation 5 as printed",
            f'dumbbell --flow ssvp-adp:2 --flow tcp-sack:2 --set ssvp-adp.increase="as-printed" {SSVP_SHARED}',
        ),
    ),
    **{
        kind: (
            Run(
                "two flows, 10 Mb/s; a third from 20 s",
                f"dumbbell --flow {kind}:2 --flow {kind}:1@20s --bottleneck 10mbit --rtt 64ms --start-jitter 1s --duration 60 --seed 1",
            ),
            Run("two beside two TCP, drop-tail", f"dumbbell --flow {kind}:2 --flow tcp-sack:2 {SHARED}"),
            Run("the same with RED", f"dumbbell --flow {kind}:2 --flow tcp-sack:2 --queue red {SHARED}"),
        )
        for kind in ("rap", "rap-fine", "gaimd", "tfrc")
    },
    **{
        kind: (
            Run(
                "alone, 1 Mb/s, media of 1.5 Mb/s at most; a second from 40 s",
                f"dumbbell --flow {kind}:1 --flow {kind}:1@40s {MEDIA_PATH}".format(kind=kind),
            ),
            Run("beside one TCP from 40 s", f"dumbbell --flow {kind}:1 --flow tcp-sack:1@40s {MEDIA_PATH}".format(kind=kind)),
        )
        for kind in ("nada", "scream", "gcc")
    },
    "trabol": (
        Run("alone, 100 Mb/s, target rate 110 Mb/s", f"dumbbell --flow trabol:1 --set trabol.max_rate_bps=110000000 {TRABOL_PATH}"),
        Run(
            "beside one TCP, target rate 90 Mb/s",
            f"dumbbell --flow tcp-reno:1 --flow trabol:1 --set trabol.max_rate_bps=90000000 {TRABOL_PATH}",
        ),
    ),
    "trabol-memory": (
        Run(
            "alone, 100 Mb/s, target rate 110 Mb/s",
            f"dumbbell --flow trabol-memory:1 --set trabol-memory.max_rate_bps=110000000 {TRABOL_PATH}",
        ),
        Run(
            "beside one TCP, target rate 90 Mb/s",
            f"dumbbell --flow tcp-reno:1 --flow trabol-memory:1 --set trabol-memory.max_rate_bps=90000000 {TRABOL_PATH}",
        ),
    ),
}


OF_EXPERIMENT = {"als-layered": ("als-8", "layers.png")}
"""Pictures that are an experiment's own."""


def flows_of(run: Run) -> pd.DataFrame:
    """The run's flows.csv."""
    with tempfile.TemporaryDirectory(prefix="fairlane-plot-") as folder:
        out = Path(folder) / "run"
        execute(run.command, out)
        return pd.read_csv(out / "flows.csv")


def execute(command: str, out: Path) -> None:
    """`fairlane run` with its results in `out`."""
    subprocess.run([FAIRLANE, "run", *shlex.split(command), "--out", str(out)], check=True, stdout=subprocess.DEVNULL)


def draw(run: Run, rate_axes: plt.Axes, loss_axes: plt.Axes) -> None:
    """One run: rates above, losses below."""
    flows = flows_of(run)
    half_s = flows["time_s"].max() / 2
    shown: dict[str, int] = {}
    for name, flow in flows.groupby("flow", sort=False):
        kind = flow["kind"].iloc[0]
        paced = flow["sending_rate_bps"].fillna(0).any()  # neither TCP nor another window
        rate = flow["sending_rate_bps"] if paced else flow["goodput_bps"]
        late = flow[flow["time_s"] > half_s]
        lost, sent = late["lost_packets"].sum(), late["sent_packets"].sum()
        label = f"{name}: {rate[late.index].mean() / 1e6:.2f} Mb/s, {100 * lost / sent if sent else 0:.1f}%"
        style = {
            "color": palette.of_kind(kind),
            "alpha": 1 - 0.28 * shown.get(kind, 0),
            "linewidth": 1.2,
            "linestyle": ("-", "--", ":")[shown.get(kind, 0) % 3],
        }
        shown[kind] = shown.get(kind, 0) + 1
        bins = (flow["time_s"] - 1) // run.bin_s * run.bin_s
        rate_axes.step(sorted(set(bins)), rate.groupby(bins).mean() / 1e6, where="post", label=label, **style)
        of_bin = flow.groupby(bins)[["lost_packets", "sent_packets"]].sum()
        loss_axes.step(of_bin.index, 100 * of_bin["lost_packets"] / of_bin["sent_packets"].clip(lower=1), where="post", **style)
    rate_axes.set(title=run.title, ylabel="rate (Mb/s)", ylim=(0, None))
    rate_axes.title.set_fontsize(10)
    rate_axes.legend(
        fontsize=7, title="means over the second half: rate, loss", title_fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5)
    )
    loss_axes.set(xlabel="time (s)", ylabel="loss (%)", ylim=(0, None))
    for axes in (rate_axes, loss_axes):
        axes.grid(alpha=0.3)


def picture(kind: str) -> None:
    """KIND.png beside this file."""
    if kind in OF_EXPERIMENT:
        experiment, drawn = OF_EXPERIMENT[kind]
        with tempfile.TemporaryDirectory(prefix="fairlane-plot-") as folder:
            execute(experiment, Path(folder) / "run")
            shutil.copyfile(Path(folder) / "run" / drawn, Path(__file__).with_name(f"{kind}.png"))
        print(f"{kind}: fairlane run {experiment}")
        return
    runs = PICTURES[kind]
    figure, axes = plt.subplots(
        2 * len(runs), 1, figsize=(9, 3.6 * len(runs)), layout="constrained", height_ratios=[2, 1] * len(runs), squeeze=False
    )
    for i, run in enumerate(runs):
        draw(run, axes[2 * i, 0], axes[2 * i + 1, 0])
    figure.savefig(Path(__file__).with_name(f"{kind}.png"), dpi=100, metadata={"Software": None})
    plt.close(figure)
    for run in runs:
        print(f"{kind}: fairlane run {run.command}")


def main(kinds: list[str]) -> None:
    known = [*PICTURES, *OF_EXPERIMENT]
    for kind in kinds:
        if kind not in known:
            sys.exit(f"no picture of {kind!r}; there are {', '.join(known)}")
    for kind in kinds or known:
        picture(kind)


if __name__ == "__main__":
    main(sys.argv[1:])
