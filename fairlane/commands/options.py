"""The options of `fairlane run`, in groups: each group is a dataclass, each of its fields an option of the command line."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from fairlane import ad_hoc
from fairlane.errors import Refusal
from fairlane.fabrics import places
from fairlane.fabrics.base import Fabric
from fairlane.fabrics.places import VIRTUAL
from fairlane.fabrics.switch_process import FIRST_GRPC_PORT
from fairlane.fabrics.targets import Choice, CompilerChoice
from fairlane.inputs.schema import either
from fairlane.schemes import registry
from fairlane.topologies.model import queues

TargetOption = Annotated[
    Choice,
    typer.Option(help="auto: BMv2 if BMv2 and p4c are installed and BMv2 can run this network, otherwise the embedded switch."),
]
PortOption = Annotated[int, typer.Option(help="P4Runtime port of the first switch; the others use the next ports.", min=1, max=65000)]

SchedulerOption = Annotated[
    str | None,
    typer.Option(help="Address of a dask scheduler, such as tcp://HOST:8786. Default: the cores of this machine.", show_default=False),
]
WorkersOption = Annotated[
    int | None, typer.Option(help="Number of processes on this machine. Default: one per core.", show_default=False, min=1)
]


def fabric_option(help_text: str) -> Any:
    """A fabric by its name."""
    # Typer also parses the default.
    parser: Callable[[str | Fabric], Fabric] = lambda given: given if isinstance(given, Fabric) else _fabric(given)
    return typer.Option(parser=parser, metavar="|".join(places.NAMES), help=help_text, autocompletion=lambda: list(places.NAMES))


def _fabric(name: str) -> Fabric:
    try:
        return places.named(name)
    except Refusal as refusal:
        raise typer.BadParameter(str(refusal)) from refusal


def _option(help_text: str, panel: str | None = None, *names: str, **more: Any) -> Any:
    return typer.Option(*names, help=help_text, show_default=False, rich_help_panel=panel, **more)


_AD_HOC = "With a topology such as dumbbell or leaf-spine instead of an experiment"
_LIVE = "Live view"
MOST_CORES = 64
_TUTORIALS = "With a topology.json of the P4 tutorials"


@dataclass(frozen=True)
class Where:
    """The fabric of a run, and the options of its network there."""

    fabric: Annotated[Fabric, fabric_option("virtual: in virtual time; mininet: with real processes (root).")] = VIRTUAL
    target: TargetOption = "auto"
    compiler: Annotated[CompilerChoice, typer.Option(help="auto: p4c for BMv2 if p4c is installed, otherwise fairlane-compile.")] = "auto"
    grpc_port: PortOption = FIRST_GRPC_PORT
    restart_after: Annotated[float, typer.Option(help="Seconds before a dead switch or controller is restarted.", min=0.0, max=86400.0)] = (
        1.0
    )
    rtt_check: Annotated[
        bool, typer.Option("--rtt-check/--no-rtt-check", help="Refuse a network whose measured round trips differ from the declared ones.")
    ] = True
    keep_awake: Annotated[
        bool | None,
        typer.Option(
            "--keep-awake/--no-keep-awake", help="Run loops that keep the processors awake (mininet). Default: only on a virtual machine."
        ),
    ] = None
    control_delay: Annotated[
        float, typer.Option(help="One-way delay between controller and switch in seconds (virtual).", min=0.0, max=3600.0)
    ] = 0.001
    cores: Annotated[
        int | None,
        typer.Option(
            help="Processes that simulate the network together (virtual). Default: more than one where that is faster.",
            min=1,
            max=MOST_CORES,
            metavar="N",
            show_default=False,
        ),
    ] = None
    mpi: Annotated[
        bool, typer.Option("--mpi", help="The ranks that mpiexec or srun has started simulate the network together (virtual).")
    ] = False


@dataclass(frozen=True)
class Extent:
    """The selected runs of an experiment, and their duration."""

    duration: Annotated[float | None, _option("Duration in seconds. Default: the experiment's, or 60.")] = None
    seed: Annotated[int | None, _option("Seed of the random numbers. Default: the experiment's.")] = None
    at: Annotated[list[str] | None, _option("AXIS=VALUE: run only this value of a sweep's axis, such as n=8. Repeatable.")] = None


@dataclass(frozen=True)
class Output:
    """The output of a run."""

    out: Annotated[
        Path | None, _option("Folder for the results; must not exist. Default: results/ID/TIME-seedN in the current folder.")
    ] = None
    strict: Annotated[
        bool,
        _option("Exit code 1 if a check fails, 5 if the machine did not keep up and the figures are not valid.", None, "--strict"),
    ] = False
    pcap: Annotated[
        Path | None,
        _option(
            "Folder for packet captures of every link, FROM-TO.pcap (mininet: the name is ignored; the captures go to raw/pcap in the results)."
        ),
    ] = None
    trace: Annotated[Path | None, _option("File for a log of every packet at every queue (virtual).")] = None
    packets: Annotated[
        Path | None,
        _option(
            "File for a row for each packet at each queue of a switch: its flow, waiting time, mark, drop; .csv or .parquet (virtual)."
        ),
    ] = None
    packets_of: Annotated[list[str] | None, _option("With --packets: only the queue of this link, s1->s2; repeat for several.")] = None


@dataclass(frozen=True)
class UserFiles:
    """The user's own P4 programs, algorithms and schemes."""

    program: Annotated[
        list[Path] | None,
        _option("FILE.p4 that replaces the file of that name in p4src, or next to a topology.json; or a whole program. Repeatable."),
    ] = None
    algorithm: Annotated[list[Path] | None, _option("FILE.py with your own flow kinds for --flow. Repeatable.")] = None
    scheme: Annotated[list[Path] | None, _option("FOLDER with your own queue management for --queue. Repeatable.")] = None


@dataclass(frozen=True)
class OwnControl:
    """The user's own control plane."""

    control: Annotated[Path | None, _option("FILE.py with your own control plane, for your own --program or based on Fairlane's.")] = None


@dataclass(frozen=True)
class AdHoc:
    """An experiment without a file."""

    flow: Annotated[list[str] | None, _option("Flows: KIND, KIND:COUNT or KIND:COUNT@START, such as rap:2@5s. Repeatable.", _AD_HOC)] = None
    bottleneck: Annotated[str | None, _option("Rate of the bottleneck. Default: 10mbit.", _AD_HOC)] = None
    rtt: Annotated[str | None, _option("Round trip without queues. Default: 64ms.", _AD_HOC)] = None
    queue: Annotated[str | None, _option("Queue management of the bottleneck. Default: droptail.", _AD_HOC, metavar="|".join(queues()))] = (
        None
    )
    ecn: Annotated[
        bool | None,
        _option(
            f"The queue marks packets instead of dropping them, and TCP, NADA and SCReAM react to marks (ECN, RFC 3168); with --queue {either(registry.names(marking=True))}.",
            _AD_HOC,
            "--ecn",
        ),
    ] = None
    buffer: Annotated[
        str | None, _option("Buffer of the bottleneck, such as 80packets. Default: 1bdp (one bandwidth-delay product).", _AD_HOC)
    ] = None
    side_delay: Annotated[str | None, _option("One-way delay of each host's link, part of the round trip. Default: 0ms.", _AD_HOC)] = None
    side_rate: Annotated[str | None, _option("Rate of each host's link. Default: ten times the bottleneck's.", _AD_HOC)] = None
    packet_bytes: Annotated[
        int | None, _option("Packet size of every flow in bytes, IP header included. Default: the kind's, mostly 1000.", _AD_HOC)
    ] = None
    start_jitter: Annotated[str | None, _option("Longest random delay of each flow's start, such as 500ms. Default: 0ms.", _AD_HOC)] = None
    switches: Annotated[
        int | None,
        _option(
            "Number of switches: the length of a chain or ring, or the leaves of a tree or leaf-spine. Default: the topology's.",
            _AD_HOC,
            min=2,
            max=200,
        ),
    ] = None
    set_: Annotated[
        list[str] | None,
        _option(
            "KIND.KEY=VALUE: a setting of a kind, such as rap.pacing_jitter=0.1; or topology.KEY=VALUE, such as topology.spines=4. Repeatable.",
            _AD_HOC,
            "--set",
        ),
    ] = None
    save: Annotated[Path | None, _option("Also write the experiment to this TOML file, to repeat or change it.", _AD_HOC)] = None

    def options(self) -> ad_hoc.Options:
        """The options without the file of --save."""
        return ad_hoc.Options(
            tuple(self.flow or ()),
            self.bottleneck,
            self.rtt,
            self.queue,
            self.buffer,
            self.side_delay,
            self.side_rate,
            self.packet_bytes,
            self.start_jitter,
            self.switches,
            tuple(self.set_ or ()),
            self.ecn,
        )

    def given(self) -> list[str]:
        """The given options, by their names on the command line."""
        return [*self.options().given(), *(["--save"] if self.save else [])]


@dataclass(frozen=True)
class Version:
    """The version of IP."""

    ip: Annotated[int | None, _option("Version of IP: 4 or 6. Default: that of the experiment, or 4.", metavar="4|6")] = None

    def __post_init__(self) -> None:
        if self.ip not in (None, 4, 6):
            raise Refusal(f"--ip {self.ip}: must be 4 or 6")


@dataclass(frozen=True)
class Page:
    """The live view."""

    live: Annotated[bool, _option("Show and control the running experiment on a local page.", _LIVE, "--live")] = False
    live_port: Annotated[int, _option("Port of the page. Default: a free one.", _LIVE, min=0, max=65535)] = 0
    live_speed: Annotated[str, _option("Virtual seconds per second, or max; 0 starts paused. Default: 1.", _LIVE)] = "1"

    def __post_init__(self) -> None:
        if not self.live and (self.live_port or self.live_speed != "1"):
            raise Refusal("--live-port and --live-speed: only with --live")


@dataclass(frozen=True)
class Tutorial:
    """A topology of the P4 tutorials."""

    prompt: Annotated[bool, _option("Open Mininet's prompt after the pings.", _TUTORIALS, "--cli")] = False


def in_groups(command: Callable[..., None]) -> Callable[..., None]:
    """The command as typer reads it: a parameter for each field of each parameter that is a dataclass."""
    signature = inspect.signature(command, eval_str=True)
    groups: dict[str, type[Any]] = {
        name: p.annotation for name, p in signature.parameters.items() if isinstance(p.annotation, type) and is_dataclass(p.annotation)
    }
    parameters = []
    for name, parameter in signature.parameters.items():
        if name in groups:
            hints = get_type_hints(groups[name], include_extras=True)
            parameters += [
                inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default, annotation=hints[f.name])
                for f in fields(groups[name])
            ]
        else:
            parameters.append(parameter)

    @functools.wraps(command)
    def call(**given: Any) -> None:
        objects = {name: kind(**{f.name: given.pop(f.name) for f in fields(kind)}) for name, kind in groups.items()}
        command(**given, **objects)

    call.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return call
