"""The sending end of a flow: paced or windowed data out; reports, acknowledgements and receivers' RTCP in. Pure.

The source is persistent: it always has data to send at the allowed rate [ALS sec 4.1].
"""

from __future__ import annotations

from typing import Any

from hosts.ackbook import AckBook
from hosts.algorithms.base import (
    AckDetail,
    Feedback,
    Layer,
    Loss,
    Sender,
    SetControl,
    SetLayers,
    SetLossTimeout,
    SetRate,
    SetWindow,
    StampData,
    Timer,
)
from hosts.session.common import Options, Outbox, Recorder, Rng, Timers, carry_out, dotted
from hosts.session.reporters import Reporters
from hosts.session.rtcp_member import RtcpMember
from hosts.session.stream import HEADERS_BYTES, IPV4_UDP_BYTES, DataStream
from hosts.wire import alsf, ntp, rtcp
from hosts.wire.acks import parse_ack
from hosts.wire.errors import MalformedPacket
from hosts.wire.reports import TYPE as REPORT_TYPE
from hosts.wire.reports import parse_report
from hosts.wire.stamp import LONG

SENT_PERIOD_S = 1.0
RETRY_S = 0.001
"""A windowed sender whose packet the host refused tries again after so long: no acknowledgement need come that would wake it."""
MAX_WINDOW_PACKETS = 1e6


class SenderSession:
    """See the module."""

    def __init__(self, options: Options, algorithm: Sender, rng: Rng, unix_offset_s: float, record: Recorder, layered: bool = False) -> None:
        """`unix_offset_s`: Unix time minus the time of the session's clock. `layered`: a stream for each layer, with `SetLayers`."""
        self.options = options
        self.algorithm = algorithm
        self.outbox = Outbox()
        self.layered = layered
        self._rng = rng
        self._unix_offset_s = unix_offset_s
        self._record = record
        self._timers = Timers()
        interests = algorithm.interests
        self._member = RtcpMember(options, rng, self.outbox) if interests.rtcp else None
        self._acks = AckBook(interests.loss_distance_packets) if interests.acks is not AckDetail.NONE else None
        self._hears_all = interests.acks is AckDetail.EVERY
        self.streams = [self._stream(0)]
        self._window_packets = float("inf")
        self._windowed = False
        self._retry_s = 0.0
        self._control: SetControl | None = None
        self._reporters = Reporters(options.exact_loss)
        self._next_log_s = float("inf")
        self._started = False
        self._over = False
        self.malformed_packets = 0
        self.feedback_packets = 0
        self.rtcp_received_packets = 0

    # ------------------------------------------------------------------------------------------------------ what the loop calls

    def start(self, now: float) -> None:
        self._apply(now, self.algorithm.on_start(now, self._rng))
        if all(s.pacer is None for s in self.streams) and not self._windowed:
            raise TypeError(f"{self.options.algorithm} starts without SetRate or SetWindow")
        self._started = True
        if self._member is not None:
            self._member.join(now, self._report(now))
        self._next_log_s = now + SENT_PERIOD_S
        self._write_sent(now)

    def wake(self, now: float) -> None:
        if self._over:
            if self._member is not None and self._member.is_due(now):
                self._member.send_bye(self._report(now))
            return
        if self._acks is not None:
            sending = any(now >= stream.next_s() for stream in self.streams)
            self._on_loss(now, self._acks.expire(now, sending))
        if self._member is not None and self._member.is_due(now):
            self._member.send(now, self._report(now))
            for silent in self._member.take_silent():
                self._left(now, "timeout", silent)
        for name in self._timers.due(now):
            path = None if self._acks is None else self._acks.path()
            self._apply(now, self.algorithm.on_timer(now, Timer(name, path), self._rng))
        if now >= self._next_log_s:
            self._write_sent(now)
            self._next_log_s += SENT_PERIOD_S * (1 + (now - self._next_log_s) // SENT_PERIOD_S)

    def next_s(self) -> float:
        if self._over:
            return float("inf") if self._member is None else self._member.next_s()
        due = min(self._timers.next_s(), self._next_log_s)
        if self._member is not None:
            due = min(due, self._member.next_s())
        if self._acks is not None:
            due = min(due, self._acks.next_expiry_s())
        if self._fills_window and self._window_is_open():
            due = min(due, self._retry_s)
        for stream in self.streams:
            due = min(due, stream.next_s())
        return due

    def next_packet(self, now: float) -> DataStream | None:
        if self._over:
            return None
        if self._fills_window:
            if now < self._retry_s or not self._window_is_open():
                return None
            stream = self.streams[0]
            stream.fill(now)
            return stream
        for stream in self.streams:
            if stream.is_due(now):
                if not self._window_is_open():
                    stream.owed_packets = 0  # what the window holds back is not caught up with
                    continue
                stream.fill(now)
                return stream
        return None

    def departed(self, now: float, stream: DataStream) -> None:
        stream.sent_packets += 1
        stream.owed_packets -= stream.owed_packets > 0
        if self._acks is not None:
            self._acks.sent(now)
        if self._member is not None and self._member.schedule is not None:
            self._member.schedule.sent_data(now)

    def refused(self, now: float, stream: DataStream) -> None:
        stream.owed_packets -= stream.owed_packets > 0
        self._retry_s = now + RETRY_S

    def on_direct(self, now: float, buffer: bytearray, size: int, group: int) -> None:
        """An acknowledgement or a report."""
        if self._over:
            return
        payload = memoryview(buffer)[:size]
        is_report = size > 0 and buffer[0] & 15 == REPORT_TYPE
        try:
            if is_report:
                self._on_report(now, payload)
            elif self._acks is not None:
                self._on_ack(now, payload)
        except MalformedPacket as error:
            self._malformed(now, "report" if is_report else "ack", error)

    def on_control(self, now: float, payload: bytes) -> None:
        try:
            packets = rtcp.parse_compound(payload)
        except MalformedPacket as error:
            self._malformed(now, "rtcp", error)
            return
        self.rtcp_received_packets += 1
        ssrc = packets[0].ssrc  # a compound starts with a report
        if ssrc == self.options.ssrc:
            return  # our own SSRC from elsewhere: a loop or a collision (RFC 3550 section 8.2); nothing to learn
        if self.layered:
            self.outbox.reflected.append(payload)  # RFC 5760, simple feedback model: all members of the group hear each report
        if not self._over:
            self._on_compound(now, packets, len(payload))
        if self._member is not None:
            self._member.received(now, ssrc, len(payload), packets)

    def finish(self, now: float) -> None:
        if self._started:
            self._write_sent(now)
        self._over = True
        if self._member is not None and self._member.leave(now, self._report(now)):
            self._member.send_bye(self._report(now))

    def totals(self) -> dict[str, Any]:
        sent = self.sent_packets
        return {
            "sent_packets": sent,
            "sent_bytes": sent * self.options.packet_bytes,
            "forgiven_packets": sum(s.pacer.forgiven_packets for s in self.streams if s.pacer is not None),
            "malformed_packets": self.malformed_packets,
            "feedback_packets": self.feedback_packets,
            "rtcp_received_packets": self.rtcp_received_packets,
        }

    # ----------------------------------------------------------------------------------------------------------------- events

    @property
    def sent_packets(self) -> int:
        """Of all streams."""
        return sum(s.sent_packets for s in self.streams)

    def _on_ack(self, now: float, payload: memoryview) -> None:
        heard = self._acks.acknowledge(now, parse_ack(payload))
        if heard is None:
            raise MalformedPacket(2, "acknowledges a packet that was never sent")
        self.feedback_packets += 1
        loss, ack = heard
        self._on_loss(now, loss)
        if ack is not None and self._hears_all:
            self._apply(now, self.algorithm.on_ack(now, ack, self._rng))

    def _on_loss(self, now: float, loss: Loss | None) -> None:
        if loss is not None:
            self._record(
                "loss",
                now,
                first_sequence=loss.first_sequence,
                last_sequence=loss.last_sequence,
                lost_packets=loss.lost_packets,
                cause=loss.cause.value,
            )
            self._apply(now, self.algorithm.on_loss(now, loss, self._rng))

    def _on_report(self, now: float, payload: memoryview) -> None:
        report = parse_report(payload)
        self.feedback_packets += 1
        feedback = Feedback(
            reporter=report.reporter,
            loss_fraction=report.loss_fraction,
            rtt_s=max(0.0, now - report.echo_ns * 1e-9 - report.delay_us * 1e-6),
            receive_rate_bps=float(report.receive_rate_bps),
            loss_event_rate=report.loss_event_rate,
        )
        self._record(
            "feedback",
            now,
            ssrc=report.reporter,
            loss=feedback.loss_fraction,
            rtt_s=feedback.rtt_s,
            receive_rate_bps=report.receive_rate_bps,
            loss_event_rate=feedback.loss_event_rate,
            expected_packets=report.expected_packets,
            lost_packets=report.lost_packets,
        )
        self._apply(now, self.algorithm.on_feedback(now, feedback, self._rng))

    def _on_compound(self, now: float, packets: tuple[rtcp.RtcpPacket, ...], payload_bytes: int) -> None:
        own = [s.ssrc for s in self.streams]
        for feedback, fields in self._reporters.read(packets, own, self._ntp(now)):
            self._record("feedback", now, **fields, bytes=payload_bytes + IPV4_UDP_BYTES)
            self._apply(now, self.algorithm.on_feedback(now, feedback, self._rng))
        for packet in packets:
            if isinstance(packet, rtcp.Bye):
                for gone in packet.ssrcs:
                    self._left(now, "bye", gone)

    def _left(self, now: float, why: str, ssrc: int) -> None:
        self._reporters.forget(ssrc)
        self._record(why, now, ssrc=ssrc)
        self._apply(now, self.algorithm.on_leave(now, ssrc, self._rng))

    def _malformed(self, now: float, where: str, error: MalformedPacket) -> None:
        self.malformed_packets += 1
        self._record("malformed", now, where=where, offset=error.offset, reason=error.reason)

    # ---------------------------------------------------------------------------------------------------------------- actions

    def _apply(self, now: float, actions: tuple) -> None:
        carry_out(now, actions, self._timers, self._record, self._apply_own, self.options.algorithm)

    def _apply_own(self, now: float, action: object) -> bool:
        match action:
            case SetRate(rate_bps, burst_packets):
                # Of a layered flow it is the base layer's, which SetLayers tells with the others.
                if not self.layered and self._set_rate(now, self.streams[0], rate_bps, burst_packets) and self._started:
                    self._write_sent(now)
            case SetWindow(window_packets) if self._acks is not None:
                self._window_packets = min(max(1.0, window_packets), MAX_WINDOW_PACKETS)
                self._windowed = True
            case SetLossTimeout() if self._acks is not None:
                self._acks.set_timeout(action)
            case SetControl():
                self._control = action
            case StampData(rtt_s):
                if not self.streams[0].stamps_rtt:
                    raise TypeError(f"{self.options.algorithm} stamps data: packets must have {HEADERS_BYTES + LONG.size} bytes or more")
                for stream in self.streams:
                    stream.stamp_rtt(rtt_s)
            case SetLayers(layers) if self.layered:
                if self._set_layers(now, layers) and self._started:
                    self._write_sent(now)
            case _:
                return False
        return True

    def _set_rate(self, now: float, stream: DataStream, rate_bps: float, burst_packets: int = 1) -> bool:
        phase = self._rng.random() if stream.pacer is None else 0.0
        return stream.set_rate(now, rate_bps, burst_packets, phase, self.options.pacing_jitter, self._rng.random)

    def _set_layers(self, now: float, layers: tuple[Layer, ...]) -> bool:
        """Whether a rate is another than before."""
        while len(self.streams) < len(layers):
            self.streams.append(self._stream(len(self.streams)))
        rates = [layer.rate_bps for layer in layers] + [0.0] * (len(self.streams) - len(layers))
        for stream, layer in zip(self.streams, layers):
            stream.group = layer.address
        self.outbox.control_group = self.streams[0].group
        return any([self._set_rate(now, stream, rate) for stream, rate in zip(self.streams, rates)])

    def _stream(self, layer: int) -> DataStream:
        ssrc = self.options.ssrc + layer & 0xFFFFFFFF
        return DataStream(ssrc, self.options.packet_bytes, self._rng.getrandbits(16), self._rng.getrandbits(32))

    @property
    def _fills_window(self) -> bool:
        """Without pacing a flow sends as much as its window admits."""
        return self._windowed and self.streams[0].pacer is None

    def _window_is_open(self) -> bool:
        return self._acks is None or self._acks.in_flight_packets < self._window_packets

    # ---------------------------------------------------------------------------------------------------------------- sayings

    def _ntp(self, now: float) -> int:
        return ntp.ntp_from_unix(now + self._unix_offset_s)

    def _report(self, now: float) -> list[rtcp.RtcpPacket]:
        stream = self.streams[0]
        packets: list[rtcp.RtcpPacket] = [
            rtcp.SenderReport(
                ssrc=self.options.ssrc,
                ntp=self._ntp(now),
                rtp_timestamp=stream.rtp_timestamp(now),
                packet_count=stream.sent_packets & 0xFFFFFFFF,
                octet_count=stream.payload_bytes & 0xFFFFFFFF,
            ),
            self._member.description,
        ]
        if (control := self._control) is not None:
            layers = tuple((layer.address, alsf.rate_field(layer.rate_bps)) for layer in control.layers)
            rate, utilisation = alsf.rate_field(control.desired_rate_bps), alsf.utilisation_field(control.utilisation)
            packets.append(alsf.Alsf(True, self.options.ssrc, rate, utilisation, layers).to_app())
        return packets

    def _write_sent(self, now: float) -> None:
        sent = self.sent_packets
        rate_bps = sum(s.rate_bps for s in self.streams)
        self._record("sent", now, rate_bps=rate_bps, sent_packets=sent, sent_bytes=sent * self.options.packet_bytes)
        if self._acks is not None:
            self._record(
                "path",
                now,
                latest_rtt_s=self._acks.latest_rtt_s,
                srtt_s=self._acks.srtt_s,
                rttvar_s=self._acks.rttvar_s,
                in_flight_packets=self._acks.in_flight_packets,
                window_packets=self._window_packets if self._windowed else None,
            )
        if self.layered:
            for layer, stream in enumerate(self.streams):
                group = dotted(stream.group)
                self._record("layer_sent", now, layer=layer, group=group, rate_bps=stream.rate_bps, sent_packets=stream.sent_packets)
