"""Figures of the tested flows over a changing link: RFC 8868's metrics for each flow, and what each phase of a case came to.

Tested are media flows, or, by suites of queues, TCP flows with names that begin with "tested"; `media` below means either.

A phase is a time in which neither the capacity of a direction nor the set of its long flows changes; its figures are over its second
half, when flows should have converged. Short TCP flows begin no phase and have no share.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairlane.experiments.kinds import AlgorithmSettings, TcpSettings
from fairlane.results.figures import jain_index
from fairlane.results.series import FlowRecord, LinkRecord, Series
from fairlane.studies.measures import coefficient_of_variation
from fairlane.topologies import addressing
from fairlane.topologies.model import ETHERNET_BYTES

BIN_S = 0.2
"""RFC 8868 has rates of each 200 ms."""
SHORTEST_PHASE_S = 5.0
CONVERGED_WITHIN = 0.25
"""A rate has converged when each second's mean stays within so much of the phase's own; ours, as RFC 8868 names no width."""
DELAY_PERCENTILE = 95


@dataclass(frozen=True)
class Phase:
    """One direction of the bottleneck between two changes. link: "s1->s2". Rates in bit/s of IPv4 datagrams, of its second half, but
    convergence_s, which is since its beginning. available_bps: what the media could use of the capacity; shares: each long flow's rate over
    its max-min fair share, media limited by their own highest rate; use: of available_bps, by media; total_use: of the capacity, by all."""

    link: str
    start_s: float
    end_s: float
    capacity_bps: float
    available_bps: float
    media_bps: float
    use: float
    total_use: float
    queueing_s: float
    loss: float
    jain: float
    convergence_s: float
    shares: dict[str, float]
    tcp_shares: dict[str, float]


def is_name_of_tested(name: str, is_algorithm: bool) -> bool:
    """Whether a flow is of the sender that the suite tests: any algorithm's but "unresponsive" ones, and of TCP those named "tested"."""
    return name.startswith("tested") or (is_algorithm and not name.startswith("unresponsive"))


def is_tested(record: FlowRecord) -> bool:
    return is_name_of_tested(record.flow.name, isinstance(record.flow.settings, AlgorithmSettings))


def _is_long(record: FlowRecord) -> bool:
    settings = record.flow.settings
    return is_tested(record) or (isinstance(settings, TcpSettings) and settings.file_bytes is None)


def most_bps(record: FlowRecord) -> float:
    """The highest rate of a media flow; a TCP flow has none."""
    settings = record.flow.settings
    return settings.maximum_rate_bps if isinstance(settings, AlgorithmSettings) else math.inf


def fair_shares(capacity_bps: float, limits_bps: Sequence[float]) -> list[float]:
    """Max-min fair shares of one link by flows that can use `limits_bps` at most."""
    shares, left, waiting = [0.0] * len(limits_bps), capacity_bps, sorted(range(len(limits_bps)), key=lambda i: limits_bps[i])
    for place, i in enumerate(waiting):
        shares[i] = min(limits_bps[i], left / (len(waiting) - place))
        left -= shares[i]
    return shares


def _trunk(series: Series, record: FlowRecord) -> tuple[str, int]:
    """The port of the bottleneck, in either direction, that a flow's data crosses."""
    switches = set(series.experiment.topology.switches)
    for port in addressing.path(series.experiment.topology, record.flow.sender, record.flow.receiver):
        if port.node in switches and port.peer in switches:
            return port.node, port.number
    raise ValueError(f"flow {record.flow.name} crosses no link between switches")


def _base_delay_s(series: Series, record: FlowRecord, capacity_bps: float) -> float:
    """Propagation and transmissions of a packet on its way, without queues, with the bottleneck at a capacity."""
    key, bits = _trunk(series, record), 8 * record.flow.settings.packet_bytes
    path = addressing.path(series.experiment.topology, record.flow.sender, record.flow.receiver)
    return sum(p.link.delay_s + bits / (capacity_bps if (p.node, p.number) == key else p.link.rate_bps) for p in path)


def _mean_delay_s(record: FlowRecord, start_s: float, end_s: float) -> float:
    packets = record.packets.over(start_s, end_s)
    return record.delay.over(start_s, end_s) / packets if packets > 0 else math.nan


def _waiting_s(link: LinkRecord, tested: Sequence[FlowRecord], start_s: float, end_s: float, capacity_bps: float) -> float:
    """Mean wait in the bottleneck's queue, by its mean length: what there is of TCP, whose receivers measure no delay."""
    if link.queue is None or not tested:
        return math.nan
    bits = 8 * (tested[0].flow.settings.packet_bytes + ETHERNET_BYTES - link.port.link.uncounted_bytes)
    return link.queue.over(start_s, end_s) / (end_s - start_s) * bits / capacity_bps


def _rate_bps(record: FlowRecord, start_s: float, end_s: float) -> float:
    return 8 * record.received.over(start_s, end_s) / (end_s - start_s)


def _converged_s(flows: Sequence[FlowRecord], start_s: float, end_s: float) -> float:
    """Seconds from the phase's beginning until the sum of rates stays near its mean over the second half; its length, if never."""
    edges = np.arange(start_s, end_s + 1e-9, 1.0)
    rates = 8 * np.sum([np.diff(f.received.at(edges)) for f in flows], axis=0)
    level = sum(_rate_bps(f, (start_s + end_s) / 2, end_s) for f in flows)
    off = np.flatnonzero(np.abs(rates - level) > CONVERGED_WITHIN * level)
    return float(edges[off[-1] + 1] - start_s) if len(off) else 0.0


def _phase(
    series: Series, link: LinkRecord, flows: Sequence[FlowRecord], everyone: Sequence[FlowRecord], start_s: float, end_s: float
) -> Phase:
    half_s = (start_s + end_s) / 2
    media = [f for f in flows if is_tested(f)]
    capacity_bps = link.capacity_bits().over(half_s, end_s) / (end_s - half_s)
    rates = {f.flow.name: _rate_bps(f, half_s, end_s) for f in flows}
    fair = dict(zip(rates, fair_shares(capacity_bps, [most_bps(f) for f in flows])))
    share = {name: rate / fair[name] for name, rate in rates.items()}
    media_bps = sum(rates[f.flow.name] for f in media)
    available_bps = sum(fair[f.flow.name] for f in media)
    total_bps = sum(_rate_bps(f, half_s, end_s) for f in everyone)
    timed = [f for f in media if isinstance(f.flow.settings, AlgorithmSettings)]
    delays = [_mean_delay_s(f, half_s, end_s) - _base_delay_s(series, f, capacity_bps) for f in timed]
    known = [delay for delay in delays if not math.isnan(delay)] or [_waiting_s(link, media, half_s, end_s, capacity_bps)]
    sent = sum(f.sent.over(half_s, end_s) for f in media)
    return Phase(
        link.name,
        start_s,
        end_s,
        capacity_bps,
        available_bps,
        media_bps,
        media_bps / available_bps,
        total_bps / capacity_bps,
        max(known, default=math.nan),
        max(0.0, sum(f.lost.over(half_s, end_s) for f in media)) / sent if sent else math.nan,
        jain_index([rates[f.flow.name] for f in media]),
        _converged_s(media, start_s, end_s),
        {f.flow.name: share[f.flow.name] for f in media},
        {f.flow.name: share[f.flow.name] for f in flows if not is_tested(f)},
    )


def phases(series: Series) -> list[Phase]:
    """Of each direction that media flows take, in the order of time."""
    found: list[Phase] = []
    duration_s = series.experiment.duration_s
    for key in dict.fromkeys(_trunk(series, f) for f in series.flows if is_tested(f)):
        crossing = [f for f in series.flows if _trunk(series, f) == key]
        long = [f for f in crossing if _is_long(f)]
        edges = {0.0, duration_s, *(t for t, _ in series.links[key].rates_bps)}
        edges |= {t for f in long for t in (f.flow.start_s, f.flow.stop_s) if t is not None}
        times = sorted(t for t in edges if 0 <= t <= duration_s)
        for start_s, end_s in itertools.pairwise(times):
            active = [f for f in long if f.flow.start_s <= start_s and (f.flow.stop_s is None or f.flow.stop_s >= end_s)]
            if end_s - start_s >= SHORTEST_PHASE_S and any(map(is_tested, active)):
                found.append(_phase(series, series.links[key], active, crossing, start_s, end_s))
    return sorted(found, key=lambda phase: (phase.start_s, phase.link))


def flow_figures(series: Series, record: FlowRecord) -> dict[str, Any]:
    """RFC 8868's metrics of one flow over its own time: rates in bit/s (sending and receiving count IPv4 datagrams, goodput payload),
    packets, loss as a fraction, one-way delay in seconds (mean; percentile and maximum of means over 200 ms), and how much its rate in
    200 ms varies: standard deviation over mean."""
    if record.active is None:
        return {"name": record.flow.name, "kind": record.flow.kind, "received_packets": 0}
    start_s, end_s = record.active[0], min(record.active[1], series.experiment.duration_s)
    edges = np.arange(start_s, end_s + 1e-9, BIN_S)
    packets, delays = np.diff(record.packets.at(edges)), np.diff(record.delay.at(edges))
    means = delays[packets > 0] / packets[packets > 0]
    sent, seconds = record.sent.over(start_s, end_s), end_s - start_s
    has_delay = len(means) > 0 and is_tested(record)
    return {
        "name": record.flow.name,
        "kind": record.flow.kind,
        "sending_bps": 8 * record.flow.settings.packet_bytes * sent / seconds,
        "receiving_bps": _rate_bps(record, start_s, end_s),
        "goodput_bps": 8 * record.goodput.over(start_s, end_s) / seconds,
        "sent_packets": round(sent),
        "received_packets": round(record.packets.over(start_s, end_s)),
        "loss": max(0.0, record.lost.over(start_s, end_s)) / sent if sent else math.nan,
        "delay_mean_s": _mean_delay_s(record, start_s, end_s) if has_delay else math.nan,
        "delay_95_s": float(np.percentile(means, DELAY_PERCENTILE)) if has_delay else math.nan,
        "delay_max_s": float(means.max()) if has_delay else math.nan,
        "variation": coefficient_of_variation(record, (start_s, end_s), BIN_S),
    }


def totals(found: Sequence[Phase]) -> dict[str, float]:
    """The worst over phases of each figure that an expectation may name; `nan` where no phase has it."""

    def least(values: Sequence[float]) -> float:
        return min(values, default=math.nan) if not any(map(math.isnan, values)) else math.nan

    shares = [share for phase in found for share in phase.shares.values()]
    return {
        "least_use": least([phase.use for phase in found]),
        "least_total_use": least([phase.total_use for phase in found]),
        "most_queueing_s": -least([-phase.queueing_s for phase in found]),
        "most_loss": -least([-phase.loss for phase in found]),
        "lowest_share": least(shares),
        "highest_share": -least([-share for share in shares]),
        "lowest_tcp_share": least([share for phase in found for share in phase.tcp_shares.values()]),
        "longest_convergence_s": -least([-phase.convergence_s for phase in found]),
    }
