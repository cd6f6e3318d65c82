"""Lab 9: the measures of SSVP's figure 3, and their values predicted by the paper's equations."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence


def cov(rates: Sequence[float]) -> float:
    """Coefficient of variation of one flow's rates over time [SSVP sec V.B]. rates: one number for each period."""
    mean = statistics.fmean(rates)
    return math.sqrt(statistics.fmean(rate**2 for rate in rates) - mean**2) / mean


def smoothness(rates: Sequence[Sequence[float]]) -> float:
    """ "The average of CoVs of all flows". rates: a row for each flow, a column for each period."""
    return statistics.fmean(cov(flow) for flow in rates)


def beta(buffer_packets: float, product_packets: float) -> float:
    """What SSVP-ADP multiplies its rate by after a loss (equation 17). product_packets: bandwidth times round trip without queue."""
    return 1 / (1 + buffer_packets / product_packets)


def sawtooth_cov(beta: float) -> float:
    """The CoV of a rate that climbs evenly from beta to 1, falls to beta at once, and climbs again."""
    return (1 - beta) / (math.sqrt(3) * (1 + beta))
