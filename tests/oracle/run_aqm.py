"""Runs ns-3 on queue managements, and writes what it measured to ``data/aqm.json``. Needs g++ and Debian's ``libns3-dev``; without them it says so.

The file is committed: ``test_aqm.py`` reads it, so that it needs no ns-3. Run this after a change of ``aqm.cc``: ``python tests/oracle/run_aqm.py``.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import ns3

HERE = Path(__file__).resolve().parent
DATA = HERE / "data" / "aqm.json"
# [RFC 7928 sec 8.2.2 to 8.2.4] as in ns-3's suite: mild, medium and heavy congestion of 1 Mb/s. Then the same at 10 Mb/s. A queue that
# nobody manages shows how far both TCPs differ.
PLACES = (
    {"rate_bps": 1_000_000, "rtt_ms": 100, "packet_bytes": 698, "buffer": 200, "flows": (2, 5, 7)},
    {"rate_bps": 10_000_000, "rtt_ms": 40, "packet_bytes": 1000, "buffer": 200, "flows": (4, 10, 20)},
)
# Half of the packets a second, and back, each 20 s; and every second flow with a round trip of 160 ms.
VARIED = {**PLACES[1], "other_bps": 5_000_000}
MIXED = {**PLACES[1], "more_rtt_ms": 120}
RED = {"threshold": 10, "maximum": 30}
SEEDS = (1, 2, 3)
# DCTCP with a step of K packets: [RFC 8257 sec 4.1] wants K > C RTT / 7, here 7 and 9 packets.
DCTCP = (
    {"rate_bps": 20_000_000, "rtt_ms": 20, "packet_bytes": 1000, "buffer": 200, "threshold": 10, "flows": (2, 4, 10)},
    {"rate_bps": 50_000_000, "rtt_ms": 10, "packet_bytes": 1000, "buffer": 200, "threshold": 20, "flows": (2, 4, 10)},
)


def cases() -> list[dict]:
    return (
        [
            {**place, "queue": queue, "ecn": ecn, "flows": flows, "seed": seed, "seconds": 200, "from": 100}
            for place in PLACES
            for queue, ecn, flows, seed in itertools.product(("CoDel", "PIE"), (False, True), place["flows"], SEEDS)
        ]
        + [
            {**place, **RED, "queue": "RED", "ecn": ecn, "flows": flows, "seed": seed, "seconds": 200, "from": 100}
            for place in PLACES
            for ecn, flows, seed in itertools.product((False, True), place["flows"], SEEDS)
        ]
        + [
            {**place, **(RED if queue == "RED" else {}), "queue": queue, "ecn": ecn, "flows": 10, "seed": seed, "seconds": 100, "from": 20}
            for place in (VARIED, MIXED)
            for queue, ecn, seed in itertools.product(("CoDel", "PIE", "RED"), (False, True), SEEDS)
        ]
        + [
            {**PLACES[0], "buffer": 10, "queue": "FIFO", "ecn": False, "flows": flows, "seed": seed, "seconds": 200, "from": 100}
            for flows, seed in itertools.product(PLACES[0]["flows"], SEEDS)
        ]
        + [
            {**place, "queue": "Step", "tcp": "dctcp", "ecn": True, "flows": flows, "seed": seed, "seconds": 30, "from": 15}
            for place in DCTCP
            for flows, seed in itertools.product(place["flows"], SEEDS)
        ]
    )


def measure(wanted: list[dict], data: Path) -> int:
    """Compiles ``aqm.cc``, runs the cases, writes them with their results."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        program = ns3.compiled(HERE / "aqm.cc", Path(folder))
        if program is None:
            print(f"{ns3.MISSING}; {data.name} stays as it is", file=sys.stderr)
            return 1

        def run(case: dict) -> dict:
            command = [str(program), *(f"--{key}={str(value).lower() if value in (True, False) else value}" for key, value in case.items())]
            return {"case": case, "ns3": json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)}

        rows = list(pool.map(run, wanted))
    data.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
    return 0


def main() -> int:
    return measure(cases(), DATA)


if __name__ == "__main__":
    sys.exit(main())
