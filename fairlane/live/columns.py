"""The content of the page, computed from samples: columns of charts, and the values at one time for tables and the picture."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable
from typing import Any

from fairlane.controller.timetable import NS
from fairlane.live.sampler import DROPPED, RECEIVED, SENT, WAITED, Line, PortTrack, Sampler


def rates(sampler: Sampler, line: Line, start: int, end: int) -> list[int | None]:
    """Goodput over the last second in bit/s at samples `start` to `end`; None outside the flow's lifetime."""
    experiment, span = sampler.experiment, sampler.span
    stop_s = min(experiment.duration_s, line.flow.stop_s or experiment.duration_s)
    times, sums, first = sampler.times, line.bytes, line.first
    if start - span >= first and start < end and line.flow.start_s <= times[start] and times[end - 1] <= stop_s + 1.0:
        # As below, for a flow that runs all the time.
        span_s, start, end = span * sampler.step_s, start - first, end - first
        return [round(8 * (after - before) / span_s) for before, after in zip(sums[start - span : end - span], sums[start:end])]
    found: list[int | None] = []
    for i in range(start, end):
        if i < first or not line.flow.start_s <= times[i] <= stop_s + 1.0:
            found.append(None)
            continue
        before = sums[i - span - first] if i - span >= first else 0.0
        found.append(round(8 * (sums[i - first] - before) / (span * sampler.step_s)))
    return found


def port_columns(sampler: Sampler, port: PortTrack, start: int, end: int) -> dict[str, Any]:
    """load: part of the link used over the last second. queue: packets, mean of a sample. average, probability: the scheme's. connections,
    fair_rate: the value that the controller put in force. drops: sums by cause, those that happened."""
    columns: dict[str, Any] = {"load": [], "queue": [], "average": [], "probability": [], "connections": [], "fair_rate": []}
    for i in range(start, end):
        columns["load"].append(_load(sampler, port, i, SENT))
        columns["queue"].append(_queue(sampler, port, i))
        average, control = port.average_at(i), port.control_at(sampler.times[i])
        columns["average"].append(None if average is None else round(average, 2))
        probability = None if average is None or port.average is None else port.average.probability(average)
        columns["probability"].append(None if probability is None else round(probability, 5))
        columns["connections"].append(None if control is None else control.connections)
        columns["fair_rate"].append(None if control is None else round(control.fair_rate_bps))
    drops = [_drops(sampler, port, i) for i in range(start, end)]
    columns["drops"] = {cause: [found.get(cause, 0) for found in drops] for cause in drop_causes(sampler, port)}
    return columns


def drop_causes(sampler: Sampler, port: PortTrack) -> list[str]:
    """A port's causes of drops: its scheme's, a full queue, and any other cause that occurred."""
    always = [*port.port.link.causes, "tail"]
    seen = _drops(sampler, port, len(sampler.times) - 1) if sampler.times else {}
    return [*always, *(cause for cause, count in seen.items() if count and cause not in always)]


def _load(sampler: Sampler, port: PortTrack, index: int, what: int) -> float | None:
    span = min(sampler.span, index)
    if span == 0:
        return 0.0
    bits = 8 * (port.at(index)[what] - port.at(index - span)[what])
    return round(bits / (span * sampler.step_s) / sampler.rate_bps(port, sampler.times[index]), 4)


def _queue(sampler: Sampler, port: PortTrack, index: int) -> float | None:
    mean = (port.at(index)[WAITED] - port.at(max(0, index - 1))[WAITED]) / NS / sampler.step_s
    return round(mean, 2) if math.isfinite(mean) else None


def _drops(sampler: Sampler, port: PortTrack, index: int) -> dict[str, int]:
    """Sums. Drops in ingress count at the input port; a scheme's share of them is known by output port, and drops in egress are the scheme's."""
    causes = port.port.link.causes
    others = {"ingress", "egress"} if causes else {"ingress"}
    found = {cause: round(count) for cause, count in zip(sampler.causes, port.at(index)[DROPPED:]) if count and cause not in others}
    control = port.control_at(sampler.times[index]) if causes else None
    if control is not None:
        found |= {cause: control.dropped[column] for cause, column in causes.items() if column in control.dropped}
    return found


def moment(sampler: Sampler, time_s: float, shares: dict[str, float], count: int, whole: Callable[[PortTrack], bool]) -> dict[str, Any]:
    """All flows and ports at the last of the first `count` samples that is not after a time. whole: the ports whose
    values are wanted in full, not only their loads."""
    index = min(count, bisect.bisect_right(sampler.times, time_s + 1e-6)) - 1
    if index < 0:
        return {"time": None, "flows": [], "ports": {}}
    flows: list[list[int | None]] = []
    for line in sampler.lines:
        if index < line.first:
            flows.append([None, None, None, None, None])
            continue
        sent, lost, sending = line.counts(index - line.first)
        share = shares.get(line.name)
        flows.append(
            [
                rates(sampler, line, index, index + 1)[0],
                None if share is None else round(share),
                round(sent),
                round(lost),
                None if sending is None else round(sending),
            ]
        )
    ports: dict[str, dict[str, Any]] = {}
    for (node, number), port in sampler.ports.items():
        if not whole(port):
            ports[f"{node}:{number}"] = {
                "rate": sampler.rate_bps(port, sampler.times[index]),
                "load": _load(sampler, port, index, SENT),
                "back": _load(sampler, port, index, RECEIVED),
            }
            continue
        average, control = port.average_at(index), port.control_at(sampler.times[index])
        probability = None if average is None or port.average is None else port.average.probability(average)
        ports[f"{node}:{number}"] = {
            "rate": sampler.rate_bps(port, sampler.times[index]),
            "load": _load(sampler, port, index, SENT),
            "back": _load(sampler, port, index, RECEIVED),
            "queue": _queue(sampler, port, index),
            "average": None if average is None else round(average, 2),
            "probability": None if probability is None else round(probability, 5),
            "connections": None if control is None else control.connections,
            "fair_rate": None if control is None else round(control.fair_rate_bps),
            "drops": {cause: n for cause, n in _drops(sampler, port, index).items() if n},
        }
    return {"time": sampler.times[index], "flows": flows, "ports": ports}
