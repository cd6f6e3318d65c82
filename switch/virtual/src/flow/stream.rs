//! One RTP stream of a sender: its numbering, its pacing, its packets.

use super::application::Piece;
use super::rtp_sender::push_udp;
use super::{Ends, Io};
use crate::algorithm::Fault;
use crate::pacer::Pacer;
use crate::rng::Rng;
use crate::wire::ip::{self, ETHERNET_BYTES, IPV4_BYTES, PROTOCOL_UDP, UDP_BYTES};
use crate::wire::rtp::{self, LONG_STAMP_BYTES, STAMP_BYTES};
use crate::Nanos;

pub(super) const IP_UDP_BYTES: usize = IPV4_BYTES + UDP_BYTES;
/// Where RTP begins in a data frame.
const RTP_AT: usize = ETHERNET_BYTES + IP_UDP_BYTES;
/// Where its payload begins.
const STAMP_AT: usize = RTP_AT + rtp::HEADER_BYTES;

/// See the module.
pub(super) struct DataStream {
    pub(super) ssrc: u32,
    /// IPv4 address of the receiver or the group.
    pub(super) to: u32,
    pub(super) sent_packets: u64,
    /// Of IPv4 datagrams.
    pub(super) sent_bytes: u64,
    /// `None`: not paced, or paused.
    pub(super) pacer: Option<Pacer>,
    packet_bytes: u32,
    /// A whole data frame; sequence number, timestamp, stamp and checksum change.
    frame: Vec<u8>,
    /// The sum over what does not change of a data packet's UDP checksum.
    constant_sum: u64,
    first_sequence: u16,
    timestamp_offset: u32,
}

impl DataStream {
    /// `rng`: the flow's own.
    pub(super) fn new(ends: &Ends, to: u32, ssrc: u32, packet_bytes: u32, rng: &mut Rng) -> DataStream {
        let (first_sequence, timestamp_offset) = (rng.bits() as u16, rng.bits() as u32);
        let mut stream = DataStream {
            ssrc,
            to,
            sent_packets: 0,
            sent_bytes: 0,
            pacer: None,
            packet_bytes,
            frame: Vec::new(),
            constant_sum: 0,
            first_sequence,
            timestamp_offset,
        };
        stream.address(ends, to);
        stream
    }

    /// Where data goes from now on.
    pub(super) fn address(&mut self, ends: &Ends, to: u32) {
        let payload = self.packet_bytes as usize - IPV4_BYTES;
        self.to = to;
        self.frame.clear();
        ip::push_headers(&mut self.frame, &ends.own, to, PROTOCOL_UDP, 0, &[], payload);
        push_udp(&mut self.frame, ends.port, payload);
        let header = rtp::RtpHeader { sequence: 0, timestamp: 0, ssrc: self.ssrc };
        self.frame.extend_from_slice(&header.emit());
        self.frame.resize(ETHERNET_BYTES + self.packet_bytes as usize, 0);
        self.sum(ends);
    }

    fn sum(&mut self, ends: &Ends) {
        let udp = &self.frame[ETHERNET_BYTES + IPV4_BYTES..];
        self.constant_sum = ip::pseudo_header(ends.own.ip, self.to, PROTOCOL_UDP, udp.len()) + ip::sum(udp);
    }

    /// All data from now on carries the round-trip time: at least 1 us, since 0 says that it is not known.
    ///
    /// # Errors
    /// Packets without room for it.
    pub(super) fn stamp(&mut self, ends: &Ends, rtt_s: f64) -> Result<(), Fault> {
        let Some(place) = self.frame.get_mut(STAMP_AT + STAMP_BYTES..STAMP_AT + LONG_STAMP_BYTES) else {
            let least = IP_UDP_BYTES + rtp::HEADER_BYTES + LONG_STAMP_BYTES;
            return Err(format!("StampData needs packets of {least} bytes or more").into());
        };
        let micros = (rtt_s * 1e6).round_ties_even().max(1.0) as u32;
        place.copy_from_slice(&micros.to_be_bytes());
        self.sum(ends);
        Ok(())
    }

    /// Sends the next packet. `piece`: what it carries, when it is of an application; full otherwise.
    pub(super) fn send(&mut self, piece: Option<Piece>, io: &mut Io) {
        let sequence = self.first_sequence.wrapping_add(self.sent_packets as u16);
        let timestamp = self.rtp_timestamp(piece.map_or(io.now, |piece| piece.produced));
        let mut changing = [0; 24];
        // Sequence number and timestamp are bytes 2..8 of RTP, the stamp is bytes 12..28.
        changing[..2].copy_from_slice(&sequence.to_be_bytes());
        changing[2..6].copy_from_slice(&timestamp.to_be_bytes());
        changing[8..16].copy_from_slice(&io.now.to_be_bytes());
        changing[16..].copy_from_slice(&self.sent_packets.to_be_bytes());
        let mut sum = self.constant_sum + ip::sum(&changing);
        let mut frame = io.pool.take();
        frame.extend_from_slice(&self.frame);
        frame[RTP_AT + 2..RTP_AT + 8].copy_from_slice(&changing[..6]);
        frame[STAMP_AT..STAMP_AT + STAMP_BYTES].copy_from_slice(&changing[8..]);
        let mut bytes = self.packet_bytes;
        if let Some(piece) = piece {
            let produced = piece.produced.to_be_bytes();
            frame[STAMP_AT + LONG_STAMP_BYTES..STAMP_AT + LONG_STAMP_BYTES + 8].copy_from_slice(&produced);
            sum += ip::sum(&produced);
            if piece.bytes < bytes {
                // The length is in the pseudo-header and in the UDP header; the bytes cut off are zeros.
                sum -= 2 * u64::from(bytes - piece.bytes);
                bytes = piece.bytes;
                frame.truncate(ETHERNET_BYTES + bytes as usize);
                ip::set_length(&mut frame, ETHERNET_BYTES, bytes as u16, 0);
                let udp = (bytes as usize - IPV4_BYTES) as u16;
                frame[RTP_AT - 4..RTP_AT - 2].copy_from_slice(&udp.to_be_bytes());
            }
        }
        frame[RTP_AT - 2..RTP_AT].copy_from_slice(&ip::udp_checksum(sum).to_be_bytes());
        self.sent_packets += 1;
        self.sent_bytes += u64::from(bytes);
        io.work.data_packets += 1;
        io.send(frame);
    }

    pub(super) fn rtp_timestamp(&self, at: Nanos) -> u32 {
        let units = u128::from(at) * u128::from(rtp::CLOCK_HZ) / 1_000_000_000;
        (units as u32).wrapping_add(self.timestamp_offset)
    }

    /// Bytes of RTP payload sent (RFC 3550 section 6.4.1).
    pub(super) fn payload_bytes(&self) -> u64 {
        self.sent_bytes - self.sent_packets * (IP_UDP_BYTES + rtp::HEADER_BYTES) as u64
    }
}
