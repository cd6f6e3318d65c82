"""The controller's records of ports, columns of raw/controller.csv: which there are, and which of them are totals, is said here alone."""

from __future__ import annotations

import dataclasses
import typing
from dataclasses import dataclass
from typing import Annotated

Total = Annotated[int, "total"]
"""A counter of the switch: it begins at 0 again where the switch is restarted."""


@dataclass
class PortRecord:
    """One port's counts in one interval, and its settings, which a plain switch's port does not get. Counters are totals since the
    switch started."""

    time_s: float
    """The end of the interval; the caller sets it to the instant from which the values are in force."""
    switch: str
    port: int
    epoch: int
    connections: int
    utilisation_ppm: int
    fair_rate_bps: int
    transmitted_packets: Total
    transmitted_bytes: Total
    red_early_drops: Total
    red_forced_drops: Total


@dataclass
class MarkedPortRecord(PortRecord):
    """For a program that can mark, or that has CoDel, PIE, PI2, DualPI2 or a step. aqm_drops: by CoDel, PIE, PI2 or DualPI2, whichever the port has. marks: packets marked
    instead of dropped, except by a full queue or RED's maximum. low_latency_marks: of them, those in DualPI2's low-latency queue. overload: packets
    that DualPI2 decided on in overload."""

    aqm_drops: Total
    marks: Total
    low_latency_marks: Total
    overload: Total


@dataclass
class ProtectedPortRecord(PortRecord):
    """For a program with flow protection. share_bps: F. within_share_bytes: of packets within the shares. held_packets,
    held_bytes: dropped packets of connections limited to their shares."""

    share_bps: int
    within_share_bytes: Total
    held_packets: Total
    held_bytes: Total


@dataclass
class MarkedProtectedPortRecord(ProtectedPortRecord, MarkedPortRecord):
    """For a program with both."""


def totals(kind: type[PortRecord] = MarkedProtectedPortRecord) -> frozenset[str]:
    """The columns that are totals; without an argument, of all kinds of record."""
    hints = typing.get_type_hints(kind, include_extras=True)
    return frozenset(field.name for field in dataclasses.fields(kind) if hints[field.name] == Total)
