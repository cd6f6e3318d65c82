"""95% confidence intervals over seeds, by Student's t."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

# Student's t, two-sided 95%, by degrees of freedom (1 to 30).
_T95 = (
    12.706,
    4.303,
    3.182,
    2.776,
    2.571,
    2.447,
    2.365,
    2.306,
    2.262,
    2.228,
    2.201,
    2.179,
    2.160,
    2.145,
    2.131,
    2.120,
    2.110,
    2.101,
    2.093,
    2.086,
    2.080,
    2.074,
    2.069,
    2.064,
    2.060,
    2.056,
    2.052,
    2.048,
    2.045,
    2.042,
)


def _t95(freedom: float) -> float:
    """Rounded down to whole degrees of freedom (but for the error of their computation), at least 1: the wider interval."""
    return _T95[min(max(1, math.floor(freedom + 1e-6)), len(_T95)) - 1]


def mean(values: Sequence[float]) -> float:
    """Half the width of the interval of the mean; 0 for a single value."""
    if len(values) < 2:
        return 0.0
    return _t95(len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))


def quotient(above: Sequence[float], below: Sequence[float]) -> tuple[float, float] | None:
    """Ends of the interval of the quotient of two geometric means: of the difference of the means of logarithms, whose variances may differ
    (Welch 1947). None where a value is not positive, or where a side has a single value."""
    if min(len(above), len(below)) < 2 or not all(v > 0 for v in (*above, *below)):
        return None
    logs = [[math.log(v) for v in side] for side in (above, below)]
    errors = [statistics.variance(side) / len(side) for side in logs]
    middle = statistics.fmean(logs[0]) - statistics.fmean(logs[1])
    if sum(errors) == 0:
        return math.exp(middle), math.exp(middle)
    freedom = sum(errors) ** 2 / sum(e**2 / (len(side) - 1) for e, side in zip(errors, logs))
    half = _t95(freedom) * math.sqrt(sum(errors))
    return math.exp(middle - half), math.exp(middle + half)
