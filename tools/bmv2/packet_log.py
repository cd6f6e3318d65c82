"""Plays packet tests on our switch and on BMv2, and compares their packet logs. See README.md.

    python -m tools.bmv2.packet_log --bmv2 simple_switch tests/p4/basic/basic.p4 ...

Each packet's lines (`[12.0] [cxt 0] ...`, by packet and copy) must be equal and in the same order; times, threads and priorities of
entries, which the two tests number differently, are taken out. Exit status 1 when something differs that `KNOWN` does not explain.
"""

from __future__ import annotations

import argparse
import difflib
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from fairlane import probes
from tools.bmv2 import stf
from tools.bmv2.process import PROGRAM, Bmv2, SwitchDied
from tools.bmv2.program import Program

# A packet's lines in BMv2's log, and in ours (`fairlane stf -L`).
_BMV2 = re.compile(r"^\[\d\d:\d\d:\d\d\.\d{3}\] \[bmv2\] \[([TDIWE])\] \[thread \d+\] (.*)$")
_OURS = re.compile(r"^\[([TDIWE])\] (.*)$")
_PACKET = re.compile(r"^\[(\d+\.\d+)\] \[cxt \d+\] (.*)$", re.DOTALL)
# What only our switch says: BMv2's queues are silent.
_OURS_ALONE = re.compile(r"^(Enqueuing|Dequeuing) packet at port|^Dropping packet: ")

Log = dict[str, list[str]]

# Lines that may differ, by cause: in docs/packet-log.md.
KNOWN: dict[str, re.Pattern[str]] = {
    "random numbers": re.compile(r"^T random\(lo="),
    "colours of meters depend on time": re.compile(r"^T Updated meter .* color result"),
}

# Registers that hold times: the two switches have their own clocks.
TIMES = "values of registers that hold times"
_CELL = re.compile(r"^(T (?:Read|Wrote) register .* value) \d+$")


def _timeless(lines: list[str]) -> list[str]:
    return [_CELL.sub(r"\1 N", line) for line in lines]


@dataclass
class Compared:
    """One test: lines compared, and those that differ, with `-` before BMv2's and `+` before ours."""

    lines: int = 0
    differences: list[str] = field(default_factory=list)
    known: Counter[str] = field(default_factory=Counter)


def messages(text: str, head: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """Level and text; lines without a head go on with the message before."""
    level, message = "", ""
    for line in text.splitlines():
        found = head.match(line)
        if found is None:
            message += "\n" + line
            continue
        if level:
            yield level, message
        level, message = found[1], found[2]
    if level:
        yield level, message


def by_packet(text: str, head: re.Pattern[str]) -> Log:
    """The lines of each packet and copy."""
    log: Log = {}
    for level, message in messages(text, head):
        packet = _PACKET.match(message)
        if packet is None or _OURS_ALONE.match(packet[2]):
            continue
        words = re.sub(r"(?m)^Priority: \d+$", "Priority: N", packet[2]).rstrip("\n")
        log.setdefault(packet[1], []).append(f"{level} {words}")
    return log


def ours(json: Path, test: Path) -> str:
    """What our switch says; a test's verdict stands at its end."""
    program = probes.program("fairlane-stf")
    if program is None:
        raise FileNotFoundError("fairlane-stf is not built: run `make build`")
    said = subprocess.run([program, json, test, "-L", "trace"], capture_output=True, text=True, timeout=120)
    if said.returncode == 2:
        raise ValueError(said.stderr.strip() or said.stdout.strip())
    # The verdict and differences are no part of the log.
    return "\n".join(line for line in said.stdout.splitlines() if not line.startswith(f"{test}: "))


def bmv2(json: Path, test: Path, executable: str) -> str:
    """What BMv2 says."""
    with Bmv2(json, log_level="trace", executable=executable) as switch:
        stf.play(switch, Program.load(json), test.read_text(encoding="utf-8"))
        return switch.read_log()


def compare(theirs: Log, our: Log) -> Compared:
    compared = Compared(lines=sum(map(len, theirs.values())))
    for packet in sorted(theirs.keys() | our.keys(), key=lambda name: [int(part) for part in name.split(".")]):
        a, b = theirs.get(packet, []), our.get(packet, [])
        known = {line: cause for line in a + b for cause, pattern in KNOWN.items() if pattern.match(line)}
        compared.known.update(known[line] for line in a if line in known)
        a, b = [line for line in a if line not in known], [line for line in b if line not in known]
        if a != b and _timeless(a) == _timeless(b):
            compared.known[TIMES] += sum(x != y for x, y in zip(a, b, strict=True))
        elif a != b:
            changes = [line for line in difflib.unified_diff(a, b, lineterm="", n=1) if not line.startswith(("---", "+++", "@@"))]
            compared.differences += [f"packet {packet}:", *changes]
    return compared


def run(source: Path, test: Path, options: list[str], executable: str) -> Compared:
    """Compiles a program by our compiler, and compares what both switches say of a test."""
    compiler = probes.program("fairlane-compile")
    if compiler is None:
        raise FileNotFoundError("fairlane-compile is not built: run `make build`")
    with tempfile.TemporaryDirectory(prefix="packet-log-") as folder:
        json = Path(folder) / "program.json"
        built = subprocess.run([compiler, *options, "-o", json, source], capture_output=True, text=True, timeout=120)
        if built.returncode:
            raise ValueError(built.stderr.strip().splitlines()[0])
        return compare(by_packet(bmv2(json, test, executable), _BMV2), by_packet(ours(json, test), _OURS))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--bmv2", default=PROGRAM, metavar="FILE", help="simple_switch (default: the one in PATH)")
    parser.add_argument("-D", action="append", default=[], metavar="NAME", help="define a macro of the programs")
    parser.add_argument("-I", action="append", default=[], metavar="DIR", help="look for the programs' included files here, too")
    parser.add_argument("--show", type=int, default=20, metavar="N", help="lines of each difference that are shown")
    parser.add_argument(
        "programs", nargs="+", type=Path, metavar="PROGRAM.p4", help="the test is PROGRAM.stf, or follows as PROGRAM.p4:TEST.stf"
    )
    arguments = parser.parse_args()
    options = [f"-D{name}" for name in arguments.D] + [f"-I{name}" for name in arguments.I]
    same = different = failed = lines = 0
    for given in arguments.programs:
        source, _, test = str(given).partition(":")
        script = Path(test) if test else Path(source).with_suffix(".stf")
        try:
            compared = run(Path(source), script, options, arguments.bmv2)
        except (ValueError, OSError, SwitchDied, stf.ScriptError, subprocess.TimeoutExpired) as error:
            failed += 1
            print(f"{script}: not compared: {str(error).splitlines()[0] if str(error) else type(error).__name__}")
            continue
        lines += compared.lines
        known = ", ".join(f"{count} lines: {cause}" for cause, count in compared.known.items())
        if compared.differences:
            different += 1
            print(f"{script}: DIFFERENT in {len(compared.differences)} of {compared.lines} lines")
            print("\n".join(f"    {line}" for line in "\n".join(compared.differences[: arguments.show]).splitlines()))
        else:
            same += 1
            print(f"{script}: same, {compared.lines} lines{f' ({known})' if known else ''}")
    print(f"{same} same, {different} different, {failed} not compared; {lines} lines")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
