"""Runs the missing points of studies, stores each result at once, and shows the progress."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from fairlane.errors import Interrupted, RunFailed
from fairlane.fabrics.interrupts import interruptible
from fairlane.studies import points, schedule
from fairlane.studies.kept import KEPT_RUNS
from fairlane.studies.store import FOLDER, Store, check_own
from fairlane.studies.study import Study
from fairlane.studies.worker import Failure

Axes = tuple[tuple[str, Any], ...]
_LINE_S = 5.0
"""Where there is no terminal, a line so often."""
_HOPELESS = 10
"""So many failures without any success, and the rest is not tried."""


@dataclass(frozen=True)
class Collected:
    """results: of each point, the results of its seeds in their order, without those that failed. failed: name of a run -> why.
    took_s: processor time of all."""

    study: Study
    results: dict[Axes, list[dict[str, Any]]]
    failed: dict[str, str]
    took_s: float

    def complete(self) -> Collected:
        """Itself. RunFailed names the runs that failed."""
        if self.failed:
            name, reason = next(iter(self.failed.items()))
            others = f" So did {len(self.failed) - 1} more." if len(self.failed) > 1 else ""
            raise RunFailed(f"{name}: {reason}.{others} The results of the other runs are kept.")
        return self


def collect(
    studies: Sequence[Study], folder: Path, console: Console, *, scheduler: str | None = None, workers: int | None = None, what: str = ""
) -> list[Collected]:
    """All results of the studies: from `folder`/points where they are there, from runs otherwise. what: the studies, for the first line.
    Interrupted: the runs that were done are kept."""
    check_own(folder)
    kept = Store(folder / FOLDER)
    jobs = [job for study in studies for job in points.jobs(study)]
    known = {(j.study, j.key): found for j in jobs if (found := kept.get(j.study, j.key, j.inputs)) is not None}
    todo = [j for j in jobs if (j.study, j.key) not in known]
    todo = [dataclasses.replace(j, kept=str((folder / KEPT_RUNS / j.study / j.key).absolute())) if j.keep else j for j in todo]
    failed: dict[tuple[str, str], Failure] = {}
    _announce(console, what, jobs, todo, workers, scheduler)
    if todo:
        try:
            with (
                _interruptible(),
                _Shown(console, todo) as shown,
                contextlib.closing(
                    schedule.run(todo, shown.say, scheduler=scheduler, workers=workers)  # type: ignore[type-var]
                ) as outcomes,
            ):
                for job, outcome in outcomes:
                    if isinstance(outcome, Failure):
                        failed[job.study, job.key] = outcome
                        shown.say(f"{job.name} failed: {outcome.reason}.")
                        if len(failed) >= _HOPELESS and len(known) == len(jobs) - len(todo):
                            raise RunFailed(f"{job.name}: {outcome.reason}. The first {_HOPELESS} runs failed, and the rest is not tried.")
                    else:
                        kept.put(job.study, job.key, outcome.result, outcome.took_s)
                        # As it is read again: JSON has no NaN.
                        known[job.study, job.key] = kept.get(job.study, job.key, job.inputs) or {}
                    shown.step(job)
        except Interrupted as error:
            done = sum((j.study, j.key) in known for j in jobs)
            raise Interrupted(
                error.signal_name, f"{done} of {len(jobs)} runs are kept in {folder}; the same command continues there"
            ) from None
    return [_collected(study, [j for j in jobs if j.study == study.id], known, failed, kept) for study in studies]


def _interruptible() -> contextlib.AbstractContextManager[None]:
    """As `interruptible`; a thread beside the main one, as in some notebooks, has no signals."""
    return interruptible() if threading.current_thread() is threading.main_thread() else contextlib.nullcontext()


def _collected(
    study: Study,
    own: list[points.Job],
    known: Mapping[tuple[str, str], dict[str, Any]],
    failed: dict[tuple[str, str], Failure],
    kept: Store,
) -> Collected:
    results: dict[Axes, list[dict[str, Any]]] = {}
    for job in own:
        found = results.setdefault(job.axes, [])
        if (job.study, job.key) in known:
            found.append(known[job.study, job.key])
    reasons = {job.name: failed[job.study, job.key].reason for job in own if (job.study, job.key) in failed}
    return Collected(study, results, reasons, kept.took_s(study.id, {j.key for j in own}))


def _announce(
    console: Console, what: str, jobs: list[points.Job], todo: list[points.Job], workers: int | None, scheduler: str | None
) -> None:
    there = f"{len(jobs) - len(todo)} of them done before" if len(todo) < len(jobs) else "none done before"
    console.print(f"{what}{len(jobs)} runs, {there}.", highlight=False, markup=False, soft_wrap=True)
    if todo:
        hands = min(workers or schedule.cores(), len(todo))
        seconds = sum(j.cost for j in todo) + (0 if scheduler else hands * schedule.WORKER_S)
        where = f"on the cluster at {scheduler}" if scheduler else f"with {hands} {'workers' if hands > 1 else 'worker'} here"
        clock = "" if scheduler else f", {span(seconds / hands)} by the clock"
        console.print(f"{len(todo)} to go {where}: about {span(seconds)} of processor time{clock}.", highlight=False, soft_wrap=True)


def span(seconds: float) -> str:
    """A length of time for people."""
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


class _Shown:
    """A bar with the time left; a line now and then where there is no terminal."""

    def __init__(self, console: Console, todo: list[points.Job]) -> None:
        self._console, self._of, self._done, self._total = console, len(todo), 0, sum(j.cost for j in todo)
        self._began = self._last = time.monotonic()
        self._cost = 0.0
        columns = (
            BarColumn(),
            TextColumn("{task.fields[done]}/{task.fields[of]} runs"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[what]}"),
        )
        self._bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)

    def __enter__(self) -> _Shown:
        self._bar.start()
        self._task = self._bar.add_task("runs", total=self._total, done=0, of=self._of, what="")
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def say(self, text: str) -> None:
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def step(self, job: points.Job) -> None:
        self._done += 1
        self._cost += job.cost
        self._bar.update(self._task, advance=job.cost, done=self._done, what=job.name)
        now = time.monotonic()
        if not self._console.is_terminal and (self._done == self._of or now - self._last >= _LINE_S):
            left = (now - self._began) * (self._total - self._cost) / self._cost
            self.say(f"{self._done}/{self._of}  {job.name}" + (f"  about {span(left)} left" if self._done < self._of else ""))
            self._last = now
