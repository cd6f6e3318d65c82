"""The time that a command line needs to fill a table: `table_add` lines through `simple_switch_CLI`, with our switch and with BMv2, in turns.

    python bench/table_add.py [--entries 10000] [--rounds 5] [--cli FILE] [--json FILE]

The command line is the `simple_switch_CLI` in PATH, the same for both switches: BMv2's own, where BMv2 is installed. `--cli` names another. The
table is that of `control.p4`, with exact keys of 32 bits. The time is the command line's, from its start to its end; the CPU time is the
switch's. The number of entries in the table is checked after each fill, and each fill begins with a switch just started.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from forward import machine, ratio, report, show, stop
from veths import CannotRun, compile_p4, program

HERE = Path(__file__).resolve().parent
TABLE, ACTION = "hosts", "mark"
START_TIMEOUT_S, FILL_TIMEOUT_S = 20.0, 600.0


def commands(entries: int) -> str:
    """Spread over the addresses, each once."""
    lines = []
    for number in range(entries):
        key = number * 2654435761 % 2**32
        lines.append(f"table_add {TABLE} {ACTION} {key:#010x} => {number % 65536}\n")
    return "".join(lines)


def switches(json_file: Path, folder: Path) -> dict[str, list[str]]:
    """The command of each switch that is there, without its Thrift port."""
    ours, bmv2 = program("fairlane-switch"), shutil.which("simple_switch")
    if ours is None:
        raise CannotRun("fairlane-switch is not built: run `make build`")
    notify = [f"--notifications-addr=ipc://{folder}/notifications.ipc", str(json_file)]
    found = {"fairlane-switch": [ours, "--no-p4runtime", *notify]}
    # A link of that name to our switch is no second contender.
    if bmv2 is not None and "fairlane" not in str(Path(bmv2).resolve()):
        found["simple_switch"] = [bmv2, "--log-level", "off", *notify]
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def cpu_s(pid: int) -> float:
    """Seconds of CPU of a process with all threads that it has or had (each client has one), in ticks of the kernel's clock."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def fill(name: str, command: Sequence[str], cli: str, script: str, entries: int, log: Path) -> dict[str, float]:
    """Seconds that the command line takes for all entries, and the CPU seconds of the switch meanwhile."""
    port = free_port()
    with log.open("wb") as out:
        process = subprocess.Popen([*command[:1], "--thrift-port", str(port), *command[1:]], stdout=out, stderr=out)
    try:
        wait_for(port, name, process, log)
        before, start = cpu_s(process.pid), time.monotonic()
        ask(cli, port, script)
        wall, cpu = time.monotonic() - start, cpu_s(process.pid) - before
        answer = ask(cli, port, f"table_num_entries {TABLE}\n")
        if str(entries) not in answer.split():
            raise CannotRun(f"{name} has not all {entries} entries: {answer.strip()[-500:]}")
        return {"wall_s": wall, "cpu_s": cpu}
    finally:
        stop(process)


def wait_for(port: int, name: str, process: subprocess.Popen, log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            # BMv2's server answers before all of its services are there.
            time.sleep(0.5)
            return
    raise CannotRun(f"{name} opens no Thrift port:\n{log.read_text(errors='replace')[-1000:]}")


def ask(cli: str, port: int, script: str) -> str:
    done = subprocess.run(
        [cli, "--thrift-port", str(port)], input=script, capture_output=True, text=True, timeout=FILL_TIMEOUT_S, check=False
    )
    if done.returncode != 0:
        raise CannotRun(f"{cli}: {(done.stderr or done.stdout).strip()[-1000:]}")
    return done.stdout


def run(entries: int, rounds: int, cli: str) -> dict:
    samples: dict[str, list[dict[str, float]]] = {}
    script = commands(entries)
    with tempfile.TemporaryDirectory(prefix="fairlane-bench-") as name:
        folder = Path(name)
        running = switches(compile_p4(HERE / "control.p4", folder), folder)
        for turn in range(rounds):
            for switch, command in running.items():
                sample = fill(switch, command, cli, script, entries, folder / f"{switch}.log")
                samples.setdefault(switch, []).append(sample)
                show(f"round {turn + 1} of {rounds}, {switch:16} {sample['wall_s']:7.2f} s, CPU of the switch {sample['cpu_s']:6.2f} s")
    absent = {} if "simple_switch" in samples else {"simple_switch": "simple_switch is not installed here"}
    return {"machine": machine(), "entries": entries, "rounds": rounds, "cli": os.fspath(cli), "samples": samples, "absent": absent}


def median(result: dict, name: str, what: str) -> float:
    return statistics.median(sample[what] for sample in result["samples"][name])


def table(result: dict) -> str:
    about = result["machine"]
    lines = [
        f"{result['entries']:,} table_add through {Path(result['cli']).name}; {about['cpus']} CPUs, {about['model']}, load {about['load']:.1f};"
        f" medians of {result['rounds']} in turns",
        "",
        f"{'switch':18}{'seconds':>9}{'least':>8}{'most':>8}{'entries/s':>12}{'ours/this':>11}{'CPU us/entry':>14}",
    ]
    for name, samples in result["samples"].items():
        walls = [sample["wall_s"] for sample in samples]
        middle = statistics.median(walls)
        lines.append(
            f"{name:18}{middle:>9.2f}{min(walls):>8.2f}{max(walls):>8.2f}{result['entries'] / middle:>12,.0f}"
            f"{ratio(median(result, 'fairlane-switch', 'wall_s'), middle):>11.2f}"
            f"{median(result, name, 'cpu_s') / result['entries'] * 1e6:>14.0f}"
        )
    lines += [f"not measured: {reason}" for reason in result["absent"].values()]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--entries", type=int, default=10_000, help="lines for each fill (default: 10000)")
    parser.add_argument("--rounds", type=int, default=5, help="fills of each switch; the median counts (default: 5)")
    parser.add_argument("--cli", help="the command line (default: simple_switch_CLI in PATH)")
    parser.add_argument("--json", type=Path, help="also write every measurement to this file")
    arguments = parser.parse_args()
    cli = arguments.cli or shutil.which("simple_switch_CLI") or program("fairlane-switch-cli")
    if not 1 <= arguments.entries <= 2_000_000 or arguments.rounds < 1:
        parser.error("--entries is between 1 and 2000000, the size of the table, and --rounds at least 1")
    if cli is None or shutil.which(cli) is None:
        parser.error(f"{cli or 'simple_switch_CLI'} is not there: run `make build`, or name a command line with --cli")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    return report(lambda: run(arguments.entries, arguments.rounds, cli), table, lambda _: [], arguments.json)


if __name__ == "__main__":
    sys.exit(main())
