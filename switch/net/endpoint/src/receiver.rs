//! The receiving end of a rate-adaptive flow: RTP data and sender control packets in, reports out. It joins the session when it
//! first hears the sender.

use std::ops::Range;

use crate::acks::{AckPacket, Arrivals};
use crate::algorithm::{Action, Actions, Control, Fault, Gap, Layer, ReceiverAlgorithm, ReceptionState};
use crate::avpf::{AvpfSchedule, Slot};
use crate::ccfb::{ArrivalBook, MOST_NEWS};
use crate::film::Frames;
use crate::marks::Marks;
use crate::reception::{Arrival, Reception};
use crate::record::{FlowLog, FlowRecord, Media};
use crate::report::{loss_event_field, ReportBook, ReportPacket};
use crate::rtcp_schedule::RtcpSchedule;
use crate::sender::{rate_field, utilisation_field};
use crate::statistics::SourceStatistics;
use crate::timers::Timers;
use crate::wire::ccfb::CongestionFeedback;
use crate::wire::ntp;
use crate::wire::rtcp::{Alsf, Compound};
use crate::wire::rtp::{RtpHeader, MARKER, PAYLOAD_TYPE};
use crate::wire::stamp::{Stamp, MEDIA_BYTES};
use crate::{instant, is_forwarded_group, seconds, Delays, End, Incoming, Io, Kind, Life, Nanos, MAX_REPORT_BYTES};
use fairlane_random::Rng;

/// Groups that a receiver is a member of: as many as one report has blocks for [RFC 3550 sec 6.4.2].
const MAX_LAYERS: usize = 31;
/// Groups that it may ever join: the books of each are kept.
const MAX_GROUPS: usize = 256;

/// What a receiver is, beside its algorithm.
pub struct ReceiverSpec {
    pub name: String,
    /// Names its stream of randomness.
    pub stream: String,
    pub session_bandwidth_bps: f64,
    pub ssrc: u32,
    pub cname: Vec<u8>,
    /// Whether the sender wants an acknowledgement for each packet.
    pub acks: bool,
    /// `Some`: in place of these reports on many packets, so often, in RTCP (RFC 8888).
    pub report_interval: Option<Nanos>,
    /// Whether data carry an instant of production.
    pub media: bool,
    /// Whether they carry a film.
    pub film: bool,
    pub delay_threshold: Nanos,
    /// The base layer's group, of a layered flow.
    pub base_group: Option<u32>,
    /// RTCP runs even if the algorithm does not want it: for the sender's circuit breakers.
    pub rtcp: bool,
}

/// One stream that a receiver hears, or has heard.
struct Heard {
    /// `None`: addressed to the host itself.
    group: Option<u32>,
    member: bool,
    reception: Reception,
}

/// Feedback of reduced size beyond so many bytes leaves in a compound, of which the report is then a small part: "strongly RECOMMENDED"
/// [RFC 5506 sec 4.2.2], without a size.
const LARGE_BYTES: usize = MAX_REPORT_BYTES as usize / 2;

/// What a receiver that reports on many packets together keeps (RFC 8888).
struct Reporter {
    interval: Nanos,
    arrivals: ArrivalBook,
    /// When it begins: with the first packet.
    schedule: Option<AvpfSchedule>,
    /// When to report; `None`: there is nothing that was not said twice.
    due: Option<Nanos>,
}

impl Reporter {
    fn next(&self) -> Option<Nanos> {
        let slot = self.schedule.as_ref().map(|schedule| instant(schedule.next_s()));
        [self.due, slot].into_iter().flatten().min()
    }
}

/// See the module.
pub struct RtpReceiver {
    life: Life,
    spec: ReceiverSpec,
    algorithm: Box<dyn ReceiverAlgorithm>,
    reports: bool,
    /// Packets after which one is lost, where the algorithm wants to know.
    loss_distance: Option<u64>,
    arrivals: Option<Arrivals>,
    /// Acknowledgements say when their packet arrived.
    timed_acks: bool,
    /// The last acknowledgement: its memory is used again.
    ack: Vec<u8>,
    /// What goes back of the header that packets have of their own.
    returned: Option<Range<usize>>,
    /// What the next report says of it, where packets are not acknowledged one by one.
    folded: Vec<u8>,
    started: bool,
    /// Waits to say BYE [RFC 3550 sec 6.3.7]: it hears RTCP only.
    leaving: bool,
    over: bool,
    rng: Rng,
    schedule: Option<RtcpSchedule>,
    reporter: Option<Reporter>,
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
    frames: Frames,
    /// Middle of the last SR's NTP timestamp, and when it arrived.
    last_sr: Option<(u32, Nanos)>,
    rtcp_sent: u64,
    rtcp_received: u64,
    malformed: u64,
    marks: Marks,
    delays: Delays,
    log: FlowLog,
}

impl RtpReceiver {
    pub fn new(life: Life, spec: ReceiverSpec, algorithm: Box<dyn ReceiverAlgorithm>, seed: u64) -> Self {
        let interests = algorithm.interests();
        let loss_distance = interests.gaps.then_some(interests.loss_distance_packets);
        let base = Heard { group: spec.base_group, member: spec.base_group.is_none(), reception: Reception::new(loss_distance) };
        let reporter =
            spec.report_interval.map(|interval| Reporter { interval, arrivals: ArrivalBook::default(), schedule: None, due: None });
        RtpReceiver {
            life,
            reports: (interests.rtcp || spec.rtcp) && reporter.is_none(),
            reporter,
            loss_distance,
            arrivals: (spec.acks && spec.report_interval.is_none()).then(Arrivals::default),
            timed_acks: interests.timed_acks,
            ack: Vec::new(),
            returned: algorithm.returned(),
            algorithm,
            folded: Vec::new(),
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
            frames: Frames::default(),
            last_sr: None,
            rtcp_sent: 0,
            rtcp_received: 0,
            malformed: 0,
            marks: Marks::default(),
            delays: Delays::default(),
            log: FlowLog::new(),
        }
    }
}

impl End for RtpReceiver {
    fn next(&self) -> Option<Nanos> {
        if self.over {
            return None;
        }
        if !self.started {
            return Some(self.life.start);
        }
        let scheduled = self.schedule.as_ref().map(|schedule| instant(schedule.next_s()));
        if self.leaving {
            return scheduled;
        }
        let reported = self.reporter.as_ref().and_then(Reporter::next);
        [scheduled, reported, self.timers.next(), Some(self.life.stop)].into_iter().flatten().min()
    }

    fn act(&mut self, io: &mut Io) -> Result<(), Fault> {
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
        if io.now >= self.life.stop && !self.leaving {
            self.leave(io);
            return Ok(());
        }
        let (now, now_s) = (io.now, io.now_s());
        if let Some(schedule) = self.schedule.as_mut().filter(|schedule| instant(schedule.next_s()) <= now)
            && schedule.expire(now_s)
        {
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
        if self.leaving {
            return Ok(());
        }
        self.report_packets(io);
        while let Some(name) = self.timers.take_due(now)? {
            let reception = self.reception();
            self.algorithm.on_timer(now, &name, &reception, &mut self.actions)?;
            self.apply(io)?;
        }
        Ok(())
    }

    fn receive(&mut self, datagram: &Incoming, io: &mut Io) -> Result<(), Fault> {
        if (self.leaving || self.over) && !datagram.rtcp {
            self.after_the_end(datagram.payload.len(), io.now);
        }
        if !self.started || self.over {
            return Ok(());
        }
        // What comes for a group that it has left, or never joined, is not for it.
        let Some(index) = self.heard.iter().position(|heard| heard.group == datagram.group && heard.member) else { return Ok(()) };
        match datagram.rtcp {
            true => self.on_rtcp(datagram.payload, io),
            false if self.leaving => Ok(()),
            false => self.on_data(index, datagram, io),
        }
    }

    fn close(&mut self, io: &mut Io) {
        if self.started && !self.leaving && !self.over {
            self.leave(io);
        }
        if !self.over {
            self.finish(io);
        }
    }

    fn sample(&mut self, now: Nanos) {
        self.note_data(now, None);
    }

    fn mark(&mut self, now: Nanos) {
        if !self.started || self.leaving || self.over {
            return;
        }
        if let Some(since) = self.marks.set(now) {
            self.note_data(now, since);
        }
    }

    fn life(&mut self) -> &mut Life {
        &mut self.life
    }

    fn delays(&mut self) -> &mut Delays {
        &mut self.delays
    }

    fn log(&self) -> &FlowLog {
        &self.log
    }

    fn take_log(&mut self) -> FlowLog {
        std::mem::take(&mut self.log)
    }
}

impl RtpReceiver {
    /// What has been counted by now; `since` as in [`FlowRecord::Data`].
    fn note_data(&mut self, now: Nanos, since: Option<Nanos>) {
        if !self.started || self.leaving || self.over {
            return;
        }
        let mut delay_max_ns = 0;
        let (mut delay_sum_ns, mut media) = (0, Media::default());
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
            since,
        };
        self.log.push((now, record));
        self.log.extend(self.frames.done(now, false).map(|frame| (now, frame)));
        for (layer, Heard { group, member, reception }) in self.heard.iter().enumerate() {
            if let Some(group) = *group {
                let (packets, bytes, lost) = (reception.packets, reception.bytes, reception.lost_packets());
                self.log.push((now, FlowRecord::LayerData { layer, group, member: *member, packets, bytes, lost }));
            }
        }
    }

    /// The first packet after a flow's end is not the flow's any more: it says how far it was under way when the flow ended.
    fn after_the_end(&mut self, bytes: usize, now: Nanos) {
        if !self.marks.arrived(now) {
            return;
        }
        let (packets, bytes) = (self.packets() + 1, self.bytes() + (self.life.ip.udp_bytes() + bytes) as u64);
        let (highest_sequence, lost) = (self.heard[0].reception.highest_sequence(), self.lost_packets());
        let media = self.heard.iter().fold(Media::default(), |sum, heard| Media {
            delayed_packets: sum.delayed_packets + heard.reception.media.delayed_packets,
            overdue_packets: sum.overdue_packets + heard.reception.media.overdue_packets,
            ..sum
        });
        let (delay_sum_ns, delay_max_ns, media, since) = (0, 0, Some(media), None);
        self.log.push((now, FlowRecord::Data { packets, bytes, highest_sequence, lost, delay_sum_ns, delay_max_ns, media, since }));
    }

    fn on_data(&mut self, index: usize, &Incoming { ecn, payload, .. }: &Incoming, io: &mut Io) -> Result<(), Fault> {
        // A payload type that it does not understand is ignored [RFC 3550 sec 5.1].
        let Some((header, rest)) = RtpHeader::parse(payload).filter(|_| payload[1] & !MARKER == PAYLOAD_TYPE) else {
            self.malformed += 1;
            self.log.push((io.now, FlowRecord::Malformed { rtcp: false }));
            return Ok(());
        };
        let now = io.now;
        let said = Stamp::parse(rest, self.spec.media);
        let stamp = said.unwrap_or(Stamp { sent: now, ..Stamp::default() });
        let threshold = self.spec.delay_threshold;
        let Arrival::Counted { first, lost } =
            self.heard[index].reception.arrived(now, &header, stamp, self.life.ip.udp_bytes() + payload.len(), threshold)
        else {
            self.foreign += 1;
            return Ok(());
        };
        self.last_arrival = now;
        self.stamped = stamp.sent;
        if said.is_some() {
            self.delays.add(now, now.saturating_sub(stamp.sent));
        }
        if self.marks.arrived(now) {
            self.note_data(now, None);
        }
        if let (true, Some(produced), Some(packet)) = (self.spec.film, stamp.produced, rest.get(MEDIA_BYTES..))
            && self.frames.arrived(now, produced, packet)
        {
            io.network.hand(&[&now.to_be_bytes(), packet].concat());
        }
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
        let returned = self.returned.clone().and_then(|part| header.extension.get(part)).unwrap_or(&[]);
        if self.arrivals.is_none() && !returned.is_empty() {
            self.algorithm.fold(&mut self.folded, returned)?;
        }
        if let (Some(arrivals), Some(stamp)) = (&mut self.arrivals, said) {
            let arrived = (self.timed_acks || !returned.is_empty()).then_some(now);
            let mut bytes = std::mem::take(&mut self.ack);
            AckPacket { ecn, arrived, header: returned, ..arrivals.arrived(stamp.number) }.emit(&mut bytes);
            self.send_direct(&bytes, io);
            self.ack = bytes;
        }
        let now_s = io.now_s();
        if index == 0 && self.reporter.is_some() {
            self.report_later(&header, first, ecn, io);
        }
        // Upper layers have no RTCP of their own.
        if self.reports && index == 0 {
            if self.schedule.is_none() {
                let mut first = Vec::new();
                self.report(io, false, false).emit(&mut first);
                let rng = Rng::stream(self.rng.bits(), "rtcp");
                let bytes = self.life.ip.udp_bytes() + self.life.ip.router_alert_bytes() + first.len();
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
        let wrong = groups.iter().find(|&&group| !is_forwarded_group(group));
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
                io.network.leave(group);
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
                io.network.join(group)?;
                self.log.push((io.now, FlowRecord::Join { group }));
            }
        }
        Ok(())
    }

    fn on_rtcp(&mut self, payload: &[u8], io: &mut Io) -> Result<(), Fault> {
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
        let bytes = self.life.ip.udp_bytes() + payload.len();
        let source = self.heard[0].reception.source.as_ref().map(|source| source.ssrc);
        // A source that is idle sends RRs, too.
        if self.leaving || self.spec.base_group.is_some() && compound.sender.is_none() && source != Some(compound.ssrc) {
            // Of another receiver, or for one that leaves: only the timetable counts it.
        } else if source.is_some_and(|source| source != compound.ssrc) {
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
        if let Some(schedule) = self.reporter.as_mut().and_then(|reporter| reporter.schedule.as_mut()) {
            schedule.received(bytes);
        }
        Ok(())
    }

    /// A packet arrived that is to be reported with others.
    fn report_later(&mut self, header: &RtpHeader, first: bool, ecn: u8, io: &Io) {
        if self.avpf().is_none() {
            let mut compound = Vec::new();
            self.report(io, false, false).emit(&mut compound);
            let rng = Rng::stream(self.rng.bits(), "rtcp");
            let schedule = AvpfSchedule::new(io.now_s(), self.spec.session_bandwidth_bps, self.life.ip.udp_bytes() + compound.len(), rng);
            if let Some(reporter) = &mut self.reporter {
                reporter.schedule = Some(schedule);
            }
        }
        let Some(reporter) = &mut self.reporter else { return };
        if first {
            reporter.arrivals = ArrivalBook::default();
        }
        reporter.arrivals.arrived(io.now, header.sequence, ecn);
        let soon = if reporter.arrivals.news() >= MOST_NEWS { io.now } else { io.now + reporter.interval };
        reporter.due = Some(reporter.due.map_or(soon, |due| due.min(soon)));
    }

    /// Reports on packets that are due, and regular slots [RFC 4585 sec 3.5].
    fn report_packets(&mut self, io: &mut Io) {
        let Some(Reporter { interval, arrivals, schedule: Some(schedule), due }) = &mut self.reporter else { return };
        if due.is_some_and(|at| at <= io.now) {
            *due = Some(io.now + *interval).filter(|_| arrivals.has_news());
            // "SHALL NOT be sent until at least one compound RTCP has been sent" [RFC 5506 sec 4].
            let compound = !schedule.has_sent();
            if due.is_some() && schedule.feedback() {
                let bytes = self.send_congestion_feedback(compound, io);
                self.avpf().into_iter().for_each(|schedule| schedule.sent_early(bytes));
            }
        }
        let now_s = io.now_s();
        let Some(schedule) = self.avpf().filter(|schedule| instant(schedule.next_s()) <= io.now) else { return };
        let bytes = match schedule.slot(now_s) {
            Slot::Moved => return,
            Slot::Suppressed => None,
            // "All RTCP that are scheduled for transmission as Regular RTCP SHALL be sent as compound RTCP" [RFC 5506 sec 4].
            Slot::Feedback | Slot::Full => Some(self.send_congestion_feedback(true, io)),
        };
        self.avpf().into_iter().for_each(|schedule| schedule.done(now_s, bytes));
    }

    fn avpf(&mut self) -> Option<&mut AvpfSchedule> {
        self.reporter.as_mut()?.schedule.as_mut()
    }

    /// Sends what there is to say of packets, in as many RTCP packets as it needs: the first in a compound or of reduced size [RFC 5506 sec 4], the
    /// others of reduced size unless they are large. Returns their bytes, headers included.
    fn send_congestion_feedback(&mut self, compound: bool, io: &mut Io) -> usize {
        let mut plain = Vec::new();
        self.report(io, false, false).emit(&mut plain);
        let (own_ssrc, ssrc) = (self.spec.ssrc, self.heard[0].reception.present().map_or(0, |source| source.ssrc));
        let beside = self.life.ip.udp_bytes() + plain.len();
        let arrivals = self.reporter.as_mut().map(|reporter| &mut reporter.arrivals).filter(|arrivals| arrivals.has_news());
        let parts = arrivals.map_or_else(Vec::new, |arrivals| arrivals.report(io.now, io.epoch, own_ssrc, ssrc, beside));
        let alone = parts.is_empty().then(Vec::new);
        let mut bytes = 0;
        for (n, congestion) in parts.into_iter().map(|part| vec![part]).chain(alone).enumerate() {
            let mut payload = Vec::new();
            congestion.iter().for_each(|part: &CongestionFeedback| part.emit(&mut payload));
            if compound && n == 0 || payload.len() > LARGE_BYTES {
                let report = Compound { congestion, ..self.report(io, n == 0, false) };
                payload.clear();
                report.emit(&mut payload);
            }
            io.send(self.life.peer, Kind::Report, &payload);
            self.rtcp_sent += 1;
            bytes += self.life.ip.udp_bytes() + payload.len();
        }
        bytes
    }

    fn report(&mut self, io: &Io, with_block: bool, bye: bool) -> Compound {
        let (lsr, dlsr) = self.last_sr.map_or((0, 0), |(lsr, at)| (lsr, ntp::dlsr(io.now - at)));
        let mut blocks = Vec::new();
        for (index, heard) in self.heard.iter_mut().enumerate() {
            // Sender reports are of the base layer's source; 0 where a source has sent none [RFC 3550 sec 6.4.1].
            let (lsr, dlsr) = if index == 0 { (lsr, dlsr) } else { (0, 0) };
            if let Some(source) = heard.reception.present().filter(|source| source.heard_since_report()) {
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
        let mut payload = Vec::new();
        self.report(io, true, bye).emit(&mut payload);
        io.send(self.life.peer, Kind::Report, &payload);
        self.rtcp_sent += 1;
        self.life.ip.udp_bytes() + payload.len()
    }

    /// Feedback beside RTCP: from data port to data port.
    fn send_direct(&mut self, payload: &[u8], io: &mut Io) {
        io.send(self.life.peer, Kind::Feedback, payload);
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
            header: &self.folded,
        };
        let payload = report.emit();
        self.folded.clear();
        self.send_direct(&payload, io);
    }

    /// The last sample. BYE follows at once or, in a group of more than 50, when the timetable lets it; until then the receiver stays
    /// in the base layer's group, where it hears the BYE of others.
    fn leave(&mut self, io: &mut Io) {
        self.sample(io.now);
        self.log.extend(self.frames.done(io.now, true).map(|frame| (io.now, frame)));
        let mut bye = Vec::new();
        self.report(io, false, true).emit(&mut bye);
        let now_s = io.now_s();
        if self.avpf().is_some_and(|schedule| schedule.has_sent()) {
            self.send_rtcp(io, true);
        }
        if let Some(schedule) = &mut self.schedule {
            if schedule.leave(now_s, self.life.ip.udp_bytes() + bye.len()) {
                self.send_rtcp(io, true);
            } else if schedule.next_s().is_finite() {
                self.leaving = true;
                for heard in self.heard[1..].iter_mut().filter(|heard| heard.member) {
                    heard.member = false;
                    heard.group.inspect(|&group| io.network.leave(group));
                }
                return;
            }
        }
        self.finish(io);
    }

    fn finish(&mut self, io: &mut Io) {
        for heard in self.heard.iter().filter(|heard| heard.member) {
            heard.group.inspect(|&group| io.network.leave(group));
        }
        let end = FlowRecord::End {
            packets: self.packets(),
            rtcp_sent: self.rtcp_sent,
            rtcp_received: self.rtcp_received,
            feedback: self.feedback_sent,
            malformed: self.malformed,
            foreign: self.foreign,
            forgiven: 0,
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
