"""The controller's records of ports, the columns of raw/controller.csv, and which of them are totals. Schemes add their own."""

from __future__ import annotations

import dataclasses
import functools
import typing
from dataclasses import dataclass
from typing import Annotated

from fairlane.schemes import registry

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


@dataclass
class ProtectedPortRecord(PortRecord):
    """For a program with flow protection. share_bps: F. within_share_bytes: of packets within the shares. held_packets,
    held_bytes: dropped packets of connections limited to their shares."""

    share_bps: int
    within_share_bytes: Total
    held_packets: Total
    held_bytes: Total


OWN_COLUMNS = frozenset(field.name for of in (PortRecord, ProtectedPortRecord) for field in dataclasses.fields(of))
"""Those of the controller, which no scheme's counters can be."""


@functools.cache
def kind(columns: tuple[str, ...], protected: bool = False) -> type[PortRecord]:
    """The record of a program whose schemes count these columns (`counted_columns`). protected: with flow protection."""
    counted = dataclasses.make_dataclass(PortRecord.__name__, [(column, Total) for column in columns], bases=(PortRecord,))
    counted.__doc__ = "A port's counts with its schemes' columns."
    return dataclasses.make_dataclass(ProtectedPortRecord.__name__, [], bases=(ProtectedPortRecord, counted)) if protected else counted


SHARED = ("aqm_drops", "marks")
"""Columns that several schemes have: packets that one dropped, whichever the port has, and packets marked instead of dropped, except by a full queue."""


def counted_columns(standing: bool = False) -> tuple[str, ...]:
    """The columns of schemes. standing: of those in every program alone, without the columns that they share with others."""
    own = [(scheme.standing, counter.column) for scheme in registry.SCHEMES.values() for counter in scheme.counters]
    always = [column for stands, column in own if stands and column not in SHARED]
    return tuple(dict.fromkeys(always if standing else (*always, *SHARED, *(column for _, column in own))))


def totals(of: type[PortRecord] | None = None) -> frozenset[str]:
    """The columns that are totals; without an argument, of all kinds of record."""
    of = of or kind(counted_columns(), True)
    hints = typing.get_type_hints(of, include_extras=True)
    return frozenset(field.name for field in dataclasses.fields(of) if hints[field.name] == Total)
