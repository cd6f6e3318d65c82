//! The RTP data header (RFC 3550 section 5.1), as this network's senders write it: no CSRC, no extension, no padding.

/// Without CSRC list and extension.
pub const HEADER_BYTES: usize = 12;
/// The first dynamic payload type (RFC 3551 section 6).
pub const PAYLOAD_TYPE: u8 = 96;
/// Timestamp units per second, as for video (RFC 3551 section 5).
pub const CLOCK_HZ: u64 = 90_000;
/// The header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RtpHeader {
    pub sequence: u16,
    pub timestamp: u32,
    pub ssrc: u32,
}

impl RtpHeader {
    /// Its bytes.
    pub fn emit(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0x80, PAYLOAD_TYPE, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        bytes[2..4].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.timestamp.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.ssrc.to_be_bytes());
        bytes
    }

    /// Header and payload. `None` when it is cut short, or not RTP version 2 without CSRCs, extension and padding.
    pub fn parse(packet: &[u8]) -> Option<(RtpHeader, &[u8])> {
        let b = packet.first_chunk::<HEADER_BYTES>()?;
        if b[0] != 0x80 {
            return None;
        }
        let header = RtpHeader {
            sequence: u16::from_be_bytes([b[2], b[3]]),
            timestamp: u32::from_be_bytes([b[4], b[5], b[6], b[7]]),
            ssrc: u32::from_be_bytes([b[8], b[9], b[10], b[11]]),
        };
        Some((header, &packet[HEADER_BYTES..]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn reads_what_it_wrote(sequence: u16, timestamp: u32, ssrc: u32, payload in prop::collection::vec(any::<u8>(), 0..8)) {
            let header = RtpHeader { sequence, timestamp, ssrc };
            let mut bytes = header.emit().to_vec();
            bytes.extend_from_slice(&payload);
            prop_assert_eq!(RtpHeader::parse(&bytes), Some((header, &payload[..])));
        }

        #[test]
        fn survives_anything(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = RtpHeader::parse(&bytes);
        }
    }
}
