"""A run from start to published results."""

from __future__ import annotations

import dataclasses
import os
import shutil
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from fairlane import floors
from fairlane.experiments.model import Experiment
from fairlane.fabrics import progress, virtual_fabric
from fairlane.fabrics.interrupts import interruptible
from fairlane.fabrics.mininet_run import Options, network
from fairlane.fabrics.mininet_run import run as run_on_mininet
from fairlane.fabrics.outcome import Outcome
from fairlane.results import metrics, plots, plots_layers, report, result_folder, series


def execute(
    experiment: Experiment,
    options: Options | virtual_fabric.Options,
    fabric: str,
    out: Path | None,
    console: Console,
    show: Callable[[Path], progress.Progress] | None = None,
) -> bool:
    """Run, measure, write, show; returns whether all checks hold. Removes the output of a killed or failed run. show: from the folder of
    the raw records makes a replacement for the progress display."""
    run: Callable[..., Outcome] = virtual_fabric.run if isinstance(options, virtual_fabric.Options) else run_on_mininet
    target = "virtual" if fabric == "virtual" else options.toolchain.target
    console.print(
        f"fairlane run {experiment.id}: fabric {fabric}, {options.toolchain.why}; {experiment.duration_s:g} s, seed {experiment.seed}",
        highlight=False,
        soft_wrap=True,
    )
    for warning in floors.warnings(experiment):
        console.print(f"warning: {warning}", highlight=False, markup=False, soft_wrap=True)
    folder = result_folder.ResultFolder(out or result_folder.default_folder(experiment.id, experiment.seed))
    raw = folder.work / "raw"
    try:
        raw.mkdir()
        with interruptible():
            outcome = run(experiment, options, raw, show(raw) if show is not None else progress.for_console(console))
            experiment = outcome.changed or experiment
            _remove_empty_logs(raw)
            figures = _write(experiment, outcome, raw, folder.work, fabric, target)
            final = folder.publish()
    except BaseException:
        _keep_logs_if_asked(folder)
        folder.discard()
        raise
    report.show(console, experiment, figures)
    for event in outcome.events:
        console.print(f"at {event.time_s - outcome.timing.begin_s:.1f} s: {event.what}", highlight=False, markup=False)
    if outcome.live_changes:
        console.print(report.steered(experiment, outcome), highlight=False, markup=False, soft_wrap=True)
    console.print(f"results: {os.path.relpath(final)}", highlight=False, soft_wrap=True)
    return all(c.holds for c in figures.checks)


def publish(experiment: Experiment, outcome: Outcome, raw: Path, out: Path) -> Path:
    """Write the results of a run in virtual time whose records are in `raw`. Refusal when `out` exists."""
    folder = result_folder.ResultFolder(out)
    try:
        shutil.copytree(raw, folder.work / "raw")
        _write(experiment, outcome, folder.work / "raw", folder.work, "virtual", "virtual")
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
        folder.work.rename(folder.final.with_name(folder.final.name + "-failed"))


def _write(experiment: Experiment, outcome: Outcome, raw: Path, folder: Path, fabric: str, target: str) -> metrics.Figures:
    recorded = series.load(raw, experiment, outcome.timing)
    figures = metrics.compute(recorded)
    tables = series.tables(recorded)
    for name, table in tables.items():
        table.to_csv(folder / f"{name}.csv", index=False, float_format="%.6g")
    result_folder.write_json(folder / "experiment.json", dataclasses.asdict(experiment))
    result_folder.write_json(folder / "summary.json", report.summary(experiment, figures, outcome, fabric, target))
    note = f"fabric {fabric}, target {target}, seed {experiment.seed}" + (", changed by hand while it ran" if outcome.live_changes else "")
    plots.draw(experiment, folder, tables["flows"], tables["links"], tables["fair_rates"], recorded.bottleneck.name, note)
    plots_layers.draw(recorded, folder, note)
    return figures


def shell(experiment: Experiment, options: Options, console: Console) -> None:
    """A Mininet prompt on the network, until the user leaves it."""
    from mininet.log import setLogLevel

    from fairlane.fabrics.prompt import Prompt

    console.print(options.toolchain.why, highlight=False)
    # Ctrl-C belongs to the prompt: it ends the command that runs there.
    with (
        tempfile.TemporaryDirectory(prefix="fairlane-shell-") as folder,
        interruptible((signal.SIGTERM, signal.SIGHUP)),
        network(experiment, options, Path(folder), console.print) as (fabric, _, _),
    ):
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
        Prompt(fabric.net)
