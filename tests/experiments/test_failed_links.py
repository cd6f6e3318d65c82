"""Links that fail and work again: what is lost is counted, and routes follow."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlane import api, probes
from fairlane.experiments import loader, paths
from fairlane.experiments.model import Experiment
from fairlane.fabrics import link_plans, virtual_fabric
from fairlane.inputs import located_toml
from fairlane.inputs.located_toml import ConfigError
from fairlane.topologies import addressing, builders
from fairlane.topologies.builders import LinkSpec

needs_switch = pytest.mark.skipif(virtual_fabric.native is None, reason="the module fairlane.native is not built: make build")
EXAMPLE = probes.ROOT / "docs/examples/wide-area.toml"

LEAVES = """
title = "A failed spine"
bottleneck = "leaf1->spine1"
duration_s = 4
window_from = 0
seed = SEED
[control]
reroute_s = REROUTE
[topology]
kind = "leaf-spine"
leaves = 2
spines = 4
hosts_per_leaf = 16
trunk = { rate_bps = 100_000_000, delay_s = 0.005 }
access = { rate_bps = 100_000_000 }
[cbr]
rate_bps = 800_000
[[flows]]
name = "f"
kind = "cbr"
count = 16
"""
CHANGES = '[[changes]]\nat_s = 1.0\nlink = "{link}"\nup = false\n[[changes]]\nat_s = 3.0\nlink = "{link}"\nup = true\n'


def experiment(text: str, seed: int = 1, reroute_s: float = 0.1) -> Experiment:
    return loader.from_document(located_toml.parse(text.replace("SEED", str(seed)).replace("REROUTE", str(reroute_s)), "net.toml"), "net")


def last(folder: Path, switch: str) -> pd.DataFrame:
    rows = pd.read_csv(folder / "raw" / f"{switch}.csv")
    return rows[rows["time_s"] == rows["time_s"].max()].set_index("port")


@needs_switch
@pytest.mark.parametrize("link", ["leaf1->spine2", "spine2->leaf1"])
def test_what_a_failed_link_loses_is_counted_until_routes_follow(tmp_path: Path, link: str) -> None:
    """Flows of one spine are without a way for 0.1 s: each loses the 10 packets that it sends in that time, and those under way; the others none. Every packet is received, or
    counted as lost by the link."""
    run = experiment(LEAVES + CHANGES.format(link=link))
    hit = [f for f in run.flows if any(p.node == "spine2" for p in paths.there(run, f))]
    assert 0 < len(hit) < 16
    result = api.run_experiment(run, out=tmp_path / "out")
    counted = sum(int(last(tmp_path / "out", s)["drop_link_down"].sum()) for s in run.topology.switches)
    # 100 packets a second; 0.1 s, 1 ms to the switches, and 5 ms on the link.
    assert abs(counted - len(hit) * 10.6) <= len(hit) + 1
    assert sum(f["lost_packets"] for f in result.summary["flows"]) == counted
    assert {f["name"] for f in result.summary["flows"] if f["lost_packets"]} == {f.name for f in hit}
    # While the link is down, its spine has no packets to that leaf's hosts, and flows are on the three others.
    assert all(p.node != "spine2" for f in run.flows for p in paths.there(run, f, at_s=2.0))


@needs_switch
def test_with_a_long_delay_all_is_lost_until_the_link_works_again(tmp_path: Path) -> None:
    run = experiment(LEAVES + CHANGES.format(link="leaf1->spine2"), reroute_s=10.0)
    hit = [f for f in run.flows if any(p.node == "spine2" for p in paths.there(run, f))]
    api.run_experiment(run, out=tmp_path / "out")
    counted = sum(int(last(tmp_path / "out", s)["drop_link_down"].sum()) for s in run.topology.switches)
    assert abs(counted - 200 * len(hit)) <= 2 * len(hit)


@needs_switch
def test_files_have_the_column_where_links_fail(tmp_path: Path) -> None:
    api.run_experiment(experiment(LEAVES.replace("duration_s = 4", "duration_s = 0.2")), out=tmp_path / "out")
    assert "drop_link_down" not in last(tmp_path / "out", "leaf1").columns


@needs_switch
def test_flows_of_a_wide_area_network_take_another_way(tmp_path: Path) -> None:
    """Rates in bins of half a second: over the failed link, over the longer way, and back."""
    result = api.run_experiment(loader.load(EXAMPLE), out=tmp_path / "out")
    links = pd.read_csv(tmp_path / "out" / "links.csv")
    mean = {
        (name, part): rows[(rows["time_s"] > a) & (rows["time_s"] <= b)]["utilisation"].mean()
        for name, rows in links.groupby("link")
        for part, (a, b) in {"before": (4, 7.9), "failed": (9.5, 13.9), "after": (16, 20)}.items()
    }
    assert mean["Denver->Kansas_City", "before"] > 0.9 and mean["Denver->Kansas_City", "after"] > 0.9
    assert mean["Denver->Kansas_City", "failed"] == 0
    assert mean["Los_Angeles->Houston", "before"] == 0 and mean["Los_Angeles->Houston", "failed"] > 0.5
    drops = next(link["drops"] for link in result.summary["links"] if link["name"] == "Denver->Kansas_City")
    assert drops["link_down"] > 0
    # Fair shares follow: both flows share Denver - Kansas City, and then nothing.
    flows = pd.read_csv(tmp_path / "out" / "flows.csv").set_index(["flow", "time_s"])["fair_share_bps"]
    assert flows["coast-to-coast", 6.0] == pytest.approx(5e6) and flows["coast-to-coast", 12.0] > 4.9e6


def test_times_of_failures_and_of_their_routes() -> None:
    run = loader.load(EXAMPLE)
    link = next(i for i, one in enumerate(run.topology.links) if one.ends == ("Denver", "Kansas_City"))
    none, down = frozenset[int](), frozenset({link})
    assert paths.history(run) == [(0.0, (none,)), (8.05, (none, down)), (14.05, (none, down, none))]
    shorter = dataclasses.replace(run, duration_s=14.0)
    assert [since_s for since_s, _ in paths.history(shorter)] == [0.0, 8.05]


@settings(max_examples=60)
@given(st.integers(0, 10**6))
def test_routes_avoid_what_has_failed_as_long_as_a_way_is_left(seed: int) -> None:
    """Hop by hop, in any order of failures: no loop while all can be reached, and each hop leads nearer."""
    draw = random.Random(seed)
    topology = draw.choice([builders.fat_tree(4, LINK, LINK), builders.ring(7, 1, LINK, LINK), builders.leaf_spine(3, 3, 1, LINK, LINK)])
    trunks = [i for i, link in enumerate(topology.links) if not any(end.startswith("h") for end in link.ends)]
    down: frozenset[int] = frozenset()
    failed: tuple[frozenset[int], ...] = (down,)
    for _ in range(draw.randint(1, 6)):
        down = down ^ {draw.choice(trunks)}
        failed = (*failed, down)
    edges = {topology.ports()[h][0].peer for h in topology.hosts}
    for target in edges:
        reached = reachable(topology, target, down)
        for start in reached - {target}:
            at, hops = start, 0
            while at != target:
                onward = addressing.next_ports(topology, at, target, failed)
                assert onward and all(p.link_index not in down and p.peer in reached for p in onward)
                at, hops = draw.choice(onward).peer, hops + 1
                assert hops <= len(topology.switches)
        for start in set(topology.switches) - reached:
            # As before: the link that failed counts what it loses.
            assert addressing.next_ports(topology, start, target, failed)


LINK = LinkSpec(1e9, 1e-6)


def reachable(topology: object, target: str, down: frozenset[int]) -> set[str]:
    found, todo = {target}, [target]
    while todo:
        for port in topology.ports()[todo.pop()]:  # type: ignore[attr-defined]
            if port.link_index not in down and port.peer in topology.switches and port.peer not in found:  # type: ignore[attr-defined]
                found.add(port.peer)
                todo.append(port.peer)
    return found


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ('[[changes]]\nat_s = 1\nlink = "leaf1->spine9"\nup = false', "changes[0].link: no link 'leaf1->spine9', from one node to its neighbour"),
        ('[[changes]]\nat_s = 1\nlink = "leaf1->spine1"\nup = 1', "changes[0].up: expected true or false, got 1"),
        ('[[changes]]\nat_s = 1\nswitch = "leaf1"\nup = false', "changes[0].switch: only als of a switch can change"),
        ('[[changes]]\nat_s = 1\nlink = "leaf1->spine1"', "changes[0]: nothing changes: give rate_bps"),
    ],
)  # fmt: skip
def test_errors_name_the_key(more: str, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        experiment(LEAVES + more)
    assert message in str(refused.value)


def test_bmv2_refuses_them() -> None:
    run = loader.load(EXAMPLE)
    assert link_plans.bmv2_obstacle(run.topology, run.changes) == (
        "Denver->Kansas_City changes at 8 s, and BMv2's ports do not change while it runs"
    )


def test_each_switch_of_mininet_fails_its_own_end() -> None:
    """The other values of a change are those of the direction that it names."""
    more = '[[changes]]\nat_s = 2.0\nlink = "leaf1->spine2"\nup = false\nrate_bps = 1_000_000\n[[changes]]\nat_s = 3.0\nlink = "h1->leaf1"\nup = false'
    plans = link_plans.LinkPlans.of(experiment(LEAVES + more))
    assert plans.switches == ("leaf1", "spine2")
    found = {(s, link["from"], link["to"]): link["changes"] for s in plans.switches for link in plans._links(s, True)}
    off = {"at_ns": 2_000_000_000, "up": False}
    host = {"at_ns": 3_000_000_000, "up": False}
    assert found == {
        ("leaf1", "leaf1", "spine2"): [{**off, "rate_bps": 1_000_000}],
        ("spine2", "spine2", "leaf1"): [off],
        # A host's own end is at its switch, too.
        ("leaf1", "leaf1", "h1"): [host],
        ("leaf1", "h1", "leaf1"): [host],
    }
