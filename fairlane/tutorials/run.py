"""`fairlane run topology.json`: find and compile the programs, build the network, write the entries, and test which hosts reach each other."""

from __future__ import annotations

import json
import signal
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from fairlane import probes
from fairlane.errors import CANNOT_RUN_HERE, Refusal
from fairlane.fabrics import preflight, targets
from fairlane.fabrics.base import Fabric
from fairlane.fabrics.interrupts import ENDING, interruptible
from fairlane.fabrics.places import MININET, VIRTUAL
from fairlane.tutorials import programs, topology, virtual_network
from fairlane.tutorials.programs import SwitchProgram
from fairlane.tutorials.topology import TutorialTopology

if TYPE_CHECKING:
    from fairlane.tutorials.mininet_network import Ping, TutorialNetwork

# The tutorials' own first port of P4Runtime, which their controllers connect to.
FIRST_GRPC_PORT = 50051


@dataclass(frozen=True)
class Options:
    """fabric: None chooses Mininet if it can run. programs: P4 sources in place of those next to the files. prompt: stay in
    Mininet's prompt. out: folder for logs and results, which must not exist. grpc_port: None means the tutorials' first."""

    fabric: Fabric | None
    target: targets.Choice
    compiler: targets.CompilerChoice = "auto"
    programs: tuple[Path, ...] = ()
    prompt: bool = False
    out: Path | None = None
    pcap: Path | None = None
    grpc_port: int | None = None


def run(path: Path, options: Options, console: Console) -> bool:
    """Whether every pair of hosts reached each other."""
    read = topology.read(path)
    for note in read.notes:
        _say(console, f"note: {note}")
    fabric = _fabric(options, console)
    with ExitStack() as stack:
        if options.out is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fairlane-tutorial-")))
        else:
            folder = options.out
            try:
                folder.mkdir(parents=True)
            except FileExistsError:
                raise Refusal(f"--out {folder}: exists already: give another folder, or remove it") from None
            except OSError as error:
                raise Refusal(f"--out {folder}: {error.strerror}") from error
        return (_run_mininet if fabric.real_time else _run_virtual)(read, options, folder, console)


def _fabric(options: Options, console: Console) -> Fabric:
    if options.fabric is not None:
        options.fabric.check_target(options.target)
        if options.prompt and not options.fabric.real_time:
            raise Refusal("--cli: virtual time has no prompt: add --fabric mininet.")
        return options.fabric
    lacking = MININET.obstacle()
    if lacking is None:
        return MININET
    if options.prompt or not VIRTUAL.has_target(options.target):
        raise Refusal(
            f"{'--cli' if options.prompt else '--target bmv2'} needs Mininet, and there is no {lacking} here:"
            + (" run it with sudo." if lacking == "root" else " apt-get install mininet, then make setup."),
            CANNOT_RUN_HERE,
        )
    _say(
        console,
        f"no {lacking} here, so in virtual time: hosts send each other {virtual_network.BYTES} bytes over TCP in place of pings"
        " (sudo runs it on Mininet)",
    )
    return VIRTUAL


def _say(console: Console, text: str) -> None:
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def _run_virtual(read: TutorialTopology, options: Options, folder: Path, console: Console) -> bool:
    from fairlane.fabrics import virtual_fabric

    virtual_fabric.check_built()
    found = programs.find(read, options.programs, targets.compiler(options.compiler), folder)
    transfers = virtual_network.run(read, found, options.pcap, lambda text: _say(console, text))
    tried = [t for t in transfers if not t.reason]
    _matrix(read, {(t.source, t.target): "yes" if t.arrived else "not tried" if t.reason else "no" for t in transfers}, console)
    for reason in dict.fromkeys(t.reason for t in transfers if t.reason):
        _say(console, f"not tried: {reason}")
    arrived = sum(t.arrived for t in tried)
    _say(
        console,
        f"transfers in virtual time: {arrived} of {len(tried)} arrived"
        + (f", {len(transfers) - len(tried)} not tried" if len(tried) < len(transfers) else ""),
    )
    _write(folder, options, {"fabric": VIRTUAL.name, "programs": _origins(found), "transfers": [vars(t) for t in transfers]})
    return arrived == len(transfers)


def _run_mininet(read: TutorialTopology, options: Options, folder: Path, console: Console) -> bool:
    _check_machine()
    from fairlane.fabrics import leftovers  # Linux's alone

    toolchain = targets.resolve_plain(options.target, options.compiler, partial(_obstacle, read))
    first_port = options.grpc_port or FIRST_GRPC_PORT
    preflight.check_ports([first_port + i for i in range(len(read.switches))])
    for what in leftovers.clean():
        _say(console, f"removed the leftovers of a dead run: {what}")
    found = programs.find(read, options.programs, toolchain, folder)
    _say(console, toolchain.why)
    # Mininet is imported only where it is needed: it may not be installed.
    from fairlane.tutorials.mininet_network import TutorialNetwork

    # Ctrl-C belongs to the prompt: it ends the command that runs there.
    numbers = ENDING if options.prompt else (signal.SIGINT, *ENDING)
    record = leftovers.RunRecord.create(f"fairlane {read.path.name}")
    network = None
    try:
        with interruptible(numbers):
            network = TutorialNetwork(
                read,
                found,
                folder=folder,
                record=record,
                toolchain=toolchain,
                first_grpc_port=first_port,
                pcap=options.pcap,
                say=lambda text: _say(console, text),
            )
            network.start()
            pings = network.ping_all()
            reached = _show_pings(read, pings, console)
            _write(
                folder,
                options,
                {"fabric": MININET.name, "target": toolchain.target.name, "programs": _origins(found), "pings": [vars(p) for p in pings]},
            )
            if options.prompt:
                _prompt(network, folder, console)
    finally:
        if network is not None:
            network.stop()
        record.release()
    return reached


def _prompt(network: TutorialNetwork, folder: Path, console: Console) -> None:
    from mininet.log import setLogLevel

    from fairlane.fabrics.prompt import Prompt

    _say(console, f"Mininet's prompt; logs in {folder}. Try: h1 ping -c 3 h2    (leave with Ctrl-D)")
    setLogLevel("output")
    Prompt(network.net)


def _check_machine() -> None:
    probes.need_linux()
    if not probes.is_root():
        raise Refusal("Mininet needs root (network namespaces, raw sockets): run it with sudo, or with --fabric virtual.", CANNOT_RUN_HERE)
    if not probes.has_mininet():
        raise Refusal("Mininet is not installed: apt-get install mininet, then make setup; or use --fabric virtual.", CANNOT_RUN_HERE)
    missing = {name: package for name, package in preflight.PROGRAMS.items() if probes.program(name) is None}
    if missing:
        raise Refusal(f"missing programs: {', '.join(missing)}. apt-get install {' '.join(missing.values())}", CANNOT_RUN_HERE)


def _obstacle(read: TutorialTopology) -> str | None:
    """Why BMv2 cannot be this network's switches."""
    from fairlane.tutorials.mininet_network import obstacle

    return obstacle(read)


def _show_pings(read: TutorialTopology, pings: Sequence[Ping], console: Console) -> bool:
    def cell(ping: Ping) -> str:
        if ping.received == 0 or ping.least_s is None:
            return "no"
        lost = "" if ping.received == ping.sent else f" {ping.received}/{ping.sent}"
        return f"{ping.least_s * 1e3:.1f} ms{lost}"

    _matrix(read, {(p.source, p.target): cell(p) for p in pings}, console)
    answered = sum(p.received > 0 for p in pings)
    _say(console, f"pings: {answered} of {len(pings)} pairs answered")
    if pings and not answered:
        _say(
            console,
            "Is that right? It is for a switch that answers only its own protocol (calc), one address (load_balance), or whose entries your"
            " controller writes (p4runtime): stay with --cli, and try the exercise's own scripts there. docs/tutorials-files.md lists them.",
        )
    return answered == len(pings)


def _matrix(read: TutorialTopology, cells: dict[tuple[str, str], str], console: Console) -> None:
    """A row for each source, a column for each target."""
    names = [h.name for h in read.hosts]
    width = max(4, *(len(text) for text in cells.values()), *map(len, names)) if cells else 4
    _say(console, " ".join(f"{text:>{width}}" for text in ["", *names]))
    for source in names:
        row = [source, *(cells.get((source, target), "-") for target in names)]
        _say(console, " ".join(f"{text:>{width}}" for text in row))


def _origins(found: Sequence[SwitchProgram]) -> dict[str, str]:
    return {p.switch.name: p.origin for p in found}


def _write(folder: Path, options: Options, summary: dict[str, Any]) -> None:
    if options.out is not None:
        (folder / "summary.json").write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8", newline="\n")
