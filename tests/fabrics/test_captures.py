"""Captures of a Mininet run have the names that they have in virtual time."""

from __future__ import annotations

from pathlib import Path

from fairlane import ad_hoc, api
from fairlane.fabrics import captures


def test_captures_are_named_after_links(tmp_path: Path) -> None:
    topology = ad_hoc.experiment("dumbbell", ad_hoc.Options(("rap:1",)), 1, 1).topology
    api.run("dumbbell", "rap:1", duration_s=1, pcap=tmp_path / "virtual")
    (tmp_path / "mininet").mkdir()
    for switch in topology.switches:
        for port in topology.ports()[switch]:
            for way in ("in", "out"):
                (tmp_path / "mininet" / f"f8af-{switch}-p{port.number}_{way}.pcap").write_text(f"{switch} {port.number} {way}")
    captures.name_after_links(tmp_path / "mininet", topology, lambda switch, port: f"f8af-{switch}-p{port}")
    found = {path.name: path.read_text() for path in (tmp_path / "mininet").iterdir()}
    virtual = {path.name for path in (tmp_path / "virtual").iterdir()}
    assert virtual <= set(found)
    assert {name for name in found if name not in virtual} == {"s1-s2.sent.pcap", "s2-s1.sent.pcap"}
    ports = {(port.node, port.peer): port.number for ports in topology.ports().values() for port in ports}
    assert found["s1-s2.pcap"] == f"s2 {ports['s2', 's1']} in"
    assert found["s1-s2.sent.pcap"] == f"s1 {ports['s1', 's2']} out"
    assert found["h1-s1.pcap"] == f"s1 {ports['s1', 'h1']} in"
    assert found["s2-h2.pcap"] == f"s2 {ports['s2', 'h2']} out"
