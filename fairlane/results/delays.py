"""Delays of single packets in a run's window: how long they waited in each queue, how long they took from end to end, and round trips.

A run in virtual time measures each packet and keeps a histogram for each queue and end of a flow (`raw/delays.jsonl`): number, sum, least and largest are exact, and a
bin is at most 1/128 of its delays wide, so a percentile is at most 0.4 % wrong. Memory does not grow with the packets.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

from fairlane.fabrics import raw
from fairlane.results.completions import PERCENTILES

NS = 1e9
_BITS = 7
"""A power of two has 2^7 bins (switch/units/src/histogram.rs)."""
FIGURES = ("mean", *(f"p{part}" for part in PERCENTILES))
"""What there is of each kind of delay, in seconds."""


@dataclass(frozen=True)
class Delays:
    """packets: their number. sum_ns, min_ns, max_ns: exact. bins: begin of a bin in ns, and its packets."""

    packets: int = 0
    sum_ns: int = 0
    min_ns: int = 0
    max_ns: int = 0
    bins: Mapping[int, int] = field(default_factory=dict)

    @staticmethod
    def of(record: Mapping[str, Any]) -> Delays:
        return Delays(record["packets"], record["sum_ns"], record["min_ns"], record["max_ns"], dict(record["bins"]))

    @staticmethod
    def together(parts: Iterable[Delays]) -> Delays:
        """Of all their packets."""
        some = [part for part in parts if part.packets]
        if len(some) < 2:
            return some[0] if some else Delays()
        bins: dict[int, int] = {}
        for part in some:
            for begin, count in part.bins.items():
                bins[begin] = bins.get(begin, 0) + count
        return Delays(
            sum(part.packets for part in some),
            sum(part.sum_ns for part in some),
            min(part.min_ns for part in some),
            max(part.max_ns for part in some),
            bins,
        )

    @cached_property
    def _cumulated(self) -> tuple[list[int], list[int]]:
        """Begins of bins, and the packets up to each."""
        begins = sorted(self.bins)
        return begins, list(accumulate(map(self.bins.__getitem__, begins)))

    @property
    def mean_s(self) -> float:
        """Not a number without packets."""
        return self.sum_ns / self.packets / NS if self.packets else math.nan

    def percentile_s(self, part: float) -> float:
        """The delay that `part` percent of the packets do not exceed, at most 0.4 % wrong: the middle of its bin. Not a number without packets."""
        if not self.packets:
            return math.nan
        rank = max(1, math.ceil(part * self.packets / 100))
        begins, until = self._cumulated
        found = begins[bisect.bisect_left(until, rank)]
        width = 1 << max(0, found.bit_length() - 1 - _BITS)
        return min(max(found + (width - 1) / 2, self.min_ns), self.max_ns) / NS

    def figure(self, name: str) -> float:
        """One of `FIGURES`, in seconds."""
        return self.mean_s if name == "mean" else self.percentile_s(float(name[1:]))

    def figures(self) -> dict[str, float]:
        """All of `FIGURES`, and "max", in seconds; empty without packets."""
        return {**{name: self.figure(name) for name in FIGURES}, "max": self.max_ns / NS} if self.packets else {}


NO_DELAYS = Delays()


@dataclass(frozen=True)
class Measured:
    """Of a run. waits: by switch, port number and queue. one_way: by flow and receiving host. round_trips: by flow."""

    waits: Mapping[tuple[str, int], Mapping[int, Delays]] = field(default_factory=dict)
    one_way: Mapping[tuple[str, str], Delays] = field(default_factory=dict)
    round_trips: Mapping[str, Delays] = field(default_factory=dict)


def read(folder: Path) -> Measured:
    """Nothing where nobody measured, as on Mininet."""
    waits: dict[tuple[str, int], dict[int, Delays]] = {}
    one_way, round_trips = {}, {}
    for record in raw.delays(folder):
        delays = Delays.of(record)
        if record["of"] == "wait":
            waits.setdefault((record["switch"], record["port"]), {})[record["queue"]] = delays
        elif record["of"] == "one_way":
            one_way[record["flow"], record["receiver"]] = delays
        else:
            round_trips[record["flow"]] = delays
    return Measured(waits, one_way, round_trips)
