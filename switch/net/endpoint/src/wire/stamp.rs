//! The stamp that begins the payload of a data packet: instant of sending, number, round-trip time, instant of production
//! (docs/wire-formats.md).

use crate::Nanos;

/// Instant of sending in nanoseconds, packets sent before; 64 bits each.
pub const SHORT_BYTES: usize = 16;
/// With the sender's round-trip time in microseconds, 32 bits, 0 = not known.
pub const LONG_BYTES: usize = 20;
/// With the instant of production in nanoseconds, 64 bits.
pub const MEDIA_BYTES: usize = 28;

/// The stamp of a data packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamp {
    pub sent: Nanos,
    /// Packets of the stream before this one.
    pub number: u64,
    pub sender_rtt_us: Option<u32>,
    /// Of the frame that it carries; `None`: the flow has no application.
    pub produced: Option<Nanos>,
}

impl Stamp {
    /// Its bytes, and how many of them there are.
    pub fn emit(&self) -> ([u8; MEDIA_BYTES], usize) {
        let mut bytes = [0; MEDIA_BYTES];
        bytes[..8].copy_from_slice(&self.sent.to_be_bytes());
        bytes[8..SHORT_BYTES].copy_from_slice(&self.number.to_be_bytes());
        bytes[SHORT_BYTES..LONG_BYTES].copy_from_slice(&self.sender_rtt_us.unwrap_or(0).to_be_bytes());
        bytes[LONG_BYTES..].copy_from_slice(&self.produced.unwrap_or(0).to_be_bytes());
        let length = match (self.produced, self.sender_rtt_us) {
            (Some(_), _) => MEDIA_BYTES,
            (None, Some(_)) => LONG_BYTES,
            (None, None) => SHORT_BYTES,
        };
        (bytes, length)
    }

    /// `None` when it is cut short. `media`: an instant of production follows.
    pub fn parse(payload: &[u8], media: bool) -> Option<Stamp> {
        let double = |at: usize| payload.get(at..).and_then(|rest| rest.first_chunk::<8>()).map(|bytes| u64::from_be_bytes(*bytes));
        let rtt = payload.get(SHORT_BYTES..LONG_BYTES).and_then(|rtt| rtt.first_chunk::<4>());
        Some(Stamp {
            sent: double(0)?,
            number: double(8)?,
            sender_rtt_us: rtt.map(|rtt| u32::from_be_bytes(*rtt)).filter(|&micros| micros > 0),
            produced: double(LONG_BYTES).filter(|_| media),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_stamp_reads_what_there_is_of_it() {
        let payload: Vec<u8> = (0..28).collect();
        assert_eq!(Stamp::parse(&payload[..15], true), None);
        let short = Stamp::parse(&payload[..16], true).expect("long enough");
        assert_eq!((short.sender_rtt_us, short.produced), (None, None));
        let long = Stamp::parse(&payload, true).expect("long enough");
        assert_eq!((long.sender_rtt_us, long.produced), (Some(0x1011_1213), Some(0x1415_1617_1819_1a1b)));
    }

    proptest! {
        #[test]
        fn reads_what_it_wrote(sent: u64, number: u64, rtt in prop::option::of(1u32..), produced in prop::option::of(any::<u64>())) {
            let stamp = Stamp { sent, number, sender_rtt_us: rtt, produced };
            let (bytes, length) = stamp.emit();
            prop_assert_eq!(Stamp::parse(&bytes[..length], produced.is_some()), Some(stamp));
        }
    }
}
