"""Runs from Python: `fairlane.run(...)` gives a `Result` with data frames and plots. All in virtual time, in this process, without root.

    import fairlane

    result = fairlane.run("als-3", seed=2)
    result = fairlane.run("dumbbell", flows=["rap:2", "tcp-sack:2"], bottleneck="10mbit", rtt="64ms", queue="red", duration_s=30)
    result.kinds          # one row for each kind of flow: goodput, loss, share
    result.flows          # one row for each second and flow
    result.plot()         # rates of the flows against their fair share

`fairlane.sweep(...)` runs a study, and gives a frame with one row a run:

    frame = fairlane.sweep("study.toml")
    frame.groupby(["kind", "rate_bps"])["long_bps"].mean()

The same arguments give the same result on every machine.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from fairlane import ad_hoc, ad_hoc_networks, floors, user_files
from fairlane.errors import Interrupted, ProgramRefused, Refusal
from fairlane.experiments import loader
from fairlane.experiments import sweep as sweep_of
from fairlane.experiments.expressions import Value
from fairlane.experiments.model import Experiment
from fairlane.fabrics.base import Ready, Settings
from fairlane.fabrics.outcome import Outcome
from fairlane.fabrics.packets import PacketRecord
from fairlane.fabrics.places import VIRTUAL
from fairlane.fabrics.progress import Silent
from fairlane.inputs.located_toml import Document
from fairlane.results import fidelity, impairments, metrics, report, series, shares
from fairlane.results.queues import table as queue_table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

Plot = Literal["rates", "queue", "fair_rate"]


@dataclass(frozen=True)
class Result:
    """A run's results. summary: as `summary.json` of docs/results.md. recorded: what was measured over time. The frames, which need pandas, are
    made of both when first asked for; `of_kind`, `goodputs_bps` and `check_values` need nothing."""

    experiment: Experiment
    summary: dict[str, Any]
    recorded: series.Series

    @cached_property
    def flows(self) -> pd.DataFrame:
        """The table of docs/results.md; times in seconds, rates in bit/s."""
        return series.flow_table(self.recorded, shares.ShareTable(self.recorded))

    @cached_property
    def links(self) -> pd.DataFrame:
        """The same of links."""
        return series.link_table(self.recorded)

    @cached_property
    def queues(self) -> pd.DataFrame:
        """The same of ports with several queues; empty where there are none."""
        return queue_table(self.recorded)

    @cached_property
    def impairments(self) -> pd.DataFrame:
        """The same of what links did to frames on the way; empty where none loses or impairs frames."""
        return impairments.table(self.recorded)

    @cached_property
    def fair_rates(self) -> pd.DataFrame:
        """The same of what controllers put in force."""
        return series.fair_rate_table(self.recorded)

    @cached_property
    def kinds(self) -> pd.DataFrame:
        """One row for each kind of flow, over the window that the experiment measures."""
        import pandas as pd

        return pd.DataFrame(self.summary["kinds"]).set_index("kind")

    @cached_property
    def per_flow(self) -> pd.DataFrame:
        """One row for each flow, over the window."""
        import pandas as pd

        return pd.DataFrame(self.summary["flows"]).set_index("name")

    @cached_property
    def checks(self) -> pd.DataFrame:
        """What was expected of the run, and whether it holds."""
        import pandas as pd

        return pd.DataFrame(self.summary["checks"], columns=["name", "value", "low", "high", "holds"])

    def of_kind(self, kind: str) -> dict[str, Any]:
        """The row of `kinds`. KeyError: no flow was of it."""
        rows: dict[str, dict[str, Any]] = {row["kind"]: row for row in self.summary["kinds"]}
        return rows[kind]

    @property
    def goodputs_bps(self) -> dict[str, float]:
        """Of each flow, over the window, in the order in which they were named."""
        return {flow["name"]: flow["goodput_bps"] for flow in self.summary["flows"]}

    @property
    def check_values(self) -> dict[str, float]:
        """Of each check of the experiment, by its name."""
        return {check["name"]: check["value"] for check in self.summary["checks"]}

    @property
    def bottleneck(self) -> dict[str, Any]:
        """Utilisation, mean queue (packets) and drops by cause of the link that the experiment follows, over the window."""
        return next(link for link in self.summary["links"] if link["name"] == self.summary["bottleneck"])

    def plot(self, what: Plot = "rates") -> Figure:
        """rates: of each flow, against its fair share. queue: of the bottleneck. fair_rate: R_f and connections, where ALS runs."""
        from fairlane.results import plots

        note = f"virtual time, seed {self.experiment.seed}"
        return plots.figure(what, self.experiment, self.flows, self.links, self.fair_rates, self.summary["bottleneck"], note)

    def _repr_html_(self) -> str:
        title = f"{self.experiment.id}, seed {self.experiment.seed}, {self.experiment.duration_s:g} s of virtual time"
        return f"<p>{title}</p>{self.kinds.to_html(float_format='%.4g')}"


def run(
    experiment: str | Path | Mapping[str, Any],
    flows: str | Sequence[str] = (),
    *,
    duration_s: float | None = None,
    seed: int | None = None,
    at: str | Sequence[str] = (),
    bottleneck: str | None = None,
    rtt: str | None = None,
    queue: str | None = None,
    ecn: bool | None = None,
    buffer: str | None = None,
    side_delay: str | None = None,
    side_rate: str | None = None,
    packet_bytes: int | None = None,
    start_jitter: str | None = None,
    switches: int | None = None,
    settings: str | Sequence[str] = (),
    algorithms: str | Path | Sequence[str | Path] = (),
    programs: str | Path | Sequence[str | Path] = (),
    schemes: str | Path | Sequence[str | Path] = (),
    control: str | Path | None = None,
    out: str | Path | None = None,
    pcap: str | Path | None = None,
    trace: str | Path | None = None,
    packets: str | Path | None = None,
    name: str = "experiment",
) -> Result:
    """Run an experiment: the id of one (`fairlane list`), a TOML file, the keys of such a file as a dictionary, which is then called `name`, or "dumbbell", "chain", another topology of `fairlane list` or a GraphML file with `flows` and the options of
    `fairlane run`, as text with units ("10mbit", "64ms"). flows: "rap:2", or several of them in a list;
    so with everything of which there may be several.

    algorithms: Python files with your own flow kinds. programs: P4 files that replace the files of the same name in p4src, or a whole program. schemes: folders
    with queue managements of your own. control: a Python file with a control plane of your own, for a program of your own (docs/own-program.md). out: a folder for all that
    `fairlane run` writes. pcap: a folder for captures of every link. trace: a file for a log of every packet at every queue. packets: a .csv or .parquet file for a row for each packet at each queue. Refusal and ConfigError name faults of the arguments before anything runs; RunFailed: the run ended early.
    Warns of flows that cannot slow down enough (`fairlane.floors`).
    """
    user_files.check_environment()
    for path in _several(algorithms):
        user_files.use_algorithm(path)
    for path in _several(schemes):
        user_files.use_scheme(path)
    flows, settings, at = _several(flows), _several(settings), _several(at)
    _check_types(
        str,
        flows=flows,
        settings=settings,
        at=at,
        bottleneck=bottleneck,
        rtt=rtt,
        queue=queue,
        buffer=buffer,
        side_delay=side_delay,
        side_rate=side_rate,
        start_jitter=start_jitter,
    )
    _check_types(bool, ecn=ecn)
    _check_types(Integral, seed=seed, packet_bytes=packet_bytes, switches=switches)
    _check_types(Real, duration_s=duration_s)
    seed, packet_bytes, switches = (None if value is None else int(value) for value in (seed, packet_bytes, switches))
    options = ad_hoc.Options(
        flows, bottleneck, rtt, queue, buffer, side_delay, side_rate, packet_bytes, start_jitter, switches, settings, ecn
    )
    document: Document | None = None
    if isinstance(experiment, Mapping):
        if options.given():
            raise Refusal(f"{', '.join(options.given())}: the dictionary has its own network and flows")
        document = sweep_of.plain(Document("the experiment's dictionary", plain(experiment), {}).checked(), at)
        chosen = loader.from_document(document, name, duration_s, seed)
    elif ad_hoc_networks.describes(str(experiment)):
        chosen = ad_hoc.experiment(str(experiment), options, duration_s, seed)
    elif options.given():
        raise Refusal(f"{', '.join(options.given())}: {experiment} is an experiment with its own network and flows")
    else:
        document = loader.read(loader.find(str(experiment)))
        chosen = loader.load(loader.find(str(experiment)), duration_s, seed, at)
    try:
        return run_experiment(chosen, programs, out, pcap, trace, control, packets)
    except ProgramRefused as error:
        from fairlane.fabrics.control_plane import located

        raise located(error, document, _several(programs), control) from error


_T = TypeVar("_T", bound="str | Path")


def _several(given: _T | Iterable[_T]) -> tuple[_T, ...]:
    """One stands for a list of it alone: a text is not a list of letters."""
    return (given,) if isinstance(given, (str, Path)) else tuple(given)


_EXAMPLES = {
    "flows": '["rap:2", "tcp-sack:2"]',
    "settings": '["rap.pacing_jitter=0.1"]',
    "at": '["n=8"]',
    "bottleneck": '"10mbit"',
    "rtt": '"64ms"',
    "queue": '"red"',
    "ecn": "True",
    "buffer": '"80packets"',
    "side_delay": '"2ms"',
    "side_rate": '"100mbit"',
    "start_jitter": '"500ms"',
    "seed": "1",
    "packet_bytes": "1000",
    "switches": "3",
    "duration_s": "30",
}


def _check_types(kind: type, **given: Any) -> None:
    """Refusal for an argument, or an element of a tuple, that is of another type."""
    for name, value in given.items():
        for one in value if isinstance(value, tuple) else (value,):
            if one is not None and (not isinstance(one, kind) or (isinstance(one, bool) and kind is not bool)):
                raise Refusal(f"{name}={value!r}: write it as in {name}={_EXAMPLES[name]}")


def sweep(
    study: str | Path | Mapping[str, Any],
    *,
    axes: Mapping[str, Sequence[Value]] | None = None,
    seeds: Sequence[int] = (),
    measures: Mapping[str, str] | None = None,
    figures: Sequence[Mapping[str, Any]] | None = None,
    compare: Sequence[Mapping[str, Any]] | None = None,
    duration_s: float | None = None,
    algorithms: str | Path | Sequence[str | Path] = (),
    programs: str | Path | Sequence[str | Path] = (),
    schemes: str | Path | Sequence[str | Path] = (),
    control: str | Path | None = None,
    out: str | Path | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    name: str = "study",
) -> pd.DataFrame:
    """Run a study, as `fairlane sweep` does, and return one row for each run: axes, seed, measures with their units in the names, and what is needed
    to do the run again. `frame.attrs["folder"]` is the folder with tables, figures and page.

    study: a TOML file, the id of an experiment, or the keys of such a file as a dictionary, whose study is then called `name`. axes, measures,
    figures, compare: in place of the file's [sweep], [measure], [[figures]] and [[compare]]. algorithms, programs, schemes, control: as of `run`. out: the study's folder, results/NAME/sweep if left
    out; results that are there are not computed again. workers: processes here, one a core if left out. scheduler: address of a dask scheduler.
    Refusal and ConfigError name faults before anything runs. RunFailed: some runs failed, and all others are kept. KeyboardInterrupt: all runs that
    were done are kept.
    """
    from fairlane.studies import carry_out, read, tables
    from fairlane.terminal import OwnConsole

    files = read.own_files(_several(algorithms), _several(programs), _several(schemes), control)
    if isinstance(study, Mapping):
        document = Document("the study's dictionary", plain(study), {}).checked()
    else:
        path = loader.find(str(study))
        document, name = loader.read(path), path.stem
    given = {"sweep": axes, "measure": measures, "figures": figures, "compare": compare}
    document = Document(document.name, {**document.values, **{k: plain(v) for k, v in given.items() if v is not None}}, document.places)
    chosen = read.from_document(document, name, [int(seed) for seed in seeds], duration_s, files)
    folder = Path(out) if out is not None else carry_out.default_folder(chosen.id)
    try:
        collected, _ = carry_out.carry_out(chosen, folder, OwnConsole(), scheduler=scheduler, workers=workers)
    except Interrupted as error:
        raise KeyboardInterrupt(error.kept) from None
    frame = tables.frame(collected)
    frame.attrs["folder"] = str(folder)
    return frame


def _path(given: str | Path | None) -> Path | None:
    return None if given is None else Path(given)


def plain(value: Any) -> Any:
    """Values as TOML would give them: of numpy's and of ranges, Python's own."""
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, str):
        return value
    if isinstance(value, Iterable):
        return [plain(inner) for inner in value]
    return value.item() if hasattr(value, "item") else value


def run_experiment(
    chosen: Experiment,
    programs: str | Path | Sequence[str | Path] = (),
    out: str | Path | None = None,
    pcap: str | Path | None = None,
    trace: str | Path | None = None,
    control: str | Path | None = None,
    packets: str | Path | None = None,
) -> Result:
    """As `run`, of an experiment that is loaded."""
    chosen = user_files.with_programs(chosen, [Path(program) for program in _several(programs)])
    chosen = user_files.with_control(chosen, _path(control))
    for warning in floors.warnings(chosen):
        warnings.warn(warning, stacklevel=2)
    record = None if packets is None else PacketRecord(Path(packets))
    ready = VIRTUAL.ready(chosen, Settings(pcap=_path(pcap), trace=_path(trace), packets=record))
    if out is None:
        with tempfile.TemporaryDirectory(prefix="fairlane-") as folder:
            return _result(ready, Path(folder))[0]
    from fairlane import execute
    from fairlane.results.result_folder import ResultFolder

    results = ResultFolder(Path(out))
    try:
        (results.work / "raw").mkdir()
        result, outcome = _result(ready, results.work / "raw")
    except BaseException:
        results.discard()
        raise
    execute.publish(chosen, outcome, results)
    return result


def _result(ready: Ready, raw: Path) -> tuple[Result, Outcome]:
    """Run, and evaluate the records in `raw`."""
    outcome = ready.run(raw, Silent())
    recorded = series.load(raw, ready.experiment, outcome.timing)
    figures = metrics.compute(recorded)
    summary = report.summary(ready.experiment, figures, outcome, fidelity.IN_VIRTUAL_TIME, ready.fabric.name, ready.target)
    return Result(ready.experiment, summary, recorded), outcome
