"""Lab 9: the measures of SSVP's figure 3, and their values predicted by the paper's equations."""

from __future__ import annotations

import math

import numpy as np


def cov(rates: np.ndarray) -> float:
    """Coefficient of variation of one flow's rates over time (SSVP section V.B). rates: one number for each period."""
    return float(np.sqrt(np.mean(rates**2) - np.mean(rates) ** 2) / np.mean(rates))


def smoothness(rates: np.ndarray) -> float:
    """ "The average of CoVs of all flows". rates: a row for each flow, a column for each period."""
    return float(np.mean([cov(flow) for flow in rates]))


def beta(buffer_packets: float, product_packets: float) -> float:
    """What SSVP-ADP multiplies its rate by after a loss (equation 17). product_packets: bandwidth times round trip without queue."""
    return 1 / (1 + buffer_packets / product_packets)


def sawtooth_cov(beta: float) -> float:
    """The CoV of a rate that climbs evenly from beta to 1, falls to beta at once, and climbs again."""
    return (1 - beta) / (math.sqrt(3) * (1 + beta))
