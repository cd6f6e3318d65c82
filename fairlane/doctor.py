"""`fairlane doctor`: installed and missing requirements, their consequences, how to install them, and the fabrics that run on this machine."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from rich.console import Console
from rich.table import Table

from fairlane import probes
from fairlane.fabrics.places import Place
from fairlane.fabrics.switch_process import FIRST_GRPC_PORT, thrift_port
from fairlane.fabrics.targets import BMV2_PACKAGES

_MININET = (Place.MININET, Place.BMV2)


@dataclass(frozen=True)
class Finding:
    """present: None if the check needs root. needed: the places where experiments cannot run without it. without: the
    consequence if it is missing. get: how to install it; empty if there is no general way."""

    what: str
    present: bool | None
    without: str
    get: str = ""
    needed: tuple[Place, ...] = ()


def examine() -> list[Finding]:
    """Checks the machine; takes about a second."""
    if sys.platform != "linux":
        here = [found for found in _builds() if found.what in ("fairlane.native (module)", "fairlane-stf")]
        return [Finding("Linux", False, "only virtual time and packet tests: no Mininet, no switch on interfaces", "", _MININET), *here]
    return [*_machine(), *_programs(), *_kernel(), *_builds(), *_bmv2(), *_ports()]


def lacking(findings: Sequence[Finding], place: Place) -> list[str]:
    """The missing requirements of experiments in this place."""
    return [f.what for f in findings if place in f.needed and not f.present]


def _machine() -> list[Finding]:
    root = probes.is_root()
    return [
        Finding("root", root, "no Mininet runs; virtual time, compiling and packet tests still work", "sudo", _MININET),
        Finding("Mininet", probes.has_mininet(), "no Mininet runs", "apt-get install mininet, then make setup", _MININET),
        Finding(
            "network namespaces",
            probes.has_namespaces() if root else None,
            "no Mininet runs",
            "a kernel with CONFIG_NET_NS, and a container that may create namespaces",
            _MININET,
        ),
    ]


def _programs() -> list[Finding]:
    return [
        _program("ip", "iproute2", "no Mininet runs", _MININET),
        _program("ethtool", "ethtool", "no Mininet runs: offloads cannot be turned off", _MININET),
        _program("ping", "iputils-ping", "no Mininet runs: round trips cannot be checked", _MININET),
        _program("iperf3", "iperf3", "no TCP flows in Mininet"),
        _program("tshark", "tshark", "the tests that decode our RTCP with it are skipped"),
        _program("ns", "ns2", "comparisons with ns-2 are skipped", name="ns-2"),
        Finding(
            "Chromium",
            any(probes.program(n) for n in ("chromium", "chromium-browser", "google-chrome")),
            "nothing: any browser shows the reports' pages; Chromium can also be started from the command line",
            "apt-get install chromium",
        ),
    ]


def _kernel() -> list[Finding]:
    root = probes.is_root()
    findings = [
        Finding(f"kernel: {kind}", probes.has_qdisc(kind) if root else None, without, get)
        for kind, without, get in (
            (
                "netem",
                "delays are in the embedded switch's ports, and in fairlane-link beside BMv2",
                "a kernel with CONFIG_NET_SCH_NETEM; modprobe sch_netem",
            ),
            ("tbf", "hosts' sending rate is not limited", "a kernel with CONFIG_NET_SCH_TBF; modprobe sch_tbf"),
            ("fq", "nothing: the kernel's TCP paces by itself, ALS senders by their own clock", ""),
            ("red", "nothing: RED runs in P4", ""),
        )
    ]
    controls = probes.congestion_controls()
    findings += [
        Finding(f"kernel: TCP {control}", control in controls, f"no {control} flows in Mininet", f"modprobe tcp_{control}")
        for control in ("reno", "cubic")
    ]
    return findings


def _builds() -> list[Finding]:
    build = "make build" if probes.in_checkout() else "pip install --force-reinstall fairlane"
    findings = []
    if probes.in_checkout():
        findings.append(
            Finding(
                "Rust >= 1.88", _rust(), "no part of this project can be built", "make setup as root (Debian, Ubuntu), or https://rustup.rs"
            )
        )
    return [
        *findings,
        Finding(
            "fairlane-compile",
            _has("fairlane-compile"),
            "P4 programs compile only with p4c, where it is installed",
            build,
            # In virtual time and for BMv2, p4c also works.
            (Place.MININET,) if _has("p4c-bm2-ss") else tuple(Place),
        ),
        Finding(
            "fairlane.native (module)",
            importlib.util.find_spec("fairlane.native") is not None,
            "no runs in virtual time",
            build,
            (Place.VIRTUAL,),
        ),
        Finding("fairlane-switch", _has("fairlane-switch"), "no embedded switch", build, (Place.MININET,)),
        Finding(
            "fairlane-link",
            _has("fairlane-link"),
            "BMv2 has no delays on a kernel without netem",
            build,
            () if probes.has_qdisc("netem") else (Place.BMV2,),
        ),
        Finding("fairlane-stf", _has("fairlane-stf"), "no packet tests", build),
    ]


def _bmv2() -> list[Finding]:
    return [
        Finding(
            "BMv2 (simple_switch_grpc)", _has("simple_switch_grpc"), "--target auto means the embedded switch", BMV2_PACKAGES, (Place.BMV2,)
        ),
        Finding(
            "p4c (p4c-bm2-ss)",
            _has("p4c-bm2-ss"),
            "fairlane-compile compiles, for BMv2 too; --target auto means the embedded switch",
            BMV2_PACKAGES,
        ),
    ]


def _ports() -> list[Finding]:
    findings = []
    for port, protocol, needed in (
        (FIRST_GRPC_PORT, "P4Runtime", _MININET),
        (thrift_port(FIRST_GRPC_PORT), "BMv2's Thrift", (Place.BMV2,)),
    ):
        findings.append(
            Finding(
                f"port {port} free",
                not probes.port_in_use(port),
                f"the first switch serves {protocol} on it",
                f"--grpc-port selects others; 'ss -ltnp sport = :{port}' shows the program that uses it",
                needed,
            )
        )
    return findings


def _program(program: str, package: str, without: str, needed: tuple[Place, ...] = (), name: str | None = None) -> Finding:
    return Finding(name or program, _has(program), without, f"apt-get install {package}", needed)


def _has(program: str) -> bool:
    return probes.program(program) is not None


def _rust() -> bool:
    done = subprocess.run([str(probes.ROOT / "scripts" / "cargo"), "--where"], capture_output=True, check=False)
    return done.returncode == 0


def as_json(findings: Sequence[Finding]) -> str:
    """findings: one for each check; places: whether experiments run there, and what is missing."""
    found: list[dict[str, Any]] = [
        {"what": f.what, "present": f.present, "without": f.without, "get": f.get, "needed": [p.value for p in f.needed]} for f in findings
    ]
    places = {p.value: {"runs": not lacking(findings, p), "lacking": lacking(findings, p)} for p in Place}
    return json.dumps({"version": version("fairlane"), "findings": found, "places": places}, indent=2)


def show(console: Console, findings: Sequence[Finding]) -> None:
    table = Table("what", "here", "without it", "how to get it")
    for f in findings:
        here = "[yellow]needs root to check[/]" if f.present is None else "[green]yes[/]" if f.present else "[red]no[/]"
        table.add_row(f.what, here, *(("", "") if f.present else (f.without, "see below" if f.get == BMV2_PACKAGES else f.get)))
    console.print(table)
    if any(f.get == BMV2_PACKAGES and not f.present for f in findings):
        console.print(BMV2_PACKAGES, highlight=False, soft_wrap=True)
    for place in Place:
        missing = lacking(findings, place)
        console.print(
            f"Experiments run {place.words}." if not missing else f"Experiments cannot run {place.words}; missing: {', '.join(missing)}.",
            highlight=False,
            markup=False,
            soft_wrap=True,
        )
