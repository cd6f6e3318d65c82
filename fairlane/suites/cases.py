"""The cases of a suite: experiment files, each with a table `[suite]` that says what is expected; run with one sender, and judged."""

from __future__ import annotations

import copy
import dataclasses
import math
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairlane import user_files
from fairlane.errors import Refusal
from fairlane.experiments import kinds, loader, sweep
from fairlane.experiments.kinds import AlgorithmSettings
from fairlane.experiments.model import Experiment
from fairlane.fabrics import targets, virtual_fabric
from fairlane.fabrics.flows import carries_film
from fairlane.fabrics.progress import Silent
from fairlane.hosts.algorithms import ALGORITHMS
from fairlane.inputs import schema
from fairlane.inputs.located_toml import Document
from fairlane.results import frames, series
from fairlane.results.frames import Frame
from fairlane.results.series import Series
from fairlane.suites import media
from fairlane.topologies.model import SCHEMES

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class _About:
    """tcp: it tests a queue with TCP flows; otherwise a rate-adaptation algorithm."""

    title: str
    tcp: bool = False


SUITES = {
    "rfc8867": _About("Test Cases for Evaluating Congestion Control for Interactive Real-Time Media (RFC 8867), metrics of RFC 8868"),
    "rfc7928": _About("Characterization Guidelines for Active Queue Management (RFC 7928)", tcp=True),
    "l4s": _About("Low latency, low loss, scalable throughput (RFC 9330): the L4S team's grid of rates and round trips", tcp=True),
}


@dataclass(frozen=True)
class Expect:
    """low <= figure <= high. figure: of `media.totals`. source: where the bound comes from."""

    name: str
    figure: str
    source: str
    low: float = -math.inf
    high: float = math.inf

    def __post_init__(self) -> None:
        if self.low > self.high or (self.low == -math.inf and self.high == math.inf):
            raise ValueError(f"low, high: give a bound that can fail, got {self.low:g} to {self.high:g}")


@dataclass(frozen=True)
class _Suite:
    """The table `[suite]`. says: what the RFC expects. cannot: what of the case this testbed leaves out or does in another way; cannot_in_any: the same of all
    cases that inherit it. reference: a file beside this one, whose run the figure `least_of_reference` compares with."""

    case: str
    says: str
    expect: tuple[Expect, ...]
    cannot: tuple[str, ...] = ()
    cannot_in_any: tuple[str, ...] = ()
    reference: str = ""


@dataclass(frozen=True)
class _Keys:
    suite: _Suite


@dataclass(frozen=True)
class Case:
    """One case with one sender, not yet run."""

    suite: _Suite
    experiment: Experiment
    reference: Experiment | None = None


@dataclass(frozen=True)
class Judged:
    """What became of a case. records: for its pictures. frames: of each flow of video, its pictures."""

    case: Case
    records: Series
    phases: list[media.Phase]
    figures: dict[str, float]
    frames: Mapping[str, Sequence[Frame]] = field(default_factory=dict)

    @property
    def checks(self) -> list[dict[str, Any]]:
        """One for each expectation: its name, bounds, source, the value found and whether it holds. A value that could not be measured
        does not hold."""
        found = []
        for expect in self.case.suite.expect:
            value = self.figures[expect.figure]
            found.append({**dataclasses.asdict(expect), "value": value, "holds": expect.low <= value <= expect.high})
        return found

    @property
    def passes(self) -> bool:
        return all(check["holds"] for check in self.checks)

    def to_json(self) -> dict[str, Any]:
        """An entry of `cases` in suite.json. Infinite bounds and values that could not be measured are null."""
        flows = [
            media.flow_figures(self.records, f) | media.frame_figures(self.frames.get(f.flow.name))
            for f in self.records.flows
            if f.active is not None
        ]
        return _plain({
            "case": self.case.suite.case,
            "title": self.case.experiment.settings.title,
            "passes": self.passes,
            "checks": self.checks,
            "figures": {**self.figures, "phases": [dataclasses.asdict(p) for p in self.phases], "flows": flows},
            "says": self.case.suite.says,
            "cannot": self.case.suite.cannot + self.case.suite.cannot_in_any,
        })  # fmt: skip


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def files(suite: str) -> list[Path]:
    """The files of a suite's cases. Refusal names the suites."""
    if suite not in SUITES:
        raise Refusal(f"unknown suite {suite!r}{schema.nearest(suite, SUITES)}: there is {', '.join(SUITES)}")
    return sorted((path for path in (FOLDER / suite).glob("*.toml") if not path.name.startswith("_")), key=lambda path: path.stem)


def load(path: Path, kind: str, queue: str | None = None, programs: Sequence[Path] = ()) -> Case:
    """A case with flows of `kind` in place of those that it tests: media flows, whose kind is an algorithm, or TCP flows named "tested". queue,
    programs: in place of the bottleneck's, and of files of those names in p4src. Refusal when the kind cannot be such a flow; ConfigError names file, line and
    key."""
    about = SUITES.get(path.parent.name)
    if about is not None and about.tcp:
        if not kinds.is_tcp(kind):
            raise Refusal(f"--algorithm {kind}: this suite tests queues with TCP{schema.nearest(kind, kinds.TCP_KINDS)}")
    else:
        _check_media(kind)
    document = loader.read(path)
    values = copy.deepcopy(document.values)
    for group in values["flows"]:
        if media.is_name_of_tested(group["name"], kinds.algorithm(group["kind"]) is not None):
            group["kind"] = kind
    if queue is not None:
        topology = values["topology"]
        link = topology["bottleneck"] if "bottleneck" in topology else topology["links"][0]
        for key in [key for key in link if key in ("queue", *SCHEMES)]:
            del link[key]
        link["queue"] = queue
    document = Document(document.name, values, document.places)
    keys = schema.build(_Keys, Document(document.name, {"suite": values["suite"]}, document.places))
    figures = media.totals([])
    for i, expect in enumerate(keys.suite.expect):
        if expect.figure not in figures:
            raise document.error(
                ("suite", "expect", i, "figure"), f"unknown figure {expect.figure!r}{schema.nearest(expect.figure, figures)}"
            )
    experiment = loader.from_document(sweep.plain(document), f"{path.parent.name}-{path.stem}")
    reference = None
    if keys.suite.reference:
        beside = path.with_name(f"{keys.suite.reference}.toml")
        if not beside.is_file():
            raise document.error(("suite", "reference"), f"no file {beside}")
        reference = load(beside, kind, queue, programs).experiment
    return Case(keys.suite, user_files.with_programs(experiment, programs), reference)


def _check_media(kind: str) -> None:
    """Refusal for what is no media flow of one receiver."""
    algorithm = kinds.algorithm(kind)
    if algorithm is None:
        raise Refusal(
            f"--algorithm {kind}: no rate-adaptation algorithm of that name{schema.nearest(kind, ALGORITHMS)}: 'fairlane list' shows them"
        )
    if algorithm.layered:
        raise Refusal(f"--algorithm {kind}: a layered flow goes to groups; these cases have one receiver for each flow")


def run(case: Case) -> Judged:
    """Runs a case in virtual time, and judges it. RunFailed: the run ended early."""
    virtual_fabric.check_built()
    records, films = _run(case.experiment)
    reference = media.phases(_run(case.reference)[0]) if case.reference is not None else []
    phases = media.phases(records)
    return Judged(case, records, phases, media.totals(phases, records.flows, reference), films)


def _run(experiment: Experiment) -> tuple[Series, dict[str, list[Frame]]]:
    with tempfile.TemporaryDirectory(prefix="fairlane-suite-") as name:
        folder = Path(name)
        outcome = virtual_fabric.run(experiment, virtual_fabric.Options(targets.compiler()), folder, Silent())
        films = {
            f.name: frames.read(folder, f.name, f.settings.source.frames_per_second)
            for f in experiment.flows
            if isinstance(f.settings, AlgorithmSettings) and carries_film(f)
        }
        return series.load(folder, experiment, outcome.timing, ports=_trunks(experiment)), films


def _trunks(experiment: Experiment) -> Sequence[tuple[str, int]]:
    """The ports of links between switches: no other is looked at, and cases have dozens of hosts."""
    switches = set(experiment.topology.switches)
    return [(p.node, p.number) for s in switches for p in experiment.topology.ports()[s] if p.peer in switches]
