"""What a run does once, and what grows with its flows: counted, since times depend on the machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fairlane.cli import app
from fairlane.experiments import loader
from fairlane.experiments.kinds import TcpSettings
from fairlane.experiments.model import Flow
from fairlane.fabrics import raw, targets, virtual_fabric
from fairlane.fabrics.progress import Silent
from fairlane.inputs import located_toml
from fairlane.results import series, shares
from fairlane.results.series import FlowRecord, Series, Steps
from fairlane.results.shares import ShareTable
from fairlane.topologies.model import Link, Node, Topology

needs_network = pytest.mark.skipif(virtual_fabric.native is None, reason="the module fairlane.native is not built: make build")

TEXT = """
title = "Few flows over leaves and spines"
bottleneck = "leaf1->spine1"
duration_s = 0.3
window_from = 0.0
[topology]
kind = "leaf-spine"
leaves = 3
spines = 2
hosts_per_leaf = 2
trunk = { rate_bps = 100_000_000 }
access = { rate_bps = 100_000_000 }
[[flows]]
name = "f"
kind = "tcp-sack"
count = 3
"""


class Counter:
    """Calls of a function."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
        self.calls: list[tuple[Any, ...]] = []
        real = getattr(owner, name)

        def counted(*arguments: Any, **more: Any) -> Any:
            self.calls.append(arguments)
            return real(*arguments, **more)

        monkeypatch.setattr(owner, name, counted)


@needs_network
@pytest.mark.parametrize("more", ["", '[[checks]]\nname = "c"\nmetric = "bottleneck_utilisation"\nlow = 0.1\n'])
def test_a_run_parses_its_file_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str) -> None:
    path = tmp_path / "net.toml"
    path.write_text(TEXT + more)
    located_toml.parse.cache_clear()
    parsed = Counter(monkeypatch, located_toml.tomllib, "loads")
    made = Counter(monkeypatch, loader, "from_document")
    done = CliRunner().invoke(app, ["run", str(path), "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert len(parsed.calls) == 1
    # Whoever checks what a file expects makes the experiment, too.
    assert len(made.calls) == (2 if more else 1)


@needs_network
def test_records_are_looked_up_once_for_all_switches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = loader.from_document(located_toml.parse(TEXT, "net.toml"), "net")
    outcome = virtual_fabric.run(experiment, virtual_fabric.Options(targets.compiler()), tmp_path, Silent())
    listed = Counter(monkeypatch, raw.os, "listdir")
    globbed = Counter(monkeypatch, Path, "glob")
    assert len(series.load(tmp_path, experiment, outcome.timing).links) == 18
    assert (len(listed.calls), len(globbed.calls)) == (1, 0)


def record(name: str, sender: str, receiver: str, active: tuple[float, float]) -> FlowRecord:
    nothing = Steps.of([], [])
    return FlowRecord(Flow(name, "tcp-reno", sender, receiver, 0.0, TcpSettings()), nothing, nothing, nothing, [], [], active)


def pairs(count: int) -> Series:
    """So many pairs of hosts on switches of their own, in a row of fast links, each with four flows that come and go one after the other."""
    nodes = [Node(f"s{i}", "switch") for i in range(count)] + [Node(f"{end}{i}", "host") for end in "ab" for i in range(count)]
    links = [Link((f"s{i}", f"s{i + 1}"), rate_bps=1e9) for i in range(count - 1)]
    links += [Link((f"{end}{i}", f"s{i}"), rate_bps=1e6) for end in "ab" for i in range(count)]
    experiment = type("Experiment", (), {"topology": Topology(tuple(nodes), tuple(links)), "seed": 1, "changes": ()})()
    flows = [record(f"f{i}.{n}", f"a{i}", f"b{i}", (n + i / count, n + 2 + i / count)) for i in range(count) for n in range(4)]
    return Series(experiment, flows, {}, {})


def test_the_work_of_shares_grows_with_the_flows_that_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice as many pairs that do not meet: each change still fills the links of one pair."""
    links = []
    for count in (10, 20):
        with monkeypatch.context() as patch:
            filled = Counter(patch, shares.Filling, "_fill")
            table = ShareTable(pairs(count))
            assert table.mean("f0.1", 0.0, 6.0) == pytest.approx(5e5)
            links.append(sum(len(part) for _, part, _ in filled.calls))
    assert links[0] > 0 and links[1] <= 2.1 * links[0]
