"""How much of a link of 2 Mb/s two TCP flows keep against a constant rate: `python labs/02/squeeze.py` draws results/lab-02/squeeze.png.

A constant rate of 0 to 2.4 Mb/s, with drop-tail and with RED; twelve runs in virtual time.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt

import fairlane

LINK_BPS = 2e6
RATES_BPS = (0.4e6, 0.8e6, 1.2e6, 1.6e6, 2.0e6, 2.4e6)


def main() -> int:
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for queue, style in (("droptail", "o-"), ("red", "s--")):
        goodputs = []
        for rate_bps in RATES_BPS:
            result = fairlane.run(
                "dumbbell",
                ["tcp-reno:2", "cbr:1"],
                bottleneck="2mbit",
                rtt="60ms",
                queue=queue,
                duration_s=40,
                settings=[f"cbr.rate_bps={rate_bps}"],
            )
            goodputs.append(result.kinds.loc["tcp-reno", "mean_goodput_bps"])
            print(
                f"{queue:8}  constant rate {rate_bps / 1e6:.1f} Mb/s: each TCP flow has {goodputs[-1] / 1e3:4.0f} kb/s, "
                f"and {100 * result.kinds.loc['cbr', 'mean_loss_fraction']:4.1f}% of the constant rate's packets are lost"
            )
        axes.plot([r / 1e6 for r in RATES_BPS], [g / 1e6 for g in goodputs], style, label=queue)
    axes.axhline(LINK_BPS / 3e6, color="0.6", label="fair share")
    axes.set(xlabel="constant rate (Mb/s)", ylabel="goodput of each TCP flow (Mb/s)", ylim=(0, None))
    axes.legend()
    picture = Path("results") / "lab-02" / "squeeze.png"
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture)
    print(f"plot: {picture}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
