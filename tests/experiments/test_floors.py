"""Warnings about flows whose default minimum rate exceeds an equal share of the bottleneck."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fairlane import ad_hoc, api, floors
from fairlane.cli import app
from fairlane.experiments import loader
from fairlane.experiments.sweep import REPORT_KEYS, expand, without
from fairlane.fabrics import virtual_fabric
from fairlane.inputs import located_toml
from fairlane.studies import points

needs_network = pytest.mark.skipif(virtual_fabric.native is None, reason="the module fairlane.native is not built: make build")


def experiment(*flows: str, bottleneck: str = "10mbit", settings: tuple[str, ...] = (), topology: str = "dumbbell"):
    return ad_hoc.experiment(topology, ad_hoc.Options(flows=flows, bottleneck=bottleneck, settings=settings), 10.0, 1)


def test_warning_names_parameter_value_share_and_way_out() -> None:
    """200 flows of 8 kb/s at the least on a link of 1 Mb/s."""
    (warning,) = floors.warnings(experiment("ssvp:200", bottleneck="1mbit"))
    assert warning.startswith("ssvp: min_rate_bps is 0.008 Mb/s by default, with max_rate_bps at 10 Mb/s")
    assert "an equal share of s1->s2 among 200 flows is 0.005 Mb/s" in warning
    assert "200 ssvp flows keep 100% of the link's 1 Mb/s" in warning
    assert "--set ssvp.min_rate_bps=500," in warning


def test_way_out_is_one() -> None:
    assert not floors.warnings(experiment("ssvp:200", bottleneck="1mbit", settings=("ssvp.min_rate_bps=500",)))


@pytest.mark.parametrize(
    ("flows", "bottleneck", "kinds"),
    [
        (("trabol:1", "trabol-memory:1"), "10mbit", []),  # theirs follow from the path
        (("trabol:100", "tcp-sack:100"), "10mbit", []),
        (("ssvp:100", "rap:1"), "1mbit", []),  # 8 kb/s each, of shares of 9.9
        (("ssvp:200", "als:1"), "1mbit", ["ssvp", "als"]),
        (("cbr:2", "tcp-sack:2"), "1mbit", []),  # a constant rate is meant so
    ],
)
def test_least_rates_above_an_even_share(flows: tuple[str, ...], bottleneck: str, kinds: list[str]) -> None:
    assert [warning.partition(":")[0] for warning in floors.warnings(experiment(*flows, bottleneck=bottleneck))] == kinds


NUMBERED = """
title = "Ports with numbers of their own"
bottleneck = "s1->s2"
duration_s = 10
[topology]
kind = "graph"
nodes = [{ name = "a", kind = "host" }, { name = "b", kind = "host" }, { name = "s1", kind = "switch" }, { name = "s2", kind = "switch" }]
links = [
    { ends = ["a", "s1:9"], rate_bps = 1_000_000_000 },
    { ends = ["s1:4", "s2:300"], rate_bps = 1_000, queue = "droptail" },
    { ends = ["s2", "b"], rate_bps = 1_000_000_000 },
]
[[flows]]
name = "f"
kind = "KIND"
hosts = [["a", "b"]]
"""


@pytest.mark.parametrize(
    ("kind", "said"), [("ssvp", "an equal share of s1->s2 among 1 flows is 0.001 Mb/s"), ("tcp-dctcp", "the queue of s1->s2")]
)
def test_any_numbers_of_ports(kind: str, said: str) -> None:
    """The bottleneck is the port of that number, wherever it stands among its switch's ports."""
    found = loader.from_document(located_toml.parse(NUMBERED.replace("KIND", kind), "net.toml"), "net")
    assert found.bottleneck == ("s1", 4)
    (warning,) = floors.warnings(found)
    assert said in warning
    assert points.cost(found) < points.cost(dataclasses.replace(found, bottleneck=("s1", 9)))


def test_only_flows_over_the_bottleneck_count() -> None:
    """A tree's first leaf has the bottleneck of the file; of 200 flows a part goes there."""
    assert floors.warnings(experiment("ssvp:200", bottleneck="1mbit"))
    assert not floors.warnings(experiment("ssvp:200", bottleneck="1mbit", topology="tree"))


@pytest.mark.parametrize("name", ["trabol-2", "trabol-3", "trabol-5", "trabol-t1", "ssvp-4", "ssvp-6", "daa-t1"])
def test_rows_of_the_papers_draw_none(name: str) -> None:
    for point in expand(without(loader.read(loader.find(name)), REPORT_KEYS)).points:
        if point.seed == 1:
            assert not floors.warnings(loader.from_document(point.document, name)), point.name


@needs_network
def test_command_and_python_warn(tmp_path: Path) -> None:
    flows = ["--flow", "ssvp:130", "--bottleneck", "1mbit", "--duration", "1"]
    result = CliRunner().invoke(app, ["run", "dumbbell", *flows, "--out", f"{tmp_path}/r"])
    assert result.exit_code == 0 and "warning: ssvp: min_rate_bps is 0.008 Mb/s by default" in result.output
    with pytest.warns(UserWarning, match="ssvp: min_rate_bps is 0.008 Mb/s by default"):
        api.run("dumbbell", ["ssvp:130"], bottleneck="1mbit", duration_s=1)
