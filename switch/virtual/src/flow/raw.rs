//! Datagrams without feedback: constant bit rate, or any other source of instants and sizes.

use fairlane_sources::{ConstantBitRate, Emission, Mpeg4, Mpeg4Parameters, OnOff, OnOffParameters, ParameterError, Period, Stream};

use super::rtp_sender::push_udp;
use super::{Ends, Io};
use crate::algorithm::Fault;
use crate::record::{FlowLog, FlowRecord};
use crate::wire::ip::{self, Datagram, PROTOCOL_UDP, UDP_BYTES};
use crate::Nanos;

/// What a source emits, counted from the flow's start, in the order of time.
pub type RawSource = Box<dyn Iterator<Item = Emission> + Send>;

/// The smallest datagram: headers and the stamp.
pub(crate) const MIN_BYTES: u64 = 44;
/// Headers of a datagram.
const HEADERS: u64 = (ip::IPV4_BYTES + UDP_BYTES) as u64;
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
    /// Video frames, each in as many datagrams as it needs; their headers come on top.
    Mpeg4 { parameters: Box<Mpeg4Parameters>, rate_scale: f64 },
    /// Any other source; `with_headers`: an emission's bytes count the headers of the one datagram it becomes.
    Other { source: RawSource, with_headers: bool },
}

/// A flow of datagrams without feedback.
pub struct RawSpec {
    pub traffic: RawTraffic,
    /// The largest datagram, 44 to 1500; an emission that is larger leaves as several, back to back.
    pub packet_bytes: u32,
}

impl RawTraffic {
    /// The source, and whether its bytes count headers. `stream`: the flow's own.
    ///
    /// # Errors
    /// What the source refuses.
    pub(crate) fn source(self, packet_bytes: u32, stream: Stream) -> Result<(RawSource, bool), ParameterError> {
        Ok(match self {
            RawTraffic::ConstantBitRate { rate_bps } => (Box::new(ConstantBitRate::new(rate_bps, packet_bytes, 0)?), true),
            RawTraffic::OnOff { rate_bps, on, off } => {
                let parameters = OnOffParameters { rate_bps, packet_bytes, on, off };
                (Box::new(OnOff::new(parameters, 0, stream)?), true)
            }
            RawTraffic::Mpeg4 { parameters, rate_scale } => {
                (Box::new(Mpeg4::new(&parameters, rate_scale, 0, stream)?.emissions()), false)
            }
            RawTraffic::Other { source, with_headers } => (source, with_headers),
        })
    }
}

/// The sending end.
pub(crate) struct RawSender {
    pub(super) ends: Ends,
    source: RawSource,
    packet_bytes: u32,
    with_headers: bool,
    pending: Option<Emission>,
    packets: u64,
    bytes: u64,
    over: bool,
    pub(crate) log: FlowLog,
}

impl RawSender {
    /// `stream`: the flow's own.
    pub(crate) fn new(ends: Ends, spec: RawSpec, stream: Stream) -> Result<Self, ParameterError> {
        let packet_bytes = spec.packet_bytes;
        let (mut source, with_headers) = spec.traffic.source(packet_bytes, stream)?;
        let pending = source.next();
        Ok(RawSender { ends, source, packet_bytes, with_headers, pending, packets: 0, bytes: 0, over: false, log: FlowLog::new() })
    }

    pub(crate) fn next(&self) -> Option<Nanos> {
        if self.over {
            return None;
        }
        let due = self.pending.map_or(Nanos::MAX, |emission| self.ends.start.saturating_add(emission.at));
        Some(due.min(self.ends.stop))
    }

    pub(crate) fn act(&mut self, io: &mut Io) -> Result<(), Fault> {
        if self.over {
            return Ok(());
        }
        if io.now >= self.ends.stop {
            self.sample(io.now);
            self.over = true;
            return Ok(());
        }
        while let Some(emission) = self.pending.filter(|emission| self.ends.start.saturating_add(emission.at) <= io.now) {
            let headers = if self.with_headers { 0 } else { HEADERS };
            let most = u64::from(self.packet_bytes) - headers;
            let mut left = emission.bytes.min(MAX_EMISSION);
            while left > 0 {
                let bytes = left.min(most);
                left -= bytes;
                self.send((bytes + headers).max(MIN_BYTES) as usize, io);
            }
            self.pending = self.source.next();
        }
        Ok(())
    }

    fn send(&mut self, bytes: usize, io: &mut Io) {
        let payload = bytes - ip::IPV4_BYTES;
        let mut frame = io.pool.take();
        ip::push_headers(&mut frame, &self.ends.own, self.ends.peer, PROTOCOL_UDP, 0, &[], payload);
        let udp = frame.len();
        push_udp(&mut frame, self.ends.port, payload);
        frame.extend_from_slice(&io.now.to_be_bytes());
        frame.extend_from_slice(&self.packets.to_be_bytes());
        let sum = ip::pseudo_header(self.ends.own.ip, self.ends.peer, PROTOCOL_UDP, payload) + ip::sum(&frame[udp..]);
        frame[udp + 6..udp + 8].copy_from_slice(&ip::udp_checksum(sum).to_be_bytes());
        frame.resize(udp + payload, 0);
        self.packets += 1;
        self.bytes += bytes as u64;
        io.work.data_packets += 1;
        io.send(frame);
    }

    pub(crate) fn receive(&mut self, _datagram: &Datagram, _io: &mut Io) -> Result<(), Fault> {
        Ok(())
    }

    pub(crate) fn sample(&mut self, now: Nanos) {
        if !self.over && now >= self.ends.start {
            self.log.push((now, FlowRecord::Sent { rate_bps: 0.0, packets: self.packets, bytes: self.bytes, window_packets: None }));
        }
    }
}

/// The receiving end.
pub(crate) struct RawReceiver {
    pub(super) ends: Ends,
    packets: u64,
    bytes: u64,
    /// One past the highest number seen.
    expected: u64,
    delay_sum: u64,
    delay_max: u64,
    pub(crate) log: FlowLog,
}

impl RawReceiver {
    pub(crate) fn new(ends: Ends) -> Self {
        RawReceiver { ends, packets: 0, bytes: 0, expected: 0, delay_sum: 0, delay_max: 0, log: FlowLog::new() }
    }

    pub(crate) fn next(&self) -> Option<Nanos> {
        None
    }

    pub(crate) fn act(&mut self, _io: &mut Io) -> Result<(), Fault> {
        Ok(())
    }

    pub(crate) fn receive(&mut self, datagram: &Datagram, io: &mut Io) -> Result<(), Fault> {
        let stamp = datagram.payload.get(UDP_BYTES..).and_then(|payload| payload.first_chunk::<STAMP>());
        let Some(stamp) = stamp.map(|stamp| u128::from_be_bytes(*stamp)) else { return Ok(()) };
        self.packets += 1;
        self.bytes += datagram.bytes as u64;
        self.expected = self.expected.max((stamp as u64).saturating_add(1));
        let delay = io.now.saturating_sub((stamp >> 64) as u64);
        self.delay_sum += delay;
        self.delay_max = self.delay_max.max(delay);
        Ok(())
    }

    pub(crate) fn sample(&mut self, now: Nanos) {
        if now >= self.ends.start && now <= self.ends.stop {
            let record = FlowRecord::Data {
                packets: self.packets,
                bytes: self.bytes,
                highest_sequence: self.expected.checked_sub(1),
                lost: self.expected as i64 - self.packets as i64,
                delay_sum_ns: self.delay_sum,
                delay_max_ns: self.delay_max,
                media: None,
            };
            self.log.push((now, record));
            (self.delay_sum, self.delay_max) = (0, 0);
        }
    }
}
