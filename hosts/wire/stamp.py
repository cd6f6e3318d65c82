"""The stamp that opens each data packet's payload (hosts/wire/formats.toml, `stamp`)."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from hosts.wire.errors import MalformedPacket

SHORT = Struct("!QQ")
"""Instant of sending in ns, packets sent before."""
LONG = Struct("!QQI")
"""And the sender's round-trip time in microseconds."""
MEDIA = Struct("!QQIQ")
"""And when the frame that the packet carries was produced, in ns."""
MAX_RTT_US = (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class Stamp:
    """What a stamp says."""

    sent_ns: int
    sequence: int
    """Extended: packets sent before this one."""
    rtt_us: int | None = None
    """0 = the sender does not know it; `None` = the payload has no room for the field."""
    produced_ns: int | None = None
    """0 = the flow carries no application's frames; `None` = no room. Not without `rtt_us`."""

    def emit(self) -> bytes:
        """Raises `ValueError` when a field does not fit."""
        fields = [self.sent_ns, self.sequence, self.rtt_us or 0, self.produced_ns or 0]
        if any(not 0 <= value < 1 << bits for value, bits in zip(fields, (64, 64, 32, 64))):
            raise ValueError(f"{self}: the fields must fit 64, 64, 32 and 64 bits")
        if self.produced_ns is not None:
            if self.rtt_us is None:
                raise ValueError(f"{self}: produced_ns follows rtt_us, which is missing")
            return MEDIA.pack(*fields)
        return SHORT.pack(*fields[:2]) if self.rtt_us is None else LONG.pack(*fields[:3])


def parse_stamp(payload: bytes | bytearray | memoryview) -> Stamp:
    """The stamp at the payload's begin; what follows is ignored. Raises `MalformedPacket`."""
    for layout in (MEDIA, LONG, SHORT):
        if len(payload) >= layout.size:
            return Stamp(*layout.unpack_from(payload))
    raise MalformedPacket(len(payload), f"stamp truncated: {len(payload)} of {SHORT.size} bytes")


def rtt_field(rtt_s: float) -> int:
    """A round-trip time as the field holds it: rounded to microseconds, from 1 (0 says "not known") to what the field holds."""
    return max(1, round(min(rtt_s, 4294.0) * 1e6)) if rtt_s > 0.0 else 1
