//! TCP flows: the state machines of `fairlane-tcp` with headers around them.

use std::collections::VecDeque;

use fairlane_endpoint::algorithm::Fault;
use fairlane_endpoint::record::{FlowLog, FlowRecord};
use fairlane_endpoint::{Delays, Life, Marks};
use fairlane_random::Rng;
use fairlane_tcp::{wire, Config, ConfigError, Ftp, Receiver, Sender};

use crate::flight::{Flight, Ledger};
use crate::io::Io;
use crate::ip::{self, Datagram, ECN_MASK, PROTOCOL_TCP};
use crate::Nanos;

/// A bulk transfer over TCP.
#[derive(Debug, Clone)]
pub struct TcpSpec {
    pub config: Config,
    pub source: Ftp,
    /// What TCP sends leaves its host up to so much later, drawn uniformly; see [`Processing`].
    pub sending_jitter: Nanos,
}

/// Turns what TCP has sent into frames, each of which `send` takes.
fn send_segments(peer: u32, io: &mut Io, mut send: impl FnMut(Vec<u8>, &mut Io)) -> Result<(), Fault> {
    let mut segments = std::mem::take(io.segments);
    for transmit in segments.drain(..) {
        let segment = transmit.segment;
        let mut frame = io.pool.take();
        let length = wire::header_len(&segment);
        let payload = segment.payload_len as usize;
        let (tos, bytes) = (transmit.ecn.bits(), length + payload);
        let header = ip::Header { to: peer, protocol: PROTOCOL_TCP, ttl: ip::TTL, tos, router_alert: false, payload: bytes };
        ip::push_headers(&mut frame, io.own, &header);
        let start = frame.len();
        let header = wire::Header { source_port: io.port, destination_port: io.port, segment };
        wire::emit(&header, &mut frame)?;
        let sum = ip::pseudo_header(io.own.version, io.own.ip, peer, PROTOCOL_TCP, length + payload) + ip::sum(&frame[start..]);
        frame[start + 16..start + 18].copy_from_slice(&ip::fold(sum).to_be_bytes());
        // The payload is zeros and adds nothing to the checksum.
        frame.resize(start + length + payload, 0);
        if payload > 0 {
            io.work.data_packets += 1;
        }
        send(frame, io);
    }
    *io.segments = segments;
    Ok(())
}

/// Time that a host takes before it sends, `overhead_` of ns-2: what an event lets TCP send waits for a time drawn from 0 to `jitter`,
/// and what TCP may send meanwhile leaves with it. The order stays.
struct Processing {
    jitter: Nanos,
    rng: Rng,
    /// When what waits leaves.
    due: Nanos,
    frames: VecDeque<Vec<u8>>,
}

impl Processing {
    fn new(jitter: Nanos, rng: Rng) -> Self {
        Processing { jitter, rng, due: 0, frames: VecDeque::new() }
    }

    fn next(&self) -> Option<Nanos> {
        (!self.frames.is_empty()).then_some(self.due)
    }

    fn take(&mut self, frame: Vec<u8>, io: &mut Io) {
        if self.jitter == 0 {
            return io.send(frame);
        }
        if self.frames.is_empty() {
            self.due = io.now.saturating_add(self.rng.up_to(self.jitter));
        }
        self.frames.push_back(frame);
    }

    fn release(&mut self, io: &mut Io) {
        if self.due <= io.now {
            self.frames.drain(..).for_each(|frame| io.send(frame));
        }
    }
}

/// The sending end.
pub(crate) struct TcpSender {
    life: Life,
    tcp: Sender,
    source: Ftp,
    processing: Processing,
    /// For other flows.
    waits: bool,
    opened: bool,
    /// A segment with data.
    has_sent: bool,
    over: bool,
    round_trips: Delays,
    flight: Flight,
    log: FlowLog,
}

impl TcpSender {
    /// `rng`: of the times between TCP's decision and the sending.
    pub(crate) fn new(life: Life, spec: &TcpSpec, iss: u32, rng: Rng) -> Result<Self, ConfigError> {
        let tcp = Sender::new(spec.config.clone(), iss)?;
        let processing = Processing::new(spec.sending_jitter, rng);
        Ok(TcpSender {
            life,
            tcp,
            source: spec.source,
            processing,
            waits: false,
            opened: false,
            has_sent: false,
            over: false,
            round_trips: Delays::default(),
            flight: Flight::default(),
            log: FlowLog::new(),
        })
    }

    pub(crate) fn next(&self) -> Option<Nanos> {
        match (self.opened, self.over) {
            (false, _) => (!self.waits).then_some(self.life.start),
            (true, false) => [self.tcp.next_timer(), self.processing.next(), Some(self.life.stop)].into_iter().flatten().min(),
            (true, true) => None,
        }
    }

    /// From now on it does not start by itself.
    pub(crate) fn wait(&mut self, now: Nanos) -> Result<(), &'static str> {
        if self.waits || self.opened || self.life.start < now {
            return Err("waits for other flows already, or has started");
        }
        self.waits = true;
        Ok(())
    }

    /// It starts at the start of its life, which may have moved.
    pub(crate) fn go(&mut self) {
        self.waits = false;
    }

    /// See [`End::is_over`](crate::flow::End::is_over).
    pub(crate) fn is_over(&self) -> Option<bool> {
        match self.source {
            Ftp::Persistent => None,
            Ftp::Bytes(bytes) => Some(self.over && self.tcp.is_done() && self.tcp.acknowledged() == bytes),
        }
    }

    pub(crate) fn act(&mut self, io: &mut Io) -> Result<(), Fault> {
        if !self.opened {
            self.opened = true;
            self.log.push((io.now, FlowRecord::Start));
            self.sample(io.now);
            self.source.attach(&mut self.tcp);
            self.tcp.open(io.now, io.segments);
            return self.send(io);
        }
        if self.over {
            return Ok(());
        }
        if io.now >= self.life.stop {
            self.sample(io.now);
            self.over = true;
            return Ok(());
        }
        self.processing.release(io);
        if self.tcp.next_timer().is_some_and(|timer| timer <= io.now) {
            self.tcp.on_timer(io.now, io.segments);
            return self.send(io);
        }
        Ok(())
    }

    fn send(&mut self, io: &mut Io) -> Result<(), Fault> {
        if !self.has_sent && self.tcp.stats().segments_sent > 0 {
            self.has_sent = true;
            self.log.push((io.now, FlowRecord::FirstData));
        }
        if self.round_trips.awaits(io.now) {
            let data = io.segments.iter().filter(|transmit| transmit.segment.payload_len > 0);
            data.for_each(|transmit| self.flight.left(transmit.segment.seq, io.now));
        }
        send_segments(self.life.peer, io, |frame, io| self.processing.take(frame, io))
    }

    pub(crate) fn receive(&mut self, datagram: &Datagram, io: &mut Io) -> Result<(), Fault> {
        if !self.opened || self.over {
            return Ok(());
        }
        // What does not parse is no segment of ours, and dropped as a host would.
        let Ok(header) = wire::parse(datagram.payload, datagram.payload.len()) else { return Ok(()) };
        self.tcp.on_segment(io.now, &header.segment, io.segments);
        if let Some(rtt) = self.tcp.take_round_trip() {
            self.round_trips.add(io.now, rtt);
        }
        self.send(io)?;
        self.complete(io.now);
        Ok(())
    }

    /// Ends with the acknowledgement of a file's last byte and FIN. A connection that the peer resets is not complete.
    fn complete(&mut self, now: Nanos) {
        let Ftp::Bytes(bytes) = self.source else { return };
        if self.tcp.is_done() && self.tcp.acknowledged() == bytes {
            self.sample(now);
            self.log.push((now, FlowRecord::Complete { bytes }));
            self.over = true;
        }
    }

    pub(crate) fn mark(&mut self, now: Nanos) {
        self.sample(now);
    }

    pub(crate) fn sample(&mut self, now: Nanos) {
        if !self.opened || self.over {
            return;
        }
        let stats = self.tcp.stats();
        let record = FlowRecord::TcpSent {
            segments: stats.segments_sent,
            retransmitted: stats.segments_retransmitted,
            loss_events: stats.loss_events(),
            timeouts: stats.timeouts,
            acknowledged_bytes: self.tcp.acknowledged(),
            cwnd_bytes: self.tcp.cwnd(),
            srtt_ns: self.tcp.srtt(),
        };
        self.log.push((now, record));
    }

    pub(crate) fn life(&mut self) -> &mut Life {
        &mut self.life
    }

    pub(crate) fn flight(&self) -> Flight {
        self.flight.clone()
    }

    /// The receiving end is in another partition, which is told what leaves here.
    pub(crate) fn tell_flight(&mut self, flow: u32, ledger: Ledger) {
        self.flight.tell(flow, ledger);
    }

    /// Round trips, as far as they were measured in a window.
    pub(crate) fn delays(&mut self) -> &mut Delays {
        &mut self.round_trips
    }

    pub(crate) fn log(&self) -> &FlowLog {
        &self.log
    }

    pub(crate) fn take_log(&mut self) -> FlowLog {
        std::mem::take(&mut self.log)
    }
}

/// The receiving end.
pub(crate) struct TcpReceiver {
    life: Life,
    tcp: Receiver,
    source: Ftp,
    /// It records that it has its file.
    tells: bool,
    /// The instant of which there is no periodic record.
    unrecorded: Option<Nanos>,
    marks: Marks,
    delays: Delays,
    flight: Flight,
    log: FlowLog,
}

impl TcpReceiver {
    /// `flight`: of the sender. `sender_iss`: told where the connection has no handshake.
    pub(crate) fn new(life: Life, spec: &TcpSpec, iss: u32, sender_iss: u32, flight: Flight) -> Result<Self, ConfigError> {
        let mut tcp = Receiver::new(spec.config.clone(), iss)?;
        if !spec.config.handshake {
            tcp.listen_without_handshake(sender_iss);
        }
        let source = spec.source;
        let (marks, delays, log) = (Marks::default(), Delays::default(), FlowLog::new());
        Ok(TcpReceiver { life, tcp, source, tells: false, unrecorded: None, marks, delays, flight, log })
    }

    pub(crate) fn next(&self) -> Option<Nanos> {
        self.tcp.next_timer()
    }

    pub(crate) fn act(&mut self, io: &mut Io) -> Result<(), Fault> {
        if self.tcp.next_timer().is_some_and(|timer| timer <= io.now) {
            self.tcp.on_timer(io.now, io.segments);
            return send_segments(self.life.peer, io, |frame, io| io.send(frame));
        }
        Ok(())
    }

    pub(crate) fn receive(&mut self, datagram: &Datagram, io: &mut Io) -> Result<(), Fault> {
        let Ok(header) = wire::parse(datagram.payload, datagram.payload.len()) else { return Ok(()) };
        if header.segment.payload_len > 0
            && self.delays.counts(io.now)
            && let Some(delay) = self.flight.arrived(header.segment.seq, io.now)
        {
            self.delays.add(io.now, delay);
        }
        let before = self.tcp.delivered();
        self.tcp.on_segment(io.now, &header.segment, datagram.tos & ECN_MASK == ECN_MASK, io.segments);
        if self.tcp.delivered() > before && self.marks.arrived(io.now) {
            self.note(io.now, None);
        }
        if self.tells && self.tcp.delivered() > before && self.is_over() == Some(true) {
            self.log.push((io.now, FlowRecord::Delivered { bytes: self.tcp.delivered() }));
        }
        send_segments(self.life.peer, io, |frame, io| io.send(frame))
    }

    /// See [`End::is_over`](crate::flow::End::is_over).
    pub(crate) fn is_over(&self) -> Option<bool> {
        match self.source {
            Ftp::Persistent => None,
            Ftp::Bytes(bytes) => Some(self.tcp.delivered() >= bytes),
        }
    }

    /// A segment left a sender that is in another partition.
    pub(crate) fn left(&self, sequence: u32, time: Nanos) {
        self.flight.left(sequence, time);
    }

    /// Its flow waited for others and will start then. Whether a record at that very instant comes before or after depends on nothing but chance: there is none.
    pub(crate) fn start_at(&mut self, start: Nanos) {
        self.life.start = start;
        self.unrecorded = Some(start);
    }

    /// From now on it records when it has the whole file.
    pub(crate) fn tell(&mut self) {
        self.tells = true;
    }

    pub(crate) fn sample(&mut self, now: Nanos) {
        if now >= self.life.start && now <= self.life.stop && self.unrecorded != Some(now) {
            self.note(now, None);
        }
    }

    pub(crate) fn mark(&mut self, now: Nanos) {
        if now < self.life.start || now > self.life.stop {
            return;
        }
        if let Some(since) = self.marks.set(now) {
            self.note(now, since);
        }
    }

    fn note(&mut self, now: Nanos, since: Option<Nanos>) {
        let segments = self.tcp.stats().segments_received;
        self.log.push((now, FlowRecord::TcpData { segments, delivered_bytes: self.tcp.delivered(), since }));
    }

    pub(crate) fn life(&mut self) -> &mut Life {
        &mut self.life
    }

    /// One-way delays of segments with data, of one that was sent again since its last sending.
    pub(crate) fn delays(&mut self) -> &mut Delays {
        &mut self.delays
    }

    pub(crate) fn log(&self) -> &FlowLog {
        &self.log
    }

    pub(crate) fn take_log(&mut self) -> FlowLog {
        std::mem::take(&mut self.log)
    }
}
