"""The RTP data header (RFC 3550 section 5.1)."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from hosts.wire.errors import MalformedPacket

VERSION = 2
HEADER_BYTES = 12
"""Without CSRC list and extension."""

_FIXED = Struct("!BBHII")
_EXTENSION = Struct("!HH")


class RtpView:
    """An RTP packet as it lies in a buffer. The length is checked once, when the view is made; reading a field copies nothing.

    The hot path of a receiver uses this; `RtpPacket` is the meaning.
    """

    __slots__ = ("buffer", "first", "second", "sequence", "timestamp", "ssrc", "payload_start", "payload_end")

    def __init__(self, buffer: bytes | bytearray | memoryview, length: int | None = None) -> None:
        """`length`: how many bytes of `buffer` the packet has; all of them when `None`. Raises `MalformedPacket`."""
        size = len(buffer) if length is None else length
        if size < HEADER_BYTES:
            raise MalformedPacket(size, f"RTP header truncated: {size} of {HEADER_BYTES} bytes")
        self.buffer = buffer
        self.first, self.second, self.sequence, self.timestamp, self.ssrc = _FIXED.unpack_from(buffer)
        if self.first >> 6 != VERSION:
            raise MalformedPacket(0, f"RTP version {self.first >> 6}, must be {VERSION}")
        start = HEADER_BYTES
        end = size
        if self.first & 0x3F:  # padding, extension or CSRCs: rare
            start += 4 * (self.first & 0x0F)
            if start > size:
                raise MalformedPacket(HEADER_BYTES, f"CSRC list of {self.first & 0x0F} ends at byte {start} of {size}")
            if self.first & 0x10:
                if start + 4 > size:
                    raise MalformedPacket(start, f"extension header truncated: {size - start} of 4 bytes")
                words = _EXTENSION.unpack_from(buffer, start)[1]
                if start + 4 + 4 * words > size:
                    raise MalformedPacket(start + 2, f"extension of {words} words ends beyond byte {size}")
                start += 4 + 4 * words
            if self.first & 0x20:
                padding = buffer[size - 1] if size > start else 0
                if padding == 0 or padding > size - start:
                    raise MalformedPacket(size - 1, f"padding count {padding} where {size - start} bytes follow the header")
                end -= padding
        self.payload_start = start
        self.payload_end = end

    @property
    def marker(self) -> bool:
        return bool(self.second & 0x80)

    @property
    def payload_type(self) -> int:
        return self.second & 0x7F


@dataclass(frozen=True, slots=True)
class RtpPacket:
    """What an RTP packet means. `emit` raises `ValueError` naming a field that does not fit."""

    payload_type: int
    """0..127."""
    sequence: int
    """0..65535."""
    timestamp: int
    """32 bits, in units of the media clock."""
    ssrc: int
    payload: bytes = b""
    marker: bool = False
    csrcs: tuple[int, ...] = ()
    """At most 15."""
    extension: tuple[int, bytes] | None = None
    """Profile-defined 16 bits, and whole 32-bit words."""
    padding_bytes: int = 0
    """0 = no padding; else 1..255, the count octet included."""

    def emit(self) -> bytes:
        if len(self.csrcs) > 15:
            raise ValueError(f"csrcs: {len(self.csrcs)} given, an RTP header holds 15")
        if not 0 <= self.padding_bytes <= 255:
            raise ValueError(f"padding_bytes = {self.padding_bytes}: must be 0..255")
        for name, bits in (("payload_type", 7), ("sequence", 16), ("timestamp", 32), ("ssrc", 32)):
            if not 0 <= getattr(self, name) < 1 << bits:
                raise ValueError(f"{name} = {getattr(self, name)}: does not fit {bits} bits")
        first = VERSION << 6 | bool(self.padding_bytes) << 5 | (self.extension is not None) << 4 | len(self.csrcs)
        parts = [_FIXED.pack(first, self.marker << 7 | self.payload_type, self.sequence, self.timestamp, self.ssrc)]
        parts += [c.to_bytes(4) for c in self.csrcs]
        if self.extension is not None:
            profile, data = self.extension
            if len(data) % 4 or len(data) >> 2 > 0xFFFF:
                raise ValueError(f"extension: {len(data)} bytes, must be whole 32-bit words, at most 65535")
            parts += [_EXTENSION.pack(profile, len(data) >> 2), data]
        parts.append(self.payload)
        if self.padding_bytes:
            parts.append(bytes(self.padding_bytes - 1) + bytes((self.padding_bytes,)))
        return b"".join(parts)


def parse_rtp(data: bytes | bytearray | memoryview) -> RtpPacket:
    """Raises `MalformedPacket`. `parse_rtp(p.emit()) == p`."""
    view = RtpView(data)
    extension = None
    csrc_end = HEADER_BYTES + 4 * (view.first & 0x0F)
    if view.first & 0x10:
        profile, words = _EXTENSION.unpack_from(data, csrc_end)
        extension = (profile, bytes(data[csrc_end + 4 : csrc_end + 4 + 4 * words]))
    return RtpPacket(
        payload_type=view.payload_type,
        sequence=view.sequence,
        timestamp=view.timestamp,
        ssrc=view.ssrc,
        payload=bytes(data[view.payload_start : view.payload_end]),
        marker=view.marker,
        csrcs=tuple(int.from_bytes(data[o : o + 4]) for o in range(HEADER_BYTES, csrc_end, 4)),
        extension=extension,
        padding_bytes=len(data) - view.payload_end,
    )
