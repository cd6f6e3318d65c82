//! The ends of flows over UDP: RTP data with RTCP, feedback beside RTCP, and plain sources of datagrams.
//!
//! Nothing here reads a clock, opens a socket or draws from a generator of its own: the instant is an argument, and each end draws
//! from a stream that its seed and name give. An end takes in events and sends datagrams through [`Network`]:
//!
//! ```text
//! end.next()                when it has something to do
//! end.act(&mut io)          at that instant: packets and reports leave, timers run
//! end.receive(datagram, &mut io)
//! end.sample(now), take_log()  what it has counted and done
//! ```
//!
//! The network in virtual time drives ends by events (`fairlane-virtual`), hosts of Mininet drive them by sockets (`fairlane-host`).
//!
//! | file | content |
//! |---|---|
//! | `algorithm.rs` | the seam to rate-adaptation algorithms |
//! | `sender.rs`, `sender/`, `stream.rs`, `pacer.rs`, `acks.rs` | the sending end: layers, pacing, acknowledgements, losses |
//! | `ip.rs` | the version of IP |
//! | `header.rs` | a header of a flow's own, which switches write and acknowledgements bring back |
//! | `receiver.rs`, `reception.rs`, `gaps.rs`, `statistics.rs`, `report.rs` | the receiving end: what arrived, what is reported |
//! | `ccfb.rs`, `avpf.rs`, `ecn.rs` | reports of many packets (RFC 8888): what they say, when they leave, whether the path keeps ECN |
//! | `rtcp_schedule.rs`, `timers.rs` | when RTCP packets leave; an algorithm's timers |
//! | `circuit_breaker.rs` | when a sender must cease (RFC 8083) |
//! | `application.rs`, `film.rs`, `raw.rs` | applications above a flow, films among them, and flows of datagrams without feedback |
//! | `wire/` | RTP, RTCP with ALSF and congestion control feedback, NTP timestamps |
//! | `record.rs`, `marks.rs` | records; exact counts at the ends of a window |

#![forbid(unsafe_code)]

mod acks;
pub mod algorithm;
mod application;
mod avpf;
mod ccfb;
pub mod circuit_breaker;
mod ecn;
mod film;
mod gaps;
pub mod header;
pub mod ip;
mod marks;
pub mod pacer;
mod raw;
mod receiver;
mod reception;
pub mod record;
mod report;
pub mod rtcp_schedule;
mod seen;
mod sender;
pub mod statistics;
mod stream;
mod timers;
pub mod wire;

pub use acks::AckPacket;
pub use application::{Application, Backlog, Produces};
pub use fairlane_sources as sources;
pub use fairlane_units::{instant, seconds, Delays, Nanos};
pub use film::Film;
pub use ip::Ip;
pub use marks::Marks;
pub use raw::{RawReceiver, RawSender, RawSource, RawSpec, RawTraffic};
pub use receiver::{ReceiverSpec, RtpReceiver};
pub use report::ReportPacket;
pub use sender::{RtpSender, SenderSpec};

use algorithm::Fault;
use application::Sizes;
use record::FlowLog;
use wire::rtp::HEADER_BYTES;
use wire::stamp::SHORT_BYTES;

/// The largest datagram of data: Ethernet's jumbo frames.
pub const MAX_PACKET_BYTES: u32 = 9000;
/// The largest report, whatever the size of data.
const MAX_REPORT_BYTES: u32 = 1500;

/// What a datagram is, and so how it travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Of a sender, to the data port.
    Data,
    /// An acknowledgement or a report beside RTCP, from data port to data port.
    Feedback,
    /// A receiver's RTCP report.
    Report,
    /// A sender's RTCP report: routers look into it and rewrite it.
    SenderReport,
    /// A receiver's report that the sender passes on to its group (RFC 5760).
    Reflected,
}

impl Kind {
    /// RTCP goes to the port after that of data [RFC 3550 sec 11].
    pub fn is_rtcp(self) -> bool {
        !matches!(self, Kind::Data | Kind::Feedback)
    }

    /// Whether it carries the router alert (RFC 2113, RFC 2711).
    pub fn alerts_routers(self) -> bool {
        self == Kind::SenderReport
    }

    /// Whether it has a UDP checksum. What routers rewrite has none over IPv4; IPv6 requires one [RFC 8200 sec 8.1].
    pub fn has_checksum(self, ip: Ip) -> bool {
        ip == Ip::V6 || !matches!(self, Kind::SenderReport | Kind::Reflected)
    }
}

/// A datagram to send: `head`, then so many zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outgoing<'a> {
    /// The peer's, as of [`Life`], or the IPv4 address of the group.
    pub to: u32,
    pub kind: Kind,
    /// The ECN field of the IP header [RFC 3168 sec 5]: its two bits.
    pub ecn: u8,
    /// Of an even length where the network computes checksums itself: in virtual time.
    pub head: &'a [u8],
    pub padding: usize,
}

/// A datagram that came from the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Incoming<'a> {
    /// Whether it came to the RTCP port; else to the data port.
    pub rtcp: bool,
    /// The group that it was sent to; `None`: to the host itself.
    pub group: Option<u32>,
    /// The ECN field of the IP header.
    pub ecn: u8,
    pub payload: &'a [u8],
}

/// What carries an end's datagrams.
pub trait Network {
    /// Sends. False: the host refused it, and it never left.
    fn send(&mut self, datagram: &Outgoing) -> bool;
    /// The end becomes a member of a group.
    ///
    /// # Errors
    /// The host cannot be a member.
    fn join(&mut self, group: u32) -> Result<(), Fault>;
    /// The end leaves a group.
    fn leave(&mut self, group: u32);
    /// Hands something to the program beside the end that encodes or shows a film.
    fn hand(&mut self, _message: &[u8]) {}
}

/// What an end is given at an instant.
pub struct Io<'a> {
    pub now: Nanos,
    /// Nanoseconds since the Unix epoch at instant 0.
    pub epoch: Nanos,
    pub network: &'a mut dyn Network,
}

impl Io<'_> {
    /// The run's time in seconds, as algorithms see it.
    fn now_s(&self) -> f64 {
        seconds(self.now)
    }

    /// Sends bytes without padding.
    fn send(&mut self, to: u32, kind: Kind, head: &[u8]) -> bool {
        self.network.send(&Outgoing { to, kind, ecn: 0, head, padding: 0 })
    }
}

/// Whom an end talks to, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Life {
    /// IPv4 address, or the last 32 bits of the IPv6 address ([`ip`]); of a layered sender: the base layer's group.
    pub peer: u32,
    pub ip: Ip,
    pub start: Nanos,
    pub stop: Nanos,
}

/// One end of a flow.
pub trait End: Send {
    /// When [`End::act`] has something to do; `None`: never again by itself.
    fn next(&self) -> Option<Nanos>;

    /// Does what is due.
    ///
    /// # Errors
    /// Of the algorithm, or of what it asks for.
    fn act(&mut self, io: &mut Io) -> Result<(), Fault>;

    /// A datagram arrived.
    ///
    /// # Errors
    /// As of [`End::act`].
    fn receive(&mut self, datagram: &Incoming, io: &mut Io) -> Result<(), Fault>;

    /// A packet came from the program beside the end that encodes a film: instant of the picture, 64 bits, and an RTP packet.
    ///
    /// # Errors
    /// As of [`End::act`].
    fn produced(&mut self, _message: &[u8], _io: &mut Io) -> Result<(), Fault> {
        Ok(())
    }

    /// Ends at once, before its stop: with a BYE if that need not wait [RFC 3550 sec 6.3.7], and its last records.
    fn close(&mut self, io: &mut Io);

    /// Writes the periodic record.
    fn sample(&mut self, now: Nanos);

    /// Writes a record from which the end's sums at this instant follow exactly: see [`Marks`].
    fn mark(&mut self, now: Nanos) {
        self.sample(now);
    }

    /// Its life; the instant of its stop may be changed until it has come.
    fn life(&mut self) -> &mut Life;

    /// What it has measured of each packet, once asked for a window by [`Delays::within`]: a sender round trips, as its feedback tells them; a receiver
    /// one-way delays.
    fn delays(&mut self) -> &mut Delays;

    fn log(&self) -> &FlowLog;

    fn take_log(&mut self) -> FlowLog;
}

/// Whether an address is a multicast group's [RFC 1112 sec 4].
pub fn is_multicast(ip: u32) -> bool {
    ip >> 28 == 0b1110
}

/// Whether routers forward what is sent to an address of a group: 224.0.1.0 to 239.255.255.255 [RFC 5771 sec 4].
pub fn is_forwarded_group(ip: u32) -> bool {
    is_multicast(ip) && ip >> 8 != 0xe0_00_00
}

fn check_bytes(packet_bytes: u32, least: u32) -> Result<(), String> {
    if !(least..=MAX_PACKET_BYTES).contains(&packet_bytes) {
        return Err(format!("packet_bytes: {least} to {MAX_PACKET_BYTES}, IP header included, got {packet_bytes}"));
    }
    Ok(())
}

/// Checks what the ends of a flow over RTP have in common. `media`: whether it has an application.
///
/// # Errors
/// What is wrong.
pub fn check_session(
    ip: Ip,
    packet_bytes: u32,
    media: bool,
    bandwidth_bps: f64,
    pacing_jitter: f64,
    phase: Option<f64>,
) -> Result<(), String> {
    let headers = ip.udp_bytes() + HEADER_BYTES + SHORT_BYTES;
    check_bytes(packet_bytes, if media { Sizes::of(ip).least } else { headers as u32 })?;
    if !(bandwidth_bps > 0.0 && bandwidth_bps.is_finite()) {
        return Err(format!("session bandwidth: must be positive, got {bandwidth_bps} bit/s"));
    }
    if !(0.0..=1.0).contains(&pacing_jitter) || phase.is_some_and(|phase| !(0.0..=1.0).contains(&phase)) {
        return Err("pacing jitter and phase: must be in [0, 1]".into());
    }
    Ok(())
}
