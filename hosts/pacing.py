"""When the next data packet of a paced flow is due. Pure: times in seconds, on any clock that never goes backwards."""

from __future__ import annotations

from collections.abc import Callable


class Pacer:
    """Turns a rate into absolute sending times.

    The times lie on a grid that advances by exactly `bits / rate`, whatever the lateness of each wake-up, so the mean rate has
    no drift. A process that was kept waiting sends what it owes at once, but at most `catch_up_s` worth (and at least one
    packet): the rest is forgiven, counted in `forgiven_packets`, for a long burst is not what a paced source would have sent.
    """

    def __init__(
        self,
        now_s: float,
        rate_bps: float,
        packet_bytes: int,
        *,
        phase: float = 0.0,
        jitter: float = 0.0,
        random: Callable[[], float] = lambda: 0.5,
        catch_up_s: float = 0.020,
    ) -> None:
        """`phase`: part of an interval, 0 to 1, before the first packet. `jitter`: each packet is moved by a uniform draw of up
        to +- half this part of an interval, 0 to 1; it breaks the phase locking of periodic sources at a drop-tail queue."""
        self.packet_bits = packet_bytes * 8
        self.rate_bps = rate_bps
        self.burst_packets = 1
        self.interval_s = self.packet_bits / rate_bps
        self.jitter = jitter
        self.catch_up_s = catch_up_s
        self.forgiven_packets = 0
        self._random = random
        self._grid_s = now_s + phase * self.interval_s
        self.next_s = self._grid_s
        """When to call `take`."""

    def set_rate(self, now_s: float, rate_bps: float, burst_packets: int = 1) -> None:
        """A new rate from now on. The part of the present interval that has passed stays credited."""
        interval_s = self.packet_bits * burst_packets / rate_bps
        waiting_s = self._grid_s - now_s
        if waiting_s > 0:
            self._grid_s = now_s + waiting_s * interval_s / self.interval_s
        self.rate_bps, self.burst_packets, self.interval_s = rate_bps, burst_packets, interval_s
        self._place()

    def take(self, now_s: float) -> int:
        """How many packets to send now; 0 when none is due."""
        if now_s < self.next_s:
            return 0
        intervals = 1
        self._grid_s += self.interval_s
        behind_s = now_s - self._grid_s
        if behind_s >= 0:
            owed = int(behind_s / self.interval_s) + 1
            paid = min(owed, int(self.catch_up_s / self.interval_s))
            intervals += paid
            self.forgiven_packets += (owed - paid) * self.burst_packets
            self._grid_s += owed * self.interval_s
        self._place()
        return intervals * self.burst_packets

    def _place(self) -> None:
        self.next_s = self._grid_s + (self._random() - 0.5) * self.jitter * self.interval_s if self.jitter else self._grid_s
