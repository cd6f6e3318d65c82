"""Networks from GraphML files: names, speeds, delays from coordinates, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlane import probes
from fairlane.inputs import located_toml
from fairlane.inputs.located_toml import ConfigError
from fairlane.topologies import addressing, graphml, load
from fairlane.topologies.builders import LinkSpec
from fairlane.topologies.graphml import GraphError, Place

ABILENE = probes.ROOT / "docs/examples/abilene.graphml"
TRUNK, ACCESS = LinkSpec(5e6, 0.004), LinkSpec(100e6)
HEAD = (
    '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><key id="n" for="node" attr.name="label"/><key id="y" for="node" attr.name="Latitude"/>'
    '<key id="x" for="node" attr.name="Longitude"/><key id="s" for="edge" attr.name="LinkSpeedRaw"/><graph edgedefault="undirected">'
)
TAIL = "</graph></graphml>"


def file(body: str) -> bytes:
    return f"{HEAD}{body}{TAIL}".encode()


def test_abilene_has_its_routers_links_and_lengths() -> None:
    topology = graphml.wan(graphml.read(ABILENE), 2, TRUNK, ACCESS)
    assert (len(topology.switches), len(topology.links) - 22, len(topology.hosts)) == (11, 14, 22)
    assert "Los_Angeles" in topology.switches and "Washington_DC" in topology.switches
    assert {link.rate_bps for link in topology.links[:14]} == {10e9}
    way = addressing.path(topology, "h1", "h22")
    assert [p.node for p in way[1:]] == ["Seattle", "Denver", "Kansas_City", "Indianapolis", "Chicago", "New_York"]


@pytest.mark.parametrize(
    ("a", "b", "km"),
    [
        # A degree of a meridian is pi R / 180, and half of the equator pi R.
        (Place("a", 0, 0), Place("b", 1, 0), 111.1951),
        (Place("a", 0, -90), Place("b", 0, 90), 20015.115),
        (Place("a", 60, 0), Place("b", 60, 180), 6671.705),
        (Place("a", 89, 10), Place("b", 89, 10), 0),
        # Paris to New York, as geographers have it.
        (Place("a", 48.8567, 2.3508), Place("b", 40.7127, -74.0060), 5837.0),
    ],
)
def test_delay_is_that_of_light_in_glass_on_the_great_circle(a: Place, b: Place, km: float) -> None:
    assert graphml.delay_between_s(a, b) == pytest.approx(km * 1.468 / 299792.458, rel=2e-4, abs=1e-6)
    assert graphml.delay_between_s(b, a) == graphml.delay_between_s(a, b)


def test_a_graph_may_lack_all_but_nodes_and_edges() -> None:
    body = '<node id="0"><data key="n">Köln, Süd</data></node><node id="1"/><node id="2"><data key="n">Köln, Süd</data></node><node id="3"><data key="n">h3</data></node>'
    body += '<edge source="0" target="1"/><edge source="1" target="0"><data key="s">2e6</data></edge><edge source="1" target="2"/><edge source="2" target="3"/>'
    topology = graphml.wan(graphml.parse(file(body), "x.graphml"), 1, TRUNK, ACCESS, speed_scale=0.5)
    assert topology.switches == ("Koln_Sud", "n1", "Koln_Sud_2", "n_h3")
    assert [(link.rate_bps, link.delay_s) for link in topology.links[:3]] == [(5e6, 0.004), (1e6, 0.004), (5e6, 0.004)]
    # Two links between two nodes are two ways of equal cost.
    assert len(addressing.next_ports(topology, "Koln_Sud", "n1")) == 2


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"<graphml><graph>", "x: no XML: no element found: line 1, column 16"),
        (b"<gml/>", "x: no GraphML: expected <graphml> with a <graph>"),
        (b'<!DOCTYPE a [<!ENTITY b "c">]><graphml/>', "x: GraphML has no document type or entities: leave them out"),
        (file(""), "x: a graph without nodes"),
        (file("<node/>"), "x: node 1: no id"),
        (file('<node id="0"/><node id="0"/>'), "x: node 2: a second node has the id '0'"),
        (file('<node id="0"/><edge source="0" target="7"/>'), "x: edge '0' - '7': no such node"),
        (file('<node id="0"/><edge source="0" target="0"/>'), "x: edge '0' - '0': it loops back to the same node: take it out"),
        (file('<node id="0"><data key="y">91</data></node>'), "x: node '0': Latitude is 91, which is out of range"),
        (file('<node id="0"><data key="x">west</data></node>'), "x: node '0': Longitude is 'west', which is no number"),
        (file('<node id="0"/><node id="1"/><edge source="0" target="1"><data key="s">0</data></edge>'), "x: edge '0' - '1': LinkSpeedRaw is 0 bit/s: give a positive rate, or none"),
    ],
)  # fmt: skip
def test_files_that_are_none_are_refused(data: bytes, message: str) -> None:
    with pytest.raises(GraphError) as refused:
        graphml.parse(data, "x")
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ('graphml = "none.graphml"', "net.toml:2: graphml: no file none.graphml; topology-zoo.org has some hundred networks as GraphML"),
        ("graphml = 3", "net.toml:2: graphml: expected a file's name, got 3"),
        (f'graphml = "{ABILENE}"\nhosts_per_switch = 600', "net.toml:3: hosts_per_switch: 1 to 509, got 600"),
        (f'graphml = "{ABILENE}"\nspeed_scale = 0', "net.toml:3: speed_scale: must be positive, got 0"),
        (f'graphml = "{ABILENE}"\nspeed_scale = 1000', "net.toml:2: graphml: the link Seattle - Sunnyvale: rate_bps: at most 1e+12 bit/s, got 1e+13 bit/s"),
    ],
)  # fmt: skip
def test_errors_name_file_line_and_key(keys: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = f'kind = "graphml"\n{keys}\ntrunk = {{ rate_bps = 1e6 }}\naccess = {{ rate_bps = 1e6 }}\n'
    with pytest.raises(ConfigError) as refused:
        load.from_document(located_toml.parse(text, "net.toml"))
    assert str(refused.value) == message
