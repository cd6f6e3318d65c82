"""RTCP of the first flow: how often its receivers report, and how often RFC 3550 allows it.

All figures are over the experiment's window. RTCP's sizes are IPv4 datagrams, as in the rule [RFC 3550 sec 6.2].
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from fairlane.experiments.kinds import AlgorithmSettings
from fairlane.results.figures import Figures
from fairlane.results.series import FlowRecord, Series

RTCP_FRACTION = 0.05
"""RTCP's part of the session bandwidth [RFC 3550 sec 6.2]."""
SENDER_FRACTION = 0.25
"""Senders' part of that, while they are at most this part of the members."""
MIN_INTERVAL_S = 5.0


def rtcp_interval_s(series: Series, figures: Figures) -> float:
    """Mean time between two reports of a receiver: receivers times seconds over reports. Not a number without reports."""
    record, receivers = _session(series)
    if record is None:
        return math.nan
    start, end = series.experiment.window_s
    reports = len(_within(record.reports, start, end))
    return receivers * (end - start) / reports if reports else math.nan


def rtcp_interval_rule_s(series: Series, figures: Figures) -> float:
    """The mean interval that [RFC 3550 sec 6.3.1] gives a receiver, from the members and the mean size of all compounds."""
    record, receivers = _session(series)
    if record is None:
        return math.nan
    window = series.experiment.window_s
    sizes: list[float] = [size for *_, size in (*_within(record.reports, *window), *_within(record.control_bytes, *window))]
    if not sizes:
        return math.nan
    members, senders = receivers + 1, 1
    bandwidth = RTCP_FRACTION * _session_bandwidth_bps(record) / 8
    if senders <= SENDER_FRACTION * members:
        members, bandwidth = receivers, (1 - SENDER_FRACTION) * bandwidth
    return max(MIN_INTERVAL_S, members * (sum(sizes) / len(sizes)) / bandwidth)


def rtcp_interval_over_rule(series: Series, figures: Figures) -> float:
    """1 when receivers report as often as RFC 3550 says."""
    return rtcp_interval_s(series, figures) / rtcp_interval_rule_s(series, figures)


def rtcp_bandwidth_fraction(series: Series, figures: Figures) -> float:
    """All RTCP of the session, over the session bandwidth: 0.05 at most, less where the least interval of 5 s holds it back."""
    record, _ = _session(series)
    if record is None or record.active is None:
        return math.nan
    start, end = series.experiment.window_s
    size: float = sum(x[-1] for x in (*_within(record.reports, start, end), *_within(record.control_bytes, start, end)))
    return 8 * size / (end - start) / _session_bandwidth_bps(record)


def _session(series: Series) -> tuple[FlowRecord | None, int]:
    """The record of the first receiver of the first flow with RTCP, None where there is no such flow, and its number of receivers."""
    record = next((r for r in series.flows if isinstance(r.flow.settings, AlgorithmSettings)), None)
    if record is None:
        return None, 0
    owner = record.flow.name.partition("@")[0]
    return record, sum(r.flow.name.partition("@")[0] == owner for r in series.flows)


def _session_bandwidth_bps(record: FlowRecord) -> float:
    return record.flow.algorithm_settings.maximum_rate_bps


def _within(records: Sequence[tuple[Any, ...]], start_s: float, end_s: float) -> list[tuple[Any, ...]]:
    return [r for r in records if start_s <= r[0] < end_s]


CHECK_METRICS: dict[str, Callable[[Series, Figures], float]] = {
    f.__name__: f for f in (rtcp_bandwidth_fraction, rtcp_interval_over_rule, rtcp_interval_rule_s, rtcp_interval_s)
}
