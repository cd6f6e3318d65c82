"""One network in several processes: the same bytes for any number of them, and nothing left behind where one ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fairlane import ad_hoc, probes
from fairlane.errors import RunFailed
from fairlane.experiments import loader
from fairlane.experiments.model import Experiment
from fairlane.fabrics import partition_plan, partitions, targets, virtual_fabric
from fairlane.fabrics.partition_plan import Plan
from fairlane.fabrics.progress import Silent
from fairlane.hosts.algorithms import ALGORITHMS

pytestmark = [
    pytest.mark.skipif(virtual_fabric.native is None, reason="the module fairlane.native is not built: make build"),
    pytest.mark.skipif(bool(partitions.obstacle()), reason="processes are not forked here"),
]
CONTROL_S = 0.001


class Heard(Silent):
    """Keeps what is said."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)


def simple(network: str, *flows: str, duration_s: float = 2.0, **options) -> Experiment:
    return ad_hoc.experiment(network, ad_hoc.Options(flows=flows, **options), duration_s, 1)


ROW = """
title = "four switches in a row"
duration_s = 1
bottleneck = "s2->s3"

[control]
program = "p4src/als.p4"

[topology]
kind = "graph"
nodes = [
    { name = "s1", kind = "switch" }, { name = "s2", kind = "switch" }, { name = "s3", kind = "switch" }, { name = "s4", kind = "switch" },
    { name = "a", kind = "host" }, { name = "b", kind = "host" },
]
links = [
    { ends = ["s1", "s2"], rate_bps = 10_000_000, delay_s = 0.000_001 }, { ends = ["s2", "s3"], rate_bps = 10_000_000, delay_s = 0.02 },
    { ends = ["s3", "s4"], rate_bps = 10_000_000 }, { ends = ["a", "s1"], rate_bps = 10_000_000 }, { ends = ["s4", "b"], rate_bps = 10_000_000 },
]

[[flows]]
kind = "tcp-sack"
name = "f"
hosts = [["a", "b"]]
"""


QUERIES = """
title = "queries over a fabric"
duration_s = 1
bottleneck = "leaf1->spine1"

[topology]
kind = "leaf-spine"
leaves = 4
spines = 2
hosts_per_leaf = 2
trunk = { rate_bps = 100_000_000, delay_s = 0.0005, queue_packets = 100 }
access = { rate_bps = 100_000_000, delay_s = 0.000_01, queue_packets = 100 }

[[workloads]]
name = "search"
kind = "tcp-cubic"
pattern = "partition-aggregate"
fan_in = 3
arrivals = { per_s = 20 }
sizes = { mean_bytes = 20_000 }
requests = 3
"""


def records(folder: Path, experiment: Experiment, cores: int, **options) -> tuple[dict[str, bytes], list[str]]:
    """Every raw record without the folder's name, captures too, and what was said."""
    folder.mkdir(parents=True)
    heard = Heard()
    virtual_fabric.run(experiment, virtual_fabric.Options(targets.compiler(), cores=cores, **options), folder, heard)
    found = {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
    return {name: content.replace(bytes(folder), b"") for name, content in found.items()}, heard.said


def check_same(folder: Path, experiment: Experiment, counts: tuple[int, ...] = (2, 3), captured: bool = False) -> None:
    def options(name: str) -> dict[str, Path]:
        return {"pcap": folder / name / "pcap"} if captured else {}

    alone, _ = records(folder / "1", experiment, 1, **options("1"))
    assert len(alone) > 5
    for count in counts:
        several, said = records(folder / str(count), experiment, count, **options(str(count)))
        assert any(line.startswith(f"{count} processes: ") for line in said), said
        assert list(several) == list(alone)
        assert [name for name in alone if alone[name] != several[name]] == []


def test_a_dumbbell_cut_at_its_bottleneck(tmp_path: Path) -> None:
    check_same(tmp_path, simple("dumbbell", "rap:2", "tcp-sack:2", "tcp-cubic:1", queue="red", duration_s=4.0), (2,))


def test_a_fabric_with_ways_of_equal_cost(tmp_path: Path) -> None:
    check_same(tmp_path, simple("leaf-spine", "tcp-cubic:8", switches=4, rtt="4ms", duration_s=0.5), (2, 3, 4))


def test_rates_from_switches_and_a_control_plane(tmp_path: Path) -> None:
    check_same(tmp_path, simple("chain", "als:2", "rcp:1", "tcp-reno:1", switches=4, queue="red", duration_s=4.0), (2, 4))


def test_layers_to_receivers_in_several_parts(tmp_path: Path) -> None:
    check_same(tmp_path, loader.load(loader.find("als-8"), 10.0), (2, 3))


def test_captures(tmp_path: Path) -> None:
    check_same(tmp_path, simple("parking-lot", "tcp-sack:3", switches=3, duration_s=1.0), (3,), captured=True)


def test_links_that_lose_change_and_impair(tmp_path: Path) -> None:
    experiment = loader.load(probes.ROOT / "docs/examples/impaired-links.toml", 6.0)
    check_same(tmp_path / "impaired", experiment, (2,))
    check_same(tmp_path / "changing", loader.load(probes.ROOT / "docs/examples/changing-links.toml", 12.0), (2,))


def test_requests_and_answers(tmp_path: Path) -> None:
    check_same(tmp_path / "web", loader.load(probes.ROOT / "docs/examples/workload.toml", 2.0), (2,))
    path = tmp_path / "queries.toml"
    path.write_text(QUERIES, encoding="utf-8")
    experiment = loader.load(path)
    assert sum(bool(flow.after) for flow in experiment.flows) > 20
    check_same(tmp_path / "queries", experiment, (2, 4))


def test_links_that_fail_stay_whole(tmp_path: Path) -> None:
    experiment = loader.load(probes.ROOT / "docs/examples/wide-area.toml", 16.0)
    plan = partition_plan.plan(experiment, 2, CONTROL_S)
    assert isinstance(plan, Plan)
    number = {name: n for n, name in enumerate(experiment.topology.switches)}
    for change, node, port in experiment.changes:
        if change.up is not None:
            assert plan.homes[number[node]] == plan.homes[number[experiment.topology.port(node, port).peer]]
    check_same(tmp_path, experiment, (2,))


@pytest.mark.parametrize("count", [2, 3, 4, 8])
def test_parts_are_alike_and_never_empty(count: int) -> None:
    experiment = simple("fat-tree", "tcp-sack:8", settings=("topology.k=4",), duration_s=1.0)
    plan = partition_plan.plan(experiment, count, CONTROL_S)
    assert isinstance(plan, Plan)
    assert sorted(set(plan.homes)) == list(range(count))
    assert plan.homes[experiment.topology.switches.index(experiment.bottleneck[0])] == 0
    assert max(plan.loads) < 2 * sum(plan.loads) / count


def test_short_links_stay_whole_where_long_ones_do(tmp_path: Path) -> None:
    path = tmp_path / "row.toml"
    path.write_text(ROW, encoding="utf-8")
    plan = partition_plan.plan(loader.load(path), 2, CONTROL_S)
    assert isinstance(plan, Plan)
    assert (plan.homes, plan.links, plan.lookahead_s) == ((0, 0, 1, 1), 1, CONTROL_S)  # shorter than the link's delay


def test_what_is_not_divided_is_said_in_a_sentence(tmp_path: Path) -> None:
    experiment = simple("dumbbell", "tcp-sack:1", duration_s=0.2)
    for options, sentence in (
        ({"trace": tmp_path / "log.csv"}, "--cores: --trace and --packets have the packets of all switches in one order"),
        ({"control_delay_s": 0.0}, "--cores: switches and controller without delay between them"),
    ):
        _, said = records(tmp_path / f"{len(options)}{next(iter(options))}", experiment, 2, **options)
        assert any(line.startswith(sentence) for line in said), said


def fairlane(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(probes.ROOT)}
    return subprocess.Popen(
        [sys.executable, "-m", "fairlane", *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def command(pid: int) -> str:
    """Of a forked process its parent's; "" of one that has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8")
    except OSError:
        return ""


def started(process: subprocess.Popen[str], count: int) -> list[int]:
    """The other processes of a run that is under way. A command that it starts has the run's own command line until it is loaded, so they are looked at twice."""
    deadline = time.monotonic() + 60
    before: list[int] = []
    while time.monotonic() < deadline and process.poll() is None:
        found = [pid for pid in children(process.pid) if command(pid) == command(process.pid)]
        if len(found) == count and found == before:
            return found
        before = found
        time.sleep(0.3)
    pytest.fail(f"never {count} processes: {process.communicate(timeout=60)}")


LONG = ("run", "dumbbell", "--flow", "rap:4", "--flow", "tcp-sack:4", "--duration", "3000", "--cores", "2", "--out", "out")


def gone(pids: list[int]) -> bool:
    deadline = time.monotonic() + 10
    while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_a_process_that_dies_ends_the_run_with_a_sentence(tmp_path: Path) -> None:
    process = fairlane(tmp_path, *LONG)
    (other,) = started(process, 1)
    os.kill(other, signal.SIGKILL)
    _, err = process.communicate(timeout=60)
    assert process.returncode == RunFailed("").code, err
    assert f"The process {other} of part 1 of the network (s2) was ended by SIGKILL: the run ended with it." in " ".join(err.split()), err
    assert "Traceback" not in err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_nothing_behind(tmp_path: Path, number: signal.Signals) -> None:
    process = fairlane(tmp_path, *LONG)
    others = started(process, 1)
    if number == signal.SIGINT:
        os.killpg(process.pid, number)  # as a terminal does
    else:
        process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number, err
    assert "Traceback" not in err
    assert gone(others)


def test_the_others_end_with_the_first_even_if_that_is_killed(tmp_path: Path) -> None:
    process = fairlane(tmp_path, *LONG)
    others = started(process, 1)
    process.kill()
    process.communicate(timeout=60)
    assert gone(others)


def test_an_algorithm_that_fails_in_another_process_ends_the_run_with_its_own_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The receiver of a flow over a dumbbell is in the second part."""

    def fails(*_: object) -> object:
        return 1 // 0

    monkeypatch.setattr(ALGORITHMS["als"].receiver, "on_start", fails)
    for cores in (1, 2):
        folder = tmp_path / str(cores)
        folder.mkdir()
        options = virtual_fabric.Options(targets.compiler(), cores=cores)
        with pytest.raises(ZeroDivisionError) as raised:
            virtual_fabric.run(simple("dumbbell", "als:1", duration_s=1.0), options, folder, Silent())
        assert cores == 1 or "return 1 // 0" in str(raised.value.__cause__)
