//! A header of a flow's own: an RTP header extension [RFC 3550 sec 5.3.1] that switches read and write by P4, and that acknowledgements
//! bring back.
//!
//! Here it is bytes. Its layout is a P4 program's, its meaning the algorithm's (`hosts/algorithms/own_header.py`); a sender only knows where
//! to write what it knows itself.

use std::ops::Range;

use crate::Nanos;

/// What a sender writes into a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// The smoothed round trip in microseconds, as of the last acknowledgement, or the round trip of the last report; 0: not known.
    RttUs,
    /// Microseconds between the flow's packets, at the rate or the window before the last feedback was heard; 0: none came yet.
    IntervalUs,
    /// The flow's rate in bit/s: its pace, or its window over the round trip.
    RateBps,
    /// 0: the algorithm sets none.
    WindowPackets,
    /// Packets of the stream before this one.
    Sequence,
    /// When the packet leaves, on the sender's clock in nanoseconds.
    SentNs,
}

/// A field: bits of the header, the most significant bit first, from the header's first bit on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub first_bit: usize,
    /// At most 64 of a number are written; a longer field has zeros before.
    pub bits: usize,
}

impl Place {
    /// The number of a field; 0 where there are no bytes.
    pub fn read(self, bytes: &[u8]) -> u64 {
        (self.first_bit..self.first_bit + self.bits)
            .fold(0, |value, at| value << 1 | u64::from(bytes.get(at / 8).is_some_and(|byte| byte & 0x80 >> (at % 8) != 0)))
    }

    /// Writes a number, or the greatest that fits.
    fn write(self, bytes: &mut [u8], value: u64) {
        let most = if self.bits < 64 { (1 << self.bits) - 1 } else { u64::MAX };
        let value = value.min(most);
        for n in 0..self.bits {
            let bit = value.checked_shr((self.bits - 1 - n) as u32).unwrap_or(0) as u8 & 1;
            let at = self.first_bit + n;
            let Some(byte) = bytes.get_mut(at / 8) else {
                debug_assert!(false, "bit {at} lies behind the header");
                return;
            };
            let mask = 0x80 >> (at % 8);
            *byte = if bit == 1 { *byte | mask } else { *byte & !mask };
        }
    }
}

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnHeader {
    /// All of the extension, with the four bytes that say which it is and how long: a multiple of four.
    pub bytes: Vec<u8>,
    pub filled: Vec<(Quantity, Place)>,
    /// What acknowledgements and reports bring back, of the extension's bytes.
    pub returned: Range<usize>,
}

impl OwnHeader {
    /// What the sender knows goes to the fields that ask for it.
    pub(crate) fn fill(&mut self, quantity: Quantity, value: u64) {
        for (_, place) in self.filled.iter().filter(|(asked, _)| *asked == quantity) {
            place.write(&mut self.bytes, value);
        }
    }

    /// The next packet's.
    pub(crate) fn fill_packet(&mut self, number: u64, now: Nanos) {
        self.fill(Quantity::Sequence, number);
        self.fill(Quantity::SentNs, now);
    }

    /// From now on another number.
    pub(crate) fn set(&mut self, place: Place, value: u64) {
        place.write(&mut self.bytes, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_does_not_fit_is_the_greatest_that_does() {
        let (first, second) = (Place { first_bit: 0, bits: 12 }, Place { first_bit: 12, bits: 20 });
        let filled = vec![(Quantity::RttUs, first), (Quantity::Sequence, second)];
        let mut header = OwnHeader { bytes: vec![0; 4], filled, returned: 0..4 };
        header.fill(Quantity::RttUs, 5000);
        header.fill_packet(0x12345, 7);
        assert_eq!(header.bytes, [0xff, 0xf1, 0x23, 0x45]);
        header.set(first, 0);
        assert_eq!(header.bytes, [0x00, 0x01, 0x23, 0x45]);
    }

    proptest! {
        /// A field is what is written, and nothing around it changes.
        #[test]
        fn a_field_is_written_alone(before: u128, value: u64, first_bit in 0usize..64, bits in 1usize..=64) {
            let mut bytes = before.to_be_bytes();
            Place { first_bit, bits }.write(&mut bytes, value);
            let shift = 128 - first_bit - bits;
            let most = u128::from(u64::MAX) >> (64 - bits);
            let after = u128::from_be_bytes(bytes);
            prop_assert_eq!(after >> shift & most, u128::from(value).min(most));
            prop_assert_eq!(after & !(most << shift), before & !(most << shift));
            prop_assert_eq!(u128::from(Place { first_bit, bits }.read(&bytes)), u128::from(value).min(most));
        }
    }
}
