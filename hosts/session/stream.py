"""One RTP stream of data: numbering, stamps, pacing. A flow has one, a layered flow one for each layer."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct

from hosts.pacing import Pacer
from hosts.wire import stamp
from hosts.wire.rtp import HEADER_BYTES, RtpPacket

RTP_CLOCK_HZ = 90_000
"""Timestamp units per second, as for video (RFC 3551 section 5)."""
PAYLOAD_TYPE = 96
"""The first dynamic payload type (RFC 3551 section 6)."""
IPV4_UDP_BYTES = 28
HEADERS_BYTES = IPV4_UDP_BYTES + HEADER_BYTES
"""IPv4, UDP, RTP: 40, as many as IPv4 and TCP without options."""

_VARIABLE = Struct("!HI")  # sequence number and timestamp, bytes 2..7 of the RTP header


class DataStream:
    """Makes the packets of one stream, each in the same buffer, and says when the next is due."""

    def __init__(self, ssrc: int, packet_bytes: int, first_sequence: int, timestamp_offset: int, group: int = 0) -> None:
        """`group`: IPv4 address of the group that it is sent to; 0 = to the peer."""
        self.ssrc = ssrc
        self.group = group
        self.packet_bytes = packet_bytes
        self.sent_packets = 0
        self.pacer: Pacer | None = None
        self.owed_packets = 0
        """Due, and not yet sent."""
        self.packet = bytearray(RtpPacket(PAYLOAD_TYPE, 0, 0, ssrc, bytes(packet_bytes - HEADERS_BYTES)).emit())
        """The UDP payload."""
        self.stamps_rtt = len(self.packet) >= HEADER_BYTES + stamp.LONG.size
        self._first_sequence = first_sequence
        self._timestamp_offset = timestamp_offset

    def set_rate(self, now: float, rate_bps: float, burst_packets: int, phase: float, jitter: float, random: Callable[[], float]) -> bool:
        """Whether it is another than before. A rate of 0 stops the stream."""
        pacer = self.pacer
        if rate_bps <= 0:
            self.pacer, self.owed_packets = None, 0
            return pacer is not None
        if pacer is None:
            pacer = self.pacer = Pacer(now, rate_bps, self.packet_bytes, phase=phase, jitter=jitter, random=random)
            if burst_packets != 1:
                pacer.set_rate(now, rate_bps, burst_packets)
            return True
        if rate_bps == pacer.rate_bps and burst_packets == pacer.burst_packets:
            return False
        pacer.set_rate(now, rate_bps, burst_packets)
        return True

    @property
    def rate_bps(self) -> float:
        return 0.0 if self.pacer is None else self.pacer.rate_bps

    def is_due(self, now: float) -> bool:
        """By its pacing."""
        if self.pacer is not None and now >= self.pacer.next_s:
            self.owed_packets += self.pacer.take(now)
        return self.owed_packets > 0

    def next_s(self) -> float:
        if self.owed_packets:
            return 0.0
        return float("inf") if self.pacer is None else self.pacer.next_s

    def fill(self, now: float) -> None:
        """`packet` becomes the next one, sent now."""
        number = self.sent_packets
        _VARIABLE.pack_into(self.packet, 2, self._first_sequence + number & 0xFFFF, self.rtp_timestamp(now))
        stamp.SHORT.pack_into(self.packet, HEADER_BYTES, int(now * 1e9), number)

    def stamp_rtt(self, rtt_s: float) -> None:
        """All packets from now on say this round-trip time [RFC 5348 sec 3.2.1]."""
        self.packet[HEADER_BYTES + stamp.SHORT.size : HEADER_BYTES + stamp.LONG.size] = stamp.rtt_field(rtt_s).to_bytes(4)

    def rtp_timestamp(self, now: float) -> int:
        return int(now * RTP_CLOCK_HZ) + self._timestamp_offset & 0xFFFFFFFF

    @property
    def payload_bytes(self) -> int:
        """RTP payload sent so far, the stamps included."""
        return self.sent_packets * (self.packet_bytes - HEADERS_BYTES)
