"""The command line, `fairlane`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Literal, Optional

import typer
from rich.console import Console

from experiments import loader
from experiments.model import Experiment
from fairlane import probes
from fairlane.errors import BAD_INPUT, CANNOT_RUN_HERE, CHECK_FAILED, RUN_FAILED, Interrupted, Refusal, RunFailed
from fairlane.located_toml import ConfigError

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False,
                  help="Fairlane: P4 switches that write fair rates into senders' control packets, in Mininet.")
console = Console()

_PASS_ON = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}

ExperimentArgument = Annotated[str, typer.Argument(help="An id of 'fairlane list', or a TOML file.", show_default=False)]
TargetOption = Annotated[Literal["auto", "embedded", "bmv2"], typer.Option(help="auto: BMv2 where it and p4c are installed and it can be the network.")]
PortOption = Annotated[int, typer.Option(help="P4Runtime port of the first switch; the others count up.", min=1, max=65000)]
SeedOption = Annotated[Optional[int], typer.Option(help="Default: the experiment's.", show_default=False)]  # noqa: UP045: typer reads it


def main() -> None:
    """Entry point: refusals and failures become one sentence on standard error, and an exit code."""
    try:
        app()
    except ConfigError as error:
        _fail(str(error), BAD_INPUT)
    except Refusal as error:
        _fail(str(error), error.code)
    except RunFailed as error:
        _fail(f"{error}\nEverything that the run had started is cleaned up.", RUN_FAILED)
    except Interrupted as error:
        _fail(f"ended by {error.signal_name}; cleaned up, no results written.", 130 if error.signal_name == "SIGINT" else 143)


def _fail(message: str, code: int) -> None:
    print(f"fairlane: {message}", file=sys.stderr)
    sys.exit(code)


@app.command()
def run(
    experiment: ExperimentArgument,
    fabric: Annotated[Literal["virtual", "mininet"], typer.Option(help="Where to run it: in virtual time, or with real processes (root).")] = "virtual",
    target: TargetOption = "auto",
    duration: Annotated[Optional[float], typer.Option(help="Seconds; default: the experiment's.", show_default=False)] = None,  # noqa: UP045
    seed: SeedOption = None,
    out: Annotated[Optional[Path], typer.Option(help="Folder for the results; must not exist. Default: results/ID/TIME-seedN.", show_default=False)] = None,  # noqa: E501, UP045
    strict: Annotated[bool, typer.Option("--strict", help="Exit code 1 when a check does not hold.")] = False,
    grpc_port: PortOption = 9559,
    restart_after: Annotated[float, typer.Option(help="Seconds that a switch or controller which died stays away.", min=0.0)] = 1.0,
    rtt_check: Annotated[bool, typer.Option("--rtt-check/--no-rtt-check", help="Refuse a network whose round trips are off.")] = True,
    pcap: Annotated[Optional[Path], typer.Option("--pcap", help="Folder for captures of every link (mininet: always raw/pcap of the results).", show_default=False)] = None,  # noqa: UP045
    trace: Annotated[Optional[Path], typer.Option("--trace", help="File for a log of every packet at every queue (virtual).", show_default=False)] = None,  # noqa: E501, UP045
    control_delay: Annotated[float, typer.Option(help="Seconds between controller and switch, one way (virtual).", min=0.0)] = 0.001,
) -> None:
    """Run an experiment: progress, tables, results and plots."""
    chosen = loader.load(loader.find(experiment), duration, seed)
    if fabric == "virtual":
        _run_virtual(chosen, target, out, strict, pcap, trace, control_delay)
        return
    if trace is not None:
        raise Refusal("--trace: only virtual time has a log of every packet; --pcap captures on both fabrics.")
    from fairlane import preflight, targets

    preflight.check_machine(chosen)
    from fairlane import execute
    from fairlane.run import Options

    options = Options(targets.resolve(target, chosen.topology), grpc_port, restart_after, rtt_check, pcap is not None)
    holds = execute.execute(chosen, options, fabric, out, console)
    if strict and not holds:
        raise typer.Exit(CHECK_FAILED)


def _run_virtual(chosen: Experiment, target: str, out: Path | None, strict: bool, pcap: Path | None, trace: Path | None,
                 control_delay_s: float) -> None:
    from fairlane import targets, virtual_fabric

    if target == "bmv2":
        raise Refusal("--target bmv2 runs in real time only: add --fabric mininet.")
    virtual_fabric.check_built()
    from fairlane import execute

    options = virtual_fabric.Options(targets.compiler(), control_delay_s, pcap, trace)
    holds = execute.execute(chosen, options, "virtual", out, console)
    if strict and not holds:
        raise typer.Exit(CHECK_FAILED)


@app.command("list")
def list_experiments() -> None:
    """The experiments at hand."""
    for name in loader.names():
        experiment = loader.load(loader.find(name))
        paper = experiment.settings.paper
        console.print(f"{name:12} {experiment.settings.title} ({paper.reference} {paper.section}, {paper.figure}; "
                      f"{experiment.duration_s:g} s)", highlight=False, soft_wrap=True)


@app.command(context_settings=_PASS_ON)
def compile(context: typer.Context) -> None:
    """Compile a P4 program: fairlane-compile, with p4c's flags."""
    _become("fairlane-compile", context.args)


@app.command(context_settings=_PASS_ON)
def switch(context: typer.Context) -> None:
    """Run one switch: fairlane-switch, with simple_switch_grpc's flags."""
    _become("fairlane-switch", context.args)


@app.command(context_settings=_PASS_ON)
def stf(context: typer.Context) -> None:
    """Run a packet test against a program, without interfaces or root: fairlane stf PROG.p4 TEST.stf"""
    _become("fairlane-stf", context.args)


def _become(name: str, arguments: list[str]) -> None:
    program = probes.program(name)
    if program is None:
        raise Refusal(f"{name} is not built: run 'make build'.", CANNOT_RUN_HERE)
    sys.stdout.flush()
    os.execv(program, [name, *arguments])


@app.command()
def doctor() -> None:
    """What this machine has and lacks, and what follows."""
    from fairlane import doctor as examination

    examination.show(console, examination.examine())


@app.command()
def shell(experiment: ExperimentArgument, target: TargetOption = "auto", grpc_port: PortOption = 9559) -> None:
    """A Mininet prompt on an experiment's network, with its controller, without its flows."""
    chosen = loader.load(loader.find(experiment))
    from fairlane import preflight, targets

    preflight.check_machine(chosen)
    from fairlane import execute
    from fairlane.run import Options

    execute.shell(chosen, Options(targets.resolve(target, chosen.topology), grpc_port), console)


@app.command()
def clean(stop: Annotated[bool, typer.Option("--stop", help="End runs that are under way, too.")] = False) -> None:
    """Remove what dead runs left behind: namespaces, interfaces, processes. Nothing else is touched."""
    if not probes.is_root():
        raise Refusal("only root has runs to clean up after: use sudo.", CANNOT_RUN_HERE)
    from fairlane import leftovers

    if stop:
        for what in leftovers.stop_live():
            console.print(f"ended {what}", highlight=False)
    for what in leftovers.clean():
        console.print(f"removed {what}", highlight=False)


if __name__ == "__main__":
    main()
