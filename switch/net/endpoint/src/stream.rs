//! One RTP stream of a sender: its numbering, its pacing, its packets.

use crate::algorithm::Fault;
use crate::application::Piece;
use crate::header::OwnHeader;
use crate::pacer::Pacer;
use crate::wire::rtp::{self, RtpHeader, HEADER_BYTES};
use crate::wire::stamp::{self, Stamp};
use crate::{Io, Ip, Kind, Life, Nanos, Outgoing};
use fairlane_random::Rng;

/// See the module.
pub(crate) struct DataStream {
    pub(crate) ssrc: u32,
    /// The receiver's, or the IPv4 address of the group.
    pub(crate) to: u32,
    ip: Ip,
    pub(crate) sent_packets: u64,
    /// Of IPv4 datagrams.
    pub(crate) sent_bytes: u64,
    /// `None`: not paced, or paused.
    pub(crate) pacer: Option<Pacer>,
    packet_bytes: u32,
    /// Of the flow, in microseconds: where the algorithm stamps data with it.
    rtt_us: Option<u32>,
    /// Where packets have one of their own.
    pub(crate) header: Option<OwnHeader>,
    /// ECN codepoint of packets [RFC 3168 sec 5].
    ecn: u8,
    /// Of pacers that were before.
    forgiven_packets: u64,
    first_sequence: u16,
    timestamp_offset: u32,
    /// Headers, stamp and content of the last packet: its memory is used again.
    head: Vec<u8>,
}

impl DataStream {
    /// `life`: of the flow; its peer is the receiver or the group. `rng`: the flow's own.
    pub(crate) fn new(life: &Life, ssrc: u32, packet_bytes: u32, ecn: u8, header: Option<OwnHeader>, rng: &mut Rng) -> DataStream {
        let (first_sequence, timestamp_offset) = (rng.bits() as u16, rng.bits() as u32);
        DataStream {
            ssrc,
            to: life.peer,
            ip: life.ip,
            sent_packets: 0,
            sent_bytes: 0,
            pacer: None,
            packet_bytes,
            ecn,
            rtt_us: None,
            header,
            forgiven_packets: 0,
            first_sequence,
            timestamp_offset,
            head: Vec::new(),
        }
    }

    /// All data from now on carries the round-trip time: at least 1 us, since 0 says that it is not known.
    ///
    /// # Errors
    /// Packets without room for it.
    pub(crate) fn stamp(&mut self, rtt_s: f64) -> Result<(), Fault> {
        let least = self.ip.udp_bytes() + self.header_bytes() + stamp::LONG_BYTES;
        if (self.packet_bytes as usize) < least {
            return Err(format!("StampData needs packets of {least} bytes or more").into());
        }
        self.rtt_us = Some((rtt_s * 1e6).round_ties_even().max(1.0) as u32);
        Ok(())
    }

    /// Of RTP, with an extension.
    fn header_bytes(&self) -> usize {
        HEADER_BYTES + self.header.as_ref().map_or(0, |header| header.bytes.len())
    }

    /// Sends the next packet. `piece`: what it carries, when it is of an application; full otherwise. False: the host refused it, and
    /// its number is the next packet's.
    pub(crate) fn send(&mut self, piece: Option<&Piece>, io: &mut Io) -> bool {
        if let Some(header) = &mut self.header {
            header.fill_packet(self.sent_packets, io.now);
        }
        let extension = self.header.as_ref().map_or(&[][..], |header| &header.bytes);
        let header = RtpHeader {
            sequence: self.first_sequence.wrapping_add(self.sent_packets as u16),
            timestamp: self.rtp_timestamp(piece.map_or(io.now, |piece| piece.produced)),
            ssrc: self.ssrc,
            extension,
        };
        let stamp =
            Stamp { sent: io.now, number: self.sent_packets, sender_rtt_us: self.rtt_us, produced: piece.map(|piece| piece.produced) };
        let (stamp, stamp_bytes) = stamp.emit();
        let mut head = std::mem::take(&mut self.head);
        head.clear();
        head.extend_from_slice(&header.emit());
        head.extend_from_slice(extension);
        head.extend_from_slice(&stamp[..stamp_bytes]);
        head.extend_from_slice(piece.map_or(&[][..], |piece| &piece.content));
        let used = self.ip.udp_bytes() + head.len();
        let bytes = piece.map_or(self.packet_bytes, |piece| piece.bytes.max(used as u32));
        let padding = (bytes as usize).saturating_sub(used);
        let sent = io.network.send(&Outgoing { to: self.to, kind: Kind::Data, ecn: self.ecn, head: &head, padding });
        self.head = head;
        if sent {
            self.sent_packets += 1;
            self.sent_bytes += u64::from(bytes);
        }
        sent
    }

    /// No data until there is a pacer again.
    pub(crate) fn pause(&mut self) {
        self.forgiven_packets = self.forgiven_packets();
        self.pacer = None;
    }

    /// Packets that were due and are not sent, for lateness.
    pub(crate) fn forgiven_packets(&self) -> u64 {
        self.forgiven_packets + self.pacer.as_ref().map_or(0, |pacer| pacer.forgiven_packets)
    }

    pub(crate) fn rtp_timestamp(&self, at: Nanos) -> u32 {
        let units = u128::from(at) * u128::from(rtp::CLOCK_HZ) / 1_000_000_000;
        (units as u32).wrapping_add(self.timestamp_offset)
    }

    /// Packets leave as not ECN-capable from now on.
    pub(crate) fn stop_ecn(&mut self) {
        self.ecn = 0;
    }

    /// RTP sequence number of the first packet.
    pub(crate) fn first_sequence(&self) -> u16 {
        self.first_sequence
    }

    /// Bytes of RTP payload sent [RFC 3550 sec 6.4.1].
    pub(crate) fn payload_bytes(&self) -> u64 {
        self.sent_bytes - self.sent_packets * (self.ip.udp_bytes() + self.header_bytes()) as u64
    }
}
