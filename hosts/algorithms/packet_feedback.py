"""What a sender learns from timed acknowledgements: one-way delay, receive rate, losses and marks of the last moments.

RFC 8888 reports of each packet when it arrived and whether it was marked, of many packets at once. Timed acknowledgements (`Interests.timed_acks`) say the
same at once, of each. The books which RFC 8698 and RFC 8298 keep at the receiver, or at a sender that gets such reports, stand here, once for all of them.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from math import inf, isfinite

from fairlane.hosts.algorithms.base import Ack, Ecn, Loss

MAX_DELAY_S = 1e6
"""Delays beyond it, either way, are no measurement: clocks of two machines may differ by as much as they have been running."""


def measured_delay_s(ack: Ack) -> float | None:
    """The ack's one-way delay in seconds, offset of the clocks included; `None` when it says none, or one that cannot be."""
    delay_s = ack.one_way_delay_s
    if delay_s is None or not abs(delay_s) <= MAX_DELAY_S or not (isfinite(ack.rtt_s) and ack.rtt_s >= 0.0):
        return None
    return delay_s


class BaseDelay:
    """The smallest one-way delay of the last `minutes`, kept as a minimum for each minute [RFC 6817 sec 2.4.2], so that a path that became
    longer, or a clock that runs at another speed [RFC 6817 sec A.2], is forgotten in the end. Minutes without a delay count, too."""

    def __init__(self, minutes: int = 10, minute_s: float = 60.0) -> None:
        self.minute_s = minute_s
        self._history_s = max(1, minutes) * minute_s
        self._minima: deque[tuple[float, float]] = deque()
        """(When the minute began, smallest delay in it.)"""

    def queueing_s(self, now_s: float, delay_s: float) -> float:
        """Takes a delay in; how far it is above the smallest, 0 or more, in seconds."""
        while self._minima and now_s - self._minima[0][0] >= self._history_s:
            self._minima.popleft()
        if not self._minima or now_s - self._minima[-1][0] >= self.minute_s:
            self._minima.append((now_s, delay_s))
        elif delay_s < self._minima[-1][1]:
            self._minima[-1] = (self._minima[-1][0], delay_s)
        return delay_s - min(delay for _, delay in self._minima)


@dataclass(frozen=True, slots=True)
class Told:
    """What the sender heard at one instant."""

    heard_s: float
    """When, on the sender's clock."""
    arrived_s: float
    """When the packet arrived, on the sender's clock plus a constant."""
    queueing_s: float
    arrived_packets: int
    lost_packets: int
    marked_packets: int = 0
    """Those of `arrived_packets` that arrived with a mark (CE)."""


class FeedbackWindow:
    """Acknowledgements and losses that were heard in the last `span_s` seconds."""

    def __init__(self, span_s: float, taps: int = 1) -> None:
        self.span_s = span_s
        self.base = BaseDelay()
        self._told: deque[Told] = deque()
        self._newest: deque[float] = deque(maxlen=max(1, taps))
        """Queueing delays of the last packets, for the minimum over them."""
        self._arrived_s = 0.0

    def acked(self, now_s: float, ack: Ack) -> float | None:
        """Takes an acknowledgement in. The queueing delay of its packet in seconds; `None` when it says none."""
        delay_s = measured_delay_s(ack)
        if delay_s is None:
            return None
        queueing_s = self.base.queueing_s(now_s, delay_s)
        self._newest.append(queueing_s)
        self._arrived_s = ack.sent_s(now_s) + delay_s
        marked = int(ack.ecn == Ecn.CE)
        self._told.append(Told(now_s, self._arrived_s, queueing_s, max(1, ack.newly_acked_packets), 0, marked))
        self._forget(now_s)
        return queueing_s

    def lost(self, now_s: float, loss: Loss) -> None:
        """Takes a loss in."""
        self._told.append(Told(now_s, self._arrived_s, 0.0, 0, loss.lost_packets))
        self._forget(now_s)

    def _forget(self, now_s: float) -> None:
        while self._told and self._told[0].heard_s <= now_s - self.span_s:
            self._told.popleft()

    def look(self, now_s: float) -> tuple[int, int]:
        """Packets that arrived, and that were lost, in the window that ends now."""
        self._forget(now_s)
        return sum(told.arrived_packets for told in self._told), sum(told.lost_packets for told in self._told)

    def loss_ratio(self, now_s: float) -> float:
        """Lost packets as a fraction of those that arrived or were lost; 0 when there were none."""
        arrived, lost = self.look(now_s)
        return lost / (arrived + lost) if lost else 0.0

    def marking_ratio(self, now_s: float) -> float:
        """Marked packets as a fraction of those that arrived; 0 when none did."""
        arrived, _ = self.look(now_s)
        marked = sum(told.marked_packets for told in self._told)
        return marked / arrived if marked else 0.0

    def receive_rate_bps(self, now_s: float, packet_bytes: int) -> float:
        """Bits of the packets that arrived during the window, over its length [RFC 8698 sec 5.1.3], [GCC sec 5.5]. By the receiver's clock, too:
        acknowledgements that were held back come together, and their packets did not."""
        self._forget(now_s)
        oldest_s = max((told.arrived_s for told in self._told), default=0.0) - self.span_s
        return 8 * packet_bytes * sum(told.arrived_packets for told in self._told if told.arrived_s > oldest_s) / self.span_s

    def queueing_s(self) -> float | None:
        """The smallest queueing delay of the last `taps` packets, in seconds; `None` before the first."""
        return min(self._newest, default=None)

    def longest_queueing_s(self, now_s: float) -> float:
        """The longest queueing delay of the window's packets, in seconds; `-inf` when none arrived."""
        self._forget(now_s)
        return max((told.queueing_s for told in self._told if told.arrived_packets), default=-inf)
