"""One experiment on two fabrics, side by side: do they agree?

    fairlane run als-3 --out /tmp/virtual && fairlane run als-3 --fabric mininet --out /tmp/mininet
    python bench/fabrics.py /tmp/virtual /tmp/mininet

Exit code 1 when the mean rate of a kind of flow differs by more than 10%, or its mean loss by more than a percentage point.
"""

from __future__ import annotations

import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

RATE_TOLERANCE = 0.10
LOSS_TOLERANCE = 0.01


@dataclass(frozen=True)
class Row:
    """A flow, or the means of a kind of flow, on both fabrics. rates: bit/s. losses: fractions."""

    label: str
    is_mean: bool
    rates: tuple[float, float]
    losses: tuple[float, float]

    @property
    def ratio(self) -> float:
        """First over second."""
        return self.rates[0] / self.rates[1] if self.rates[1] else math.inf

    @property
    def agrees(self) -> bool:
        """Flows one by one may differ: only means are judged."""
        return not self.is_mean or (abs(self.ratio - 1) <= RATE_TOLERANCE and abs(self.losses[0] - self.losses[1]) <= LOSS_TOLERANCE)


def summary(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "summary.json").read_text())


def rows(first: dict[str, Any], second: dict[str, Any]) -> list[Row]:
    """Of two summaries; ValueError when they are not of one experiment and one length."""
    if (first["experiment"], first["duration_s"]) != (second["experiment"], second["duration_s"]):
        raise ValueError("two runs of one experiment and one length are needed")

    def row(label: str, names: list[str], is_mean: bool) -> Row:
        def both(key: str) -> tuple[float, float]:
            one, other = (fmean(f[key] for f in s["flows"] if f["name"] in names) for s in (first, second))
            return one, other

        return Row(label, is_mean, both("goodput_bps"), both("loss_fraction"))

    kinds = {kind: [f["name"] for f in first["flows"] if f["kind"] == kind] for kind in dict.fromkeys(f["kind"] for f in first["flows"])}
    return [
        *(row(name, [name], False) for names in kinds.values() for name in names),
        *(row(f"{kind} mean", names, True) for kind, names in kinds.items()),
    ]


def table(compared: list[Row]) -> str:
    lines = [f"{'':14} {'Mb/s':>8} {'Mb/s':>8} {'ratio':>6} {'loss %':>8} {'loss %':>8}"]
    lines += [
        f"{r.label:14.14} {r.rates[0] / 1e6:8.3f} {r.rates[1] / 1e6:8.3f} {r.ratio:6.3f} {100 * r.losses[0]:8.2f} {100 * r.losses[1]:8.2f}"
        for r in compared
    ]
    return "\n".join(lines)


def main(folders: list[str]) -> int:
    if len(folders) != 2:
        print(__doc__)
        return 2
    first, second = (summary(Path(f)) for f in folders)
    try:
        compared = rows(first, second)
    except ValueError as error:
        print(error)
        return 2
    print(f"{first['experiment']}, {first['duration_s']:g} s: {first['fabric']} and {second['fabric']}")
    print(table(compared))
    agree = all(r.agrees for r in compared)
    print("the means agree" if agree else "the means DO NOT agree within 10% and one percentage point")
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
