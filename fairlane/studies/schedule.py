"""Runs points: on the cores of this machine, or on any cluster of dask.distributed.

A point is a pure function of its job, so a lost worker costs only time: its point runs again, and the results are the same for any
number of workers.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from fairlane import probes, python_child
from fairlane.errors import CANNOT_RUN_HERE, Refusal
from fairlane.fabrics import interrupts
from fairlane.results import held
from fairlane.studies import points
from fairlane.studies.points import Done, Job
from fairlane.studies.worker import Failure, attempt

LOST_WORKERS = 5
"""So many workers may die under one point before it counts as its own fault."""
WORKER_S = 1.2
"""Processor time of a worker's start: it imports numpy and pandas."""
Say = Callable[[str], None]


def cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def run(jobs: Sequence[Job], say: Say, *, scheduler: str | None = None, workers: int | None = None) -> Iterator[tuple[Job, Done | Failure]]:
    """(job, outcome) in the order of completion. say: is told when a worker is lost. scheduler: address of a dask scheduler; otherwise
    `workers` processes here (default: one a core). Refusal: no cluster answers."""
    # Longest first: the last to finish then keep no other worker waiting.
    ordered = sorted(jobs, key=lambda job: -job.cost)
    return _on_dask(scheduler, ordered, say) if scheduler is not None else _here(ordered, say, workers or cores())


def _killed(job: Job) -> Failure:
    return Failure(
        f"the process that ran it ended {LOST_WORKERS + 1} times, by a crash or for lack of memory; examine this run with --workers 1"
    )


def _lost(who: str, job: Job) -> str:
    return f"{who}; {job.name} runs again."


class _Worker:
    """A process of `fairlane.studies.worker`, and the job that it has. Its outcomes come to `told`, and None once it has ended."""

    def __init__(self, folder: Path, told: queue.SimpleQueue[tuple[_Worker, Any]]) -> None:
        environment = {**os.environ, "TMPDIR": str(folder), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        with interrupts.held():
            self._process = subprocess.Popen(
                python_child.of_module("fairlane.studies.worker"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=environment,
                bufsize=0,
            )
        self.job: Job | None = None
        # A thread, since Windows cannot wait for several pipes.
        threading.Thread(target=self._listen, args=(told,), daemon=True).start()

    def _listen(self, told: queue.SimpleQueue[tuple[_Worker, Any]]) -> None:
        try:
            with (
                io.BufferedReader(cast(io.RawIOBase, self._process.stdout)) as outcomes,
                contextlib.suppress(EOFError, OSError, pickle.UnpicklingError),
            ):
                while True:
                    told.put((self, pickle.load(outcomes)))
        finally:
            told.put((self, None))

    def give(self, job: Job) -> None:
        """Start a job. A worker that is gone already has told so."""
        self.job = job
        assert self._process.stdin is not None
        try:
            view = memoryview(pickle.dumps(job))
            while view:
                view = view[self._process.stdin.write(view) :]
        except OSError:
            pass

    def end(self) -> str:
        """End it, whatever it does, and say how it ended."""
        self._process.kill() if self._process.poll() is None and self.job is not None else None
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            code = self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        return f"A worker (process {self._process.pid}) ended by {how}"


def _here(ordered: Sequence[Job], say: Say, count: int) -> Iterator[tuple[Job, Done | Failure]]:
    waiting, deaths = deque(ordered), Counter[str]()
    told: queue.SimpleQueue[tuple[_Worker, Any]] = queue.SimpleQueue()
    with held.scratch(_SCRATCH) as folder:
        workers: set[_Worker] = set()
        try:
            while workers or waiting:
                while waiting and len(workers) < count:
                    worker = _Worker(folder, told)
                    workers.add(worker)
                    worker.give(waiting.popleft())
                worker, outcome = _next(told)
                job = worker.job
                if job is None or worker not in workers:  # it had nothing left to do
                    continue
                worker.job = None
                if outcome is not None and waiting:
                    worker.give(waiting.popleft())
                else:
                    workers.remove(worker)
                    how = worker.end()
                if outcome is not None:
                    yield job, outcome
                    continue
                deaths[job.key] += 1
                if deaths[job.key] > LOST_WORKERS:
                    yield job, _killed(job)
                else:
                    say(_lost(how, job))
                    waiting.appendleft(job)
        finally:
            for worker in workers:
                worker.end()


def _next(told: queue.SimpleQueue[tuple[_Worker, Any]]) -> tuple[_Worker, Any]:
    """Windows hears Ctrl-C between two waits alone."""
    while True:
        with contextlib.suppress(queue.Empty):
            return told.get(timeout=0.5 if sys.platform == "win32" else None)


_SCRATCH = "fairlane-study-"
"""How the names of folders begin that have the records of runs under way."""


def _attempt(job: Job) -> Any:
    return attempt(points.run, job)


def _on_dask(address: str, ordered: Sequence[Job], say: Say) -> Iterator[tuple[Job, Done | Failure]]:
    probes.need("dask", "--scheduler")
    import dask
    from distributed import Client, KilledWorker, as_completed

    with dask.config.set({"distributed.comm.timeouts.connect": "10s", "logging.distributed": "error"}):
        try:
            client = Client(address)
        except (OSError, ValueError) as error:
            raise Refusal(f"--scheduler {address}: no dask scheduler answers there ({error}).", CANNOT_RUN_HERE) from error
        with client:
            if not client.scheduler_info(n_workers=-1)["workers"]:
                say(f"The scheduler at {address} has no worker yet: runs begin when the first one joins.")
            futures = {client.submit(_attempt, job, pure=False, priority=-number): job for number, job in enumerate(ordered)}
            names = {future.key: job for future, job in futures.items()}

            def hear(event: tuple[float, Any]) -> None:
                message = event[1] if isinstance(event[1], dict) else {}
                if message.get("action") == "remove-worker":
                    for key in message.get("processing-tasks", ()):
                        if key in names and not message.get("expected"):
                            say(_lost(f"The worker {message.get('worker', '')} is lost", names[key]))

            client.subscribe_topic("all", hear)
            try:
                for future in as_completed(list(futures)):
                    job = futures.pop(future)
                    try:
                        yield job, future.result()
                    except KilledWorker:
                        yield job, _killed(job)
                    future.release()
            finally:
                client.unsubscribe_topic("all")
                client.cancel(list(futures))
