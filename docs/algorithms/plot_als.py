"""Draws als.png: `python docs/algorithms/plot_als.py`. Fluid model, fixed seeds: the same picture each time."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from hosts import fluid
from hosts.algorithms.als import AlsParameters
from hosts.fluid import FluidFlow, FluidLink

CHAIN = ((0, 1, 2, 3), (0, 1), (0,), (1,), (1, 2), (2,), (3,))
FAIR_KBPS = (250, 250, 500, 250, 250, 500, 750)


def main() -> None:
    figure, (join, chain, air) = plt.subplots(3, 1, figsize=(9, 10.5), layout="constrained")

    link = FluidLink(capacity_bps=3e6, buffer_bits=150e3)
    flows = [FluidFlow(f"S{i}", (0,), 30.0 * i, AlsParameters(max_rate_bps=3e6)) for i in range(3)]
    for name, series in fluid.run([link], flows, 120.0, seed=1).items():
        join.step([s.t_s for s in series], [s.rate_bps / 1e6 for s in series], where="post", label=name)
    join.step([0, 30, 60, 120], [2.7, 1.35, 0.9, 0.9], "k--", where="post", linewidth=1, label="b U_l / n")
    join.set(title="Three flows, 3 Mb/s, one joins every 30 s (seed 1)", xlabel="time (s)", ylabel="sending rate (Mb/s)")
    join.legend(ncols=4)

    links = [FluidLink(capacity_bps=1e6, buffer_bits=100e3) for _ in range(4)]
    flows = [FluidFlow(f"C{i}", path, parameters=AlsParameters(max_rate_bps=1e6)) for i, path in enumerate(CHAIN)]
    samples = fluid.run(links, flows, 200.0, seed=0)
    for name, series in samples.items():
        t = [s.t_s for s in series]
        chain.step(t, [s.rate_bps / 1e3 for s in series], where="post", label=name)
        air.step(t, [(s.air_bps or 0) / 1e3 for s in series], where="post", label=name)
    for kbps in sorted(set(FAIR_KBPS)):
        chain.axhline(kbps, color="k", linestyle="--", linewidth=1)
    chain.set(
        title="Chain of four 1 Mb/s links (paper, fig. 5; seed 0); dashed: max-min shares",
        xlabel="time (s)",
        ylabel="sending rate (kb/s)",
    )
    chain.legend(ncols=7)
    air.set(title="The same: additive increase AIR", xlabel="time (s)", ylabel="AIR (kb/s)")
    for axes in (join, chain, air):
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
    figure.savefig(Path(__file__).with_name("als.png"), dpi=100, metadata={"Software": None})


if __name__ == "__main__":
    main()
