"""At the sender of an acknowledged flow: what is outstanding, what is lost, how long a round trip takes. Pure.

The rules are those of `AckBook` in `switch/virtual/src/flow/acks.rs`, for wall-clock runs.
"""

from __future__ import annotations

from collections import deque
from enum import IntEnum

from hosts.algorithms.base import Ack, Loss, LossCause, PathState
from hosts.wire.acks import HISTORY_BITS, AckPacket


class Fate(IntEnum):
    """Of a packet that was sent."""

    OUTSTANDING = 0
    ACKED = 1
    LOST = 2


class AckBook:
    """Each packet is acknowledged once or lost once, at the sooner of the two; both at most."""

    __slots__ = ("loss_distance_packets", "in_flight_packets", "latest_rtt_s", "srtt_s", "rttvar_s", "timeout_s",
                 "highest_acked_sequence", "_base", "_packets")  # fmt: skip

    def __init__(self, loss_distance_packets: int = 3) -> None:
        """`loss_distance_packets`: as in `Interests`, at least 1."""
        self.loss_distance_packets = max(1, loss_distance_packets)
        self.in_flight_packets = 0
        self.latest_rtt_s = 0.0
        self.srtt_s = 0.0
        """0 before the first sample."""
        self.rttvar_s = 0.0
        self.timeout_s: float | None = None
        """Packets outstanding for longer are lost. `None`: never for that."""
        self.highest_acked_sequence = -1
        self._base = 0  # number of the first in _packets; that one is outstanding
        self._packets: deque[list] = deque()  # [instant of sending, Fate]

    @property
    def last_sent_sequence(self) -> int:
        """-1 before the first packet."""
        return self._base + len(self._packets) - 1

    def sent(self, now_s: float) -> None:
        """The next packet, in order, was sent."""
        self._packets.append([now_s, Fate.OUTSTANDING])
        self.in_flight_packets += 1

    def path(self) -> PathState:
        return PathState(
            latest_rtt_s=self.latest_rtt_s,
            srtt_s=self.srtt_s,
            rttvar_s=self.rttvar_s,
            in_flight_packets=self.in_flight_packets,
            last_sent_sequence=self.last_sent_sequence,
            highest_acked_sequence=self.highest_acked_sequence,
        )

    def acknowledge(self, now_s: float, packet: AckPacket) -> tuple[Loss | None, Ack | None] | None:
        """An acknowledgement came: the losses that it reveals, and what it says itself where that is news. `None`: it is of a packet
        that was never sent."""
        base, packets, sequence = self._base, self._packets, packet.sequence
        if sequence >= base + len(packets):
            return None
        newly = 0
        rtt_s = None
        if sequence >= base:
            entry = packets[sequence - base]
            rtt_s = now_s - entry[0]
            newly = self._deliver(entry)
            if packet.history:
                for number in range(max(base, sequence - HISTORY_BITS), sequence):
                    if packet.history >> (sequence - 1 - number) & 1:
                        newly += self._deliver(packets[number - base])
            self._sample(rtt_s)
        self.highest_acked_sequence = max(self.highest_acked_sequence, sequence)
        loss = self._lose_before(self.highest_acked_sequence + 1 - self.loss_distance_packets)
        self._forget()
        if newly == 0:
            return loss, None
        return loss, Ack(sequence, rtt_s, newly, self.path())

    def expire(self, now_s: float) -> Loss | None:
        """Packets as old as the timeout in force are lost."""
        if now_s < self.next_expiry_s():
            return None
        count = 0
        for sent_s, _ in self._packets:
            if sent_s + self.timeout_s > now_s:
                break
            count += 1
        loss = self._lose(count, LossCause.TIMEOUT)
        self._forget()
        return loss

    def next_expiry_s(self) -> float:
        """When `expire` has something to do."""
        return self._packets[0][0] + self.timeout_s if self._packets and self.timeout_s is not None else float("inf")

    def _deliver(self, entry: list) -> int:
        before, entry[1] = entry[1], Fate.ACKED
        if before is not Fate.OUTSTANDING:
            return 0
        self.in_flight_packets -= 1
        return 1

    def _lose_before(self, limit: int) -> Loss | None:
        """[RAP sec III]: `loss_distance_packets` later ones were acknowledged."""
        count = limit - self._base
        return self._lose(count, LossCause.GAP) if count > 0 else None

    def _lose(self, count: int, cause: LossCause) -> Loss | None:
        """The outstanding ones of the first `count` are lost."""
        lost = [number for number in range(count) if self._packets[number][1] is Fate.OUTSTANDING]
        if not lost:
            return None
        for number in lost:
            self._packets[number][1] = Fate.LOST
        self.in_flight_packets -= len(lost)
        return Loss(self._base + lost[0], self._base + lost[-1], len(lost), cause, self.path())

    def _forget(self) -> None:
        packets = self._packets
        while packets and packets[0][1] is not Fate.OUTSTANDING:
            packets.popleft()
            self._base += 1

    def _sample(self, rtt_s: float) -> None:
        """RFC 6298 section 2, gains 1/8 and 1/4."""
        if self.srtt_s == 0.0:
            self.srtt_s, self.rttvar_s = rtt_s, rtt_s / 2
        else:
            error = rtt_s - self.srtt_s
            self.rttvar_s += (abs(error) - self.rttvar_s) / 4
            self.srtt_s += error / 8
        self.latest_rtt_s = rtt_s
