//! Ranges of a field: the check itself, and its cover by prefixes.

/// `low <= bits <= high` for a field of the packed key; limbs low first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RangeCheck {
    pub limb: usize,
    pub shift: u32,
    pub width: u32,
    pub low: Vec<u64>,
    pub high: Vec<u64>,
}

/// Fields up to this width are covered by prefixes: at most `2 * width - 2` of them.
const COVERED_WIDTH: u32 = 64;

impl RangeCheck {
    pub fn holds(&self, key: &[u64]) -> bool {
        if self.width <= 64 {
            let v = key[self.limb] >> self.shift & self.ones();
            return self.low[0] <= v && v <= self.high[0];
        }
        let limbs = &key[self.limb..self.limb + self.low.len()];
        let at_least = |a: &[u64], b: &[u64]| a.iter().rev().ge(b.iter().rev());
        at_least(limbs, &self.low) && at_least(&self.high, limbs)
    }

    /// All bits of a field of at most 64.
    fn ones(&self) -> u64 {
        u64::MAX >> (64 - self.width.clamp(1, 64))
    }

    /// Values and masks, unshifted, of the prefixes that hold together what the range holds, each
    /// value once: a binary tree's nodes whose leaves are the range.
    pub fn prefixes(&self) -> Vec<(u64, u64)> {
        let (ones, high) = (self.ones(), self.high[0]);
        let (mut low, mut out) = (self.low[0], Vec::new());
        loop {
            // The largest aligned block that begins at `low` and does not pass `high`.
            let mut host = match low {
                0 => ones,
                _ => (1 << low.trailing_zeros()) - 1,
            };
            while host > high.saturating_sub(low) {
                host >>= 1;
            }
            out.push((low, ones & !host));
            match low.checked_add(host).and_then(|end| end.checked_add(1)) {
                Some(next) if next <= high => low = next,
                _ => return out,
            }
        }
    }
}

/// Which of an entry's ranges is covered by prefixes in the index: the narrowest, since it leaves
/// the fewest entries to check; the others are checked.
pub fn covered(ranges: &[RangeCheck]) -> Option<usize> {
    let narrow = ranges
        .iter()
        .enumerate()
        .filter(|(_, r)| r.width <= COVERED_WIDTH);
    narrow
        .min_by_key(|(_, r)| r.high[0].saturating_sub(r.low[0]))
        .map(|(i, _)| i)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn range(width: u32, low: u64, high: u64) -> RangeCheck {
        RangeCheck {
            limb: 0,
            shift: 0,
            width,
            low: vec![low],
            high: vec![high],
        }
    }

    proptest! {
        /// Every value of the range has one prefix, others have none, and there are few.
        #[test]
        fn prefixes_are_the_range(width in 1..=9_u32, a in any::<u64>(), b in any::<u64>()) {
            let ones = u64::MAX >> (64 - width);
            let (low, high) = ((a & ones).min(b & ones), (a & ones).max(b & ones));
            let r = range(width, low, high);
            let prefixes = r.prefixes();
            for v in 0..=ones {
                let n = prefixes.iter().filter(|(value, mask)| v & mask == *value).count();
                prop_assert_eq!(n, usize::from(r.holds(&[v])));
            }
            prop_assert!(prefixes.len() <= (2 * width as usize).saturating_sub(2).max(1));
        }
    }

    #[test]
    fn the_widest_field() {
        assert_eq!(range(64, 0, u64::MAX).prefixes(), [(0, 0)]);
        assert_eq!(range(64, 1, u64::MAX).prefixes().len(), 64);
        assert_eq!(
            range(64, u64::MAX, u64::MAX).prefixes(),
            [(u64::MAX, u64::MAX)]
        );
        assert_eq!(range(64, 1, u64::MAX - 1).prefixes().len(), 126);
    }

    #[test]
    fn wide_ranges() {
        let r = RangeCheck {
            limb: 0,
            shift: 0,
            width: 128,
            low: vec![5, 1],
            high: vec![0, 2],
        };
        for (key, holds) in [
            ([4, 1], false),
            ([5, 1], true),
            ([9, 1], true),
            ([0, 2], true),
            ([1, 2], false),
        ] {
            assert_eq!(r.holds(&key), holds, "{key:?}");
        }
        assert_eq!(covered(&[r]), None);
    }
}
