"""Goodput and queueing delay of each measured flow in periods of ten least round trips, their distributions, and the ellipse of one against the other [RFC 7928 sec 2.7]."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fairlane.arithmetic import square, total
from fairlane.experiments import paths
from fairlane.results.series import FlowRecord, Series
from fairlane.suites import media

ROUND_TRIPS = 10
"""K: measurements are of so many least round trips [RFC 7928 sec 2.7]."""
PARTS = tuple(range(0, 101, 5))
"""Of a distribution, in per cent."""


@dataclass(frozen=True)
class Periods:
    """Of one flow. period_s: of each measurement. goodput_bps, queueing_s: one value each; a period in which no packet came has no queueing, not a number."""

    flow: str
    period_s: float
    goodput_bps: np.ndarray
    queueing_s: np.ndarray

    def distribution(self) -> Iterator[tuple[int, float, float]]:
        """(per cent, goodput, queueing) that so much of the periods have at most."""
        known = self.queueing_s[~np.isnan(self.queueing_s)]
        for part in PARTS:
            yield part, float(np.percentile(self.goodput_bps, part)), float(np.percentile(known, part)) if len(known) else math.nan


@dataclass(frozen=True)
class Ellipse:
    """One standard deviation of the Gaussian of two dimensions that is most likely for some points, around their medians. width, height: whole axes; degrees: of the
    width from the x-axis, counter-clockwise."""

    x: float
    y: float
    width: float
    height: float
    degrees: float


def of(series: Series) -> list[Periods]:
    """Of each measured flow that lasted for two periods."""
    found = [_periods(series, f) for f in series.flows if media.is_measured(f) and f.active is not None]
    return [periods for periods in found if periods is not None]


def least_round_trip_s(series: Series, record: FlowRecord) -> float:
    """Propagation both ways."""
    ways = (paths.there(series.experiment, record.flow), paths.back(series.experiment, record.flow))
    return total(port.link.delay_s for way in ways for port in way)


def _periods(series: Series, record: FlowRecord) -> Periods | None:
    assert record.active is not None
    period_s = max(media.BIN_S, ROUND_TRIPS * least_round_trip_s(series, record))
    start_s, end_s = record.active[0], min(record.active[1], series.experiment.duration_s)
    edges = start_s + period_s * np.arange(math.floor((end_s - start_s) / period_s + 1e-9) + 1)
    if len(edges) < 3:
        return None
    waits = [media.queueing_s(series, record, a, b) for a, b in zip(edges[:-1].tolist(), edges[1:].tolist())]
    return Periods(record.flow.name, period_s, 8 * np.diff(record.goodput.at(edges)) / period_s, np.array(waits))


def ellipse(x: np.ndarray, y: np.ndarray) -> Ellipse | None:
    """Of pairs; None for fewer than three."""
    known = ~(np.isnan(x) | np.isnan(y))
    if np.count_nonzero(known) < 3:
        return None
    points = np.array([x[known], y[known]])
    # Most likely: divided by their number, not by one less. Axes and angle of a matrix of two by two, without numpy's linear algebra: it sums in
    # another order on another processor.
    off_x, off_y = (row - row.mean() for row in points)
    xx, xy, yy = (float((a * b).mean()) for a, b in ((off_x, off_x), (off_x, off_y), (off_y, off_y)))
    middle, half = (xx + yy) / 2, math.sqrt(square((xx - yy) / 2) + square(xy))
    degrees = math.degrees(math.atan2(2 * xy, xx - yy)) / 2 % 180
    middle_x, middle_y = np.median(points, axis=1)
    return Ellipse(float(middle_x), float(middle_y), 2 * math.sqrt(middle + half), 2 * math.sqrt(max(0.0, middle - half)), degrees)
