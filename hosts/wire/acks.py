"""Acknowledgements of single packets (hosts/wire/formats.toml, `ack`), and what a receiver must remember to send them."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from hosts.wire.errors import MalformedPacket

VERSION = 1
TYPE = 1
BYTES = 12
HISTORY_BITS = 32
MAX_SEQUENCE = (1 << 48) - 1

_LAYOUT = Struct("!QI")
_FIRST = (VERSION << 4 | TYPE) << 56  # version, type and no flags, above the 48 bits of the sequence number


@dataclass(frozen=True, slots=True)
class AckPacket:
    """What an acknowledgement says."""

    sequence: int
    """The packet acknowledged, extended; 48 bits."""
    history: int
    """Bit k: packet `sequence - 1 - k` has arrived; 32 bits."""

    def emit(self) -> bytes:
        """Raises `ValueError` when a field does not fit."""
        if not 0 <= self.sequence <= MAX_SEQUENCE or not 0 <= self.history < 1 << HISTORY_BITS:
            raise ValueError(f"sequence = {self.sequence}, history = {self.history}: must fit 48 and 32 bits")
        return _LAYOUT.pack(_FIRST | self.sequence, self.history)


def parse_ack(payload: bytes | bytearray | memoryview) -> AckPacket:
    """Raises `MalformedPacket`. `parse_ack(a.emit()) == a`."""
    if len(payload) != BYTES:
        raise MalformedPacket(min(len(payload), BYTES), f"acknowledgement of {len(payload)} bytes, must be {BYTES}")
    first, history = _LAYOUT.unpack(payload)
    if first >> 60 != VERSION:
        raise MalformedPacket(0, f"acknowledgement version {first >> 60}, must be {VERSION}")
    if first >> 56 & 15 != TYPE:
        raise MalformedPacket(0, f"type {first >> 56 & 15}, must be {TYPE}")
    return AckPacket(first & MAX_SEQUENCE, history)


class Arrivals:
    """At the receiver: which of the newest packets have arrived."""

    __slots__ = ("highest", "_seen")

    def __init__(self) -> None:
        self.highest = -1
        """Of the packets that arrived; -1 = none has."""
        self._seen = 0  # bit k: packet `highest - k` has arrived, for k up to HISTORY_BITS + 32

    def arrived(self, sequence: int) -> AckPacket:
        """A data packet arrived, for the first time or again; the acknowledgement to send."""
        if sequence > self.highest:
            ahead = sequence - self.highest
            self._seen = (self._seen << ahead | 1) & 0xFFFFFFFFFFFFFFFF if ahead < 64 else 1
            self.highest = sequence
            return AckPacket(sequence, self._seen >> 1 & 0xFFFFFFFF)
        behind = self.highest - sequence
        if behind < 64:
            self._seen |= 1 << behind
        return AckPacket(sequence, self._seen >> behind + 1 & 0xFFFFFFFF)
