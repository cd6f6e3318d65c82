"""Keeps the processors of a virtual machine awake during a run in real time: one loop for each, with the lowest priority.

When a processor of a virtual machine is idle, the host takes it back, and returns it when it is free again: milliseconds late on a busy
host ("steal" in /proc/stat). A run on Mininet sleeps between packets, so each packet has this delay. A processor that never sleeps avoids it. The
loops have the policy SCHED_IDLE (sched(7)), and their session the lowest share of automatic groups. This file runs as a separate program.
"""

from __future__ import annotations

import ctypes
import os
import signal
from contextlib import suppress
from pathlib import Path

_PR_SET_PDEATHSIG = 1


def on_virtual_machine() -> bool:
    """Whether the processor reports a virtual machine (the flag `hypervisor`, only on x86)."""
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
