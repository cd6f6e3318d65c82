//! Flows. The ends themselves are in `fairlane-endpoint` and `tcp.rs`.

use fairlane_endpoint::algorithm::{Fault, ReceiverAlgorithm, SenderAlgorithm};
use fairlane_endpoint::circuit_breaker::CircuitBreaker;
use fairlane_endpoint::record::FlowLog;
use fairlane_endpoint::{Application, Delays, Incoming, Life, RawSpec};

use crate::io::Io;
use crate::ip::{Datagram, ECN_MASK};
use crate::tcp::{TcpReceiver, TcpSender, TcpSpec};
use crate::Nanos;

/// A rate-adaptive flow over RTP and RTCP.
pub struct RtpSpec {
    pub sender: Box<dyn SenderAlgorithm>,
    pub receiver: Box<dyn ReceiverAlgorithm>,
    /// A data packet as IP datagram, 56 (over IPv6 76) to 9000.
    pub packet_bytes: u32,
    /// Of the RTP session [RFC 3550 sec 6.2], positive.
    pub session_bandwidth_bps: f64,
    /// Part of the gap between packets by which each is moved at random, 0 to 1.
    pub pacing_jitter: f64,
    /// Part of a gap before the first packet, 0 to 1; `None` draws it.
    pub phase: Option<f64>,
    /// Losses from cumulative counts, instead of the 8-bit fraction of the report.
    pub exact_loss: bool,
    /// `Some`: packets are acknowledged in reports, so often (RFC 8888); `None`: each on its own.
    pub report_interval: Option<Nanos>,
    /// What limits the flow beside its algorithm; `None`: there is always more to send.
    pub application: Option<Application>,
    /// A packet that comes so long after the one before, or after its production, is counted: 75 ms in [SSVP sec V.B].
    pub delay_threshold: Nanos,
    pub circuit_breaker: Option<CircuitBreaker>,
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
                let incoming = Incoming { rtcp: port != io.port, group, ecn: datagram.tos & ECN_MASK, payload };
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

    /// The receiving end of a TCP flow that waited for others will start then.
    pub(crate) fn start_at(&mut self, start: Nanos) {
        match self {
            End::TcpReceiver(end) => end.start_at(start),
            _ => self.life().start = start,
        }
    }

    /// Of a TCP flow with a file: whether this end knows that all of it was delivered. `None`: of any other.
    pub(crate) fn is_over(&self) -> Option<bool> {
        match self {
            End::Udp(_) => None,
            End::TcpSender(end) => end.is_over(),
            End::TcpReceiver(end) => end.is_over(),
        }
    }

    /// Writes the periodic record.
    pub(crate) fn sample(&mut self, now: Nanos) {
        each!(self, end => end.sample(now));
    }

    /// Writes a record from which its sums at this instant follow exactly.
    pub(crate) fn mark(&mut self, now: Nanos) {
        each!(self, end => end.mark(now));
    }

    /// As of `fairlane_endpoint::End`.
    pub(crate) fn delays(&mut self) -> &mut Delays {
        each!(self, end => end.delays())
    }

    pub(crate) fn log(&self) -> &FlowLog {
        each!(self, end => end.log())
    }

    pub(crate) fn take_log(&mut self) -> FlowLog {
        each!(self, end => end.take_log())
    }
}
