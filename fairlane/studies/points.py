"""One point of a study: a run in virtual time, measured. A pure function of its job, so it may run on any machine, and be repeated."""

from __future__ import annotations

import dataclasses
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from fairlane import probes, user_files
from fairlane.errors import ProgramRefused, RunFailed
from fairlane.experiments import expressions, loader, sweep
from fairlane.experiments.kinds import TcpSettings
from fairlane.experiments.model import Experiment
from fairlane.fabrics import control_plane, targets, virtual_fabric
from fairlane.fabrics.progress import Silent
from fairlane.hosts import own_algorithms
from fairlane.inputs.located_toml import Document
from fairlane.results import series
from fairlane.schemes import registry
from fairlane.studies import kept, measures, programs, store, traces
from fairlane.studies.study import Curve, Keep, OwnFiles, Study
from fairlane.topologies.model import ETHERNET_BYTES
from fairlane.user_files import OwnSource

_RUN_S = 0.05
_PACKET_S = 0.7e-6
_FLOW_SECOND_S = 0.35e-3
_SWITCH_S = 0.03
_FILE_S, _SEGMENT_S, _QUIET_SECOND_S = 1e-3, 3e-6, 0.035e-3


_PROSE = ("title", "paper", "open", "checks", "inherits")
"""Keys of an experiment that change nothing in a run."""


@dataclass(frozen=True)
class Job:
    """study, key: where the result goes. traces: name and text of the user's own that the document names. own: the user's own P4 program and control plane that
    the document names, by key. inputs: digest of all it depends on. program: digest of Fairlane's own part of it, which whoever runs the job must have too. cost: guess
    of its processor time in seconds. keep: what is kept of it beside its result, in the folder `kept`, which whoever runs the job must see."""

    study: str
    key: str
    name: str
    axes: tuple[tuple[str, Any], ...]
    names: tuple[tuple[str, Any], ...]
    seed: int
    document: Document
    measures: tuple[tuple[str, str], ...]
    curves: tuple[Curve, ...]
    files: OwnFiles
    traces: tuple[tuple[str, str], ...]
    own: tuple[tuple[str, OwnSource], ...]
    inputs: str
    program: str
    cost: float
    keep: Keep | None = None
    kept: str = ""


def jobs(study: Study) -> list[Job]:
    """The jobs of a study, in its points' order."""
    result = []
    checked: set[tuple[Any, ...]] = set()
    digests: dict[str, str] = {}
    carried: dict[Path, tuple[str, str]] = {}
    sources: dict[str, OwnSource] = {}
    experiment: Experiment | None = None
    axes: tuple[tuple[str, Any], ...] | None = None
    for point in study.sweep.points:
        document = point.document
        if study.duration_s is not None:
            document = Document(document.name, {**document.values, "duration_s": study.duration_s}, document.places)
        if experiment is None or point.axes != axes:  # a seed changes neither kinds, nor the program, nor cost
            experiment, axes = loader.from_document(document, study.id), point.axes
            sources = programs.own(document)
            _check_program(experiment, study, checked)
        own = traces.own(document)
        carried |= {file: traces.carried(file) for file in own.values() if file not in carried}
        document = traces.renamed(document, {name: carried[file][0] for name, file in own.items()})
        if sources:
            document = programs.named(document, {key: programs.carried(source) for key, source in sources.items()})
        curves = study.curves if point.seed == study.sweep.seeds[0] else ()
        kinds = sorted(set(experiment.settings.groups.values()))
        digests |= {kind: store.algorithm_digest(kind) for kind in kinds if kind not in digests}
        keep = study.keep if study.keep and (not study.keep.seeds or point.seed in study.keep.seeds) else None
        inputs = store.digest_of(
            [
                store.program_digest(),
                [digests[kind] for kind in kinds],
                [
                    list(study.files.programs),
                    [source.files for source in sources.values()],
                    *([list(study.files.schemes)] if study.files.schemes else []),
                ],
                decisive(document),
                study.measures,
                [repr(c) for c in curves],
                *([repr(keep)] if keep else []),
            ]
        )
        result.append(
            Job(
                study.id,
                sweep.point_key(point.axes, point.seed),
                f"{study.id} {point.name}",
                point.axes,
                point.names,
                point.seed,
                Document(document.name, document.values, {}),  # places only help with errors, and these are found by now
                tuple(study.measures.items()),
                curves,
                study.files,
                tuple(sorted({carried[file] for file in own.values()})),
                tuple(sources.items()),
                inputs,
                store.program_digest(),
                cost(experiment),
                keep,
            )
        )
    return result


def _check_program(experiment: Experiment, study: Study, checked: set[tuple[Any, ...]]) -> None:
    """A program of the user's own is compiled before the first run, once for each set of queues and feedback that it must serve. ConfigError
    or Refusal names what it lacks."""
    control = experiment.settings.control
    key = control, experiment.everywhere, frozenset(link.queue for link in experiment.topology.links), experiment.defines
    own = control.plane or study.files.programs or study.files.schemes
    if key in checked or (probes.is_own(probes.source(control.program)) and not own):
        return
    checked.add(key)
    with tempfile.TemporaryDirectory(prefix="fairlane-check-") as folder:
        try:
            experiment = _with_programs(experiment, study.files)
            _, p4info = targets.compiled(experiment, targets.compiler(), Path(folder))
            plane = control_plane.plane_of(experiment, p4info)
            if not plane.als and not plane.file:  # a single run says so; a study would give empty figures
                raise ProgramRefused(
                    f"{control.program} has no table of als.p4, and nothing fills its tables: --control FILE.py or plane of [control] does "
                    "(docs/own-program.md)"
                )
            if not plane.als:
                _check_measured(study, control.program)
        except ProgramRefused as error:
            raise control_plane.located(error, study.document, study.files.program_paths, study.files.control or None) from error


def _check_measured(study: Study, program: str) -> None:
    """ConfigError: something that is measured comes from records of Fairlane's controller, and the study has another control plane."""
    without = f"comes from records of als.p4's controller, and {program} has another: leave it out"
    for name, text in study.measures.items():
        if found := {f"run.{metric}" for metric in loader.OF_CONTROLLER} & expressions.names_in(text):
            raise study.document.error(("measure", name), f"{min(found)} {without}")
    for i, curve in enumerate(study.curves):
        if curve.of == "fair_rate":
            raise study.document.error(("curves", i), f"fair_rate {without}")


def decisive(document: Document) -> dict[str, Any]:
    """The part of an experiment that decides its run."""
    return {key: value for key, value in document.values.items() if key not in _PROSE}


def cost(experiment: Experiment) -> float:
    """Processor seconds. Of flows without an end: from the packets that the bottleneck can carry, and the cost of a flow's records and timers as long as it is there;
    fitted to 21 points of 19 rows: 0.6 to 1.5 times what they took on a machine of 2025. Of files: from their segments and their number; they are there for a
    short time. Fitted to 750 files of 200 kB in 40 s over one link, and to 10,000 of 20 kB over 80 switches."""
    rate_bps = experiment.topology.port(*experiment.bottleneck).link.rate_bps
    seconds = _RUN_S + max(0, len(experiment.topology.switches) - 2) * _SWITCH_S
    endless = []
    for flow in experiment.flows:
        if isinstance(flow.settings, TcpSettings) and flow.settings.file_bytes is not None:
            segments = flow.settings.file_bytes / flow.settings.payload_bytes(experiment.topology.ip)
            seconds += _FILE_S + segments * _SEGMENT_S + experiment.duration_s * _QUIET_SECOND_S
        else:
            endless.append(flow)
            there_s = min(experiment.duration_s, flow.stop_s or experiment.duration_s) - flow.start_s
            seconds += max(0.0, there_s) * _FLOW_SECOND_S
    if endless:
        packet_bytes = min(flow.settings.packet_bytes for flow in endless)
        seconds += rate_bps * experiment.duration_s / (8 * (packet_bytes + ETHERNET_BYTES)) * _PACKET_S
    return seconds


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


def _measures_packets(measured: Mapping[str, str]) -> bool:
    names = {name.rpartition(".")[2] for text in measured.values() for name in expressions.names_in(text)}
    return bool(names & measures.OF_PACKETS)


def run(job: Job) -> Done:
    """Run a job. RunFailed, or what an algorithm raised, when it could not be carried out."""
    if job.program != store.program_digest():
        raise RunFailed("the worker has another Fairlane than the machine that started the study: install the same wheel on both")
    began = time.process_time()
    _take_algorithms(job.files)
    _take_schemes(job.files)
    document = job.document
    if job.traces:
        document = traces.placed(document, dict(job.traces), Path(_folder().name) / "traces")
    if job.own:
        document = programs.placed(document, dict(job.own), Path(_folder().name) / "programs")
    experiment = loader.from_document(document, job.study)
    with tempfile.TemporaryDirectory(prefix="fairlane-point-") as name:
        folder = Path(name)
        wanted = None if job.keep and {"tables", "records"} & set(job.keep.files) else needed(experiment, dict(job.measures), job.curves)
        options = virtual_fabric.Options(_compiler(), needed=wanted, delays=_measures_packets(dict(job.measures)))
        keeping = kept.Keeping(job.keep, Path(job.kept)) if job.keep else None
        if keeping:
            options = keeping.begin(options)
        try:
            outcome = virtual_fabric.run(_with_programs(experiment, job.files), options, folder, Silent())
        except RunFailed as error:  # the place of a control plane here says nothing
            plane = experiment.settings.control.plane
            raise RunFailed(str(error).replace(plane, Path(plane).name), error.code) from error
        recorded = series.load(folder, experiment, outcome.timing, wanted.ports if wanted else None)
        if keeping:
            keeping.end(recorded, folder)
        found = {
            "study": job.study,
            "axes": dict(job.axes),
            "seed": job.seed,
            "inputs": job.inputs,
            "records_sha256": measures.raw_digest(folder),
            **measures.result(recorded, dict(job.measures), dict(job.names), job.curves),
        }
    return Done(found, time.process_time() - began)


@dataclasses.dataclass(frozen=True)
class _OneTranslation:
    """Translates a program once for all runs of this process, unless its files may change meanwhile."""

    compiler: targets.Compiles

    @property
    def why(self) -> str:
        return self.compiler.why

    def compile(self, source: Path, folder: Path, defines: tuple[str, ...] = (), include: tuple[Path, ...] = ()) -> tuple[Path, Path]:
        if not (probes.is_own(source) or source.is_relative_to(_folder().name)):
            return self.compiler.compile(source, folder, defines, include)
        choice = [path.read_text(encoding="utf-8") for place in include for path in sorted(place.glob("*.p4"))]
        kept = Path(_folder().name) / f"compiled-{store.digest_of([str(source), defines, choice])[:16]}"
        found = kept / f"{source.stem}.json", kept / f"{source.stem}.p4info.txtpb"
        if not all(path.is_file() for path in found):
            kept.mkdir(exist_ok=True)
            self.compiler.compile(source, kept, defines, include)
        return found


@cache
def _compiler() -> _OneTranslation:
    return _OneTranslation(targets.compiler())


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """For the user's own files, as long as this process lasts."""
    return tempfile.TemporaryDirectory(prefix="fairlane-own-")


def _take_algorithms(files: OwnFiles) -> None:
    """Know the flow kinds of the user's own files; read a file only if this process has not read the same text."""
    for name, text in files.algorithms:
        loaded = (getattr(module, "__file__", None) for key, module in list(sys.modules.items()) if key.startswith(own_algorithms.MODULES))
        if any(
            path and Path(path).name == name and Path(path).is_file() and Path(path).read_text(encoding="utf-8") == text for path in loaded
        ):
            continue
        path = Path(_folder().name) / name
        path.write_text(text, encoding="utf-8", newline="\n")
        user_files.use_algorithm(path)


def _take_schemes(files: OwnFiles) -> None:
    """Know the user's own schemes; those that this process has read with the same texts stay as they are."""
    for name in files.scheme_folders:
        texts = {file: text for whole, text in files.schemes for folder, _, file in [whole.partition("/")] if folder == name}
        if (known := registry.SCHEMES.get(name)) is not None and user_files.scheme_files(known) == texts:
            continue
        folder = Path(_folder().name) / f"schemes-{store.digest_of(texts)[:16]}" / name
        folder.mkdir(parents=True, exist_ok=True)
        for file, text in texts.items():
            (folder / file).parent.mkdir(exist_ok=True, parents=True)
            (folder / file).write_text(text, encoding="utf-8", newline="\n")
        registry.SCHEMES.pop(name, None)  # of an earlier job, or of the folder before it was changed
        user_files.use_scheme(folder)


def _with_programs(experiment: Experiment, files: OwnFiles) -> Experiment:
    """The experiment with the user's P4 files in place of those of the same names."""
    if not files.programs:
        return experiment
    control = experiment.settings.control
    folder = Path(_folder().name) / store.digest_of([control.program, files.programs])[:16]
    own = folder / "own"
    if not own.is_dir():
        own.mkdir(parents=True)
        for name, text in files.programs:
            (own / name).write_text(text, encoding="utf-8", newline="\n")
        user_files.assemble(probes.source(control.program), [own / name for name, _ in files.programs], folder)
    program = str(folder / Path(control.program).name)
    return dataclasses.replace(
        experiment, settings=dataclasses.replace(experiment.settings, control=dataclasses.replace(control, program=program))
    )
