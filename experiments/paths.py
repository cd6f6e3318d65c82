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
    return _way(experiment, flow, receiver or flow.receiver, False, at_s)


def back(experiment: Experiment, flow: Flow, receiver: str | None = None, at_s: float = 0.0) -> tuple[Port, ...]:
    """The same of the packets that answer."""
    return _way(experiment, flow, receiver or flow.receiver, True, at_s)


def five_tuple(topology: Topology, kind: str, sender: str, receiver: str, port_offset: int) -> FiveTuple:
    """Of the packets that a flow sends. Both ends have the same port."""
    hosts = addressing.host_addresses(topology)
    protocol, first = (TCP, TCP_PORT) if kinds.is_tcp(kind) else (UDP, RTP_PORT)
    return FiveTuple(hosts[sender].ip, hosts[receiver].ip, protocol, first + port_offset, first + port_offset)


def _way(experiment: Experiment, flow: Flow, to: str, backward: bool, at_s: float) -> tuple[Port, ...]:
    failed = failed_at(experiment, at_s)
    known = experiment.topology.worked_out
    key = ("way", flow.sender, to, kinds.is_tcp(flow.kind), flow.port_offset, backward, experiment.seed, failed)
    if key not in known:
        tuple_ = five_tuple(experiment.topology, flow.kind, flow.sender, to, flow.port_offset)
        ends = (to, flow.sender, tuple_.back) if backward else (flow.sender, to, tuple_)
        known[key] = addressing.path(experiment.topology, *ends, experiment.seed, failed)
    found: tuple[Port, ...] = known[key]
    return found


def failed_at(experiment: Experiment, at_s: float) -> tuple[Down, ...]:
    """What has failed, before and by then, as far as routes have followed (`addressing.next_ports`)."""
    return [failed for since_s, failed in history(experiment) if since_s <= at_s][-1]


def history(experiment: Experiment) -> list[tuple[float, tuple[Down, ...]]]:
    """Each time since the run's begin from which other routes are wanted, and what has failed before and by then; first 0 s, where nothing has failed."""
    down: Down = frozenset()
    found: list[tuple[float, tuple[Down, ...]]] = [(0.0, HEALTHY)]
    for change, node, number in experiment.changes:
        if change.up is None:
            continue
        link = {experiment.topology.both_ends(node, number)[0].link_index}
        down = down - link if change.up else down | link
        since_s, before = change.at_s + experiment.settings.control.reroute_s, found[-1]
        if since_s == before[0]:
            found[-1] = since_s, (*before[1][:-1], down)
        elif down != before[1][-1]:
            found.append((since_s, (*before[1], down)))
    return [one for one in found if one[0] == 0 or one[0] < experiment.duration_s]
