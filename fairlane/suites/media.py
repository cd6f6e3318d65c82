"""Figures of the measured flows over a changing link: the metrics of each flow [RFC 8868 sec 3], and the figures of each phase of a case.

Measured are rate-adaptation algorithms' flows but those whose names begin with "audio", "background", "unresponsive" or "beside", and, by suites of queues, flows with names
that begin with "tested" or "measured"; `media` below means either.

A phase is a time in which neither the capacity of a direction nor the set of its long flows changes ("static periods" [RFC 8868 sec 3]); its figures are over
its second half, when flows should have converged. Short TCP flows have no share and begin no phase; the end of the last one does, so that recovery from them
is a phase of its own.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from types import MappingProxyType
from typing import Any

import numpy as np

from fairlane.arithmetic import total
from fairlane.experiments import paths
from fairlane.experiments.kinds import AlgorithmSettings, TcpSettings
from fairlane.results import shares
from fairlane.results.figures import jain_index
from fairlane.results.frames import Frame
from fairlane.results.series import FlowRecord, LinkRecord, Series, Steps
from fairlane.studies.measures import coefficient_of_variation
from fairlane.topologies.model import Port

BIN_S = 0.2
"""Rates are of each 200 ms [RFC 8868 sec 3]."""
SCALES_S = (1.0, 5.0, 20.0)
"""Fairness is measured at these intervals [RFC 8868 sec 3]."""
SWING_S, SWING_LOW, SWING_HIGH = 0.5, 0.5, 2.0
"""An oscillation: from above one watermark to below the other, or back, within 500 ms. The watermarks are four times apart [RFC 8868 sec 3]; half and twice the
phase's mean rate are ours."""
SHORTEST_PHASE_S = 5.0
CONVERGED_WITHIN = 0.25
"""A rate has converged when each second's mean stays within so much of the phase's own; ours, as [RFC 8868 sec 3] names no width."""
DELAY_PERCENTILE = 95
_Link = tuple[str, int]
"""A port of a switch."""


@dataclass(frozen=True)
class Phase:
    """One direction of the bottleneck between two changes. link: "s1->s2". Rates in bit/s of IPv4 datagrams, of its second half, but
    convergence_s, which is since its beginning. available_bps: what the media could use of the capacity; shares: each long flow's rate over
    its max-min fair share, media limited by their own highest rate; use: of available_bps, by media; total_use: of the capacity, by all.
    lowest_bps: the least mean of a media flow in 20 s, or in the second half where that is shorter. ratios: lowest rate over highest of two media flows, least over
    intervals of 1, 5 and 20 s; not a number with one flow. cross_ratio: mean rate of a media flow over that of a long TCP flow. swings: oscillations of the media's
    sending rates. feedback: bytes that come back for each byte of media; not a number beside TCP, whose acknowledgements are not told apart. synchronization: part of the media
    flows that lose packets where any does. after_cross: TCP flows beside the media have ended before."""

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
    rates_bps: dict[str, float]
    jain: float
    convergence_s: float
    shares: dict[str, float]
    tcp_shares: dict[str, float]
    lowest_bps: float
    ratios: dict[str, float]
    cross_ratio: float
    swings: float
    feedback: float
    synchronization: float
    after_cross: bool


def is_name_of_tested(name: str, is_algorithm: bool) -> bool:
    """Whether a flow is of the sender that the suite tests: any algorithm's but those of the case's own names, and of TCP those named "tested"."""
    return name.startswith("tested") or (
        is_algorithm and not name.startswith(("unresponsive", "audio", "background", "measured", "beside"))
    )


def is_short(record: FlowRecord) -> bool:
    """A TCP flow that ends with its file."""
    return isinstance(record.flow.settings, TcpSettings) and record.flow.settings.file_bytes is not None


def is_measured(record: FlowRecord) -> bool:
    """Whether figures are of this flow: a tested one, or one of a kind that the case fixes, "measured"."""
    name = record.flow.name
    tested = is_name_of_tested(name, isinstance(record.flow.settings, AlgorithmSettings))
    return (tested or name.startswith("measured")) and not is_short(record)


def _is_tcp(record: FlowRecord) -> bool:
    return isinstance(record.flow.settings, TcpSettings)


def _is_background(record: FlowRecord) -> bool:
    """A constant rate that gives way to nobody."""
    return record.flow.name.startswith("background")


def _is_long(record: FlowRecord) -> bool:
    return (
        is_measured(record) or (_is_tcp(record) and not is_short(record)) or record.flow.name.startswith("audio") or _is_background(record)
    )


def most_bps(record: FlowRecord) -> float:
    """The highest rate of a flow of an algorithm, by its own parameters too where the case chose the algorithm; a TCP flow has none."""
    settings = record.flow.settings
    if not isinstance(settings, AlgorithmSettings):
        return math.inf
    fixed = not is_name_of_tested(record.flow.name, is_algorithm=True)
    return min(settings.maximum_rate_bps, getattr(settings.parameters, "rate_bps", math.inf) if fixed else math.inf)


def fair_shares(capacities_bps: Mapping[_Link, float], routes: Sequence[Sequence[_Link]], limits_bps: Sequence[float]) -> list[float]:
    """Max-min fair share of each flow, which crosses the links of its route and can use its limit at most."""
    filling = shares.Filling()
    limits = {("limit", i): limit_bps for i, limit_bps in enumerate(limits_bps)}
    classes = [filling.add((*route, limit), None) for route, limit in zip(routes, limits)]
    for number in classes:
        filling.change(number, 1)
    found = filling.shares({**capacities_bps, **limits}.__getitem__)
    return [found[number] for number in classes]


def _trunks(series: Series, record: FlowRecord) -> list[_Link]:
    """The ports of the links between switches that a flow's data cross."""
    switches = set(series.experiment.topology.switches)
    path = paths.there(series.experiment, record.flow)
    return [(port.node, port.number) for port in path if port.node in switches and port.peer in switches]


def _bottlenecks(series: Series) -> list[_Link]:
    """Of each measured flow, the slowest link between switches, by the rates of the topology."""
    return list(dict.fromkeys(_slowest(series, f) for f in series.flows if is_measured(f)))


def _slowest(series: Series, record: FlowRecord) -> _Link:
    return min(_trunks(series, record), key=lambda key: series.links[key].port.link.rate_bps)


def _propagation_s(series: Series, port: Port, at_s: float) -> float:
    """One way over a port's link, at an instant."""
    delays = [c.delay_s for c, *key in series.experiment.changes if (*key,) == (port.node, port.number) and c.at_s <= at_s]
    return next((delay_s for delay_s in reversed(delays) if delay_s is not None), port.link.delay_s)


def _capacity_bps(link: LinkRecord, start_s: float, end_s: float) -> float:
    return link.capacity_bits().over(start_s, end_s) / (end_s - start_s)


def _base_delay_s(series: Series, record: FlowRecord, start_s: float, end_s: float) -> float:
    """Propagation, jitter and transmissions of a mean packet on its way, without queues."""
    packets = record.packets.over(start_s, end_s)
    bits = 8 * record.received.over(start_s, end_s) / packets if packets > 0 else math.nan
    trunks = _trunks(series, record)
    return total(
        _propagation_s(series, p, start_s)
        + p.link.mean_jitter_s
        + bits / (_capacity_bps(series.links[p.node, p.number], start_s, end_s) if (p.node, p.number) in trunks else p.link.rate_bps)
        for p in paths.there(series.experiment, record.flow)
    )


def _fair(series: Series, flows: Sequence[FlowRecord], start_s: float, end_s: float) -> dict[str, float]:
    """The fair share of each flow; while a link follows a trace, the mean over intervals of `BIN_S` of the shares of what it has in each. Background flows do not
    share: they have their rates, and the others what they leave."""
    fixed = {f.flow.name: most_bps(f) for f in flows if _is_background(f)}
    taken: dict[_Link, float] = defaultdict(float)
    for f in flows:
        for key in _trunks(series, f):
            taken[key] += fixed.get(f.flow.name, 0.0)
    flows = [f for f in flows if not _is_background(f)]
    routes, limits = [_trunks(series, f) for f in flows], [most_bps(f) for f in flows]
    links = {key: series.links[key] for route in routes for key in route}
    traced = any(link.port.trace is not None for link in links.values())
    edges = _intervals(start_s, end_s, BIN_S if traced else end_s - start_s)
    each = [
        fair_shares({key: max(1.0, _capacity_bps(link, a, b) - taken[key]) for key, link in links.items()}, routes, limits)
        for a, b in itertools.pairwise(edges.tolist())
    ]
    return fixed | dict(zip([f.flow.name for f in flows], np.mean(each, axis=0).tolist()))


def _mean_delay_s(record: FlowRecord, start_s: float, end_s: float) -> float:
    packets = record.packets.over(start_s, end_s)
    return record.delay.over(start_s, end_s) / packets if packets > 0 else math.nan


def _waiting_s(link: LinkRecord, start_s: float, end_s: float) -> float:
    """Mean wait in the bottleneck's queue by Little's law, its mean length over the rate of packets that leave: what there is of TCP, whose receivers measure no
    delay."""
    packets = link.packets.over(start_s, end_s)
    return link.queue.over(start_s, end_s) / packets if link.queue is not None and packets > 0 else math.nan


def queueing_s(series: Series, record: FlowRecord, start_s: float, end_s: float) -> float:
    """Mean delay of a flow above that of the empty path; of TCP the mean wait at its slowest link."""
    if not _is_tcp(record):
        return _mean_delay_s(record, start_s, end_s) - _base_delay_s(series, record, start_s, end_s)
    return _waiting_s(series.links[_slowest(series, record)], start_s, end_s)


def _rate_bps(record: FlowRecord, start_s: float, end_s: float) -> float:
    return 8 * record.received.over(start_s, end_s) / (end_s - start_s)


def _converged_s(flows: Sequence[FlowRecord], start_s: float, end_s: float) -> float:
    """Seconds from the phase's beginning until the sum of rates stays near its mean over the second half; its length, if never."""
    edges = np.arange(start_s, end_s + 1e-9, 1.0)
    rates = 8 * np.sum([np.diff(f.received.at(edges)) for f in flows], axis=0)
    level = total(_rate_bps(f, (start_s + end_s) / 2, end_s) for f in flows)
    off = np.flatnonzero(np.abs(rates - level) > CONVERGED_WITHIN * level)
    return float(edges[off[-1] + 1] - start_s) if len(off) else 0.0


def _intervals(start_s: float, end_s: float, length_s: float) -> np.ndarray:
    """Edges of whole intervals of a length that end with `end_s`; of one, from `start_s`, where there is no room for any."""
    whole = math.floor((end_s - start_s) / length_s + 1e-9)
    return end_s - length_s * np.arange(whole, -1, -1.0) if whole else np.array([start_s, end_s])


def _rates(flows: Sequence[FlowRecord], edges: np.ndarray) -> np.ndarray:
    """Of each flow in each interval, bit/s received."""
    return 8 * np.array([np.diff(f.received.at(edges)) for f in flows]) / np.diff(edges)


def ratio_of_flows(flows: Sequence[FlowRecord], start_s: float, end_s: float, length_s: float) -> float:
    """Lowest rate over highest of two flows in the same interval, least over intervals: 1 is fair, 0 is a flow that receives nothing."""
    if len(flows) < 2:
        return math.nan
    rates = _rates(flows, _intervals(start_s, end_s, length_s))
    least, most = rates.min(axis=0), rates.max(axis=0)
    return float(np.min(np.divide(least, most, out=np.zeros(len(most)), where=most > 0)))


def swings(sent_bytes: Steps, start_s: float, end_s: float) -> float:
    """Oscillations of a sending rate: how often it goes from one watermark to the other within `SWING_S`; not a number where nobody recorded it."""
    if len(sent_bytes.times_s) == 0:
        return math.nan
    edges = np.arange(start_s, end_s + 1e-9, BIN_S)
    rates = np.diff(sent_bytes.at(edges))
    side = np.where(rates >= SWING_HIGH * rates.mean(), 1, np.where(rates <= SWING_LOW * rates.mean(), -1, 0))
    (beyond,) = np.nonzero(side)
    near = np.diff(beyond) * BIN_S <= SWING_S
    return float(np.count_nonzero(near & (np.diff(side[beyond]) != 0)))


def synchronization(flows: Sequence[FlowRecord], start_s: float, end_s: float) -> float:
    """The part of the flows that lose packets in an interval in which any does, mean over such intervals of `BIN_S`: the global synchronization ratio
    [RFC 7928 sec 2.4]. Not a number with one flow, or without loss."""
    losing = np.array([np.diff(f.lost.at(np.arange(start_s, end_s + 1e-9, BIN_S))) > 0 for f in flows])
    events = losing[:, losing.any(axis=0)]
    return float(events.mean()) if len(flows) > 1 and events.size else math.nan


def _feedback(series: Series, link: LinkRecord, flows: Sequence[FlowRecord], start_s: float, end_s: float) -> float:
    """Bytes of the way back that are no flow's data, for each byte of data."""
    back = next((r for r in series.links.values() if (r.port.node, r.port.peer) == (link.port.peer, link.port.node)), None)
    received = total(f.received.over(start_s, end_s) for f in flows)
    if back is None or received <= 0 or any(map(_is_tcp, flows)):
        return math.nan
    returning = [f for f in series.flows if (back.port.node, back.port.number) in _trunks(series, f)]
    return (back.transmitted_bytes.over(start_s, end_s) - total(f.received.over(start_s, end_s) for f in returning)) / received


def _is_over(cross: Sequence[FlowRecord], start_s: float) -> bool:
    """Whether there has been TCP beside the media, and all of it has ended."""
    ends = [f.active[1] if is_short(f) else f.flow.stop_s for f in cross if f.active is not None]
    return bool(ends) and all(end_s is not None and end_s <= start_s for end_s in ends)


def _phase(
    series: Series,
    link: LinkRecord,
    flows: Sequence[FlowRecord],
    beside: Sequence[FlowRecord],
    everyone: Sequence[FlowRecord],
    start_s: float,
    end_s: float,
) -> Phase:
    """flows: long ones that cross the link. beside: long ones that share another link with them. everyone: all that cross it, short ones, too."""
    half_s = (start_s + end_s) / 2
    media = [f for f in flows if is_measured(f)]
    capacity_bps = _capacity_bps(link, half_s, end_s)
    rates = {f.flow.name: _rate_bps(f, half_s, end_s) for f in flows}
    fair = _fair(series, [*flows, *beside], half_s, end_s)
    share = {name: rate / fair[name] for name, rate in rates.items()}
    media_bps = total(rates[f.flow.name] for f in media)
    available_bps = total(fair[f.flow.name] for f in media)
    total_bps = total(_rate_bps(f, half_s, end_s) for f in everyone)
    timed = [f for f in media if isinstance(f.flow.settings, AlgorithmSettings)]
    delays = [_mean_delay_s(f, half_s, end_s) - _base_delay_s(series, f, half_s, end_s) for f in timed]
    known = [delay for delay in delays if not math.isnan(delay)] or [_waiting_s(link, half_s, end_s)]
    sent = total(f.sent.over(half_s, end_s) for f in media)
    tcp_bps = [rates[f.flow.name] for f in flows if _is_tcp(f) and not is_measured(f)]
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
        max(0.0, total(f.lost.over(half_s, end_s) for f in media)) / sent if sent else math.nan,
        {f.flow.name: rates[f.flow.name] for f in media},
        jain_index([rates[f.flow.name] for f in media]),
        _converged_s(media, start_s, end_s),
        {f.flow.name: share[f.flow.name] for f in media},
        {f.flow.name: share[f.flow.name] for f in flows if _is_tcp(f) and not is_measured(f)},
        float(_rates(media, _intervals(half_s, end_s, SCALES_S[-1])).min()),
        {f"{scale_s:g} s": ratio_of_flows(media, half_s, end_s, scale_s) for scale_s in SCALES_S},
        media_bps / len(media) / fmean(tcp_bps) if tcp_bps and min(tcp_bps) > 0 else math.nan,
        sum(swings(f.sent_bytes, half_s, end_s) for f in media),
        _feedback(series, link, everyone, half_s, end_s),
        synchronization(media, half_s, end_s),
        _is_over([f for f in everyone if _is_tcp(f) and not is_measured(f)], start_s),
    )


def phases(series: Series) -> list[Phase]:
    """Of each bottleneck of media flows, in the order of time."""
    found: list[Phase] = []
    duration_s = series.experiment.duration_s
    routes = {f.flow.name: _trunks(series, f) for f in series.flows}
    for key in _bottlenecks(series):
        crossing = [f for f in series.flows if key in routes[f.flow.name]]
        near = {other for f in crossing for other in routes[f.flow.name]}
        long = [f for f in series.flows if _is_long(f) and near.intersection(routes[f.flow.name])]
        # A trace changes all the time: its means of each interval are no changes. But it may be of a medium that all flows share.
        traced = series.links[key].port.trace is not None
        rates = [] if traced else series.links[key].rates_bps
        edges = {0.0, duration_s, *(t for (_, before), (t, after) in itertools.pairwise(rates) if not math.isclose(before, after))}
        edges |= {t for f in (filter(_is_long, series.flows) if traced else long) for t in (f.flow.start_s, f.flow.stop_s) if t is not None}
        ends = [f.active[1] for f in crossing if is_short(f) and f.active is not None]
        edges |= {max(ends)} if ends and not any(f.flow.name.startswith("tested") for f in crossing) else set()
        times = sorted(t for t in edges if 0 <= t <= duration_s)
        for start_s, end_s in itertools.pairwise(times):
            active = [f for f in long if f.flow.start_s <= start_s and (f.flow.stop_s is None or f.flow.stop_s >= end_s)]
            here = [f for f in active if key in routes[f.flow.name]]
            if end_s - start_s >= SHORTEST_PHASE_S and any(map(is_measured, here)):
                beside = [f for f in active if key not in routes[f.flow.name]]
                found.append(_phase(series, series.links[key], here, beside, crossing, start_s, end_s))
    return sorted(found, key=lambda phase: (phase.start_s, phase.link))


def flow_figures(series: Series, record: FlowRecord) -> dict[str, Any]:
    """The metrics of one flow over its own time [RFC 8868 sec 3]: rates in bit/s (sending and receiving count IPv4 datagrams, goodput payload; of the sending rate in
    200 ms also the least, the most and the standard deviation), packets, bytes, loss as a fraction, one-way delay in seconds (mean; percentile and maximum of means
    over 200 ms), and how much the rate received in 200 ms varies: standard deviation over mean. completion_s: of a TCP flow that ends with its file
    [RFC 7928 sec 2.1]; startup_s: of a TCP flow, until its first data left [RFC 7928 sec 2.2]. loss_gap_mean_s, loss_gap_most_s: between consecutive losses [RFC 7928 sec 2.3]."""
    if record.active is None:
        return {"name": record.flow.name, "kind": record.flow.kind, "received_packets": 0}
    start_s, end_s = record.active[0], min(record.active[1], series.experiment.duration_s)
    edges = np.arange(start_s, end_s + 1e-9, BIN_S)
    packets, delays = np.diff(record.packets.at(edges)), np.diff(record.delay.at(edges))
    means = delays[packets > 0] / packets[packets > 0]
    sent, seconds = record.sent.over(start_s, end_s), end_s - start_s
    has_delay = len(means) > 0 and isinstance(record.flow.settings, AlgorithmSettings)
    sending = 8 * np.diff(record.sent_bytes.at(edges)) / BIN_S
    some = len(sending) > 0
    return {
        "name": record.flow.name,
        "kind": record.flow.kind,
        "sending_bps": 8 * record.sent_bytes.over(start_s, end_s) / seconds,
        "sending_least_bps": float(sending.min()) if some else math.nan,
        "sending_most_bps": float(sending.max()) if some else math.nan,
        "sending_deviation_bps": float(sending.std()) if some else math.nan,
        "receiving_bps": _rate_bps(record, start_s, end_s),
        "goodput_bps": 8 * record.goodput.over(start_s, end_s) / seconds,
        "sent_packets": round(sent),
        "received_packets": round(record.packets.over(start_s, end_s)),
        "sent_bytes": record.sent_bytes.over(start_s, end_s),
        "received_bytes": record.received.over(start_s, end_s),
        "loss": max(0.0, record.lost.over(start_s, end_s)) / sent if sent else math.nan,
        "delay_mean_s": _mean_delay_s(record, start_s, end_s) if has_delay else math.nan,
        "delay_95_s": float(np.percentile(means, DELAY_PERCENTILE)) if has_delay else math.nan,
        "delay_max_s": float(means.max()) if has_delay else math.nan,
        "variation": coefficient_of_variation(record, (start_s, end_s), BIN_S),
        "completion_s": record.completion_s,
        "startup_s": record.startup_s,
        **dict(zip(("loss_gap_mean_s", "loss_gap_most_s"), loss_gaps_s(record.lost))),
    }


def loss_gaps_s(lost: Steps) -> tuple[float, float]:
    """Mean and longest time between consecutive losses, as far apart as the records of them tell; not a number with fewer than two losses."""
    more = np.diff(lost.values, prepend=0.0) if len(lost.values) else np.zeros(0)
    (at,) = np.nonzero(more > 0)
    losses = float(more[at].sum())
    if losses < 2:
        return math.nan, math.nan
    times = lost.times_s[at]
    return float(times[-1] - times[0]) / (losses - 1), float(np.diff(times).max()) if len(times) > 1 else 0.0


def frame_figures(shown: Sequence[Frame] | None) -> dict[str, Any]:
    """Of a flow of video: frames that its encoder produced and that arrived whole, and their delay in seconds from the encoder to the arrival of the last packet."""
    if shown is None:
        return {}
    delays = [frame.delay_s for frame in shown if frame.delay_s is not None]
    return {
        "frames": len(shown),
        "whole_frames": len(delays),
        "frame_delay_mean_s": fmean(delays) if delays else math.nan,
        "frame_delay_95_s": float(np.percentile(delays, DELAY_PERCENTILE)) if delays else math.nan,
        "frame_delay_max_s": max(delays, default=math.nan),
    }


def of_reference(found: Sequence[Phase], reference: Sequence[Phase]) -> float:
    """Media's rate over that of the same phase in another run, least over the phases that both have."""
    rates = {(phase.link, phase.start_s, phase.end_s): phase.media_bps for phase in reference}
    return min((p.media_bps / rates[key] for p in found if rates.get(key := (p.link, p.start_s, p.end_s), 0.0) > 0), default=math.nan)


def over_reference(found: Sequence[Phase], reference: Sequence[Phase], figure: Callable[[Phase], float]) -> float:
    """How much higher a figure is than in the same phase of another run, most over the phases that both have."""
    others = {(phase.link, phase.start_s, phase.end_s): figure(phase) for phase in reference}
    return max((figure(p) - others[key] for p in found if (key := (p.link, p.start_s, p.end_s)) in others), default=math.nan)


def priority_ratio(found: Sequence[Phase], priorities: Mapping[str, float]) -> float:
    """Mean rate of the flows of the highest priority over that of the lowest, in the last phase that has all flows of `priorities`."""
    for phase in reversed(found):
        if priorities and priorities.keys() <= phase.rates_bps.keys():
            of = {level: fmean(phase.rates_bps[name] for name in priorities if priorities[name] == level) for level in priorities.values()}
            return of[max(of)] / of[min(of)] if of[min(of)] > 0 else math.inf
    return math.nan


def totals(
    found: Sequence[Phase],
    flows: Sequence[FlowRecord] = (),
    reference: Sequence[Phase] = (),
    priorities: Mapping[str, float] = MappingProxyType({}),
) -> dict[str, float]:
    """The worst over phases of each figure that an expectation may name, and of `flows` the longest completion; `nan` where no phase has it."""

    def least(values: Sequence[float]) -> float:
        return min(values, default=math.nan) if not any(map(math.isnan, values)) else math.nan

    of_fair = [share for phase in found for share in phase.shares.values()]
    several = [phase for phase in found if len(phase.shares) > 1]
    files = [math.inf if math.isnan(f.completion_s) else f.completion_s for f in flows if is_short(f) and f.flow.name.startswith("tested")]
    return {
        "least_use": least([phase.use for phase in found]),
        "least_total_use": least([phase.total_use for phase in found]),
        "most_queueing_s": -least([-phase.queueing_s for phase in found]),
        "most_loss": -least([-phase.loss for phase in found]),
        "lowest_share": least(of_fair),
        "highest_share": -least([-share for share in of_fair]),
        "lowest_tcp_share": least([share for phase in found for share in phase.tcp_shares.values()]),
        "longest_convergence_s": -least([-phase.convergence_s for phase in found]),
        "lowest_media_bps": least([phase.lowest_bps for phase in found]),
        "use_after_cross": least([phase.use for phase in found if phase.after_cross]),
        **{f"lowest_ratio_{s:g}s": least([phase.ratios[f"{s:g} s"] for phase in several]) for s in SCALES_S},
        "lowest_cross_ratio": least([phase.cross_ratio for phase in found if phase.tcp_shares]),
        "highest_cross_ratio": -least([-phase.cross_ratio for phase in found if phase.tcp_shares]),
        "most_swings": -least([-phase.swings for phase in found]),
        "most_feedback": -least([-phase.feedback for phase in found]),
        "least_of_reference": of_reference(found, reference),
        "least_of_reference_beside_tcp": of_reference([phase for phase in found if phase.tcp_shares], reference),
        "queueing_over_reference_s": over_reference(found, reference, lambda phase: phase.queueing_s),
        "loss_over_reference": over_reference(found, reference, lambda phase: phase.loss),
        "priority_ratio": priority_ratio(found, priorities),
        "longest_completion_s": max(files, default=math.nan),
    }
