//! A set of disjoint half-open ranges of stream offsets, sorted: the receiver's out-of-order data, the sender's SACKed data.

/// Sorted, disjoint, non-adjacent ranges. Its vector keeps its capacity, so that no call allocates in steady state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ranges {
    items: Vec<(u64, u64)>,
}

impl Ranges {
    pub fn with_capacity(capacity: usize) -> Self {
        Ranges { items: Vec::with_capacity(capacity) }
    }

    pub fn as_slice(&self) -> &[(u64, u64)] {
        &self.items
    }

    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub fn clear(&mut self) {
        self.items.clear();
    }

    /// Adds `start..end` and returns how many of its bytes were new.
    pub fn insert(&mut self, start: u64, end: u64) -> u64 {
        if start >= end {
            return 0;
        }
        // The ranges that touch start..end are items[first..last].
        let first = self.items.partition_point(|r| r.1 < start);
        let last = first + self.items[first..].partition_point(|r| r.0 <= end);
        if first == last {
            self.items.insert(first, (start, end));
            return end - start;
        }
        let covered: u64 = self.items[first..last].iter().map(|r| r.1.min(end).saturating_sub(r.0.max(start))).sum();
        let merged = (self.items[first].0.min(start), self.items[last - 1].1.max(end));
        self.items[first] = merged;
        self.items.drain(first + 1..last);
        end - start - covered
    }

    /// Forgets everything below `floor`.
    pub fn remove_below(&mut self, floor: u64) {
        let gone = self.items.partition_point(|r| r.1 <= floor);
        if gone > 0 {
            self.items.drain(..gone);
        }
        if let Some(r) = self.items.first_mut() {
            r.0 = r.0.max(floor);
        }
    }

    /// The range that holds `at`.
    pub fn containing(&self, at: u64) -> Option<(u64, u64)> {
        let index = self.items.partition_point(|r| r.1 <= at);
        self.items.get(index).copied().filter(|r| r.0 <= at)
    }

    /// How many bytes of the set lie below `limit`.
    pub fn bytes_below(&self, limit: u64) -> u64 {
        self.items.iter().take_while(|r| r.0 < limit).map(|r| r.1.min(limit) - r.0).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// The set does what a set of single bytes does.
        #[test]
        fn behaves_as_a_set_of_bytes(ops in prop::collection::vec((0u64..60, 0u64..12, any::<bool>()), 1..40)) {
            let (mut ranges, mut model) = (Ranges::default(), BTreeSet::new());
            for (start, len, cut) in ops {
                if cut && len > 8 {
                    ranges.remove_below(start);
                    model.retain(|&b| b >= start);
                } else {
                    let new = (start..start + len).filter(|&b| model.insert(b)).count();
                    prop_assert_eq!(ranges.insert(start, start + len), new as u64);
                }
                let bytes: Vec<u64> = ranges.as_slice().iter().flat_map(|r| r.0..r.1).collect();
                prop_assert_eq!(bytes, model.iter().copied().collect::<Vec<_>>());
                prop_assert!(ranges.as_slice().windows(2).all(|w| w[0].1 < w[1].0), "disjoint and not adjacent");
                prop_assert_eq!(ranges.bytes_below(start), model.range(..start).count() as u64);
                prop_assert_eq!(ranges.containing(start).is_some(), model.contains(&start));
            }
        }
    }
}
