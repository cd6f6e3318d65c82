"""The ranks of MPI among which one network is divided (docs/machines.md): how they tell each other what goes where, and what has gone wrong.

All of it is one operation, `Ranks.exchange`: each rank sends its bytes to those for which it has some, and all learn the least of the numbers that they give. Nobody knows from whom something
comes; it is all there when everybody's sends have arrived, which is when the least number is known (Hoefler, Siebert, Lumsdaine 2010, "Scalable communication protocols for dynamic sparse data
exchange"). A rank that fails gives a number that says so, wherever the others are: then all raise what it has raised.
"""

from __future__ import annotations

import os
import pickle
import signal
import socket
import sys
import time
import traceback
from array import array
from collections.abc import Callable, Sequence
from typing import Any

from fairlane import probes
from fairlane.errors import CANNOT_RUN_HERE, RUN_FAILED, Interrupted, Refusal
from fairlane.fabrics import rank_guard
from fairlane.fabrics.interrupts import ENDING
from fairlane.fabrics.partitions import Elsewhere, portable

NEVER = 2**64 - 1
"""Of `Ranks.exchange`: this rank has no number to give."""
_FAILED = 0
_INTERRUPTED_S = 0.5
"""For the others to hear of an interrupt: who starts ranks often kills them 1 s later."""
# A wait that is so short keeps the core, and gives way only to who else is ready there. A longer one sleeps, for a tenth of the time that it has taken so far.
_SHORT_S, _PART, _MOST_S = 0.0002, 0.1, 0.002


class _Lost(Exception):
    """The others do not answer."""


class Ranks:
    """This process among all that mpiexec has started. own: its number, from 0; count: how many there are."""

    def __init__(self, mpi: Any) -> None:
        self._mpi = mpi
        self._comm = mpi.COMM_WORLD
        self._rounds = 0
        self._heard: BaseException | None = None
        self.own: int = self._comm.Get_rank()
        self.count: int = self._comm.Get_size()

    def exchange(self, number: int, ours: Sequence[tuple[int, bytes]]) -> tuple[int, list[tuple[int, bytearray]]]:
        """Gives others their bytes: (rank, bytes), each rank once and not this one. Returns the least number of all ranks, and what has come, by rank. number: from 0 to NEVER. Raises
        what another rank has raised."""
        least, theirs = self._round(min(number + 1, NEVER), ours)
        if least == _FAILED:
            self._raise(None)
        return (NEVER if least == NEVER else least - 1), sorted(theirs, key=lambda one: one[0])

    def check_same(self, what: str, value: bytes) -> None:
        """Refusal, in all ranks by the next `exchange`, if a value is not the same in all. what: its name."""
        place = socket.gethostname().encode()
        _, theirs = self.exchange(NEVER, [(0, value + place)] if self.own else [])
        for rank, content in theirs:
            if bytes(content[: len(value)]) != value:
                where = content[len(value) :].decode(errors="replace")
                raise Refusal(
                    f"--mpi: {what} of rank {rank} on {where} differs from that of rank 0 on {place.decode()}: all machines need the same."
                )

    def tell(self, error: BaseException) -> bool:
        """Ends all ranks with it, unless they have told it to this one. False: they do not answer any more."""
        if error is self._heard:
            return True
        limit_s = _INTERRUPTED_S if isinstance(error, Interrupted) else None
        try:
            self._round(_FAILED, [], limit_s)
            self._raise(error, limit_s)
        except _Lost:
            return False
        except BaseException as raised:  # noqa: BLE001 - it is what was told, by this rank or by one before it; or a further interrupt
            return raised is self._heard
        return True

    def _round(self, word: int, ours: Sequence[tuple[int, bytes]], limit_s: float | None = None) -> tuple[int, list[tuple[int, bytearray]]]:
        mpi, comm = self._mpi, self._comm
        tag = self._rounds & 1  # who is ahead is so by at most one
        self._rounds += 1
        theirs: list[tuple[int, bytearray]] = []
        status = mpi.Status()

        def take() -> None:
            while (message := comm.Improbe(mpi.ANY_SOURCE, tag, status)) is not None:
                content = bytearray(status.Get_count(mpi.BYTE))
                message.Recv([content, mpi.BYTE])
                theirs.append((status.Get_source(), content))

        def arrived() -> bool:
            take()
            return bool(mpi.Request.Testall(sends))

        def known() -> bool:
            take()
            return bool(request.Test())

        sends = [comm.Issend([content, mpi.BYTE], rank, tag) for rank, content in ours]
        if sends:
            _wait(arrived, limit_s)
        mine, least = array("Q", [word]), array("Q", [0])
        request = comm.Iallreduce([mine, mpi.UINT64_T], [least, mpi.UINT64_T], mpi.MIN)
        _wait(known, limit_s)
        return least[0], theirs

    def _raise(self, error: BaseException | None, limit_s: float | None = None) -> None:
        """Raises what the first rank that has failed has raised; error: what this one has."""
        mpi, comm = self._mpi, self._comm
        who = array("q", [self.count if error is None else self.own])
        first, size = array("q", [0]), array("q", [0])
        _wait(comm.Iallreduce([who, mpi.INT64_T], [first, mpi.INT64_T], mpi.MIN).Test, limit_s)
        content = b""
        if error is not None and first[0] == self.own:
            text = "".join(traceback.format_exception(error))
            content = pickle.dumps((self._placed(error), text))
            size[0] = len(content)
        _wait(comm.Ibcast([size, mpi.INT64_T], first[0]).Test, limit_s)
        buffer = bytearray(content or size[0])
        _wait(comm.Ibcast([buffer, mpi.BYTE], first[0]).Test, limit_s)
        if error is not None and first[0] == self.own:
            self._heard = error
            raise error
        found, text = pickle.loads(buffer)
        found.__cause__ = Elsewhere(text)
        self._heard = found
        raise found

    def _placed(self, error: BaseException) -> BaseException:
        """As others are told of it."""
        if type(error) is Refusal and self.own:
            return Refusal(f"rank {self.own} on {socket.gethostname()}: {error}", error.code)
        return portable(error)


def _wait(done: Callable[[], bool], limit_s: float | None) -> None:
    """Lets Python see signals meanwhile."""
    began = time.monotonic()
    while not done():
        waited = time.monotonic() - began
        if limit_s is not None and waited > limit_s:
            raise _Lost
        if waited < _SHORT_S:
            os.sched_yield()
        else:
            time.sleep(min(waited * _PART, _MOST_S))


def together(work: Callable[[Ranks], None]) -> None:
    """Calls `work` in every rank. What it raises in one of them ends all: the first rank raises it, the others are silent. Refusal: no MPI."""
    mpi = _mpi()
    ranks = Ranks(mpi)
    rank_guard.speak(ranks.own == 0)
    try:
        work(ranks)
        ranks.exchange(NEVER, [])  # the others end with the first, when its results are there
    except BaseException as error:
        if isinstance(error, Interrupted):  # it comes twice where both processes of a rank get it
            for number in (signal.SIGINT, *ENDING):
                signal.signal(number, signal.SIG_IGN)
        rank_guard.remove_scratch()
        if not ranks.tell(error):
            # One has ended, and the others were ended for it. Its own guard says so; MPI cannot be left in order.
            _leave(RUN_FAILED)
        mpi.Finalize()
        if ranks.own:  # mpiexec takes the first one's code; it would end that one at once where another one has a code of its own
            _leave(0)
        raise
    mpi.Finalize()


def _leave(code: int) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _mpi() -> Any:
    """MPI, begun."""
    if sys.platform != "linux":
        raise Refusal("--mpi: needs Linux.", CANNOT_RUN_HERE)
    probes.need("mpi", "--mpi")
    import mpi4py

    mpi4py.rc.threads = False
    mpi4py.rc.finalize = False
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise Refusal(
            f"--mpi: mpi4py finds no MPI here ({str(error).splitlines()[0]}): install one, on Debian and Ubuntu by 'apt install openmpi-bin'.",
            CANNOT_RUN_HERE,
        ) from error
    started, found = rank_guard.expected_count(), MPI.COMM_WORLD.Get_size()
    if found != started and found == 1:
        library = MPI.Get_library_version().split(",")[0].splitlines()[0]
        raise Refusal(
            f"--mpi: {started} processes were started, and each is alone: mpi4py's MPI ({library.strip()}) is not that of the mpiexec or srun that started them. "
            "MPI4PY_LIBMPI names another library of MPI; with srun, add --mpi=pmix.",
            CANNOT_RUN_HERE,
        )
    return MPI
