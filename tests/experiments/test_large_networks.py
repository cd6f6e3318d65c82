"""Networks beyond 254 switches, and switches beyond 253 hosts, run like small ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlane import api
from fairlane.experiments import loader, paths
from fairlane.experiments.model import Experiment
from fairlane.fabrics import virtual_fabric
from fairlane.inputs import located_toml
from fairlane.inputs.located_toml import ConfigError

needs_switch = pytest.mark.skipif(virtual_fabric.native is None, reason="the module fairlane.native is not built: make build")

HEAD = """title = "Large"
bottleneck = "BOTTLENECK"
duration_s = 0.5
[topology]
trunk = { rate_bps = 1_000_000_000, delay_s = 0.000_01 }
access = { rate_bps = 1_000_000_000, delay_s = 0.000_01 }
"""


def experiment(network: str, bottleneck: str, pairs: list[tuple[int, int]]) -> Experiment:
    hosts = ", ".join(f'["h{a}", "h{b}"]' for a, b in pairs)
    flows = f'[tcp]\nfile_bytes = 30_000\n[[flows]]\nname = "f"\nkind = "tcp-sack"\ncount = {len(pairs)}\nhosts = [{hosts}]\n'
    return loader.from_document(located_toml.parse(HEAD.replace("BOTTLENECK", bottleneck) + network + flows, "net.toml"), "net")


@needs_switch
@pytest.mark.parametrize(
    ("network", "bottleneck", "pairs", "most_hops"),
    [
        # Up to half of the circle, which two ways of equal cost lead to; the time to live of 64 allows for 63 switches.
        pytest.param('kind = "ring"\nswitches = 300\nhosts_per_switch = 1\n', "s1->s2", [(1, 2), (290, 20), (300, 255), (256, 300), (150, 140)], 46, marks=pytest.mark.long),
        ('kind = "leaf-spine"\nleaves = 2\nspines = 2\nhosts_per_leaf = 400\n', "leaf1->spine1", [(1, 401), (400, 800), (255, 256), (700, 300)], 3),
    ],
)  # fmt: skip
def test_files_arrive(tmp_path: Path, network: str, bottleneck: str, pairs: list[tuple[int, int]], most_hops: int) -> None:
    run = experiment(network, bottleneck, pairs)
    result = api.run_experiment(run, out=tmp_path / "out")
    assert all(flow["completion_s"] is not None and flow["completion_s"] < 0.4 for flow in result.summary["flows"])
    assert max(len(paths.there(run, flow)) - 1 for flow in run.flows) == most_hops


def test_a_thousand_hosts_on_a_leaf_are_refused() -> None:
    with pytest.raises(ConfigError) as refused:
        experiment('kind = "leaf-spine"\nleaves = 2\nspines = 4\nhosts_per_leaf = 1000\n', "leaf1->spine1", [(1, 2)])
    assert str(refused.value) == "net.toml:10: topology.hosts_per_leaf: 1 to 505, because a switch has 509 ports, got 1000"


def test_too_many_switches_are_refused() -> None:
    with pytest.raises(ConfigError) as refused:
        experiment('kind = "ring"\nswitches = 5000\nhosts_per_switch = 1\n', "s1->s2", [(1, 2)])
    assert str(refused.value) == "net.toml:8: topology.switches: a ring has 3 to 3500, got 5000"


def test_ways_that_packets_do_not_survive_are_refused() -> None:
    network = 'kind = "ring"\nswitches = 300\nhosts_per_switch = 1\n'
    assert len(experiment(network, "s1->s2", [(1, 63)]).flows) == 1
    with pytest.raises(ConfigError) as refused:
        experiment(network, "s1->s2", [(1, 63), (1, 64)])
    assert "flows: f-1: 64 switches are on the way from h1 to h64, and a packet, whose time to live is 64, passes 63" in str(refused.value)
