"""What each queue management and each explicit feedback costs for a packet: als.p4 compiled with it, without I/O (the table of docs/measurements.md).

    python bench/schemes.py [--packets 100000] [--rounds 5] [--callgrind]

As in packets.py, frames come from memory and go through parser, ingress, egress and deparser, with what the traffic manager would say of a busy
link: ten packets behind each. The output port has the scheme's parameters. With --callgrind (valgrind) also instructions of a packet, which another program on the
machine does not change: the difference of two runs over the difference of their packets, the mean of a busy and an idle link.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

from als_program import data_frame, with_entries, write_pcap
from fairlane.schemes import registry
from packets import SENDERS, SOURCE, build_runner, run_ours
from veths import program

ECT_0, ECT_1 = 2, 1
P4SRC = SOURCE.parent
SCHEMES: dict[str, tuple[tuple[str, ...], int, str]] = {
    "als.p4 alone": ((), 0, ""),
    "RED that marks": (("-DRED_ECN",), ECT_0, ""),
    **{
        scheme.title: (
            ("-DCHOSEN", "-I", str(scheme.folder), "-I", str(P4SRC)),
            ECT_1 if scheme.parameters.priorities > 1 or scheme.name == "abc" else ECT_0,
            scheme.header.name if scheme.header else "",
        )
        for scheme in registry.SCHEMES.values()
        if not scheme.standing
    },
}
"""Options of the compiler, ECN codepoint of the frames, and the extension of their RTP header."""


PASSES = 18
"""How often the benchmark program takes each packet: nine times with a busy link, and nine times with an idle one."""


def instructions(runner: Path, program_file: Path, capture: Path, packets: int, folder: Path) -> int:
    out = folder / "callgrind.out"
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", str(runner), str(program_file), str(capture), str(packets)]
    # Translated before the first packet: by default a thread translates meanwhile, and how many packets that takes is chance.
    environment = {**os.environ, "FAIRLANE_MACHINE_CODE": "always"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return next(int(line.rsplit(" ", 1)[1].replace(",", "")) for line in done.stderr.splitlines() if "Collected" in line)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--packets", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--callgrind", action="store_true")
    args = parser.parse_args()
    runner = build_runner()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cases = {}
        for number, (scheme, (options, ecn, extension)) in enumerate(SCHEMES.items()):
            compiled, capture = folder / f"{number}.json", folder / f"{number}.pcap"
            command = [
                program("fairlane-compile") or "fairlane-compile",
                *options,
                "-o",
                str(compiled),
                str(SOURCE),
            ]
            subprocess.run(command, check=True)
            with_entries(compiled, compiled)
            write_pcap(capture, [data_frame(1000, sender, ecn, extension) for sender in range(SENDERS)])
            cases[scheme] = (compiled, capture)
        times: dict[str, list[float]] = {scheme: [] for scheme in cases}
        for _ in range(args.rounds):
            for scheme, (compiled, capture) in cases.items():
                times[scheme].append(run_ours(runner, compiled, capture, args.packets)["busy"]["ns_median"])
        print(f"| als.p4 with | ns, median (least) | more than alone |{' instructions | more than alone |' if args.callgrind else ''}")
        print(f"|---|---|---|{'---|---|' if args.callgrind else ''}")
        base_ns = statistics.median(times["als.p4 alone"])
        base_instructions = 0.0
        for scheme, (compiled, capture) in cases.items():
            median = statistics.median(times[scheme])
            row = f"| {scheme} | {median:.0f} ({min(times[scheme]):.0f}) | {median - base_ns:+.0f} |"
            if args.callgrind:
                few, many = (instructions(runner, compiled, capture, count, folder) for count in (2_500, 5_500))
                each = (many - few) / 3_000 / PASSES
                base_instructions = base_instructions or each
                row += f" {each:.0f} | {each - base_instructions:+.0f} |"
            print(row, flush=True)


if __name__ == "__main__":
    main()
