"""At a receiver: numbers that were skipped, until so many later packets have come that theirs are lost (RFC 5348 section 5.1). Pure.

The rules are those of `Gaps` in `switch/virtual/src/flow/gaps.rs`.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace

MAX_DISTANCE_PACKETS = 100
"""Packets that come by more numbers late are of a source that was started again (RFC 3550 appendix A.1): none fills a hole of before."""


@dataclass(frozen=True, slots=True)
class Missing:
    """Packets that did not come."""

    first: int
    last: int
    before_s: float
    """When the packet before them came."""
    after_s: float
    """When the first packet after them came."""

    def nominal_s(self, number: int) -> float:
        """When packet `number` of these would have come (RFC 5348 section 5.2)."""
        return self.before_s + (self.after_s - self.before_s) * (number - self.first + 1) / (self.last - self.first + 2)


class Gaps:
    """Holes in the numbers of one source."""

    __slots__ = ("distance_packets", "_holes")

    def __init__(self, distance_packets: int) -> None:
        """`distance_packets`: packets are lost when so many numbered above them have come; 1 to MAX_DISTANCE_PACKETS count."""
        self.distance_packets = min(max(1, distance_packets), MAX_DISTANCE_PACKETS)
        self._holes: deque[tuple[Missing, list[int]]] = deque()  # not yet lost, ascending; numbers that came after each

    def clear(self) -> None:
        """Another source: what the one before left out does not matter."""
        self._holes.clear()

    def arrived(self, number: int, expected: int, before_s: float, now_s: float) -> list[Missing]:
        """Packet `number` came; all that are lost now. `expected`: the number after the highest before it. `before_s`: when the packet
        before it came."""
        holes = self._holes
        if number > expected:
            holes.append((Missing(expected, number - 1, before_s, now_s), []))
        if not holes:
            return []
        if number < expected:
            self._fill(number)
        lost = []
        for missing, later in holes:
            if missing.last >= number:
                break
            if number not in later:
                later.append(number)
            if len(later) >= self.distance_packets:
                lost.append(missing)  # a lower hole has all the later packets of a higher one
        for _ in lost:
            holes.popleft()
        return lost

    def _fill(self, number: int) -> None:
        """A late packet leaves what is before and after it in its hole."""
        for at, (missing, later) in enumerate(self._holes):
            if missing.first <= number <= missing.last:
                break
        else:
            return
        del self._holes[at]
        # As if it had come in time: so those that remain would still have come when they would have.
        nominal_s = missing.nominal_s(number)
        if number < missing.last:
            self._holes.insert(at, (replace(missing, first=number + 1, before_s=nominal_s), list(later)))
        if number > missing.first:
            self._holes.insert(at, (replace(missing, last=number - 1, after_s=nominal_s), later))
