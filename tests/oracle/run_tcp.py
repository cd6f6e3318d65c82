"""Runs ns-2 on the TCP cases and writes what it measured to files of ``data/``.

The files are committed: tests of ``switch/net/tcp`` read them, so that they need no ns-2. Without ns-2 this script says so and
leaves the files alone. Run it after a change to a ``.tcl`` file here: ``python tests/oracle/run_tcp.py``.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
FLAVOURS = ["tahoe", "reno", "newreno", "sack", "cubic"]
RATE_BPS = 10_000_000
PACKET_BYTES = 1000


def single_cases() -> list[dict]:
    """One flow: RTT 10 and 100 ms, a buffer of 20 packets and of one bandwidth-delay product."""
    cases = []
    for flavour in FLAVOURS:
        for rtt_ms in (10, 100):
            bdp = RATE_BPS * rtt_ms // 1000 // (8 * PACKET_BYTES)
            for buffer_packets in (20, bdp):
                for delayed_ack in (0, 1):
                    cases.append(
                        dict(
                            flavour=flavour,
                            rate_bps=RATE_BPS,
                            rtt_ms=rtt_ms,
                            buffer_packets=buffer_packets,
                            seconds=100,
                            delayed_ack=delayed_ack,
                        )
                    )
    return cases


def cause_cases() -> list[dict]:
    """Cells where a slow start into a large buffer ends in a timeout that RFC 6298's own minimum of 1 s would not have had."""
    return [
        dict(flavour=flavour, rate_bps=RATE_BPS, rtt_ms=100, buffer_packets=125, seconds=100, delayed_ack=0, min_rto_ms=1000)
        for flavour in ("sack", "cubic")
    ]


def small_segment_cases() -> list[dict]:
    """Segments of 60 B, packets of 100 B, and a clock of 0.1 s, as in the RAP paper. Windows saw between about 13 and 26, 35 and 70, 65 and 130
    segments: half of the bandwidth-delay product and the buffer together, and all of it."""
    return [
        dict(
            flavour=flavour,
            rate_bps=rate_bps,
            rtt_ms=rtt_ms,
            buffer_packets=buffer_packets,
            seconds=600,
            delayed_ack=0,
            packet_bytes=100,
            tick_ms=100,
        )
        for flavour in FLAVOURS[:-1]
        for rate_bps, rtt_ms, buffer_packets in ((80_000, 52, 20), (320_000, 100, 30), (800_000, 100, 30))
    ]


def drop_cases() -> list[dict]:
    """Named packets of a window of 20 segments are lost, as in Fall and Floyd 1996: 1 to 17 in a row, every second one, and retransmissions too."""
    rows = [range(61, 61 + count) for count in (1, 2, 3, 4, 6, 8, 10, 12, 14, 17)]
    lost = [*rows, range(61, 73, 2), range(61, 79, 3), [61, 81], [61, 62, 81, 82], [61, 64, 83, 120, 121, 122]]
    return [
        dict(flavour=flavour, rate_bps=800_000, rtt_ms=100, window_packets=20, drops=",".join(map(str, packets)), seconds=20, tick_ms=100)
        for flavour in FLAVOURS[:-1]
        for packets in lost
    ]


def red_cases() -> list[dict]:
    """Ten flows over RED; CUBIC is left out, for ns-2's port of it is another version."""
    return [
        dict(
            flavour=flavour,
            rate_bps=RATE_BPS,
            rtt_ms=100,
            buffer_packets=200,
            seconds=100,
            flows=10,
            seed=seed,
            min_threshold=15,
            max_threshold=45,
            max_p=0.1,
            weight=0.002,
            delayed_ack=0,
        )
        for flavour in FLAVOURS[:-1]
        for seed in (1, 2, 3)
    ]


def network_red_cases() -> list[dict]:
    """Ten flows over the paper's RED, which spaces drops by up to 1/p packets: what p4src/schemes/red/red.p4 does. Starts are moved at random.

    Thresholds of 0.5 and 0.95 of one bandwidth-delay product, as in the ALS paper; and of 15 and 45 packets, where the queue is often empty.
    """
    return [
        dict(
            flavour=flavour,
            rate_bps=RATE_BPS,
            rtt_ms=100,
            buffer_packets=buffer,
            seconds=100,
            flows=10,
            seed=seed,
            min_threshold=low,
            max_threshold=high,
            max_p=0.1,
            weight=0.002,
            delayed_ack=0,
            wait=0,
            jitter=0.1,
        )
        for low, high, buffer in ((62.5, 118.75, 125), (15, 45, 200))
        for flavour in FLAVOURS
        for seed in (1, 2, 3)
    ]


def network_ecn_cases() -> list[dict]:
    """The same with thresholds of 0.5 and 0.95 of the buffer, RED that marks, and ECN-capable flows. ns-2's CUBIC is another code, without it."""
    return [{**case, "ecn": 1} for case in network_red_cases() if case["flavour"] != "cubic" and case["min_threshold"] > 20]


FILES = {
    "tcp_single.json": ("tcp_single.tcl", single_cases),
    "tcp_causes.json": ("tcp_single.tcl", cause_cases),
    "tcp_drops.json": ("tcp_drops.tcl", drop_cases),
    "tcp_small_segments.json": ("tcp_single.tcl", small_segment_cases),
    "tcp_red.json": ("tcp_red.tcl", red_cases),
    "tcp_network_red.json": ("tcp_red.tcl", network_red_cases),
    "tcp_network_ecn.json": ("tcp_red.tcl", network_ecn_cases),
}


def loss_events(drops: list[tuple[float, int]], window_s: float) -> int:
    """Drops of one flow within ``window_s`` of the first are one event, as [RFC 5348 sec 5.2] counts."""
    count = 0
    begun: dict[int, float] = {}
    for instant, flow in drops:
        if flow not in begun or instant > begun[flow] + window_s:
            begun[flow] = instant
            count += 1
    return count


def run(script: str, case: dict) -> dict:
    """One ns-2 run. Raises ``CalledProcessError`` with ns-2's own message when it fails."""
    argv = ["ns", str(HERE / script)] + [str(x) for pair in case.items() for x in pair]
    lines = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=300).stdout.splitlines()
    drops, result = [], {}
    for line in lines:
        words = line.split()
        if words[:1] == ["drop"]:
            drops.append((float(words[1]), int(words[2])))
        elif words[:1] == ["received_bytes"]:
            result = {name: float(value) if "." in value else int(value) for name, value in zip(words[::2], words[1::2])}
    if not result:
        raise RuntimeError(f"{script} printed no results for {case}")
    if "mean_queue" not in result:
        return {"case": case, "ns2": result}
    longest_rtt_s = case["rtt_ms"] / 1000 + case["buffer_packets"] * 8 * case.get("packet_bytes", PACKET_BYTES) / case["rate_bps"]
    result["drop_events"] = loss_events(drops, longest_rtt_s)
    result["mean_queue"] = round(result["mean_queue"], 6)
    return {"case": case, "ns2": result}


def main() -> int:
    if shutil.which("ns") is None:
        print("ns-2 is not installed (Debian: apt install ns2); the committed data stay as they are")
        return 0
    for name, (script, cases) in FILES.items():
        with ThreadPoolExecutor(max_workers=2) as pool:
            rows = list(pool.map(lambda case, script=script: run(script, case), cases()))
        target = HERE / "data" / name
        target.parent.mkdir(exist_ok=True)
        target.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
        print(f"{target.relative_to(HERE.parent.parent)}: {len(rows)} runs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
