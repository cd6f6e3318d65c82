"""The experiment of a finished run, from its `experiment.json`: network, flows and schedule, as the page needs them."""

from __future__ import annotations

import dataclasses
from typing import Any

from fairlane.experiments import kinds
from fairlane.experiments.kinds import TcpSettings
from fairlane.experiments.model import Change, Experiment, Flow, Settings
from fairlane.schemes import recorded, registry
from fairlane.topologies import trace
from fairlane.topologies.impairments import Gemodel
from fairlane.topologies.model import Back, Link, Node, Topology, queues


@dataclasses.dataclass(frozen=True)
class RecordedSettings:
    """The page's view of an algorithm's flow."""

    packet_bytes: int


def experiment_of(written: dict[str, Any]) -> Experiment:
    """KeyError, TypeError, ValueError: it is no experiment of this version."""
    settings = written["settings"]
    recorded.know(written)
    network = written["topology"]
    topology = Topology(
        tuple(Node(**node) for node in network["nodes"]),
        tuple(map(_link, network["links"])),
        network.get("routing", "single"),
        network.get("ip", 4),
    )
    return Experiment(
        written["id"],
        Settings(settings["title"], settings["bottleneck"], {}, (), window_from=settings["window_from"]),
        topology,
        tuple(map(_flow, written["flows"])),
        _port(written["bottleneck"]),
        float(written["duration_s"]),
        int(written["seed"]),
        tuple((Change(**{**change, **_bursts(change)}), str(node), int(port)) for change, node, port in written["changes"]),
    )


def _port(given: list[Any]) -> tuple[str, int]:
    node, number = given
    return str(node), int(number)


def _link(given: dict[str, Any]) -> Link:
    traces = {key: _trace(given.get(key)) for key in trace.KEYS}
    known = registry.parameters()
    schemes = tuple(make(**values) for key, make in known.items() if (values := given.get(key)) is not None)
    fields = {field.name for field in dataclasses.fields(Link)}
    # A scheme of a user's own that the record does not describe, as those of before: its folder is not read, because results that somebody sent
    # must not run code.
    own = {key for key, value in given.items() if key not in fields and (value is None or key == given["queue"])}
    others = {key: value for key, value in given.items() if key not in known and key not in own}
    if given["queue"] not in queues():
        others["queue"] = registry.DROPTAIL
    others |= _bursts(given)
    if (back := given.get("back")) is not None:
        others["back"] = Back(**{**back, **_bursts(back), "trace": _trace(back.get("trace"))})
    return Link(**{**others, "ends": tuple(given["ends"]), "schemes": schemes, **traces})


def _bursts(given: dict[str, Any]) -> dict[str, Gemodel]:
    return {"gemodel": Gemodel(**bursts)} if (bursts := given.get("gemodel")) is not None else {}


def _trace(given: dict[str, Any] | None) -> trace.Trace | None:
    if given is None:
        return None
    return trace.Trace(given["name"], tuple(given["opportunities_ms"]), tuple((time, rate) for time, rate in given["rates"]))


def _flow(given: dict[str, Any]) -> Flow:
    settings = given["settings"]
    made: RecordedSettings | TcpSettings = RecordedSettings(settings["packet_bytes"])
    if kinds.is_tcp(given["kind"]):
        known = {field.name for field in dataclasses.fields(TcpSettings)}
        made = TcpSettings(**{key: value for key, value in settings.items() if key in known})
    arrays = {key: tuple(given.get(key, ())) for key in ("receivers", "receiver_start_s", "after")}
    return Flow(**{**given, "settings": made, **arrays})
