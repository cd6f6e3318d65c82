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
        self._bye = rtcp.Bye((options.ssrc,))
        self._bandwidth = RtcpParameters(session_bandwidth_bps=options.max_rate_bps)
        self._rng = rng
        self._outbox = outbox

    def join(self, now: float, first_report: list[rtcp.RtcpPacket]) -> None:
        """The timetable begins (RFC 3550 section 6.3.2). The report is measured, not sent."""
        first = IPV4_UDP_BYTES + ROUTER_ALERT_BYTES + len(rtcp.emit_compound(first_report))
        self.schedule = RtcpSchedule(now, self._bandwidth, self.ssrc, first, self._rng.random)

    def next_s(self) -> float:
        """When to call `is_due`; infinite before `join`, after BYE, and where no BYE may follow."""
        return float("inf") if self.schedule is None else self.schedule.next_s

    def is_due(self, now: float) -> bool:
        """Whether to call `send` now."""
        return self.schedule is not None and now >= self.schedule.next_s and self.schedule.expire(now)

    def leave(self, now: float, last_report: list[rtcp.RtcpPacket]) -> bool:
        """The member leaves; the report is measured, not sent. True: call `send_bye` now. False: when `is_due`, if ever (RFC 3550
        section 6.3.7)."""
        size = IPV4_UDP_BYTES + len(rtcp.emit_compound([*last_report, self._bye]))
        return self.schedule is not None and self.schedule.leave(now, size)

    def send_bye(self, last_report: list[rtcp.RtcpPacket]) -> None:
        """The timetable ends."""
        self._outbox.control.append(rtcp.emit_compound([*last_report, self._bye]))
        self.schedule = None

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
        size = payload_bytes + IPV4_UDP_BYTES
        self.schedule.received_rtcp(now, ssrc, size)
        for packet in packets:
            if isinstance(packet, rtcp.Bye):
                for gone in packet.ssrcs:
                    self.schedule.received_bye(now, gone, size)
