"""Which switch runs the P4 program, and which compiler made it: found here, chosen once, said in a run's first line."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fairlane import probes
from fairlane.errors import CANNOT_RUN_HERE, Refusal
from topologies import bmv2_ports
from topologies.model import Topology
from topologies.switch_process import SwitchSettings, Target, bmv2_command, embedded_command

Choice = Literal["auto", "embedded", "bmv2"]


@dataclass(frozen=True)
class Toolchain:
    """compiler: fairlane-compile, or p4c. why: the sentence that says what was chosen."""

    target: Target
    switch: Path
    compiler: Path
    why: str

    def switch_command(self, settings: SwitchSettings) -> list[str]:
        command: Callable = embedded_command if self.target == "embedded" else bmv2_command
        return command(self.switch, settings)

    def compile(self, source: Path, folder: Path) -> tuple[Path, Path]:
        """P4 source -> BMv2 JSON and P4Info text in `folder`. Refusal with the compiler's own message."""
        json, p4info = folder / f"{source.stem}.json", folder / f"{source.stem}.p4info.txtpb"
        command = [str(self.compiler), "-o", str(json), "--p4runtime-files", str(p4info), "-I", str(source.parent), str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Refusal(f"{source} does not compile:\n{(done.stderr or done.stdout).strip()}")
        return json, p4info


def resolve(choice: Choice, topology: Topology) -> Toolchain:
    """`auto`: BMv2 where both it and p4c are installed and it can be this network, otherwise the embedded switch."""
    bmv2, p4c = probes.program("simple_switch_grpc"), probes.program("p4c-bm2-ss")
    ours, our_compiler = probes.program("fairlane-switch"), probes.program("fairlane-compile")
    obstacle = bmv2_ports.obstacle(topology.links, probes.has_qdisc("netem"), probes.program("simple_switch_CLI"))
    if choice == "bmv2" or (choice == "auto" and bmv2 and p4c and obstacle is None):
        if bmv2 is None:
            raise Refusal("--target bmv2: no simple_switch_grpc in PATH. Install BMv2, or use --target embedded.", CANNOT_RUN_HERE)
        if obstacle is not None:
            raise Refusal(f"--target bmv2: {obstacle}. Use --target embedded.", CANNOT_RUN_HERE)
        compiler = p4c or our_compiler
        if compiler is None:
            raise Refusal("no P4 compiler: neither p4c-bm2-ss in PATH nor fairlane-compile; 'make build' makes the latter.",
                          CANNOT_RUN_HERE)
        return Toolchain("bmv2", bmv2, compiler, f"target bmv2: {bmv2}, compiled by {compiler.name}")
    if ours is None or our_compiler is None:
        raise Refusal("fairlane-switch and fairlane-compile are not built: run 'make build'.", CANNOT_RUN_HERE)
    absent = " and ".join(n for n, p in (("simple_switch_grpc", bmv2), ("p4c-bm2-ss", p4c)) if p is None)
    reason = "as asked" if choice == "embedded" else f"no {absent} here" if absent else f"not BMv2, for {obstacle}"
    return Toolchain("embedded", ours, our_compiler, f"target embedded: fairlane-switch ({reason})")


def compiler() -> Toolchain:
    """What runs in virtual time needs: a compiler; the switch is in the process."""
    ours, p4c = probes.program("fairlane-compile"), probes.program("p4c-bm2-ss")
    chosen = ours or p4c
    if chosen is None:
        raise Refusal("no P4 compiler: neither fairlane-compile, which 'make build' makes, nor p4c-bm2-ss in PATH.", CANNOT_RUN_HERE)
    return Toolchain("embedded", chosen, chosen, f"switches in the process, compiled by {chosen.name}")
