//! What the end of a flow can do to the network at an instant.

use fairlane_channel::{Channel, Sent};
use fairlane_endpoint::algorithm::Fault;
use fairlane_endpoint::{Kind, Outgoing};
use fairlane_tcp::Transmit;

use crate::events::{ActorSlot, EventQueue};
use crate::ip::{self, HostAddress, PROTOCOL_UDP, UDP_BYTES};
use crate::observer::Observer;
use crate::record::WorkCounts;
use crate::trace::Place;
use crate::Nanos;

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
    pub(crate) slot: ActorSlot,
    pub(crate) queue: &'a mut EventQueue,
    pub(crate) pool: &'a mut FramePool,
    pub(crate) segments: &'a mut Vec<Transmit>,
    pub(crate) work: &'a mut WorkCounts,
    pub(crate) observer: Option<&'a mut Observer>,
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
        let who = self.observer.as_ref().map(|observer| observer.logged(&frame));
        self.put(frame);
        if let (Some(observer), Some(who)) = (&mut self.observer, who) {
            let full = self.channel.stats.dropped_tail > before;
            let what = if full { ("drop", "tail") } else { ("send", "") };
            observer.log(self.now, what, Place::at(self.host, 0), bytes, who);
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
    pub(crate) fn with<T>(&mut self, work: impl FnOnce(&mut fairlane_endpoint::Io) -> T) -> T {
        let (now, epoch) = (self.now, self.epoch);
        work(&mut fairlane_endpoint::Io { now, epoch, network: self })
    }
}

impl fairlane_endpoint::Network for Io<'_> {
    /// A frame that finds the host's queue full is a loss of the network.
    fn send(&mut self, datagram: &Outgoing) -> bool {
        let &Outgoing { to, kind, ecn, head, padding } = datagram;
        let mut frame = self.pool.take();
        let bytes = UDP_BYTES + head.len() + padding;
        let header =
            ip::Header { to, protocol: PROTOCOL_UDP, ttl: ip::TTL, tos: ecn & 3, router_alert: kind.alerts_routers(), payload: bytes };
        ip::push_headers(&mut frame, self.own, &header);
        let start = frame.len();
        ip::push_udp(&mut frame, self.port + u16::from(kind.is_rtcp()), bytes);
        frame.extend_from_slice(head);
        if kind.has_checksum(self.own.version) {
            let sum = ip::pseudo_header(self.own.version, self.own.ip, to, PROTOCOL_UDP, bytes) + ip::sum(&frame[start..]);
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
