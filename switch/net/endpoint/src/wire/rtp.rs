//! The RTP data header [RFC 3550 sec 5.1], as this network's senders write it: no CSRC, no padding, and no extension but a header of the
//! flow's own.

/// Without CSRC list and extension.
pub const HEADER_BYTES: usize = 12;
/// What a header extension begins with: which one it is, and its words without these, 16 bits each [RFC 3550 sec 5.3.1].
pub const EXTENSION_START_BYTES: usize = 4;
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
pub struct RtpHeader<'a> {
    pub sequence: u16,
    pub timestamp: u32,
    pub ssrc: u32,
    /// All of the header extension; empty: there is none.
    pub extension: &'a [u8],
}

impl<'a> RtpHeader<'a> {
    /// The bytes before the extension.
    pub fn emit(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..2].copy_from_slice(&[if self.extension.is_empty() { PLAIN } else { EXTENDED }, PAYLOAD_TYPE]);
        bytes[2..4].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.timestamp.to_be_bytes());
        bytes[8..].copy_from_slice(&self.ssrc.to_be_bytes());
        bytes
    }

    /// Header and payload. `None` when it is cut short, or not RTP version 2 without CSRCs and padding.
    pub fn parse(packet: &'a [u8]) -> Option<(RtpHeader<'a>, &'a [u8])> {
        let (b, rest) = packet.split_first_chunk::<HEADER_BYTES>()?;
        let (extension, payload) = match b[0] {
            PLAIN => (&[][..], rest),
            EXTENDED => {
                let start = rest.first_chunk::<EXTENSION_START_BYTES>()?;
                rest.split_at_checked(EXTENSION_START_BYTES + 4 * usize::from(u16::from_be_bytes([start[2], start[3]])))?
            }
            _ => return None,
        };
        let header = RtpHeader {
            sequence: u16::from_be_bytes([b[2], b[3]]),
            timestamp: u32::from_be_bytes([b[4], b[5], b[6], b[7]]),
            ssrc: u32::from_be_bytes([b[8], b[9], b[10], b[11]]),
            extension,
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
            profile: u16,
            words in prop::option::of(prop::collection::vec(any::<u32>(), 0..8)),
            payload in prop::collection::vec(any::<u8>(), 0..8),
        ) {
            let extension = words.map_or(Vec::new(), |words| {
                let start = [profile.to_be_bytes(), (words.len() as u16).to_be_bytes()].concat();
                [start, words.iter().flat_map(|word| word.to_be_bytes()).collect()].concat()
            });
            let header = RtpHeader { sequence, timestamp, ssrc, extension: &extension };
            let bytes = [&header.emit()[..], &extension, &payload].concat();
            prop_assert_eq!(RtpHeader::parse(&bytes), Some((header, &payload[..])));
            // An extension that is cut short is none.
            for cut in 0..HEADER_BYTES + extension.len() {
                prop_assert_eq!(RtpHeader::parse(&bytes[..cut]), None);
            }
        }

        #[test]
        fn survives_anything(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = RtpHeader::parse(&bytes);
        }
    }
}
