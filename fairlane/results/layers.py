"""A layered flow's history, from a run's raw records: rates and sizes of its layers, their members, and the reports to its receivers.

Memberships come from the controller: the changes that the switches carried out, on both fabrics.
"""

from __future__ import annotations

import bisect
import csv
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from pathlib import Path

from fairlane.experiments.model import Experiment, Flow
from fairlane.fabrics import raw
from fairlane.fabrics.flows import Timing, record_roles
from fairlane.hosts.algorithms import ALGORITHMS

FLOW_RECORDS = frozenset(("start", "control", "als_layered.adapt", "als.adapt"))
"""The kinds of a layered flow's records that are read here."""


@dataclass(frozen=True)
class Heard:
    """A control packet as a receiver had it. sizes_bps: of the layers it names; None when the record does not say."""

    time_s: float
    desired_rate_bps: float
    sizes_bps: tuple[float, ...] | None


@dataclass(frozen=True)
class LayeredRecord:
    """One layered flow. rates, sizes: (time, bit/s of each layer, the basic one first), as sent and as announced, from each time on.
    joined: for each receiver (time, layer, whether it is a member from then on). heard: its control packets."""

    flow: Flow
    rates: list[tuple[float, tuple[float, ...]]]
    sizes: list[tuple[float, tuple[float, ...]]]
    joined: dict[str, list[tuple[float, int, bool]]] = field(default_factory=dict)
    heard: dict[str, list[Heard]] = field(default_factory=dict)

    @property
    def layers(self) -> int:
        return len(self.flow.algorithm_settings.parameters.group_addresses)

    def rates_at(self, time_s: float) -> tuple[float, ...]:
        return _at(self.rates, time_s) or (0.0,) * self.layers

    def sizes_at(self, time_s: float) -> tuple[float, ...]:
        return _at(self.sizes, time_s) or ()

    def members_at(self, receiver: str, time_s: float) -> set[int]:
        """Layers that a receiver is a member of at an instant."""
        members: set[int] = set()
        for at_s, layer, member in self.joined.get(receiver, ()):
            if at_s > time_s:
                break
            (members.add if member else members.discard)(layer)
        return members

    def changes_s(self, receiver: str) -> list[float]:
        return [t for t, _, _ in self.joined.get(receiver, ())]


def _at(steps: list[tuple[float, tuple[float, ...]]], time_s: float) -> tuple[float, ...] | None:
    index = bisect.bisect_right(steps, time_s, key=lambda step: step[0])
    return steps[index - 1][1] if index else None


def load(folder: Path, experiment: Experiment, timing: Timing) -> list[LayeredRecord]:
    """The layered flows of a run, in the experiment's order."""
    flows = [f for f in experiment.flows if f.kind in ALGORITHMS and ALGORITHMS[f.kind].layered and f.start_s < experiment.duration_s]
    memberships = _memberships(folder, experiment, timing) if flows else []
    return [_layered(folder, f, timing, memberships) for f in flows]


def _memberships(folder: Path, experiment: Experiment, timing: Timing) -> list[tuple[float, str, int, bool]]:
    """(time, host, group, member from then on), in the order of time."""
    hosts = {
        (p.node, p.number): p.peer for ports in experiment.topology.ports().values() for p in ports if p.peer in experiment.topology.hosts
    }
    found = []
    try:
        with (folder / "memberships.csv").open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                host = hosts.get((row["switch"], int(row["port"])))
                if host is not None:
                    found.append(
                        (float(row["time_s"]) - timing.begin_s, host, int(IPv4Address(row["group"])), row["event"] in ("join", "restore"))
                    )
    except OSError:
        return []
    return sorted(found, key=lambda change: change[0])


def _layered(folder: Path, flow: Flow, timing: Timing, memberships: list[tuple[float, str, int, bool]]) -> LayeredRecord:
    groups = flow.algorithm_settings.parameters.group_addresses
    upper = max(1, len(groups) - 1)
    sender, *receivers = record_roles(flow)
    rates: list[tuple[float, tuple[float, ...]]] = []
    sizes: list[tuple[float, tuple[float, ...]]] = []
    for record in raw.flow_records(folder, flow.name, sender):
        time_s = record.get("t", 0.0) - timing.begin_s
        if record.get("kind") == "start":
            rates.append((time_s, (flow.algorithm_settings.parameters.initial_rate_bps, *(0.0,) * (len(groups) - 1))))
        elif record.get("kind") == "als_layered.adapt":
            for steps, low, high in ((rates, "rate_bps", "r_max_bps"), (sizes, "rd_min_bps", "rd_max_bps")):
                steps.append((time_s, (record[low], *((record[high] - record[low]) / upper for _ in groups[1:]))))
        elif record.get("kind") == "als.adapt":  # no receiver reports
            rates.append((time_s, (record["rate_bps"], *(0.0,) * (len(groups) - 1))))
    made = LayeredRecord(flow, rates, sizes)
    for host, role in zip(flow.all_receivers, receivers):
        made.joined[host] = [(t, groups.index(g), member) for t, h, g, member in memberships if h == host and g in groups]
        made.heard[host] = [
            Heard(r["t"] - timing.begin_s, float(r["rd_bps"]), tuple(map(float, r["layers_bps"])) if "layers_bps" in r else None)
            for r in raw.flow_records(folder, flow.name, role)
            if r.get("kind") == "control"
        ]
    return made
