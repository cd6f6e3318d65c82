"""The loops that keep a virtual machine's processors awake give way to all else, and end with the run."""

import os
import signal
import sys
from pathlib import Path

import pytest

from fairlane.fabrics import awake
from fairlane.fabrics.processes import Identity, Process, spawn, stop_all
from tests.waiting import until


def loops(process: Process) -> list[Identity]:
    """Once all of them loop at the lowest priority."""
    leader = Identity.of(process.pid)

    def all_loops() -> list[Identity]:
        found = [p for p in leader.session() if p != leader]
        ready = len(found) == len(os.sched_getaffinity(0)) and all(os.sched_getscheduler(p.pid) == os.SCHED_IDLE for p in found)
        return found if ready else []

    return until(all_loops, what="a loop for each processor")


@pytest.mark.parametrize("end", ["in order", "killed"])
def test_a_loop_for_each_processor_gives_way_and_ends_with_the_run(tmp_path: Path, end: str) -> None:
    process = spawn("idle loops", [sys.executable, "-IS", awake.__file__], tmp_path / "awake.log")
    try:
        found = loops(process)
        group = Path(f"/proc/{process.pid}/autogroup")
        if group.exists():
            assert "nice 19" in group.read_text(), "the share of the session"
        if end == "in order":
            stop_all([process])
        else:
            os.kill(process.pid, signal.SIGKILL)
            process.wait(5)
        until(lambda: not any(p.alive() for p in found), what="the loops' end")
    finally:
        stop_all([process])
    assert process.last_words() == ""
