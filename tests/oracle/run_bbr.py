"""Runs ns-3 on BBR, and writes what it measured to ``data/bbr.json``. Needs g++ and Debian's ``libns3-dev``; without them it says so.

The file is committed: ``test_bbr.py`` reads it, so that it needs no ns-3. Run this after a change of ``aqm.cc``: ``python tests/oracle/run_bbr.py``.
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

from run_aqm import measure

DATA = Path(__file__).resolve().parent / "data" / "bbr.json"
SEEDS = (1, 2, 3)
COMMON = {"queue": "FIFO", "tcp": "bbr", "ecn": False, "timestamps": False, "initial_window": 10, "packet_bytes": 1000}
# Bandwidth-delay products: 50 packets at 10 Mb/s and 40 ms, or 20 Mb/s and 20 ms; 125 at 50 Mb/s and 20 ms; 13 at 20 Mb/s and 5 ms. The last ends
# before the first ProbeRTT: docs/bbr-against-ns3.md says why.
PLACES = (
    {"rate_bps": 10_000_000, "rtt_ms": 40, "buffer": 50, "flows": 1, "beside": 0, "seconds": 80},
    {"rate_bps": 10_000_000, "rtt_ms": 40, "buffer": 100, "flows": 1, "beside": 0, "seconds": 80},
    {"rate_bps": 20_000_000, "rtt_ms": 20, "buffer": 100, "flows": 1, "beside": 0, "seconds": 80},
    {"rate_bps": 50_000_000, "rtt_ms": 20, "buffer": 250, "flows": 1, "beside": 0, "seconds": 80},
    {"rate_bps": 20_000_000, "rtt_ms": 5, "buffer": 13, "flows": 1, "beside": 0, "seconds": 9},
    {"rate_bps": 20_000_000, "rtt_ms": 5, "buffer": 25, "flows": 1, "beside": 0, "seconds": 9},
    {"rate_bps": 20_000_000, "rtt_ms": 5, "buffer": 25, "flows": 1, "beside": 0, "seconds": 80},
    {"rate_bps": 10_000_000, "rtt_ms": 40, "buffer": 200, "flows": 2, "beside": 0, "seconds": 80},
    {"rate_bps": 10_000_000, "rtt_ms": 40, "buffer": 50, "flows": 1, "beside": 1, "seconds": 200},
    {"rate_bps": 10_000_000, "rtt_ms": 40, "buffer": 200, "flows": 1, "beside": 1, "seconds": 200},
)


def cases() -> list[dict]:
    return [{**COMMON, **place, "from": place["seconds"] / 2, "seed": seed} for place, seed in itertools.product(PLACES, SEEDS)]


if __name__ == "__main__":
    sys.exit(measure(cases(), DATA))
