"""NADA and SCReAM beside their authors' code on the link of RFC 8867 5.1: rate and delay over time, phase by phase.

python tests/oracle/media.py           prints the table of docs/media-against-authors.md, and draws its picture

The authors' numbers are in data/media.json; nothing here runs their code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from fairlane.suites import cases

PHASES_S = ((0, 10), (10, 40), (40, 50), (50, 60), (60, 70), (70, 80), (80, 90), (90, 100))
"""The capacity changes at 40, 60 and 80 s; each phase is split into what follows a change and what has settled."""
DATA = Path(__file__).with_name("data") / "media.json"
PICTURE = Path(__file__).parents[2] / "docs" / "media-against-authors.png"


def reference() -> dict[str, Any]:
    """Of each sender: `program`, and for each second `rate_bps`, `delay_ms`, `lost_packets`."""
    return json.loads(DATA.read_text(encoding="utf-8"))


def ours(kind: str) -> dict[str, np.ndarray]:
    """The same of ours, from the case's own file."""
    path = next(path for path in cases.files("rfc8867") if path.stem == "5.1")
    (flow,) = cases.run(cases.load(path, kind)).records.flows
    edges = np.arange(0.0, 101.0)
    packets = np.diff(flow.packets.at(edges))
    delays_ms = 1000 * np.diff(flow.delay.at(edges)) / np.maximum(packets, 1e-9)
    return {"rate_bps": 8 * np.diff(flow.received.at(edges)), "delay_ms": delays_ms, "lost_packets": np.diff(flow.lost.at(edges))}


def means(series: dict[str, Any], phase: tuple[int, int]) -> tuple[float, float]:
    """Rate in bit/s and delay in ms, each packet's alike, of one phase."""
    rates, delays = (np.asarray(series[name][slice(*phase)], dtype=float) for name in ("rate_bps", "delay_ms"))
    return float(rates.mean()), float(np.average(delays, weights=rates))


def table(kind: str, known: dict[str, Any], mine: dict[str, Any]) -> list[str]:
    lines = []
    for phase in PHASES_S:
        (rate, delay), (their_rate, their_delay) = means(mine, phase), means(known, phase)
        lines.append(
            f"| {kind} | {phase[0]} to {phase[1]} | {rate / 1e6:.2f} | {their_rate / 1e6:.2f} | {rate / their_rate:.2f} "
            f"| {delay:.0f} | {their_delay:.0f} | {delay / their_delay:.2f} |"
        )
    return lines


def over_time(values: Any, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Seconds and values; the authors' runs may end a second earlier."""
    return np.arange(1, len(values) + 1), scale * np.asarray(values)


def draw(known: dict[str, Any], mine: dict[str, Any]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(4, 1, figsize=(9, 10), layout="constrained", sharex=True)
    for row, kind in enumerate(("nada", "scream")):
        for column, (name, scale, label) in enumerate((("rate_bps", 1e-6, "received, Mb/s"), ("delay_ms", 1.0, "one-way delay, ms"))):
            place = axes[2 * row + column]
            place.plot(*over_time(known[kind][name], scale), color="#D55E00", linewidth=1.6, label="its authors' code")
            if kind == "nada":
                slow = over_time(known["nada-100ms"][name], scale)
                place.plot(*slow, color="#E69F00", linewidth=0.8, linestyle=":", label="the same, reports each 100 ms")
            place.plot(*over_time(mine[kind][name], scale), color="#0072B2", linewidth=1.0, linestyle="--", label="here")
            place.set(ylabel=label, ylim=(0, None), xlim=(0, 100), title=kind.upper() if kind == "nada" else "SCReAM")
            place.grid(alpha=0.3)
            place.legend(fontsize=7, loc="upper right")
    axes[-1].set_xlabel("time, s")
    figure.savefig(PICTURE, dpi=100, metadata={"Software": None})
    plt.close(figure)


def main() -> None:
    known = reference()
    mine = {kind: ours(kind) for kind in ("nada", "scream")}
    for kind, series in mine.items():
        print("\n".join(table(kind, known[kind], series)))
    draw(known, mine)


if __name__ == "__main__":
    main()
