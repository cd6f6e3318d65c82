//! Flows, and what their ends can do to the network: the ends themselves are in `fairlane-endpoint` and `tcp.rs`.

use fairlane_endpoint::algorithm::{Fault, ReceiverAlgorithm, SenderAlgorithm};
use fairlane_endpoint::record::FlowLog;
use fairlane_endpoint::{Application, Incoming, Kind, Life, Outgoing, RawSpec};
use fairlane_tcp::Transmit;

use crate::channel::{Channel, Sent};
use crate::events::{EventQueue, Slot};
use crate::ip::{self, Datagram, HostAddress, PROTOCOL_UDP, UDP_BYTES};
use crate::record::WorkCounts;
use crate::tcp::{TcpReceiver, TcpSender, TcpSpec};
use crate::trace::TraceWriter;
use crate::Nanos;

/// A rate-adaptive flow over RTP and RTCP.
pub struct RtpSpec {
    pub sender: Box<dyn SenderAlgorithm>,
    pub receiver: Box<dyn ReceiverAlgorithm>,
    /// A data packet as IPv4 datagram, 56 to 1500.
    pub packet_bytes: u32,
    /// Of the RTP session (RFC 3550 section 6.2), positive.
    pub session_bandwidth_bps: f64,
    /// Part of the gap between packets by which each is moved at random, 0 to 1.
    pub pacing_jitter: f64,
    /// Part of a gap before the first packet, 0 to 1; `None` draws it.
    pub phase: Option<f64>,
    /// Losses from cumulative counts, instead of the 8-bit fraction of the report.
    pub exact_loss: bool,
    /// What limits the flow beside its algorithm; `None`: there is always more to send.
    pub application: Option<Application>,
    /// A packet that comes so long after the one before, or after its production, is counted: 75 ms in SSVP's paper (section V.B).
    pub delay_threshold: Nanos,
    pub sender_ssrc: u32,
    pub receiver_ssrc: u32,
    pub sender_cname: String,
    pub receiver_cname: String,
}

/// What kind of flow.
pub enum FlowKind {
    Rtp(RtpSpec),
    Tcp(TcpSpec),
    Raw(RawSpec),
}

/// One flow.
pub struct FlowSpec {
    /// Unique; names its streams of randomness.
    pub name: String,
    /// Hosts by name.
    pub sender: String,
    pub receiver: String,
    /// UDP or TCP port at both ends; even, and RTCP uses the next.
    pub port: u16,
    pub start: Nanos,
    pub stop: Nanos,
    pub kind: FlowKind,
}

/// Buffers for frames: what has arrived is used again.
#[derive(Debug, Default)]
pub(crate) struct FramePool(Vec<Vec<u8>>);

/// Buffers kept; more are given back to the allocator.
const MAX_SPARE: usize = 4096;

impl FramePool {
    pub(crate) fn take(&mut self) -> Vec<u8> {
        self.0.pop().unwrap_or_else(|| Vec::with_capacity(1600))
    }

    pub(crate) fn give(&mut self, mut frame: Vec<u8>) {
        if self.0.len() < MAX_SPARE {
            frame.clear();
            self.0.push(frame);
        }
    }
}

/// What an end can do to the network at an instant.
pub(crate) struct Io<'a> {
    pub(crate) now: Nanos,
    /// Nanoseconds since the Unix epoch at instant 0.
    pub(crate) epoch: Nanos,
    /// Of the host.
    pub(crate) own: &'a HostAddress,
    /// UDP port of data, or TCP port, at both ends.
    pub(crate) port: u16,
    pub(crate) channel: &'a mut Channel,
    pub(crate) slot: Slot,
    pub(crate) queue: &'a mut EventQueue,
    pub(crate) pool: &'a mut FramePool,
    pub(crate) segments: &'a mut Vec<Transmit>,
    pub(crate) work: &'a mut WorkCounts,
    pub(crate) trace: Option<&'a mut TraceWriter>,
    /// Groups that the end joins (true) or leaves.
    pub(crate) memberships: &'a mut Vec<(u32, bool)>,
    /// The host's name, for the log.
    pub(crate) host: &'a str,
}

impl Io<'_> {
    /// Puts a frame into the host's queue; where that is full the frame is lost, and counted there.
    pub(crate) fn send(&mut self, frame: Vec<u8>) {
        let bytes = frame.len() as u64;
        let before = self.channel.stats.dropped_tail;
        self.put(frame);
        if let Some(trace) = &mut self.trace {
            let full = self.channel.stats.dropped_tail > before;
            let (event, cause) = if full { ("drop", "tail") } else { ("send", "") };
            trace.write(self.now, event, self.host, 0, bytes, cause);
        }
    }

    fn put(&mut self, frame: Vec<u8>) {
        match self.channel.send(self.now, frame) {
            Sent::First(arrival) => self.queue.set(self.slot, Some(arrival)),
            Sent::Behind => {}
            Sent::Full(frame) => self.pool.give(frame),
        }
    }

    /// Lets an end of `fairlane-endpoint` do something.
    fn with<T>(&mut self, work: impl FnOnce(&mut fairlane_endpoint::Io) -> T) -> T {
        let (now, epoch) = (self.now, self.epoch);
        work(&mut fairlane_endpoint::Io { now, epoch, network: self })
    }
}

impl fairlane_endpoint::Network for Io<'_> {
    /// A frame that finds the host's queue full is a loss of the network.
    fn send(&mut self, datagram: &Outgoing) -> bool {
        let &Outgoing { to, kind, head, padding } = datagram;
        let mut frame = self.pool.take();
        let options: &[u8] = if kind.alerts_routers() { &ip::ROUTER_ALERT } else { &[] };
        let bytes = UDP_BYTES + head.len() + padding;
        ip::push_headers(&mut frame, self.own, to, PROTOCOL_UDP, 0, options, bytes);
        let start = frame.len();
        ip::push_udp(&mut frame, self.port + u16::from(kind.is_rtcp()), bytes);
        frame.extend_from_slice(head);
        if kind.has_checksum() {
            let sum = ip::pseudo_header(self.own.ip, to, PROTOCOL_UDP, bytes) + ip::sum(&frame[start..]);
            frame[start + 6..start + 8].copy_from_slice(&ip::udp_checksum(sum).to_be_bytes());
        }
        frame.resize(start + bytes, 0);
        self.work.data_packets += u64::from(kind == Kind::Data);
        Io::send(self, frame);
        true
    }

    fn join(&mut self, group: u32) -> Result<(), Fault> {
        self.memberships.push((group, true));
        Ok(())
    }

    fn leave(&mut self, group: u32) {
        self.memberships.push((group, false));
    }
}

/// One end of a flow.
pub(crate) enum End {
    Udp(Box<dyn fairlane_endpoint::End>),
    TcpSender(Box<TcpSender>),
    TcpReceiver(Box<TcpReceiver>),
}

macro_rules! each {
    ($self:expr, $end:ident => $what:expr) => {
        match $self {
            End::Udp($end) => $what,
            End::TcpSender($end) => $what,
            End::TcpReceiver($end) => $what,
        }
    };
}

impl End {
    /// A datagram for one of this end's ports arrived.
    pub(crate) fn receive(&mut self, datagram: &Datagram, io: &mut Io) -> Result<(), Fault> {
        match self {
            End::Udp(end) => {
                // What is no whole UDP datagram is dropped, as a host would.
                let (Some((_, port)), Some(payload)) = (datagram.ports(), datagram.udp_payload()) else { return Ok(()) };
                let group = fairlane_endpoint::is_multicast(datagram.destination).then_some(datagram.destination);
                let incoming = Incoming { rtcp: port != io.port, group, payload };
                io.with(|io| end.receive(&incoming, io))
            }
            End::TcpSender(end) => end.receive(datagram, io),
            End::TcpReceiver(end) => end.receive(datagram, io),
        }
    }

    /// What is due by now.
    pub(crate) fn act(&mut self, io: &mut Io) -> Result<(), Fault> {
        match self {
            End::Udp(end) => io.with(|io| end.act(io)),
            End::TcpSender(end) => end.act(io),
            End::TcpReceiver(end) => end.act(io),
        }
    }

    /// When [`End::act`] has something to do.
    pub(crate) fn next(&self) -> Option<Nanos> {
        each!(self, end => end.next())
    }

    pub(crate) fn life(&mut self) -> &mut Life {
        each!(self, end => end.life())
    }

    /// Writes the periodic record.
    pub(crate) fn sample(&mut self, now: Nanos) {
        each!(self, end => end.sample(now));
    }

    pub(crate) fn log(&self) -> &FlowLog {
        each!(self, end => end.log())
    }

    pub(crate) fn take_log(&mut self) -> FlowLog {
        each!(self, end => end.take_log())
    }
}
