"""A seeded trace of each algorithm that hears of single packets or reports each round trip, over the path model, as a golden."""

from __future__ import annotations

import os
import sys
from pathlib import Path as File

import pytest

sys.path.insert(0, str(File(__file__).parent))

from fairlane.hosts.algorithms import ALGORITHMS
from path_model import ClosedLoop, Path

GOLDEN = File(__file__).parent / "golden"
PATH = Path(capacity_bps=500e3, rtt_s=0.08, queue_packets=10, random_loss=0.002)


@pytest.mark.parametrize("name", ["gaimd", "rap", "rap-fine", "tfrc"])
def test_trace_equals_the_golden(name: str) -> None:
    """`UPDATE_GOLDEN=1` writes the file anew; look at the difference before keeping it."""
    kind = ALGORITHMS[name]
    loop = ClosedLoop(kind, kind.parameters(max_rate_bps=1e6, packet_bytes=500), PATH, seed=1, jitter=0.2)
    rows = ["second,rate_bps,sent,delivered,lost"]
    rows += [f"{t:g},{rate:.0f},{sent},{delivered},{lost}" for t, rate, sent, delivered, lost in loop.run(60.0).rows]
    text = "\n".join(rows) + "\n"
    file = GOLDEN / f"path_{name}.csv"
    if os.environ.get("UPDATE_GOLDEN") == "1":
        file.write_text(text)
    assert text == file.read_text()
    assert loop.delivered > 0.6 * 60 * 500e3 / 4000
