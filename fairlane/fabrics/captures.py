"""Names of a Mininet run's captures: after links, as in virtual time (`FROM-TO.pcap`), not after the interfaces of one run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from fairlane.topologies.model import Topology, in_files


def name_after_links(folder: Path, topology: Topology, interface: Callable[[str, int], str]) -> None:
    """Rename a switch's `INTERFACE_in.pcap` and `INTERFACE_out.pcap`. FROM-TO.pcap has what arrived at the switch TO; of a link to a host, what its
    switch sent. FROM-TO.sent.pcap: what the switch FROM sent to another one, also what the link lost. interface: of a switch and its port."""
    switches = set(topology.switches)
    for ports in topology.ports().values():
        for port in ports:
            link = in_files(f"{port.node}-{port.peer}")
            sent, arrived = f"{link}.sent.pcap", f"{link}.pcap"
            if port.peer in switches:
                _rename(folder / f"{interface(port.peer, port.peer_port)}_in.pcap", folder / arrived)
            if port.node in switches:
                _rename(folder / f"{interface(port.node, port.number)}_out.pcap", folder / (sent if port.peer in switches else arrived))


def _rename(before: Path, after: Path) -> None:
    """Of several links between two nodes, each keeps a file of its own."""
    for number in range(2, 1000):
        if not after.exists():
            break
        after = after.with_name(f"{after.name.partition('.')[0].partition('~')[0]}~{number}.{after.name.partition('.')[2]}")
    if before.exists():
        before.rename(after)
