"""Makes the traces of `topologies/traces/` anew: `python -m tools.traces [DIR]`; and with `--rfc8869` those of the suite rfc8869. The same files each time.

`docs/traces.md` states the models. A picture of the first is drawn with `--picture FILE.svg`.
"""

from __future__ import annotations

import argparse
import math
import random
from dataclasses import dataclass
from pathlib import Path

from fairlane.topologies import trace
from fairlane.topologies.trace import FOLDER, OPPORTUNITY_BYTES
from tools.traces.lte import Lte
from tools.traces.wifi import More, Wifi

_STEP_S = 0.02


@dataclass(frozen=True)
class Cellular:
    """Opportunities at random, by a rate whose logarithm is an Ornstein-Uhlenbeck process. spread: standard deviation of the logarithm.
    memory_s: after which its correlation is 1/e. outage_every_s, outage_s: means of exponential times; 0: none."""

    name: str
    seed: int
    mean_bps: float
    spread: float
    memory_s: float
    outage_every_s: float = 0.0
    outage_s: float = 0.0
    length_s: float = 60.0

    def text(self) -> str:
        rng = random.Random(self.seed)
        keep = math.exp(-_STEP_S / self.memory_s)
        level = rng.gauss(0.0, self.spread)
        out_from = rng.expovariate(1 / self.outage_every_s) if self.outage_s else math.inf
        out_until = out_from + (rng.expovariate(1 / self.outage_s) if self.outage_s else 0.0)
        times_ms: list[int] = []
        wait = rng.expovariate(1.0)
        for step in range(round(self.length_s / _STEP_S)):
            start_s = step * _STEP_S
            if start_s >= out_until:
                out_from = start_s + rng.expovariate(1 / self.outage_every_s)
                out_until = out_from + rng.expovariate(1 / self.outage_s)
            rate = 0.0 if start_s >= out_from else self.mean_bps * math.exp(level - self.spread**2 / 2) / (8 * OPPORTUNITY_BYTES)
            at_s, left = start_s, rate * _STEP_S
            while wait <= left:
                left -= wait
                at_s += wait / rate
                times_ms.append(int(at_s * 1000))
                wait = rng.expovariate(1.0)
            wait -= left
            level = keep * level + math.sqrt(1 - keep**2) * rng.gauss(0.0, self.spread)
        # The last line is the trace's length.
        times_ms.append(round(self.length_s * 1000))
        return "".join(f"{time}\n" for time in times_ms)


@dataclass(frozen=True)
class Steps:
    """Rates of a Markov chain that moves to the next higher or lower one after an exponential time of mean hold_s."""

    name: str
    seed: int
    rates_bps: tuple[int, ...]
    hold_s: float
    length_s: float = 120.0

    def text(self) -> str:
        rng = random.Random(self.seed)
        at_s, index = 0.0, len(self.rates_bps) // 2
        lines = ["time_s,rate_bps"]
        while at_s < self.length_s:
            lines.append(f"{at_s:.3f},{self.rates_bps[index]}")
            at_s += max(0.001, rng.expovariate(1 / self.hold_s))
            ways = [way for way in (index - 1, index + 1) if 0 <= way < len(self.rates_bps)]
            index = rng.choice(ways)
        return "\n".join(lines) + "\n"


TRACES: tuple[Cellular | Steps, ...] = (
    Cellular("cellular-walk.mahi", 1, 8e6, 0.4, 3.0),
    Cellular("cellular-drive.mahi", 2, 6e6, 0.8, 1.5, 15.0, 0.5),
    Steps("indoor-steps.csv", 3, (2_000_000, 5_000_000, 8_000_000, 12_000_000), 4.0),
)


SUITE = Path(__file__).parents[2] / "fairlane/suites/rfc8869"
_SMALL_M, _LARGE_M = 166.666, 577.3333
"""Cell radii of [RFC 8869 sec 2.1.2] and [RFC 8869 sec 2.2.2]."""
RFC8869: tuple[Lte | Wifi, ...] = (
    Lte("_2.1-down-035.csv", 1, False, 3.5, _SMALL_M, 3.0, 4e6),
    Lte("_2.1-down-070.csv", 2, False, 7.0, _SMALL_M, 30.0, 4e6),
    Lte("_2.1-down-105.csv", 3, False, 10.5, _SMALL_M, 3.0, 4e6),
    Lte("_2.1-up-035.csv", 1, True, 3.5, _SMALL_M, 3.0, 2e6),
    Lte("_2.1-up-070.csv", 2, True, 7.0, _SMALL_M, 30.0, 2e6),
    Lte("_2.2-down-035.csv", 2, False, 3.5, _LARGE_M, 3.0, 2e6),
    Lte("_2.2-up-007.csv", 4, True, 0.7, _LARGE_M, 3.0, 1e6),
    Lte("_2.2-up-021.csv", 4, True, 2.1, _LARGE_M, 3.0, 1e6),
    Wifi("_3.2-down.csv", 1, "down", 16, 0),
    Wifi("_3.2-up.csv", 1, "up", 0, 16),
    *(Wifi(f"_3.2-both-{way}.csv", 1, way, 8, 8) for way in ("up", "down")),
    *(Wifi(f"_3.2-on-off-{way}.csv", 1, way, 8, 8, more=More(5, 1e6, 0.0, 60.0)) for way in ("up", "down")),
    *(Wifi(f"_3.2-off-on-{way}.csv", 1, way, 8, 8, more=More(5, 1e6, 61.0, 120.0)) for way in ("up", "down")),
    *(Wifi(f"_3.2-tcp-{way}.csv", 1, way, 8, 8, more=More(5, 10e6, 40.0, 80.0)) for way in ("up", "down")),
)


def draw(path: Path) -> None:
    """All traces in one picture: means of each 0.25 s."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "traces"
    import matplotlib.pyplot as plt

    from fairlane.results import palette

    figure, axes = plt.subplots(len(TRACES), 1, figsize=(8, 5), sharex=True, layout="constrained")
    for axis, made in zip(axes, TRACES):
        shown = trace.parse(made.text(), made.name)
        means = shown.means_bps(0.25, 60.0)
        axis.step([t for t, _ in means], [rate / 1e6 for _, rate in means], where="post", linewidth=0.8, color=palette.OTHERS[0])
        mean_mbps = shown.mean_bps(0, 60.0) / 1e6
        axis.axhline(mean_mbps, linewidth=0.8, linestyle="--", color="0.4")
        axis.set_title(f"{made.name}: mean {mean_mbps:.1f} Mb/s", fontsize=9, loc="left")
        axis.set_ylabel("Mb/s")
        axis.set_ylim(bottom=0)
    axes[-1].set_xlabel("time since the run began (s)")
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.traces", description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER, help="where the files go (default: %(default)s)")
    parser.add_argument("--picture", type=Path, metavar="FILE.svg", help="draw all traces")
    parser.add_argument(
        "--rfc8869", action="store_true", help="write the traces of the suite rfc8869 instead, to its folder: half a minute"
    )
    given = parser.parse_args()
    if given.rfc8869:
        for trace_of_suite in RFC8869:
            (SUITE / trace_of_suite.name).write_text(trace_of_suite.text())
        return
    for made in TRACES:
        (given.folder / made.name).write_text(made.text())
    if given.picture is not None:
        draw(given.picture)


if __name__ == "__main__":
    main()
