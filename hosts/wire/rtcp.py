"""RTCP packets and compounds (RFC 3550 section 6).

`split_compound` checks the lengths of a whole UDP payload once and yields a view of each packet; `parse_compound` gives their
meaning. What RFC 3550 does not define (other packet types, profile extensions of reports) is kept as bytes, so that
`emit_compound(parse_compound(x))` loses nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from hosts.wire.errors import MalformedPacket

VERSION = 2
SR, RR, SDES, BYE, APP = 200, 201, 202, 203, 204
"""Packet types (RFC 3550 section 12.1)."""
CNAME, NAME, EMAIL, PHONE, LOC, TOOL, NOTE, PRIV = range(1, 9)
"""SDES item types (RFC 3550 section 12.2)."""

_HEADER = Struct("!BBH")
_SENDER_INFO = Struct("!QIII")
_BLOCK = Struct("!IIIIII")


@dataclass(frozen=True, slots=True)
class ReportBlock:
    """One reception report (RFC 3550 section 6.4.1)."""

    ssrc: int
    """The source this block is about."""
    fraction_lost: int
    """Lost since the previous report, in 1/256, rounded down: a loss below 1/256 of the interval's packets reads 0."""
    cumulative_lost: int
    """Since the beginning; signed 24 bits, because duplicates count as received."""
    extended_highest_sequence: int
    jitter: int
    """Interarrival jitter in timestamp units."""
    lsr: int
    """Middle 32 bits of the NTP timestamp of the last SR; 0 = none."""
    dlsr: int
    """Delay since that SR in 1/65536 s."""

    def emit(self) -> bytes:
        if not -0x800000 <= self.cumulative_lost <= 0x7FFFFF:
            raise ValueError(f"cumulative_lost = {self.cumulative_lost}: does not fit signed 24 bits")
        _check_bits(self, fraction_lost=8, ssrc=32, extended_highest_sequence=32, jitter=32, lsr=32, dlsr=32)
        loss = self.fraction_lost << 24 | self.cumulative_lost & 0xFFFFFF
        return _BLOCK.pack(self.ssrc, loss, self.extended_highest_sequence, self.jitter, self.lsr, self.dlsr)


@dataclass(frozen=True, slots=True)
class SenderReport:
    """SR (RFC 3550 section 6.4.1)."""

    ssrc: int
    ntp: int
    """64-bit NTP timestamp of sending."""
    rtp_timestamp: int
    packet_count: int
    """RTP packets sent, modulo 2^32."""
    octet_count: int
    """Payload bytes sent, modulo 2^32: without headers and padding."""
    blocks: tuple[ReportBlock, ...] = ()
    extension: bytes = b""
    """Profile-specific words."""

    def emit(self) -> bytes:
        _check_bits(self, ssrc=32, ntp=64, rtp_timestamp=32, packet_count=32, octet_count=32)
        info = _SENDER_INFO.pack(self.ntp, self.rtp_timestamp, self.packet_count, self.octet_count)
        body = self.ssrc.to_bytes(4) + info + b"".join(b.emit() for b in self.blocks) + self.extension
        return _packet(len(self.blocks), SR, body)


@dataclass(frozen=True, slots=True)
class ReceiverReport:
    """RR (RFC 3550 section 6.4.2)."""

    ssrc: int
    blocks: tuple[ReportBlock, ...] = ()
    extension: bytes = b""

    def emit(self) -> bytes:
        _check_bits(self, ssrc=32)
        return _packet(len(self.blocks), RR, self.ssrc.to_bytes(4) + b"".join(b.emit() for b in self.blocks) + self.extension)


@dataclass(frozen=True, slots=True)
class SdesChunk:
    """What one source says of itself: (item type, value) pairs, values at most 255 bytes, UTF-8 but for PRIV."""

    ssrc: int
    items: tuple[tuple[int, bytes], ...]

    def emit(self) -> bytes:
        _check_bits(self, ssrc=32)
        for kind, value in self.items:
            if not 1 <= kind <= 255 or len(value) > 255:
                raise ValueError(f"SDES item of type {kind}, {len(value)} bytes: types are 1..255, values at most 255 bytes")
        body = self.ssrc.to_bytes(4) + b"".join(bytes((kind, len(value))) + value for kind, value in self.items)
        return body + bytes(4 - len(body) % 4)  # at least one null ends the list (RFC 3550 section 6.5)


@dataclass(frozen=True, slots=True)
class SourceDescription:
    """SDES (RFC 3550 section 6.5)."""

    chunks: tuple[SdesChunk, ...]

    def emit(self) -> bytes:
        return _packet(len(self.chunks), SDES, b"".join(c.emit() for c in self.chunks))


@dataclass(frozen=True, slots=True)
class Bye:
    """BYE (RFC 3550 section 6.6)."""

    ssrcs: tuple[int, ...]
    reason: bytes | None = None
    """At most 255 bytes."""

    def emit(self) -> bytes:
        body = b"".join(s.to_bytes(4) for s in self.ssrcs)
        if self.reason is not None:
            if len(self.reason) > 255:
                raise ValueError(f"reason: {len(self.reason)} bytes, at most 255")
            text = bytes((len(self.reason),)) + self.reason
            body += text + bytes(-len(text) % 4)
        return _packet(len(self.ssrcs), BYE, body)


@dataclass(frozen=True, slots=True)
class App:
    """APP (RFC 3550 section 6.7)."""

    subtype: int
    """0..31."""
    ssrc: int
    name: bytes
    """Four bytes."""
    data: bytes = b""
    """Whole 32-bit words."""

    def emit(self) -> bytes:
        _check_bits(self, subtype=5, ssrc=32)
        if len(self.name) != 4:
            raise ValueError(f"name = {self.name!r}: must be 4 bytes")
        return _packet(self.subtype, APP, self.ssrc.to_bytes(4) + self.name + self.data)


@dataclass(frozen=True, slots=True)
class UnknownPacket:
    """A packet type that RFC 3550 does not define; to be ignored (section 6.1), kept as it came."""

    packet_type: int
    count: int
    """The five bits that are a count in known types."""
    body: bytes

    def emit(self) -> bytes:
        _check_bits(self, packet_type=8, count=5)
        return _packet(self.count, self.packet_type, self.body)


RtcpPacket = SenderReport | ReceiverReport | SourceDescription | Bye | App | UnknownPacket


@dataclass(frozen=True, slots=True)
class RtcpView:
    """One packet of a compound as it lies in the UDP payload; its length has been checked."""

    offset: int
    """Of the packet's first byte in the payload."""
    packet_type: int
    count: int
    """Report, chunk or source count, or the subtype of APP."""
    body: bytes
    """After the 4-byte header, without padding."""


def split_compound(payload: bytes | bytearray | memoryview) -> tuple[list[RtcpView], int]:
    """The packets of a compound, and how many bytes of padding end it. Raises `MalformedPacket`.

    Checks what RFC 3550 appendix A.2 asks: version 2 throughout, SR or RR first, padding on the last packet only, lengths that
    add up to the payload.
    """
    data = bytes(payload)
    views: list[RtcpView] = []
    offset = 0
    padding = 0
    while offset < len(data) or not views:
        if len(data) - offset < 4:
            raise MalformedPacket(offset, f"RTCP header truncated: {len(data) - offset} of 4 bytes")
        first, kind, words = _HEADER.unpack_from(data, offset)
        if first >> 6 != VERSION:
            raise MalformedPacket(offset, f"RTCP version {first >> 6}, must be {VERSION}")
        if not views and kind not in (SR, RR):
            raise MalformedPacket(offset + 1, f"compound starts with packet type {kind}, must be {SR} or {RR}")
        end = offset + 4 + 4 * words
        if end > len(data):
            raise MalformedPacket(offset + 2, f"length of {words + 1} words ends at byte {end} of {len(data)}")
        body_end = end
        if first & 0x20:
            if end != len(data):
                raise MalformedPacket(offset, "padding on a packet that is not the last of the compound")
            padding = data[end - 1]
            if padding == 0 or padding % 4 or padding > 4 * words:
                raise MalformedPacket(end - 1, f"padding count {padding} in a packet of {4 + 4 * words} bytes")
            body_end -= padding
        views.append(RtcpView(offset, kind, first & 0x1F, data[offset + 4 : body_end]))
        offset = end
    return views, padding


def parse_compound(payload: bytes | bytearray | memoryview) -> tuple[RtcpPacket, ...]:
    """The meaning of a compound packet; padding is dropped. Raises `MalformedPacket`."""
    views, _ = split_compound(payload)
    return tuple(parse_packet(view) for view in views)


def emit_compound(packets: tuple[RtcpPacket, ...] | list[RtcpPacket], padding_bytes: int = 0) -> bytes:
    """The UDP payload of a compound. Raises `ValueError` when a field does not fit or the first packet is no report."""
    if not packets or not isinstance(packets[0], (SenderReport, ReceiverReport)):
        raise ValueError("a compound starts with a sender or receiver report (RFC 3550 section 6.1)")
    if padding_bytes % 4 or not 0 <= padding_bytes <= 252:
        raise ValueError(f"padding_bytes = {padding_bytes}: must be a multiple of 4 from 0 to 252")
    parts = [p.emit() for p in packets]
    if padding_bytes:
        first, kind, words = _HEADER.unpack_from(parts[-1])
        tail = bytes(padding_bytes - 1) + bytes((padding_bytes,))
        parts[-1] = _HEADER.pack(first | 0x20, kind, words + padding_bytes // 4) + parts[-1][4:] + tail
    return b"".join(parts)


def parse_packet(view: RtcpView) -> RtcpPacket:
    """The meaning of one packet. Raises `MalformedPacket`, with the offset in the payload."""
    parser = _PARSERS.get(view.packet_type)
    if parser is None:
        return UnknownPacket(view.packet_type, view.count, view.body)
    return parser(view)


def _parse_sr(view: RtcpView) -> SenderReport:
    _need(view, 24 + 24 * view.count, f"sender report with {view.count} report blocks")
    ntp, rtp_timestamp, packets, octets = _SENDER_INFO.unpack_from(view.body, 4)
    blocks, extension = _parse_blocks(view, 24)
    return SenderReport(int.from_bytes(view.body[:4]), ntp, rtp_timestamp, packets, octets, blocks, extension)


def _parse_rr(view: RtcpView) -> ReceiverReport:
    _need(view, 4 + 24 * view.count, f"receiver report with {view.count} report blocks")
    blocks, extension = _parse_blocks(view, 4)
    return ReceiverReport(int.from_bytes(view.body[:4]), blocks, extension)


def _parse_blocks(view: RtcpView, start: int) -> tuple[tuple[ReportBlock, ...], bytes]:
    blocks = []
    for at in range(start, start + 24 * view.count, 24):
        ssrc, loss, highest, jitter, lsr, dlsr = _BLOCK.unpack_from(view.body, at)
        lost = loss & 0xFFFFFF
        lost -= (lost & 0x800000) << 1  # two's complement of 24 bits
        blocks.append(ReportBlock(ssrc, loss >> 24, lost, highest, jitter, lsr, dlsr))
    return tuple(blocks), view.body[start + 24 * view.count :]


def _parse_sdes(view: RtcpView) -> SourceDescription:
    chunks = []
    at = 0
    for number in range(view.count):
        if at + 4 > len(view.body):
            raise MalformedPacket(view.offset + 4 + at, f"SDES chunk {number + 1} of {view.count} is missing")
        ssrc = int.from_bytes(view.body[at : at + 4])
        at += 4
        items = []
        while True:
            if at >= len(view.body):
                raise MalformedPacket(view.offset + 4 + at, "SDES chunk without the null that ends its items")
            kind = view.body[at]
            if kind == 0:
                at += 4 - at % 4
                break
            if at + 2 > len(view.body) or at + 2 + view.body[at + 1] > len(view.body):
                raise MalformedPacket(view.offset + 4 + at, f"SDES item of type {kind} runs past the packet's end")
            length = view.body[at + 1]
            items.append((kind, view.body[at + 2 : at + 2 + length]))
            at += 2 + length
        chunks.append(SdesChunk(ssrc, tuple(items)))
    if at != len(view.body):
        raise MalformedPacket(view.offset + 4 + at, f"{len(view.body) - at} bytes after the last of {view.count} SDES chunks")
    return SourceDescription(tuple(chunks))


def _parse_bye(view: RtcpView) -> Bye:
    end = 4 * view.count
    _need(view, end, f"BYE with {view.count} sources")
    ssrcs = tuple(int.from_bytes(view.body[at : at + 4]) for at in range(0, end, 4))
    if len(view.body) == end:
        return Bye(ssrcs)
    length = view.body[end]
    if end + 1 + length > len(view.body):
        raise MalformedPacket(view.offset + 4 + end, f"BYE reason of {length} bytes runs past the packet's end")
    return Bye(ssrcs, view.body[end + 1 : end + 1 + length])


def _parse_app(view: RtcpView) -> App:
    _need(view, 8, "APP packet")
    return App(view.count, int.from_bytes(view.body[:4]), view.body[4:8], view.body[8:])


_PARSERS = {SR: _parse_sr, RR: _parse_rr, SDES: _parse_sdes, BYE: _parse_bye, APP: _parse_app}


def _need(view: RtcpView, size: int, what: str) -> None:
    if len(view.body) < size:
        raise MalformedPacket(view.offset + 2, f"{what} needs {size} bytes after its header, has {len(view.body)}")


def _packet(count: int, kind: int, body: bytes) -> bytes:
    if not 0 <= count <= 31:
        raise ValueError(f"packet type {kind}: count {count} does not fit 5 bits")
    if len(body) % 4 or len(body) >> 2 > 0xFFFF:
        raise ValueError(f"packet type {kind}: body of {len(body)} bytes is not whole 32-bit words, or too long")
    return _HEADER.pack(VERSION << 6 | count, kind, len(body) >> 2) + body


def _check_bits(owner: object, **widths: int) -> None:
    for name, bits in widths.items():
        value = getattr(owner, name)
        if not 0 <= value < 1 << bits:
            raise ValueError(f"{name} = {value}: does not fit {bits} bits")
