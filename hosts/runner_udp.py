"""Runs RTCP-driven algorithms over real UDP sockets: paced RTP data on port P, RTCP on port P + 1.

One process a flow end, one thread, one loop. The algorithm sees events and yields actions; this file owns sockets, clock,
pacing, numbering, statistics and the RTCP timetable. Records go to a JSON-lines file; `hosts/README.md` lists them.

The source is persistent: it always has data to send at the allowed rate [ALS sec 4.1].
"""

from __future__ import annotations

import gc
import random
import socket
from dataclasses import asdict, dataclass
from struct import Struct

from hosts.algorithms import ALGORITHMS
from hosts.algorithms.base import (
    AckDetail,
    CancelTimer,
    Control,
    Feedback,
    Layer,
    Note,
    ReceptionState,
    SetControl,
    SetRate,
    SetReport,
    SetTimer,
    Timer,
)
from hosts.loop import Loop
from hosts.pacing import Pacer
from hosts.records import Clock, RecordWriter
from hosts.sockets import IPV4_UDP_HEADER_BYTES, mark_as_sender_control, open_udp
from hosts.wire import alsf, ntp, rtcp
from hosts.wire.errors import MalformedPacket
from hosts.wire.rtp import HEADER_BYTES, RtpPacket, RtpView
from hosts.wire.schedule import RtcpParameters, RtcpSchedule
from hosts.wire.statistics import SourceStatistics, loss_between

RTP_CLOCK_HZ = 90_000
"""Timestamp units per second, as for video (RFC 3551 section 5)."""
PAYLOAD_TYPE = 96
"""The first dynamic payload type (RFC 3551 section 6)."""
STAMP = Struct("!QQ")
"""The payload's first bytes: CLOCK_MONOTONIC of sending in ns, packets sent before. For measurement on one machine."""
HEADERS_BYTES = IPV4_UDP_HEADER_BYTES + HEADER_BYTES
"""IPv4, UDP, RTP: 40, as many as IPv4 and TCP without options."""
SENT_PERIOD_S = 1.0
BIN_S = 0.1
MAX_DROPOUT_PACKETS = 32_000
"""A blackout of so many packets does not restart a receiver's counting: 27 s at 1200 packets/s. RFC 3550's 3000 would lose a
ten-second outage from the books."""
SILENT_SOURCE_S = 10.0
"""After so long without data a receiver accepts another SSRC from the same peer: a sender that was started again."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line sets (`hosts.agent`)."""

    algorithm: str
    local: str
    peer: str
    port: int
    """Even; RTCP uses the next."""
    packet_bytes: int
    """IPv4 datagram, headers included."""
    max_rate_bps: float
    """Also the session bandwidth of RFC 3550 section 6.2."""
    ssrc: int
    seed: int
    start_unix_s: float | None
    stop_unix_s: float | None
    pacing_jitter: float
    exact_loss: bool
    """Losses from cumulative counts, instead of the 8-bit fraction of the report."""
    log: str


class _Runner:
    """What both halves share: the loop, algorithm timers, RTCP out."""

    role = ""

    def __init__(self, options: Options, parameters: object) -> None:
        self.options = options
        self.parameters = parameters
        self.clock = Clock()
        self.rng = random.Random(f"{options.seed}/{self.role}/{options.ssrc}")
        self.loop = Loop(self.clock)
        self.log = RecordWriter(options.log, self.clock)
        self.data_socket = open_udp(options.local, options.port, options.peer, options.port)
        self.control_socket = open_udp(options.local, options.port + 1, options.peer, options.port + 1)
        self.cname = f"{options.algorithm}-{options.ssrc:08x}@{options.local}".encode()
        self.schedule: RtcpSchedule | None = None
        self.send_errors = 0
        self.malformed_packets = 0
        self.rtcp_sent_packets = 0
        self.rtcp_received_packets = 0

    def run(self) -> None:
        """From start time to stop time or signal; then BYE, last records, sockets closed."""
        self.loop.catch_signals()
        gc.collect()
        gc.freeze()
        gc.disable()  # nothing here makes reference cycles; a collection would delay packets
        wanted_s = self.options.start_unix_s
        if wanted_s is not None:
            self.loop.wait_until(self.clock.mono_s(wanted_s))
        now = self.clock.now_s()
        late_s = 0.0 if wanted_s is None else max(0.0, now - self.clock.mono_s(wanted_s))
        stop_s = float("inf") if self.options.stop_unix_s is None else self.clock.mono_s(self.options.stop_unix_s)
        self.log.write(
            "start",
            now,
            role=self.role,
            late_s=round(late_s, 6),
            options=asdict(self.options),
            parameters=asdict(self.parameters),
            headers_bytes=HEADERS_BYTES,
        )
        self.log.flush()
        try:
            if not self.loop.stopping:
                self.start(now)
            while not self.loop.stopping and (now := self.clock.now_s()) < stop_s:
                self.loop.wait(min(self.step(now), stop_s))
            self.finish(self.clock.now_s())
        finally:
            self.log.close()
            self.loop.close()
            self.data_socket.close()
            self.control_socket.close()

    def start(self, now: float) -> None:
        raise NotImplementedError

    def step(self, now: float) -> float:
        """Do what is due; the time of the next thing to do."""
        raise NotImplementedError

    def finish(self, now: float) -> None:
        raise NotImplementedError

    def report(self, now: float) -> list[rtcp.RtcpPacket]:
        """The compound to send now."""
        raise NotImplementedError

    def ntp_now(self, now: float) -> int:
        return ntp.ntp_from_unix(self.clock.unix_s(now))

    def join(self, now: float) -> None:
        """Enter the RTP session: the RTCP timetable begins."""
        first = IPV4_UDP_HEADER_BYTES + 4 + len(rtcp.emit_compound(self.report(now)))
        bandwidth = RtcpParameters(session_bandwidth_bps=self.options.max_rate_bps)
        self.schedule = RtcpSchedule(now, bandwidth, self.options.ssrc, first, self.rng.random)

    def send_due_rtcp(self, now: float) -> None:
        schedule = self.schedule
        if schedule is not None and now >= schedule.next_s and schedule.expire(now):
            schedule.sent_rtcp(now, self.send_rtcp(self.report(now)))

    def send_rtcp(self, packets: list[rtcp.RtcpPacket]) -> int:
        """Returns the size with IP and UDP headers."""
        payload = rtcp.emit_compound(packets)
        try:
            self.control_socket.send(payload)
            self.rtcp_sent_packets += 1
        except OSError:
            # A report that cannot leave is a lost report (no route, no listener yet, full queue): the next one follows.
            self.send_errors += 1
        return len(payload) + IPV4_UDP_HEADER_BYTES

    def description(self) -> rtcp.SourceDescription:
        return rtcp.SourceDescription((rtcp.SdesChunk(self.options.ssrc, ((rtcp.CNAME, self.cname),)),))

    def say_bye(self, now: float) -> None:
        if self.schedule is not None:
            self.send_rtcp([*self.report(now), rtcp.Bye((self.options.ssrc,))])

    def read_control(self) -> None:
        """Drain the RTCP socket, at most 64 packets, so that a flood of them does not stop the data."""
        for _ in range(64):
            try:
                payload = self.control_socket.recv(65_535)
            except BlockingIOError:
                return
            except OSError:  # an ICMP error of an earlier sending, reported once
                continue
            now = self.clock.now_s()
            try:
                packets = rtcp.parse_compound(payload)
            except MalformedPacket as error:
                self.malformed_packets += 1
                self.log.write("malformed", now, where="rtcp", offset=error.offset, reason=error.reason)
                continue
            self.rtcp_received_packets += 1
            ssrc = packets[0].ssrc  # a compound starts with a report
            if ssrc == self.options.ssrc:
                continue  # our own SSRC from elsewhere: a loop or a collision (RFC 3550 section 8.2); nothing to learn
            self.on_compound(now, ssrc, packets)
            if self.schedule is not None:
                self.schedule.received_rtcp(now, ssrc, len(payload) + IPV4_UDP_HEADER_BYTES)
                for packet in packets:
                    if isinstance(packet, rtcp.Bye):
                        for gone in packet.ssrcs:
                            self.schedule.received_bye(now, gone)

    def on_compound(self, now: float, ssrc: int, packets: tuple[rtcp.RtcpPacket, ...]) -> None:
        raise NotImplementedError

    def apply(self, now: float, actions: tuple) -> None:
        for action in actions:
            match action:
                case SetTimer(name, at_s):
                    self.loop.set_timer(name, at_s)
                case CancelTimer(name):
                    self.loop.cancel_timer(name)
                case Note(kind, values):
                    self.log.write(kind, now, **dict(values))
                case _:
                    self.apply_own(now, action)

    def apply_own(self, now: float, action: object) -> None:
        raise NotImplementedError

    def refuse(self, action: object) -> None:
        raise TypeError(f"{self.options.algorithm} asks for {type(action).__name__}, which the UDP {self.role} does not do")


class SenderRunner(_Runner):
    """Paced RTP data and sender control packets out, receivers' reports in."""

    role = "sender"

    def __init__(self, options: Options, parameters: object) -> None:
        super().__init__(options, parameters)
        self.algorithm = ALGORITHMS[options.algorithm].sender(parameters)
        if self.algorithm.interests.acks is not AckDetail.NONE:
            raise TypeError(f"{options.algorithm} needs an acknowledgement for each packet; the UDP sender has RTCP only")
        mark_as_sender_control(self.control_socket)
        self.loop.add_reader(self.control_socket, self.read_control)
        self.pacer: Pacer | None = None
        self.control: SetControl | None = None
        self.sent_packets = 0
        self.first_sequence = self.rng.getrandbits(16)
        self.timestamp_offset = self.rng.getrandbits(32)
        first = RtpPacket(PAYLOAD_TYPE, 0, 0, options.ssrc).emit()
        self.buffer = bytearray(first + bytes(options.packet_bytes - IPV4_UDP_HEADER_BYTES - len(first)))
        self.variable = Struct("!HI")  # sequence number and timestamp, bytes 2..7 of the RTP header
        self.blocks: dict[int, rtcp.ReportBlock] = {}
        self.next_log_s = 0.0

    def start(self, now: float) -> None:
        self.apply(now, self.algorithm.on_start(now, self.rng))
        self.join(now)
        self.next_log_s = now + SENT_PERIOD_S
        self.write_sent(now)

    def step(self, now: float) -> float:
        count = self.pacer.take(now)
        if count:
            self.send_data(count)
            self.schedule.sent_data(now)
        self.send_due_rtcp(now)
        for name in self.loop.due_timers(now):
            self.apply(now, self.algorithm.on_timer(now, Timer(name), self.rng))
        if now >= self.next_log_s:
            self.write_sent(now)
            self.log.flush()
            self.next_log_s += SENT_PERIOD_S * (1 + (now - self.next_log_s) // SENT_PERIOD_S)
        return min(self.pacer.next_s, self.schedule.next_s, self.loop.next_timer_s(), self.next_log_s)

    def finish(self, now: float) -> None:
        self.say_bye(now)
        if self.pacer is not None:
            self.write_sent(now)
            forgiven = self.pacer.forgiven_packets
        else:
            forgiven = 0
        self.log.write(
            "end",
            now,
            sent_packets=self.sent_packets,
            sent_bytes=self.sent_packets * self.options.packet_bytes,
            forgiven_packets=forgiven,
            send_errors=self.send_errors,
            malformed_packets=self.malformed_packets,
            rtcp_sent_packets=self.rtcp_sent_packets,
            rtcp_received_packets=self.rtcp_received_packets,
        )

    def send_data(self, count: int) -> None:
        buffer = self.buffer
        for _ in range(count):
            now = self.clock.now_s()
            sequence = self.first_sequence + self.sent_packets & 0xFFFF
            self.variable.pack_into(buffer, 2, sequence, self.rtp_timestamp(now))
            STAMP.pack_into(buffer, HEADER_BYTES, int(now * 1e9), self.sent_packets)
            try:
                self.data_socket.send(buffer)
            except OSError:
                # The packet never left (full local queue, no route), or an ICMP error of an earlier one is reported now: not
                # sent, and its sequence number is used by the next, so that receivers see network losses alone.
                self.send_errors += 1
            else:
                self.sent_packets += 1

    def rtp_timestamp(self, now: float) -> int:
        return int(now * RTP_CLOCK_HZ) + self.timestamp_offset & 0xFFFFFFFF

    def report(self, now: float) -> list[rtcp.RtcpPacket]:
        payload = self.sent_packets * (self.options.packet_bytes - HEADERS_BYTES)
        packets: list[rtcp.RtcpPacket] = [
            rtcp.SenderReport(
                ssrc=self.options.ssrc,
                ntp=self.ntp_now(now),
                rtp_timestamp=self.rtp_timestamp(now),
                packet_count=self.sent_packets & 0xFFFFFFFF,
                octet_count=payload & 0xFFFFFFFF,
            ),
            self.description(),
        ]
        if (control := self.control) is not None:
            layers = tuple((layer.address, alsf.rate_field(layer.rate_bps)) for layer in control.layers)
            rate, utilisation = alsf.rate_field(control.desired_rate_bps), alsf.utilisation_field(control.utilisation)
            packets.append(alsf.Alsf(True, self.options.ssrc, rate, utilisation, layers).to_app())
        return packets

    def on_compound(self, now: float, ssrc: int, packets: tuple[rtcp.RtcpPacket, ...]) -> None:
        echoed = alsf.find_alsf(packets, from_sender=False)
        for packet in packets:
            if isinstance(packet, (rtcp.SenderReport, rtcp.ReceiverReport)):
                for block in packet.blocks:
                    if block.ssrc == self.options.ssrc:
                        self.on_block(now, packet.ssrc, block, echoed)
            elif isinstance(packet, rtcp.Bye):
                for gone in packet.ssrcs:
                    self.blocks.pop(gone, None)
                    self.log.write("bye", now, ssrc=gone)
                    self.apply(now, self.algorithm.on_leave(now, gone, self.rng))

    def on_block(self, now: float, reporter: int, block: rtcp.ReportBlock, echoed: alsf.Alsf | None) -> None:
        exact = loss_between(self.blocks.get(reporter), block)
        if reporter in self.blocks or len(self.blocks) < 4096:  # forged reporters must not use up memory
            self.blocks[reporter] = block
        loss = exact.fraction if self.options.exact_loss and exact is not None else block.fraction_lost / 256
        if echoed is not None and echoed.ssrc != reporter:
            echoed = None
        feedback = Feedback(
            reporter=reporter,
            loss_fraction=loss,
            rtt_s=ntp.round_trip_s(self.ntp_now(now), block.lsr, block.dlsr),
            jitter_s=block.jitter / RTP_CLOCK_HZ,
            desired_rate_bps=None if echoed is None else float(echoed.desired_rate_bps),
            utilisation=None if echoed is None else echoed.utilisation_ppm * alsf.UTILISATION_UNIT,
        )
        self.log.write(
            "feedback",
            now,
            ssrc=reporter,
            rd_bps=None if echoed is None else echoed.desired_rate_bps,
            u=feedback.utilisation,
            loss=loss,
            loss_8bit=block.fraction_lost / 256,
            loss_exact=None if exact is None else exact.fraction,
            cumulative_lost=block.cumulative_lost,
            rtt_s=feedback.rtt_s,
            jitter_s=feedback.jitter_s,
        )
        self.apply(now, self.algorithm.on_feedback(now, feedback, self.rng))

    def apply_own(self, now: float, action: object) -> None:
        match action:
            case SetRate(rate_bps, burst_packets):
                if self.pacer is None:
                    options = self.options
                    self.pacer = Pacer(
                        now,
                        rate_bps,
                        options.packet_bytes,
                        phase=self.rng.random(),
                        jitter=options.pacing_jitter,
                        random=self.rng.random,
                    )
                    self.pacer.burst_packets = burst_packets
                elif rate_bps != self.pacer.rate_bps or burst_packets != self.pacer.burst_packets:
                    self.pacer.set_rate(now, rate_bps, burst_packets)
                    self.write_sent(now)
            case SetControl():
                self.control = action
            case _:
                self.refuse(action)

    def write_sent(self, now: float) -> None:
        self.log.write(
            "sent",
            now,
            rate_bps=self.pacer.rate_bps,
            sent_packets=self.sent_packets,
            sent_bytes=self.sent_packets * self.options.packet_bytes,
        )


class ReceiverRunner(_Runner):
    """RTP data and sender control packets in, reports out. Joins the session when it first hears the sender."""

    role = "receiver"

    def __init__(self, options: Options, parameters: object) -> None:
        super().__init__(options, parameters)
        self.algorithm = ALGORITHMS[options.algorithm].receiver(parameters)
        if self.algorithm.interests.gaps:
            raise TypeError(f"{options.algorithm} needs sequence gaps as they happen; the UDP receiver has RTCP statistics only")
        self.loop.add_reader(self.data_socket, self.read_data)
        self.loop.add_reader(self.control_socket, self.read_control)
        self.buffer = bytearray(65_536)
        self.source: SourceStatistics | None = None
        self.source_gone = False
        self.last_arrival_s = 0.0
        self.received_packets = 0
        self.received_bytes = 0
        self.foreign_packets = 0
        self.delay_sum_s = 0.0
        self.delay_max_s = 0.0
        self.logged_packets = 0
        self.logged_bytes = 0
        self.expected_before = 0  # of sources and restarts that are over
        self.echo: SetReport | None = None
        self.last_sr: tuple[int, float] | None = None  # (middle of its NTP timestamp, arrival)
        self.next_bin_s = 0.0
        self.next_flush_s = 0.0

    def start(self, now: float) -> None:
        self.apply(now, self.algorithm.on_start(now, self.rng))
        # Bins end at whole tenths of Unix time, the same for all flows.
        self.next_bin_s = self.clock.mono_s((self.clock.unix_s(now) // BIN_S + 1) * BIN_S)
        self.next_flush_s = now + 1.0

    def step(self, now: float) -> float:
        self.send_due_rtcp(now)
        for name in self.loop.due_timers(now):
            self.apply(now, self.algorithm.on_timer(now, Timer(name), self.reception(), self.rng))
        if now >= self.next_bin_s:
            late_bins = int((now - self.next_bin_s) / BIN_S)
            self.write_data(now)
            self.next_bin_s += (1 + late_bins) * BIN_S
            if now >= self.next_flush_s:
                self.log.flush()
                self.next_flush_s = now + 1.0
        wake = min(self.next_bin_s, self.loop.next_timer_s())
        return wake if self.schedule is None else min(wake, self.schedule.next_s)

    def finish(self, now: float) -> None:
        self.read_data()
        self.say_bye(now)
        self.write_data(now)
        self.log.write(
            "end",
            now,
            received_packets=self.received_packets,
            received_bytes=self.received_bytes,
            lost_packets=self.lost_packets(),
            out_of_order_packets=0 if self.source is None else self.source.out_of_order_packets,
            restarts=0 if self.source is None else self.source.restarts,
            foreign_packets=self.foreign_packets,
            send_errors=self.send_errors,
            malformed_packets=self.malformed_packets,
            rtcp_sent_packets=self.rtcp_sent_packets,
            rtcp_received_packets=self.rtcp_received_packets,
        )

    def read_data(self) -> None:
        """Drain the data socket, at most 256 packets, so that reports keep their time under load."""
        sock, buffer = self.data_socket, self.buffer
        for _ in range(256):
            try:
                size = sock.recv_into(buffer)
            except BlockingIOError:
                return
            except OSError:  # an ICMP error of an earlier sending, reported once
                continue
            now = self.clock.now_s()
            try:
                view = RtpView(buffer, size)
            except MalformedPacket as error:
                self.malformed_packets += 1
                self.log.write("malformed", now, where="rtp", offset=error.offset, reason=error.reason)
                continue
            source = self.source
            if source is None or view.ssrc != source.ssrc:
                source = self.adopt(now, view.ssrc)
                if source is None:
                    self.foreign_packets += 1
                    continue
            restarts, expected = source.restarts, source.expected_packets
            source.update(view.sequence, view.timestamp, now)
            if source.restarts != restarts:
                self.expected_before += expected
            self.last_arrival_s = now
            self.received_packets += 1
            self.received_bytes += size + IPV4_UDP_HEADER_BYTES
            if view.payload_end - view.payload_start >= STAMP.size:
                delay_s = now - STAMP.unpack_from(buffer, view.payload_start)[0] * 1e-9
                self.delay_sum_s += delay_s
                if delay_s > self.delay_max_s:
                    self.delay_max_s = delay_s
            if self.schedule is None:
                self.join(now)
            self.schedule.received_data(now, view.ssrc)

    def adopt(self, now: float, ssrc: int) -> SourceStatistics | None:
        """Statistics for a first source, or for one that takes the place of a source that has ended; else `None`."""
        old = self.source
        if old is not None:
            if not self.source_gone and now - self.last_arrival_s < SILENT_SOURCE_S:
                return None
            self.expected_before += old.expected_packets
        self.source = SourceStatistics(ssrc, RTP_CLOCK_HZ, MAX_DROPOUT_PACKETS)
        self.source_gone = False
        self.last_sr = self.echo = None
        self.log.write("source", now, ssrc=ssrc)
        return self.source

    def report(self, now: float) -> list[rtcp.RtcpPacket]:
        lsr, dlsr = 0, 0
        if self.last_sr is not None:
            lsr, dlsr = self.last_sr[0], ntp.dlsr_units(now - self.last_sr[1])
        blocks = () if self.source is None or self.source_gone else (self.source.report_block(lsr, dlsr),)
        packets: list[rtcp.RtcpPacket] = [rtcp.ReceiverReport(self.options.ssrc, blocks), self.description()]
        if (echo := self.echo) is not None:
            rate, utilisation = alsf.rate_field(echo.desired_rate_bps), alsf.utilisation_field(echo.utilisation)
            packets.append(alsf.Alsf(False, self.options.ssrc, rate, utilisation).to_app())
        return packets

    def on_compound(self, now: float, ssrc: int, packets: tuple[rtcp.RtcpPacket, ...]) -> None:
        if self.source is not None and ssrc != self.source.ssrc:
            self.foreign_packets += 1
            return
        for packet in packets:
            if isinstance(packet, rtcp.SenderReport):
                self.last_sr = (ntp.middle_32(packet.ntp), now)
            elif isinstance(packet, rtcp.Bye) and ssrc in packet.ssrcs:
                self.source_gone = True
                self.log.write("bye", now, ssrc=ssrc)
        said = alsf.find_alsf(packets, from_sender=True)
        if said is not None:
            u = said.utilisation_ppm * alsf.UTILISATION_UNIT
            self.log.write("control", now, ssrc=ssrc, rd_bps=said.desired_rate_bps, u=u)
            layers = tuple(Layer(address, float(rate)) for address, rate in said.layers)
            control = Control(ssrc, float(said.desired_rate_bps), u, layers)
            self.apply(now, self.algorithm.on_control(now, control, self.rng))

    def apply_own(self, now: float, action: object) -> None:
        match action:
            case SetReport():
                self.echo = action
            case _:
                self.refuse(action)

    def lost_packets(self) -> int:
        """Expected minus received, over all sources; a network that duplicates packets makes it smaller."""
        expected = self.expected_before + (0 if self.source is None else self.source.expected_packets)
        return expected - self.received_packets

    def reception(self) -> ReceptionState:
        highest = 0 if self.source is None else self.source.extended_highest_sequence
        return ReceptionState(
            self.received_packets, self.received_bytes, max(0, self.lost_packets()), highest, self.last_arrival_s
        )

    def write_data(self, now: float) -> None:
        packets = self.received_packets - self.logged_packets
        source = self.source
        self.log.write(
            "data",
            now,
            packets=packets,
            bytes=self.received_bytes - self.logged_bytes,
            received_packets=self.received_packets,
            received_bytes=self.received_bytes,
            highest_sequence=None if source is None else source.extended_highest_sequence,
            lost_packets=self.lost_packets(),
            delay_mean_s=round(self.delay_sum_s / packets, 6) if packets else None,
            delay_max_s=round(self.delay_max_s, 6) if packets else None,
        )
        self.logged_packets, self.logged_bytes = self.received_packets, self.received_bytes
        self.delay_sum_s = self.delay_max_s = 0.0


RUNNERS: dict[str, type[SenderRunner] | type[ReceiverRunner]] = {"sender": SenderRunner, "receiver": ReceiverRunner}
