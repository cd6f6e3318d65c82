"""The command line: bad input is refused with one sentence before anything starts."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from fairlane import errors, probes
from fairlane.errors import Refusal
from fairlane.experiments import loader
from fairlane.fabrics import preflight, targets
from fairlane.fabrics.bmv2_ports import PacketSizes
from fairlane.fabrics.switch_process import BMV2, EMBEDDED
from fairlane.inputs.located_toml import tomllib
from fairlane.results import result_folder

ROOT = probes.ROOT


def fairlane(*arguments: str, **options: object) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "fairlane", *arguments], capture_output=True, text=True, check=False, timeout=60, cwd=ROOT, **options
    )


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["run", "als-3", "--duration", "-1"], 2, "fairlane: --duration -1: give a positive number of seconds, at most 1e+07\n"),
        (["run", "als-3", "--duration", "nan"], 2, "fairlane: --duration nan: give a positive number of seconds, at most 1e+07\n"),
        (["run", "als3"], 2, "fairlane: unknown experiment 'als3'; did you mean 'als-3'?\n"),
        (["run", "none.toml"], 2, "fairlane: none.toml: no such file\n"),
        (["run", "als-3", "--seed", "-1"], 2, "fairlane: seed: must be in 0 to 2^32 - 1, got -1\n"),
    ],
)
def test_bad_input_is_refused(arguments: list[str], code: int, message: str) -> None:
    done = fairlane(*arguments)
    assert (done.returncode, done.stderr) == (code, message)
    assert done.stdout == ""


@pytest.mark.parametrize("arguments", [["run", "als-3", "--target", "hardware"], ["run"], ["fly"], ["run", "als-3", "--grpc-port", "0"]])
def test_unknown_words_are_refused(arguments: list[str]) -> None:
    done = fairlane(*arguments)
    assert done.returncode == 2 and "Traceback" not in done.stderr and done.stderr


def test_version_is_that_of_the_package() -> None:
    done = fairlane("--version")
    released = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert (done.returncode, done.stdout, done.stderr) == (0, f"fairlane {released}\n", "")


def test_a_topology_with_a_loop_is_refused(tmp_path: Path) -> None:
    (tmp_path / "loop.toml").write_text("""\
title = "loop"
bottleneck = "s1->s2"
paper = { reference = "none", section = "", figure = "" }
flows = [{ name = "f", kind = "als" }]
[topology]
kind = "graph"
nodes = [{ name = "s1", kind = "switch" }]
[[topology.links]]
ends = ["s1:1", "s1:1"]
rate_bps = 1000000
""")
    done = fairlane("run", str(tmp_path / "loop.toml"))
    assert done.returncode == 2
    assert done.stderr == f"fairlane: {tmp_path}/loop.toml:8: topology.links[0]: the link loops back to the same port: s1, port 1\n"


def test_without_root() -> None:
    script = (
        "import os, sys; os.geteuid = lambda: 1000; sys.argv = ['fairlane', 'run', 'als-3', '--fabric', 'mininet']\n"
        "from fairlane.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60, cwd=ROOT)
    assert (done.returncode, done.stderr) == (
        3,
        "fairlane: Mininet needs root (network namespaces, raw sockets): run it with sudo, or as root.\n",
    )


def test_a_taken_port_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(Refusal) as refused:
            preflight.check_ports([port])
    assert str(refused.value) == (
        f"port {port} is taken, and a switch serves P4Runtime on it. 'ss -ltnp sport = :{port}' shows the process;"
        " 'make stop' ends a run of Fairlane; --grpc-port picks other ports."
    )
    preflight.check_ports([port])


def test_results_are_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(Refusal, match="exists already, and results are never overwritten"):
        result_folder.ResultFolder(tmp_path / "out")


def test_results_appear_complete_or_not_at_all(tmp_path: Path) -> None:
    folder = result_folder.ResultFolder(tmp_path / "deep" / "out")
    (folder.work / "summary.json").write_text("{}")
    assert not folder.final.exists()
    assert folder.publish() == tmp_path / "deep" / "out"
    assert [p.name for p in (tmp_path / "deep").iterdir()] == ["out"]
    other = result_folder.ResultFolder(tmp_path / "deep" / "other")
    other.discard()
    assert [p.name for p in (tmp_path / "deep").iterdir()] == ["out"]


def test_numbers_that_are_none_become_null(tmp_path: Path) -> None:
    result_folder.write_json(tmp_path / "x.json", {"a": [float("nan"), float("inf"), 1.5], "b": {"c": -float("inf")}})
    assert (tmp_path / "x.json").read_text().split() == [
        "{",
        '"a":',
        "[",
        "null,",
        "null,",
        "1.5",
        "],",
        '"b":',
        "{",
        '"c":',
        "null",
        "}",
        "}",
    ]


def test_auto_means_bmv2_only_where_it_can_be_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def machine(*names: str, netem: bool = True) -> None:
        monkeypatch.setattr(probes, "program", lambda name: Path("/opt") / name if name in names else None)
        monkeypatch.setattr(probes, "has_qdisc", lambda kind: netem)

    topology = loader.load(loader.find("als-3")).topology
    ours, theirs = ("fairlane-switch", "fairlane-compile", "fairlane-link"), ("simple_switch_grpc", "p4c-bm2-ss")
    machine(*ours)
    assert targets.resolve("auto", topology).why == "target embedded: fairlane-switch (no simple_switch_grpc and p4c-bm2-ss here)"
    machine(*ours, "simple_switch_grpc")
    assert targets.resolve("auto", topology).target is EMBEDDED
    assert targets.resolve("bmv2", topology).compiler.name == "fairlane-compile"
    machine(*ours, *theirs)
    assert (targets.resolve("auto", topology).target, targets.resolve("embedded", topology).target) == (BMV2, EMBEDDED)
    machine(*ours, *theirs, netem=False)
    assert targets.resolve("auto", topology).target is BMV2, "the delay is in a delay line"
    machine("fairlane-switch", "fairlane-compile", *theirs, netem=False)
    assert targets.resolve("auto", topology).why == (
        "target embedded: fairlane-switch (not BMv2, because link s1 - s2 has a delay of 5 ms, but BMv2 has no delays, this kernel has no netem, and"
        " fairlane-link is not built ('make build'))"
    )
    with pytest.raises(Refusal, match="^--target bmv2: link s1 - s2 has a delay of 5 ms"):
        targets.resolve("bmv2", topology)
    machine()
    for choice in ("auto", "embedded", "bmv2"):
        with pytest.raises(Refusal):
            targets.resolve(choice, topology)


def test_auto_leaves_to_the_embedded_switch_what_is_too_fast_for_bmv2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "program", lambda name: Path("/opt") / name)
    monkeypatch.setattr(probes, "has_qdisc", lambda kind: True)
    topology = loader.load(loader.find("als-3")).topology
    small = PacketSizes(100, 100)  # 10 Mb/s in these: 10,965 packets/s
    assert "not BMv2, because s1->s2 at 10 Mb/s carries 10965 packets/s" in targets.resolve("auto", topology, small).why
    assert targets.resolve("bmv2", topology, small).target is BMV2, "who asks for it gets it, and a warning"


def test_the_compiler_can_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    here = {"fairlane-switch", "fairlane-compile", "fairlane-link", "simple_switch_grpc", "p4c-bm2-ss"}
    monkeypatch.setattr(probes, "program", lambda name: Path("/opt") / name if name in here else None)
    monkeypatch.setattr(probes, "has_qdisc", lambda kind: True)
    topology = loader.load(loader.find("als-3")).topology
    chosen = {
        (target, choice): targets.resolve(target, topology, compiler=choice).compiler.name
        for target in ("embedded", "bmv2")
        for choice in ("auto", "fairlane", "p4c")
    }
    assert chosen == {
        ("embedded", "auto"): "fairlane-compile",
        ("embedded", "fairlane"): "fairlane-compile",
        ("embedded", "p4c"): "p4c-bm2-ss",
        ("bmv2", "auto"): "p4c-bm2-ss",
        ("bmv2", "fairlane"): "fairlane-compile",
        ("bmv2", "p4c"): "p4c-bm2-ss",
    }
    # In virtual time ours, too, unless only p4c is there.
    assert [targets.compiler(choice).compiler.name for choice in ("auto", "fairlane", "p4c")] == [
        "fairlane-compile",
        "fairlane-compile",
        "p4c-bm2-ss",
    ]
    here.remove("fairlane-compile")
    assert targets.compiler().compiler.name == "p4c-bm2-ss"
    here.add("fairlane-compile")
    here.remove("p4c-bm2-ss")
    with pytest.raises(Refusal, match="^--compiler p4c: no p4c-bm2-ss in PATH. BMv2 and p4c are the packages p4lang-bmv2"):
        targets.resolve("bmv2", topology, compiler="p4c")


def test_list_describes_experiments_topologies_and_every_flow_kind() -> None:
    from fairlane import ad_hoc_networks
    from fairlane.experiments import kinds

    done = fairlane("list")
    assert done.returncode == 0, done.stderr
    described = {line.split()[0]: line.strip() for line in done.stdout.splitlines() if line.startswith("  ")}
    assert list(described) == [*loader.names(), *ad_hoc_networks.TOPOLOGIES, *kinds.names()]
    assert all(len(line.split()) > 3 for line in described.values())
    assert described["tfrc"].endswith(kinds.summary("tfrc"))


@pytest.mark.parametrize(
    ("words", "way_out"),
    [
        ("    _start_new_thread(self._bootstrap, ())\nRuntimeError: can't start new thread", "ulimit -u"),
        ("OSError: [Errno 28] No space left on device: 's1.csv'", "disk is full"),
        ("OSError: [Errno 24] Too many open files", "ulimit -n"),
        ("MemoryError", "memory is used up"),
        ("ValueError: 3", ""),
    ],
)
def test_what_a_child_process_ran_out_of(words: str, way_out: str) -> None:
    said = errors.used_up_in(words)
    assert (way_out in said) if way_out else said == ""
