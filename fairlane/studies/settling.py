"""The time until rates follow a link's change [ALS sec 4.1.2]."""

from __future__ import annotations

import math

from fairlane.results.figures import mean
from fairlane.results.series import FlowRecord, Series
from fairlane.results.shares import ShareTable

SETTLED_AFTER_S = 7.0
"""One RTCP interval and 2 s after a change."""


def _windows(series: Series) -> list[tuple[float, float]]:
    """From when the rates should have followed a change until the next."""
    times = sorted({change.at_s for change, _, _ in series.experiment.changes})
    ends = [*times[1:], series.experiment.duration_s]
    return [(t + SETTLED_AFTER_S, end) for t, end in zip(times, ends) if end > t + SETTLED_AFTER_S]


def _mean_rate(record: FlowRecord, start_s: float, end_s: float) -> float:
    """Time-weighted mean of a sender's allowed rate, bit/s."""
    total = 0.0
    for (at_s, rate_bps), (until_s, _) in zip(record.sending_rate, [*record.sending_rate[1:], (math.inf, 0.0)]):
        total += rate_bps * max(0.0, min(until_s, end_s) - max(at_s, start_s))
    return total / (end_s - start_s)


def _errors(series: Series) -> list[list[float]]:
    """Of each window, and each ALS flow that is active in it: its mean rate over b U_l / n, less 1. Windows without such flows are left out."""
    shares = ShareTable(series)
    flows = [f for f in series.flows if f.flow.kind == "als"]
    target = series.experiment.settings.control.utilisation_target
    found = []
    for window in _windows(series):
        spans = ((f, f.active_in(*window)) for f in flows)
        found.append([_mean_rate(f, *span) / (target * shares.mean(f.flow.name, *window)) - 1 for f, span in spans if span is not None])
    return [errors for errors in found if errors]


def settled_share_error(series: Series) -> float:
    """The largest distance, over changes, of the ALS flows' mean rate from b U_l / n once it should have followed; NaN
    where no change leaves the time."""
    return max((abs(mean(errors)) for errors in _errors(series)), default=math.nan)


def settled_share_error_of_one(series: Series) -> float:
    """The same for the flow that is farthest off."""
    return max((abs(error) for errors in _errors(series) for error in errors), default=math.nan)


OF_RUN = {f.__name__: f for f in (settled_share_error, settled_share_error_of_one)}
"""What measures may name as `run.NAME`, beside the metrics of checks."""
