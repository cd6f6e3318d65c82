"""Lab 2: what a run's figures mean.

python labs/02/measure.py FOLDER      a folder that `fairlane run` wrote
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def jain_index(rates_bps: list[float]) -> float:
    """(sum x)^2 / (n sum x^2): 1 when all rates are equal, 1/n when one has everything. 1 when there is nothing to share."""
    # BEGIN SOLUTION
    squares = sum(rate * rate for rate in rates_bps)
    return sum(rates_bps) ** 2 / (len(rates_bps) * squares) if squares else 1.0
    # SKELETON
    # return 0.0  # TODO 1
    # END SOLUTION


def share(flows: list[tuple[str, float]], kind: str) -> float:
    """The part of the total goodput that the flows of one kind have together. flows: kind and goodput in bit/s of each. 0 without goodput."""
    # BEGIN SOLUTION
    total = sum(goodput for _, goodput in flows)
    return sum(goodput for name, goodput in flows if name == kind) / total if total else 0.0
    # SKELETON
    # return 0.0  # TODO 2
    # END SOLUTION


def queue_delay_s(queue_packets: float, packet_bytes: float, link_bps: float) -> float:
    """How long a packet waits that finds so many before it, in seconds."""
    # BEGIN SOLUTION
    return 8 * queue_packets * packet_bytes / link_bps
    # SKELETON
    # return 0.0  # TODO 3
    # END SOLUTION


def least_loss(sent_bps: float, link_bps: float) -> float:
    """The part of its packets, 0 to 1, that a sender loses at the least who sends at this rate into a link of that rate, all alone."""
    # BEGIN SOLUTION
    return max(0.0, 1 - link_bps / sent_bps)
    # SKELETON
    # return 0.0  # TODO 4
    # END SOLUTION


def main(folder: Path) -> None:
    summary = json.loads((folder / "summary.json").read_text())
    flows = [(flow["kind"], flow["goodput_bps"]) for flow in summary["flows"]]
    print(f"Jain's index of all flows: {jain_index([goodput for _, goodput in flows]):.3f}")
    for kind in dict.fromkeys(kind for kind, _ in flows):
        print(f"{kind:12} has {100 * share(flows, kind):5.1f}% of the goodput")
    link = next(link for link in summary["links"] if link["name"] == summary["bottleneck"])
    delay_s = queue_delay_s(link["mean_queue_packets"], 1000, link["rate_bps"])
    print(f"{link['name']}: {link['mean_queue_packets']:.1f} packets wait on average, {1e3 * delay_s:.0f} ms")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
