"""Lab 9: the measures of SSVP's figure 3, and their values predicted by the paper's equations."""

from __future__ import annotations

# BEGIN SOLUTION
import math
import statistics

# SKELETON
# import math
# END SOLUTION
from collections.abc import Sequence


def cov(rates: Sequence[float]) -> float:
    """Coefficient of variation of one flow's rates over time [SSVP sec V.B]. rates: one number for each period."""
    # BEGIN SOLUTION
    mean = statistics.fmean(rates)
    return math.sqrt(statistics.fmean(rate**2 for rate in rates) - mean**2) / mean
    # SKELETON
    # return 0.0  # TODO 1
    # END SOLUTION


def smoothness(rates: Sequence[Sequence[float]]) -> float:
    """ "The average of CoVs of all flows". rates: a row for each flow, a column for each period."""
    # BEGIN SOLUTION
    return statistics.fmean(cov(flow) for flow in rates)
    # SKELETON
    # return 0.0  # TODO 2
    # END SOLUTION


def beta(buffer_packets: float, product_packets: float) -> float:
    """What SSVP-ADP multiplies its rate by after a loss (equation 17). product_packets: bandwidth times round trip without queue."""
    # BEGIN SOLUTION
    return 1 / (1 + buffer_packets / product_packets)
    # SKELETON
    # return 0.0  # TODO 3
    # END SOLUTION


def sawtooth_cov(beta: float) -> float:
    """The CoV of a rate that climbs evenly from beta to 1, falls to beta at once, and climbs again."""
    # BEGIN SOLUTION
    return (1 - beta) / (math.sqrt(3) * (1 + beta))
    # SKELETON
    # return 0.0  # TODO 4: what are the mean and the standard deviation of a number that is anywhere in [beta, 1] with equal likelihood?
    # END SOLUTION
