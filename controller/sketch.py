"""Linear counting: estimates a port's number of connections from the number of slots that they hit (`p4src/connection_sketch.p4`).

Whang, Vander-Zanden, Taylor: A linear-time probabilistic counting algorithm for database applications. ACM Transactions on Database
Systems 15(2), 1990, pages 208-229. Equations below are of its section 3.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from fairlane.arithmetic import log, square


def slots_of_each(total: int, ports: int) -> int:
    """Slots that one of `ports` ports gets of `total`: a power of two, for the data plane masks. ValueError when there are too few."""
    if ports < 1 or total // ports < 2:
        raise ValueError(f"{total} slots for {ports} ports: at least two slots for each port are needed")
    return 1 << ((total // ports).bit_length() - 1)


def estimate(used: int, slots: int) -> float:
    """Connections that hit `used` of `slots` slots: n = -m ln(V), V the part not hit [Whang eq 1]. When no slot is left, n is
    the value for half a slot left: more than m ln m; the sketch gives no better answer."""
    if not 0 <= used <= slots:
        raise ValueError(f"{used} of {slots} slots")
    return -slots * log(max(slots - used, 0.5) / slots)


def standard_error(connections: float, slots: int) -> float:
    """Standard deviation of the estimate over the number itself [Whang eq 5]: sqrt(m (e^t - t - 1)) / n, t = n / m. 0 for none."""
    if connections <= 0:
        return 0.0
    load = connections / slots
    # For small loads, rounding would lose the difference itself.
    excess = load * load / 2 if load < 1e-4 else math.expm1(load) - load
    return math.sqrt(slots * excess) / connections


def bias(connections: float, slots: int) -> float:
    """Mean of the estimate over the number itself, less one [Whang eq 4]: (e^t - t - 1) / 2n."""
    return square(standard_error(connections, slots)) * connections / (2 * slots)


MOST_POISSON = 10.0
"""From so many shared slots an interval on, three standard errors tell what there is to tell."""
BEYOND = 0.0027
"""Probability that a normal variable is more than three standard deviations off its mean. Of few connections hardly any interval finds more
than there are, so that all of it is on one side."""


def worst_error(connections: int, slots: int) -> int:
    """Largest error of the rounded estimate of one interval, in connections, in all but about three of 1,000 intervals.

    Three standard errors with the bias [Whang eq 4, 5], and rounding. For few connections these are too small: the number that find their slot hit
    has a Poisson distribution with mean n^2 / 2m. With 100 on 2^20 slots none does in 209 intervals of 210, and in the other one a whole connection
    is missing, where three standard errors are 0.2 connections."""
    if connections <= 0:
        return 0
    normal = math.floor(3 * math.hypot(standard_error(connections, slots), bias(connections, slots)) * connections + 0.5)
    mean = connections * connections / (2 * slots)
    if mean > MOST_POISSON:
        return normal
    most, term, beyond = 0, math.exp(-mean), -math.expm1(-mean)
    while beyond > BEYOND:
        most += 1
        term *= mean / most
        beyond -= term
    # The estimate adds the mean to the slots that it sees.
    return max(normal, math.ceil(most - mean))


class SketchCounter:
    """Estimates of one switch's ports from the counter `filled`, which has a cell of each port for even epochs and one for odd ones."""

    def __init__(self, ports: Iterable[int], total_slots: int) -> None:
        """ports: that are counted; they share the slots evenly. ValueError when there are too many of them."""
        self.ports = tuple(ports)
        self.slots = slots_of_each(total_slots, len(self.ports)) if self.ports else 0
        self._running: int | None = None
        self._ended: tuple[int, dict[int, int]] | None = None
        self._before: dict[int, int] = {}

    def regions(self) -> dict[int, tuple[int, int]]:
        """First slot and mask of each port."""
        return {port: (i * self.slots, self.slots - 1) for i, port in enumerate(self.ports)}

    def cells(self) -> list[int]:
        """What to read of `filled`."""
        return [2 * port + parity for port in self.ports for parity in (0, 1)]

    def begin(self, epoch: int) -> None:
        """The data plane counts this epoch from now on; the reading that follows ends the one before."""
        self._ended = None if self._running is None else (self._running, {})
        self._running = epoch

    def on_reading(self, filled: Mapping[int, int]) -> None:
        """Totals of the cells, read after `begin`."""
        # At the first sight of a cell, its earlier count has no meaning.
        for cell, total in filled.items():
            self._before.setdefault(cell, total)
        if self._ended is None:
            return
        epoch, used = self._ended
        for port in self.ports:
            cell = 2 * port + epoch % 2
            total = filled.get(cell, 0)
            before = self._before.get(cell, 0)
            # A cell that went back belongs to a switch that was restarted: all it shows is new.
            used[port] = total - before if total >= before else total
            self._before[cell] = total

    def forget(self) -> None:
        """The switch has restarted."""
        self._running = self._ended = None
        self._before = {}

    def close(self, epoch: int) -> dict[int, int]:
        """n_conn of each port in that interval, rounded; none when it was not counted from beginning to end."""
        if self._ended is None or self._ended[0] != epoch:
            return {}
        return {port: round(estimate(min(used, self.slots), self.slots)) for port, used in self._ended[1].items()}
