"""`fairlane doctor`: what this machine has and lacks, what follows, and which package mends it."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from fairlane import probes


@dataclass(frozen=True)
class Finding:
    """present: None when it cannot be told here (needs root)."""

    what: str
    present: bool | None
    follows: str


def examine() -> list[Finding]:
    """Ask the machine; takes about a second."""
    root = probes.is_root()
    findings = [Finding("root", root, "" if root else "no Mininet runs: use sudo. Compiling and packet tests work.")]
    findings.append(_finding("Mininet", probes.has_mininet(), "no runs: apt-get install mininet, then make setup"))
    for name, package, without in (
        ("iperf3", "iperf3", "no TCP flows"),
        ("ethtool", "ethtool", "no runs: offloads cannot be turned off"),
        ("ping", "iputils-ping", "no runs: round trips cannot be checked"),
        ("tshark", "tshark", "the tests that decode our RTCP with it are skipped"),
        ("ns", "ns2", "comparisons with ns-2 are skipped"),
    ):
        findings.append(_finding("ns-2" if name == "ns" else name, probes.program(name) is not None, f"{without}: apt-get install {package}"))
    for kind, without in (
        ("netem", "delays are in the switches' ports; a host link's both directions in the port towards the host"),
        ("tbf", "hosts' sending rate is not held"),
        ("fq", "nothing: the kernel's TCP paces by itself, ALS senders by their own clock"),
        ("red", "nothing: RED runs in P4"),
    ):
        findings.append(Finding(f"kernel: {kind}", probes.has_qdisc(kind) if root else None, without))
    for control in ("reno", "cubic"):
        findings.append(_finding(f"kernel: TCP {control}", control in probes.congestion_controls(), f"modprobe tcp_{control} may add it"))
    findings.append(_finding("Rust >= 1.88", _rust(), "the switch cannot be built: apt-get install rustc-web cargo-web"))
    for name in ("fairlane-switch", "fairlane-compile", "fairlane-stf"):
        findings.append(_finding(name, probes.program(name) is not None, "make build"))
    bmv2, p4c = probes.program("simple_switch_grpc"), probes.program("p4c-bm2-ss")
    findings.append(_finding("BMv2 (simple_switch_grpc)", bmv2 is not None, "--target auto means the embedded switch"))
    findings.append(_finding("p4c (p4c-bm2-ss)", p4c is not None, "fairlane-compile compiles"))
    taken = probes.port_in_use(9559)
    findings.append(Finding("port 9559 free", not taken, "runs need it, or --grpc-port: 'ss -ltnp sport = :9559' shows who has it"))
    return findings


def _finding(what: str, present: bool, without: str) -> Finding:
    return Finding(what, present, without)


def _rust() -> bool:
    done = subprocess.run([str(probes.ROOT / "scripts" / "cargo"), "--where"], capture_output=True, check=False)
    return done.returncode == 0


def show(console: Console, findings: list[Finding]) -> None:
    table = Table("what", "here", "without it")
    for f in findings:
        here = "[yellow]needs root to tell[/]" if f.present is None else "[green]yes[/]" if f.present else "[red]no[/]"
        table.add_row(f.what, here, "" if f.present else f.follows)
    console.print(table)
    lacking = [f for f in findings if f.present is False]
    able = not any(f.what in ("root", "Mininet", "ethtool", "ping", "fairlane-switch", "fairlane-compile") for f in lacking)
    console.print("Experiments run here." if able else "Experiments do not run here; what compiles and tests needs no root.")
