"""The cases of a suite: experiment files, each with its expectations in a table `[suite]`; run with one sender, and evaluated."""

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
from fairlane.results import frames, rtp_log, series
from fairlane.results.frames import Frame
from fairlane.results.series import Series
from fairlane.schemes import registry
from fairlane.schemes.registry import SCHEMES
from fairlane.suites import media

FOLDER = Path(__file__).parent
ECN_QUEUE = registry.default_marking()
"""What marks where ECN is asked for and neither case nor caller name a queue."""


@dataclass(frozen=True)
class _About:
    """tcp: it tests a queue with TCP flows; otherwise a rate-adaptation algorithm."""

    title: str
    tcp: bool = False


SUITES = {
    "rfc8867": _About("Test Cases for Evaluating Congestion Control for Interactive Real-Time Media (RFC 8867), metrics of RFC 8868"),
    "rfc8869": _About("Evaluation Test Cases for Interactive Real-Time Media over Wireless Networks (RFC 8869), metrics of RFC 8868"),
    "rfc7928": _About("Characterization Guidelines for Active Queue Management (RFC 7928)", tcp=True),
    "l4s": _About("Low latency, low loss, scalable throughput (RFC 9330): the L4S team's grid of rates and round trips", tcp=True),
}


@dataclass(frozen=True)
class Options:
    """What all cases of a suite get in place of their own. queue: of the links between switches. programs: P4 files that replace those of their names in p4src. ecn: the
    tested flows have ECN, and the queues mark. loss, jitter_std_s, delay_s: of the bottleneck, in each direction, as of a `Link`."""

    queue: str | None = None
    programs: Sequence[Path] = ()
    ecn: bool = False
    loss: float = 0.0
    jitter_std_s: float = 0.0
    delay_s: float | None = None

    def to_json(self) -> dict[str, Any]:
        return {**dataclasses.asdict(self), "programs": [path.name for path in self.programs]}


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
    cases that inherit it. reference: a file beside this one, whose run the figures `least_of_reference`, `queueing_over_reference_s` and `loss_over_reference`
    compare with."""

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
    priorities: Mapping[str, float] = field(default_factory=dict)
    """Of its media flows, where it has any."""


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
        entry: dict[str, Any] = _plain({
            "case": self.case.suite.case,
            "title": self.case.experiment.settings.title,
            "passes": self.passes,
            "checks": self.checks,
            "figures": {**self.figures, "phases": [dataclasses.asdict(p) for p in self.phases], "flows": flows},
            "says": self.case.suite.says,
            "cannot": self.case.suite.cannot + self.case.suite.cannot_in_any,
        })  # fmt: skip
        return entry


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def files(suite: str, only: Sequence[str] = ()) -> list[Path]:
    """The files of a suite's cases, or of those named. Refusal names the suites, or the cases."""
    if suite not in SUITES:
        raise Refusal(f"unknown suite {suite!r}{schema.nearest(suite, SUITES)}: there is {', '.join(SUITES)}")
    found = sorted((path for path in (FOLDER / suite).glob("*.toml") if not path.name.startswith("_")), key=lambda path: path.stem)
    names = [path.stem for path in found]
    for name in only:
        if name not in names:
            raise Refusal(f"--case {name}: {suite} has no such case{schema.nearest(name, names)}: there is {', '.join(names)}")
    return [path for path in found if not only or path.stem in only]


def load(path: Path, kind: str, options: Options = Options()) -> Case:
    """A case with flows of `kind` in place of those that it tests: media flows, whose kind is an algorithm, or TCP flows named "tested". Refusal when the kind
    cannot be such a flow; ConfigError names file, line and key."""
    about = SUITES.get(path.parent.name)
    if about is not None and about.tcp:
        if not kinds.is_tcp(kind):
            raise Refusal(f"--algorithm {kind}: this suite tests queues with TCP{schema.nearest(kind, kinds.TCP_KINDS)}")
    else:
        _check_media(kind)
    document = loader.read(path)
    values = copy.deepcopy(document.values)
    priorities = {g["name"]: g["parameters"]["priority"] for g in values["flows"] if "priority" in g.get("parameters", {})}
    without = _exchange(values, kind, options.ecn)
    _change_network(values, options)
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
        reference = load(beside, kind, options).experiment
    suite = dataclasses.replace(
        keys.suite,
        cannot=keys.suite.cannot + tuple(f"{key}: {kind} has no such parameter, its flows go without it" for key in without),
        expect=tuple(_beside_loss(expect, options.loss) for expect in keys.suite.expect),
    )
    return Case(suite, user_files.with_programs(experiment, options.programs), reference, priorities)


def _exchange(values: dict[str, Any], kind: str, ecn: bool) -> list[str]:
    """The tested flows become flows of `kind`; the parameters that the case gives them and that this kind does not have."""
    without: dict[str, None] = {}
    known = kinds.keys(kind)
    for group in values["flows"]:
        if not media.is_name_of_tested(group["name"], kinds.algorithm(group["kind"]) is not None):
            continue
        group["kind"] = kind
        given = group.get("parameters", {}) | ({"ecn": True} if ecn else {})
        without |= dict.fromkeys(key for key in given if key not in known)
        group["parameters"] = {key: value for key, value in given.items() if key in known}
    if ecn and "ecn" in without:
        raise Refusal(f"--ecn: {kind} has no parameter ecn: leave the option out")
    return list(without)


def _change_network(values: dict[str, Any], options: Options) -> None:
    topology = values["topology"]
    switches = {node["name"] for node in topology.get("nodes", ()) if node["kind"] == "switch"}
    trunks = [topology["bottleneck"]] if "bottleneck" in topology else [t for t in topology["links"] if switches.issuperset(t["ends"])]
    for link in trunks:
        own = link.get("queue", next((name for name in SCHEMES if name in link), None))
        queue = options.queue or (own or ECN_QUEUE if options.ecn else None)
        if queue is None:
            continue
        scheme = SCHEMES.get(queue)
        if options.ecn and not (scheme is not None and scheme.can_mark):
            raise Refusal(f"--ecn: {queue} marks no packets: give --queue {ECN_QUEUE}, or another that marks")
        kept = link.get(queue, {}) if options.queue is None else {}
        for key in [key for key in link if key in ("queue", *SCHEMES)]:
            del link[key]
        link["queue"] = queue
        if options.ecn and scheme is not None and not scheme.always_marks:
            kept = {**kept, "ecn": True}
        if kept:
            link[queue] = kept
    if options.loss:
        trunks[0]["loss"] = options.loss
    if options.jitter_std_s:
        trunks[0]["jitter_std_s"] = options.jitter_std_s
    if options.delay_s is not None:
        trunks[0]["delay_s"] = options.delay_s


def _beside_loss(expect: Expect, loss: float) -> Expect:
    """A bound of losses, with those of the link itself."""
    if expect.figure != "most_loss" or not loss:
        return expect
    return dataclasses.replace(expect, high=expect.high + loss, source=f"{expect.source}; and {100 * loss:g} % that the link loses")


def _check_media(kind: str) -> None:
    """Refusal for what is no media flow of one receiver."""
    algorithm = kinds.algorithm(kind)
    if algorithm is None:
        raise Refusal(
            f"--algorithm {kind}: no rate-adaptation algorithm of that name{schema.nearest(kind, ALGORITHMS)}: 'fairlane list' shows them"
        )
    if algorithm.layered:
        raise Refusal(f"--algorithm {kind}: a layered flow goes to groups; these cases have one receiver for each flow")


def run(case: Case, rtp_logs: Path | None = None) -> Judged:
    """Runs a case in virtual time, and judges it. rtp_logs: a folder that is made for the logs of the algorithms' packets. RunFailed: the run ended early."""
    virtual_fabric.check_built()
    records, films = _run(case.experiment, rtp_logs)
    reference = media.phases(_run(case.reference)[0]) if case.reference is not None else []
    phases = media.phases(records)
    return Judged(case, records, phases, media.totals(phases, records.flows, reference, case.priorities), films)


def _run(experiment: Experiment, rtp_logs: Path | None = None) -> tuple[Series, dict[str, list[Frame]]]:
    with tempfile.TemporaryDirectory(prefix="fairlane-suite-") as name:
        folder = Path(name)
        captures = folder / "pcap" if rtp_logs is not None else None
        outcome = virtual_fabric.run(experiment, virtual_fabric.Options(targets.compiler(), pcap=captures), folder, Silent())
        if rtp_logs is not None and captures is not None:
            rtp_logs.mkdir(parents=True)
            for f in experiment.flows:
                if isinstance(f.settings, AlgorithmSettings):
                    rtp_log.write(f, experiment.topology, captures, rtp_logs)
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
