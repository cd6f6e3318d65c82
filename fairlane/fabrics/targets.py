"""The switch that runs the P4 program, and the compiler: selected once, and named in a run's first line."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from json import dumps as encoded
from pathlib import Path
from typing import Literal, Protocol

from fairlane import probes
from fairlane.errors import CANNOT_RUN_HERE, ProgramRefused, Refusal
from fairlane.experiments.model import Change, Experiment
from fairlane.fabrics import bmv2_ports, link_plans
from fairlane.fabrics.bmv2_ports import PacketSizes
from fairlane.fabrics.switch_process import BMV2, EMBEDDED, SwitchSettings, Target
from fairlane.schemes import chosen
from fairlane.topologies.model import Topology

Choice = Literal["auto", "embedded", "bmv2"]
CompilerChoice = Literal["auto", "fairlane", "p4c"]

BMV2_PACKAGES = (
    "BMv2 and p4c are the packages p4lang-bmv2 and p4lang-p4c of the p4lang project's own repository, for Ubuntu 20.04 and newer and"
    " Debian 11 (the READMEs of behavioral-model and p4c say how to add it); elsewhere both are built from source."
)


@dataclass(frozen=True)
class Toolchain:
    """compiler: fairlane-compile, or p4c. why: the sentence that explains the choice."""

    target: Target
    switch: Path
    compiler: Path
    why: str

    def switch_command(self, settings: SwitchSettings) -> list[str]:
        return self.target.command(self.switch, settings)

    def compile(self, source: Path, folder: Path, defines: tuple[str, ...] = (), include: tuple[Path, ...] = ()) -> tuple[Path, Path]:
        """P4 source -> BMv2 JSON and P4Info text in `folder`. defines: macros. include: folders in which included files are sought first. Refusal
        with the compiler's own message."""
        if "\0" in str(source):
            raise ProgramRefused(f"{str(source)!r}: no file has such a name")
        json, p4info = folder / f"{source.stem}.json", folder / f"{source.stem}.p4info.txtpb"
        command = [
            str(self.compiler),
            "-o",
            str(json),
            "--p4runtime-files",
            str(p4info),
            *(word for place in (*include, source.parent) for word in ("-I", str(place))),
            *(f"-D{name}" for name in defines),
            str(source),
        ]
        done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
        if done.returncode < 0:
            ended = signal.Signals(-done.returncode).name
            raise Refusal(
                f"{self.compiler.name} was ended by {ended} before it had compiled {source}: is a limit too low (ulimit -a)?",
                CANNOT_RUN_HERE,
            )
        if done.returncode != 0:
            raise ProgramRefused(f"{source} does not compile:\n{(done.stderr or done.stdout).strip()}")
        json.write_text(_without_folder(json.read_text(encoding="utf-8"), source.parent), encoding="utf-8", newline="\n")
        return json, p4info


@dataclass(frozen=True)
class ModuleCompiler:
    """As a `Toolchain` for runs in virtual time, elsewhere than on Linux: the compiler of `fairlane.native`."""

    why: str = "switches and compiler in the process"

    def compile(self, source: Path, folder: Path, defines: tuple[str, ...] = (), include: tuple[Path, ...] = ()) -> tuple[Path, Path]:
        """As `Toolchain.compile`."""
        from fairlane import native

        json_path, p4info_path = folder / f"{source.stem}.json", folder / f"{source.stem}.p4info.txtpb"
        program, p4info, said = native.compile(source, include=[*include, source.parent], define=list(defines))
        if program is None or p4info is None:
            raise ProgramRefused(f"{source} does not compile:\n{said.strip()}")
        json_path.write_text(_without_folder(program, source.parent), encoding="utf-8", newline="\n")
        p4info_path.write_text(p4info, encoding="utf-8", newline="\n")
        return json_path, p4info_path


def _without_folder(program: str, folder: Path) -> str:
    """A compiled program whose source files are named from the program's folder on: the same bytes wherever that folder is."""
    return program.replace(encoded(f"{folder.as_posix()}/")[:-1], '"')


class Compiles(Protocol):
    """As a `Toolchain` for runs in virtual time."""

    @property
    def why(self) -> str: ...

    def compile(self, source: Path, folder: Path, defines: tuple[str, ...] = (), include: tuple[Path, ...] = ()) -> tuple[Path, Path]: ...


def compiled(experiment: Experiment, toolchain: Compiles, folder: Path) -> tuple[Path, Path]:
    """An experiment's program with the schemes that its links have: BMv2 JSON and P4Info text in `folder`. Refusal with the compiler's message."""
    source, schemes = probes.source(experiment.settings.control.program), experiment.schemes
    by_macro = chosen.by_macro(source, schemes)
    defines = (*experiment.defines, *chosen.macros(by_macro))
    if not chosen.has_choice(source):
        return toolchain.compile(source, folder, defines)
    with tempfile.TemporaryDirectory(prefix="fairlane-chosen-") as name:
        chosen.write([scheme for scheme in schemes if scheme not in by_macro], source, Path(name))
        made = toolchain.compile(source, folder, (*defines, chosen.MACRO), (Path(name),))
        # The same bytes wherever the folders are.
        text = _without_folder(made[0].read_text(encoding="utf-8"), Path(name))
        for place in sorted({scheme.folder.parent for scheme in schemes}, reverse=True):  # an inner folder before the one that it is in
            text = _without_folder(text, place)
        made[0].write_text(text, encoding="utf-8", newline="\n")
        return made


def resolve(
    choice: Choice,
    topology: Topology,
    sizes: PacketSizes = PacketSizes(1000, 1000),
    compiler: CompilerChoice = "auto",
    changes: Sequence[tuple[Change, str, int]] = (),
    flows_counted: bool = False,
) -> Toolchain:
    """`auto`: BMv2 if both it and p4c are installed and it can run this network, otherwise the embedded switch; p4c with BMv2
    if it is installed, otherwise our compiler. sizes: of the packets that the network will carry. changes: of its links. flows_counted: the switches
    must count each flow, because its programs keep no records."""
    bmv2 = probes.program(BMV2.program)
    p4c, our_compiler = probes.program("p4c-bm2-ss"), probes.program("fairlane-compile")
    counted = "it counts no bytes of single flows, and flows of kind command have no other record" if flows_counted else None
    obstacle = (
        counted
        or link_plans.bmv2_obstacle(topology, changes)
        or bmv2_ports.obstacle(topology, probes.has_qdisc("netem"), probes.program("fairlane-link") is not None)
    )
    if choice == BMV2.name:
        if bmv2 is None:
            raise Refusal(f"--target bmv2: no simple_switch_grpc in PATH. {BMV2_PACKAGES} Or use --target embedded.", CANNOT_RUN_HERE)
        if obstacle is not None:
            raise Refusal(f"--target bmv2: {obstacle}. Use --target embedded.", CANNOT_RUN_HERE)
        return _bmv2(bmv2, _compiler(compiler, p4c, our_compiler))
    against = obstacle or bmv2_ports.reluctance(topology, sizes)
    if choice == "auto" and bmv2 and p4c and against is None:
        return _bmv2(bmv2, _compiler(compiler, p4c, our_compiler))
    ours = probes.program(EMBEDDED.program)
    if ours is None or our_compiler is None:
        raise Refusal("fairlane-switch and fairlane-compile are not built: run 'make build'.", CANNOT_RUN_HERE)
    absent = " and ".join(n for n, p in (("simple_switch_grpc", bmv2), ("p4c-bm2-ss", p4c)) if p is None)
    reason = "as asked" if choice == EMBEDDED.name else f"no {absent} here" if absent else f"not BMv2, because {against}"
    chosen = our_compiler if compiler == "auto" else _compiler(compiler, p4c, our_compiler)
    by = "" if chosen == our_compiler else f", compiled by {chosen.name}"
    return Toolchain(EMBEDDED, ours, chosen, f"target embedded: fairlane-switch ({reason}){by}")


def resolve_plain(choice: Choice, compiler: CompilerChoice, obstacle: Callable[[], str | None]) -> Toolchain:
    """For a network without rates of its own, which every switch runs: the embedded one, unless BMv2 is asked for. obstacle: why BMv2 cannot run it."""
    if choice != BMV2.name:
        switch = probes.program(EMBEDDED.program)
        if switch is None:
            raise Refusal("fairlane-switch is not built: run 'make build'.", CANNOT_RUN_HERE)
        chosen = _one_compiler(compiler)
        return Toolchain(EMBEDDED, switch, chosen, f"target embedded: fairlane-switch, compiled by {chosen.name}")
    switch = probes.program(BMV2.program)
    if switch is None:
        raise Refusal("--target bmv2: no simple_switch_grpc in PATH. Install BMv2, or use --target embedded.", CANNOT_RUN_HERE)
    chosen = _one_compiler("p4c" if compiler == "auto" and probes.program("p4c-bm2-ss") else compiler)
    reason = obstacle()
    if reason is not None:
        raise Refusal(f"--target bmv2: {reason}. Use --target embedded.", CANNOT_RUN_HERE)
    return _bmv2(switch, chosen)


def _bmv2(switch: Path, chosen: Path) -> Toolchain:
    return Toolchain(BMV2, switch, chosen, f"target bmv2: {switch}, compiled by {chosen.name}")


def _compiler(choice: CompilerChoice, p4c: Path | None, ours: Path | None) -> Path:
    chosen = {"auto": p4c or ours, "p4c": p4c, "fairlane": ours}[choice]
    if chosen is None:
        lacking = {
            "auto": "no P4 compiler: neither p4c-bm2-ss in PATH nor fairlane-compile; 'make build' makes the latter",
            "p4c": f"--compiler p4c: no p4c-bm2-ss in PATH. {BMV2_PACKAGES} Or leave the option out",
            "fairlane": "--compiler fairlane: fairlane-compile is not built: run 'make build'",
        }[choice]
        raise Refusal(f"{lacking}.", CANNOT_RUN_HERE)
    return chosen


def _one_compiler(choice: CompilerChoice) -> Path:
    """Ours where it is built, unless another is asked for."""
    ours, p4c = probes.program("fairlane-compile"), probes.program("p4c-bm2-ss")
    return _compiler("fairlane" if choice == "auto" and ours else choice, p4c, ours)


def compiler(choice: CompilerChoice = "auto") -> Toolchain | ModuleCompiler:
    """What runs in virtual time needs: a compiler, ours where it is built; the switch is in the process."""
    if sys.platform != "linux" and choice != "p4c":
        return ModuleCompiler()
    chosen = _one_compiler(choice)
    return Toolchain(EMBEDDED, chosen, chosen, f"switches in the process, compiled by {chosen.name}")
