"""Keeps the processors of a virtual machine awake while a run in real time lasts: a loop for each, which gives way to everything else.

An idle processor of a virtual machine goes back to the machine's host, and comes again when the host finds time: milliseconds late on a busy
one ("steal" in /proc/stat). A run on Mininet sleeps between packets and pays this for every one. A processor that never sleeps does not. The
loops have the policy SCHED_IDLE (sched(7)), and their session the lowest share of automatic groups. The file runs as a program of its own.
"""

from __future__ import annotations

import ctypes
import os
import signal
from contextlib import suppress
from pathlib import Path

_PR_SET_PDEATHSIG = 1


def on_virtual_machine() -> bool:
    """Whether the processor says so (the flag `hypervisor`, of x86 alone)."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("flags"):
                return "hypervisor" in line.split()
    return False


def main() -> None:
    with suppress(OSError):
        Path("/proc/self/autogroup").write_text("19")
    parent = os.getpid()
    for processor in os.sched_getaffinity(0):
        if os.fork() == 0:
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
            os.sched_setaffinity(0, {processor})
            while os.getppid() == parent:
                for _ in range(1_000_000):
                    pass
            return
    signal.pause()


if __name__ == "__main__":
    main()
