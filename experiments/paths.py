"""The ways that flows take through an experiment's network: as its switches choose them, over the whole run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlane.experiments import kinds
from fairlane.topologies import addressing
from fairlane.topologies.addressing import HEALTHY, Down
from fairlane.topologies.equal_cost import TCP, UDP, FiveTuple
from fairlane.topologies.model import Port, Topology

if TYPE_CHECKING:
    from fairlane.experiments.model import Experiment, Flow

# Of a flow whose `port_offset` is 0, at both ends. RTP takes two.
RTP_PORT = 5004
TCP_PORT = 5201


def there(experiment: Experiment, flow: Flow, receiver: str | None = None, at_s: float = 0.0) -> tuple[Port, ...]:
    """The output ports that a flow's packets take, the sender's own first. receiver: of several; None: its only or first one. at_s: since the run's begin.

    Packets to a multicast group take the tree of `fairlane.controller.multicast`, which is the same in a network without loops."""
    to = receiver or flow.receiver
    return _way(experiment, flow.sender, to, five_tuple(experiment.topology, flow.kind, flow.sender, to, flow.port_offset), at_s)


def back(experiment: Experiment, flow: Flow, receiver: str | None = None, at_s: float = 0.0) -> tuple[Port, ...]:
    """The same of the packets that answer."""
    to = receiver or flow.receiver
    return _way(experiment, to, flow.sender, five_tuple(experiment.topology, flow.kind, flow.sender, to, flow.port_offset).back, at_s)


def five_tuple(topology: Topology, kind: str, sender: str, receiver: str, port_offset: int) -> FiveTuple:
    """Of the packets that a flow sends. Both ends have the same port."""
    hosts = addressing.host_addresses(topology)
    protocol, first = (TCP, TCP_PORT) if kinds.is_tcp(kind) else (UDP, RTP_PORT)
    return FiveTuple(hosts[sender].ip, hosts[receiver].ip, protocol, first + port_offset, first + port_offset)


def _way(experiment: Experiment, source: str, destination: str, flow: FiveTuple, at_s: float) -> tuple[Port, ...]:
    return addressing.path(experiment.topology, source, destination, flow, experiment.seed, failed_at(experiment, at_s))


def failed_at(experiment: Experiment, at_s: float) -> tuple[Down, ...]:
    """The failures that routes have followed by then, as `addressing.next_ports` takes them."""
    return HEALTHY
