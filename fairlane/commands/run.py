"""`fairlane run`: an experiment from a file or from options, its sweep, or another project's network; in virtual time or on Mininet."""

from __future__ import annotations

import dataclasses
import functools
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairlane import ad_hoc, ad_hoc_networks, probes, user_files
from fairlane.commands.app import App
from fairlane.commands.options import AdHoc, Extent, Output, OwnControl, Page, Tutorial, UserFiles, Version, Where, in_groups
from fairlane.errors import CANNOT_RUN_HERE, CHECK_FAILED, ProgramRefused, Refusal
from fairlane.experiments import loader, sweep
from fairlane.experiments.model import Experiment
from fairlane.fabrics import rank_guard
from fairlane.fabrics.base import Fabric, Settings
from fairlane.fabrics.packets import PacketRecord
from fairlane.inputs import schema
from fairlane.terminal import console, say

if TYPE_CHECKING:
    from fairlane.fabrics.ranks import Ranks
    from fairlane.live import view as live_view

app = App()


@app.command()
@in_groups
def run(
    context: typer.Context,
    experiment: Annotated[
        str,
        typer.Argument(
            help="An id from 'fairlane list' or a TOML file; a topology such as dumbbell or leaf-spine, or a GraphML file, with --flow; a topology.json of the P4 tutorials; "
            "a network.py or p4app.json of p4-utils.",
            show_default=False,
        ),
    ],
    where: Where,
    extent: Extent,
    output: Output,
    own: UserFiles,
    network: AdHoc,
    page: Page,
    tutorial: Tutorial,
    control: OwnControl,
    version: Version,
) -> None:
    """Run an experiment: progress, tables, results and plots. For an experiment with a sweep: all its points, and a page."""
    run_here = functools.partial(_run_command, context, experiment, where, extent, output, own, network, page, tutorial, control, version)
    if not where.mpi:
        run_here(None)
        return
    from fairlane.fabrics import ranks

    def work(found: Ranks) -> None:
        _refuse_with_ranks(experiment, where, output, network, page)
        run_here(found)

    ranks.together(work)


def _refuse_with_ranks(experiment: str, where: Where, output: Output, network: AdHoc, page: Page) -> None:
    """What ranks do not do together."""
    if where.fabric.real_time:
        raise Refusal("--mpi: on Mininet each switch and host has processes of its own; use --fabric virtual.")
    if experiment.endswith((".json", ".py")):
        raise Refusal(f"--mpi: {experiment} runs on Mininet; ranks simulate an experiment in virtual time.")
    both = {"--cores": where.cores, "--live": page.live, "--trace": output.trace, "--packets": output.packets, "--save": network.save}
    for option, given in both.items():
        if given:
            raise Refusal(f"{option}: not with --mpi. {_INSTEAD[option]}")


_INSTEAD = {
    "--cores": "The number of ranks is that of mpiexec -n.",
    "--live": "A page changes a run of one process: leave mpiexec and --mpi out.",
    "--trace": "A log of all packets in one order is written by one process: leave mpiexec and --mpi out.",
    "--packets": "A record of all packets in one order is written by one process: leave mpiexec and --mpi out.",
    "--save": "Write the file by a run of one process first, and run it.",
}


def _run_command(
    context: typer.Context,
    experiment: str,
    where: Where,
    extent: Extent,
    output: Output,
    own: UserFiles,
    network: AdHoc,
    page: Page,
    tutorial: Tutorial,
    control: OwnControl,
    version: Version,
    ranks: Ranks | None,
) -> None:
    from fairlane.bmv2 import networks

    if networks.is_network(Path(experiment)):
        _refuse_options(context, {"experiment"}, "a network of p4-utils, which defines its own run")
        networks.run(Path(experiment))
    if experiment.endswith(".json"):
        _run_tutorial(context, experiment, where, output, own, tutorial)
        return
    if tutorial.prompt:
        raise Refusal("--cli: only with a topology.json of the P4 tutorials; for experiments use 'fairlane shell'")
    for path in own.algorithm or []:
        user_files.use_algorithm(path)
    for path in own.scheme or []:
        user_files.use_scheme(path)
    if not ad_hoc_networks.describes(experiment):
        _refuse_stray(experiment, network.given())
        whole = loader.read(loader.find(experiment))
        if whole.values.keys() & {*sweep.KEYS, *sweep.REPORT_KEYS, "checks"}:
            from fairlane.paper import read_row

            read_row.load(loader.find(experiment))  # its expectations can hold, and every point of it can run
        if sweep.is_several(where.fabric.laid_over(whole, extent.at or [])):
            if version.ip is not None:
                raise Refusal(
                    f"--ip: {experiment} has a sweep: choose one of its runs by --at, or write ip in its [topology], as a value or an axis"
                )
            if ranks is not None:
                raise Refusal(
                    f"--mpi: {experiment} is a study of many runs, each in one process: fairlane sweep --scheduler takes them to more machines (docs/study.md)."
                )
            _run_sweep(experiment, where, extent, output, own, control, page)
            return
    chosen = user_files.with_programs(_chosen(experiment, network, extent, where.fabric, version.ip), own.program or [])
    chosen = user_files.with_control(chosen, control.control)
    try:
        strictly = _run(chosen, where, output, page, ranks)
    except ProgramRefused as error:
        from fairlane.fabrics.control_plane import located

        document = None if ad_hoc_networks.describes(experiment) else loader.read(loader.find(experiment))
        raise located(error, document, own.program or (), control.control) from error
    _end(strictly, output)


def _end(strictly: int, output: Output) -> None:
    """Exits with the code `strictly` if the user gave --strict."""
    if output.strict and strictly != 0:
        raise typer.Exit(strictly)


def _run_sweep(experiment: str, where: Where, extent: Extent, output: Output, own: UserFiles, control: OwnControl, page: Page) -> None:
    from fairlane.paper import read_row, single
    from fairlane.studies import read

    if where.fabric.real_time:
        raise Refusal(f"{experiment} is a sweep, which runs in virtual time only; --at AXIS=VALUE for each of its axes picks a single run.")
    if extent.duration is not None or output.pcap is not None or output.trace is not None or output.packets is not None or page.live:
        raise Refusal(
            "--duration, --pcap, --trace, --packets and --live are for single runs: pick one with --at AXIS=VALUE for each axis; [keep] of a study"
            " keeps such files of each run."
        )
    path, at = loader.find(experiment), extent.at or []
    document = loader.read(path)
    if "paper" not in document.values or not read_row.is_row(document):
        seeds, files = (
            [] if extent.seed is None else [extent.seed],
            read.own_files(own.algorithm or (), own.program or (), own.scheme or (), control.control),
        )
        holds = single.sweep_file(path, output.out, console, at=at, seeds=seeds, files=files)
        _end(0 if holds else CHECK_FAILED, output)
        return
    for option, given in (("--program", own.program), ("--control", control.control)):
        if given:
            raise Refusal(f"{option} is for single runs and for 'fairlane sweep': pick one run with --at AXIS=VALUE for each axis.")
    _end(0 if single.run_row(path, at, extent.seed, output.out, console) else CHECK_FAILED, output)


def _run(chosen: Experiment, where: Where, output: Output, page: Page, ranks: Ranks | None) -> int:
    """Returns the exit code for --strict. ranks: of MPI, of which all call this, and the first writes the results."""
    if where.cores is not None and where.fabric.real_time:
        raise Refusal("--cores: on Mininet each switch and host has processes of its own; use --fabric virtual.")
    if ranks is not None:
        from fairlane.results import made

        ranks.check_same("Fairlane", made.identity())
        ranks.check_same("the experiment", made.identity_of(chosen, user_files.of_experiments([chosen])))
        if ranks.own:
            output = dataclasses.replace(output, pcap=output.pcap and rank_guard.scratch() / "pcap")
    if not where.fabric.real_time:  # otherwise captures go into the results
        from fairlane.fabrics import preflight

        preflight.check_new(output.pcap, output.trace, output.packets)
    if output.packets_of and output.packets is None:
        raise Refusal("--packets-of: give --packets FILE, too.")
    shown = _live_options(page, where.fabric)
    settings = Settings(
        where.target,
        where.compiler,
        where.control_delay,
        where.grpc_port,
        where.restart_after,
        where.rtt_check,
        where.keep_awake,
        output.pcap,
        output.trace,
        None if output.packets is None else PacketRecord(output.packets, output.packets_of or ()),
        where.cores,
        ranks=ranks,
    )
    if shown is None:
        ready = where.fabric.ready(chosen, settings)
        from fairlane import execute

        if ranks is not None and ranks.own:
            return execute.take_part(ready, rank_guard.scratch() / "raw")
        return execute.execute(ready, output.out, console)
    from fairlane.live.page_of_run import page_of

    with page_of(where.fabric, chosen, shown, console) as live:
        ready = where.fabric.ready(chosen, dataclasses.replace(settings, live=live.driver))
        from fairlane import execute

        strictly = execute.execute(ready, output.out, console, live.watching, live.judged)
        live.linger(say)
    return strictly


def _live_options(page: Page, fabric: Fabric) -> live_view.Options | None:
    """The live view's options; None without a page."""
    if not page.live:
        return None
    if sys.platform == "win32":  # no process there hands a socket on
        raise Refusal("--live needs Linux or macOS. Run without it, and then: fairlane view FOLDER-OF-RESULTS", CANNOT_RUN_HERE)
    probes.need("live", "--live")
    from fairlane.live.view import Options, speed_of

    if fabric.real_time and page.live_speed != "1":
        raise Refusal("--live-speed: a run on Mininet always takes real time; use --fabric virtual")
    return Options(page.live_port, speed_of(page.live_speed))


def _run_tutorial(context: typer.Context, path: str, where: Where, output: Output, own: UserFiles, tutorial: Tutorial) -> None:
    """A topology of the P4 tutorials. The tutorials, not this program, set the defaults."""
    from fairlane.fabrics import preflight
    from fairlane.tutorials import run as tutorials

    preflight.check_new(output.pcap, None)
    allowed = {"experiment", "fabric", "target", "compiler", "program", "prompt", "out", "pcap", "grpc_port", "strict"}
    given = _refuse_options(context, allowed, "a topology of the P4 tutorials, which has no flows")
    options = tutorials.Options(
        where.fabric if "fabric" in given else None,
        where.target,
        where.compiler,
        tuple(own.program or ()),
        tutorial.prompt,
        output.out,
        output.pcap,
        where.grpc_port if "grpc_port" in given else None,
    )
    _end(0 if tutorials.run(Path(path), options, console) else CHECK_FAILED, output)


def _refuse_options(context: typer.Context, allowed: set[str], what: str) -> set[str]:
    """The options on the command line. Refuses any that is not allowed."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    given = {name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"}
    stray = given - allowed
    if stray:
        raise Refusal(f"--{min(stray).strip('_').replace('_', '-')}: not with {what}")
    return given


def _refuse_stray(experiment: str, given: list[str]) -> None:
    """Refuses options of experiments without a file if the experiment has a file."""
    if given and experiment not in loader.names() and not experiment.endswith(".toml"):
        raise Refusal(f"unknown topology {experiment!r}{schema.nearest(experiment, ad_hoc_networks.TOPOLOGIES)}")
    if given:
        raise Refusal(
            f"{', '.join(given)}: {experiment} is an experiment with its own network and flows. With"
            f" {', '.join(ad_hoc_networks.TOPOLOGIES)} in its place, the options define both."
        )


def _chosen(experiment: str, network: AdHoc, extent: Extent, fabric: Fabric, ip: int | None) -> Experiment:
    """The experiment on the command line: from a file, or from the options. ip: the version of IP; None: the file's."""
    if not ad_hoc_networks.describes(experiment):
        path = loader.find(experiment)
        if differences := fabric.differences(loader.read(path)):
            say(f"on Mininet, changes by [mininet] of the file: {differences}")
        return loader.load(path, extent.duration, extent.seed, extent.at or [], fabric.laid_over, ip)
    if extent.at:
        raise Refusal(f"--at: {experiment} has no sweep")
    save, options = network.save, dataclasses.replace(network.options(), ip=ip)
    chosen = ad_hoc.experiment(experiment, options, extent.duration, extent.seed, save.stem if save else None)
    if save is not None:
        if save.suffix != ".toml":
            raise Refusal(f"--save {save}: experiment files end with .toml")
        try:
            with save.open("x", encoding="utf-8", newline="\n") as file:
                file.write(ad_hoc.text(experiment, options, extent.duration, extent.seed, save.parent))
        except FileExistsError:
            raise Refusal(f"--save {save}: exists already, and is not overwritten. Give another name, or remove it.") from None
        except OSError as error:
            raise Refusal(f"--save {save}: cannot be written: {error.strerror}") from error
        console.print(f"experiment saved: {save}", highlight=False, soft_wrap=True)
    return chosen
