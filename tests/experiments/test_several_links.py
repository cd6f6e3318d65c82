"""Hosts with several links: addresses, ways, and whole runs in virtual time, where flows name the link at each end."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from fairlane import api, probes
from fairlane.experiments import loader, paths
from fairlane.experiments.model import Experiment
from fairlane.fabrics import virtual_fabric
from fairlane.inputs import located_toml
from fairlane.inputs.located_toml import ConfigError
from fairlane.live.layout import layout
from fairlane.topologies import addressing
from fairlane.topologies.model import Link, Node, Topology, TopologyError
from tests.experiments.test_equal_cost import headers

EXAMPLE = probes.ROOT / "docs/examples/two-links.toml"
needs_switch = pytest.mark.skipif(virtual_fabric.native is None, reason="the module fairlane.native is not built: make build")


def two_links(*more: tuple[str, str]) -> Topology:
    nodes = (*(Node(n, "host") for n in ("h1", "h2")), *(Node(n, "switch") for n in ("s1", "s2")))
    return Topology(nodes, tuple(Link(ends, 1e6) for ends in (("h1:3", "s1"), ("s2", "h1:1"), ("s1", "s2"), ("h2", "s2"), *more)))


def test_each_link_has_an_end_an_address_and_routes() -> None:
    topology = two_links()
    # The link of the lowest port is the host itself.
    assert (topology.machines, topology.hosts) == (("h1", "h2"), ("h1", "h2", "h1:3"))
    assert [(p.node, p.number, p.peer) for name in topology.hosts for p in topology.ports()[name]] == [
        ("h1", 1, "s2"), ("h2", 0, "s2"), ("h1:3", 3, "s1")
    ]  # fmt: skip
    made = addressing.assign(topology)
    assert {name: host.ip for name, host in made.hosts.items()} == {"h1:3": "10.0.1.1", "h1": "10.0.2.1", "h2": "10.0.2.2"}
    assert len({host.mac for host in made.hosts.values()}) == 3
    assert [p.peer for p in addressing.path(topology, "h1:3", "h2")] == ["s1", "s2", "h2"]
    assert [p.peer for p in addressing.path(topology, "h2", "h1")] == ["s2", "h1"]
    assert [p.peer for p in addressing.path(topology, "h2", "h1:3")] == ["s2", "s1", "h1:3"]


def test_a_host_does_not_connect_switches() -> None:
    nodes = (Node("h1", "host"), Node("s1", "switch"), Node("s2", "switch"))
    with pytest.raises(TopologyError, match="s2 cannot be reached from h1"):
        Topology(nodes, (Link(("h1", "s1"), 1e6), Link(("h1", "s2"), 1e6)))


def test_two_links_to_one_switch() -> None:
    topology = two_links(("h2", "s2"))
    hosts = addressing.host_addresses(topology)
    assert (hosts["h2"].ip, hosts["h2:1"].ip) == ("10.0.2.2", "10.0.2.3") and hosts["h2"].gateway_mac != hosts["h2:1"].gateway_mac


def test_the_live_page_shows_each_link() -> None:
    shown = layout(experiment())
    assert [node["name"] for node in shown["nodes"] if node["kind"] == "host"] == ["h1", "h2", "h1:1"]
    assert {(link["from"], link["to"]) for link in shown["links"]} >= {("s1", "h1"), ("s2", "h1:1")}


def experiment(change: tuple[str, str] = ("", "")) -> Experiment:
    text = EXAMPLE.read_text()
    assert change[0] in text
    return loader.from_document(located_toml.parse(text.replace(*change) if change[0] else text, "net.toml"), "net")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('["h1:1", "h2"]', '["h1:2", "h2"]'), "net.toml:55: flows[1].hosts[0]: no host 'h1:2'; did you mean 'h1', 'h2' or 'h1:1'?"),
        (('["h1:1", "h2"]', '["h1:1", "h1"]'), "net.toml:55: flows[1].hosts[0]: h1 cannot send to itself"),
    ],
)
def test_flows_that_cannot_be_are_refused_at_their_key(change: tuple[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        experiment(change)
    assert str(refused.value).startswith(message.partition("; did")[0])


@needs_switch
def test_flows_use_the_links_that_they_name(tmp_path: Path) -> None:
    """Every packet of a link is of a flow that names it, or answers one; and each flow fills its own link."""
    run = experiment()
    result = api.run_experiment(run, out=tmp_path / "out", pcap=tmp_path / "pcap")
    ips = {name: host.ip for name, host in addressing.host_addresses(run.topology).items()}
    assert {p.name for p in (tmp_path / "pcap").glob("h1*")} == {"h1-s1.pcap", "h1.1-s2.pcap"}
    for end, file in (("h1", "h1-s1"), ("h1:1", "h1.1-s2")):
        found = headers(tmp_path / "pcap" / f"{file}.pcap")
        assert len(found) > 300 and {packet.source for packet in found} == {ips[end]}
        found = headers(tmp_path / "pcap" / f"{'-'.join(reversed(file.split('-')))}.pcap")
        assert len(found) > 300 and {packet.destination for packet in found} == {ips[end]}
    goodput = {flow["name"]: flow["goodput_bps"] for flow in result.summary["flows"]}
    # Segments of 960 bytes in frames of 1014; rates of 4 and 2 Mb/s.
    assert goodput["first"] == pytest.approx(4e6 * 960 / 1014, rel=0.05)
    assert goodput["second"] == pytest.approx(2e6 * 960 / 1014, rel=0.08)
    assert [p.peer for p in paths.back(run, run.flow("second"))] == ["s3", "s2", "h1:1"]
    shares = pd.read_csv(tmp_path / "out" / "flows.csv").set_index(["flow", "time_s"])["fair_share_bps"]
    assert shares["first", 5.0] == pytest.approx(4e6) and shares["second", 5.0] == pytest.approx(2e6)
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["flows"][2]["goodput_bps"] > 1e6


@needs_switch
def test_a_second_link_fails_alone(tmp_path: Path) -> None:
    more = '[[changes]]\nat_s = 4\nlink = "h1:1->s2"\nup = false\n\n[[flows]]\nname = "first"'
    result = api.run_experiment(experiment(('[[flows]]\nname = "first"', more)), out=tmp_path / "out")
    table = pd.read_csv(tmp_path / "out" / "flows.csv")
    late = table[table["time_s"] > 6].groupby("flow")["goodput_bps"].mean()
    assert late["second"] == late["back"] == 0 and late["first"] > 3.5e6
    assert result.summary["flows"][0]["name"] == "first"
