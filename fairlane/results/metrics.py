"""The figures of a run, each a function of its series. `CHECK_METRICS` are those that an experiment's checks may name."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable

from fairlane.arithmetic import total
from fairlane.arrays import np
from fairlane.experiments import paths
from fairlane.results import impairments, metrics_layers, metrics_rtcp, queries, queues
from fairlane.results.figures import CheckResult, Figures, FlowFigures, LinkFigures, mean
from fairlane.results.series import FlowRecord, Series, active_flows
from fairlane.results.shares import ShareTable, group_of
from fairlane.topologies.model import ETHERNET_BYTES

# How long a packet may take beyond propagation and full queues, and the clocks' and processes' own delay (seconds).
_SLACK_S = 0.1


def compute(series: Series, shares: ShareTable | None = None) -> Figures:
    """shares: of the series, where the caller has them."""
    window = series.experiment.window_s
    shares = shares or ShareTable(series)
    flows = [_flow(series, i, shares, window) for i in range(len(series.flows))]
    links = [_link(series, key, window) for key in series.links]
    figures = Figures(window, flows, links, [])
    checks = [CheckResult(c, CHECK_METRICS[c.metric](series, figures)) for c in series.experiment.settings.checks]
    return Figures(window, flows, links, checks, queries.figures(series), impairments.of_window(series), series.wrong_checksums)


def _flow(series: Series, index: int, shares: ShareTable, window: tuple[float, float]) -> FlowFigures:
    record = series.flows[index]
    span = record.active_in(*window)
    if span is None:
        return FlowFigures(
            record.flow.name,
            record.flow.shown_kind,
            math.nan,
            math.nan,
            0,
            0,
            record.completion_s,
            record.slowdown,
            record.one_way,
            record.rtt,
        )
    # A flow that comes after the window's begin or goes before its end is judged by its own time.
    start, end = span
    return FlowFigures(
        record.flow.name,
        record.flow.shown_kind,
        8 * record.goodput.over(start, end) / (end - start),
        shares.mean(record.flow.name, *window),
        round(record.sent.over(start, end)),
        max(0, round(record.lost.over(start, end))),
        record.completion_s,
        record.slowdown,
        record.one_way,
        record.rtt,
    )


def _link(series: Series, key: tuple[str, int], window: tuple[float, float]) -> LinkFigures:
    record = series.links[key]
    start, end = window
    drops: dict[str, int | None] = {cause: count for cause, steps in record.drops.items() if (count := round(steps.over(start, end)))}
    if "tail" not in record.drops:
        drops["tail"] = None
    capacity_bits = record.capacity_bits().over(start, end)
    return LinkFigures(
        record.name,
        capacity_bits / (end - start),
        # Sums of seconds are exact to about 15 digits.
        round(8 * record.transmitted_bytes.over(start, end) / capacity_bits, 12),
        record.queue.over(start, end) / (end - start) if record.queue is not None else math.nan,
        drops,
        None if record.marks is None else round(record.marks.over(start, end)),
        None if record.overload is None else queues.overloads(record.overload),
        record.waits,
    )


def _of_kind(figures: Figures, prefix: str) -> list[FlowFigures]:
    return [f for f in figures.flows if f.kind.startswith(prefix)]


def als_mean_loss_fraction(series: Series, figures: Figures) -> float:
    """Mean over the ALS flows of lost / sent packets."""
    return mean([f.loss_fraction for f in _of_kind(figures, "als") if f.was_active])


def tcp_als_rate_ratio(series: Series, figures: Figures) -> float:
    """Mean goodput of the TCP flows over mean goodput of the ALS flows."""
    tcp, als = (mean([f.goodput_bps for f in _of_kind(figures, kind) if f.was_active]) for kind in ("tcp", "als"))
    return tcp / als if als > 0 else math.nan


def bottleneck_utilisation(series: Series, figures: Figures) -> float:
    """Bits that the bottleneck sent over bits that it could have sent."""
    name = series.bottleneck.name
    return next(link.utilisation for link in figures.links if link.name == name)


def connections_exact_fraction(series: Series, figures: Figures) -> float:
    """The part of the observation intervals, wholly within the run, in which the controller's n_conn at the bottleneck
    is the number of flows that were sending. An interval without a record counts as wrong."""
    interval = series.experiment.settings.control.interval_s
    records = {round(r.interval_end_s / interval, 3): r.connections for r in series.fair_rates[series.experiment.bottleneck]}
    if not records:
        return math.nan
    phase = next(iter(records)) % 1.0
    ends = [
        (phase + k) * interval
        for k in range(1, int(series.experiment.duration_s / interval) + 1)
        if (phase + k) * interval <= series.experiment.duration_s
    ]
    crossing = _crossing(series)
    exact = sum(
        records.get(round(end / interval, 3))
        == len({_connection(f) for f in active_flows(series, end - interval, end) if f.flow.name in crossing})
        for end in ends
    )
    return exact / len(ends) if ends else math.nan


def _connection(record: FlowRecord) -> tuple[str, str]:
    """What counts as one [ALS sec 3.1]: a pair of addresses. All receivers of a layered flow are one."""
    group = group_of(record)
    return (record.flow.sender, record.flow.receiver if group == record.flow.name else group)


def _crossing(series: Series) -> set[str]:
    """Flows whose path has the bottleneck."""
    names = set()
    for record in series.flows:
        path = paths.there(series.experiment, record.flow)
        if series.experiment.bottleneck in {(p.node, p.number) for p in path}:
            names.add(record.flow.name)
    return names


def fair_rate_delay_s(series: Series, figures: Figures) -> float:
    """The longest time from a connection's first packet until the R_f in force at the bottleneck counts it, over the whole run;
    infinite when that never happened."""
    spans = _connected(series)
    starts, ends = sorted(start for start, _ in spans), sorted(end for _, end in spans)
    records = series.fair_rates[series.experiment.bottleneck]
    worst = 0.0
    for start in starts:
        # Those that have come by then, less those that have gone.
        expected = bisect.bisect_right(starts, start) - bisect.bisect_left(ends, start)
        worst = max(worst, next((r.time_s - start for r in records if r.time_s >= start and r.connections >= expected), math.inf))
    return worst if starts else math.nan


def _connected(series: Series) -> list[tuple[float, float]]:
    """When connections over the bottleneck are active. Flows of one pair of hosts that overlap are one."""
    crossing = _crossing(series)
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for record in sorted((f for f in series.flows if f.active is not None and f.flow.name in crossing), key=lambda f: f.active or ()):
        assert record.active is not None
        spans = found.setdefault((record.flow.sender, record.flow.receiver), [])
        if spans and record.active[0] <= spans[-1][1]:
            spans[-1] = spans[-1][0], max(spans[-1][1], record.active[1])
        else:
            spans.append(record.active)
    return [span for spans in found.values() for span in spans]


def desired_rate_within_fair_rate_fraction(series: Series, figures: Figures) -> float:
    """The part of the sender control packets that reached their receivers with R_d at or below the R_f in force at
    each port of the path while the packet was on its way. Switches that are plain at some time are left out."""
    topology = series.experiment.topology
    plain = {*series.experiment.settings.control.plain_switches, *(c.switch for c, _, _ in series.experiment.changes)}
    rates = {
        key: (np.fromiter((r.time_s for r in records), float), np.fromiter((r.rate_bps for r in records), float))
        for key, records in series.fair_rates.items()
    }
    frame_bits = 8 * (ETHERNET_BYTES + max(1500, *(record.flow.settings.packet_bytes for record in series.flows)))
    good = packets = 0
    for record in series.flows:
        path = [p for p in paths.there(series.experiment, record.flow) if p.node in topology.switches and p.node not in plain]
        # The longest that a packet can be under way.
        longest = _SLACK_S + total(p.link.delay_s + (p.link.queue_packets + 1) * frame_bits / p.link.rate_bps for p in path)
        for time_s, desired_bps in record.controls:
            packets += 1
            limits = [_in_force(*rates[p.node, p.number], time_s - longest, time_s) for p in path]
            good += all(desired_bps <= limit for limit in limits)
    return good / packets if packets else math.nan


def _in_force(times_s: np.ndarray, rates_bps: np.ndarray, start_s: float, end_s: float) -> float:
    """The largest R_f that was in force at some time from start_s to end_s; before the first record, anything."""
    first, end = np.searchsorted(times_s, (start_s, end_s), side="right")
    return float(rates_bps[first - 1 : end].max()) if first else math.inf


def _transmission_rate(series: Series, record: FlowRecord, start_s: float, end_s: float) -> float:
    """Time-weighted mean of an ALS flow's sending rate over an interval, in bit/s on the link like the shares: Ethernet's header
    counts, which the sender's own rate leaves out. Before its first record the rate is 0."""
    rates = record.sending_rate
    bits = 0.0
    for (time_s, rate_bps), (until_s, _) in zip(rates, [*rates[1:], (math.inf, 0.0)]):
        bits += rate_bps * max(0.0, min(until_s, end_s) - max(time_s, start_s))
    packet_bytes = record.flow.settings.packet_bytes
    return bits / (end_s - start_s) * (packet_bytes + ETHERNET_BYTES) / packet_bytes


def max_min_share_error(series: Series, figures: Figures) -> float:
    """Over the window, the largest relative distance of an ALS flow's mean transmission rate from its max-min share."""
    shares = ShareTable(series)
    errors = []
    for record in series.flows:
        span, share = record.active_in(*figures.window_s), shares.mean(record.flow.name, *figures.window_s)
        if record.flow.kind == "als" and span is not None and share > 0:
            errors.append(abs(_transmission_rate(series, record, *span) / share - 1))
    return max(errors, default=math.nan)


def max_min_reached_s(series: Series, figures: Figures) -> float:
    """The time from which on every ALS flow's transmission rate, averaged over the following two adaptation intervals, stays within
    5% of its max-min share until the run ends; infinite when the last average is not within it."""
    return _within_max_min_s(series, 0.05)


def max_min_reached_10_percent_s(series: Series, figures: Figures) -> float:
    """The same within 10%."""
    return _within_max_min_s(series, 0.10)


def _within_max_min_s(series: Series, tolerance: float) -> float:
    shares = ShareTable(series)
    als = [r for r in series.flows if r.flow.kind == "als"]
    length = 2 * max((r.flow.algorithm_settings.parameters.adaptation_interval_s for r in als), default=math.nan)
    start = max((r.active[0] for r in als if r.active is not None), default=math.nan)
    since = math.inf
    while start + length <= series.experiment.duration_s:
        at = shares.at(start + length / 2)
        # A flow that has ended has no share, and no rate either.
        there = [r for r in als if r.flow.name in at]
        if not there or any(abs(_transmission_rate(series, r, start, start + length) / at[r.flow.name] - 1) > tolerance for r in there):
            since = math.inf
        else:
            since = min(since, start)
        start += 1.0
    return since


CHECK_METRICS: dict[str, Callable[[Series, Figures], float]] = (
    {
        f.__name__: f
        for f in (
            als_mean_loss_fraction,
            bottleneck_utilisation,
            connections_exact_fraction,
            desired_rate_within_fair_rate_fraction,
            fair_rate_delay_s,
            max_min_reached_10_percent_s,
            max_min_reached_s,
            max_min_share_error,
            tcp_als_rate_ratio,
        )
    }
    | metrics_layers.CHECK_METRICS
    | metrics_rtcp.CHECK_METRICS
)
