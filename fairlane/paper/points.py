"""One point of a row: a run in virtual time, measured. A pure function of its job, so that it may run anywhere, and again."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairlane.experiments import expressions, loader, sweep
from fairlane.experiments.model import Experiment
from fairlane.fabrics import targets, virtual_fabric
from fairlane.fabrics.progress import Silent
from fairlane.inputs.located_toml import Document
from fairlane.paper import measures, store
from fairlane.paper.row import Curve, Row
from fairlane.results import series
from fairlane.topologies.model import ETHERNET_BYTES

_RUN_S = 0.14
_PACKET_S = 0.7e-6
_FLOW_SECOND_S = 0.35e-3


@dataclass(frozen=True)
class Job:
    """row, key: where the result goes. inputs: digest of all it depends on. cost: guess of its processor time in seconds."""

    row: str
    key: str
    name: str
    axes: tuple[tuple[str, Any], ...]
    names: tuple[tuple[str, Any], ...]
    seed: int
    document: Document
    measures: tuple[tuple[str, str], ...]
    curves: tuple[Curve, ...]
    inputs: str
    cost: float


def jobs(row: Row, duration_s: float | None = None) -> list[Job]:
    """The jobs of a row, in its points' order. duration_s: instead of the file's, for a quick pass."""
    result = []
    for point in row.sweep.points:
        document = point.document
        if duration_s is not None:
            document = Document(document.name, {**document.values, "duration_s": duration_s}, document.places)
        experiment = loader.from_document(document, row.id)
        curves = row.curves if point.seed == row.sweep.seeds[0] else ()
        used = sorted({group.kind for group in experiment.settings.flows})
        inputs = store.digest_of(
            [
                store.program_digest(),
                [store.algorithm_digest(kind) for kind in used],
                document.values,
                row.measures,
                [repr(c) for c in curves],
            ]
        )
        cost = _cost(experiment)
        result.append(
            Job(
                row.id,
                sweep.point_key(point.axes, point.seed),
                f"{row.id} {point.name}",
                point.axes,
                point.names,
                point.seed,
                document,
                tuple(row.measures.items()),
                curves,
                inputs,
                cost,
            )
        )
    return result


def _cost(experiment: Experiment) -> float:
    """Processor seconds, from the packets that the bottleneck can carry and the cost of a flow's records and timers. Fitted to 21 points of
    19 rows: 0.6 to 1.5 times what they took on a machine of 2025."""
    node, number = experiment.bottleneck
    rate_bps = experiment.topology.ports()[node][number - 1].link.rate_bps
    packet_bytes = min(flow.settings.packet_bytes for flow in experiment.flows)
    packets = rate_bps * experiment.duration_s / (8 * (packet_bytes + ETHERNET_BYTES))
    return _RUN_S + packets * _PACKET_S + len(experiment.flows) * experiment.duration_s * _FLOW_SECOND_S


@dataclass(frozen=True)
class Done:
    """result: kept in the store, the same on any machine. took_s: processor time, which differs."""

    result: dict[str, Any]
    took_s: float


def needed(experiment: Experiment, measured: Mapping[str, str], curves: Sequence[Curve]) -> virtual_fabric.Needed | None:
    """What measures and curves read: of all links the bottleneck's alone. A metric of the whole run (`run.NAME`) may read any record: None."""
    if any(name.startswith("run.") for text in measured.values() for name in expressions.names_in(text)):
        return None
    kinds = series.FLOW_RECORDS if any(c.of == "rtt" for c in curves) else series.FLOW_RECORDS - series.FEEDBACK_RECORDS
    return virtual_fabric.Needed(frozenset([experiment.bottleneck]), kinds)


def run(job: Job) -> Done:
    """Run a job. RunFailed, or what an algorithm raised, when it could not be carried out."""
    began = time.process_time()
    experiment = loader.from_document(job.document, job.row)
    with tempfile.TemporaryDirectory(prefix="fairlane-point-") as name:
        folder = Path(name)
        outcome = virtual_fabric.run(
            experiment,
            virtual_fabric.Options(targets.compiler(), needed=needed(experiment, dict(job.measures), job.curves)),
            folder,
            Silent(),
        )
        recorded = series.load(folder, experiment, outcome.timing)
        kept = {
            "row": job.row,
            "axes": dict(job.axes),
            "seed": job.seed,
            "inputs": job.inputs,
            "records_sha256": measures.raw_digest(folder),
            **measures.result(recorded, dict(job.measures), dict(job.names), job.curves),
        }
    return Done(kept, time.process_time() - began)
