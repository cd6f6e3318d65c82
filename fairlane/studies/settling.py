"""How soon rates follow a link that changes [ALS sec 4.1.2]."""

from __future__ import annotations

import math

import numpy as np

from fairlane.results.series import FlowRecord, Series, ShareTable

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


def _errors(series: Series) -> np.ndarray:
    """Of each window and each ALS flow: its mean rate over b U_l / n, less 1."""
    shares = ShareTable(series)
    flows = [f for f in series.flows if f.flow.kind == "als"]
    target = series.experiment.settings.control.utilisation_target
    return np.array([[_mean_rate(f, a, b) / (target * shares.mean(f.flow.name, a, b)) - 1 for f in flows] for a, b in _windows(series)])


def settled_share_error(series: Series) -> float:
    """The largest distance, over changes, of the ALS flows' mean rate from b U_l / n once it should have followed; NaN
    where no change leaves the time."""
    errors = _errors(series)
    return float(np.abs(errors.mean(axis=1)).max()) if errors.size else math.nan


def settled_share_error_of_one(series: Series) -> float:
    """The same for the flow that is farthest off."""
    errors = _errors(series)
    return float(np.abs(errors).max()) if errors.size else math.nan


OF_RUN = {f.__name__: f for f in (settled_share_error, settled_share_error_of_one)}
"""What measures may name as `run.NAME`, beside the metrics of checks."""
