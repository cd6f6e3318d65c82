//! Datagrams without feedback: constant bit rate, or any other source of instants and sizes.

use fairlane_sources::{
    ConstantBitRate, Emission, Gaps, Mpeg4, Mpeg4Parameters, OnOff, OnOffParameters, ParameterError, Period, Renewal, RenewalParameters,
    Sizes, Stream,
};

use crate::algorithm::Fault;
use crate::marks::Marks;
use crate::record::{FlowLog, FlowRecord};
use crate::seen::Seen;
use crate::{check_bytes, Delays, End, Incoming, Io, Kind, Life, Nanos, Outgoing};

/// What a source emits, counted from the flow's start, in the order of time.
pub type RawSource = Box<dyn Iterator<Item = Emission> + Send>;

/// An emission larger than this is cut: data without end are TCP's.
pub(crate) const MAX_EMISSION: u64 = 16 << 20;
/// Instant of sending and number of the packet, 64 bits each.
const STAMP: usize = 16;

/// What a flow of datagrams sends.
pub enum RawTraffic {
    /// A datagram of the flow's size each `size * 8 / rate_bps`, the first at the start.
    ConstantBitRate { rate_bps: u64 },
    /// Datagrams of the flow's size at a constant rate while on.
    OnOff { rate_bps: u64, on: Period, off: Period },
    /// Single datagrams after independent gaps, at this rate on average: of the flow's size, or with a mean of exponential sizes up to the flow's.
    Renewal { rate_bps: u64, gaps: Gaps, mean_bytes: Option<f64> },
    /// Video frames, each in as many datagrams as it needs; their headers come on top.
    Mpeg4 { parameters: Box<Mpeg4Parameters>, rate_scale: f64 },
    /// Any other source; `with_headers`: an emission's bytes count the headers of the one datagram it becomes.
    Other { source: RawSource, with_headers: bool },
}

/// A flow of datagrams without feedback.
pub struct RawSpec {
    pub traffic: RawTraffic,
    /// The largest datagram, 44 (over IPv6 64) to 9000; an emission that is larger leaves as several, back to back.
    pub packet_bytes: u32,
}

impl RawTraffic {
    /// The source, and whether its bytes count headers. `least_bytes`: of a datagram. `stream`: the flow's own.
    ///
    /// # Errors
    /// What the source refuses.
    pub(crate) fn source(self, packet_bytes: u32, least_bytes: u32, stream: Stream) -> Result<(RawSource, bool), ParameterError> {
        Ok(match self {
            RawTraffic::ConstantBitRate { rate_bps } => (Box::new(ConstantBitRate::new(rate_bps, packet_bytes, 0)?), true),
            RawTraffic::OnOff { rate_bps, on, off } => {
                let parameters = OnOffParameters { rate_bps, packet_bytes, on, off };
                (Box::new(OnOff::new(parameters, 0, stream)?), true)
            }
            RawTraffic::Renewal { rate_bps, gaps, mean_bytes } => {
                let sizes = mean_bytes.map_or(Sizes::Constant { bytes: packet_bytes }, |mean| Sizes::Exponential {
                    mean,
                    least: least_bytes,
                    most: packet_bytes,
                });
                (Box::new(Renewal::new(RenewalParameters { rate_bps, gaps, sizes }, 0, stream)?), true)
            }
            RawTraffic::Mpeg4 { parameters, rate_scale } => (Box::new(Mpeg4::new(&parameters, rate_scale, 0, stream)?.emissions()), false),
            RawTraffic::Other { source, with_headers } => (source, with_headers),
        })
    }
}

/// The sending end.
pub struct RawSender {
    life: Life,
    source: RawSource,
    packet_bytes: u32,
    with_headers: bool,
    pending: Option<Emission>,
    packets: u64,
    bytes: u64,
    over: bool,
    /// Nobody acknowledges: none.
    round_trips: Delays,
    log: FlowLog,
}

impl RawSender {
    /// `stream`: the flow's own.
    ///
    /// # Errors
    /// A size that cannot be, and what the source refuses.
    pub fn new(life: Life, spec: RawSpec, stream: Stream) -> Result<Self, String> {
        let packet_bytes = spec.packet_bytes;
        let least = (life.ip.udp_bytes() + STAMP) as u32;
        check_bytes(packet_bytes, least)?;
        let (mut source, with_headers) = spec.traffic.source(packet_bytes, least, stream).map_err(|error| error.to_string())?;
        let pending = source.next();
        Ok(RawSender {
            life,
            source,
            packet_bytes,
            with_headers,
            pending,
            packets: 0,
            bytes: 0,
            over: false,
            round_trips: Delays::default(),
            log: FlowLog::new(),
        })
    }

    /// A datagram of so many bytes, or more where headers and stamp need them.
    fn send(&mut self, bytes: u64, io: &mut Io) {
        let least = (self.life.ip.udp_bytes() + STAMP) as u64;
        let bytes = bytes.max(least);
        let mut head = [0; STAMP];
        head[..8].copy_from_slice(&io.now.to_be_bytes());
        head[8..].copy_from_slice(&self.packets.to_be_bytes());
        let padding = (bytes - least) as usize;
        if io.network.send(&Outgoing { to: self.life.peer, kind: Kind::Data, ecn: 0, head: &head, padding }) {
            self.packets += 1;
            self.bytes += bytes;
        }
    }
}

impl End for RawSender {
    fn next(&self) -> Option<Nanos> {
        if self.over {
            return None;
        }
        let due = self.pending.map_or(Nanos::MAX, |emission| self.life.start.saturating_add(emission.at));
        Some(due.min(self.life.stop))
    }

    fn act(&mut self, io: &mut Io) -> Result<(), Fault> {
        if self.over {
            return Ok(());
        }
        if io.now >= self.life.stop {
            self.sample(io.now);
            self.over = true;
            return Ok(());
        }
        while let Some(emission) = self.pending.filter(|emission| self.life.start.saturating_add(emission.at) <= io.now) {
            let headers = if self.with_headers { 0 } else { self.life.ip.udp_bytes() as u64 };
            let most = u64::from(self.packet_bytes) - headers;
            let mut left = emission.bytes.min(MAX_EMISSION);
            while left > 0 {
                let bytes = left.min(most);
                left -= bytes;
                self.send(bytes + headers, io);
            }
            self.pending = self.source.next();
        }
        Ok(())
    }

    fn receive(&mut self, _datagram: &Incoming, _io: &mut Io) -> Result<(), Fault> {
        Ok(())
    }

    fn close(&mut self, io: &mut Io) {
        self.sample(io.now);
        self.over = true;
    }

    fn sample(&mut self, now: Nanos) {
        if !self.over && now >= self.life.start {
            self.log.push((now, FlowRecord::Sent { rate_bps: 0.0, packets: self.packets, bytes: self.bytes, window_packets: None }));
        }
    }

    fn life(&mut self) -> &mut Life {
        &mut self.life
    }

    fn delays(&mut self) -> &mut Delays {
        &mut self.round_trips
    }

    fn log(&self) -> &FlowLog {
        &self.log
    }

    fn take_log(&mut self) -> FlowLog {
        std::mem::take(&mut self.log)
    }
}

/// The receiving end.
pub struct RawReceiver {
    life: Life,
    packets: u64,
    bytes: u64,
    seen: Seen,
    /// One past the highest number seen.
    expected: u64,
    delay_sum: u64,
    delay_max: u64,
    over: bool,
    marks: Marks,
    delays: Delays,
    log: FlowLog,
}

impl RawReceiver {
    pub fn new(life: Life) -> Self {
        RawReceiver {
            life,
            packets: 0,
            bytes: 0,
            seen: Seen::default(),
            expected: 0,
            delay_sum: 0,
            delay_max: 0,
            over: false,
            marks: Marks::default(),
            delays: Delays::default(),
            log: FlowLog::new(),
        }
    }

    fn note_data(&mut self, now: Nanos, since: Option<Nanos>) {
        let record = FlowRecord::Data {
            packets: self.packets,
            bytes: self.bytes,
            highest_sequence: self.expected.checked_sub(1),
            lost: self.expected as i64 - self.packets as i64,
            delay_sum_ns: self.delay_sum,
            delay_max_ns: self.delay_max,
            media: None,
            since,
        };
        self.log.push((now, record));
        (self.delay_sum, self.delay_max) = (0, 0);
    }
}

impl End for RawReceiver {
    fn next(&self) -> Option<Nanos> {
        (!self.over).then_some(self.life.stop)
    }

    fn act(&mut self, io: &mut Io) -> Result<(), Fault> {
        self.over = io.now >= self.life.stop;
        Ok(())
    }

    fn receive(&mut self, datagram: &Incoming, io: &mut Io) -> Result<(), Fault> {
        let stamp = datagram.payload.first_chunk::<STAMP>().map(|stamp| u128::from_be_bytes(*stamp));
        let Some(stamp) = stamp else { return Ok(()) };
        if !self.seen.is_first(stamp as u64) {
            return Ok(());
        }
        self.packets += 1;
        self.bytes += (self.life.ip.udp_bytes() + datagram.payload.len()) as u64;
        self.expected = self.expected.max((stamp as u64).saturating_add(1));
        let delay = io.now.saturating_sub((stamp >> 64) as u64);
        self.delay_sum += delay;
        self.delay_max = self.delay_max.max(delay);
        self.delays.add(io.now, delay);
        if self.marks.arrived(io.now) {
            self.note_data(io.now, None);
        }
        Ok(())
    }

    fn close(&mut self, io: &mut Io) {
        self.sample(io.now);
        self.over = true;
    }

    fn sample(&mut self, now: Nanos) {
        if now >= self.life.start && now <= self.life.stop {
            self.note_data(now, None);
        }
    }

    fn mark(&mut self, now: Nanos) {
        if now < self.life.start || now > self.life.stop {
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
