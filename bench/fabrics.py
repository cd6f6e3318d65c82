"""One experiment on two fabrics, side by side: do they agree?

    fairlane run als-3 --out /tmp/virtual && fairlane run als-3 --fabric mininet --out /tmp/mininet
    python bench/fabrics.py /tmp/virtual /tmp/mininet

Exit code 1 when the mean rate of a kind of flow differs by more than 10%, or its mean loss by more than a percentage point.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import fmean

RATE_TOLERANCE = 0.10
LOSS_TOLERANCE = 0.01


def main(folders: list[str]) -> int:
    if len(folders) != 2:
        print(__doc__)
        return 2
    first, second = (json.loads((Path(f) / "summary.json").read_text()) for f in folders)
    if (first["experiment"], first["duration_s"]) != (second["experiment"], second["duration_s"]):
        print("two runs of one experiment and one length are needed")
        return 2
    agree = True
    print(f"{first['experiment']}, {first['duration_s']:g} s: {first['fabric']} and {second['fabric']}")
    print(f"{'':8} {'Mb/s':>8} {'Mb/s':>8} {'ratio':>6} {'loss %':>8} {'loss %':>8}")
    groups = [(kind, [f["name"] for f in first["flows"] if f["kind"] == kind]) for kind in dict.fromkeys(f["kind"] for f in first["flows"])]
    rows = [(name, [name]) for _, names in groups for name in names] + [(f"{kind} mean", names) for kind, names in groups]
    for label, names in rows:
        rates = [fmean(f["goodput_bps"] for f in s["flows"] if f["name"] in names) for s in (first, second)]
        losses = [fmean(f["loss_fraction"] for f in s["flows"] if f["name"] in names) for s in (first, second)]
        print(f"{label:14.14} {rates[0] / 1e6:8.3f} {rates[1] / 1e6:8.3f} {rates[0] / rates[1]:6.3f} {100 * losses[0]:8.2f} {100 * losses[1]:8.2f}")
        if label.endswith(" mean"):
            agree &= abs(rates[0] / rates[1] - 1) <= RATE_TOLERANCE and abs(losses[0] - losses[1]) <= LOSS_TOLERANCE
    print("the means agree" if agree else "the means DO NOT agree within 10% and one percentage point")
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
