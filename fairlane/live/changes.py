"""A viewer's changes to a running experiment in virtual time: add and stop flows, change links' rates. The experiment is updated too, so
that later computations describe the actual run."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from fairlane.controller.timetable import NS
from fairlane.errors import Refusal
from fairlane.experiments import kinds, loader
from fairlane.experiments.model import Change, Experiment, Flow
from fairlane.fabrics import virtual_fabric
from fairlane.fabrics.virtual_fabric import ActiveRun
from fairlane.inputs import located_toml, schema
from fairlane.inputs.located_toml import ConfigError
from fairlane.topologies.model import machine

_LEAST_RATE_BPS, _MOST_RATE_BPS = 1e3, 1e12
# A flow starts with the next whole millisecond: what decimal seconds can say.
_START_NS = 1_000_000


def apply(active: ActiveRun, request: dict[str, Any]) -> list[dict[str, Any]]:
    """Carry out a request now; returns a description for the log. Refusal: why it is impossible."""
    now_s = active.network.now_ns / NS - active.timing.begin_s
    if not 0 <= now_s < active.experiment.duration_s:
        raise Refusal("the flows are not running: nothing can be changed.")
    try:
        return {"add": _add, "stop": _stop, "rate": _rate}[str(request.get("do"))](active, request, now_s)
    except KeyError:
        raise Refusal(f"unknown request {request.get('do')!r}: add, stop or rate") from None
    except (ValueError, ConfigError) as error:
        raise Refusal(str(error)) from error


def _add(active: ActiveRun, request: dict[str, Any], now_s: float) -> list[dict[str, Any]]:
    experiment = active.experiment
    kind, sender, receiver = (str(request.get(key)) for key in ("kind", "from", "to"))
    hosts = experiment.topology.hosts
    algorithm = kinds.algorithm(kind)
    if kind not in kinds.names():
        raise Refusal(kinds.unknown(kind))
    if algorithm is not None and algorithm.layered:
        raise Refusal(f"{kind}: a layered flow cannot join a run; give it at the start, with --flow.")
    for host in (sender, receiver):
        if host not in hosts:
            raise Refusal(f"no host {host!r}{schema.nearest(host, hosts)}")
    if machine(sender) == machine(receiver):
        raise Refusal(f"{machine(sender)} cannot send to itself")
    start_ns = (active.network.now_ns // _START_NS + 1) * _START_NS
    name = _free_name(experiment, kind)
    flow = Flow(
        name,
        kind,
        sender,
        receiver,
        start_ns / NS - active.timing.begin_s,
        _settings(experiment, kind, sender, receiver),
        port_offset=loader.Ports(experiment.flows).take(sender, [receiver]),
    )
    if flow.start_s >= experiment.duration_s:
        raise Refusal("the run is at its end.")
    seed = experiment.seed * 1000 + len(experiment.flows)
    virtual_fabric.add_flow(active.network, flow, active.hosts, active.timing, seed, active.headers)
    active.experiment = dataclasses.replace(experiment, flows=(*experiment.flows, flow))
    active.records.add_flow(flow)
    return [{"time_s": _round(flow.start_s), "do": "add", "flow": name, "kind": kind, "from": sender, "to": receiver}]


def _free_name(experiment: Experiment, kind: str) -> str:
    taken = {f.name for f in experiment.flows}
    return next(name for n in range(1, len(taken) + 2) if (name := f"{kind}.{n}") not in taken)


def _settings(experiment: Experiment, kind: str, sender: str, receiver: str) -> kinds.FlowSettings:
    """As the experiment's flows of that kind have them, or the kind's defaults."""
    for flow in experiment.flows:
        if flow.kind == kind:
            return flow.settings
    known = [(f.kind, (f.sender, *f.all_receivers), f.port_offset) for f in experiment.flows]
    own = (kind, (sender, receiver), loader.Ports(experiment.flows).take(sender, [receiver]))
    way = loader.ways([*known, own], experiment.topology, experiment.seed)[-1]
    return kinds.settings(located_toml.parse("", "the live view"), kind, (), way)


def _stop(active: ActiveRun, request: dict[str, Any], now_s: float) -> list[dict[str, Any]]:
    experiment = active.experiment
    name = str(request.get("flow"))
    flow = next((f for f in experiment.flows if f.name == name), None)
    if flow is None:
        raise Refusal(f"no flow {name!r}{schema.nearest(name, [f.name for f in experiment.flows])}")
    if flow.stop_s is not None and flow.stop_s <= now_s:
        raise Refusal(f"{name} has stopped already.")
    if flow.start_s >= now_s:
        raise Refusal(f"{name} starts only at {flow.start_s:g} s.")
    active.network.stop_flow(name, active.network.now_ns)
    stopped = dataclasses.replace(flow, stop_s=now_s)
    active.experiment = dataclasses.replace(experiment, flows=tuple(stopped if f is flow else f for f in experiment.flows))
    return [{"time_s": _round(now_s), "do": "stop", "flow": name}]


def _rate(active: ActiveRun, request: dict[str, Any], now_s: float) -> list[dict[str, Any]]:
    experiment = active.experiment
    rate_bps = request.get("rate_bps")
    if not isinstance(rate_bps, (int, float)) or not math.isfinite(rate_bps) or not _LEAST_RATE_BPS <= rate_bps <= _MOST_RATE_BPS:
        raise Refusal("a link's rate is from 0.001 to 1000000 Mb/s.")
    node, _, number = str(request.get("port")).rpartition(":")
    port = next((p for p in experiment.topology.ports().get(node, ()) if str(p.number) == number), None)
    if port is None:
        raise Refusal(f"no port {request.get('port')!r}: write it as s1:1")
    ends = [(port.node, port.number, port.peer)]
    if request.get("both"):
        ends.append((port.peer, port.peer_port, port.node))
    for name, port_number, _ in ends:
        active.controller.check_rate(name, port_number, round(rate_bps))
    made, changes = [], []
    for name, port_number, peer in ends:
        active.network.schedule_rate(active.network.now_ns, name, port_number, round(rate_bps))
        if name in experiment.topology.switches:
            active.network.wake_control_plane(active.network.now_ns, active.controller.ask_rate(name, port_number, round(rate_bps)))
        changes.append((Change(now_s, f"{name}->{peer}", rate_bps=float(rate_bps)), name, port_number))
        made.append({"time_s": _round(now_s), "do": "rate", "link": f"{name}->{peer}", "rate_bps": rate_bps})
    active.experiment = dataclasses.replace(experiment, changes=tuple(sorted((*experiment.changes, *changes), key=lambda c: c[0].at_s)))
    return made


def _round(time_s: float) -> float:
    return round(time_s, 6)
