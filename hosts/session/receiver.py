"""The receiving end of a flow: data and sender control packets in; acknowledgements, reports, RTCP out. Pure.

It joins the RTP session when it first hears the sender.
"""

from __future__ import annotations

from typing import Any

from hosts.algorithms.base import (
    Control,
    Gap,
    JoinLayers,
    Layer,
    Receiver,
    ReceptionState,
    SendFeedback,
    SetReport,
    Timer,
)
from hosts.session.common import Options, Outbox, Recorder, Rng, Timers, carry_out, dotted
from hosts.session.reception import Reception
from hosts.session.rtcp_member import RtcpMember
from hosts.session.stream import IPV4_UDP_BYTES, DataStream
from hosts.wire import alsf, ntp, rtcp
from hosts.wire.acks import MAX_SEQUENCE, Arrivals
from hosts.wire.errors import MalformedPacket
from hosts.wire.reports import ReportBook, ReportPacket, loss_event_rate_field
from hosts.wire.rtp import RtpView
from hosts.wire.stamp import LONG, SHORT

BIN_S = 0.1
MAX_BLOCKS = 31
"""In one RTCP report (RFC 3550 section 6.4.1)."""


class ReceiverSession:
    """See the module."""

    def __init__(
        self, options: Options, algorithm: Receiver, rng: Rng, unix_offset_s: float, record: Recorder, acks: bool = False, layered: bool = False
    ) -> None:
        """`unix_offset_s`: Unix time minus the time of the session's clock. `acks`: whether the sender wants an acknowledgement
        for each packet. `layered`: data comes to groups that the algorithm names with `JoinLayers`."""
        self.options = options
        self.algorithm = algorithm
        self.outbox = Outbox()
        self.layered = layered
        self._rng = rng
        self._unix_offset_s = unix_offset_s
        self._record = record
        self._timers = Timers()
        interests = algorithm.interests
        self._loss_distance_packets = interests.loss_distance_packets if interests.gaps else None
        self._member = RtcpMember(options, rng, self.outbox) if interests.rtcp else None
        self._arrivals = Arrivals() if acks else None
        self._book = ReportBook()
        self._groups: tuple[int, ...] = () if layered else (0,)
        self._receptions: dict[int, Reception] = {} if layered else {0: Reception(self._loss_distance_packets)}
        self._last_arrival_s = 0.0
        self._echo_ns = 0
        self._sender_rtt_s: float | None = None
        self._received_packets = 0
        self._received_bytes = 0
        self._delay_sum_s = 0.0
        self._delay_max_s = 0.0
        self._logged = (0, 0)  # packets, bytes
        self._echo: SetReport | None = None
        self._last_sr: tuple[int, float] | None = None  # (middle of its NTP timestamp, arrival)
        self._next_bin_s = float("inf")
        self._over = False
        self.foreign_packets = 0
        self.malformed_packets = 0
        self.feedback_packets = 0
        self.rtcp_received_packets = 0

    # ------------------------------------------------------------------------------------------------------ what the loop calls

    def start(self, now: float) -> None:
        # Bins end at whole tenths of Unix time, the same for all flows.
        self._next_bin_s = ((now + self._unix_offset_s) // BIN_S + 1) * BIN_S - self._unix_offset_s
        self._apply(now, self.algorithm.on_start(now, self._rng))

    def wake(self, now: float) -> None:
        if self._over:
            if self._member is not None and self._member.is_due(now):
                self._member.send_bye(self._report(now))
            return
        if self._member is not None and self._member.is_due(now):
            self._member.send(now, self._report(now))
        for name in self._timers.due(now):
            self._apply(now, self.algorithm.on_timer(now, Timer(name), self._reception(), self._rng))
        if now >= self._next_bin_s:
            late_bins = int((now - self._next_bin_s) / BIN_S)
            self._write_data(now)
            self._next_bin_s += (1 + late_bins) * BIN_S

    def next_s(self) -> float:
        if self._over:
            return float("inf") if self._member is None else self._member.next_s()
        due = min(self._next_bin_s, self._timers.next_s())
        return due if self._member is None else min(due, self._member.next_s())

    def next_packet(self, now: float) -> DataStream | None:
        return None

    def departed(self, now: float, stream: DataStream) -> None:
        """A receiver sends no data."""

    def refused(self, now: float, stream: DataStream) -> None:
        """A receiver sends no data."""

    def on_direct(self, now: float, buffer: bytearray, size: int, group: int) -> None:
        """A data packet."""
        if self._over or group not in self._groups:
            return  # it was left a moment ago
        reception = self._receptions[group]
        try:
            view = RtpView(buffer, size)
        except MalformedPacket as error:
            self._malformed(now, "rtp", error)
            return
        if not reception.accepts(now, view.ssrc):
            self.foreign_packets += 1
            return
        if reception.source is None or reception.source.ssrc != view.ssrc:
            self._adopt(now, reception, view.ssrc, group)
        is_first = self._received_packets == 0
        size += IPV4_UDP_BYTES
        lost = reception.update(now, view.sequence, view.timestamp, size)
        self._last_arrival_s = now
        self._received_packets += 1
        self._received_bytes += size
        if is_first:
            self._book.begin(now, self._received_bytes)
        self._read_stamp(now, buffer, view.payload_start, view.payload_end)
        if self._member is not None and group == self._groups[0]:  # upper layers have no RTCP of their own
            if self._member.schedule is None:
                self._member.join(now, self._report(now, measured=True))
            self._member.schedule.received_data(now, view.ssrc)
        for missing in lost:
            gap = Gap(missing.first, missing.last, missing.before_s, missing.after_s, self._reception())
            self._apply(now, self.algorithm.on_gap(now, gap, self._rng))

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
        if not self._over:
            self._on_compound(now, ssrc, packets, len(payload))
        if self._member is not None:
            self._member.received(now, ssrc, len(payload), packets)

    def finish(self, now: float) -> None:
        self._write_data(now)
        self._over = True
        if self._member is not None and self._member.leave(now, self._report(now, measured=True)):
            self._member.send_bye(self._report(now))
        if self.layered and len(self._groups) > 1:
            self._groups = self.outbox.membership = self._groups[:1]  # there it hears the BYE of others

    def totals(self) -> dict[str, Any]:
        sources = [r.source for r in self._receptions.values() if r.source is not None]
        return {
            "received_packets": self._received_packets,
            "received_bytes": self._received_bytes,
            "lost_packets": self._lost_packets(),
            "out_of_order_packets": sum(s.out_of_order_packets for s in sources),
            "restarts": sum(s.restarts for s in sources),
            "foreign_packets": self.foreign_packets,
            "malformed_packets": self.malformed_packets,
            "feedback_packets": self.feedback_packets,
            "rtcp_received_packets": self.rtcp_received_packets,
        }

    # ----------------------------------------------------------------------------------------------------------------- events

    def _read_stamp(self, now: float, buffer: bytearray, start: int, end: int) -> None:
        """Delay, echo, the sender's round-trip time; and the acknowledgement of the packet, where it is asked for."""
        room = end - start
        if room >= LONG.size:
            sent_ns, sequence, rtt_us = LONG.unpack_from(buffer, start)
            if rtt_us:
                self._sender_rtt_s = rtt_us * 1e-6
        elif room >= SHORT.size:
            sent_ns, sequence = SHORT.unpack_from(buffer, start)
        else:
            return
        self._echo_ns = sent_ns
        delay_s = now - sent_ns * 1e-9
        self._delay_sum_s += delay_s
        if delay_s > self._delay_max_s:
            self._delay_max_s = delay_s
        if self._arrivals is not None and sequence <= MAX_SEQUENCE:
            self.outbox.direct.append(self._arrivals.arrived(sequence).emit())
            self.feedback_packets += 1

    def _adopt(self, now: float, reception: Reception, ssrc: int, group: int) -> None:
        reception.adopt(ssrc)
        if group == self._groups[0]:
            self._last_sr = self._echo = None
        self._record("source", now, ssrc=ssrc)

    def _on_compound(self, now: float, ssrc: int, packets: tuple[rtcp.RtcpPacket, ...], payload_bytes: int) -> None:
        base = self._receptions[self._groups[0]] if self._groups else None
        if self.layered and isinstance(packets[0], rtcp.ReceiverReport):
            return  # of another receiver: only the timetable counts it
        if base is not None and base.source is not None and ssrc != base.source.ssrc:
            self.foreign_packets += 1
            return
        for packet in packets:
            if isinstance(packet, rtcp.SenderReport):
                self._last_sr = (ntp.middle_32(packet.ntp), now)
            elif isinstance(packet, rtcp.Bye) and ssrc in packet.ssrcs:
                for reception in self._receptions.values():
                    reception.source_gone = reception.source is not None
                self._record("bye", now, ssrc=ssrc)
        said = alsf.find_alsf(packets, from_sender=True)
        if said is not None:
            u = said.utilisation_ppm * alsf.UTILISATION_UNIT
            layers = tuple(Layer(address, float(rate)) for address, rate in said.layers)
            named = {"layers_bps": [rate for _, rate in said.layers]} if self.layered else {}
            self._record("control", now, ssrc=ssrc, bytes=payload_bytes + IPV4_UDP_BYTES, rd_bps=said.desired_rate_bps, u=u, **named)
            control = Control(ssrc, float(said.desired_rate_bps), u, layers)
            self._apply(now, self.algorithm.on_control(now, control, self._rng))

    def _malformed(self, now: float, where: str, error: MalformedPacket) -> None:
        self.malformed_packets += 1
        self._record("malformed", now, where=where, offset=error.offset, reason=error.reason)

    # ---------------------------------------------------------------------------------------------------------------- actions

    def _apply(self, now: float, actions: tuple) -> None:
        carry_out(now, actions, self._timers, self._record, self._apply_own, self.options.algorithm)

    def _apply_own(self, now: float, action: object) -> bool:
        match action:
            case SetReport():
                self._echo = action
            case SendFeedback(loss_event_rate):
                self._send_feedback(now, loss_event_rate)
            case JoinLayers(addresses) if self.layered and addresses:
                self._join(now, addresses)
            case _:
                return False
        return True

    def _send_feedback(self, now: float, loss_event_rate: float | None) -> None:
        """Before the first data packet there is nothing to report, and nothing leaves."""
        if self._received_packets == 0:
            return
        expected = sum(r.expected_packets for r in self._receptions.values())
        rate_bps, expected, lost = self._book.close(now, self._received_bytes, expected, self._received_packets)
        report = ReportPacket(
            highest_sequence=self._highest_sequence() & MAX_SEQUENCE,
            echo_ns=self._echo_ns,
            delay_us=min(int((now - self._last_arrival_s) * 1e6), 0xFFFFFFFF),
            receive_rate_bps=rate_bps,
            loss_event_rate_ppb=loss_event_rate_field(loss_event_rate),
            expected_packets=expected,
            lost_packets=lost,
            reporter=self.options.ssrc,
        )
        self.outbox.direct.append(report.emit())
        self.feedback_packets += 1

    def _join(self, now: float, groups: tuple[int, ...]) -> None:
        for group in self._groups:
            if group not in groups:
                self._receptions[group].drop()
                self._record("leave", now, group=dotted(group))
        for group in groups:
            if group not in self._groups:
                self._receptions.setdefault(group, Reception(self._loss_distance_packets))
                self._record("join", now, group=dotted(group))
        self._groups = groups
        self.outbox.membership = groups

    # ---------------------------------------------------------------------------------------------------------------- sayings

    def _report(self, now: float, measured: bool = False) -> list[rtcp.RtcpPacket]:
        """`measured`: for its length alone; the loss intervals go on."""
        lsr, dlsr = 0, 0
        if self._last_sr is not None:
            lsr, dlsr = self._last_sr[0], ntp.dlsr_units(now - self._last_sr[1])
        # Sender reports are of the base layer's source; 0 where a source has sent none (RFC 3550 section 6.4.1).
        times = ((lsr, dlsr) if index == 0 else (0, 0) for index in range(MAX_BLOCKS))
        blocks = (self._receptions[group].block(*heard, measured) for group, heard in zip(self._groups, times))
        packets: list[rtcp.RtcpPacket] = [
            rtcp.ReceiverReport(self.options.ssrc, tuple(b for b in blocks if b is not None)),
            self._member.description,
        ]
        if (echo := self._echo) is not None:
            rate, utilisation = alsf.rate_field(echo.desired_rate_bps), alsf.utilisation_field(echo.utilisation)
            packets.append(alsf.Alsf(False, self.options.ssrc, rate, utilisation).to_app())
        return packets

    def _lost_packets(self) -> int:
        return sum(r.lost_packets for r in self._receptions.values())

    def _highest_sequence(self) -> int:
        """Of the flow, or of its basic layer."""
        return self._receptions[self._groups[0]].highest_sequence if self._groups else 0

    def _reception(self) -> ReceptionState:
        return ReceptionState(
            received_packets=self._received_packets,
            received_bytes=self._received_bytes,
            lost_packets=max(0, self._lost_packets()),
            highest_sequence=self._highest_sequence(),
            last_arrival_s=self._last_arrival_s,
            sender_rtt_s=self._sender_rtt_s,
        )

    def _write_data(self, now: float) -> None:
        packets, size = self._received_packets - self._logged[0], self._received_bytes - self._logged[1]
        heard = bool(self._groups) and self._receptions[self._groups[0]].source is not None
        self._record(
            "data",
            now,
            packets=packets,
            bytes=size,
            received_packets=self._received_packets,
            received_bytes=self._received_bytes,
            highest_sequence=self._highest_sequence() if heard else None,
            lost_packets=self._lost_packets(),
            delay_mean_s=round(self._delay_sum_s / packets, 6) if packets else None,
            delay_max_s=round(self._delay_max_s, 6) if packets else None,
        )
        if self.layered:
            for layer, (group, reception) in enumerate(self._receptions.items()):
                self._record(
                    "layer_data",
                    now,
                    layer=layer,
                    group=dotted(group),
                    member=group in self._groups,
                    received_packets=reception.received_packets,
                    received_bytes=reception.received_bytes,
                    lost_packets=reception.lost_packets,
                )
        self._logged = self._received_packets, self._received_bytes
        self._delay_sum_s = self._delay_max_s = 0.0
