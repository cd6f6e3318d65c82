"""At the sender of an acknowledged flow: what is outstanding, what is lost, how long a round trip takes. Pure.

The rules are those of `AckBook` in `switch/virtual/src/flow/acks.rs`, for wall-clock runs.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from enum import IntEnum

from hosts.algorithms.base import Ack, Loss, LossCause, PathState, SetLossTimeout
from hosts.wire.acks import HISTORY_BITS, AckPacket

KEPT_PACKETS = 256
"""Packets done with whose instants of sending are kept, so that an acknowledgement that comes after its packet was given up as lost
still tells the round trip: else a round trip that grew beyond the timeout would never be noticed."""


class Fate(IntEnum):
    """Of a packet that was sent."""

    OUTSTANDING = 0
    LOST = 1
    TOLD = 2
    """It arrived, as another packet's acknowledgement said."""
    ACKED = 3
    """Its own acknowledgement came: the sample of its round trip is taken."""


class AckBook:
    """Each packet is acknowledged once or lost once, at the sooner of the two; both at most."""

    __slots__ = ("loss_distance_packets", "in_flight_packets", "latest_rtt_s", "srtt_s", "rttvar_s", "highest_acked_sequence",
                 "_timeout", "_timeout_s", "_delivered", "_base", "_oldest", "_packets")  # fmt: skip

    def __init__(self, loss_distance_packets: int = 3) -> None:
        """`loss_distance_packets`: as in `Interests`, at least 1."""
        self.loss_distance_packets = max(1, loss_distance_packets)
        self.in_flight_packets = 0
        self.latest_rtt_s = 0.0
        self.srtt_s = 0.0
        """0 before the first sample."""
        self.rttvar_s = 0.0
        self.highest_acked_sequence = -1
        self._timeout: SetLossTimeout | None = None
        self._timeout_s = float("inf")  # with the round-trip times of this moment
        self._delivered: list[int] = []  # loss_distance_packets highest numbers of packets known to have arrived, ascending
        self._base = 0  # number of the first in _packets
        self._oldest = 0  # of the first outstanding packet; of the next packet when there is none
        self._packets: deque[list] = deque()  # [instant of sending, Fate]

    @property
    def last_sent_sequence(self) -> int:
        """-1 before the first packet."""
        return self._base + len(self._packets) - 1

    def sent(self, now_s: float) -> None:
        """The next packet, in order, was sent."""
        self._packets.append([now_s, Fate.OUTSTANDING])
        self.in_flight_packets += 1

    def set_timeout(self, timeout: SetLossTimeout) -> None:
        """Packets outstanding for longer are lost; before it none is for its age."""
        self._timeout = timeout
        self._update_timeout()

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
        sample_s = None
        if sequence >= base:
            entry = packets[sequence - base]
            if entry[1] is not Fate.ACKED:
                sample_s = now_s - entry[0]
                newly = self._deliver(sequence, entry)
                entry[1] = Fate.ACKED
            if packet.history:
                for number in range(max(base, sequence - HISTORY_BITS), sequence):
                    if packet.history >> (sequence - 1 - number) & 1:
                        newly += self._deliver(number, packets[number - base])
        if sample_s is not None:
            self._sample(sample_s)
        self.highest_acked_sequence = max(self.highest_acked_sequence, sequence)
        loss = self._lose_before()
        self._forget()
        if newly == 0 and sample_s is None:
            return loss, None
        return loss, Ack(sequence, self.latest_rtt_s if sample_s is None else sample_s, newly, self.path())

    def expire(self, now_s: float, sending: bool = False) -> Loss | None:
        """Packets as old as the timeout in force are lost. sending: a paced packet leaves next; `before_sending` waits for that."""
        if now_s < (self._oldest_expires_s() if sending else self.next_expiry_s()):
            return None
        end = self._oldest
        while end <= self.last_sent_sequence and self._packets[end - self._base][0] + self._timeout_s <= now_s:
            end += 1
        loss = self._lose(end, LossCause.TIMEOUT)
        self._forget()
        return loss

    def next_expiry_s(self) -> float:
        """When `expire` has something to do by itself."""
        return float("inf") if self._timeout is None or self._timeout.before_sending else self._oldest_expires_s()

    def _oldest_expires_s(self) -> float:
        if self._timeout is None or self._oldest > self.last_sent_sequence:
            return float("inf")
        return self._packets[self._oldest - self._base][0] + self._timeout_s

    def _deliver(self, number: int, entry: list) -> int:
        """A packet is known to have arrived. How many are newly so that were outstanding."""
        before = entry[1]
        if before >= Fate.TOLD:
            return 0
        entry[1] = Fate.TOLD
        insort(self._delivered, number)
        if len(self._delivered) > self.loss_distance_packets:
            del self._delivered[0]
        if before is Fate.LOST:
            return 0
        self.in_flight_packets -= 1
        return 1

    def _lose_before(self) -> Loss | None:
        """[RAP sec III]: `loss_distance_packets` later ones have arrived."""
        if len(self._delivered) < self.loss_distance_packets or self._delivered[0] <= self._oldest:
            return None
        return self._lose(self._delivered[0], LossCause.GAP)

    def _lose(self, end: int, cause: LossCause) -> Loss | None:
        """The outstanding ones numbered below `end` are lost."""
        packets, base = self._packets, self._base
        lost = [number for number in range(self._oldest, end) if packets[number - base][1] is Fate.OUTSTANDING]
        if not lost:
            return None
        for number in lost:
            packets[number - base][1] = Fate.LOST
        self.in_flight_packets -= len(lost)
        return Loss(lost[0], lost[-1], len(lost), cause, self.path())

    def _forget(self) -> None:
        """Drops what has been done with for long."""
        packets = self._packets
        while self._oldest <= self.last_sent_sequence and packets[self._oldest - self._base][1] is not Fate.OUTSTANDING:
            self._oldest += 1
        while self._base + KEPT_PACKETS < self._oldest:
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
        self._update_timeout()

    def _update_timeout(self) -> None:
        if self._timeout is not None:
            self._timeout_s = max(1e-9, self._timeout.in_force_s(self.srtt_s, self.rttvar_s))
