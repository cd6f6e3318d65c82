"""What a link may do to frames: keys, the other direction, changes; and that files without these keys are recorded as before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairlane.experiments import loader
from fairlane.experiments.model import Experiment
from fairlane.fabrics.link_plans import LinkPlans, bmv2_obstacle
from fairlane.inputs import schema
from fairlane.inputs.located_toml import ConfigError
from fairlane.live import restore
from fairlane.results.nameless import of_experiment
from fairlane.topologies import addressing
from fairlane.topologies.impairments import Gemodel
from fairlane.topologies.model import Back, Link, Node, Topology

FILE = """\
title = "a path"
bottleneck = "s1->s2"
duration_s = 10.0
[topology]
kind = "dumbbell"
pairs = 1
bottleneck = { rate_bps = 10_000_000, delay_s = 0.01%s }
access = { rate_bps = 100_000_000%s }
[[flows]]
name = "f"
kind = "rap"
"""


def load(folder: Path, bottleneck: str = "", access: str = "", more: str = "") -> Experiment:
    path = folder / "e.toml"
    path.write_text(FILE % (bottleneck, access) + more)
    return loader.load(path)


@pytest.mark.parametrize(
    ("given", "back", "found"),
    [
        ({}, {"delay_s": 0.2}, {"delay_s": 0.2, "rate_bps": 1e6}),
        ({"loss": 0.1}, {"gemodel": Gemodel(0.1, 0.2)}, {"loss": 0.0, "gemodel": Gemodel(0.1, 0.2)}),
        ({"gemodel": Gemodel(0.1, 0.2)}, {"loss": 0.0}, {"loss": 0.0, "gemodel": None}),
        ({"jitter_s": 0.1}, {"jitter_std_s": 0.2}, {"jitter_s": 0.0, "jitter_std_s": 0.2}),
        ({"reorder": 0.1, "reorder_delay_s": 0.01}, {"reorder": 0.2}, {"reorder": 0.2, "reorder_delay_s": 0.01}),
        ({"corrupt": 0.1, "duplicate": 0.2}, {"corrupt": 0.0}, {"corrupt": 0.0, "duplicate": 0.2}),
        ({"queue": "red"}, {"queue_packets": 7}, {"queue": "red", "queue_packets": 7}),
    ],
)
def test_the_way_back_has_what_is_given_and_otherwise_the_same(given: dict, back: dict, found: dict) -> None:
    link = Link(("a", "b"), rate_bps=1e6, **given, back=Back(**back))
    backward = link.backward
    assert {key: getattr(backward, key) for key in found} == found
    others = {name for name in schema.hints_of(Link) if name not in (*found, "back", "ends")} - {"__pydantic_config__"}
    assert all(getattr(backward, key) == getattr(link, key) for key in others)
    assert Link(("a", "b"), rate_bps=1e6, **given).backward is not backward


def test_a_rate_back_replaces_a_trace(tmp_path: Path) -> None:
    experiment = load(tmp_path, ', trace = "cellular-walk.mahi", back = { rate_bps = 1_000_000 }')
    (there,), (back,) = ([p for p in experiment.topology.ports()[s] if p.peer == t] for s, t in (("s1", "s2"), ("s2", "s1")))
    assert there.trace is not None and back.trace is None and back.link.rate_bps == 1e6
    assert len(experiment.link_rates_bps(there)) > 1 and experiment.link_rates_bps(back) == [(0.0, 1e6)]


def test_a_round_trip_goes_there_and_back(tmp_path: Path) -> None:
    experiment = load(tmp_path, ", back = { delay_s = 0.04, rate_bps = 1_000_000 }")
    # 98 bytes at 100 Mb/s four times, at 10 and at 1 Mb/s once.
    expected = 0.05 + 98 * 8 * (4 / 100e6 + 1 / 10e6 + 1 / 1e6)
    assert addressing.round_trip_s(experiment.topology, "h1", "h2") == pytest.approx(expected)
    assert addressing.round_trip_s(experiment.topology, "h2", "h1") == pytest.approx(expected)
    assert bmv2_obstacle(experiment.topology) == "link s1 - s2 has back.delay_s, which BMv2's ports do not have"


def test_routes_take_the_delays_of_the_way_that_they_go(tmp_path: Path) -> None:
    """Three switches in a ring: from s1 to s3 directly 10 ms, by s2 4 ms; back directly 1 ms, by s2 20 ms."""
    nodes = [Node(name, "host" if name[0] == "h" else "switch") for name in ("h1", "h3", "s1", "s2", "s3")]
    ways = [(("s1", "s3"), 0.010, 0.001), (("s1", "s2"), 0.002, 0.010), (("s2", "s3"), 0.002, 0.010)]
    links = [Link(ends, rate_bps=1e6, delay_s=there, back=Back(delay_s=back)) for ends, there, back in ways]
    access = [Link((host, switch), rate_bps=1e9) for host, switch in (("h1", "s1"), ("h3", "s3"))]
    topology = Topology(tuple(nodes), (*links, *access))
    assert [p.peer for p in addressing.path(topology, "h1", "h3")] == ["s1", "s2", "s3", "h3"]
    assert [p.peer for p in addressing.path(topology, "h3", "h1")] == ["s3", "s1", "h1"]
    sending_s = 98 * 8 * (3 / 1e6 + 4 / 1e9)
    assert addressing.round_trip_s(topology, "h1", "h3") == pytest.approx(0.005 + sending_s)


def test_each_end_of_a_link_gets_its_own_direction_on_mininet(tmp_path: Path) -> None:
    change = '[[changes]]\nat_s = 2.0\nlink = "s2->s1"\ncorrupt = 0.0\ngemodel = { p = 0.1, r = 0.2 }\n'
    bottleneck = ", duplicate = 0.01, back = { duplicate = 0.0, corrupt = 0.02 }"
    experiment = load(tmp_path, bottleneck, ", reorder = 0.1, reorder_delay_s = 0.01, back = { reorder = 0.0 }", change)
    plans = LinkPlans.of(experiment)
    # The first end of access links is the host: h1 -> s1 and h2 -> s2 reorder.
    assert plans.switches == ("s1", "s2") and len(plans.uplinks) == 2
    found = {}
    for switch in plans.switches:
        plans.write(switch, tmp_path / "links.json", 5)
        for entry in json.loads((tmp_path / "links.json").read_text())["links"]:
            found[f"{entry['from']}->{entry['to']}"] = entry
    assert found.keys() == {"s1->s2", "s2->s1", "h1->s1", "h2->s2"}
    assert (found["s1->s2"]["duplicate"], "corrupt" in found["s1->s2"]) == (0.01, False)
    assert (found["s2->s1"]["corrupt"], "duplicate" in found["s2->s1"]) == (0.02, False)
    assert (found["h1->s1"]["reorder"], found["h1->s1"]["reorder_delay_ns"], found["h1->s1"]["rate_bps"]) == (0.1, 10_000_000, 100_000_000)
    gemodel = {"p": 0.1, "r": 0.2, "loss_bad": 1.0, "loss_good": 0.0}
    assert found["s2->s1"]["changes"] == [{"at_ns": 2_000_000_000, "gemodel": gemodel, "corrupt": 0.0}]
    assert experiment.corrupts and not load(tmp_path, ", duplicate = 0.01").corrupts


def test_a_change_that_holds_frames_back_needs_a_time(tmp_path: Path) -> None:
    change = '[[changes]]\nat_s = 2.0\nlink = "s1->s2"\nreorder = 0.1\n'
    with pytest.raises(
        ConfigError, match=r"e.toml:15: changes\[0\].reorder: for how long does s1->s2 hold frames back\? Give 'reorder_delay_s'"
    ):
        load(tmp_path, more=change)
    assert load(tmp_path, ", reorder_delay_s = 0.01", more=change).changes
    assert load(tmp_path, more=change + "reorder_delay_s = 0.01\n").changes


def test_records_have_these_keys_only_where_they_are_given(tmp_path: Path) -> None:
    new = {"gemodel", "reorder", "reorder_delay_s", "duplicate", "corrupt", "back"}
    plain = of_experiment(load(tmp_path, ", loss = 0.1", more='[[changes]]\nat_s = 2.0\nlink = "s1->s2"\nloss = 0.2\n'))
    assert not new & plain["topology"]["links"][0].keys() and not new & plain["changes"][0][0].keys()
    given = ", gemodel = { p = 0.1, r = 0.2 }, back = { gemodel = { p = 0.3, r = 0.4 }, reorder = 0.1, reorder_delay_s = 0.2 }"
    experiment = load(tmp_path, given, more='[[changes]]\nat_s = 2.0\nlink = "s1->s2"\ngemodel = { p = 0.5, r = 0.6 }\n')
    written = json.loads(json.dumps(of_experiment(experiment)))
    assert written["topology"]["links"][0].keys() >= {"gemodel", "back"}
    again = restore.experiment_of(written)
    assert again.topology.links[0].backward == experiment.topology.links[0].backward
    assert again.changes == experiment.changes


def test_the_mean_of_the_model() -> None:
    assert Gemodel(0.01, 0.25).mean_loss == pytest.approx(1 / 26)
    assert Gemodel(0.1, 0.3, 0.5, 0.01).mean_loss == pytest.approx(0.25 * 0.5 + 0.75 * 0.01)


def test_a_hosts_link_with_two_delays_has_each_in_its_direction(tmp_path: Path) -> None:
    """Without netem, the switch's port towards a host would have both."""
    topology = load(tmp_path, access=", delay_s = 0.001, back = { delay_s = 0.004 }").topology
    plans = LinkPlans(topology)
    assert len(plans.uplinks) == 2
    plans.write("s1", tmp_path / "links.json", 5)
    (entry,) = json.loads((tmp_path / "links.json").read_text())["links"]
    assert (entry["direction"], entry["from"], entry["delay_ns"]) == ("in", "h1", 1_000_000)
    assert not LinkPlans(load(tmp_path, access=", delay_s = 0.001").topology).uplinks
