//! The sending end of a rate-adaptive flow: paced RTP data out, RTCP both ways; the rate is the algorithm's decision.

mod actions;
mod feedback;

use std::collections::BTreeMap;

use crate::acks::AckBook;
use crate::algorithm::{AckDetail, Actions, Fault, NoteValue, PathState, SenderAlgorithm};
use crate::application::Backlog;
use crate::circuit_breaker::{CircuitBreaker, CircuitBreakers, Trip};
use crate::ecn::EcnPath;
use crate::film::TELL_PERIOD;
use crate::header::Quantity;
use crate::pacer::Pacer;
use crate::record::{FlowLog, FlowRecord};
use crate::rtcp_schedule::RtcpSchedule;
use crate::stream::DataStream;
use crate::timers::Timers;
use crate::wire::ntp;
use crate::wire::rtcp::{Alsf, Compound, ReportBlock, SenderInfo};
use crate::{instant, Delays, End, Incoming, Io, Kind, Life, Nanos};
use fairlane_random::Rng;

/// After so long a flow without pacing tries again to send what the host refused: no acknowledgement need come that would wake it.
const RETRY: Nanos = 1_000_000;
/// Time between records of what was sent.
const SENT_PERIOD: Nanos = 1_000_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Running,
    /// Waits to say BYE [RFC 3550 sec 6.3.7].
    Leaving,
    Over,
}

/// See the module.
pub struct RtpSender {
    life: Life,
    spec: SenderSpec,
    algorithm: Box<dyn SenderAlgorithm>,
    state: State,
    rng: Rng,
    /// One; of a layered flow as many as it ever had layers, the base first.
    streams: Vec<DataStream>,
    /// Of a flow whose application limits it.
    backlog: Option<Backlog>,
    schedule: Option<RtcpSchedule>,
    /// Whether the algorithm hears RTCP.
    hears_reports: bool,
    breakers: Option<CircuitBreakers>,
    /// Above which no rate goes after a circuit breaker has reduced it.
    most_bps: f64,
    timers: Timers,
    control: Option<Alsf>,
    actions: Actions,
    /// The last of each reporter about each stream.
    blocks: BTreeMap<u32, Vec<ReportBlock>>,
    rtcp_sent: u64,
    rtcp_received: u64,
    /// Acknowledgements and reports that arrived.
    feedback_received: u64,
    malformed: u64,
    next_log: Nanos,
    /// For an algorithm that wants acknowledgements of single packets.
    acks: Option<AckBook>,
    hears_all: bool,
    ecn_path: EcnPath,
    /// In packets, where the algorithm sets one.
    window: Option<f64>,
    /// What the algorithm wants of an encoder, where that is not its pace.
    encoder_bps: Option<f64>,
    /// When to tell an encoder outside its rate.
    next_tell: Option<Nanos>,
    /// When to fill it again, after the host refused a packet.
    retry: Option<Nanos>,
    /// Of reports, where packets are not acknowledged.
    round_trips: Delays,
    log: FlowLog,
}

/// What a sender is, beside its algorithm.
pub struct SenderSpec {
    pub name: String,
    pub packet_bytes: u32,
    pub session_bandwidth_bps: f64,
    pub pacing_jitter: f64,
    pub phase: Option<f64>,
    pub exact_loss: bool,
    pub ssrc: u32,
    pub cname: Vec<u8>,
    /// Its layers go to groups of their own, the base to `Life::peer`.
    pub layered: bool,
    /// Makes RTCP run, whether the algorithm wants it or not. Not for a layered flow: RFC 8083 is for one receiver.
    pub circuit_breaker: Option<CircuitBreaker>,
    /// `Some`: packets are acknowledged in reports, so often (RFC 8888); `None`: each on its own.
    pub report_interval: Option<Nanos>,
}

impl RtpSender {
    pub fn new(life: Life, spec: SenderSpec, algorithm: Box<dyn SenderAlgorithm>, backlog: Option<Backlog>, seed: u64) -> Self {
        let interests = algorithm.interests();
        let mut acks = (interests.acks != AckDetail::None).then(|| AckBook::new(interests));
        if let (Some(acks), Some(interval)) = (&mut acks, spec.report_interval) {
            acks.expect_reports(interval);
        }
        let mut rng = Rng::stream(seed, &format!("flow {} sender", spec.name));
        let stream = DataStream::new(&life, spec.ssrc, spec.packet_bytes, interests.ecn, algorithm.header(), &mut rng);
        RtpSender {
            life,
            spec,
            algorithm,
            state: State::Waiting,
            rng,
            streams: vec![stream],
            backlog,
            schedule: None,
            hears_reports: interests.rtcp,
            breakers: None,
            most_bps: f64::INFINITY,
            timers: Timers::default(),
            control: None,
            actions: Actions::new(),
            blocks: BTreeMap::new(),
            rtcp_sent: 0,
            rtcp_received: 0,
            feedback_received: 0,
            malformed: 0,
            next_log: 0,
            acks,
            hears_all: interests.acks == AckDetail::Every,
            ecn_path: EcnPath::default(),
            window: None,
            encoder_bps: None,
            next_tell: None,
            retry: None,
            round_trips: Delays::default(),
            log: FlowLog::new(),
        }
    }
}

impl End for RtpSender {
    fn next(&self) -> Option<Nanos> {
        match self.state {
            State::Waiting => Some(self.life.start),
            State::Over => None,
            State::Leaving => self.schedule.as_ref().map(|schedule| instant(schedule.next_s())),
            State::Running => {
                let paced = self.next_paced();
                let produced = self.backlog.as_ref().and_then(Backlog::next);
                let scheduled = self.schedule.as_ref().map(|schedule| instant(schedule.next_s()));
                let expiry = self.acks.as_ref().and_then(AckBook::next_expiry);
                let due = [paced, produced, scheduled, expiry, self.timers.next(), self.retry, self.next_tell].into_iter().flatten().min();
                Some(due.unwrap_or(Nanos::MAX).min(self.next_log).min(self.life.stop))
            }
        }
    }

    fn act(&mut self, io: &mut Io) -> Result<(), Fault> {
        if self.state == State::Waiting {
            return self.start(io);
        }
        if self.state == State::Over {
            return Ok(());
        }
        let now = io.now;
        if self.state == State::Leaving {
            let now_s = io.now_s();
            if self.schedule.as_mut().is_some_and(|schedule| instant(schedule.next_s()) <= now && schedule.expire(now_s)) {
                self.send_rtcp(io, true);
                self.finish(io);
            }
            return Ok(());
        }
        if now >= self.life.stop {
            self.leave(io);
            return Ok(());
        }
        self.expire(false, io)?;
        self.produce(io);
        if self.retry.is_some_and(|at| at <= now) {
            self.fill_window(io);
        }
        if self.state != State::Running {
            return Ok(());
        }
        if self.next_tell.is_some_and(|at| at <= now) {
            self.tell(io);
        }
        if self.next_paced().is_some_and(|at| at <= now) {
            self.expire(true, io)?;
            if self.is_unheard(io) {
                return Ok(());
            }
        }
        for index in 0..self.streams.len() {
            self.send_paced(index, io);
        }
        let now_s = io.now_s();
        if let Some(schedule) = self.schedule.as_mut().filter(|schedule| instant(schedule.next_s()) <= now) {
            let (due, silent) = (schedule.expire(now_s), schedule.take_silent());
            if due {
                let bytes = self.send_rtcp(io, false);
                if let Some(schedule) = &mut self.schedule {
                    schedule.sent_rtcp(now_s, bytes);
                }
            }
            for ssrc in silent {
                self.left(FlowRecord::Timeout { ssrc }, ssrc, io)?;
            }
        }
        while let Some(name) = self.timers.take_due(now)? {
            let path = self.path();
            self.algorithm.on_timer(now, &name, path.as_ref(), &mut self.actions)?;
            self.apply(io)?;
        }
        if now >= self.next_log {
            self.note_sent(now);
            self.next_log += SENT_PERIOD;
        }
        Ok(())
    }

    fn receive(&mut self, datagram: &Incoming, io: &mut Io) -> Result<(), Fault> {
        if !matches!(self.state, State::Running | State::Leaving) {
            return Ok(());
        }
        let leaving = self.state == State::Leaving;
        if !datagram.rtcp {
            return if leaving { Ok(()) } else { self.on_direct(datagram.payload, io) };
        }
        let read = if self.spec.report_interval.is_some() { Compound::parse_reduced } else { Compound::parse };
        let Some(compound) = read(datagram.payload) else {
            self.malformed += 1;
            self.log.push((io.now, FlowRecord::Malformed { rtcp: true }));
            return Ok(());
        };
        self.rtcp_received += 1;
        if compound.ssrc == self.spec.ssrc {
            // Our own SSRC from elsewhere: a loop or a collision [RFC 3550 sec 8.2]; nothing to learn.
            return Ok(());
        }
        if self.spec.layered {
            // RFC 5760, simple feedback model: all members of the group hear each report.
            io.send(self.life.peer, Kind::Reflected, datagram.payload);
        }
        let bytes = self.life.ip.udp_bytes() + datagram.payload.len();
        let straggles = self.schedule.as_ref().is_some_and(|schedule| schedule.is_gone(compound.ssrc));
        if !leaving && !straggles {
            self.on_blocks(&compound, bytes, io)?;
            for feedback in &compound.congestion {
                self.on_congestion_feedback(feedback, io)?;
            }
            // A circuit breaker may have ended the flow.
            let running = self.state == State::Running;
            for &gone in compound.bye.iter().filter(|_| running) {
                self.left(FlowRecord::Bye { ssrc: gone }, gone, io)?;
            }
        }
        let now_s = io.now_s();
        if let Some(schedule) = &mut self.schedule {
            schedule.received_rtcp(now_s, compound.ssrc, bytes);
            for &gone in &compound.bye {
                schedule.received_bye(now_s, gone, bytes);
            }
        }
        Ok(())
    }

    fn produced(&mut self, message: &[u8], io: &mut Io) -> Result<(), Fault> {
        let Some((at, packet)) = message.split_first_chunk::<8>().filter(|_| self.state == State::Running) else { return Ok(()) };
        let encoder_bps = self.encoder_rate_bps();
        let Some(backlog) = &mut self.backlog else { return Ok(()) };
        let idle = backlog.waiting() == 0;
        match backlog.take_film(u64::from_be_bytes(*at), packet, encoder_bps) {
            Ok(frame) => self.log.extend(frame.map(|frame| (io.now, frame))),
            Err(()) => self.malformed += 1,
        }
        self.resume(idle, io);
        Ok(())
    }

    fn close(&mut self, io: &mut Io) {
        if self.state == State::Running {
            self.leave(io);
        }
        if self.state != State::Over {
            self.finish(io);
        }
    }

    fn sample(&mut self, _now: Nanos) {}

    fn mark(&mut self, now: Nanos) {
        if self.state == State::Running {
            self.note_sent(now);
        }
    }

    fn life(&mut self) -> &mut Life {
        &mut self.life
    }

    fn delays(&mut self) -> &mut Delays {
        self.acks.as_mut().map_or(&mut self.round_trips, |acks| &mut acks.round_trips)
    }

    fn log(&self) -> &FlowLog {
        &self.log
    }

    fn take_log(&mut self) -> FlowLog {
        std::mem::take(&mut self.log)
    }
}

impl RtpSender {
    /// A receiver no longer counts.
    fn left(&mut self, why: FlowRecord, ssrc: u32, io: &mut Io) -> Result<(), Fault> {
        self.blocks.remove(&ssrc);
        self.log.push((io.now, why));
        if self.hears_reports {
            self.algorithm.on_leave(io.now, ssrc, &mut self.actions)?;
        }
        self.apply(io)
    }

    fn start(&mut self, io: &mut Io) -> Result<(), Fault> {
        self.state = State::Running;
        self.log.push((io.now, FlowRecord::Start));
        self.algorithm.on_start(io.now, &mut self.actions)?;
        self.apply(io)?;
        if self.streams.iter().all(|stream| stream.pacer.is_none()) && self.window.is_none() {
            return Err(self.fault("its algorithm starts without SetRate or SetWindow"));
        }
        if self.hears_reports || self.spec.circuit_breaker.is_some() || self.spec.report_interval.is_some() {
            let mut first = Vec::new();
            self.report(io, false).emit(&mut first);
            let bytes = self.life.ip.udp_bytes() + self.life.ip.router_alert_bytes() + first.len();
            let rng = Rng::stream(self.rng.bits(), "rtcp");
            let bandwidth = self.spec.session_bandwidth_bps;
            let schedule = RtcpSchedule::new(io.now_s(), bandwidth, self.spec.ssrc, bytes, rng);
            self.breakers = self.spec.circuit_breaker.map(|settings| CircuitBreakers::new(settings, schedule.session(false)));
            self.schedule = Some(schedule);
        }
        self.note_sent(io.now);
        self.next_log = io.now + SENT_PERIOD;
        if self.backlog.as_ref().is_some_and(Backlog::is_outside) {
            self.tell(io);
        }
        self.produce(io);
        self.fill_window(io);
        Ok(())
    }

    /// What the flow may send, from its pace or its window.
    fn rate_bps(&self) -> f64 {
        let paced: f64 = self.streams.iter().filter_map(|stream| stream.pacer.as_ref()).map(|pacer| pacer.rate_bps).sum();
        if paced > 0.0 {
            return paced;
        }
        let srtt_s = self.acks.as_ref().map_or(0.0, |acks| acks.path().srtt_s);
        let window = self.window.unwrap_or(1.0);
        // Before a round trip is known: 0.1 s.
        window * 8.0 * f64::from(self.spec.packet_bytes) / if srtt_s > 0.0 { srtt_s } else { 0.1 }
    }

    /// Writes what the sender knows into the flow's own header.
    fn fill_header(&mut self, quantities: [(Quantity, u64); 2]) {
        for header in self.streams.iter_mut().filter_map(|stream| stream.header.as_mut()) {
            quantities.into_iter().for_each(|(quantity, value)| header.fill(quantity, value));
        }
    }

    fn has_header(&self) -> bool {
        self.streams[0].header.is_some()
    }

    /// What an encoder above the flow may produce; 0 where there is none. An algorithm that says so itself looks after what waits.
    fn encoder_rate_bps(&self) -> f64 {
        let rate_bps = self.encoder_bps.map_or_else(|| self.rate_bps(), |rate_bps| rate_bps.min(self.most_bps));
        let drains = self.encoder_bps.is_none();
        self.backlog.as_ref().and_then(|backlog| backlog.encoder_rate_bps(rate_bps, drains)).unwrap_or(0.0)
    }

    /// Tells the encoder beside the end what it may produce, the flow's rate, and the bytes that wait: three numbers of 64 bits.
    fn tell(&mut self, io: &mut Io) {
        let waiting = self.backlog.as_ref().map_or(0, Backlog::waiting_bytes);
        let said = [self.encoder_rate_bps() as u64, self.rate_bps() as u64, waiting];
        io.network.hand(&said.map(u64::to_be_bytes).concat());
        self.next_tell = Some(io.now + TELL_PERIOD);
    }

    /// What is known of the path, for an algorithm that is told of acknowledgements.
    fn path(&self) -> Option<PathState> {
        self.acks.as_ref().map(|acks| PathState { waiting_bytes: self.backlog.as_ref().map(Backlog::waiting_bytes), ..acks.path() })
    }

    /// No more data. BYE follows at once or, in a group of more than 50, when the timetable lets it; until then the sender reflects.
    fn leave(&mut self, io: &mut Io) {
        self.note_sent(io.now);
        let mut bye = Vec::new();
        self.report(io, true).emit(&mut bye);
        let now_s = io.now_s();
        if let Some(schedule) = &mut self.schedule {
            if schedule.leave(now_s, self.life.ip.udp_bytes() + bye.len()) {
                self.send_rtcp(io, true);
            } else if schedule.next_s().is_finite() {
                self.state = State::Leaving;
                return;
            }
        }
        self.finish(io);
    }

    fn finish(&mut self, io: &mut Io) {
        let end = FlowRecord::End {
            packets: self.sent_packets(),
            rtcp_sent: self.rtcp_sent,
            rtcp_received: self.rtcp_received,
            feedback: self.feedback_received,
            malformed: self.malformed,
            foreign: 0,
            forgiven: self.streams.iter().map(DataStream::forgiven_packets).sum(),
        };
        self.log.push((io.now, end));
        self.state = State::Over;
    }

    fn sent_packets(&self) -> u64 {
        self.streams.iter().map(|stream| stream.sent_packets).sum()
    }

    fn note_sent(&mut self, now: Nanos) {
        let rate = |stream: &DataStream| stream.pacer.as_ref().map_or(0.0, |pacer| pacer.rate_bps);
        let bytes = self.streams.iter().map(|stream| stream.sent_bytes).sum();
        let sent = FlowRecord::Sent {
            rate_bps: self.streams.iter().map(rate).sum(),
            packets: self.sent_packets(),
            bytes,
            window_packets: self.window,
        };
        self.log.push((now, sent));
        if self.spec.layered {
            let layer = |(layer, stream): (usize, &DataStream)| {
                let sent = FlowRecord::LayerSent { layer, group: stream.to, rate_bps: rate(stream), packets: stream.sent_packets };
                (now, sent)
            };
            self.log.extend(self.streams.iter().enumerate().map(layer));
        }
        if let Some(acks) = &self.acks {
            let PathState { latest_rtt_s, srtt_s, rttvar_s, in_flight_packets, .. } = acks.path();
            let path = FlowRecord::Path { latest_rtt_s, srtt_s, rttvar_s, in_flight_packets };
            self.log.push((now, path));
        }
        if let Some(backlog) = &self.backlog {
            let produced = FlowRecord::Application {
                produced_packets: backlog.produced_packets,
                produced_bytes: backlog.produced_bytes,
                waiting_packets: backlog.waiting() as u64,
                discarded_packets: backlog.discarded_packets,
            };
            self.log.push((now, produced));
        }
    }

    /// Takes in what the application has produced. The first packet after a time without any leaves as soon as its gap allows.
    fn produce(&mut self, io: &mut Io) {
        let (rate_bps, encoder_bps) = match &self.backlog {
            Some(backlog) if backlog.next().is_some_and(|at| at <= io.now) => (self.rate_bps(), self.encoder_rate_bps()),
            _ => return,
        };
        let Some(backlog) = &mut self.backlog else { return };
        let idle = backlog.waiting() == 0;
        let frames = backlog.produce(io.now, rate_bps, encoder_bps);
        self.log.extend(frames.into_iter().map(|frame| (io.now, frame)));
        self.resume(idle, io);
    }

    /// Data have come. `idle`: nothing waited before.
    fn resume(&mut self, idle: bool, io: &mut Io) {
        if idle && let Some(pacer) = &mut self.streams[0].pacer {
            pacer.resume(io.now);
        }
        self.fill_window(io);
    }

    /// What the pacing of a stream lets go by now.
    fn send_paced(&mut self, index: usize, io: &mut Io) {
        let ready = self.has_data();
        let stream = &mut self.streams[index];
        let Some(pacer) = stream.pacer.as_mut().filter(|pacer| ready && pacer.next() <= io.now) else { return };
        let burst = pacer.burst_packets;
        if self.backlog.is_none() {
            pacer.take(io.now);
        }
        let before = stream.sent_bytes;
        for _ in 0..burst {
            if self.window_is_open() {
                self.send_data(index, io);
            }
        }
        if self.backlog.is_some() {
            let stream = &mut self.streams[index];
            // A closed window lets the turn of a packet pass.
            let bytes = stream.sent_bytes - before;
            let bytes = if bytes == 0 { self.spec.packet_bytes.into() } else { bytes };
            if let Some(pacer) = &mut stream.pacer {
                pacer.take_bytes(io.now, bytes);
            }
        }
    }

    /// Sends a packet, when there is something to send and the host takes it; whether it left.
    fn send_data(&mut self, index: usize, io: &mut Io) -> bool {
        if !self.has_data() {
            return false;
        }
        let piece = self.backlog.as_ref().and_then(Backlog::first);
        let (before, produced) = (self.streams[index].sent_bytes, piece.map_or(io.now, |piece| piece.produced));
        if !self.streams[index].send(piece, io) {
            return false;
        }
        if let Some(breakers) = &mut self.breakers {
            breakers.sent(io.now_s(), produced, self.streams[index].sent_bytes - before - self.life.ip.udp_bytes() as u64);
        }
        if let Some(backlog) = &mut self.backlog {
            backlog.pop();
        }
        if let Some(acks) = &mut self.acks {
            acks.sent(io.now);
        }
        if let Some(schedule) = &mut self.schedule {
            schedule.sent_data(io.now_s());
        }
        true
    }

    fn report(&self, io: &Io, bye: bool) -> Compound {
        // Of a layered flow only the base layer reports: its group is everybody's.
        let base = &self.streams[0];
        let sender = SenderInfo {
            ntp: ntp::from_unix(io.epoch + io.now),
            rtp_timestamp: base.rtp_timestamp(io.now),
            packet_count: base.sent_packets as u32,
            octet_count: base.payload_bytes() as u32,
        };
        Compound {
            ssrc: self.spec.ssrc,
            // The size of the first report is needed before there is a schedule: that of an SR.
            sender: Some(sender).filter(|_| self.schedule.as_ref().is_none_or(RtcpSchedule::is_sender_report)),
            cname: self.spec.cname.clone(),
            from_sender: self.control.clone(),
            bye: if bye { vec![self.spec.ssrc] } else { Vec::new() },
            ..Compound::default()
        }
    }

    /// Returns the size with IP and UDP headers, as the timetable counts it.
    fn send_rtcp(&mut self, io: &mut Io, bye: bool) -> usize {
        let mut payload = Vec::new();
        self.report(io, bye).emit(&mut payload);
        io.send(self.life.peer, Kind::SenderReport, &payload);
        self.rtcp_sent += 1;
        self.life.ip.udp_bytes() + payload.len()
    }

    /// When the pacing lets the next packet go, where one waits.
    fn next_paced(&self) -> Option<Nanos> {
        self.streams.iter().filter_map(|stream| stream.pacer.as_ref()).map(Pacer::next).min().filter(|_| self.has_data())
    }

    /// Without an application there is always more to send.
    fn has_data(&self) -> bool {
        self.backlog.as_ref().is_none_or(|backlog| backlog.waiting() > 0)
    }

    fn window_is_open(&self) -> bool {
        match (self.window, &self.acks) {
            (Some(window), Some(acks)) => (acks.in_flight() as f64) < window,
            _ => true,
        }
    }

    /// A flow without pacing sends as much as its window admits.
    fn fill_window(&mut self, io: &mut Io) {
        self.retry = None;
        let unpaced = self.streams[0].pacer.is_none() && self.window.is_some();
        let sends = unpaced && self.state == State::Running && self.has_data() && self.window_is_open();
        if !sends || self.is_unheard(io) {
            return;
        }
        while self.has_data() && self.window_is_open() {
            if !self.send_data(0, io) {
                self.retry = Some(io.now + RETRY);
                break;
            }
        }
    }

    /// Before data leave: whether the flow ceases, because nobody reports on them [RFC 8083 sec 4.1].
    fn is_unheard(&mut self, io: &mut Io) -> bool {
        let trip = match (&self.breakers, &self.schedule) {
            (Some(breakers), Some(schedule)) if self.state == State::Running => breakers.rtcp_timeout(io.now_s(), schedule.session(false)),
            _ => None,
        };
        trip.inspect(|trip| self.trip(trip, io)).is_some()
    }

    /// A circuit breaker has tripped: the flow ends, or sends a tenth from now on [RFC 8083 sec 4.5].
    fn trip(&mut self, trip: &Trip, io: &mut Io) {
        let paced = self.streams[0].pacer.as_ref().map(|pacer| (pacer.rate_bps, pacer.burst_packets));
        let slower = paced.filter(|_| trip.reduce);
        let number = |value: Option<f64>| value.map_or(NoteValue::None, NoteValue::Float);
        let values = [
            ("cause", NoteValue::Text(trip.cause.name().into())),
            ("action", NoteValue::Text(if slower.is_some() { "reduce" } else { "cease" }.into())),
            ("packets_bps", number(trip.rate_bps)),
            ("tcp_bps", number(trip.tcp_rate_bps)),
            ("loss", number(trip.loss)),
            ("rtt_s", number(trip.rtt_s)),
        ];
        let values = values.map(|(name, value)| (name.to_string(), value)).to_vec();
        self.log.push((io.now, FlowRecord::Note { kind: "circuit_breaker".into(), values }));
        match slower {
            Some((rate_bps, burst_packets)) => {
                self.most_bps = rate_bps / 10.0;
                if self.pace(0, self.most_bps, burst_packets, io) {
                    self.note_sent(io.now);
                }
            }
            None => self.leave(io),
        }
    }

    fn fault(&self, what: &str) -> Fault {
        format!("flow {}: {what}", self.spec.name).into()
    }
}

/// A rate as the 64-bit field holds it: rounded down, limited to the field.
pub(crate) fn rate_field(rate_bps: f64) -> u64 {
    rate_bps as u64
}

/// A fraction as parts per million: rounded half to even as Python does, limited to the field.
pub(crate) fn utilisation_field(utilisation: f64) -> u32 {
    (utilisation * 1e6).round_ties_even() as u32
}
