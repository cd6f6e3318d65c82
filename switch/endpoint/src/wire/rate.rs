//! The rate header: an RTP header extension (RFC 3550 section 5.3.1) of data packets in which routers write the rate that they give
//! (docs/wire-formats.md).

/// With the extension's own 4 bytes.
pub const BYTES: usize = 16;
/// "RC".
const PROFILE: u16 = 0x5243;
/// Of the extension without its first.
const WORDS: u16 = 3;
/// No router has set a rate.
pub const UNLIMITED: u64 = u64::MAX;

/// What the header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateHeader {
    /// In bit/s, of whole frames: the smallest of the routers on the way so far.
    pub rate_bps: u64,
    /// The sender's smoothed round-trip time in microseconds; 0: not known.
    pub rtt_us: u32,
}

impl RateHeader {
    /// Its bytes.
    pub fn emit(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..2].copy_from_slice(&PROFILE.to_be_bytes());
        bytes[2..4].copy_from_slice(&WORDS.to_be_bytes());
        bytes[4..12].copy_from_slice(&self.rate_bps.to_be_bytes());
        bytes[12..].copy_from_slice(&self.rtt_us.to_be_bytes());
        bytes
    }

    /// Header and what follows it. `None` for another extension, or one cut short.
    pub fn parse(extension: &[u8]) -> Option<(RateHeader, &[u8])> {
        let (bytes, rest) = extension.split_first_chunk::<BYTES>()?;
        let (profile, words) = (u16::from_be_bytes([bytes[0], bytes[1]]), u16::from_be_bytes([bytes[2], bytes[3]]));
        if (profile, words) != (PROFILE, WORDS) {
            return None;
        }
        let rate_bps = u64::from_be_bytes(*bytes[4..].first_chunk::<8>()?);
        Some((RateHeader { rate_bps, rtt_us: u32::from_be_bytes(*bytes.last_chunk::<4>()?) }, rest))
    }
}
