"""A run from start to published results."""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from rich.console import Console

from fairlane import capacity, errors, floors, user_files
from fairlane.errors import CHECK_FAILED, NOT_VALID, Interrupted, Refusal, Unfinished
from fairlane.experiments.model import SAMPLED_S, Experiment
from fairlane.fabrics import places, progress
from fairlane.fabrics.base import Fabric, Ready
from fairlane.fabrics.interrupts import ENDING, interruptible
from fairlane.fabrics.outcome import Outcome
from fairlane.results import (
    csv_tables,
    fidelity,
    impairments,
    made,
    metrics,
    plots,
    plots_layers,
    queries,
    queues,
    report,
    result_folder,
    series,
    shares,
    unfinished,
)
from fairlane.results.figures import Figures
from fairlane.results.nameless import of_experiment
from fairlane.terminal import shown

if TYPE_CHECKING:
    from fairlane.fabrics.mininet_run import Options

# Of a switch's counters, one port.
_ROW_BYTES = 120
_BATCH_ROWS = 10_000
_Port = tuple[str, int]
_Columns = dict[str, Any]


def execute(
    ready: Ready,
    out: Path | None,
    console: Console,
    show: Callable[[Path], progress.Progress] | None = None,
    judged: Callable[[fidelity.Fidelity], None] = lambda true: None,
) -> int:
    """Run, measure, write, show; returns the exit code for --strict: 0, NOT_VALID or CHECK_FAILED.

    A killed or failed run leaves no output. If the machine runs out of memory or disk, or the evaluation fails, the raw records stay
    (Unfinished). show: makes a replacement for the progress display from the folder of the raw records. judged: receives the verdict."""
    experiment, fabric, target = ready.experiment, ready.fabric, ready.target
    console.print(
        f"fairlane run {experiment.id}: fabric {fabric}, {ready.why}; {experiment.duration_s:g} s, seed {experiment.seed}",
        highlight=False,
        soft_wrap=True,
    )
    for warning in floors.warnings(experiment) + (capacity.warnings(experiment, target) if fabric.real_time else []):
        console.print(f"warning: {warning}", highlight=False, markup=False, soft_wrap=True)
    folder = result_folder.ResultFolder.reserve(out, experiment.id, experiment.seed)
    try:
        for kept in folder.rescued:
            again = f"The records of a killed run are in {shown(kept / 'raw')}; 'fairlane report {shown(kept)}' evaluates them."
            console.print(again, highlight=False, markup=False, soft_wrap=True)
        raw = folder.work / "raw"
        names = user_files.kept_names(experiment)
        _check_room(experiment, folder.work)
        made.write(folder.work, user_files.of_experiments([experiment]))
        raw.mkdir()
        with interruptible():
            outcome = ready.run(raw, show(raw) if show is not None else progress.for_console(console))
            experiment = user_files.with_files(outcome.changed or experiment, names)
            _remove_empty_logs(raw)
            unfinished.write(raw, unfinished.Finished(experiment, outcome, fabric.name, target))
    except BaseException as error:
        if errors.code_of(error) == errors.NO_SPACE:
            _keep(folder, error, "they end early")
        _keep_logs_if_asked(folder)
        folder.discard()
        raise
    try:
        with interruptible():
            figures, true = _write(experiment, outcome, raw, folder.work, fabric, target)
            final = folder.publish()
    except Refusal:
        raise
    except (Exception, Interrupted) as error:  # noqa: BLE001 # whatever it is, the records stay
        _keep(folder, error, "'fairlane report {}' evaluates them")
    judged(true)
    _show(console, experiment, outcome, figures, true, final)
    if final != folder.final:
        where = f"{shown(folder.final)} appeared during the run, and is not overwritten: the results are in {shown(final)}."
        console.print(where, highlight=False, markup=False, soft_wrap=True)
    if true.verdict == "invalid":
        return NOT_VALID
    return 0 if all(c.holds for c in figures.checks) else CHECK_FAILED


def take_part(ready: Ready, raw: Path) -> int:
    """Run what is this rank's of a network; the first rank has all of it then. Returns 0. raw: a folder to be made, for records on the way."""
    raw.mkdir()
    with interruptible():
        ready.run(raw, progress.Silent())
    return 0


def _check_room(experiment: Experiment, folder: Path) -> None:
    """Refusal when the disk cannot hold the records of a run: a row for each port of a switch every 0.1 s, and about a kilobyte for each flow
    and second (an algorithm that records each acknowledgement writes more)."""
    ports = experiment.topology.ports()
    rows = sum(len(ports[s]) for s in experiment.topology.switches)
    samples = experiment.duration_s / SAMPLED_S + len(experiment.sampled_s)
    least = samples * (rows * _ROW_BYTES + len(experiment.flows) * 100)
    free = shutil.disk_usage(folder).free
    if least > free:
        raise Refusal(
            f"a run of {experiment.duration_s:g} s would write at least {least / 1e6:,.1f} MB of records to {shown(folder.parent)}, where"
            f" {free / 1e6:,.1f} MB are free: give a shorter --duration, or --out on a larger disk",
            errors.CANNOT_RUN_HERE,
        )


def _keep(folder: result_folder.ResultFolder, error: BaseException, then: str) -> NoReturn:
    """The raw records stay, whatever stood in the way of the rest."""
    kept = folder.keep_records()
    raise Unfinished(f"{errors.say(error)} The raw records are in {shown(kept / 'raw')}; {then.format(shown(kept))}.", error) from error


def finish(folder: Path, console: Console) -> None:
    """Evaluate a run whose raw records are in `folder`/raw and whose evaluation failed. Refusal when they are not there."""
    run = unfinished.read(folder / "raw")
    with interruptible():
        figures, true = _write(run.experiment, run.outcome, folder / "raw", folder, places.named(run.fabric), run.target)
    _show(console, run.experiment, run.outcome, figures, true, folder)


def _show(console: Console, experiment: Experiment, outcome: Outcome, figures: Figures, true: fidelity.Fidelity, final: Path) -> None:
    report.show(console, experiment, figures)
    report.show_fidelity(console, true)
    for event in outcome.events:
        console.print(f"at {event.time_s - outcome.timing.begin_s:.1f} s: {event.what}", highlight=False, markup=False)
    if outcome.live_changes:
        console.print(report.steered(experiment, outcome), highlight=False, markup=False, soft_wrap=True)
    console.print(f"results: {shown(final)}", highlight=False, soft_wrap=True)


def publish(experiment: Experiment, outcome: Outcome, folder: result_folder.ResultFolder) -> Path:
    """Write the results of a run in virtual time whose records are in `raw` of the folder's `work`."""
    try:
        made.write(folder.work, user_files.of_experiments([experiment]))
        experiment = user_files.with_files(experiment, user_files.kept_names(experiment))
        _write(experiment, outcome, folder.work / "raw", folder.work, places.VIRTUAL, places.VIRTUAL.target)
        return folder.publish()
    except BaseException:
        folder.discard()
        raise


def _remove_empty_logs(folder: Path) -> None:
    """Most processes print nothing."""
    for path in folder.glob("*.log"):
        if path.stat().st_size == 0:
            path.unlink()


def _keep_logs_if_asked(folder: result_folder.ResultFolder) -> None:
    """FAIRLANE_KEEP_LOGS=1: a failed run's logs stay, next to the place of its results."""
    if os.environ.get("FAIRLANE_KEEP_LOGS") and folder.work.is_dir():
        folder.keep_failed()


def _write(
    experiment: Experiment, outcome: Outcome, raw: Path, folder: Path, fabric: Fabric, target: str
) -> tuple[Figures, fidelity.Fidelity]:
    # Records hold no cycles: Python's search for some takes a fifth of the evaluation of thousands of flows.
    searching = gc.isenabled()
    gc.disable()
    try:
        return _evaluate(experiment, outcome, raw, folder, fabric, target)
    finally:
        if searching:
            gc.enable()


def _evaluate(
    experiment: Experiment, outcome: Outcome, raw: Path, folder: Path, fabric: Fabric, target: str
) -> tuple[Figures, fidelity.Fidelity]:
    recorded = series.load(raw, experiment, outcome.timing)
    fair = shares.ShareTable(recorded)
    figures = metrics.compute(recorded, fair)
    true = fidelity.judge(raw, experiment, outcome) if fabric.real_time else fidelity.IN_VIRTUAL_TIME
    tables = _tables(recorded, fair, folder)
    result_folder.write_json(folder / "experiment.json", of_experiment(experiment))
    result_folder.write_json(folder / "summary.json", report.summary(experiment, figures, outcome, true, fabric.name, target))
    note = f"fabric {fabric}, target {target}, seed {experiment.seed}" + (", changed by hand while it ran" if outcome.live_changes else "")
    note += "" if true.verdict == "true" else f"; figures {true.verdict.upper()}, see fidelity in summary.json"
    plots.draw(experiment, folder, tables["flows"], tables["links"], tables["fair_rates"], recorded.bottleneck.name, note)
    plots_layers.draw(recorded, folder, note)
    return figures, true


def _tables(recorded: series.Series, fair: shares.ShareTable, folder: Path) -> dict[str, dict[str, Any]]:
    """Write the tables of a run; of its links and fair rates, the bottleneck's alone are left for pictures."""
    tables = {"flows": csv_tables.joined(series.flow_columns(recorded, fair)), "fair_rates": {}, "links": {}}
    with _new(folder / "flows.csv") as file:
        csv_tables.write(file, tables["flows"])
    for name, parts in (("fair_rates", series.fair_rate_columns(recorded)), ("links", series.link_columns(recorded))):
        with _new(folder / f"{name}.csv") as file:
            header = True
            for some in _in_batches(parts):
                csv_tables.write(file, csv_tables.joined(some.values()), header)
                header = False
                if recorded.experiment.bottleneck in some:
                    tables[name] = csv_tables.joined([some[recorded.experiment.bottleneck]])
            if header:
                csv_tables.write(file, {})
    more = {}
    if any(link.queues for link in recorded.links.values()):
        more["queues"] = csv_tables.joined(queues.columns(recorded))
    if recorded.impaired:
        more["impairments"] = csv_tables.joined(impairments.columns(recorded))
    if any(workload.asks for workload in recorded.experiment.settings.workloads):
        more["queries"] = queries.columns(recorded)
    for name, table in more.items():
        with _new(folder / f"{name}.csv") as file:
            csv_tables.write(file, table)
    return tables


def _new(path: Path) -> TextIO:
    return path.open("w", newline="", encoding="utf-8")


def _in_batches(parts: Iterable[tuple[_Port, _Columns]]) -> Iterator[dict[_Port, _Columns]]:
    """Tables of so many rows together: thousands of small ones take long to write, and all of a long run are too much at once."""
    batch: dict[_Port, _Columns] = {}
    rows = 0
    for port, part in parts:
        batch[port] = part
        rows += len(part["time_s"])
        if rows >= _BATCH_ROWS:
            yield batch
            batch, rows = {}, 0
    if batch:
        yield batch


def shell(experiment: Experiment, options: Options, console: Console, script: Path | None = None) -> None:
    """A Mininet prompt on the network, until the user leaves it; or the commands of a file."""
    from mininet.log import setLogLevel

    from fairlane.fabrics.mininet_run import begin_changes, network
    from fairlane.fabrics.prompt import Prompt

    console.print(options.toolchain.why, highlight=False)
    # Ctrl-C belongs to the prompt: it ends the command that runs there.
    with (
        tempfile.TemporaryDirectory(prefix="fairlane-shell-") as folder,
        interruptible(ENDING),
        network(experiment, options, Path(folder), console.print) as (fabric, controller, _),
    ):
        begin_changes(experiment, fabric, controller, Path(folder), time.time_ns())
        console.print(
            f"hosts {', '.join(experiment.topology.hosts)}; switches {', '.join(experiment.topology.switches)}; logs in {folder}.",
            highlight=False,
            soft_wrap=True,
        )
        first, last = experiment.topology.hosts[0], experiment.topology.hosts[-1]
        control = fabric.net[first].cmd("sysctl -n net.ipv4.tcp_congestion_control").strip()
        console.print(
            f"TCP on the hosts has this machine's congestion control, {control}. For another one: iperf3 -C reno, or\n"
            f"    {first} sysctl -w net.ipv4.tcp_congestion_control=reno\n"
            f"Try: {first} ping -c 3 {last}, or: iperf {first} {last}. Leave with Ctrl-D, which also ends what you started on the hosts.",
            highlight=False,
            soft_wrap=True,
        )
        setLogLevel("output")
        Prompt(fabric.net, script=None if script is None else str(script))
