//! How long the packets of a queue waited in an interval: mean, 99th percentile and maximum [RFC 9332 sec 2.5.2.2], from a histogram.

use crate::Nanos;

/// Bins below a doubling. Those of 0 to 7 us are 1 us wide; from 8 us on, each power of two has 8.
const PER_OCTAVE: u64 = 8;
/// Up to 2^24 us, 17 s; the last bin has what waited longer.
const BINS: usize = (PER_OCTAVE * (24 - 2)) as usize;

/// Waiting times of an interval's packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WaitSummary {
    pub packets: u64,
    pub mean_ns: Nanos,
    /// At least 99 of 100 packets waited no longer. At most an eighth, or 1 us, too large.
    pub p99_ns: Nanos,
    pub max_ns: Nanos,
}

/// A histogram whose bins grow with the time.
#[derive(Debug)]
pub(crate) struct Waits {
    bins: [u32; BINS],
    packets: u64,
    sum_ns: u128,
    max_ns: Nanos,
}

impl Waits {
    pub(crate) fn new() -> Self {
        Waits { bins: [0; BINS], packets: 0, sum_ns: 0, max_ns: 0 }
    }

    pub(crate) fn add(&mut self, wait: Nanos) {
        self.packets += 1;
        self.sum_ns += u128::from(wait);
        self.max_ns = self.max_ns.max(wait);
        if let Some(bin) = self.bins.get_mut(bin(wait)) {
            *bin = bin.saturating_add(1);
        }
    }

    /// The interval ends, and the next one begins.
    pub(crate) fn take(&mut self) -> WaitSummary {
        let summary = self.summary();
        *self = Waits::new();
        summary
    }

    fn summary(&self) -> WaitSummary {
        let Waits { bins, packets, sum_ns, max_ns } = *self;
        if packets == 0 {
            return WaitSummary::default();
        }
        // Packets that may have waited longer.
        let mut left = packets - (99 * packets).div_ceil(100);
        let mut p99_ns = max_ns;
        for (number, &count) in bins.iter().enumerate().rev() {
            if u64::from(count) > left {
                p99_ns = upper_ns(number).min(max_ns);
                break;
            }
            left -= u64::from(count);
        }
        WaitSummary { packets, mean_ns: (sum_ns / u128::from(packets)) as Nanos, p99_ns, max_ns }
    }
}

fn bin(wait: Nanos) -> usize {
    let us = wait / 1_000;
    if us < PER_OCTAVE {
        return us as usize;
    }
    let octave = u64::from(us.ilog2());
    let within = us >> (octave - 3); // 8 to 15
    ((PER_OCTAVE * (octave - 3) + within) as usize).min(BINS - 1)
}

/// Where a bin ends.
fn upper_ns(bin: usize) -> Nanos {
    let (bin, next) = (bin as u64, bin as u64 + 1);
    let us = match bin < PER_OCTAVE {
        true => next,
        false if bin as usize == BINS - 1 => return Nanos::MAX,
        false => {
            let octave = bin / PER_OCTAVE - 1;
            (bin % PER_OCTAVE + PER_OCTAVE + 1) << octave
        }
    };
    us * 1_000
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_99th_percentile_is_at_most_an_eighth_too_large(waits in prop::collection::vec(0u64..30_000_000_000, 1..400)) {
            let mut counted = Waits::new();
            waits.iter().for_each(|&wait| counted.add(wait));
            let found = counted.take();
            let mut sorted = waits.clone();
            sorted.sort_unstable();
            // The smallest wait that 99 of 100 packets do not exceed.
            let exact = sorted[(99 * waits.len()).div_ceil(100) - 1];
            prop_assert!(found.p99_ns >= exact && found.p99_ns <= found.max_ns, "{} of {exact}", found.p99_ns);
            if exact < 16_000_000_000 {
                prop_assert!(found.p99_ns <= exact + exact / 8 + 1_000, "{} of {exact}", found.p99_ns);
            }
            let mean = waits.iter().map(|&wait| u128::from(wait)).sum::<u128>() / waits.len() as u128;
            prop_assert_eq!((found.packets, u128::from(found.mean_ns), Some(&found.max_ns)), (waits.len() as u64, mean, sorted.last()));
            prop_assert_eq!(counted.take(), WaitSummary::default());
        }
    }

    #[test]
    fn bins_join_without_gaps() {
        for us in 0..1 << 20 {
            let bin = bin(us * 1_000);
            assert!(us * 1_000 < upper_ns(bin) && (bin == 0 || upper_ns(bin - 1) <= us * 1_000), "{us} us: bin {bin}");
        }
    }
}
