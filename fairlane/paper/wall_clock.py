"""`fairlane paper --mininet`: the rows whose files have a [mininet] table, run on Mininet, and the same points in virtual time.

    FOLDER/mininet/als-3/seed=1/        results of a run as `fairlane run` writes them, and run.json
    FOLDER/mininet/als-3.json           measures of both clocks, for the page

A run is kept with its raw records, and measures are computed from them each time; it runs again only when the experiment or its
code has changed.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import os
import platform
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from rich.console import Console

from fairlane import execute, probes
from fairlane.errors import CANNOT_RUN_HERE, Refusal, RunFailed
from fairlane.experiments import fabrics, loader, sweep
from fairlane.experiments.model import Experiment
from fairlane.fabrics.base import Ready, Settings
from fairlane.fabrics.flows import Timing
from fairlane.fabrics.places import MININET
from fairlane.fabrics.switch_process import FIRST_GRPC_PORT
from fairlane.paper import make, on_mininet
from fairlane.paper.row import Row
from fairlane.results import result_folder, series
from fairlane.studies import collect, measures, store

_SOURCES = (
    "controller/*.py",
    "controller/plane/*.py",
    "hosts/*.py",
    "hosts/algorithms/__init__.py",
    "hosts/algorithms/base.py",
    "p4src/**/*.p4",
    "p4src/schemes/*/*.py",
    "schemes/*.py",
    "topologies/*.py",
    "fabrics/control_plane.py",
    "fabrics/flows.py",
    "fabrics/mininet_run.py",
    "fabrics/supervisor.py",
)
_AROUND_S = 12.0
"""What a run takes besides its own time: building the network, starting processes, reading records, plots."""


@dataclass(frozen=True)
class Run:
    """One run on Mininet. folder: where its results are, or will be."""

    row: Row
    point: sweep.Point
    experiment: Experiment
    folder: Path
    inputs: str
    program: str

    @property
    def name(self) -> str:
        return f"{self.row.id} {self.point.name}"

    @property
    def is_there(self) -> bool:
        try:
            kept = json.loads((self.folder / "run.json").read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return False
        return (kept.get("inputs"), kept.get("program")) == (self.inputs, self.program)


@cache
def _program(kinds: tuple[str, ...]) -> str:
    """Digest of everything that a run with flows of these kinds goes through here."""
    digest = hashlib.sha256()
    for pattern in _SOURCES:
        for path in sorted(probes.PACKAGE.glob(pattern)):
            digest.update(str(path.relative_to(probes.PACKAGE)).encode() + b"\0" + path.read_bytes() + b"\0")
    for kind in kinds:
        digest.update(store.algorithm_digest(kind).encode())
    switch = probes.program("fairlane-switch")
    if switch is not None:
        digest.update(switch.read_bytes())
    return digest.hexdigest()


def plan(rows: Sequence[Row], folder: Path) -> list[Run]:
    """All runs of the rows that are chosen for Mininet, in their order."""
    runs = []
    for row in rows:
        for point in on_mininet.points(row) if fabrics.is_chosen(row.document) else ():
            experiment = loader.from_document(point.document, row.id)
            kinds = tuple(sorted({flow.kind for flow in experiment.flows}))
            runs.append(
                Run(
                    row,
                    point,
                    experiment,
                    folder / "mininet" / row.id / sweep.point_key(point.axes, point.seed),
                    on_mininet.inputs(point),
                    _program(kinds),
                )
            )
    return runs


def announce(runs: Sequence[Run], console: Console) -> bool:
    """Print what will run and how long it takes; returns whether this machine can. Refusal: an experiment cannot run on Mininet at all."""
    if not runs:
        console.print("Mininet: none of these rows has a \\[mininet] table.", highlight=False)
        return False
    try:
        for run in runs:
            _ready(run)
    except Refusal as refusal:
        if refusal.code != CANNOT_RUN_HERE:
            raise
        console.print(
            f"The runs on Mininet are left out, the report is of virtual time: {refusal}", highlight=False, markup=False, soft_wrap=True
        )
        return False
    todo = [run for run in runs if not run.is_there]
    seconds = sum(run.experiment.duration_s + _AROUND_S for run in todo)
    console.print(
        f"Mininet: {len({run.row.id for run in runs})} rows, {len(runs)} runs, {len(runs) - len(todo)} are there already."
        + (f" {len(todo)} to go by the wall clock, one after another: about {collect.span(seconds)}." if todo else ""),
        highlight=False,
        soft_wrap=True,
    )
    return True


def carry_out(
    runs: Sequence[Run], folder: Path, console: Console, *, grpc_port: int, scheduler: str | None = None, workers: int | None = None
) -> None:
    """Run the missing runs, on both clocks but never at the same time, and write each row's measures. RunFailed, at the end, if some failed."""
    rows = list({run.row.id: run.row for run in runs}.values())
    console.print("The points of \\[mininet] in virtual time:", highlight=False)
    virtual = make.collect([_complete(row) for row in rows], folder, console, scheduler=scheduler, workers=workers)
    failed: dict[str, str] = {}
    todo = [run for run in runs if not run.is_there]
    for row, outcome in zip(rows, virtual):
        own = [run for run in runs if run.row.id == row.id]
        for run in own:
            if run in todo:
                console.print(
                    f"{todo.index(run) + 1}/{len(todo)}  {run.name} on Mininet: {run.experiment.duration_s:g} s",
                    highlight=False,
                    markup=False,
                    soft_wrap=True,
                )
                try:
                    _carry_out(run, grpc_port)
                except RunFailed as error:
                    failed[run.name] = str(error)
                    console.print(f"     failed: {error}", highlight=False, markup=False, soft_wrap=True)
        _write(folder, row, outcome.results, own, failed)
    if failed:
        raise RunFailed(f"of the runs on Mininet, these failed, and the others are kept: {', '.join(failed)}")


def _complete(row: Row) -> Row:
    """A row's points on Mininet as virtual time runs them, with all of the row's seeds."""
    document = fabrics.laid_over(row.document, complete=True)
    document = dataclasses.replace(document, values={**document.values, "seeds": list(row.sweep.seeds)})
    return dataclasses.replace(
        row, id=f"{row.id}.mininet", sweep=sweep.expand(sweep.without(document, sweep.REPORT_KEYS)), curves=(), figures=(), expectations=()
    )


def _ready(run: Run, grpc_port: int = FIRST_GRPC_PORT) -> Ready:
    """Refusal: as of the fabric."""
    return MININET.ready(run.experiment, Settings("embedded", first_grpc_port=grpc_port))


def _carry_out(run: Run, grpc_port: int) -> None:
    shutil.rmtree(run.folder, ignore_errors=True)
    ready = _ready(run, grpc_port)
    before = os.getloadavg()[0]
    execute.execute(ready, run.folder, Console(file=io.StringIO()))
    result_folder.write_json(
        run.folder / "run.json",
        {
            "inputs": run.inputs,
            "program": run.program,
            "ended": time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()),
            "load": [before, os.getloadavg()[0]],
        },
    )


def _measured(run: Run) -> dict[str, Any]:
    """From the raw records."""
    begin_s = json.loads((run.folder / "summary.json").read_text(encoding="utf-8"))["begin_unix_s"]
    recorded = series.load(run.folder / "raw", run.experiment, Timing(begin_s, begin_s + run.experiment.duration_s))
    kept = json.loads((run.folder / "run.json").read_text(encoding="utf-8"))
    return {"seed": run.point.seed, **kept, **measures.result(recorded, run.row.measures, dict(run.point.names), run.row.curves)}


def _write(folder: Path, row: Row, virtual: dict[Any, list[dict[str, Any]]], runs: list[Run], failed: dict[str, str]) -> None:
    points: dict[Any, dict[str, Any]] = {}
    for run in runs:
        point = points.setdefault(
            run.point.axes,
            {
                "axes": dict(run.point.axes),
                "runs": [],
                "virtual": {name: [kept["values"][name] for kept in virtual[run.point.axes]] for name in row.measures},
            },
        )
        if run.is_there:
            point["runs"].append(_measured(run))
    where = f"Linux {platform.release()}, {os.cpu_count()} processors"
    result_folder.write_json(
        on_mininet.path(folder, row.id),
        {
            "row": row.id,
            "where": where,
            "virtual_seeds": list(row.sweep.seeds),
            "points": list(points.values()),
            "failed": {run.name: failed[run.name] for run in runs if run.name in failed},
        },
    )
