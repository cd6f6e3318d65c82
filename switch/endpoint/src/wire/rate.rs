//! The rate header and the congestion header: RTP header extensions [RFC 3550 sec 5.3.1] of data packets in which routers write the
//! rate that they give, or by how much it may change (docs/wire-formats.md).

/// With the extension's own 4 bytes.
const BYTES: usize = 16;
/// Of the congestion header, which has an interval besides.
pub const MOST_BYTES: usize = 20;
/// "RC", "XC".
const RATE_PROFILE: u16 = 0x5243;
const CONGESTION_PROFILE: u16 = 0x5843;
/// Of the extension without its first.
const RATE_WORDS: u16 = 3;
const CONGESTION_WORDS: u16 = 4;
/// No router has set a rate, or a change.
pub const UNLIMITED: u64 = u64::MAX;
/// The congestion header's number for a rate that stays.
const UNCHANGED: u64 = 1 << 63;

/// What the header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateHeader {
    /// In bit/s, of whole frames: the smallest of the routers on the way so far; in a congestion header the change, plus 2^63.
    pub rate_bps: u64,
    /// The sender's smoothed round-trip time in microseconds; 0: not known.
    pub rtt_us: u32,
    /// Of a congestion header: microseconds between the sender's packets; 0: not known.
    pub interval_us: Option<u32>,
}

impl RateHeader {
    /// How many bytes it has.
    pub fn length(&self) -> usize {
        if self.interval_us.is_some() {
            MOST_BYTES
        } else {
            BYTES
        }
    }

    /// Its bytes, the first [`RateHeader::length`] of them.
    pub fn emit(&self) -> [u8; MOST_BYTES] {
        let (profile, words) = if self.interval_us.is_some() { (CONGESTION_PROFILE, CONGESTION_WORDS) } else { (RATE_PROFILE, RATE_WORDS) };
        let mut bytes = [0; MOST_BYTES];
        bytes[..2].copy_from_slice(&profile.to_be_bytes());
        bytes[2..4].copy_from_slice(&words.to_be_bytes());
        bytes[4..12].copy_from_slice(&self.rate_bps.to_be_bytes());
        bytes[12..BYTES].copy_from_slice(&self.rtt_us.to_be_bytes());
        bytes[BYTES..].copy_from_slice(&self.interval_us.unwrap_or(0).to_be_bytes());
        bytes
    }

    /// Header and what follows it. `None` for another extension, or one cut short.
    pub fn parse(extension: &[u8]) -> Option<(RateHeader, &[u8])> {
        let (bytes, rest) = extension.split_first_chunk::<BYTES>()?;
        let (profile, words) = (u16::from_be_bytes([bytes[0], bytes[1]]), u16::from_be_bytes([bytes[2], bytes[3]]));
        let (interval_us, rest) = match (profile, words) {
            (RATE_PROFILE, RATE_WORDS) => (None, rest),
            (CONGESTION_PROFILE, CONGESTION_WORDS) => {
                let (interval, rest) = rest.split_first_chunk::<4>()?;
                (Some(u32::from_be_bytes(*interval)), rest)
            }
            _ => return None,
        };
        let rate_bps = u64::from_be_bytes(*bytes[4..].first_chunk::<8>()?);
        Some((RateHeader { rate_bps, rtt_us: u32::from_be_bytes(*bytes.last_chunk::<4>()?), interval_us }, rest))
    }
}

/// The change in bit/s of a congestion header's number.
pub fn change_bps(number: u64) -> f64 {
    (number ^ UNCHANGED) as i64 as f64
}
