"""`fairlane run topology.json`, in virtual time and on Mininet, with files of our own in the form of the P4 tutorials."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from fairlane import probes
from fairlane.fabrics import leftovers, virtual_fabric
from fairlane.tutorials import run, topology
from tests.p4runtime import support

ROOT = probes.ROOT
EXERCISE = Path(__file__).parent / "exercise"
HOSTS = ("h1", "h2", "h3")
PAIRS = {(a, b) for a in HOSTS for b in HOSTS if a != b}

needs_compiler = pytest.mark.skipif(probes.program("fairlane-compile") is None, reason="fairlane-compile is not built (make build)")
needs_virtual = pytest.mark.skipif(virtual_fabric.native is None, reason="fairlane.native is not built (make build)")
needs_mininet = pytest.mark.skipif(os.geteuid() != 0 or not probes.has_mininet(), reason="needs root and Mininet")

pytestmark = [needs_compiler, pytest.mark.timeout(300)]


@pytest.fixture
def exercise(tmp_path: Path) -> Path:
    return shutil.copytree(EXERCISE, tmp_path / "exercise")


def fairlane(exercise: Path, *arguments: str, said: str = "", **options: object) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "fairlane", "run", "pair/topology.json", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
        cwd=exercise,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        input=said,
        **options,
    )


def changed(path: Path, change) -> None:
    values = json.loads(path.read_text())
    change(values)
    path.write_text(json.dumps(values, indent=1))


@needs_virtual
def test_in_virtual_time(exercise: Path) -> None:
    out = exercise / "out"
    done = fairlane(exercise, "--fabric", "virtual", "--out", str(out), "--strict")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "s1: forward.p4 compiled; 8 entries of pair/s1-runtime.json\n" in done.stdout
    assert "transfers in virtual time: 6 of 6 arrived\n" in done.stdout
    summary = json.loads((out / "summary.json").read_text())
    assert {(t["source"], t["target"]) for t in summary["transfers"] if t["arrived"]} == PAIRS


@needs_virtual
def test_entries_decide_in_virtual_time(exercise: Path) -> None:
    """Without the route to h3 nothing reaches it, nor comes back to it; neighbours are not tried."""
    changed(exercise / "pair" / "s1-runtime.json", lambda r: r["table_entries"].pop(3))
    changed(exercise / "pair" / "topology.json", lambda t: t["hosts"]["h3"].update(ip="10.0.1.3/24"))
    done = fairlane(exercise, "--fabric", "virtual", "--strict")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "not tried: h1 and h3 are neighbours, which find each other by ARP; virtual time has no ARP\n" in done.stdout
    assert "transfers in virtual time: 2 of 4 arrived, 2 not tried\n" in done.stdout


@needs_virtual
def test_without_root(exercise: Path) -> None:
    """It says what it does instead."""
    code = (
        "import sys; from fairlane import cli, probes; probes.is_root = lambda: False;"
        " sys.argv = ['fairlane', 'run', 'pair/topology.json', *sys.argv[1:]]; cli.main()"
    )
    command = [sys.executable, "-c", code]
    options = {
        "capture_output": True,
        "text": True,
        "check": False,
        "timeout": 240,
        "cwd": exercise,
        "env": os.environ | {"PYTHONPATH": str(ROOT)},
    }
    done = subprocess.run(command, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("no root here, so in virtual time: hosts send each other 1000 bytes over TCP in place of pings")
    done = subprocess.run([*command, "--cli"], **options)
    assert (done.returncode, done.stderr) == (3, "fairlane: --cli needs Mininet, and there is no root here: run it with sudo.\n")


@needs_mininet
def test_on_mininet(exercise: Path) -> None:
    """Every pair is reached over a latency of 5 ms and more; what a switch refuses would be an error; nothing is left behind."""
    before = leftovers.interfaces("f")
    out = exercise / "out"
    port = support.free_port()
    done = fairlane(exercise, "--out", str(out), "--strict", "--grpc-port", str(port), "--pcap", str(out / "pcap"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"P4Runtime on 127.0.0.1:{port}, device id 0; 8 entries of pair/s1-runtime.json\n" in done.stdout
    assert "pings: 6 of 6 pairs answered\n" in done.stdout
    pings = {(p["source"], p["target"]): p for p in json.loads((out / "summary.json").read_text())["pings"]}
    # 2 x 5 ms between the switches, 2 x 1 ms to h2.
    assert pings["h1", "h2"]["least_s"] >= 0.012
    assert pings["h1", "h3"]["least_s"] < pings["h1", "h2"]["least_s"]
    assert "multicast_group_id: 1" in (out / "s1-p4runtime-requests.txt").read_text()
    assert list((out / "pcap").glob("*s1-p1*.pcap"))
    assert [name for name in leftovers.interfaces("f") if name not in before and re.fullmatch(r"f[0-9a-f]{3}-s[12]-p\d", name)] == []


@needs_mininet
def test_the_prompt(exercise: Path) -> None:
    """Hosts are as the file says: `eth0`, addresses, the gateway's Ethernet address. Neighbours find each other by the multicast group."""
    changed(exercise / "pair" / "topology.json", lambda t: t["hosts"]["h3"].update(ip="10.0.1.3/24", commands=[]))
    changed(exercise / "pair" / "s1-runtime.json", lambda r: r["table_entries"][3]["match"].update({"hdr.ipv4.dst": ["10.0.1.3", 32]}))
    said = "h1 ip -c=never -4 -o address show eth0\nh1 ip -c=never neigh show\nh1 ping -c 1 -W 9 10.0.1.3\n"
    done = fairlane(exercise, "--cli", "--grpc-port", str(support.free_port()), said=said)
    assert done.returncode == 0, done.stdout + done.stderr
    # Mininet writes what hosts say to standard error.
    assert "inet 10.0.1.1/24" in done.stderr
    assert "10.0.1.10 dev eth0 lladdr 08:00:00:00:01:00 PERMANENT" in done.stderr
    assert "1 packets transmitted, 1 received" in done.stderr


@needs_mininet
def test_a_switch_that_refuses_an_entry(exercise: Path) -> None:
    """The entry's file, line and key, and no network left."""
    path = exercise / "pair" / "s2-runtime.json"
    changed(path, lambda r: r["table_entries"].append(r["table_entries"][0]))
    done = fairlane(exercise, "--grpc-port", str(support.free_port()))
    assert done.returncode == 2, done.stdout + done.stderr
    line = max(i for i, text in enumerate(path.read_text().splitlines(), 1) if text == "  {")
    assert re.fullmatch(
        rf"fairlane: pair/s2-runtime.json:{line}: table_entries\[2\]: s2 refuses a write: .*ALREADY_EXISTS.*\n", done.stderr
    ), done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--flow", "als"], "--flow: not with a topology of the P4 tutorials, which has no flows"),
        (["--fabric", "virtual", "--cli"], "--cli: virtual time has no prompt: add --fabric mininet."),
        (["--fabric", "virtual", "--target", "bmv2"], "--target bmv2 runs in real time only: add --fabric mininet."),
        (["--fabric", "virtual", "--program", "nowhere.p4"], "--program nowhere.p4: no such file"),
        (["--fabric", "virtual", "--out", "."], "--out .: exists already: give another folder, or remove it"),
    ],
)
def test_refusals(exercise: Path, arguments: list[str], message: str) -> None:
    done = fairlane(exercise, *arguments)
    assert (done.returncode, done.stderr) == (2, f"fairlane: {message}\n")


def test_options_of_topologies_alone() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "fairlane", "run", "als-3", "--cli"], capture_output=True, text=True, check=False, cwd=ROOT, timeout=60
    )
    assert (done.returncode, done.stderr) == (
        2,
        "fairlane: --cli: only with a topology.json of the P4 tutorials; for experiments use 'fairlane shell'\n",
    )


@pytest.mark.parametrize(("received", "said"), [(0, True), (1, False)])
def test_a_run_without_an_answer_says_when_that_is_right(exercise: Path, received: int, said: bool, capsys: pytest.CaptureFixture) -> None:
    read = topology.read(exercise / "pair" / "topology.json")
    pings = [
        SimpleNamespace(source=a, target=b, sent=1, received=n, least_s=0.001) for a, b, n in (("h1", "h2", received), ("h2", "h1", 0))
    ]
    assert not run._show_pings(read, pings, Console(width=400)) and ("(calc)" in capsys.readouterr().out) == said
