"""Processor time of the two ends of a flow, for each data packet: `python -m fairlane.hosts.agent` in two network namespaces with a link between.

    python bench/host_packets.py --rate 10mbit --rate 100mbit        (as root)

The time is that of the processes, the kernel's work for their packets included. Nothing stands between the ends: what a flow reaches here
is what its hosts can do.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from fairlane.hosts.arguments import parse_rate

NAMES = {"sender": f"flb{os.getpid()}s", "receiver": f"flb{os.getpid()}r"}
ADDRESSES = {"sender": "10.99.0.1", "receiver": "10.99.0.2"}
START_S = 4.0
"""For both processes to be there."""


@contextmanager
def namespaces() -> Iterator[None]:
    def ip(*words: str) -> None:
        subprocess.run(["ip", *words], check=True, capture_output=True, timeout=20)

    for name in NAMES.values():
        ip("netns", "add", name)
    try:
        ip("link", "add", "v0", "netns", NAMES["sender"], "type", "veth", "peer", "name", "v0", "netns", NAMES["receiver"])
        for role, name in NAMES.items():
            ip("-n", name, "address", "add", f"{ADDRESSES[role]}/24", "dev", "v0")
            ip("-n", name, "link", "set", "v0", "up")
        yield
    finally:
        for name in NAMES.values():
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True, timeout=20)


def processor_s(process: subprocess.Popen) -> tuple[float, float]:
    """In user mode, and in the kernel."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    ticks = os.sysconf("SC_CLK_TCK")
    return int(fields[11]) / ticks, int(fields[12]) / ticks


def last(log: Path, kind: str) -> dict:
    return [r for r in map(json.loads, log.read_text().splitlines()) if r["kind"] == kind][-1]


def measure(folder: Path, algorithm: str, rate: str, seconds: float, packet_bytes: int, params: list[str]) -> None:
    begin = time.time() + START_S
    ends = {}
    more = [word for param in params for word in ("--param", param)]
    for role, other in (("receiver", "sender"), ("sender", "receiver")):
        times = ["--stop-at", str(begin + seconds + (role == "receiver"))] + (["--start-at", str(begin)] if role == "sender" else [])
        command = [
            "ip", "netns", "exec", NAMES[role], sys.executable, "-m", "fairlane.hosts.agent", "--role", role, "--algorithm", algorithm, "--local", ADDRESSES[role],
            "--peer", ADDRESSES[other], "--max-rate", rate, "--packet-bytes", str(packet_bytes), "--log", str(folder / role), *times, *more]  # fmt: skip
        ends[role] = subprocess.Popen(command, cwd=ROOT)
    time.sleep(max(0.0, begin - time.time() - 0.2))
    before = {role: processor_s(end) for role, end in ends.items()}
    time.sleep(seconds)
    after = {role: processor_s(end) for role, end in ends.items()}
    for end in ends.values():
        if end.wait(timeout=20) != 0:
            raise SystemExit("bench: an end failed; its words stand above")
    sent, data = last(folder / "sender", "sent")["sent_packets"], last(folder / "receiver", "data")
    print(f"{algorithm}, at most {rate}: {8e-6 * packet_bytes * sent / seconds:.1f} Mb/s, {sent} packets sent, {data['lost_packets']} lost")
    for role in ends:
        user, system = (1e6 * (b - a) / max(1, sent) for a, b in zip(before[role], after[role]))
        print(f"  {role}: {user + system:.1f} us a packet (user {user:.1f}, kernel {system:.1f})")


def defaults(algorithm: str, rate: str, packet_bytes: int) -> list[str]:
    """RAP at that rate from its start, and a step each 64 ms."""
    return [f"initial_ipg_s={8 * packet_bytes / parse_rate(rate)}", "min_rtt_s=0.064"] if algorithm == "rap" else []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--algorithm", default="rap")
    parser.add_argument("--rate", action="append", help="--max-rate of the flow; repeatable (default 10mbit, 100mbit)")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--packet-bytes", type=int, default=1000)
    parser.add_argument("--param", action="append", help="of the algorithm; repeatable (default of rap: `defaults`)")
    args = parser.parse_args()
    if os.geteuid() != 0:
        raise SystemExit("bench: network namespaces need root")
    with namespaces(), tempfile.TemporaryDirectory() as folder:
        for rate in args.rate or ["10mbit", "100mbit"]:
            measure(
                Path(folder),
                args.algorithm,
                rate,
                args.seconds,
                args.packet_bytes,
                args.param or defaults(args.algorithm, rate, args.packet_bytes),
            )


if __name__ == "__main__":
    main()
