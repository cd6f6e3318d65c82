"""The queue managements in P4 on BMv2 and on our switch, with the kernel's TCP: the table of docs/p4-programs.md, "The queues on BMv2".

    sudo python bench/bmv2_queues.py [QUEUE ...]

Needs root, iperf3, ping, and BMv2's simple_switch and simple_switch_CLI in PATH. Two hosts and a switch in network namespaces of their own; four TCP flows
(Reno; with ECN where the program marks) of 20 s through a port of 10 Mb/s, round trip 40 ms, frames of 1014 bytes, a queue of 200 packets. BMv2's rates count packets, so both switches get
packets a second. Both run the same JSON and are set up by the same commands over Thrift. Of the last 10 s: goodput, delay (ping's, less the path's 40 ms), and
drops and marks by the program's counters."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RATE_BPS, FRAME_BYTES, RTT_MS, QUEUE, FLOWS, SECONDS = 10e6, 1014, 40, 200, 4, 20
THRIFT_PORT = 29643
UNIT = 1 << 48
"""One, of PIE's and PI2's probabilities and gains."""


def gain(per_second: float) -> int:
    """alpha or beta, of a delay in microseconds."""
    return round(per_second * UNIT / 1e6)


# Schemes beside RED; entries for port 2, table, action, arguments; counters of drops and of marks. Values as of Fairlane's defaults.
SCHEMES: dict[str, tuple[list[str], list[tuple[str, str, list[int]]], list[str], list[str]]] = {
    "droptail": ([], [], [], []),
    "codel": (["codel"], [("AlsEgress.codel.codel_parameters", "AlsEgress.codel.set_codel", [5000, 100_000, 0])], ["AlsEgress.codel.drops"], []),
    "codel, marks": (
        ["codel"], [("AlsEgress.codel.codel_parameters", "AlsEgress.codel.set_codel", [5000, 100_000, 1])], ["AlsEgress.codel.drops"], ["AlsEgress.codel.marks"]
    ),
    "pie": (
        ["pie"],
        [
            ("AlsIngress.pie.pie_parameters", "AlsIngress.pie.set_decision", [15_000, 0]),
            ("AlsEgress.pie.pie_parameters", "AlsEgress.pie.set_pie", [15_000, 15_000, gain(0.125), gain(1.25), 150_000, 0]),
        ],
        ["AlsIngress.pie.decision.drops"],
        [],
    ),
    "pi2": (
        ["pi2"],
        [
            ("AlsIngress.pi2.pi2_parameters", "AlsIngress.pi2.set_decision", [0]),
            ("AlsEgress.pi2.pi2_parameters", "AlsEgress.pi2.set_pi2", [15_000, 15_000, gain(0.15), gain(3.0), 0]),
        ],
        ["AlsIngress.pi2.decision.drops"],
        [],
    ),
    "step": (["step"], [("AlsEgress.step.step_parameters", "AlsEgress.step.set_step", [0xFFFFFFFF, 10])], [], ["AlsEgress.step.marks"]),
}  # fmt: skip


def run(*command: str, **options: object) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout  # type: ignore[call-overload]


@contextlib.contextmanager
def network() -> Iterator[tuple[str, str, str]]:
    """Namespaces of two hosts and a switch between them: h1, h2, s."""
    names = [f"queues-{os.getpid()}-{name}" for name in ("h1", "h2", "s")]
    one, two, switch = names
    for name in names:
        run("ip", "netns", "add", name)
    delays = None
    try:
        for n, host in enumerate((one, two), 1):
            run("ip", "-n", host, "link", "add", "eth0", "type", "veth", "peer", "name", f"a{n}", "netns", switch)
            run("ip", "-n", switch, "link", "add", f"b{n}", "type", "veth", "peer", "name", f"p{n}")
            for place, device in ((host, "eth0"), *((switch, f"{end}{n}") for end in "abp")):
                run("ip", "netns", "exec", place, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1")
                run("ip", "-n", place, "link", "set", device, "mtu", str(FRAME_BYTES - 14), "up")
                run(
                    "ip",
                    "netns",
                    "exec",
                    place,
                    "ethtool",
                    "-K",
                    device,
                    "tx",
                    "off",
                    "rx",
                    "off",
                    "tso",
                    "off",
                    "gso",
                    "off",
                    "gro",
                    "off",
                )
            run("ip", "-n", host, "link", "set", "eth0", "address", f"02:00:00:00:00:0{n}")
            run("ip", "-n", host, "address", "add", f"10.0.0.{n}/24", "dev", "eth0")
            run("ip", "-n", host, "neighbour", "add", f"10.0.0.{3 - n}", "lladdr", f"02:00:00:00:00:0{3 - n}", "dev", "eth0")
            run("ip", "netns", "exec", host, "sysctl", "-qw", "net.ipv4.tcp_ecn=1")
        run("ip", "-n", switch, "link", "set", "lo", "up")
        links = [part for n in (1, 2) for part in ("--link", f"a{n},b{n}={RTT_MS / 4}ms")]
        delays = subprocess.Popen(["ip", "netns", "exec", switch, str(ROOT / ".venv/bin/fairlane-link"), *links], stdout=subprocess.DEVNULL)
        yield one, two, switch
    finally:
        if delays is not None:
            delays.terminate()
            delays.wait()
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], check=False)


def commands(switch: str, lines: list[str]) -> str:
    """What BMv2's command line for a switch answers."""
    return run("ip", "netns", "exec", switch, "simple_switch_CLI", "--thrift-port", str(THRIFT_PORT), input="\n".join(lines) + "\n")


def counted(switch: str, names: list[str]) -> int:
    return sum(
        int(packets) for name in names for packets in re.findall(r"(?:packets=|, )(\d+)", commands(switch, [f"counter_read {name} 2"]))
    )


def measure(program: str, queue: str, folder: Path) -> dict[str, float]:
    schemes, entries, drops, marks = SCHEMES[queue]
    built = folder / "als.json"
    run(
        str(ROOT / ".venv/bin/fairlane-compile"),
        str(ROOT / "p4src/als.p4"),
        *(part for name in schemes for part in ("-D", "CHOSEN", "-I", str(ROOT / "p4src/schemes" / name), "-I", str(ROOT / "p4src"))),
        "-o",
        str(built),
    )
    with network() as (one, two, switch):
        options = [
            *([] if program == "simple_switch" else ["switch"]),
            "-i",
            "1@p1",
            "-i",
            "2@p2",
            "--thrift-port",
            str(THRIFT_PORT),
            str(built),
        ]
        path = program if program == "simple_switch" else str(ROOT / ".venv/bin/fairlane")
        log = (folder / "switch.log").open("w")
        process = subprocess.Popen(["ip", "netns", "exec", switch, path, *options], stdout=log, stderr=log)
        server = subprocess.Popen(["ip", "netns", "exec", two, "iperf3", "-s"], stdout=subprocess.DEVNULL)
        try:
            for _ in range(100):
                with contextlib.suppress(subprocess.CalledProcessError):
                    if "RuntimeCmd" in commands(switch, [""]):
                        break
                time.sleep(0.1)
            send = "table_add AlsIngress.forward.ipv4_lpm AlsIngress.forward.send 10.0.0.{to}/32 => {to} 02:00:00:00:01:0{to} 02:00:00:00:00:0{to}"
            lines = [send.format(to=to) for to in (1, 2)]
            lines += [f"table_add {table} {action} 2 => {' '.join(map(str, arguments))}" for table, action, arguments in entries]
            lines += [f"set_queue_rate {round(RATE_BPS / 8 / FRAME_BYTES)} 2", f"set_queue_depth {QUEUE} 2"]
            said = commands(switch, lines)
            if re.search("Error|Invalid", said):
                raise SystemExit(f"{program}: {said}")
            return under_load(one, two, switch, drops, marks)
        finally:
            for started in (server, process):
                started.terminate()
                started.wait()
            log.close()


def under_load(one: str, two: str, switch: str, drops: list[str], marks: list[str]) -> dict[str, float]:
    client = ["ip", "netns", "exec", one, "iperf3", "-c", "10.0.0.2", "-t", str(SECONDS), "-P", str(FLOWS), "-C", "reno", "-i", "1", "-J"]
    flows = subprocess.Popen(client, stdout=subprocess.PIPE, text=True)
    time.sleep(SECONDS / 2)
    before = counted(switch, drops), counted(switch, marks)
    pings = run("ip", "netns", "exec", one, "ping", "-i", "0.05", "-w", str(SECONDS // 2 - 1), "10.0.0.2")
    after = counted(switch, drops), counted(switch, marks)
    found = json.loads(flows.communicate()[0])
    if "error" in found:
        raise SystemExit(f"iperf3: {found['error']}")
    late = [i["sum"] for i in found["intervals"] if SECONDS / 2 <= i["sum"]["start"] < SECONDS - 1]
    delays = [float(ms) - RTT_MS for ms in re.findall(r"time=([\d.]+)", pings)]
    return {
        "goodput_mbps": statistics.mean(i["bits_per_second"] for i in late) / 1e6,
        "delay_ms": statistics.mean(delays),
        "drops": after[0] - before[0],
        "marks": after[1] - before[1],
        "retransmits": sum(i["retransmits"] for i in late),
    }


def main(queues: list[str]) -> int:
    lacking = [name for name in ("simple_switch", "simple_switch_CLI", "iperf3", "ping") if shutil.which(name) is None]
    if os.geteuid() != 0 or lacking:
        print(f"needs root, and in PATH: {', '.join(lacking) or 'all there'}", file=sys.stderr)
        return 1
    print("| queue | switch | goodput, Mb/s | delay, ms | drops | marks | retransmitted |\n|---|---|---|---|---|---|---|")
    for queue in queues or SCHEMES:
        for program, title in (("simple_switch", "BMv2"), ("fairlane", "ours")):
            with tempfile.TemporaryDirectory() as folder:
                found = measure(program, queue, Path(folder))
            print(
                f"| {queue} | {title} | {found['goodput_mbps']:.2f} | {found['delay_ms']:.1f} | {found['drops']:.0f} | {found['marks']:.0f} "
                f"| {found['retransmits']:.0f} |", flush=True,
            )  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
