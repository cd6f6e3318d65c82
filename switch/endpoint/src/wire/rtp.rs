//! The RTP data header [RFC 3550 sec 5.1], as this network's senders write it: no CSRC, no padding, and no
//! extension but the rate header or the congestion header.

use super::rate::{self, RateHeader};

/// Without CSRC list and extension.
pub const HEADER_BYTES: usize = 12;
/// With the congestion header.
pub const MOST_BYTES: usize = HEADER_BYTES + rate::MOST_BYTES;
/// First byte: version 2, without and with an extension.
const PLAIN: u8 = 0x80;
const EXTENDED: u8 = 0x90;
/// The first dynamic payload type [RFC 3551 sec 6].
pub const PAYLOAD_TYPE: u8 = 96;
/// Timestamp units per second, as for video [RFC 3551 sec 5].
pub const CLOCK_HZ: u64 = 90_000;
/// In the header's second byte: the packet ends a frame.
pub const MARKER: u8 = 0x80;

/// The header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RtpHeader {
    pub sequence: u16,
    pub timestamp: u32,
    pub ssrc: u32,
    pub rate: Option<RateHeader>,
}

impl RtpHeader {
    /// How many bytes it has.
    pub fn length(&self) -> usize {
        HEADER_BYTES + self.rate.map_or(0, |rate| rate.length())
    }

    /// Its bytes, and how many of them there are.
    pub fn emit(&self) -> ([u8; MOST_BYTES], usize) {
        let mut bytes = [0; MOST_BYTES];
        bytes[..2].copy_from_slice(&[if self.rate.is_some() { EXTENDED } else { PLAIN }, PAYLOAD_TYPE]);
        bytes[2..4].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.timestamp.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.ssrc.to_be_bytes());
        if let Some(rate) = self.rate {
            bytes[HEADER_BYTES..].copy_from_slice(&rate.emit());
        }
        (bytes, self.length())
    }

    /// Header and payload. `None` when it is cut short, or not RTP version 2 without CSRCs and padding, or has another extension.
    pub fn parse(packet: &[u8]) -> Option<(RtpHeader, &[u8])> {
        let b = packet.first_chunk::<HEADER_BYTES>()?;
        let rest = &packet[HEADER_BYTES..];
        let (rate, payload) = match b[0] {
            PLAIN => (None, rest),
            EXTENDED => RateHeader::parse(rest).map(|(rate, payload)| (Some(rate), payload))?,
            _ => return None,
        };
        let header = RtpHeader {
            sequence: u16::from_be_bytes([b[2], b[3]]),
            timestamp: u32::from_be_bytes([b[4], b[5], b[6], b[7]]),
            ssrc: u32::from_be_bytes([b[8], b[9], b[10], b[11]]),
            rate,
        };
        Some((header, payload))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn reads_what_it_wrote(
            sequence: u16,
            timestamp: u32,
            ssrc: u32,
            rate in prop::option::of(any::<(u64, u32, Option<u32>)>()),
            payload in prop::collection::vec(any::<u8>(), 0..8),
        ) {
            let rate = rate.map(|(rate_bps, rtt_us, interval_us)| RateHeader { rate_bps, rtt_us, interval_us });
            let header = RtpHeader { sequence, timestamp, ssrc, rate };
            let (bytes, length) = header.emit();
            let mut bytes = bytes[..length].to_vec();
            bytes.extend_from_slice(&payload);
            prop_assert_eq!(RtpHeader::parse(&bytes), Some((header, &payload[..])));
        }

        #[test]
        fn survives_anything(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = RtpHeader::parse(&bytes);
        }
    }
}
