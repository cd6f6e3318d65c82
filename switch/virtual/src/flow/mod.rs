//! The ends of flows.

mod acks;
mod application;
mod gaps;
mod raw;
mod reception;
mod report;
mod rtp_receiver;
mod rtp_sender;
mod stream;
mod tcp;
mod timers;

use fairlane_tcp::Transmit;

use crate::algorithm::{Fault, ReceiverAlgorithm, SenderAlgorithm};
use crate::channel::{Channel, Sent};
use crate::events::{EventQueue, Slot};
use crate::record::{FlowLog, WorkCounts};
use crate::trace::TraceWriter;
use crate::wire::ip::{Datagram, HostAddress};
use crate::Nanos;

pub use application::Application;
pub use raw::{RawSource, RawSpec, RawTraffic};
pub use tcp::TcpSpec;

pub(crate) use application::{Backlog, MIN_BYTES as MIN_MEDIA_BYTES};
pub(crate) use raw::{RawReceiver, RawSender};
pub(crate) use rtp_receiver::{ReceiverSpec, RtpReceiver};
pub(crate) use rtp_sender::{RtpSender, SenderSpec};
pub(crate) use tcp::{TcpReceiver, TcpSender};

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

/// Who an end is and whom it talks to.
#[derive(Debug, Clone)]
pub(crate) struct Ends {
    pub(crate) own: HostAddress,
    pub(crate) peer: u32,
    pub(crate) port: u16,
    pub(crate) start: Nanos,
    pub(crate) stop: Nanos,
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

    /// The run's time in seconds, as algorithms see it.
    pub(crate) fn now_s(&self) -> f64 {
        seconds(self.now)
    }
}

/// Nanoseconds as seconds.
pub fn seconds(time: Nanos) -> f64 {
    time as f64 / 1e9
}

/// The first instant that is not before a time in seconds: a timer is never early. What lies before the beginning is the
/// beginning, what never comes is the end of time.
pub fn instant(time_s: f64) -> Nanos {
    let mut instant = (time_s * 1e9).ceil() as Nanos;
    while seconds(instant) < time_s && instant < Nanos::MAX {
        instant += 1;
    }
    instant
}

/// One end of a flow.
pub(crate) enum End {
    RtpSender(Box<RtpSender>),
    RtpReceiver(Box<RtpReceiver>),
    TcpSender(Box<TcpSender>),
    TcpReceiver(Box<TcpReceiver>),
    RawSender(Box<RawSender>),
    RawReceiver(Box<RawReceiver>),
}

macro_rules! each {
    ($self:expr, $end:ident => $what:expr) => {
        match $self {
            End::RtpSender($end) => $what,
            End::RtpReceiver($end) => $what,
            End::TcpSender($end) => $what,
            End::TcpReceiver($end) => $what,
            End::RawSender($end) => $what,
            End::RawReceiver($end) => $what,
        }
    };
}

impl End {
    /// A datagram for one of this end's ports arrived.
    pub(crate) fn receive(&mut self, datagram: &Datagram, io: &mut Io) -> Result<(), Fault> {
        each!(self, end => end.receive(datagram, io))
    }

    /// What is due by now.
    pub(crate) fn act(&mut self, io: &mut Io) -> Result<(), Fault> {
        each!(self, end => end.act(io))
    }

    /// When [`End::act`] has something to do.
    pub(crate) fn next(&self) -> Option<Nanos> {
        each!(self, end => end.next())
    }

    pub(crate) fn ends_mut(&mut self) -> &mut Ends {
        each!(self, end => &mut end.ends)
    }

    /// Writes the periodic record.
    pub(crate) fn sample(&mut self, now: Nanos) {
        each!(self, end => end.sample(now));
    }

    pub(crate) fn take_log(&mut self) -> FlowLog {
        each!(self, end => std::mem::take(&mut end.log))
    }

    pub(crate) fn log(&self) -> &FlowLog {
        each!(self, end => &end.log)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_are_never_early() {
        for time_s in [0.0, 0.1, 0.3, 1.1, 5.000000001, 123.456789, 99999.7] {
            let at = instant(time_s);
            assert!(seconds(at) >= time_s && at as f64 - time_s * 1e9 < 2.0, "{time_s}");
        }
        assert_eq!(instant(-1.0), 0);
        assert_eq!(instant(f64::INFINITY), Nanos::MAX);
        assert_eq!(instant(f64::NAN), 0);
    }
}
