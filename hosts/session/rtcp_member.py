"""A member of an RTP session: when its RTCP packets are due, and what all of them carry."""

from __future__ import annotations

from hosts.session.common import Options, Outbox, Rng
from hosts.session.stream import IPV4_UDP_BYTES
from hosts.wire import rtcp
from hosts.wire.schedule import RtcpParameters, RtcpSchedule

ROUTER_ALERT_BYTES = 4


class RtcpMember:
    """Silent until `join`."""

    def __init__(self, options: Options, rng: Rng, outbox: Outbox) -> None:
        self.ssrc = options.ssrc
        cname = f"{options.algorithm}-{options.ssrc:08x}@{options.local}".encode()
        self.description = rtcp.SourceDescription((rtcp.SdesChunk(options.ssrc, ((rtcp.CNAME, cname),)),))
        self.schedule: RtcpSchedule | None = None
        self._bandwidth = RtcpParameters(session_bandwidth_bps=options.max_rate_bps)
        self._rng = rng
        self._outbox = outbox

    def join(self, now: float, first_report: list[rtcp.RtcpPacket]) -> None:
        """The timetable begins (RFC 3550 section 6.3.2). The report is measured, not sent."""
        first = IPV4_UDP_BYTES + ROUTER_ALERT_BYTES + len(rtcp.emit_compound(first_report))
        self.schedule = RtcpSchedule(now, self._bandwidth, self.ssrc, first, self._rng.random)

    def next_s(self) -> float:
        return float("inf") if self.schedule is None else self.schedule.next_s

    def is_due(self, now: float) -> bool:
        """Whether to call `send` now."""
        return self.schedule is not None and now >= self.schedule.next_s and self.schedule.expire(now)

    def take_silent(self) -> list[int]:
        """Members that timed out (RFC 3550 section 6.3.5)."""
        return [] if self.schedule is None else self.schedule.take_silent()

    def send(self, now: float, packets: list[rtcp.RtcpPacket]) -> None:
        payload = rtcp.emit_compound(packets)
        self._outbox.control.append(payload)
        if self.schedule is not None:
            self.schedule.sent_rtcp(now, len(payload) + IPV4_UDP_BYTES)

    def received(self, now: float, ssrc: int, payload_bytes: int, packets: tuple[rtcp.RtcpPacket, ...]) -> None:
        """Another member's compound came."""
        if self.schedule is None:
            return
        self.schedule.received_rtcp(now, ssrc, payload_bytes + IPV4_UDP_BYTES)
        for packet in packets:
            if isinstance(packet, rtcp.Bye):
                for gone in packet.ssrcs:
                    self.schedule.received_bye(now, gone)
