"""Forwarding benchmark: frames per second through one switch by frame size, both without loss and under a flood.

The embedded switch compared with a relay that only copies frames (same socket code, so the difference is the
pipeline), and BMv2's simple_switch and simple_switch_grpc where they are installed. All run the same BMv2 JSON on the same two
veth pairs, turn by turn in one run; the table gives medians.

    python bench/forward.py [--seconds 2] [--rounds 5] [--sizes 64,1000] [--beside SWITCH] [--json FILE]

A generator (fairlane-blast) sends IPv4 frames into port 1 as fast as it can; frames that the kernel counts at the far end of port 2
while it sends are the rate kept under a flood. At even rates, it looks for the highest one at which less than 0.1% of them are lost
(`search.py`). Needs root. See bench/README.md for what the numbers mean.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from search import Trial, highest_rate
from veths import SWITCH_PORTS, CannotRun, Network, compile_p4, missing, network, program

START_TIMEOUT_S = 20.0
GRACE_S = 0.05
"""For frames on their way when a trial ends. Later ones count as lost, or a socket's buffer would pass for speed."""


@dataclass(frozen=True)
class Times:
    """How long a flood and a trial of an even rate last."""

    flood_s: float = 2.0
    trial_s: float = 1.0


BMV2 = ("simple_switch_grpc", "simple_switch")
BMV2_GOAL, RELAY_GOAL, KEPT_GOAL = 8.0, 0.8, 0.8


@dataclass(frozen=True)
class Contender:
    """What forwards. command: without the namespace. forwards_at_once: frames flow as soon as a probe gets through."""

    name: str
    command: tuple[str, ...]


def contenders(compiled: Path, beside: Path | None = None) -> list[Contender]:
    """beside: another build of fairlane-switch, "before" in the results."""
    interfaces = [f"{number}@{name}" for number, name in SWITCH_PORTS.items()]
    ports = [word for interface in interfaces for word in ("-i", interface)]
    grpc = ["--", "--grpc-server-addr", "127.0.0.1:9559"]
    found = []
    for name, arguments in (
        ("fairlane-relay", list(SWITCH_PORTS.values())),
        ("fairlane-switch", [*ports, str(compiled), *grpc]),
        ("simple_switch_grpc", [*ports, str(compiled), *grpc]),
        ("simple_switch", [*ports, str(compiled)]),
    ):
        path = program(name)
        if path is not None:
            found.append(Contender(name, (path, *arguments)))
        elif name.startswith("fairlane"):
            raise CannotRun(f"{name} is not built: run `make build`")
    if beside is not None:
        found.append(Contender("before", (str(beside), *ports, str(compiled), *grpc)))
    return found


@dataclass(frozen=True)
class Sample:
    """frames_per_s: that came out while the generator sent. cpu_us: CPU time of the forwarding process per frame, all its threads; it
    depends less than the rate does on what else the machine is doing. no_loss_per_s: the highest rate without loss. limited: the
    generator could offer no more than that."""

    frames_per_s: float
    cpu_us: float
    no_loss_per_s: float
    limited: bool


def measure(net: Network, contender: Contender, size: int, times: Times, log: Path) -> Sample:
    with log.open("ab") as output:
        process = subprocess.Popen(net.command("s1", list(contender.command)), stdout=output, stderr=output)
    try:
        wait_until_forwarding(net, contender, process, log)
        blast(net, size, 0.3, 0)  # caches, branch predictors, memory
        before, cpu_before = settled(net), cpu_s(process.pid)
        sent = blast(net, size, times.flood_s, 0)
        # Frames still in the socket's buffer belong to no interval: only output during the input counts.
        rate = (net.received("h2") - before) / sent["seconds"]
        out = settled(net) - before
        cpu = (cpu_s(process.pid) - cpu_before) / out * 1e6 if out else float("inf")

        def trial(offered: float) -> Trial:
            start = settled(net)
            done = blast(net, size, times.trial_s, round(offered))
            time.sleep(GRACE_S)
            return Trial(done["sent"] / done["seconds"], done["sent"], net.received("h2") - start)

        found = highest_rate(rate, trial)
    finally:
        stop(process)
    return Sample(rate, cpu, found.rate_per_s, found.limited)


def cpu_s(pid: int) -> float:
    """Seconds of CPU that all threads of a process have used, those that have ended too; its clock (clock_getcpuclockid(3)), where ticks would
    be coarse."""
    return time.clock_gettime((~pid << 3) | 2)


def settled(net: Network) -> int:
    """Frames received at the far end, once nothing is under way any more."""
    before = -1
    while (now := net.received("h2")) != before:
        before = now
        time.sleep(0.1)
    return now


def wait_until_forwarding(net: Network, contender: Contender, process: subprocess.Popen, log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise CannotRun(f"{contender.name} ended at once:\n{log.read_text(errors='replace')[-2000:]}")
        before = net.received("h2")
        blast(net, 64, 0.05, 200)
        time.sleep(0.1)
        if net.received("h2") - before >= 5:
            return
    raise CannotRun(f"{contender.name} did not forward within {START_TIMEOUT_S:g} s:\n{log.read_text(errors='replace')[-2000:]}")


def blast(net: Network, size: int, seconds: float, rate: int) -> dict:
    command = [
        program("fairlane-blast") or "fairlane-blast",
        "send",
        "eth0",
        "--size",
        str(size),
        "--seconds",
        f"{seconds:g}",
        "--rate",
        str(rate),
    ]
    done = subprocess.run(net.command("h1", command), capture_output=True, text=True, check=False, timeout=seconds + 20)
    if done.returncode != 0:
        raise CannotRun(f"fairlane-blast: {done.stderr.strip()}")
    return json.loads(done.stdout)


def stop(process: subprocess.Popen) -> None:
    """`ip netns exec` became the program itself, so the signal reaches it."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def run(times: Times, rounds: int, sizes: list[int], beside: Path | None = None) -> dict:
    results: dict[str, dict[str, list[Sample]]] = {}
    with tempfile.TemporaryDirectory(prefix="fairlane-bench-") as folder, network() as net:
        compiled = compile_p4(Path(__file__).resolve().parent / "forward.p4", Path(folder))
        running = contenders(compiled, beside)
        for round_number in range(rounds):
            for size in sizes:
                for contender in running:
                    sample = measure(net, contender, size, times, Path(folder) / f"{contender.name}.log")
                    show(
                        f"round {round_number + 1} of {rounds}, {size:4} B, {contender.name:18} flooded {sample.frames_per_s:9,.0f}/s,"
                        f" without loss {sample.no_loss_per_s:9,.0f}/s"
                    )
                    results.setdefault(contender.name, {}).setdefault(str(size), []).append(sample)
    return {
        "machine": machine(),
        "flood_s": times.flood_s,
        "trial_s": times.trial_s,
        "rounds": rounds,
        "absent": {name: f"{name} is not installed here" for name in BMV2 if name not in results},
        "samples": {
            name: {size: [asdict(sample) for sample in samples] for size, samples in by_size.items()} for name, by_size in results.items()
        },
    }


def median(result: dict, name: str, size: str, what: str) -> float:
    return statistics.median(sample[what] for sample in result["samples"][name][size])


def ratio(a: float, b: float) -> float:
    return a / b if b else float("inf")


def table(result: dict) -> str:
    samples, about = result["samples"], result["machine"]
    lines = [
        f"{about['cpus']} CPUs, {about['model']}, Linux {about['kernel']}, load {about['load']:.1f}; medians of {result['rounds']} rounds in turns;"
        f" flooded {result['flood_s']:g} s; trials of {result['trial_s']:g} s with less than 0.1% loss",
    ]
    for size in samples["fairlane-switch"]:
        lines += [
            "",
            f"{size + ' B frames':20}{'no loss/s':>12}{'ours/this':>11}{'flooded/s':>12}{'least':>12}{'most':>12}{'ours/this':>11}{'kept':>7}{'CPU us':>9}",
        ]
        for name in samples:
            rates = [sample["frames_per_s"] for sample in samples[name][size]]
            middle, lossless = statistics.median(rates), median(result, name, size, "no_loss_per_s")
            ours = [
                ratio(median(result, "fairlane-switch", size, what), value)
                for what, value in (("no_loss_per_s", lossless), ("frames_per_s", middle))
            ]
            # The generator could do no more: the rate is a lower bound.
            mark = "+" if any(sample["limited"] for sample in samples[name][size]) else " "
            lines.append(
                f"{name:20}{lossless:>11,.0f}{mark}{ours[0]:>11.2f}{middle:>12,.0f}{min(rates):>12,.0f}{max(rates):>12,.0f}{ours[1]:>11.2f}"
                f"{ratio(middle, lossless):>7.2f}{median(result, name, size, 'cpu_us'):>9.2f}"
            )
    lines += [
        "",
        "kept: flooded / without loss (well below 1 is livelock); +: the generator offered no more; CPU: of the forwarding process, a frame",
    ]
    lines += [f"not measured: {reason}" for reason in result["absent"].values()]
    return "\n".join(lines)


def verdicts(result: dict) -> list[tuple[bool, str]]:
    """The goals, and whether this run meets them."""
    judged = []
    for size in result["samples"]["fairlane-switch"]:
        for what, title in (("no_loss_per_s", "without loss"), ("frames_per_s", "flooded")):
            ours = median(result, "fairlane-switch", size, what)
            relay = ratio(ours, median(result, "fairlane-relay", size, what))
            judged.append((relay >= RELAY_GOAL, f"{size} B {title}: {relay:.2f} of the relay's rate (goal {RELAY_GOAL:g})"))
            for name in BMV2:
                if name in result["samples"]:
                    times = ratio(ours, median(result, name, size, what))
                    judged.append((times >= BMV2_GOAL, f"{size} B {title}: {times:.1f} times {name} (goal {BMV2_GOAL:g})"))
        kept = ratio(median(result, "fairlane-switch", size, "frames_per_s"), median(result, "fairlane-switch", size, "no_loss_per_s"))
        judged.append((kept >= KEPT_GOAL, f"{size} B: a flood leaves {kept:.2f} of the rate without loss (goal {KEPT_GOAL:g})"))
    return judged


def show(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def report(
    measure: Callable[[], dict], table: Callable[[dict], str], verdicts: Callable[[dict], list[tuple[bool, str]]], file: Path | None
) -> int:
    """Measures, prints the table and what met its goal, and writes all of it to a file. Returns the exit code."""
    try:
        result = measure()
    except CannotRun as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    print(table(result))
    for met, text in verdicts(result):
        print(f"{'met' if met else 'MISSED':7}{text}")
    if file:
        file.write_text(json.dumps(result, indent=2) + "\n")
    return 0


def machine() -> dict:
    """What a result must be read with."""
    return {"cpus": os.cpu_count(), "kernel": platform.release(), "model": cpu_model(), "load": os.getloadavg()[0]}


def cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=2.0, help="how long each flood lasts, and twice a trial (default: 2)")
    parser.add_argument("--rounds", type=int, default=5, help="measurements of each kind; the median counts (default: 5)")
    parser.add_argument("--sizes", default="64,1000", help="frame sizes in bytes (default: 64,1000)")
    parser.add_argument("--beside", type=Path, metavar="SWITCH", help="another build of fairlane-switch, in the same rounds")
    parser.add_argument("--json", type=Path, help="also write every measurement to this file")
    arguments = parser.parse_args()
    try:
        sizes = [int(size) for size in arguments.sizes.split(",")]
    except ValueError:
        parser.error(f"--sizes {arguments.sizes}: write bytes separated by commas, as in 64,1000")
    if arguments.seconds <= 0 or arguments.rounds < 1 or not all(64 <= size <= 1514 for size in sizes):
        parser.error("--seconds must be positive, --rounds at least 1, --sizes within 64 to 1514")
    if arguments.beside and not os.access(arguments.beside, os.X_OK):
        parser.error(f"--beside {arguments.beside}: no such program")
    reason = missing()
    if reason:
        print(f"bench: {reason}", file=sys.stderr)
        return 1
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    times = Times(arguments.seconds, arguments.seconds / 2)
    return report(lambda: run(times, arguments.rounds, sizes, arguments.beside), table, verdicts, arguments.json)


if __name__ == "__main__":
    sys.exit(main())
