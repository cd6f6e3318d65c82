"""Reads experiment files: inheritance, checks, and the topology and flows that follow."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

from experiments.model import Experiment, Flow, FlowGroup, Settings
from fairlane import located_toml, schema
from fairlane.located_toml import ConfigError, Document
from topologies import load as topology_load
from topologies.model import Topology

FOLDER = Path(__file__).parent
# Metric names that a check may use: fairlane.metrics computes them.
METRICS = (
    "als_mean_loss_fraction",
    "bottleneck_utilisation",
    "connections_exact_fraction",
    "desired_rate_within_fair_rate_fraction",
    "fair_rate_delay_s",
    "max_min_reached_s",
    "max_min_share_error",
    "tcp_als_rate_ratio",
)


def names() -> list[str]:
    """Ids of the experiments at hand; files whose name begins with an underscore are for others to inherit."""
    return sorted(p.stem for p in FOLDER.glob("*.toml") if not p.name.startswith("_"))


def find(name: str) -> Path:
    """The file of an experiment id, or a path to a file elsewhere. ConfigError names the nearest id."""
    if name.endswith(".toml"):
        path = Path(name)
        if not path.is_file():
            raise ConfigError(f"{name}: no such file")
        return path
    path = FOLDER / f"{name}.toml"
    if name not in names():
        raise ConfigError(f"unknown experiment {name!r}{schema.nearest(name, names())}")
    return path


def load(path: Path, duration_s: float | None = None, seed: int | None = None) -> Experiment:
    """Read an experiment; `duration_s` and `seed` replace the file's. ConfigError names file, line and key."""
    return from_document(read(path), path.stem, duration_s, seed)


def from_document(document: Document, name: str, duration_s: float | None = None, seed: int | None = None) -> Experiment:
    """An experiment from the values of a file. ConfigError names file, line and key."""
    settings = schema.build(Settings, document)
    _check_schedule(settings, document)
    if duration_s is not None or seed is not None:
        try:
            settings = dataclasses.replace(
                settings,
                duration_s=settings.duration_s if duration_s is None else check_duration(duration_s),
                seed=settings.seed if seed is None else seed,
            )
        except ValueError as error:
            raise ConfigError(str(error)) from error
    topology = topology_load.from_document(document, ("topology",))
    flows = _flows(settings, topology, document)
    for i, check in enumerate(settings.checks):
        if check.metric not in METRICS:
            raise document.error(("checks", i, "metric"), f"unknown metric {check.metric!r}{schema.nearest(check.metric, METRICS)}")
    return Experiment(name, settings, topology, flows, _bottleneck(settings, topology, document),
                      settings.duration_s, settings.seed)


def _check_schedule(settings: Settings, document: Document) -> None:
    """Every flow starts within the file's own duration; a shorter --duration may leave some out."""
    for i, group in enumerate(settings.flows):
        last_s = group.start_s + (group.count - 1) * group.join_interval_s
        if last_s >= settings.duration_s:
            key = "start_s" if group.start_s >= settings.duration_s else "join_interval_s"
            raise document.error(("flows", i, key) if key in document.values["flows"][i] else ("flows", i),
                                 f"the last of {group.count} flows starts at {last_s:g} s, after the run's end at {settings.duration_s:g} s")


def check_duration(duration_s: float) -> float:
    """ConfigError unless it is a positive, finite number of seconds."""
    if not (math.isfinite(duration_s) and duration_s > 0):
        raise ConfigError(f"--duration {duration_s:g}: give a positive number of seconds")
    return duration_s


def read(path: Path) -> Document:
    """A file laid over those that it inherits from."""
    return _with_ancestors(path)


def _with_ancestors(path: Path, seen: tuple[Path, ...] = ()) -> Document:
    document = located_toml.read(path)
    parent = document.values.get("inherits", "")
    if not isinstance(parent, str) or not parent:
        return document
    parent_path = path.parent / f"{parent}.toml"
    if parent_path in (*seen, path):
        raise document.error(("inherits",), f"{parent!r} inherits from this file in turn")
    if not parent_path.is_file():
        raise document.error(("inherits",), f"no file {parent_path}")
    return document.over(_with_ancestors(parent_path, (*seen, path)))


def _flows(settings: Settings, topology: Topology, document: Document) -> tuple[Flow, ...]:
    hosts = topology.hosts
    # Builders put all senders before all receivers.
    free = list(zip(hosts[:len(hosts) // 2], hosts[len(hosts) // 2:]))
    flows: list[Flow] = []
    for i, group in enumerate(settings.flows):
        where = ("flows", i)
        for n in range(group.count):
            if group.hosts:
                pair = group.hosts[n]
                for name in pair:
                    if name not in hosts:
                        raise document.error((*where, "hosts", n), f"no host {name!r}{schema.nearest(name, hosts)}")
                if pair[0] == pair[1]:
                    raise document.error((*where, "hosts", n), f"{pair[0]} cannot send to itself")
            elif free:
                pair = free.pop(0)
            else:
                raise document.error((*where, "count"), f"more flows than the {len(hosts) // 2} pairs of hosts")
            flows.append(Flow(_flow_name(group, n), group.kind, *pair, group.start_s + n * group.join_interval_s))
    seen: dict[str, Flow] = {}
    pairs: dict[tuple[str, str], Flow] = {}
    for flow in flows:
        if flow.name in seen:
            raise document.error(("flows",), f"two flows are called {flow.name!r}")
        if (flow.sender, flow.receiver) in pairs:
            other = pairs[flow.sender, flow.receiver].name
            raise document.error(("flows",), f"{flow.name} and {other} have the same pair of hosts: they would count as one connection")
        seen[flow.name] = pairs[flow.sender, flow.receiver] = flow
    if not flows:
        raise document.error(("flows",), "an experiment needs at least one flow")
    return tuple(flows)


def _flow_name(group: FlowGroup, index: int) -> str:
    return f"{group.name}-{index}" if group.count > 1 else group.name


def _bottleneck(settings: Settings, topology: Topology, document: Document) -> tuple[str, int]:
    start, arrow, end = settings.bottleneck.partition("->")
    for port in topology.ports().get(start, ()):
        if arrow and port.peer == end and start in topology.switches:
            return start, port.number
    raise document.error(("bottleneck",), f"no link {settings.bottleneck!r}; write it as 's1->s2', from a switch to its neighbour")
