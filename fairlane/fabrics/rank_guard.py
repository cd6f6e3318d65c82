"""A rank of MPI in two processes. The one that mpiexec has started waits; its child is the rank. So a rank that dies is named in a sentence, with an exit code of ours; and the rank
cleans up where mpiexec ends the first process at once, as some do. `fairlane.cli` calls `guarded` before anything is loaded."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sys
import tempfile
import time
from pathlib import Path

from fairlane.errors import RUN_FAILED
from fairlane.fabrics.interrupts import ENDING

# As MPICH, Open MPI and SLURM set them for the processes that they start.
_RANK = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")
_RANK_HERE = ("MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID")
_COUNT = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS")

_SPEECH_S = 0.5
"""For the first rank on a machine to say why it ends: mpiexec ends it as soon as another one has ended with an error."""


class _State:
    scratch: Path | None = None


def scratch() -> Path:
    """A folder of this rank's own. It is gone when the rank is."""
    if _State.scratch is None:
        raise AssertionError("the command line is guarded where it has --mpi")
    return _State.scratch


def remove_scratch() -> None:
    """Where the first process may have been killed, which removes it otherwise."""
    if _State.scratch is not None:
        shutil.rmtree(_State.scratch, ignore_errors=True)


def expected_count() -> int:
    """Of ranks, as whoever started this process says; 1 if nobody says anything."""
    return int(_first(_COUNT) or 1)


def _is_first_here() -> bool:
    """Of the ranks on this machine."""
    return (_first(_RANK_HERE) or "0") == "0"


def _first(names: tuple[str, ...]) -> str | None:
    return next((os.environ[name] for name in names if os.environ.get(name, "").isdigit()), None)


def guarded() -> None:
    """Returns in a new process, and ends with that one's exit code in this one."""
    folder = Path(tempfile.mkdtemp(prefix="fairlane-rank-"))
    numbers = [number for number in (signal.SIGINT, *ENDING) if signal.getsignal(number) is not signal.SIG_IGN]
    before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    first = os.getpid()
    pid = os.fork()
    if pid == 0:
        os.setsid()  # what ends the first process's group leaves this one time to clean up
        _end_with(first)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        _State.scratch = folder
        if not _is_first_here():
            _be_silent()  # what is wrong with the command line is said once on each machine
        return
    passed: set[int] = set()

    def pass_on(number: int, _: object) -> None:
        passed.add(number)
        os.kill(pid, number)

    for number in numbers:
        signal.signal(number, pass_on)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    _, status = os.waitpid(pid, 0)
    shutil.rmtree(folder, ignore_errors=True)
    code = os.waitstatus_to_exitcode(status)
    if code > 0 and not _is_first_here():
        time.sleep(_SPEECH_S)
    if -code in passed:  # the rank had nothing to clean up yet, or no longer
        code = 128 - code
    elif code < 0:
        which = f"rank {_first(_RANK) or 0} on {socket.gethostname()}"
        said = f"fairlane: The process {pid} of {which} was ended by {signal.Signals(-code).name}: the run ended with it.\n"
        os.write(2, said.encode())
        code = RUN_FAILED
    os._exit(code)


def _end_with(first: int) -> None:
    import ctypes

    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG, prctl(2)
    if os.getppid() != first:
        os._exit(RUN_FAILED)


def _be_silent() -> None:
    sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")


def speak(first: bool) -> None:
    """From now on only the first rank says something: what all must know, all tell each other."""
    if first:
        sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
    else:
        _be_silent()
