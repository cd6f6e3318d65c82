"""als.p4 without I/O: nanoseconds of CPU per packet for frames from memory, beside BMv2 fed from a capture file; and the time that
compiling it takes, beside p4c.

    python bench/packets.py [--packets 200000] [--bmv2-packets 20000] [--rounds 5] [--define CONNECTION_SKETCH] [--json FILE]

Both run the same JSON with the controller's entries put in (`als_program.py`). Ours goes through parser, ingress, egress and deparser, with
what the traffic manager would say of a busy and of an idle link (`switch/p4/pipeline/benches/program.rs`). BMv2 reads the frames with
`--use-files`; its figure is the CPU time of all its threads, queues and files included, over the packets that came out or were dropped.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from als_program import control_frame, count_pcap, data_frame, over_ipv6, with_entries, write_pcap
from forward import cpu_s, machine, ratio, report, show, stop
from veths import CannotRun, program

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "p4src" / "als.p4"
GOAL_NS = 300.0
SENDERS = 2000
"""Different frames: enough that the connection table and the caches are used as in a network."""
CASES = {
    "data, UDP, 1000 B": lambda sender: data_frame(1000, sender),
    "data, UDP, 64 B": lambda sender: data_frame(64, sender),
    "RTCP with ALSF": control_frame,
}
BMV2_READY_S = 3


def build_runner() -> Path:
    """The benchmark program of the pipeline's crate, built for release."""
    command = [
        str(ROOT / "scripts" / "cargo"),
        "bench",
        "--manifest-path",
        str(ROOT / "switch" / "Cargo.toml"),
        "--locked",
        "-p",
        "fairlane-pipeline",
        "--bench",
        "program",
        "--no-run",
        "--message-format",
        "json",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CannotRun(f"the benchmark does not build:\n{done.stderr[-2000:]}")
    built = [json.loads(line) for line in done.stdout.splitlines()]
    return Path(next(item["executable"] for item in built if item.get("executable")))


def compile_times(rounds: int, folder: Path, defines: Sequence[str]) -> dict[str, list[float]]:
    """Seconds of CPU for each compiler, in turns."""
    times: dict[str, list[float]] = {}
    for _ in range(rounds):
        for name in ("fairlane-compile", "p4c-bm2-ss"):
            compiler = program(name)
            if compiler is None:
                continue
            before = _children_s()
            command = [
                compiler,
                *(f"-D{name}" for name in defines),
                "-o",
                str(folder / f"{name}.json"),
                "--p4runtime-files",
                str(folder / f"{name}.p4info.txtpb"),
                str(SOURCE),
            ]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise CannotRun(f"{name} does not compile {SOURCE}:\n{done.stderr[-2000:]}")
            times.setdefault(name, []).append(_children_s() - before)
    if "fairlane-compile" not in times:
        raise CannotRun("fairlane-compile is not built: run `make build`")
    return times


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_ours(runner: Path, json_file: Path, capture: Path, packets: int) -> dict:
    done = subprocess.run([str(runner), str(json_file), str(capture), str(packets)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CannotRun(done.stderr.strip())
    return json.loads(done.stdout)


def run_bmv2(json_file: Path, frames: list[bytes], packets: int, folder: Path) -> dict:
    """CPU and wall time per packet, of packets that come in by port 1 and leave by port 2."""
    folder.mkdir()
    write_pcap(folder / "p1_in.pcap", [frames[i % len(frames)] for i in range(packets)])
    write_pcap(folder / "p2_in.pcap", [])
    command = [
        program("simple_switch") or "simple_switch",
        "--use-files",
        str(BMV2_READY_S),
        "-i",
        "1@p1",
        "-i",
        "2@p2",
        "--log-level",
        "off",
        "--thrift-port",
        str(20000 + os.getpid() % 10000),
        str(json_file),
    ]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)

    def still(seconds: float, more_than: float = 0.0, deadline_s: float = 120.0) -> tuple[float, float]:
        """CPU time once it has passed `more_than` and then stood still for so long, and since when it has."""
        cpu, since, ends = cpu_s(process.pid), time.monotonic(), time.monotonic() + deadline_s
        while cpu <= more_than or time.monotonic() - since < seconds:
            if process.poll() is not None:
                raise CannotRun(f"simple_switch ended:\n{(folder / 'log').read_text(errors='replace')[-1000:]}")
            if time.monotonic() > ends:
                raise CannotRun("simple_switch did not come to rest")
            time.sleep(0.02)
            now = cpu_s(process.pid)
            if now - cpu > 0.001:
                cpu, since = now, time.monotonic()
        return cpu, since

    try:
        # Ready, and waiting for its time to read.
        idle_cpu, _ = still(BMV2_READY_S / 2, 0.005)
        started = time.monotonic()
        while cpu_s(process.pid) - idle_cpu < 0.005 and time.monotonic() - started < 2 * BMV2_READY_S:
            time.sleep(0.01)
        started = time.monotonic()
        cpu, ended = still(1.0, idle_cpu + 0.005)
        cpu, wall = cpu - idle_cpu, ended - started
    finally:
        stop(process)
    return {
        "packets": packets,
        "emitted": count_pcap(folder / "p2_out.pcap") / packets,
        "ns_cpu": cpu / packets * 1e9,
        "ns_wall": wall / packets * 1e9,
    }


def run(packets: int, bmv2_packets: int, rounds: int, defines: Sequence[str] = ()) -> dict:
    result: dict = {"machine": machine(), "rounds": rounds, "defines": list(defines), "absent": {}, "cases": {}}
    with tempfile.TemporaryDirectory(prefix="fairlane-bench-") as name:
        folder = Path(name)
        show(f"compiling als.p4, {rounds} times each")
        result["compile_s"] = compile_times(rounds, folder, defines)
        loaded = with_entries(folder / "fairlane-compile.json", folder / "als.json")
        show("building the benchmark of the pipeline")
        runner = build_runner()
        has_bmv2 = program("simple_switch") is not None
        if not has_bmv2:
            result["absent"]["simple_switch"] = "simple_switch is not installed here"
        if "p4c-bm2-ss" not in result["compile_s"]:
            result["absent"]["p4c-bm2-ss"] = "p4c-bm2-ss is not installed here"
        for number, (title, make) in enumerate(CASES.items()):
            frames = [make(sender) for sender in range(SENDERS)]
            if "IPV6" in defines:
                frames = [over_ipv6(frame) for frame in frames]
            capture = folder / "frames.pcap"
            write_pcap(capture, frames)
            samples: dict[str, list[dict]] = {"fairlane": [], "simple_switch": []}
            for turn in range(rounds):
                ours = run_ours(runner, loaded, capture, packets)
                samples["fairlane"].append(ours)
                text = f"{title}, round {turn + 1} of {rounds}: {ours['busy']['ns_median']:.0f} ns, idle link {ours['idle']['ns_median']:.0f} ns"
                if has_bmv2:
                    theirs = run_bmv2(loaded, frames, bmv2_packets, folder / f"bmv2-{number}-{turn}")
                    samples["simple_switch"].append(theirs)
                    text += f", simple_switch {theirs['ns_cpu']:.0f} ns of CPU"
                show(text)
            result["cases"][title] = samples
    return result


def ours_ns(samples: dict, link: str) -> float:
    return statistics.median(sample[link]["ns_median"] for sample in samples["fairlane"])


def table(result: dict) -> str:
    about = result["machine"]
    lines = [
        f"als.p4 without I/O; {about['model']}, load {about['load']:.1f}; medians of {result['rounds']} rounds in turns, nanoseconds of CPU per packet",
        "",
        f"{'packet':22}{'busy link':>11}{'idle link':>11}{'simple_switch':>15}{'its wall time':>15}{'times':>8}",
    ]
    for title, samples in result["cases"].items():
        busy = ours_ns(samples, "busy")
        line = f"{title:22}{busy:>11,.0f}{ours_ns(samples, 'idle'):>11,.0f}"
        if samples["simple_switch"]:
            cpu, wall = (statistics.median(s[key] for s in samples["simple_switch"]) for key in ("ns_cpu", "ns_wall"))
            line += f"{cpu:>15,.0f}{wall:>15,.0f}{ratio(cpu, busy):>8.0f}"
        lines.append(line)
    lines += [
        "",
        "compiling als.p4, seconds of CPU: "
        + ", ".join(f"{name} {statistics.median(times):.3f}" for name, times in result["compile_s"].items()),
    ]
    lines += [f"not measured: {reason}" for reason in result["absent"].values()]
    return "\n".join(lines)


def verdicts(result: dict) -> list[tuple[bool, str]]:
    """The goals, and whether this run meets them."""
    title, samples = next(iter(result["cases"].items()))
    busy = ours_ns(samples, "busy")
    judged = [(busy <= GOAL_NS, f"als.p4, {title}: {busy:.0f} ns per packet without I/O (aim {GOAL_NS:g})")]
    if "p4c-bm2-ss" in result["compile_s"]:
        ours, theirs = (statistics.median(result["compile_s"][name]) for name in ("fairlane-compile", "p4c-bm2-ss"))
        judged.append((ours < theirs, f"compiling als.p4: {ours * 1e3:.0f} ms of CPU, p4c {theirs * 1e3:.0f} ms"))
    return judged


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--packets", type=int, default=200_000, help="packets of one pass (default: 200000)")
    parser.add_argument("--bmv2-packets", type=int, default=20_000, help="packets that BMv2 reads (default: 20000)")
    parser.add_argument("--rounds", type=int, default=5, help="measurements of each kind; the median counts (default: 5)")
    parser.add_argument(
        "--define", action="append", default=[], metavar="NAME", help="compile als.p4 with a macro, such as CONNECTION_SKETCH or IPV6"
    )
    parser.add_argument("--json", type=Path, help="also write every measurement to this file")
    arguments = parser.parse_args()
    return report(
        lambda: run(arguments.packets, arguments.bmv2_packets, arguments.rounds, arguments.define), table, verdicts, arguments.json
    )


if __name__ == "__main__":
    sys.exit(main())
