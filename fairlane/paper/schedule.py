"""Runs points on dask.distributed: a cluster on this machine, or any that exists.

A point is a pure function of its job, so a lost worker costs only time: its points run again elsewhere, and the
results are the same for any number of workers.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from fairlane import probes
from fairlane.errors import CANNOT_RUN_HERE, Refusal, RunFailed

_LOST_WORKERS = 5
"""So many workers may die under one point before it counts as its own fault."""


@contextmanager
def cluster(address: str | None, workers: int | None) -> Iterator[Any]:
    """A client of the cluster at `address`, or of one made here with `workers` processes (default: one a core)."""
    probes.need("dask", "a sweep")
    import dask
    from distributed import Client, LocalCluster

    # Workers are restarted when they die; the scheduler wants a port for HTTP, any free one on loopback.
    with dask.config.set(
        {
            "distributed.scheduler.allowed-failures": _LOST_WORKERS,
            "distributed.comm.timeouts.connect": "10s",
            "distributed.worker.daemon": True,
            "distributed.admin.log-format": "%(message)s",
            "logging.distributed": "error",
        }
    ):
        if address is not None:
            try:
                client = Client(address)
            except (OSError, ValueError) as error:
                raise Refusal(f"--scheduler {address}: no dask scheduler answers there ({error}).", CANNOT_RUN_HERE) from error
            with client:
                yield client
            return
        count = workers or os.cpu_count() or 1
        with (
            LocalCluster(
                n_workers=count, threads_per_worker=1, dashboard_address="127.0.0.1:0", protocol="tcp", host="127.0.0.1", silence_logs=50
            ) as local,
            Client(local) as client,
        ):
            yield client


def run(client: Any, function: Callable[[Any], Any], jobs: list[Any]) -> Iterator[tuple[Any, Any]]:
    """(job, result) in the order of completion. RunFailed names the job whose call raised an exception, or ended its worker
    again and again."""
    from distributed import KilledWorker, as_completed

    # Longest first, where jobs can tell: the last to finish then keep no other worker waiting.
    ordered = sorted(jobs, key=lambda job: -getattr(job, "cost", 0.0))
    futures = {}
    for number, job in enumerate(ordered):
        futures[client.submit(function, job, pure=False, priority=-number)] = job
    try:
        for future in as_completed(list(futures)):
            job = futures[future]
            try:
                result = future.result()
            except KilledWorker as error:
                raise RunFailed(
                    f"{job.name}: the process that ran it ended {_LOST_WORKERS + 1} times, by a crash or for lack of memory. The results of the"
                    f" other runs are kept; examine this run with --workers 1."
                ) from error
            except Exception as error:
                raise RunFailed(f"{job.name}: {type(error).__name__}: {error}. The results of the other runs are kept.") from error
            yield job, result
    finally:
        client.cancel(list(futures))
