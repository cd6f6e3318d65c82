"""`fairlane doctor`: what it looks at, what follows from what it finds, and its exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fairlane import cli, doctor, probes

ROOT = probes.ROOT
PROGRAMS = {
    "ip",
    "ethtool",
    "ping",
    "iperf3",
    "tshark",
    "ns",
    "chromium",
    "fairlane-compile",
    "fairlane-switch",
    "fairlane-link",
    "fairlane-stf",
    "simple_switch_grpc",
    "p4c-bm2-ss",
}


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch):
    """A machine that has everything but what it is told to lack."""

    def build(*lacks: str) -> None:
        monkeypatch.setattr(probes, "program", lambda name: Path("/opt") / name if name in PROGRAMS - set(lacks) else None)
        monkeypatch.setattr(probes, "is_root", lambda: "root" not in lacks)
        monkeypatch.setattr(probes, "has_mininet", lambda: "mininet" not in lacks)
        monkeypatch.setattr(probes, "has_namespaces", lambda: "namespaces" not in lacks)
        monkeypatch.setattr(probes, "has_qdisc", lambda kind: kind not in lacks)
        monkeypatch.setattr(probes, "congestion_controls", lambda: [c for c in ("reno", "cubic") if c not in lacks])
        monkeypatch.setattr(probes, "port_in_use", lambda port: str(port) in lacks)
        monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda name: None if name in lacks else object())
        monkeypatch.setattr(doctor, "_rust", lambda: "rust" not in lacks)

    return build


def test_it_speaks_of_everything_on_this_machine() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "fairlane", "doctor"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "200"},
    )
    assert done.returncode in (0, 3) and done.stderr == ""
    for what in (
        "root",
        "Mininet",
        "namespaces",
        "netem",
        "kernel: fq",
        "kernel: red",
        "Rust",
        "BMv2",
        "p4c",
        "tshark",
        "iperf3",
        "ns-2",
        "Chromium",
        "fairlane.native",
        "fairlane-link",
        "port 9559",
        "port 10559",
    ):
        assert what in done.stdout, what
    assert ("Experiments run in virtual time." in done.stdout) == (done.returncode == 0)


@pytest.mark.parametrize(
    ("lacks", "virtual", "mininet", "bmv2"),
    [
        ([], [], [], []),
        (["tshark", "ns", "chromium", "iperf3", "tbf", "fq", "red", "cubic", "rust", "fairlane-stf", "netem"], [], [], []),
        (["root"], [], ["root", "network namespaces"], ["root", "network namespaces"]),
        (["mininet"], [], ["Mininet"], ["Mininet"]),
        (["namespaces"], [], ["network namespaces"], ["network namespaces"]),
        (["ethtool", "ping", "ip"], [], ["ip", "ethtool", "ping"], ["ip", "ethtool", "ping"]),
        (["fairlane.native"], ["fairlane.native (module)"], [], []),
        (["fairlane-switch"], [], ["fairlane-switch"], []),
        (["fairlane-link"], [], [], []),
        (["fairlane-link", "netem"], [], [], ["fairlane-link"]),
        (["simple_switch_grpc"], [], [], ["BMv2 (simple_switch_grpc)"]),
        (["p4c-bm2-ss"], [], [], []),
        (["fairlane-compile"], [], ["fairlane-compile"], []),
        (["fairlane-compile", "p4c-bm2-ss"], ["fairlane-compile"], ["fairlane-compile"], ["fairlane-compile"]),
        (["9559"], [], ["port 9559 free"], ["port 9559 free"]),
        (["10559"], [], [], ["port 10559 free"]),
    ],
)
def test_what_is_lacking_decides_where_experiments_run(
    machine, lacks: list[str], virtual: list[str], mininet: list[str], bmv2: list[str]
) -> None:
    machine(*lacks)
    findings = doctor.examine()
    assert [doctor.lacking(findings, place) for place in ("virtual", "mininet", "bmv2")] == [virtual, mininet, bmv2]
    for place, expected in (("virtual", virtual), ("mininet", mininet), ("bmv2", bmv2)):
        assert CliRunner().invoke(cli.app, ["doctor", "--for", place]).exit_code == (3 if expected else 0)
    assert CliRunner().invoke(cli.app, ["doctor"]).exit_code == (3 if virtual else 0)


def test_whatever_is_absent_has_a_way_to_get_it(machine) -> None:
    machine(
        "root", "mininet", "namespaces", "netem", "tbf", "fq", "red", "reno", "cubic", "rust", "fairlane.native", "9559", "10559", *PROGRAMS
    )
    findings = doctor.examine()
    assert not [f.what for f in findings if f.present]
    assert {f.what for f in findings if not f.get} == {"kernel: fq", "kernel: red"}, "of these nothing follows"
    assert all(f.without for f in findings)
    by_name = {f.what: f.get for f in findings}
    assert by_name["ns-2"] == "apt-get install ns2" and by_name["tshark"] == "apt-get install tshark"
    assert "p4lang-bmv2" in by_name["BMv2 (simple_switch_grpc)"]
    printed = CliRunner(env={"COLUMNS": "200"}).invoke(cli.app, ["doctor"]).output
    assert printed.count("p4lang-bmv2") == 1, "said once, below the table"
    assert "Experiments cannot run in virtual time; missing: fairlane-compile, fairlane.native (module)." in printed


def test_programs_read_the_same_as_people(machine) -> None:
    machine("root", "simple_switch_grpc")
    done = CliRunner().invoke(cli.app, ["doctor", "--json", "--for", "mininet"])
    assert done.exit_code == 3
    told = json.loads(done.output)
    assert [f["what"] for f in told["findings"]] == [f.what for f in doctor.examine()]
    assert next(f for f in told["findings"] if f["what"] == "kernel: tbf")["present"] is None, "not to be told without root"
    assert told["places"] == {
        "virtual": {"runs": True, "lacking": []},
        "mininet": {"runs": False, "lacking": ["root", "network namespaces"]},
        "bmv2": {"runs": False, "lacking": ["root", "network namespaces", "BMv2 (simple_switch_grpc)"]},
    }
