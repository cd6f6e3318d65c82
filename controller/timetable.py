"""The schedule of the control plane: one timetable for every clock.

Observation intervals end at whole multiples of their length since the clock's zero. Two steps belong to each end:

    Begin    every switch gets the epoch of the interval that begins, and its port counters are read
    Finish   a grace later, when the digests of the ended interval have come: fair rates are written

The owner of a clock requests the next step, waits until it is due, and does it: `fairlane.controller.runner` on the wall clock,
`fairlane.fabrics.virtual_control` in virtual time.
"""

from __future__ import annotations

from dataclasses import dataclass

NS = 1_000_000_000


@dataclass(frozen=True)
class Begin:
    """An interval begins. at_ns: when this is due, on the timetable's clock. epoch: number of the interval."""

    at_ns: int
    epoch: int


@dataclass(frozen=True)
class Finish:
    """An interval has ended, and its digests have come. epoch: number of the ended interval."""

    at_ns: int
    epoch: int


class Timetable:
    """interval_s: length of an observation interval. grace_s: above 0 and below it."""

    def __init__(self, interval_s: float, grace_s: float) -> None:
        self._interval_ns = round(interval_s * NS)
        self._grace_ns = round(grace_s * NS)
        self._finish: Finish | None = None

    def next(self, now_ns: int) -> Begin | Finish:
        """The step after the one that this gave last. Ends of intervals that have passed by `now_ns` are left out."""
        finish, self._finish = self._finish, None
        if finish is not None:
            return finish
        number = now_ns // self._interval_ns + 1
        at_ns = number * self._interval_ns
        self._finish = Finish(at_ns + self._grace_ns, _epoch(number - 1))
        return Begin(at_ns, _epoch(number))


def _epoch(number: int) -> int:
    """The epoch of an interval that is counted from 0: never 0, which tells a switch that nobody counts; 32 bits."""
    return number % 0xFFFFFFFE + 1
