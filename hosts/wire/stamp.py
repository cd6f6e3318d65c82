"""The stamp that opens each data packet's payload (hosts/wire/formats.toml, `stamp`)."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from hosts.wire.errors import MalformedPacket

SHORT = Struct("!QQ")
"""Instant of sending in ns, packets sent before."""
LONG = Struct("!QQI")
"""And the sender's round-trip time in microseconds."""
MAX_RTT_US = (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class Stamp:
    """What a stamp says."""

    sent_ns: int
    sequence: int
    """Extended: packets sent before this one."""
    rtt_us: int | None = None
    """0 = the sender does not know it; `None` = the payload has no room for the field."""

    def emit(self) -> bytes:
        """Raises `ValueError` when a field does not fit."""
        if not 0 <= self.sent_ns < 1 << 64 or not 0 <= self.sequence < 1 << 64 or not 0 <= (self.rtt_us or 0) <= MAX_RTT_US:
            raise ValueError(f"{self}: the fields must fit 64, 64 and 32 bits")
        if self.rtt_us is None:
            return SHORT.pack(self.sent_ns, self.sequence)
        return LONG.pack(self.sent_ns, self.sequence, self.rtt_us)


def parse_stamp(payload: bytes | bytearray | memoryview) -> Stamp:
    """The stamp at the payload's begin; what follows is ignored. Raises `MalformedPacket`."""
    if len(payload) >= LONG.size:
        return Stamp(*LONG.unpack_from(payload))
    if len(payload) >= SHORT.size:
        return Stamp(*SHORT.unpack_from(payload))
    raise MalformedPacket(len(payload), f"stamp truncated: {len(payload)} of {SHORT.size} bytes")


def rtt_field(rtt_s: float) -> int:
    """A round-trip time as the field holds it: rounded to microseconds, from 1 (0 says "not known") to what the field holds."""
    return max(1, round(min(rtt_s, 4294.0) * 1e6)) if rtt_s > 0.0 else 1
