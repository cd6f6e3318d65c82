"""95% confidence intervals over seeds: of a mean by the bootstrap, of a quotient of two means, of a slope, and of a reference value of an expectation, by Student's t.

A plain percentile bootstrap of few values is too narrow. Hesterberg's expanded percentiles [T. Hesterberg, What Teachers Should Know About
the Bootstrap, The American Statistician 69 (4), 2015, section 4.3] widen it so that it is as long as Student's interval for normal values. For
up to 8 values every resample is counted, so nothing is drawn at random; for more, the generator's seed is their number. No interval of the
bootstrap leaves the range of its values: of 5 values from a symmetric distribution, one in 16 lie all on one side of the mean."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from functools import cache, lru_cache

import numpy as np

from fairlane.arithmetic import exp, log, square, total

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


def student(values: Sequence[float]) -> float:
    """Half the width of Student's interval of the mean; 0 for a single value. For verdicts on few seeds: it may leave the range of its values."""
    if len(values) < 2:
        return 0.0
    return _t95(len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))


def slope(x: Sequence[float] | np.ndarray, y: Sequence[float] | np.ndarray) -> tuple[float, float]:
    """The slope of y over x by least squares, and half the width of its interval; 0 and infinity for fewer than three points."""
    if len(x) < 3:
        return 0.0, math.inf
    fitted = statistics.linear_regression(x, y)
    rest = total(square(b - fitted.slope * a - fitted.intercept) for a, b in zip(x, y))
    middle = statistics.fmean(x)
    spread = total(square(a - middle) for a in x)
    return float(fitted.slope), float(_t95(len(x) - 2) * math.sqrt(rest / (len(x) - 2) / spread))


_MOST_EXACT = 8
_RESAMPLES = 10_000


def of_mean(values: Sequence[float]) -> tuple[float, float] | None:
    """Ends of the interval of the mean; None for fewer than two values."""
    return _of_mean(tuple(sorted(values))) if len(values) > 1 else None


@lru_cache(maxsize=100_000)  # tables, page and figures ask for the same
def _of_mean(values: tuple[float, ...]) -> tuple[float, float]:
    n = len(values)
    tail = statistics.NormalDist().cdf(-math.sqrt(n / (n - 1)) * _t95(n - 1))
    shares, weights = _resamples(n)
    # Equal values give that value, without the error of its sums.
    means = np.clip((shares * np.array(values, dtype=float)).sum(axis=1), values[0], values[-1])
    order = np.argsort(means, kind="stable")
    below = np.cumsum(weights[order])
    first = int(np.searchsorted(below, tail))
    last = int(np.searchsorted(below, 1 - tail))
    return float(means[order[first]]), float(means[order[min(last, len(order) - 1)]])


@cache
def _resamples(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Resamples of n values: the share of each value in each, and the probability of each."""
    if n > _MOST_EXACT:
        counts = np.random.Generator(np.random.PCG64(n)).multinomial(n, [1 / n] * n, size=_RESAMPLES)
        return counts / n, np.full(_RESAMPLES, 1 / _RESAMPLES)
    counts = np.array([[chosen.count(i) for i in range(n)] for chosen in itertools.combinations_with_replacement(range(n), n)])
    ways = [math.factorial(n) / math.prod(math.factorial(c) for c in row) for row in counts]
    return counts / n, np.array(ways) / n**n


def quotient(above: Sequence[float], below: Sequence[float]) -> tuple[float, float] | None:
    """Ends of the interval of the quotient of two geometric means: of the difference of the means of logarithms, whose variances may differ
    (Welch 1947). None where a value is not positive, or where a side has a single value."""
    if min(len(above), len(below)) < 2 or not all(v > 0 for v in (*above, *below)):
        return None
    logs = [[log(v) for v in side] for side in (above, below)]
    errors = [statistics.variance(side) / len(side) for side in logs]
    middle = statistics.fmean(logs[0]) - statistics.fmean(logs[1])
    if total(errors) == 0:
        return exp(middle), exp(middle)
    freedom = square(total(errors)) / total(square(e) / (len(side) - 1) for e, side in zip(errors, logs))
    half = _t95(freedom) * math.sqrt(total(errors))
    return exp(middle - half), exp(middle + half)
