//! Which of a stream's latest packets have come, so that a copy made on the way is not counted as another packet.

/// Numbers that are known back from the highest.
const KEPT: u64 = 1024;
const WORD: u64 = 64;

/// See the module. Numbers grow without wrapping.
#[derive(Debug, Default, Clone)]
pub(crate) struct Seen {
    /// One past the highest number.
    next: u64,
    /// Of the `KEPT` numbers before it, each at its own place modulo `KEPT`.
    bits: [u64; (KEPT / WORD) as usize],
}

impl Seen {
    /// Whether a packet comes for the first time, as far as known: so does one that is further behind than numbers are kept.
    pub(crate) fn is_first(&mut self, number: u64) -> bool {
        if number >= self.next {
            if number - self.next >= KEPT {
                self.bits = Default::default();
            } else {
                for missing in self.next..number {
                    self.set(missing, false);
                }
            }
            self.next = number.saturating_add(1);
            self.set(number, true);
            return true;
        }
        self.next - number > KEPT || !self.set(number, true)
    }

    /// Returns what it was.
    fn set(&mut self, number: u64, seen: bool) -> bool {
        let (word, bit) = ((number % KEPT / WORD) as usize, 1 << (number % WORD));
        let was = self.bits[word] & bit != 0;
        self.bits[word] = if seen { self.bits[word] | bit } else { self.bits[word] & !bit };
        was
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_agrees_with_a_set(start in 0u64..5000, steps in prop::collection::vec(-1100i64..1100, 1..500)) {
            let (mut seen, mut all, mut number, mut highest) = (Seen::default(), BTreeSet::new(), start, 0);
            for step in steps {
                number = number.saturating_add_signed(step / if step % 3 == 0 { 1 } else { 100 });
                let known = !all.insert(number) && highest - number < KEPT;
                prop_assert_eq!(seen.is_first(number), !known, "{}", number);
                highest = highest.max(number);
            }
        }
    }
}
