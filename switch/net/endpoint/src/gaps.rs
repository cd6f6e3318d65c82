//! At a receiver: numbers that were skipped, until so many later packets have come that theirs are lost [RFC 5348 sec 5.1].

use std::collections::VecDeque;

use crate::Nanos;

/// Packets that come by more numbers late are of a source that was started again [RFC 3550 sec A.1]: none fills a hole of before.
const MAX_DISTANCE: u64 = 100;

/// Packets that did not come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Missing {
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// When the packet before them came.
    pub(crate) before: Nanos,
    /// When the first packet after them came.
    pub(crate) after: Nanos,
}

impl Missing {
    /// When packet `number` of these would have come [RFC 5348 sec 5.2].
    fn nominal(&self, number: u64) -> Nanos {
        let whole = u128::from(self.after - self.before) * u128::from(number - self.first + 1);
        self.before + (whole / u128::from(self.last - self.first + 2)) as Nanos
    }
}

#[derive(Debug)]
struct Hole {
    missing: Missing,
    /// Numbers of packets that came after them.
    later: Vec<u64>,
}

/// Holes in the numbers of one source.
#[derive(Debug)]
pub(crate) struct Gaps {
    distance: usize,
    /// Not yet lost, ascending.
    holes: VecDeque<Hole>,
}

impl Gaps {
    /// `distance`: packets are lost when so many numbered above them have come; 1 to [`MAX_DISTANCE`] count.
    pub(crate) fn new(distance: u64) -> Gaps {
        Gaps { distance: distance.clamp(1, MAX_DISTANCE) as usize, holes: VecDeque::new() }
    }

    /// Another source: what the one before left out does not matter.
    pub(crate) fn clear(&mut self) {
        self.holes.clear();
    }

    /// Packet `number` came; all that are lost now. `expected`: the number after the highest before it. `before`: when the packet
    /// before it came.
    pub(crate) fn arrived(&mut self, number: u64, expected: u64, before: Nanos, now: Nanos) -> Vec<Missing> {
        if number < expected {
            self.fill(number);
        } else if number > expected {
            let missing = Missing { first: expected, last: number - 1, before, after: now };
            self.holes.push_back(Hole { missing, later: Vec::new() });
        }
        for hole in self.holes.iter_mut().take_while(|hole| hole.missing.last < number) {
            if !hole.later.contains(&number) {
                hole.later.push(number);
            }
        }
        // A lower hole has all the later packets of a higher one.
        let lost = self.holes.iter().take_while(|hole| hole.later.len() >= self.distance).count();
        self.holes.drain(..lost).map(|hole| hole.missing).collect()
    }

    /// A late packet leaves what is before and after it in its hole.
    fn fill(&mut self, number: u64) {
        let Some(at) = self.holes.iter().position(|hole| (hole.missing.first..=hole.missing.last).contains(&number)) else { return };
        let Some(Hole { missing, later }) = self.holes.remove(at) else { return };
        // As if it had come in time: so those that remain would still have come when they would have.
        let nominal = missing.nominal(number);
        if number < missing.last {
            let missing = Missing { first: number + 1, before: nominal, ..missing };
            self.holes.insert(at, Hole { missing, later: later.clone() });
        }
        if number > missing.first {
            self.holes.insert(at, Hole { missing: Missing { last: number - 1, after: nominal, ..missing }, later });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Packets arrive at 10, 20, ...; what is lost at each.
    fn lost(distance: u64, numbers: &[u64]) -> Vec<(u64, u64, u64)> {
        let (mut gaps, mut expected, mut found) = (Gaps::new(distance), numbers[0], Vec::new());
        for (n, &number) in (1..).zip(numbers) {
            found.extend(gaps.arrived(number, expected, 10 * n - 10, 10 * n).into_iter().map(|missing| (n, missing.first, missing.last)));
            expected = expected.max(number + 1);
        }
        found
    }

    #[test]
    fn three_later_packets_make_a_loss() {
        assert_eq!(lost(3, &[0, 2, 3, 4, 5]), [(4, 1, 1)]);
        assert_eq!(lost(1, &[0, 2, 3, 4, 5]), [(2, 1, 1)]);
        // 5 is as well above 1 and 2 as above 4, but only the second above 4.
        assert_eq!(lost(3, &[0, 3, 5, 6, 7]), [(4, 1, 2), (5, 4, 4)]);
        assert_eq!(lost(3, &[0, 2, 3]), []);
    }

    #[test]
    fn what_comes_before_the_third_is_not_lost() {
        assert_eq!(lost(3, &[0, 2, 1, 3, 4, 5]), []);
        assert_eq!(lost(3, &[0, 2, 3, 1, 4, 5]), []);
        // Afterwards it is too late.
        assert_eq!(lost(3, &[0, 2, 3, 4, 1, 5]), [(4, 1, 1)]);
        // A packet that comes twice is one.
        assert_eq!(lost(3, &[0, 2, 2, 2, 3, 4]), [(6, 1, 1)]);
    }

    #[test]
    fn a_late_packet_splits_a_hole() {
        // 3 of 1 to 5 comes late: for 1 and 2 it is one more later packet, for 4 and 5 it is not.
        assert_eq!(lost(3, &[0, 6, 3, 7, 8]), [(4, 1, 2), (5, 4, 5)]);
        let mut gaps = Gaps::new(2);
        assert_eq!(gaps.arrived(5, 2, 100, 200), []);
        let rest = gaps.arrived(3, 6, 200, 210);
        assert_eq!(rest, [Missing { first: 2, last: 2, before: 100, after: 150 }]);
        assert_eq!(gaps.arrived(6, 6, 210, 220), [Missing { first: 4, last: 4, before: 150, after: 200 }]);
    }

    proptest! {
        /// By counting: a number is lost once, when `distance` different ones above it have come before itself; in any order.
        #[test]
        fn losses_are_those_that_counting_finds(distance in 1u64..6, numbers in prop::collection::vec(0u64..40, 1..120)) {
            let (mut gaps, mut expected, mut told) = (Gaps::new(distance), numbers[0], Vec::new());
            let mut came = std::collections::BTreeSet::new();
            for &number in &numbers {
                let found = gaps.arrived(number, expected, 5, 5);
                expected = expected.max(number + 1);
                came.insert(number);
                for missing in found {
                    told.extend(missing.first..=missing.last);
                }
                for lost in numbers[0]..expected {
                    let above = came.range(lost + 1..).count() as u64;
                    if !told.contains(&lost) {
                        prop_assert!(came.contains(&lost) || above < distance, "{} is lost", lost);
                    } else {
                        prop_assert!(above >= distance);
                    }
                }
            }
            let all = told.len();
            told.sort_unstable();
            told.dedup();
            prop_assert_eq!(told.len(), all);
        }
    }
}
