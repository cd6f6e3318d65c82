//! The receiving end of a rate-adaptive flow: RTP data and sender control packets in, reports out. It joins the session when it
//! first hears the sender. The rules are those of `ReceiverRunner` in `hosts/runner_udp.py`.

use super::acks::Arrivals;
use super::report::{loss_event_field, ReportBook, ReportPacket};
use super::rtp_sender::{push_udp, rate_field, utilisation_field};
use super::timers::Timers;
use super::{instant, seconds, Ends, Io, RtpSpec};
use crate::algorithm::{Action, Actions, Control, Fault, Gap, Layer, ReceiverAlgorithm, ReceptionState};
use crate::record::{FlowLog, FlowRecord};
use crate::rng::Rng;
use crate::rtcp_schedule::RtcpSchedule;
use crate::statistics::SourceStatistics;
use crate::wire::ip::{self, Datagram, IPV4_BYTES, PROTOCOL_UDP, UDP_BYTES};
use crate::wire::rtcp::{Alsf, Compound};
use crate::wire::rtp::{RtpHeader, LONG_STAMP_BYTES, STAMP_BYTES};
use crate::wire::ntp;
use crate::Nanos;

/// After so long without data a receiver accepts another SSRC from the same peer: a sender that was started again.
const SILENT_SOURCE: Nanos = 10_000_000_000;

/// See the module.
pub(crate) struct RtpReceiver {
    ends: Ends,
    name: String,
    session_bandwidth_bps: f64,
    ssrc: u32,
    cname: Vec<u8>,
    algorithm: Box<dyn ReceiverAlgorithm>,
    reports: bool,
    gaps: bool,
    arrivals: Option<Arrivals>,
    started: bool,
    over: bool,
    rng: Rng,
    schedule: Option<RtcpSchedule>,
    timers: Timers,
    actions: Actions,
    source: Option<SourceStatistics>,
    source_gone: bool,
    last_arrival: Nanos,
    packets: u64,
    bytes: u64,
    /// Losses of sources that are over.
    lost_before: i64,
    foreign: u64,
    delay_sum: u64,
    delay_max: u64,
    /// Of the newest data packet.
    stamped: Nanos,
    sender_rtt_s: Option<f64>,
    reported: ReportBook,
    feedback_sent: u64,
    echo: Option<Alsf>,
    /// Middle of the last SR's NTP timestamp, and when it arrived.
    last_sr: Option<(u32, Nanos)>,
    rtcp_sent: u64,
    rtcp_received: u64,
    malformed: u64,
    pub(crate) log: FlowLog,
}

impl RtpReceiver {
    /// `acks`: whether the sender wants an acknowledgement for each packet.
    pub(crate) fn new(name: &str, ends: Ends, spec: &RtpSpec, algorithm: Box<dyn ReceiverAlgorithm>, acks: bool, seed: u64) -> Self {
        let interests = algorithm.interests();
        RtpReceiver {
            ends,
            name: name.to_string(),
            session_bandwidth_bps: spec.session_bandwidth_bps,
            ssrc: spec.receiver_ssrc,
            cname: spec.receiver_cname.clone().into_bytes(),
            algorithm,
            reports: interests.rtcp,
            gaps: interests.gaps,
            arrivals: acks.then(Arrivals::default),
            started: false,
            over: false,
            rng: Rng::stream(seed, &format!("flow {name} receiver")),
            schedule: None,
            timers: Timers::default(),
            actions: Actions::new(),
            source: None,
            source_gone: false,
            last_arrival: 0,
            packets: 0,
            bytes: 0,
            lost_before: 0,
            foreign: 0,
            delay_sum: 0,
            delay_max: 0,
            stamped: 0,
            sender_rtt_s: None,
            reported: ReportBook::default(),
            feedback_sent: 0,
            echo: None,
            last_sr: None,
            rtcp_sent: 0,
            rtcp_received: 0,
            malformed: 0,
            log: FlowLog::new(),
        }
    }

    pub(crate) fn next(&self) -> Option<Nanos> {
        if self.over {
            return None;
        }
        if !self.started {
            return Some(self.ends.start);
        }
        let scheduled = self.schedule.as_ref().map(|schedule| instant(schedule.next_s()));
        [scheduled, self.timers.next(), Some(self.ends.stop)].into_iter().flatten().min()
    }

    pub(crate) fn act(&mut self, io: &mut Io) -> Result<(), Fault> {
        if self.over {
            return Ok(());
        }
        if !self.started {
            self.started = true;
            self.log.push((io.now, FlowRecord::Start));
            self.algorithm.on_start(io.now, &mut self.actions)?;
            return self.apply(io);
        }
        if io.now >= self.ends.stop {
            self.finish(io);
            return Ok(());
        }
        let (now, now_s) = (io.now, io.now_s());
        if let Some(schedule) = self.schedule.as_mut().filter(|schedule| instant(schedule.next_s()) <= now) {
            if schedule.expire(now_s) {
                let bytes = self.send_rtcp(io, false);
                if let Some(schedule) = &mut self.schedule {
                    schedule.sent_rtcp(now_s, bytes);
                }
            }
        }
        while let Some(name) = self.timers.take_due(now)? {
            let reception = self.reception();
            self.algorithm.on_timer(now, &name, &reception, &mut self.actions)?;
            self.apply(io)?;
        }
        Ok(())
    }

    pub(crate) fn receive(&mut self, datagram: &Datagram, io: &mut Io) -> Result<(), Fault> {
        if !self.started || self.over {
            return Ok(());
        }
        let Some(payload) = datagram.udp_payload() else { return Ok(()) };
        match datagram.ports() {
            Some((_, to)) if to == self.ends.port => self.on_data(datagram, payload, io),
            Some(_) => self.on_rtcp(datagram, payload, io),
            None => Ok(()),
        }
    }

    pub(crate) fn sample(&mut self, now: Nanos) {
        if !self.started || self.over {
            return;
        }
        let record = FlowRecord::Data {
            packets: self.packets,
            bytes: self.bytes,
            highest_sequence: self.source.as_ref().map(SourceStatistics::extended_highest_sequence),
            lost: self.lost_packets(),
            delay_sum_ns: self.delay_sum,
            delay_max_ns: self.delay_max,
        };
        self.log.push((now, record));
        (self.delay_sum, self.delay_max) = (0, 0);
    }

    fn on_data(&mut self, datagram: &Datagram, payload: &[u8], io: &mut Io) -> Result<(), Fault> {
        let Some((header, rest)) = RtpHeader::parse(payload) else {
            self.malformed += 1;
            self.log.push((io.now, FlowRecord::Malformed { rtcp: false }));
            return Ok(());
        };
        let now = io.now;
        if self.source.as_ref().is_none_or(|source| source.ssrc != header.ssrc) && !self.adopt(now, header.ssrc) {
            self.foreign += 1;
            return Ok(());
        }
        let Some(source) = &mut self.source else { return Ok(()) };
        let (known, expected, restarts) = (source.has_heard(), source.extended_highest_sequence() + 1, source.restarts);
        source.update(header.sequence, header.timestamp, now);
        let (arrived, goes_on) = (source.extended_highest_sequence(), known && source.restarts == restarts);
        let before = self.last_arrival;
        self.last_arrival = now;
        self.packets += 1;
        self.bytes += datagram.bytes as u64;
        if let Some(stamp) = rest.get(..STAMP_BYTES).and_then(|stamp| stamp.first_chunk::<8>()) {
            self.stamped = u64::from_be_bytes(*stamp);
            let delay = now.saturating_sub(self.stamped);
            self.delay_sum += delay;
            self.delay_max = self.delay_max.max(delay);
        }
        match rest.get(STAMP_BYTES..LONG_STAMP_BYTES).and_then(|stamp| stamp.first_chunk::<4>()).map(|rtt| u32::from_be_bytes(*rtt)) {
            None | Some(0) => {}
            Some(micros) => self.sender_rtt_s = Some(f64::from(micros) / 1e6),
        }
        if !known {
            self.reported.begin(now, self.bytes);
        }
        if let (Some(arrivals), Some(stamp)) = (&mut self.arrivals, rest.get(8..STAMP_BYTES).and_then(|stamp| stamp.first_chunk::<8>())) {
            let ack = arrivals.arrived(u64::from_be_bytes(*stamp)).emit();
            self.send_direct(&ack, io);
        }
        let now_s = io.now_s();
        if self.reports {
            if self.schedule.is_none() {
                let mut first = Vec::new();
                self.report(io, false, false).emit(&mut first);
                let rng = Rng::stream(self.rng.bits(), "rtcp");
                let bytes = IPV4_BYTES + UDP_BYTES + 4 + first.len();
                self.schedule = Some(RtcpSchedule::new(now_s, self.session_bandwidth_bps, self.ssrc, bytes, rng));
            }
            if let Some(schedule) = &mut self.schedule {
                schedule.received_data(now_s, header.ssrc);
            }
        }
        if self.gaps && goes_on && arrived > expected {
            let gap = Gap {
                first_lost_sequence: expected,
                last_lost_sequence: arrived - 1,
                before_s: seconds(before),
                after_s: now_s,
                reception: self.reception(),
            };
            self.algorithm.on_gap(now, &gap, &mut self.actions)?;
            self.apply(io)?;
        }
        Ok(())
    }

    /// Statistics for a first source, or for one that takes the place of a source that has ended.
    fn adopt(&mut self, now: Nanos, ssrc: u32) -> bool {
        if let Some(old) = &self.source {
            if !self.source_gone && now - self.last_arrival < SILENT_SOURCE {
                return false;
            }
            self.lost_before += old.lost_packets();
        }
        self.source = Some(SourceStatistics::new(ssrc));
        self.source_gone = false;
        self.last_sr = None;
        self.echo = None;
        self.log.push((now, FlowRecord::Source { ssrc }));
        true
    }

    fn on_rtcp(&mut self, datagram: &Datagram, payload: &[u8], io: &mut Io) -> Result<(), Fault> {
        let Some(compound) = Compound::parse(payload) else {
            self.malformed += 1;
            self.log.push((io.now, FlowRecord::Malformed { rtcp: true }));
            return Ok(());
        };
        self.rtcp_received += 1;
        if compound.ssrc == self.ssrc {
            return Ok(());
        }
        let (now, now_s) = (io.now, io.now_s());
        if self.source.as_ref().is_some_and(|source| source.ssrc != compound.ssrc) {
            self.foreign += 1;
        } else {
            if let Some(sender) = &compound.sender {
                self.last_sr = Some((ntp::middle(sender.ntp), now));
            }
            if compound.bye.contains(&compound.ssrc) {
                self.source_gone = true;
                self.log.push((now, FlowRecord::Bye { ssrc: compound.ssrc }));
            }
            if let Some(said) = &compound.from_sender {
                let utilisation = f64::from(said.utilisation_ppm) * 1e-6;
                let desired_rate_bps = said.desired_rate_bps;
                self.log.push((now, FlowRecord::Control { sender: compound.ssrc, desired_rate_bps, utilisation }));
                let control = Control {
                    sender: compound.ssrc,
                    desired_rate_bps: desired_rate_bps as f64,
                    utilisation,
                    layers: said.layers.iter().map(|&(address, rate)| Layer { address, rate_bps: rate as f64 }).collect(),
                };
                self.algorithm.on_control(now, &control, &mut self.actions)?;
                self.apply(io)?;
            }
        }
        if let Some(schedule) = &mut self.schedule {
            schedule.received_rtcp(now_s, compound.ssrc, datagram.payload.len() + IPV4_BYTES);
            for &gone in &compound.bye {
                schedule.received_bye(now_s, gone);
            }
        }
        Ok(())
    }

    fn report(&mut self, io: &Io, with_block: bool, bye: bool) -> Compound {
        let (lsr, dlsr) = self.last_sr.map_or((0, 0), |(lsr, at)| (lsr, ntp::dlsr(io.now - at)));
        let mut blocks = Vec::new();
        if let Some(source) = self.source.as_mut().filter(|_| !self.source_gone) {
            // A report that is only measured must not begin a new loss interval.
            blocks.push(if with_block { source.report_block(lsr, dlsr) } else { source.clone().report_block(lsr, dlsr) });
        }
        Compound {
            ssrc: self.ssrc,
            blocks,
            cname: self.cname.clone(),
            from_receiver: self.echo.clone(),
            bye: if bye { vec![self.ssrc] } else { Vec::new() },
            ..Compound::default()
        }
    }

    fn send_rtcp(&mut self, io: &mut Io, bye: bool) -> usize {
        let mut payload = io.pool.take();
        self.report(io, true, bye).emit(&mut payload);
        let bytes = UDP_BYTES + payload.len();
        let mut frame = io.pool.take();
        ip::push_headers(&mut frame, &self.ends.own, self.ends.peer, PROTOCOL_UDP, 0, &[], bytes);
        let udp = frame.len();
        push_udp(&mut frame, self.ends.port + 1, bytes);
        frame.extend_from_slice(&payload);
        io.pool.give(payload);
        self.send(frame, udp, io);
        self.rtcp_sent += 1;
        bytes + IPV4_BYTES
    }

    /// Feedback beside RTCP: from data port to data port.
    fn send_direct(&mut self, payload: &[u8], io: &mut Io) {
        let mut frame = io.pool.take();
        let bytes = UDP_BYTES + payload.len();
        ip::push_headers(&mut frame, &self.ends.own, self.ends.peer, PROTOCOL_UDP, 0, &[], bytes);
        let udp = frame.len();
        push_udp(&mut frame, self.ends.port, bytes);
        frame.extend_from_slice(payload);
        self.send(frame, udp, io);
        self.feedback_sent += 1;
    }

    /// Before the first data packet there is nothing to report, and nothing leaves.
    fn send_feedback(&mut self, loss_event_rate: Option<f64>, io: &mut Io) {
        let Some(source) = &self.source else { return };
        let (expected, received) = source.totals();
        let (receive_rate_bps, expected, lost) = self.reported.close(io.now, self.bytes, expected, received);
        let report = ReportPacket {
            highest_sequence: source.extended_highest_sequence(),
            echoed: self.stamped,
            held_us: u32::try_from((io.now - self.last_arrival) / 1000).unwrap_or(u32::MAX),
            receive_rate_bps,
            loss_event_ppb: loss_event_rate.map(loss_event_field),
            expected,
            lost,
            reporter: self.ssrc,
        };
        self.send_direct(&report.emit(), io);
    }

    /// Fills in the checksum of the UDP header at `udp`, and sends.
    fn send(&self, mut frame: Vec<u8>, udp: usize, io: &mut Io) {
        let sum = ip::pseudo_header(self.ends.own.ip, self.ends.peer, PROTOCOL_UDP, frame.len() - udp) + ip::sum(&frame[udp..]);
        // 0 would say that there is no checksum (RFC 768).
        let checksum = match ip::fold(sum) {
            0 => 0xffff,
            checksum => checksum,
        };
        frame[udp + 6..udp + 8].copy_from_slice(&checksum.to_be_bytes());
        io.send(frame);
    }

    fn finish(&mut self, io: &mut Io) {
        if self.schedule.is_some() {
            self.send_rtcp(io, true);
        }
        self.sample(io.now);
        let end = FlowRecord::End {
            packets: self.packets,
            rtcp_sent: self.rtcp_sent,
            rtcp_received: self.rtcp_received,
            feedback: self.feedback_sent,
            malformed: self.malformed,
            foreign: self.foreign,
        };
        self.log.push((io.now, end));
        self.over = true;
    }

    fn lost_packets(&self) -> i64 {
        self.lost_before + self.source.as_ref().map_or(0, SourceStatistics::lost_packets)
    }

    fn reception(&self) -> ReceptionState {
        ReceptionState {
            received_packets: self.packets,
            received_bytes: self.bytes,
            lost_packets: self.lost_packets().max(0) as u64,
            highest_sequence: self.source.as_ref().map_or(0, SourceStatistics::extended_highest_sequence),
            last_arrival_s: seconds(self.last_arrival),
            sender_rtt_s: self.sender_rtt_s,
        }
    }

    fn apply(&mut self, io: &mut Io) -> Result<(), Fault> {
        let mut actions = std::mem::take(&mut self.actions);
        for action in actions.drain(..) {
            match action {
                Action::SetReport { desired_rate_bps, utilisation } => {
                    self.echo = Some(Alsf {
                        ssrc: self.ssrc,
                        desired_rate_bps: rate_field(desired_rate_bps),
                        utilisation_ppm: utilisation_field(utilisation),
                        layers: Vec::new(),
                    });
                }
                Action::SendFeedback { loss_event_rate } => self.send_feedback(loss_event_rate, io),
                Action::SetTimer { name, at_s } => self.timers.set(name, instant(at_s).max(io.now)),
                Action::CancelTimer { name } => self.timers.cancel(&name),
                Action::Note { kind, values } => self.log.push((io.now, FlowRecord::Note { kind, values })),
                other => return Err(format!("flow {}: {} is not for an RTP receiver", self.name, other.name()).into()),
            }
        }
        self.actions = actions;
        Ok(())
    }
}
