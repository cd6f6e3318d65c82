"""The command line, `fairlane`."""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from fairlane import ad_hoc_networks, cli_run, errors, probes, python_child
from fairlane.cli_options import (
    OwnControl,
    PortOption,
    SchedulerOption,
    TargetOption,
    UserFiles,
    WorkersOption,
    fabric_option,
    in_groups,
)
from fairlane.errors import (
    BAD_INPUT,
    CANNOT_RUN_HERE,
    CHECK_FAILED,
    NO_SPACE,
    Interrupted,
    Refusal,
    RunFailed,
    Unfinished,
)
from fairlane.experiments import kinds, loader
from fairlane.experiments.model import Experiment
from fairlane.fabrics.base import Fabric, Settings
from fairlane.fabrics.places import MININET, VIRTUAL, Place
from fairlane.fabrics.switch_process import BMV2, EMBEDDED, FIRST_GRPC_PORT
from fairlane.hosts.algorithms import ALGORITHMS
from fairlane.inputs.located_toml import ConfigError
from fairlane.schemes import registry
from fairlane.terminal import console, say, shown
from fairlane.topologies.model import queues

if TYPE_CHECKING:
    from fairlane.capacity import Capacity
    from fairlane.paper.row import Row
    from fairlane.paper.row_outcome import Outcome
    from fairlane.paper.wall_clock import Run

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Fairlane: P4 switches that write fair rates into senders' control packets, in virtual time or Mininet.",
)


class _PassOn(TyperCommand):
    """A command that passes its arguments to another program unchanged: none is an option here, and `--` keeps its position."""

    ignore_unknown_options = True

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.args = args
        return args


ExperimentArgument = Annotated[str, typer.Argument(help="An id from 'fairlane list', or a TOML file.", show_default=False)]


def _version(wanted: bool) -> None:
    if wanted:
        print(f"fairlane {version('fairlane')}")
        raise typer.Exit


@app.callback()
def _options(
    version_: Annotated[
        bool, typer.Option("--version", help="Print the version of Fairlane, and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    pass


def main() -> None:
    """Entry point: refusals and failures become one sentence on standard error, and an exit code."""
    try:
        errors.require_address_space()
        if registry.FAULTS:
            from fairlane import user_files

            user_files.check_environment()
        if not sys.stderr.isatty():
            app.rich_markup_mode = None  # a box of 80 columns breaks the path or key that the message names
        app()
    except ConfigError as error:
        _fail(str(error), BAD_INPUT)
    except Refusal as error:
        _fail(str(error), error.code)
    except RunFailed as error:
        _fail(f"{error}\nEverything that the run had started is cleaned up.", error.code)
    except Unfinished as error:
        _fail(str(error), error.code)
    except Interrupted as error:
        _fail(f"ended by {error.signal_name}; {error.kept or 'cleaned up, no results written'}.", error.code)
    except BrokenPipeError:
        sys.exit(0)  # the reader closed the pipe, as `head` does
    except Exception as error:  # noqa: BLE001 # the outermost handler
        _fail(_unexpected(error), errors.code_of(error))


def _unexpected(error: Exception) -> str:
    """The message for the user. The traceback, which only developers need, goes into a file."""
    said = errors.say(error)
    if errors.code_of(error) != errors.FAULT:
        return said
    try:
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", prefix="fairlane-fault-", suffix=".txt", delete=False) as file:
            traceback.print_exception(error, file=file)
    except OSError:
        return said
    return f"{said} The traceback is in {file.name}: please report it."


def _fail(message: str, code: int) -> None:
    print(f"fairlane: {message}", file=sys.stderr)
    if code == NO_SPACE:
        # Without memory, libraries crash while they unload, and the crash would set the exit code. Our own cleanup is complete here.
        sys.stdout.flush()
        os._exit(code)
    sys.exit(code)


app.command()(cli_run.run)


@app.command("sweep")
@in_groups
def sweep_file(
    experiment: Annotated[str, typer.Argument(help="A TOML file with axes and seeds, or an id from 'fairlane list'.", show_default=False)],
    own: UserFiles,
    control: OwnControl,
    *,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of the study; a study that exists there continues. Default: results/ID/sweep.", show_default=False),
    ] = None,
    at: Annotated[
        list[str] | None, typer.Option(help="AXIS=VALUE: keep one value of an axis, such as n=8. Repeatable.", show_default=False)
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(help="Use seeds 1 to this number instead of the file's seeds.", show_default=False, min=1)
    ] = None,
    duration: Annotated[
        float | None, typer.Option(help="Duration of each run in seconds. Default: the file's.", show_default=False)
    ] = None,
    scheduler: SchedulerOption = None,
    workers: WorkersOption = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit code 1 if an expectation of the file does not hold.")] = False,
) -> None:
    """Run a study: all points of a file with all seeds, then tables, figures with intervals, and a page. Continues a stopped study."""
    from fairlane.paper import single
    from fairlane.studies import read

    files = read.own_files(own.algorithm or (), own.program or (), own.scheme or (), control.control)
    if ad_hoc_networks.describes(experiment):
        raise Refusal(
            f"fairlane sweep {experiment}: give a file; 'fairlane run {experiment} --flow ... --save FILE.toml' writes one to begin with."
        )
    holds = single.sweep_file(
        loader.find(experiment),
        out,
        console,
        at=at or [],
        seeds=range(1, seeds + 1) if seeds else (),
        duration_s=duration,
        files=files,
        scheduler=scheduler,
        workers=workers,
    )
    if strict and not holds:
        raise typer.Exit(CHECK_FAILED)


@app.command()
def suite(
    name: Annotated[str, typer.Argument(help="rfc8867, rfc8869, rfc7928 or l4s.", show_default=False)],
    algorithm: Annotated[
        str,
        typer.Option(
            help="The sender: a flow kind, or FILE.py with your own; for rfc7928 and l4s a kind of TCP.",
            metavar="KIND|FILE.py",
            show_default=False,
        ),
    ],
    case: Annotated[list[str] | None, typer.Option(help="Run only this case, such as 5.1. Repeatable.", show_default=False)] = None,
    queue: Annotated[
        str | None,
        typer.Option(help="Queue management of the bottleneck. Default: as in each case.", metavar="|".join(queues()), show_default=False),
    ] = None,
    program: Annotated[
        list[Path] | None,
        typer.Option(help="FILE.p4 that replaces the file of that name in p4src. Repeatable.", show_default=False),
    ] = None,
    scheme: Annotated[
        list[Path] | None, typer.Option(help="FOLDER with your own queue management for --queue. Repeatable.", show_default=False)
    ] = None,
    ecn: Annotated[
        bool,
        typer.Option(
            "--ecn",
            help=f"The tested flows use ECN, and the queues mark; without --queue, {registry.default_marking()} replaces drop-tail.",
        ),
    ] = False,
    loss: Annotated[
        float, typer.Option(help="Fraction of packets that the bottleneck loses at random in each direction.", min=0.0, max=0.99)
    ] = 0.0,
    jitter: Annotated[
        float,
        typer.Option(
            help="Jitter of the bottleneck: the absolute value of a Gaussian with this standard deviation in milliseconds, cut off at three times the deviation (RFC 8868: 5).",
            min=0.0,
            max=1000.0,
        ),
    ] = 0.0,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of suite.json and the page; must not exist. Default: a new one in results/.", show_default=False),
    ] = None,
    delay: Annotated[
        float | None,
        typer.Option(
            help="One-way delay of the bottleneck's link in milliseconds. Default: as in each case.",
            min=0.0,
            max=10_000.0,
            show_default=False,
        ),
    ] = None,
    rtp_log: Annotated[
        bool,
        typer.Option(
            "--rtp-log",
            help="Also log each RTP packet, sent and received, in the format of RFC 8868: rtp/CASE/FLOW.sent.log, FLOW.received.log.",
        ),
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit code 1 if a case fails.")] = False,
) -> None:
    """Run a standard test suite with a sender, in virtual time: suite.json, and a page with a picture for each case."""
    from fairlane import user_files
    from fairlane.suites import carry_out, cases

    for path in scheme or ():
        user_files.use_scheme(path)
    options = cases.Options(queue, tuple(program or ()), ecn, loss, jitter / 1000, None if delay is None else delay / 1000)
    passes = carry_out.carry_out(name, algorithm, out, console, options, rtp_log, tuple(case or ()))
    if strict and not passes:
        raise typer.Exit(CHECK_FAILED)


@app.command()
def film(
    algorithms: Annotated[list[str], typer.Argument(help="Flow kinds, or FILE.py with your own.", show_default=False)],
    rate: Annotated[str, typer.Option(help="Rate of the link, and later rates as RATE@TIME.")] = "2mbit,1mbit@20s,2mbit@40s",
    rtt: Annotated[float, typer.Option(help="Round trip without queues in milliseconds.", min=0.0, max=2000.0)] = 40.0,
    buffer: Annotated[
        int | None, typer.Option(help="Length of the link's queue in packets. Default: 0.2 s at the first rate.", show_default=False, min=1)
    ] = None,
    seconds: Annotated[float, typer.Option(help="Length of the film in seconds.", min=2.0, max=3600.0)] = 60.0,
    film_file: Annotated[
        Path | None, typer.Option("--film", help="Your own film (mininet). Default: a generated film.", show_default=False)
    ] = None,
    fabric: Annotated[
        Fabric,
        fabric_option("virtual: modelled frames in virtual time; mininet: GStreamer encodes and decodes a film on real hosts (root)."),
    ] = VIRTUAL,
    grpc_port: PortOption = FIRST_GRPC_PORT,
    seed: Annotated[int, typer.Option(help="Seed of the random numbers.")] = 1,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of film.json and the page; must not exist. Default: a new one in results/.", show_default=False),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit code 5 if the machine did not keep up with a run.")] = False,
) -> None:
    """Send a film with each algorithm over the same link: quality, freezes and delay of its frames, and a page with pictures."""
    from fairlane.films import carry_out
    from fairlane.films.model import Wanted

    if film_file is not None and not fabric.real_time:
        raise Refusal("--film: in virtual time frames are modelled, without pictures; add --fabric mininet")
    wanted = Wanted(tuple(algorithms), carry_out.rates(rate), rtt / 1e3, buffer, seconds, film_file, fabric, seed, grpc_port)
    true = carry_out.carry_out(wanted, out, console)
    if strict and not true:
        raise typer.Exit(errors.NOT_VALID)


@app.command()
def paper(
    ids: Annotated[
        list[str] | None, typer.Argument(help="Ids of rows. Default: every experiment with expectations.", show_default=False)
    ] = None,
    quick_: Annotated[bool, typer.Option("--quick", help="Run fewer points and seeds, as defined in each file.")] = False,
    scheduler: SchedulerOption = None,
    workers: WorkersOption = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the report and its data. Default: results/paper, or results/paper-quick.", show_default=False),
    ] = None,
    mininet: Annotated[
        bool, typer.Option("--mininet", help="Also run the rows with a [mininet] table on Mininet, to compare with virtual time (root).")
    ] = False,
    grpc_port: PortOption = FIRST_GRPC_PORT,
    strict: Annotated[bool, typer.Option("--strict", help="Exit code 1 if a row is unexplained.")] = False,
) -> None:
    """Reproduce the papers' figures and tables in virtual time on one page, index.html. Continues a stopped reproduction."""
    from fairlane.fabrics import virtual_fabric
    from fairlane.paper import make

    virtual_fabric.check_built()
    names = ids or make.ids()
    folder = out or Path("results") / ("paper-quick" if quick_ else "paper")
    rows = make.load(names, quick_)
    real = _wall_clock_runs(rows, folder) if mininet else []
    outcomes = make.run(rows, folder, console, quick=quick_, scheduler=scheduler, workers=workers)
    if real:
        _run_on_wall_clock(real, outcomes, folder, quick_, grpc_port, scheduler, workers)
    make.show(outcomes, console)
    console.print(f"report: {shown(folder / 'index.html')}", highlight=False, soft_wrap=True)
    if strict and any(o.kind == "unexplained" for o in outcomes):
        raise typer.Exit(CHECK_FAILED)


def _wall_clock_runs(rows: list[Row], folder: Path) -> list[Run]:
    """The runs for Mininet; empty where Mininet cannot run."""
    from fairlane.paper import wall_clock

    runs = wall_clock.plan(rows, folder)
    return runs if wall_clock.announce(runs, console) else []


def _run_on_wall_clock(
    runs: list[Run], outcomes: list[Outcome], folder: Path, quick_: bool, grpc_port: int, scheduler: str | None, workers: int | None
) -> None:
    """Run them, and write the page again with their results, even if some failed."""
    from fairlane.paper import page, wall_clock

    try:
        wall_clock.carry_out(runs, folder, console, grpc_port=grpc_port, scheduler=scheduler, workers=workers)
    finally:
        page.write(outcomes, folder, quick_)


@app.command()
def report(
    folders: Annotated[
        list[Path], typer.Argument(metavar="DIR...", help="Result folders of 'fairlane run', from any fabric.", show_default=False)
    ],
    out: Annotated[
        Path | None, typer.Option(help="FILE.html for a page with every run's rates and queue; must not exist.", show_default=False)
    ] = None,
) -> None:
    """Compare finished runs in one table, and on a page; evaluate a run whose evaluation failed. Runs nothing."""
    from fairlane.results import compare, unfinished

    if out is not None:
        compare.check_out(out)
    for folder in folders:
        if unfinished.is_in(folder):
            from fairlane import execute

            execute.finish(folder, console)
    runs = compare.load(folders)
    compare.show(runs, console)
    if out is not None:
        compare.write(runs, out)
        console.print(f"page: {out}", highlight=False, markup=False, soft_wrap=True)


@app.command()
def view(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A result folder of 'fairlane run', from any fabric.", show_default=False)],
    port: Annotated[
        int, typer.Option("--live-port", help="Port of the page. Default: a free one.", show_default=False, min=0, max=65535)
    ] = 0,
) -> None:
    """Show a finished run on the live view's page, at any point of its time. Ctrl-C ends the command."""
    probes.need("live", "fairlane view")
    from fairlane.live import finished

    finished.serve(folder, port, say)


@app.command()
def pack(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Results of 'fairlane run' or 'fairlane sweep'.", show_default=False)],
    out: Annotated[Path | None, typer.Option(help="FILE.tar.gz; must not exist. Default: DIR.tar.gz.", show_default=False)] = None,
    blind: Annotated[bool, typer.Option("--blind", help="Refuse results whose texts name this machine or its user.")] = False,
) -> None:
    """Pack results into one file, with all that repeats them: inputs, versions, command."""
    from fairlane.results import pack as packing

    target = out or folder.with_name(f"{folder.resolve().name}.tar.gz")
    manifest = packing.pack(folder, target, blind)
    say(f"{target}: {len(manifest['files'])} files, {target.stat().st_size / 1e6:.1f} MB")


@app.command()
def unpack(
    archive: Annotated[Path, typer.Argument(metavar="FILE", help="Of 'fairlane pack'.", show_default=False)],
    out: Annotated[Path | None, typer.Option(help="A folder; must not exist. Default: FILE without .tar.gz.", show_default=False)] = None,
) -> None:
    """Unpack results, check every file against the list, and say how to repeat them."""
    from fairlane.results import pack as packing

    if not archive.is_file():
        raise Refusal(f"{archive}: no such file")
    folder = out or archive.with_name(archive.name.removesuffix(".gz").removesuffix(".tgz").removesuffix(".tar"))
    if folder == archive:
        raise Refusal(f"{archive}: give the folder to write by --out")
    manifest = packing.unpack(archive, folder)
    say(f"{folder}: {len(manifest['files'])} files, each as its list says")
    if manifest["again"]:
        say(f"again: cd {folder} && {manifest['again']}")


@app.command("list")
def list_all() -> None:
    """List experiments, topologies, and every kind of flow."""

    def section(title: str, rows: dict[str, str]) -> None:
        console.print(f"{title}", style="bold", highlight=False)
        width = max(map(len, rows))
        for name, text in rows.items():
            console.print(f"  {name:{width}}  {text}", highlight=False, markup=False, soft_wrap=True)

    section("Experiments (fairlane run ID)", {name: _described(loader.load(loader.find(name))) for name in loader.names()})
    section("\nTopologies (fairlane run TOPOLOGY --flow KIND:COUNT ...)", ad_hoc_networks.TOPOLOGIES)
    section("\nRate-adaptation algorithms (flow kinds)", {name: kinds.summary(name) for name in sorted(ALGORITHMS)})
    section("\nTCP (flow kinds)", {name: kinds.summary(name) for name in kinds.TCP_KINDS})
    section("\nPlain sources (flow kinds)", {name: kinds.summary(name) for name in kinds.SOURCE_KINDS})


def _described(experiment: Experiment) -> str:
    paper = experiment.settings.paper
    where = f"{paper.reference} {paper.section}, {paper.figure}; " if paper else ""
    return f"{experiment.settings.title} ({where}{experiment.duration_s:g} s)"


new = typer.Typer(no_args_is_help=True, help="Create a starting point for your own code.")
app.add_typer(new, name="new")


@new.callback()
def _new() -> None:
    """Create a starting point for your own code."""


@new.command("algorithm")
def new_algorithm(
    name: Annotated[str, typer.Argument(help="Name of the flow kind: lower case, words joined by hyphens.", show_default=False)],
    acks: Annotated[
        bool, typer.Option("--acks", help="Receive an acknowledgement of each packet instead of reports, as delay-based algorithms need.")
    ] = False,
) -> None:
    """Write a rate-adaptation algorithm without its equation, and a test that fails until you add it."""
    from fairlane import skeleton

    checkout = probes.in_checkout()
    source, test = (shown(path) for path in skeleton.algorithm(name, probes.ROOT if checkout else Path(), checkout, acks))
    kind, pytest, named = name.replace("_", "-"), ".venv/bin/pytest" if checkout else "pytest", "" if checkout else f" --algorithm {source}"
    for line in (
        f"written: {source}",
        f"written: {test}",
        f"now write the equation into {source}, until this test passes:",
        f"    {pytest} {test}",
        "and run it:",
        f"    fairlane run dumbbell{named} --flow {kind}:2 --flow tcp-reno:2",
    ):
        console.print(line, highlight=False, markup=False, soft_wrap=True)


@new.command("scheme")
def new_scheme(
    name: Annotated[str, typer.Argument(help="Name of the queue management: lower case, words joined by hyphens.", show_default=False)],
) -> None:
    """Write a folder with a working queue management, as a starting point for your own."""
    from fairlane import skeleton_scheme

    files = [shown(path) for path in skeleton_scheme.scheme(name, Path())]
    p4src = shown(probes.PACKAGE / "p4src") if not probes.in_checkout() else "p4src"
    for line in (
        *(f"written: {path}" for path in files),
        "run it:",
        f"    fairlane run dumbbell --flow tcp-sack:4 --scheme {name} --queue {name}",
        "its packet test:",
        f"    fairlane stf -D CHOSEN -I {name} -I {p4src} {p4src}/als.p4 {name}/{name}.stf",
    ):
        console.print(line, highlight=False, markup=False, soft_wrap=True)


labs = typer.Typer(no_args_is_help=True, help="The labs: copy them, and check your answers.")
app.add_typer(labs, name="labs")


@labs.command("copy")
def copy_labs(folder: Annotated[Path, typer.Argument(help="The new folder; must not exist.")] = Path("labs")) -> None:
    """Copy the labs into a new folder, to work there. Its README.md lists them."""
    from fairlane.labs.grading.labs import copy

    copy(folder)
    console.print(f"labs: {folder}; begin with {folder}/01/README.md", highlight=False, markup=False, soft_wrap=True)


@labs.command("check")
def check_lab(
    number: Annotated[str, typer.Argument(help="The lab's number, such as 04.", show_default=False)],
    folder: Annotated[
        Path | None, typer.Argument(help="Folder of the files to grade. Default: labs/NUMBER in the current folder.", show_default=False)
    ] = None,
) -> None:
    """Grade the answer to a lab: points, observations, and a hint. Exit code 1 unless the answer gets all points."""
    from fairlane.labs.grading.__main__ import main as grade

    raise typer.Exit(grade([number, "--answer", str(folder or Path("labs", number))]))


@app.command(cls=_PassOn)
def compile(context: typer.Context) -> None:
    """Compile a P4 program: fairlane-compile, with p4c's flags."""
    _become("fairlane-compile", context.args)


@app.command(cls=_PassOn)
def switch(context: typer.Context) -> None:
    """Run one switch: fairlane-switch, with simple_switch_grpc's flags."""
    _become("fairlane-switch", context.args)


@app.command(cls=_PassOn)
def stf(context: typer.Context) -> None:
    """Run a packet test against a program, without interfaces or root: fairlane stf PROG.p4 TEST.stf"""
    _become("fairlane-stf", context.args)


@app.command()
def env(
    link: Annotated[
        Path | None,
        typer.Option(
            help="Link the names in this folder instead, such as /usr/local/bin, where sudo and other users find them.", show_default=False
        ),
    ] = None,
    unlink: Annotated[Path | None, typer.Option(help="Remove these links from this folder.", show_default=False)] = None,
    packages: Annotated[
        bool, typer.Option("--packages", help="Also make BMv2's Python packages available to Pythons without Fairlane (PYTHONPATH).")
    ] = False,
) -> None:
    """Print shell commands that make BMv2's names (simple_switch, simple_switch_CLI, p4c, bm_runtime, ...) run Fairlane's programs."""
    from fairlane.bmv2 import environment

    if link is not None or unlink is not None:
        _links(link, unlink)
        return
    for program in environment.hidden():
        typer.echo(f"fairlane: note: {program} is hidden by these lines: leave them out to use it", err=True)
    if find_spec("thriftpy2") is None:
        typer.echo("fairlane: note: simple_switch_CLI and bm_runtime need thriftpy2: pip install 'fairlane[bmv2]'", err=True)
    if active := environment.foreign(os.environ):
        typer.echo(f"fairlane: note: python is still that of {active}; Fairlane's is {sys.executable}", err=True)
    for line in environment.lines(os.environ, packages):
        typer.echo(line)


def _links(link: Path | None, unlink: Path | None) -> None:
    from fairlane.bmv2 import environment

    try:
        for program in environment.unlink(unlink) if unlink else []:
            typer.echo(f"removed {program}")
        for program in environment.link(link) if link else []:
            typer.echo(f"{program} is Fairlane's; 'fairlane env --unlink {link}' removes it")
    except FileExistsError as error:
        raise Refusal(f"{error}: another program of that name is there, and stays. Give a folder that comes before it in PATH.") from error
    except OSError as error:
        raise Refusal(f"{error.filename}: {error.strerror}.") from error


def _become(name: str, arguments: list[str]) -> None:
    program = probes.program(name)
    if program is None:
        raise Refusal(f"{name} is not built: run 'make build'.", CANNOT_RUN_HERE)
    sys.stdout.flush()
    python_child.become(program, [name, *arguments])


@app.command()
def doctor(
    place: Annotated[
        Place,
        typer.Option("--for", help="The required fabric or switch: exit code 3 if this machine cannot run it."),
    ] = Place.VIRTUAL,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    measure: Annotated[
        bool,
        typer.Option(
            "--measure", help="Measure the highest rate and number of flows with valid runs on Mininet on this machine (root, a minute)."
        ),
    ] = False,
    grpc_port: PortOption = FIRST_GRPC_PORT,
) -> None:
    """List the installed and the missing requirements, the consequences, and how to install the missing ones."""
    if measure:
        _measure_machine(grpc_port)
        return
    from fairlane import doctor as examination

    findings = examination.examine()
    if as_json:
        print(examination.as_json(findings))
    else:
        examination.show(console, findings)
    if examination.lacking(findings, place):
        raise typer.Exit(CANNOT_RUN_HERE)


def _measure_machine(grpc_port: int) -> None:
    from fairlane import capacity, measure

    has_bmv2 = probes.program(BMV2.program) is not None
    for target in (EMBEDDED, BMV2) if has_bmv2 else (EMBEDDED,):
        _say_capacity(target.name, measured := measure.measure(target, grpc_port, say))
        capacity.write(target.name, measured)
    if not has_bmv2:
        say(f"{BMV2}: not measured, there is no {BMV2.program} in PATH")
    say(f"written: {capacity.file()}; a run beyond these values prints a warning before it starts")


def _say_capacity(target: str, found: Capacity) -> None:
    for what, bound in (("packets a second, summed over switches", found.hops_per_s), ("flows", found.flows)):
        invalid = "" if bound.invalid is None else f", not valid from {bound.invalid:,.0f} on"
        more = " (the largest value tried)" if bound.true >= bound.tried else ""
        say(f"{target}: true up to {bound.true:,.0f} {what}{more}{invalid}")
    if not min(found.hops_per_s.true, found.flows.true):
        say(f"{target}: not even the first step was true, at a load average of {found.load:.1f}: measure again on an idle machine")


@app.command()
def shell(
    experiment: ExperimentArgument,
    target: TargetOption = "auto",
    grpc_port: PortOption = FIRST_GRPC_PORT,
    script: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, metavar="FILE", help="Run the Mininet commands of this file, a line each, and leave."),
    ] = None,
) -> None:
    """Open a Mininet prompt in an experiment's network, with its controller but without its flows."""
    chosen = loader.load(loader.find(experiment), laid_over=MININET.laid_over)
    options = MININET.options(chosen, Settings(target, first_grpc_port=grpc_port))
    from fairlane import execute

    execute.shell(chosen, options, console, script)


@app.command()
def clean(stop: Annotated[bool, typer.Option("--stop", help="Also stop running experiments.")] = False) -> None:
    """Remove the leftovers of killed runs: namespaces, interfaces, processes. Changes nothing else."""
    probes.need_linux()
    if not probes.is_root():
        raise Refusal("cleaning up runs needs root: use sudo.", CANNOT_RUN_HERE)
    from fairlane.fabrics import leftovers

    if stop:
        for what in leftovers.stop_live():
            console.print(f"ended {what}", highlight=False)
    for what in leftovers.clean():
        console.print(f"removed {what}", highlight=False)


if __name__ == "__main__":
    main()
