"""Runs of many flows: more than a process may hold files open, and an evaluation in proportion to them."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

from fairlane import execute, probes
from fairlane.errors import CANNOT_RUN_HERE
from fairlane.experiments import loader
from fairlane.fabrics import descriptors, virtual_fabric
from fairlane.fabrics.places import VIRTUAL
from fairlane.fabrics.record_files import RecordFiles

needs_network = pytest.mark.skipif(virtual_fabric.native is None, reason="the module fairlane.native is not built: make build")
FLOWS = 600


def experiment(switches: int = 2, flows: int = FLOWS) -> str:
    """A chain of switches, hosts at both ends, a flow for each pair."""
    side = round(flows**0.5) + 1
    nodes = [f'{{ name = "s{i}", kind = "switch" }}' for i in range(1, switches + 1)]
    nodes += [f'{{ name = "{end}{i}", kind = "host" }}' for end in "ab" for i in range(side)]
    links = [f'{{ ends = ["s{i}", "s{i + 1}"], rate_bps = 100e6, delay_s = 0.001 }}' for i in range(1, switches)]
    links += [f'{{ ends = ["{end}{i}", "s{n}"], rate_bps = 100e6 }}' for end, n in (("a", 1), ("b", switches)) for i in range(side)]
    hosts = ", ".join(f'["a{i // side}", "b{i % side}"]' for i in range(flows))
    return (
        f'title = "many"\nbottleneck = "s1->s2"\nduration_s = 0.2\n[topology]\nkind = "graph"\nnodes = [{", ".join(nodes)}]\n'
        f'links = [{", ".join(links)}]\n[[flows]]\nname = "f"\nkind = "tcp-cubic"\ncount = {flows}\nstart_jitter_s = 0.1\nhosts = [{hosts}]\n'
    )


def run(file: Path, soft: int, hard: int, *more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fairlane", "run", str(file), "--out", str(file.with_suffix(".out")), *more],
        capture_output=True,
        text=True,
        check=False,
        cwd=file.parent,
        env={**os.environ, "PYTHONPATH": str(probes.ROOT)},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard)),
    )


@needs_network
def test_an_evaluation_takes_time_in_proportion_to_flows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And tables of links have the same bytes, however many are written at once."""
    seconds = {}
    for flows in (500, 2000):
        file, out = tmp_path / f"{flows}.toml", tmp_path / f"{flows}.out"
        file.write_text(experiment(flows=flows))
        monkeypatch.setattr(execute, "_BATCH_ROWS", 1)
        execute.execute(VIRTUAL.ready(loader.load(file)), out, Console(quiet=True))
        monkeypatch.undo()
        before = {path.name: path.read_bytes() for path in out.glob("*.csv")}
        began = time.process_time()
        execute.finish(out, Console(quiet=True))
        seconds[flows] = time.process_time() - began
        assert {path.name: path.read_bytes() for path in out.glob("*.csv")} == before and len(before) == 3
    assert seconds[2000] < 5 * seconds[500]


@needs_network
def test_flows_need_no_file_each(tmp_path: Path) -> None:
    """1,200 record files with 256 open at most; each has its records."""
    file = tmp_path / "many.toml"
    file.write_text(experiment())
    done = run(file, 256, 256)
    assert done.returncode == 0, done.stderr
    raw = file.with_suffix(".out") / "raw"
    for i in range(FLOWS):
        for role in ("sender", "receiver"):
            lines = (raw / f"f-{i}.{role}.jsonl").read_text().splitlines()
            kinds = [json.loads(line)["kind"] for line in lines]
            assert kinds[0] == "start" if role == "sender" else set(kinds) == {"data"}
    assert len(json.loads((file.with_suffix(".out") / "summary.json").read_text())["flows"]) == FLOWS


@needs_network
def test_the_soft_limit_is_raised_and_a_hard_one_refused_before_the_start(tmp_path: Path) -> None:
    """Two captures of each link and a table of each switch stay open."""
    file = tmp_path / "many.toml"
    file.write_text(experiment(switches=60, flows=100))
    refused = run(file, 100, 150, "--pcap", str(tmp_path / "pcap"))
    assert refused.returncode == CANNOT_RUN_HERE, refused.stderr
    assert "60 switches' counters, 162 captures of links" in refused.stderr and "this process may open 150" in refused.stderr
    assert not file.with_suffix(".out").exists() and not (tmp_path / "pcap").exists()
    done = run(file, 100, 2000, "--pcap", str(tmp_path / "pcap"))
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "pcap").iterdir())) == 162


def test_a_limit_that_is_high_enough_stays() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    descriptors.provide(1, "one file")
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == before


def test_records_that_wait_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlane.fabrics.record_files._OF_ALL", 1000)
    files = RecordFiles()
    written = [files.new(tmp_path / str(i)) for i in range(30)]
    (tmp_path / "3").write_text("of an earlier run")
    for n in range(40):
        for file in written:
            file.write(f"{n:9}\n")
            assert files._waiting <= 1000
    files.close()
    assert all((tmp_path / str(i)).read_text() == "".join(f"{n:9}\n" for n in range(40)) for i in range(30))
    empty = RecordFiles()
    empty.new(tmp_path / "empty")
    empty.close()
    assert (tmp_path / "empty").read_text() == ""
