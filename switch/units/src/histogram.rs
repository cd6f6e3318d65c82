//! Many delays in little memory: their number, sum, least and largest exactly, and a histogram whose bins are at most 1/128 of the delay wide.
//!
//! A delay below 128 ns has a bin of its own. From there on each power of two has 128 bins: a delay that is taken to lie in the middle of
//! its bin is at most 0.4 % wrong. Bins of a power of two take memory once a delay falls into it, 512 bytes.

use crate::Nanos;

/// Bits of a delay, after its first, that choose the bin.
const BITS: u32 = 7;
const PER_OCTAVE: usize = 1 << BITS;

type Octave = Box<[u32; PER_OCTAVE]>;

/// The delays that were measured from one instant to another; see the module. By default: none ever.
#[derive(Debug, Clone, Default)]
pub struct Delays {
    window: Option<(Nanos, Nanos)>,
    octaves: Vec<Option<Octave>>,
    packets: u64,
    sum: u128,
    least: Nanos,
    largest: Nanos,
}

impl Delays {
    /// What is measured from `from` to `to`, both included, will count.
    pub fn within(from: Nanos, to: Nanos) -> Delays {
        Delays { window: Some((from, to)), ..Delays::default() }
    }

    /// Whether anything is to be measured at an instant.
    #[inline]
    pub fn counts(&self, now: Nanos) -> bool {
        self.window.is_some_and(|(from, to)| (from..=to).contains(&now))
    }

    /// Whether what is under way at an instant may arrive when it counts.
    #[inline]
    pub fn awaits(&self, now: Nanos) -> bool {
        self.window.is_some_and(|(_, to)| now <= to)
    }

    /// A delay that was measured at an instant.
    #[inline]
    pub fn add(&mut self, now: Nanos, delay: Nanos) {
        if self.counts(now) {
            self.count(delay);
        }
    }

    fn count(&mut self, delay: Nanos) {
        self.least = if self.packets == 0 { delay } else { self.least.min(delay) };
        self.largest = self.largest.max(delay);
        self.packets += 1;
        self.sum += u128::from(delay);
        let (octave, bin) = place(delay);
        if octave >= self.octaves.len() {
            self.octaves.resize(octave + 1, None);
        }
        let bins = self.octaves[octave].get_or_insert_with(|| Box::new([0; PER_OCTAVE]));
        bins[bin] = bins[bin].saturating_add(1);
    }

    /// How many were counted.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Of all that were counted, in nanoseconds.
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// The least and the largest; zeros without any.
    pub fn range(&self) -> (Nanos, Nanos) {
        (self.least, self.largest)
    }

    /// Where each bin begins that has delays, in order, with their number. It ends at `begin + max(1, 2^(floor(log2 begin) - 7))`.
    pub fn bins(&self) -> impl Iterator<Item = (Nanos, u32)> + '_ {
        self.octaves.iter().enumerate().filter_map(|(octave, bins)| Some((octave, bins.as_deref()?))).flat_map(|(octave, bins)| {
            bins.iter().enumerate().filter(|&(_, &count)| count > 0).map(move |(bin, &count)| (begin(octave, bin), count))
        })
    }
}

/// The bin of a delay: its power of two, and its place in that.
#[inline]
fn place(delay: Nanos) -> (usize, usize) {
    match delay.checked_ilog2() {
        Some(log) if log >= BITS => ((log - BITS + 1) as usize, (delay >> (log - BITS)) as usize - PER_OCTAVE),
        _ => (0, delay as usize),
    }
}

fn begin(octave: usize, bin: usize) -> Nanos {
    match octave {
        0 => bin as Nanos,
        _ => ((PER_OCTAVE + bin) as Nanos) << (octave - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn end(begin: Nanos) -> Nanos {
        begin + begin.checked_ilog2().map_or(1, |log| 1 << log.saturating_sub(BITS))
    }

    #[test]
    fn what_is_not_in_the_window_does_not_count() {
        let mut delays = Delays::within(10, 20);
        (0..30).for_each(|now| delays.add(now, 5));
        assert_eq!((delays.packets(), delays.sum(), delays.range()), (11, 55, (5, 5)));
        let mut never = Delays::default();
        never.add(0, 5);
        assert_eq!((never.packets(), never.bins().count()), (0, 0));
    }

    #[test]
    fn bins_join_without_gaps() {
        let mut before = 0;
        for octave in 0..58 {
            for bin in 0..PER_OCTAVE {
                let begin = begin(octave, bin);
                assert_eq!((begin, place(begin)), (before, (octave, bin)));
                before = if octave == 57 && bin == PER_OCTAVE - 1 { Nanos::MAX } else { end(begin) };
            }
        }
        assert_eq!(place(Nanos::MAX), (57, PER_OCTAVE - 1));
    }

    proptest! {
        #[test]
        fn a_bin_holds_its_delays_and_is_narrow(values in prop::collection::vec(0u64..=u64::MAX >> 1, 1..200)) {
            let mut delays = Delays::within(0, 0);
            values.iter().for_each(|&value| delays.add(0, value));
            let bins: Vec<_> = delays.bins().collect();
            prop_assert!(bins.windows(2).all(|pair| end(pair[0].0) <= pair[1].0));
            prop_assert!(bins.iter().all(|&(begin, _)| end(begin) - begin == 1 || end(begin) - begin <= begin / 128));
            for &(begin, count) in &bins {
                prop_assert_eq!(values.iter().filter(|&&value| (begin..end(begin)).contains(&value)).count(), count as usize);
            }
            prop_assert_eq!(delays.sum(), values.iter().map(|&value| u128::from(value)).sum::<u128>());
            prop_assert_eq!(delays.range(), (*values.iter().min().expect("one"), *values.iter().max().expect("one")));
        }
    }
}
