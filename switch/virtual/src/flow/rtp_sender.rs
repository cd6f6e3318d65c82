//! The sending end of a rate-adaptive flow: paced RTP data out, RTCP both ways; the rate is the algorithm's decision.
//! The rules are those of `SenderRunner` in `hosts/runner_udp.py`.

use std::collections::BTreeMap;

use super::acks::{AckBook, AckPacket};
use super::report::ReportPacket;
use super::timers::Timers;
use super::{instant, Ends, Io, RtpSpec};
use crate::algorithm::{AckDetail, Action, Actions, Fault, Feedback, Layer, Loss, SenderAlgorithm};
use crate::pacer::Pacer;
use crate::record::{FlowLog, FlowRecord};
use crate::rng::Rng;
use crate::rtcp_schedule::RtcpSchedule;
use crate::statistics::loss_between;
use crate::wire::ip::{self, Datagram, ETHERNET_BYTES, IPV4_BYTES, PROTOCOL_UDP, UDP_BYTES};
use crate::wire::rtcp::{Alsf, Compound, ReportBlock, SenderInfo};
use crate::wire::rtp::{LONG_STAMP_BYTES, STAMP_BYTES};
use crate::wire::{ntp, rtp};
use crate::Nanos;

/// Forged reporters must not use up memory.
const MAX_REPORTERS: usize = 4096;
/// Packets: what an algorithm can ask for as its window; more would only fill memory.
const MAX_WINDOW: f64 = 1e6;
/// Time between records of what was sent.
const SENT_PERIOD: Nanos = 1_000_000_000;
const IP_UDP_BYTES: usize = IPV4_BYTES + UDP_BYTES;
/// Where RTP begins in a data frame.
const RTP_AT: usize = ETHERNET_BYTES + IP_UDP_BYTES;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Running,
    Over,
}

/// See the module.
pub(crate) struct RtpSender {
    ends: Ends,
    spec: SenderSpec,
    algorithm: Box<dyn SenderAlgorithm>,
    state: State,
    rng: Rng,
    pacer: Option<Pacer>,
    schedule: Option<RtcpSchedule>,
    timers: Timers,
    control: Option<Alsf>,
    actions: Actions,
    /// A whole data frame; sequence number, timestamp, stamp and checksum change.
    frame: Vec<u8>,
    /// The sum over what does not change of a data packet's UDP checksum.
    constant_sum: u64,
    first_sequence: u16,
    timestamp_offset: u32,
    sent_packets: u64,
    blocks: BTreeMap<u32, ReportBlock>,
    rtcp_sent: u64,
    rtcp_received: u64,
    /// Acknowledgements and reports that arrived.
    feedback_received: u64,
    malformed: u64,
    next_log: Nanos,
    /// For an algorithm that wants acknowledgements of single packets.
    acks: Option<AckBook>,
    hears_all: bool,
    /// In packets, where the algorithm sets one.
    window: Option<f64>,
    pub(crate) log: FlowLog,
}

struct SenderSpec {
    packet_bytes: u32,
    session_bandwidth_bps: f64,
    pacing_jitter: f64,
    phase: Option<f64>,
    exact_loss: bool,
    ssrc: u32,
    cname: Vec<u8>,
    name: String,
}

impl RtpSender {
    /// `rng`: the flow's own.
    pub(crate) fn new(name: &str, ends: Ends, spec: &RtpSpec, algorithm: Box<dyn SenderAlgorithm>, seed: u64) -> Self {
        let interests = algorithm.interests();
        let acks = (interests.acks != AckDetail::None).then(|| AckBook::new(interests.loss_distance_packets.max(1)));
        let mut rng = Rng::stream(seed, &format!("flow {name} sender"));
        let (first_sequence, timestamp_offset) = (rng.bits() as u16, rng.bits() as u32);
        let payload = spec.packet_bytes as usize - IPV4_BYTES;
        let mut frame = Vec::new();
        ip::push_headers(&mut frame, &ends.own, ends.peer, PROTOCOL_UDP, 0, &[], payload);
        push_udp(&mut frame, ends.port, payload);
        let header = rtp::RtpHeader { sequence: 0, timestamp: 0, ssrc: spec.sender_ssrc };
        frame.extend_from_slice(&header.emit());
        frame.resize(ETHERNET_BYTES + spec.packet_bytes as usize, 0);
        let constant_sum = ip::pseudo_header(ends.own.ip, ends.peer, PROTOCOL_UDP, payload) + ip::sum(&frame[ETHERNET_BYTES + IPV4_BYTES..]);
        RtpSender {
            spec: SenderSpec {
                packet_bytes: spec.packet_bytes,
                session_bandwidth_bps: spec.session_bandwidth_bps,
                pacing_jitter: spec.pacing_jitter,
                phase: spec.phase,
                exact_loss: spec.exact_loss,
                ssrc: spec.sender_ssrc,
                cname: spec.sender_cname.clone().into_bytes(),
                name: name.to_string(),
            },
            ends,
            algorithm,
            state: State::Waiting,
            rng,
            pacer: None,
            schedule: None,
            timers: Timers::default(),
            control: None,
            actions: Actions::new(),
            frame,
            constant_sum,
            first_sequence,
            timestamp_offset,
            sent_packets: 0,
            blocks: BTreeMap::new(),
            rtcp_sent: 0,
            rtcp_received: 0,
            feedback_received: 0,
            malformed: 0,
            next_log: 0,
            acks,
            hears_all: interests.acks == AckDetail::Every,
            window: None,
            log: FlowLog::new(),
        }
    }

    pub(crate) fn next(&self) -> Option<Nanos> {
        match self.state {
            State::Waiting => Some(self.ends.start),
            State::Over => None,
            State::Running => {
                let paced = self.pacer.as_ref().map(Pacer::next);
                let scheduled = self.schedule.as_ref().map(|schedule| instant(schedule.next_s()));
                let expiry = self.acks.as_ref().and_then(AckBook::next_expiry);
                let due = [paced, scheduled, expiry, self.timers.next()].into_iter().flatten().min();
                Some(due.unwrap_or(Nanos::MAX).min(self.next_log).min(self.ends.stop))
            }
        }
    }

    pub(crate) fn act(&mut self, io: &mut Io) -> Result<(), Fault> {
        if self.state == State::Waiting {
            return self.start(io);
        }
        if self.state == State::Over {
            return Ok(());
        }
        let now = io.now;
        if now >= self.ends.stop {
            self.finish(io);
            return Ok(());
        }
        let expired = self.acks.as_mut().and_then(|acks| acks.expire(now));
        self.on_loss(expired, io)?;
        if let Some(pacer) = self.pacer.as_mut().filter(|pacer| pacer.next() <= now) {
            for _ in 0..pacer.take() {
                if self.window_is_open() {
                    self.send_data(io);
                }
            }
            if let Some(schedule) = &mut self.schedule {
                schedule.sent_data(io.now_s());
            }
        }
        let now_s = io.now_s();
        if let Some(schedule) = self.schedule.as_mut().filter(|schedule| instant(schedule.next_s()) <= now) {
            if schedule.expire(now_s) {
                let bytes = self.send_rtcp(io, false);
                if let Some(schedule) = &mut self.schedule {
                    schedule.sent_rtcp(now_s, bytes);
                }
            }
        }
        while let Some(name) = self.timers.take_due(now)? {
            let path = self.acks.as_ref().map(AckBook::path);
            self.algorithm.on_timer(now, &name, path.as_ref(), &mut self.actions)?;
            self.apply(io)?;
        }
        if now >= self.next_log {
            self.note_sent(now);
            self.next_log += SENT_PERIOD;
        }
        Ok(())
    }

    pub(crate) fn receive(&mut self, datagram: &Datagram, io: &mut Io) -> Result<(), Fault> {
        if self.state != State::Running {
            return Ok(());
        }
        if datagram.ports().is_some_and(|(_, to)| to == self.ends.port) {
            return self.on_direct(datagram, io);
        }
        let Some(compound) = datagram.udp_payload().and_then(Compound::parse) else {
            self.malformed += 1;
            self.log.push((io.now, FlowRecord::Malformed { rtcp: true }));
            return Ok(());
        };
        self.rtcp_received += 1;
        if compound.ssrc == self.spec.ssrc {
            // Our own SSRC from elsewhere: a loop or a collision (RFC 3550 section 8.2); nothing to learn.
            return Ok(());
        }
        let own = self.spec.ssrc;
        for block in compound.blocks.iter().filter(|block| block.ssrc == own) {
            self.on_block(block, &compound, io)?;
        }
        for &gone in &compound.bye {
            self.blocks.remove(&gone);
            self.log.push((io.now, FlowRecord::Bye { ssrc: gone }));
            self.algorithm.on_leave(io.now, gone, &mut self.actions)?;
            self.apply(io)?;
        }
        let now_s = io.now_s();
        if let Some(schedule) = &mut self.schedule {
            schedule.received_rtcp(now_s, compound.ssrc, datagram.payload.len() + IPV4_BYTES);
            for &gone in &compound.bye {
                schedule.received_bye(now_s, gone);
            }
        }
        Ok(())
    }

    pub(crate) fn sample(&mut self, _now: Nanos) {}

    fn start(&mut self, io: &mut Io) -> Result<(), Fault> {
        self.state = State::Running;
        self.log.push((io.now, FlowRecord::Start));
        self.algorithm.on_start(io.now, &mut self.actions)?;
        self.apply(io)?;
        if self.pacer.is_none() && self.window.is_none() {
            return Err(format!("flow {}: its algorithm starts without SetRate or SetWindow", self.spec.name).into());
        }
        if self.algorithm.interests().rtcp {
            let mut first = Vec::new();
            self.report(io, false).emit(&mut first);
            let bytes = IP_UDP_BYTES + ip::ROUTER_ALERT.len() + first.len();
            let rng = Rng::stream(self.rng.bits(), "rtcp");
            let bandwidth = self.spec.session_bandwidth_bps;
            self.schedule = Some(RtcpSchedule::new(io.now_s(), bandwidth, self.spec.ssrc, bytes, rng));
        }
        self.note_sent(io.now);
        self.next_log = io.now + SENT_PERIOD;
        self.fill_window(io);
        Ok(())
    }

    fn finish(&mut self, io: &mut Io) {
        if self.schedule.is_some() {
            self.send_rtcp(io, true);
        }
        self.note_sent(io.now);
        let end = FlowRecord::End {
            packets: self.sent_packets,
            rtcp_sent: self.rtcp_sent,
            rtcp_received: self.rtcp_received,
            feedback: self.feedback_received,
            malformed: self.malformed,
            foreign: 0,
        };
        self.log.push((io.now, end));
        self.state = State::Over;
    }

    fn note_sent(&mut self, now: Nanos) {
        let rate_bps = self.pacer.as_ref().map_or(0.0, |pacer| pacer.rate_bps);
        self.log.push((now, FlowRecord::Sent { rate_bps, packets: self.sent_packets }));
    }

    fn send_data(&mut self, io: &mut Io) {
        let sequence = self.first_sequence.wrapping_add(self.sent_packets as u16);
        let mut changing = [0; 24];
        // Sequence number and timestamp are bytes 2..8 of RTP, the stamp is bytes 12..28.
        changing[..2].copy_from_slice(&sequence.to_be_bytes());
        changing[2..6].copy_from_slice(&self.rtp_timestamp(io.now).to_be_bytes());
        changing[8..16].copy_from_slice(&io.now.to_be_bytes());
        changing[16..].copy_from_slice(&self.sent_packets.to_be_bytes());
        let checksum = ip::fold(self.constant_sum + ip::sum(&changing));
        let mut frame = io.pool.take();
        frame.extend_from_slice(&self.frame);
        frame[RTP_AT + 2..RTP_AT + 8].copy_from_slice(&changing[..6]);
        frame[RTP_AT + 12..RTP_AT + 28].copy_from_slice(&changing[8..]);
        // 0 would say that there is no checksum (RFC 768).
        let checksum = if checksum == 0 { 0xffff } else { checksum };
        frame[RTP_AT - 2..RTP_AT].copy_from_slice(&checksum.to_be_bytes());
        self.sent_packets += 1;
        if let Some(acks) = &mut self.acks {
            acks.sent(io.now);
        }
        io.work.data_packets += 1;
        io.send(frame);
    }

    fn rtp_timestamp(&self, now: Nanos) -> u32 {
        let units = u128::from(now) * u128::from(rtp::CLOCK_HZ) / 1_000_000_000;
        (units as u32).wrapping_add(self.timestamp_offset)
    }

    fn report(&self, io: &Io, bye: bool) -> Compound {
        let payload = self.sent_packets * (u64::from(self.spec.packet_bytes) - (IP_UDP_BYTES + rtp::HEADER_BYTES) as u64);
        Compound {
            ssrc: self.spec.ssrc,
            sender: Some(SenderInfo {
                ntp: ntp::from_unix(io.epoch + io.now),
                rtp_timestamp: self.rtp_timestamp(io.now),
                packet_count: self.sent_packets as u32,
                octet_count: payload as u32,
            }),
            cname: self.spec.cname.clone(),
            from_sender: self.control.clone(),
            bye: if bye { vec![self.spec.ssrc] } else { Vec::new() },
            ..Compound::default()
        }
    }

    /// With the router alert option and UDP checksum 0. Returns the size with IP and UDP headers, as the timetable counts it.
    fn send_rtcp(&mut self, io: &mut Io, bye: bool) -> usize {
        let mut payload = io.pool.take();
        self.report(io, bye).emit(&mut payload);
        let mut frame = io.pool.take();
        let bytes = UDP_BYTES + payload.len();
        ip::push_headers(&mut frame, &self.ends.own, self.ends.peer, PROTOCOL_UDP, 0, &ip::ROUTER_ALERT, bytes);
        push_udp(&mut frame, self.ends.port + 1, bytes);
        frame.extend_from_slice(&payload);
        io.pool.give(payload);
        io.send(frame);
        self.rtcp_sent += 1;
        bytes + IPV4_BYTES
    }

    /// Feedback beside RTCP: to the data port.
    fn on_direct(&mut self, datagram: &Datagram, io: &mut Io) -> Result<(), Fault> {
        let Some(payload) = datagram.udp_payload() else { return Ok(()) };
        if let Some(report) = ReportPacket::parse(payload) {
            return self.on_report(&report, io);
        }
        let acknowledged = AckPacket::parse(payload).and_then(|ack| self.acks.as_mut()?.acknowledge(io.now, ack));
        let Some((loss, ack)) = acknowledged else {
            self.malformed += 1;
            return Ok(());
        };
        self.feedback_received += 1;
        self.on_loss(loss, io)?;
        if let Some(ack) = ack.filter(|_| self.hears_all) {
            self.algorithm.on_ack(io.now, &ack, &mut self.actions)?;
            self.apply(io)?;
        }
        self.fill_window(io);
        Ok(())
    }

    fn on_report(&mut self, report: &ReportPacket, io: &mut Io) -> Result<(), Fault> {
        self.feedback_received += 1;
        let feedback = report.feedback(io.now);
        self.log.push((io.now, FlowRecord::Report {
            reporter: report.reporter,
            loss: feedback.loss_fraction,
            rtt_s: feedback.rtt_s,
            receive_rate_bps: report.receive_rate_bps,
            loss_event_rate: feedback.loss_event_rate,
            expected_packets: report.expected,
            lost_packets: report.lost,
        }));
        self.algorithm.on_feedback(io.now, &feedback, &mut self.actions)?;
        self.apply(io)?;
        self.fill_window(io);
        Ok(())
    }

    fn on_loss(&mut self, loss: Option<Loss>, io: &mut Io) -> Result<(), Fault> {
        let Some(loss) = loss else { return Ok(()) };
        self.algorithm.on_loss(io.now, &loss, &mut self.actions)?;
        self.apply(io)?;
        self.fill_window(io);
        Ok(())
    }

    fn window_is_open(&self) -> bool {
        match (self.window, &self.acks) {
            (Some(window), Some(acks)) => (acks.in_flight() as f64) < window,
            _ => true,
        }
    }

    /// A flow without pacing sends as much as its window admits.
    fn fill_window(&mut self, io: &mut Io) {
        while self.pacer.is_none() && self.window.is_some() && self.window_is_open() {
            self.send_data(io);
        }
    }

    fn on_block(&mut self, block: &ReportBlock, compound: &Compound, io: &mut Io) -> Result<(), Fault> {
        let reporter = compound.ssrc;
        let exact = loss_between(self.blocks.get(&reporter), block);
        if self.blocks.contains_key(&reporter) || self.blocks.len() < MAX_REPORTERS {
            self.blocks.insert(reporter, *block);
        }
        let loss_8bit = f64::from(block.fraction_lost) / 256.0;
        let loss = if self.spec.exact_loss { exact.unwrap_or(loss_8bit) } else { loss_8bit };
        let echoed = compound.from_receiver.as_ref().filter(|echoed| echoed.ssrc == reporter);
        let utilisation = echoed.map(|echoed| f64::from(echoed.utilisation_ppm) * 1e-6);
        let rtt_s = ntp::round_trip(ntp::from_unix(io.epoch + io.now), block.lsr, block.dlsr);
        let jitter_s = f64::from(block.jitter) / rtp::CLOCK_HZ as f64;
        let feedback = Feedback {
            reporter,
            loss_fraction: loss,
            rtt_s,
            jitter_s: Some(jitter_s),
            desired_rate_bps: echoed.map(|echoed| echoed.desired_rate_bps as f64),
            utilisation,
            ..Feedback::default()
        };
        self.log.push((io.now, FlowRecord::Feedback {
            reporter,
            loss,
            loss_8bit,
            loss_exact: exact,
            cumulative_lost: block.cumulative_lost,
            desired_rate_bps: echoed.map(|echoed| echoed.desired_rate_bps),
            utilisation,
            rtt_s,
            jitter_s,
        }));
        self.algorithm.on_feedback(io.now, &feedback, &mut self.actions)?;
        self.apply(io)
    }

    fn apply(&mut self, io: &mut Io) -> Result<(), Fault> {
        let mut actions = std::mem::take(&mut self.actions);
        for action in actions.drain(..) {
            match action {
                Action::SetRate { rate_bps, burst_packets } => self.set_rate(rate_bps, burst_packets, io)?,
                Action::SetControl { desired_rate_bps, utilisation, layers } => {
                    self.control = Some(Alsf {
                        ssrc: self.spec.ssrc,
                        desired_rate_bps: rate_field(desired_rate_bps),
                        utilisation_ppm: utilisation_field(utilisation),
                        layers: layers.iter().map(|layer: &Layer| (layer.address, rate_field(layer.rate_bps))).collect(),
                    });
                }
                Action::SetTimer { name, at_s } => self.timers.set(name, instant(at_s).max(io.now)),
                Action::CancelTimer { name } => self.timers.cancel(&name),
                Action::Note { kind, values } => self.log.push((io.now, FlowRecord::Note { kind, values })),
                Action::SetWindow { window_packets } if self.acks.is_some() && (1.0..=MAX_WINDOW).contains(&window_packets) => {
                    self.window = Some(window_packets);
                }
                Action::SetLossTimeout { timeout_s } => {
                    if let Some(acks) = &mut self.acks {
                        acks.set_timeout(instant(timeout_s).max(1));
                    }
                }
                Action::StampData { rtt_s } => self.stamp(rtt_s)?,
                other => return Err(format!("flow {}: {other:?} is not for this RTP sender", self.spec.name).into()),
            }
        }
        self.actions = actions;
        Ok(())
    }

    /// All data from now on carries the round-trip time: at least 1 us, since 0 says that it is not known.
    fn stamp(&mut self, rtt_s: f64) -> Result<(), Fault> {
        let at = RTP_AT + rtp::HEADER_BYTES;
        let Some(place) = self.frame.get_mut(at + STAMP_BYTES..at + LONG_STAMP_BYTES) else {
            let least = IP_UDP_BYTES + rtp::HEADER_BYTES + LONG_STAMP_BYTES;
            return Err(format!("flow {}: StampData needs packets of {least} bytes or more", self.spec.name).into());
        };
        let micros = (rtt_s * 1e6).round_ties_even().max(1.0) as u32;
        place.copy_from_slice(&micros.to_be_bytes());
        self.constant_sum = self.sum_of_frame();
        Ok(())
    }

    fn sum_of_frame(&self) -> u64 {
        let udp = &self.frame[ETHERNET_BYTES + IPV4_BYTES..];
        ip::pseudo_header(self.ends.own.ip, self.ends.peer, PROTOCOL_UDP, udp.len()) + ip::sum(udp)
    }

    fn set_rate(&mut self, rate_bps: f64, burst_packets: u32, io: &mut Io) -> Result<(), Fault> {
        if !(rate_bps > 0.0 && rate_bps.is_finite()) || burst_packets == 0 {
            return Err(format!("flow {}: SetRate of {rate_bps} bit/s in bursts of {burst_packets}: both must be positive", self.spec.name).into());
        }
        match &mut self.pacer {
            None => {
                let phase = self.spec.phase.unwrap_or_else(|| self.rng.unit());
                let rng = Rng::stream(self.rng.bits(), "pacing");
                let bytes = self.spec.packet_bytes;
                self.pacer = Some(Pacer::new(io.now, rate_bps, burst_packets, bytes, phase, self.spec.pacing_jitter, rng));
            }
            Some(pacer) if pacer.rate_bps != rate_bps || pacer.burst_packets != burst_packets => {
                pacer.set_rate(io.now, rate_bps, burst_packets);
                self.note_sent(io.now);
            }
            Some(_) => {}
        }
        Ok(())
    }
}

/// Appends a UDP header with checksum 0; both ports are `port`. `bytes`: header and payload.
pub(super) fn push_udp(frame: &mut Vec<u8>, port: u16, bytes: usize) {
    for half in [port, port, bytes as u16, 0] {
        frame.extend_from_slice(&half.to_be_bytes());
    }
}

/// A rate as the 64-bit field holds it: rounded down, limited to the field.
pub(super) fn rate_field(rate_bps: f64) -> u64 {
    rate_bps as u64
}

/// A fraction as parts per million: rounded half to even as Python does, limited to the field.
pub(super) fn utilisation_field(utilisation: f64) -> u32 {
    (utilisation * 1e6).round_ties_even() as u32
}
