"""The max-min fair share of each flow over a run whose schedule may still change."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from types import MappingProxyType

from fairlane.experiments.model import Experiment
from fairlane.results.series import FlowRecord, LinkRecord, Series, Steps
from fairlane.results.shares import ShareTable

# Shares hold from just after what changes them.
_AFTER_S = 1e-6


class Shares:
    """events: (time, shares in bit/s by line) from each time on, computed as time passes."""

    def __init__(self, experiment: Experiment) -> None:
        self.events: list[tuple[float, dict[str, float]]] = []
        self._complete: dict[str, float] = {}
        self._set(experiment)

    def _set(self, experiment: Experiment) -> None:
        self._experiment = experiment
        nothing = Steps.of([], [])
        ports = experiment.topology.ports()
        links = {
            (s, p.number): LinkRecord(f"{s}->{p.peer}", p, nothing, None, {}, experiment.link_rates_bps(p))
            for s in experiment.topology.switches
            for p in ports[s]
        }
        records = []
        for flow in experiment.flows:
            stop_s = min(experiment.duration_s, flow.stop_s or experiment.duration_s, self._complete.get(flow.name, math.inf))
            joins = flow.receiver_start_s or (flow.start_s,) * len(flow.all_receivers)
            for host, joins_s in zip(flow.all_receivers, joins):
                one = (
                    flow
                    if not flow.receivers
                    else dataclasses.replace(flow, name=f"{flow.name}@{host}", receiver=host, receivers=(), receiver_start_s=())
                )
                if joins_s < stop_s:
                    records.append(FlowRecord(one, nothing, nothing, nothing, [], [], (joins_s, stop_s)))
        self._table = ShareTable(Series(experiment, records, links, {}))
        times = {
            0.0,
            *(t for link in links.values() for t, _ in link.rates_bps),
            *(t for r in records if r.active is not None for t in r.active),
        }
        self._todo = sorted(times)

    def changed(self, experiment: Experiment, now_s: float) -> None:
        """Another schedule from now on; the past stays."""
        self._set(experiment)
        self._todo = sorted({now_s, *(t for t in self._todo if t > now_s)})

    def advance(self, until_s: float, complete: Mapping[str, float] = MappingProxyType({})) -> None:
        """Work out the events up to a time. complete: when each file that is complete was so, by flow."""
        if complete.keys() != self._complete.keys():
            self._complete = dict(complete)
            self._set(self._experiment)
            self._todo = [t for t in self._todo if not self.events or t > self.events[-1][0]]
        due = 0
        while due < len(self._todo) and self._todo[due] <= until_s:
            due += 1
        for time_s in self._todo[:due]:
            self.events.append((time_s, dict(self._table.at(time_s + _AFTER_S))))
        del self._todo[:due]

    def at(self, time_s: float) -> dict[str, float]:
        found: dict[str, float] = {}
        for at_s, shares in self.events:
            if at_s > time_s:
                break
            found = shares
        return found
