"""The controller's records of ports, the columns of raw/controller.csv, and which of them are totals. Schemes add their own."""

from __future__ import annotations

import dataclasses
import functools
import typing
from dataclasses import dataclass
from typing import Annotated

from fairlane.schemes import registry
from fairlane.schemes.base import PortLoop

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


def _own_columns() -> frozenset[str]:
    of_loops = (
        column.name for scheme in registry.SCHEMES.values() if scheme.loop and registry.is_own(scheme) for column in scheme.loop.columns
    )
    return frozenset((*(field.name for field in dataclasses.fields(PortRecord)), *of_loops))


OWN_COLUMNS = _own_columns()
"""Those of the controller and of Fairlane's own control loops, which no scheme's counters can be."""


@functools.cache
def kind(columns: tuple[str, ...], loops: tuple[type[PortLoop], ...] = ()) -> type[PortRecord]:
    """The record of a program whose schemes count these columns (`counted_columns`), and have these control loops."""
    always = {field.name for field in dataclasses.fields(PortRecord)}
    of_loops = [(c.name, Total if c.total else int) for loop in loops for c in loop.columns if c.name not in always]
    made = dataclasses.make_dataclass(PortRecord.__name__, [*((column, Total) for column in columns), *of_loops], bases=(PortRecord,))
    made.__doc__ = "A port's counts with its schemes' columns."
    return made


SHARED = ("aqm_drops", "marks")
"""Columns that several schemes have: packets that one dropped, whichever the port has, and packets marked instead of dropped, except by a full queue."""


def counted_columns(standing: bool = False) -> tuple[str, ...]:
    """The columns of schemes. standing: of those in every program alone, without the columns that they share with others."""
    own = [(scheme.standing, counter.column) for scheme in registry.SCHEMES.values() for counter in scheme.counters]
    always = [column for stands, column in own if stands and column not in SHARED]
    return tuple(dict.fromkeys(always if standing else (*always, *SHARED, *(column for _, column in own))))


def loops() -> tuple[type[PortLoop], ...]:
    """Of all schemes."""
    return tuple(scheme.loop for scheme in registry.SCHEMES.values() if scheme.loop is not None)


def loop_drops() -> dict[str, str]:
    """The columns of control loops that count drops, and the causes' names in results."""
    return {column.name: column.cause for loop in loops() for column in loop.columns if column.cause}


def totals(of: type[PortRecord] | None = None) -> frozenset[str]:
    """The columns that are totals; without an argument, of all kinds of record."""
    of = of or kind(counted_columns(), loops())
    hints = typing.get_type_hints(of, include_extras=True)
    return frozenset(field.name for field in dataclasses.fields(of) if hints[field.name] == Total)
