//! The receiving end of a rate-adaptive flow: RTP data and sender control packets in, reports out. It joins the session when it
//! first hears the sender. The rules are those of `ReceiverSession` in `hosts/session/receiver.py`.

use super::acks::Arrivals;
use super::reception::{Arrival, Reception, Stamp};
use super::report::{loss_event_field, ReportBook, ReportPacket};
use super::rtp_sender::{push_udp, rate_field, utilisation_field};
use super::timers::Timers;
use super::{instant, seconds, Ends, Io};
use crate::algorithm::{Action, Actions, Control, Fault, Gap, Layer, ReceiverAlgorithm, ReceptionState};
use crate::record::{FlowLog, FlowRecord};
use crate::rng::Rng;
use crate::rtcp_schedule::RtcpSchedule;
use crate::statistics::SourceStatistics;
use crate::wire::ip::{self, Datagram, IPV4_BYTES, PROTOCOL_UDP, UDP_BYTES};
use crate::wire::rtcp::{Alsf, Compound};
use crate::wire::rtp::RtpHeader;
use crate::wire::ntp;
use crate::Nanos;

/// Groups that a receiver is a member of: as many as one report has blocks for (RFC 3550 section 6.4.2).
const MAX_LAYERS: usize = 31;
/// Groups that it may ever join: the books of each are kept.
const MAX_GROUPS: usize = 256;

/// What a receiver is, beside its algorithm.
pub(crate) struct ReceiverSpec {
    pub(crate) name: String,
    /// Names its stream of randomness.
    pub(crate) stream: String,
    pub(crate) session_bandwidth_bps: f64,
    pub(crate) ssrc: u32,
    pub(crate) cname: Vec<u8>,
    /// Whether the sender wants an acknowledgement for each packet.
    pub(crate) acks: bool,
    /// Whether data carry an instant of production.
    pub(crate) media: bool,
    pub(crate) delay_threshold: Nanos,
    /// The base layer's group, of a layered flow.
    pub(crate) base_group: Option<u32>,
}

/// One stream that a receiver hears, or has heard.
struct Heard {
    /// `None`: addressed to the host itself.
    group: Option<u32>,
    member: bool,
    reception: Reception,
}

/// See the module.
pub(crate) struct RtpReceiver {
    pub(super) ends: Ends,
    spec: ReceiverSpec,
    algorithm: Box<dyn ReceiverAlgorithm>,
    reports: bool,
    /// Packets after which one is lost, where the algorithm wants to know.
    loss_distance: Option<u64>,
    arrivals: Option<Arrivals>,
    started: bool,
    /// Waits to say BYE (RFC 3550 section 6.3.7): it hears RTCP only.
    leaving: bool,
    over: bool,
    rng: Rng,
    schedule: Option<RtcpSchedule>,
    timers: Timers,
    actions: Actions,
    /// One; of a layered flow each group it ever joined, the base first.
    heard: Vec<Heard>,
    foreign: u64,
    /// Of the newest data packet.
    stamped: Nanos,
    last_arrival: Nanos,
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
    pub(crate) fn new(ends: Ends, spec: ReceiverSpec, algorithm: Box<dyn ReceiverAlgorithm>, seed: u64) -> Self {
        let interests = algorithm.interests();
        let loss_distance = interests.gaps.then_some(interests.loss_distance_packets);
        let base = Heard { group: spec.base_group, member: spec.base_group.is_none(), reception: Reception::new(loss_distance) };
        RtpReceiver {
            ends,
            algorithm,
            reports: interests.rtcp,
            loss_distance,
            arrivals: spec.acks.then(Arrivals::default),
            started: false,
            leaving: false,
            over: false,
            rng: Rng::stream(seed, &spec.stream),
            spec,
            schedule: None,
            timers: Timers::default(),
            actions: Actions::new(),
            heard: vec![base],
            foreign: 0,
            stamped: 0,
            last_arrival: 0,
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
        if self.leaving {
            return scheduled;
        }
        [scheduled, self.timers.next(), Some(self.ends.stop)].into_iter().flatten().min()
    }

    pub(crate) fn act(&mut self, io: &mut Io) -> Result<(), Fault> {
        if self.over {
            return Ok(());
        }
        if !self.started {
            self.started = true;
            self.log.push((io.now, FlowRecord::Start));
            if let Some(base) = self.spec.base_group {
                self.join(&[base], io)?;
            }
            self.algorithm.on_start(io.now, &mut self.actions)?;
            return self.apply(io);
        }
        if io.now >= self.ends.stop && !self.leaving {
            self.leave(io);
            return Ok(());
        }
        let (now, now_s) = (io.now, io.now_s());
        if let Some(schedule) = self.schedule.as_mut().filter(|schedule| instant(schedule.next_s()) <= now) {
            if schedule.expire(now_s) {
                if self.leaving {
                    self.send_rtcp(io, true);
                    self.finish(io);
                    return Ok(());
                }
                let bytes = self.send_rtcp(io, false);
                if let Some(schedule) = &mut self.schedule {
                    schedule.sent_rtcp(now_s, bytes);
                }
            }
        }
        if self.leaving {
            return Ok(());
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
        let group = ip::is_multicast(datagram.destination).then_some(datagram.destination);
        // What comes for a group that it has left, or never joined, is not for it.
        let Some(index) = self.heard.iter().position(|heard| heard.group == group && heard.member) else { return Ok(()) };
        let Some(payload) = datagram.udp_payload() else { return Ok(()) };
        match datagram.ports() {
            Some((_, to)) if to == self.ends.port && self.leaving => Ok(()),
            Some((_, to)) if to == self.ends.port => self.on_data(index, datagram, payload, io),
            Some(_) => self.on_rtcp(datagram, payload, io),
            None => Ok(()),
        }
    }

    pub(crate) fn sample(&mut self, now: Nanos) {
        if !self.started || self.leaving || self.over {
            return;
        }
        let mut delay_max_ns = 0;
        let (mut delay_sum_ns, mut media) = (0, crate::record::Media::default());
        for Heard { reception, .. } in &mut self.heard {
            delay_sum_ns += std::mem::take(&mut reception.delay_sum);
            delay_max_ns = delay_max_ns.max(std::mem::take(&mut reception.delay_max));
            media.age_sum_ns += std::mem::take(&mut reception.media.age_sum_ns);
            media.age_max_ns = media.age_max_ns.max(std::mem::take(&mut reception.media.age_max_ns));
            media.delayed_packets += reception.media.delayed_packets;
            media.overdue_packets += reception.media.overdue_packets;
        }
        let record = FlowRecord::Data {
            packets: self.packets(),
            bytes: self.bytes(),
            highest_sequence: self.heard[0].reception.highest_sequence(),
            lost: self.lost_packets(),
            delay_sum_ns,
            delay_max_ns,
            media: Some(media),
        };
        self.log.push((now, record));
        for (layer, Heard { group, member, reception }) in self.heard.iter().enumerate() {
            if let Some(group) = *group {
                let (packets, bytes, lost) = (reception.packets, reception.bytes, reception.lost_packets());
                self.log.push((now, FlowRecord::LayerData { layer, group, member: *member, packets, bytes, lost }));
            }
        }
    }

    fn on_data(&mut self, index: usize, datagram: &Datagram, payload: &[u8], io: &mut Io) -> Result<(), Fault> {
        let Some((header, rest)) = RtpHeader::parse(payload) else {
            self.malformed += 1;
            self.log.push((io.now, FlowRecord::Malformed { rtcp: false }));
            return Ok(());
        };
        let now = io.now;
        let said = Stamp::parse(rest, self.spec.media);
        let stamp = said.unwrap_or(Stamp { sent: now, produced: now, ..Stamp::default() });
        let threshold = self.spec.delay_threshold;
        let Arrival::Counted { first, lost } = self.heard[index].reception.arrived(now, &header, stamp, datagram.bytes, threshold) else {
            self.foreign += 1;
            return Ok(());
        };
        self.last_arrival = now;
        self.stamped = stamp.sent;
        if let Some(micros) = stamp.sender_rtt_us {
            self.sender_rtt_s = Some(f64::from(micros) / 1e6);
        }
        if first && index == 0 {
            self.last_sr = None;
            self.echo = None;
            self.reported.begin(now, self.bytes());
        }
        if first {
            self.log.push((now, FlowRecord::Source { ssrc: header.ssrc }));
        }
        if let (Some(arrivals), Some(stamp)) = (&mut self.arrivals, said) {
            let ack = arrivals.arrived(stamp.number).emit();
            self.send_direct(&ack, io);
        }
        let now_s = io.now_s();
        // Upper layers have no RTCP of their own.
        if self.reports && index == 0 {
            if self.schedule.is_none() {
                let mut first = Vec::new();
                self.report(io, false, false).emit(&mut first);
                let rng = Rng::stream(self.rng.bits(), "rtcp");
                let bytes = IPV4_BYTES + UDP_BYTES + 4 + first.len();
                self.schedule = Some(RtcpSchedule::new(now_s, self.spec.session_bandwidth_bps, self.spec.ssrc, bytes, rng));
            }
            if let Some(schedule) = &mut self.schedule {
                schedule.received_data(now_s, header.ssrc);
            }
        }
        for missing in lost {
            let gap = Gap {
                first_lost_sequence: missing.first,
                last_lost_sequence: missing.last,
                before_s: seconds(missing.before),
                after_s: seconds(missing.after),
                reception: self.reception(),
            };
            self.algorithm.on_gap(now, &gap, &mut self.actions)?;
            self.apply(io)?;
        }
        Ok(())
    }

    /// Becomes a member of exactly these groups.
    fn join(&mut self, groups: &[u32], io: &mut Io) -> Result<(), Fault> {
        let wrong = groups.iter().find(|&&group| !ip::is_multicast(group) || group >> 8 == 0xe0_00_00);
        if let Some(&group) = wrong {
            let group = std::net::Ipv4Addr::from(group);
            return Err(format!("flow {}: JoinLayers: {group} is no group that routers forward", self.spec.name).into());
        }
        if groups.len() > MAX_LAYERS {
            return Err(format!("flow {}: JoinLayers of {} groups: at most {MAX_LAYERS}", self.spec.name, groups.len()).into());
        }
        for heard in self.heard.iter_mut().filter(|heard| heard.member) {
            if let Some(group) = heard.group.filter(|group| !groups.contains(group)) {
                heard.member = false;
                heard.reception.retire();
                io.memberships.push((group, false));
                self.log.push((io.now, FlowRecord::Leave { group }));
            }
        }
        for &group in groups {
            let index = match self.heard.iter().position(|heard| heard.group == Some(group)) {
                Some(index) => index,
                None => {
                    if self.heard.len() >= MAX_GROUPS {
                        return Err(format!("flow {}: JoinLayers: over {MAX_GROUPS} different groups", self.spec.name).into());
                    }
                    self.heard.push(Heard { group: Some(group), member: false, reception: Reception::new(self.loss_distance) });
                    self.heard.len() - 1
                }
            };
            if !std::mem::replace(&mut self.heard[index].member, true) {
                io.memberships.push((group, true));
                self.log.push((io.now, FlowRecord::Join { group }));
            }
        }
        Ok(())
    }

    fn on_rtcp(&mut self, datagram: &Datagram, payload: &[u8], io: &mut Io) -> Result<(), Fault> {
        let Some(compound) = Compound::parse(payload) else {
            self.malformed += 1;
            self.log.push((io.now, FlowRecord::Malformed { rtcp: true }));
            return Ok(());
        };
        self.rtcp_received += 1;
        if compound.ssrc == self.spec.ssrc {
            return Ok(());
        }
        let (now, now_s) = (io.now, io.now_s());
        let bytes = datagram.payload.len() + IPV4_BYTES;
        if self.leaving || self.spec.base_group.is_some() && compound.sender.is_none() {
            // Of another receiver, or for one that leaves: only the timetable counts it.
        } else if self.heard[0].reception.source.as_ref().is_some_and(|source| source.ssrc != compound.ssrc) {
            self.foreign += 1;
        } else {
            if let Some(sender) = &compound.sender {
                self.last_sr = Some((ntp::middle(sender.ntp), now));
            }
            if compound.bye.contains(&compound.ssrc) {
                self.heard.iter_mut().for_each(|heard| heard.reception.said_bye());
                self.log.push((now, FlowRecord::Bye { ssrc: compound.ssrc }));
            }
            if let Some(said) = &compound.from_sender {
                let utilisation = f64::from(said.utilisation_ppm) * 1e-6;
                let desired_rate_bps = said.desired_rate_bps;
                let layers_bps = said.layers.iter().map(|&(_, rate)| rate).collect();
                self.log.push((now, FlowRecord::Control { sender: compound.ssrc, bytes, desired_rate_bps, utilisation, layers_bps }));
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
            schedule.received_rtcp(now_s, compound.ssrc, bytes);
            for &gone in &compound.bye {
                schedule.received_bye(now_s, gone, bytes);
            }
        }
        Ok(())
    }

    fn report(&mut self, io: &Io, with_block: bool, bye: bool) -> Compound {
        let (lsr, dlsr) = self.last_sr.map_or((0, 0), |(lsr, at)| (lsr, ntp::dlsr(io.now - at)));
        let mut blocks = Vec::new();
        for (index, heard) in self.heard.iter_mut().enumerate() {
            // Sender reports are of the base layer's source; 0 where a source has sent none (RFC 3550 section 6.4.1).
            let (lsr, dlsr) = if index == 0 { (lsr, dlsr) } else { (0, 0) };
            if let Some(source) = heard.reception.present() {
                // A report that is only measured must not begin a new loss interval.
                blocks.push(if with_block { source.report_block(lsr, dlsr) } else { source.clone().report_block(lsr, dlsr) });
            }
        }
        Compound {
            ssrc: self.spec.ssrc,
            blocks,
            cname: self.spec.cname.clone(),
            from_receiver: self.echo.clone(),
            bye: if bye { vec![self.spec.ssrc] } else { Vec::new() },
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
        let Some(highest_sequence) = self.heard[0].reception.highest_sequence() else { return };
        let totals = self.heard.iter().filter_map(|heard| heard.reception.source.as_ref()).map(SourceStatistics::totals);
        let (expected, received) = totals.fold((0, 0), |(expected, received), (e, r)| (expected + e, received + r));
        let (receive_rate_bps, expected, lost) = self.reported.close(io.now, self.bytes(), expected, received);
        let report = ReportPacket {
            highest_sequence,
            echoed: self.stamped,
            held_us: u32::try_from((io.now - self.last_arrival) / 1000).unwrap_or(u32::MAX),
            receive_rate_bps,
            loss_event_ppb: loss_event_rate.map(loss_event_field),
            expected,
            lost,
            reporter: self.spec.ssrc,
        };
        self.send_direct(&report.emit(), io);
    }

    /// Fills in the checksum of the UDP header at `udp`, and sends.
    fn send(&self, mut frame: Vec<u8>, udp: usize, io: &mut Io) {
        let sum = ip::pseudo_header(self.ends.own.ip, self.ends.peer, PROTOCOL_UDP, frame.len() - udp) + ip::sum(&frame[udp..]);
        frame[udp + 6..udp + 8].copy_from_slice(&ip::udp_checksum(sum).to_be_bytes());
        io.send(frame);
    }

    /// The last sample. BYE follows at once or, in a group of more than 50, when the timetable lets it; until then the receiver stays
    /// in the base layer's group, where it hears the BYE of others.
    fn leave(&mut self, io: &mut Io) {
        self.sample(io.now);
        let mut bye = Vec::new();
        self.report(io, false, true).emit(&mut bye);
        let now_s = io.now_s();
        if let Some(schedule) = &mut self.schedule {
            if schedule.leave(now_s, IPV4_BYTES + UDP_BYTES + bye.len()) {
                self.send_rtcp(io, true);
            } else if schedule.next_s().is_finite() {
                self.leaving = true;
                for heard in self.heard[1..].iter_mut().filter(|heard| heard.member) {
                    heard.member = false;
                    io.memberships.extend(heard.group.map(|group| (group, false)));
                }
                return;
            }
        }
        self.finish(io);
    }

    fn finish(&mut self, io: &mut Io) {
        for heard in self.heard.iter().filter(|heard| heard.member) {
            io.memberships.extend(heard.group.map(|group| (group, false)));
        }
        let end = FlowRecord::End {
            packets: self.packets(),
            rtcp_sent: self.rtcp_sent,
            rtcp_received: self.rtcp_received,
            feedback: self.feedback_sent,
            malformed: self.malformed,
            foreign: self.foreign,
        };
        self.log.push((io.now, end));
        self.over = true;
    }

    fn packets(&self) -> u64 {
        self.heard.iter().map(|heard| heard.reception.packets).sum()
    }

    fn bytes(&self) -> u64 {
        self.heard.iter().map(|heard| heard.reception.bytes).sum()
    }

    fn lost_packets(&self) -> i64 {
        self.heard.iter().map(|heard| heard.reception.lost_packets()).sum()
    }

    fn reception(&self) -> ReceptionState {
        ReceptionState {
            received_packets: self.packets(),
            received_bytes: self.bytes(),
            lost_packets: self.lost_packets().max(0) as u64,
            highest_sequence: self.heard[0].reception.highest_sequence().unwrap_or(0),
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
                        ssrc: self.spec.ssrc,
                        desired_rate_bps: rate_field(desired_rate_bps),
                        utilisation_ppm: utilisation_field(utilisation),
                        layers: Vec::new(),
                    });
                }
                Action::JoinLayers { addresses } if self.spec.base_group.is_some() => self.join(&addresses, io)?,
                Action::SendFeedback { loss_event_rate } => self.send_feedback(loss_event_rate, io),
                Action::SetTimer { name, at_s } => self.timers.set(name, instant(at_s).max(io.now)),
                Action::CancelTimer { name } => self.timers.cancel(&name),
                Action::Note { kind, values } => self.log.push((io.now, FlowRecord::Note { kind, values })),
                other => return Err(format!("flow {}: {} is not for an RTP receiver", self.spec.name, other.name()).into()),
            }
        }
        self.actions = actions;
        Ok(())
    }
}
