"""The schedule of the control plane: one for every clock.

Observation intervals end at whole multiples of their length since the clock's zero (`fairlane.controller.plane.engine`). As one begins, every
switch gets its epoch, and the port counters are read. A grace later, when the digests of the ended interval have come, fair rates are written
(`fairlane.controller.als`).
"""

from __future__ import annotations

NS = 1_000_000_000


def epoch(number: int) -> int:
    """The epoch of an interval that is counted from 0: never 0, which tells a switch that nobody counts; 32 bits."""
    return number % 0xFFFFFFFE + 1
