"""A real program as one end of a flow: started and stopped by the schedule, its output kept, its TCP sockets recorded.

`python -m fairlane.hosts.command --role sender --start-at T --stop-at T --log FILE --output PREFIX -- PROGRAM ARGUMENT...` in the host's
network namespace. The program leads a session of its own. At the stop, and when this process is asked to end, it and all that it has started get the stop
signal, and after a grace period SIGKILL. Exit code 1: the program could not be started, or ended by itself with a code that means failure.

Every 0.1 s the log has what the kernel says of the program's TCP sockets, if there are any (`sockets`; `tcp_sockets.py`). What the program writes to standard
output and error goes to PREFIX.out, up to `MOST_OUTPUT_BYTES`.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from fairlane.arithmetic import total
from fairlane.hosts.records import Clock, RecordWriter
from fairlane.hosts.tcp_sockets import TcpSocket, TcpSockets, descendants, inodes_of

MOST_OUTPUT_BYTES = 16_000_000
"""Of one end; what comes after that is read and thrown away."""
SAMPLED_S = 0.1
_POLL_S = 0.01
_FLUSHED_S = 1.0
_RESOLVER = "timeout:1 attempts:1"
"""resolv.conf(5): no name server can be reached, and a program that asks one, as Python's HTTPServer does for its own name, is soon told so."""


@dataclass(frozen=True)
class Plan:
    """When the program runs, and how it ends. start_s, stop_s: Unix time."""

    start_s: float
    stop_s: float
    stop_signal: int
    grace_s: float
    exit_codes: tuple[int, ...]


class Sockets:
    """Of the program and all that it has started: records of their TCP sockets. Sums include sockets that are closed."""

    def __init__(self) -> None:
        try:
            self._kernel: TcpSockets | None = TcpSockets()
        except OSError:
            self._kernel = None  # a kernel without sock_diag
        self._latest: dict[int, TcpSocket] = {}

    def record(self, log: RecordWriter, now_s: float) -> None:
        """Writes `sockets`, if there was ever one."""
        if self._kernel is None:
            return
        own = inodes_of(descendants())
        try:
            there = {found.inode: found for found in self._kernel.read() if found.inode in own}
        except OSError:
            self._kernel.close()
            self._kernel = None
            return
        self._latest |= there
        if not self._latest:
            return
        connected = [found for found in there.values() if found.established]
        log.write(
            "sockets",
            now_s,
            connected=len(connected),
            rtt_s=round(total(found.info.rtt_s for found in connected) / len(connected), 6) if connected else None,
            cwnd_bytes=sum(found.info.cwnd_bytes for found in connected) if connected else None,
            retransmitted=sum(found.info.retransmits for found in self._latest.values()),
            acked_bytes=sum(found.info.acked_bytes for found in self._latest.values()),
        )


class Output(threading.Thread):
    """Copies what the program writes into a file, up to a bound, so that it never waits for its reader."""

    def __init__(self, pipe: IO[bytes], path: Path) -> None:
        super().__init__(daemon=True)
        self._pipe = pipe
        self._path = path
        self.start()

    def run(self) -> None:
        left = MOST_OUTPUT_BYTES
        with self._path.open("wb", buffering=0) as file:
            while data := os.read(self._pipe.fileno(), 1 << 16):
                try:
                    file.write(data[:left])
                except OSError:  # a full disk; the run says so
                    left = 0
                if 0 < left <= len(data):
                    file.write(b"\n[more is left out]\n")
                left = max(0, left - len(data))


def run(argv: list[str], plan: Plan, output: Path, role: str, log: RecordWriter, clock: Clock) -> int:
    """Runs the program and writes its records; the exit code."""
    asked: list[int] = []  # the signals that asked for the end; one at any moment, so their handler only takes note
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _frame: asked.append(number))
    start_s = clock.mono_ns(plan.start_s) / 1e9
    while not asked and (left_s := start_s - clock.now_s()) > 0:
        time.sleep(min(_POLL_S, left_s))
    if asked:
        log.close()
        return 0
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={"RES_OPTIONS": _RESOLVER, **os.environ},
        )
    except OSError as error:
        print(f"fairlane.hosts.command: {argv[0]}: {error.strerror or error}", file=sys.stderr)
        log.write("end", clock.now_s(), exit_code=None, stopped=False)
        log.close()
        return 1
    assert process.stdout is not None
    reader = Output(process.stdout, output)
    log.write("start", clock.now_s(), role=role)
    log.flush()
    sockets = Sockets()
    _follow(process, clock.mono_ns(plan.stop_s) / 1e9, asked, sockets, log, clock)
    stopped = process.poll() is None
    ended_s = clock.now_s()
    sockets.record(log, ended_s)
    _end(process, plan)
    reader.join(1.0)
    code = process.returncode
    log.write("end", ended_s, exit_code=code, stopped=stopped)
    log.close()
    if stopped or code in plan.exit_codes:
        return 0
    how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
    print(f"fairlane.hosts.command: {argv[0]} {how}; its output is in {output.name}", file=sys.stderr)
    return 1


def _follow(process: subprocess.Popen[bytes], stop_s: float, asked: list[int], sockets: Sockets, log: RecordWriter, clock: Clock) -> None:
    """Until it ends, or has to, or is asked to."""
    sampled_s = flushed_s = clock.now_s()
    while process.poll() is None and not asked and (now_s := clock.now_s()) < stop_s:
        if now_s >= sampled_s:
            sockets.record(log, now_s)
            sampled_s = now_s + SAMPLED_S
        if now_s >= flushed_s:
            log.flush()
            flushed_s = now_s + _FLUSHED_S
        time.sleep(min(_POLL_S, max(0.0, stop_s - now_s)))


def _end(process: subprocess.Popen[bytes], plan: Plan) -> None:
    """It and all of its session."""
    for number, patience_s in ((plan.stop_signal, plan.grace_s), (signal.SIGKILL, 5.0)):
        try:
            os.killpg(process.pid, number)
        except (ProcessLookupError, PermissionError):
            pass
        try:
            process.wait(patience_s)
        except subprocess.TimeoutExpired:
            continue


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m fairlane.hosts.command", description="A real program as one end of a flow.")
    parser.add_argument("--role", choices=("sender", "receiver"), required=True)
    parser.add_argument("--start-at", type=float, required=True, metavar="T", help="Unix time of its start; one that has passed is now")
    parser.add_argument("--stop-at", type=float, required=True, metavar="T", help="Unix time at which it must end")
    parser.add_argument("--stop-signal", choices=("TERM", "INT"), default="TERM")
    parser.add_argument("--grace", type=float, default=2.0, metavar="S", help="seconds that it has to end (default 2)")
    parser.add_argument("--exit-codes", default="0", metavar="N,N", help="codes of success (default 0)")
    parser.add_argument("--log", required=True, metavar="FILE", help="records, as JSON lines")
    parser.add_argument("--output", required=True, metavar="FILE", help="what the program writes")
    parser.add_argument("program", nargs="+", help="after --: the program and its arguments")
    args = parser.parse_args(argv)
    clock = Clock()
    codes = tuple(int(code) for code in args.exit_codes.split(","))
    plan = Plan(args.start_at, args.stop_at, signal.Signals[f"SIG{args.stop_signal}"], args.grace, codes)
    try:
        log = RecordWriter(args.log, clock)
    except OSError as error:
        print(f"fairlane.hosts.command: cannot write the log {args.log}: {error.strerror or error}", file=sys.stderr)
        return 2
    return run(args.program, plan, Path(args.output), args.role, log, clock)


if __name__ == "__main__":
    sys.exit(main())
