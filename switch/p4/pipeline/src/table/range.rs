//! Ranges of a field: the check itself, and a cover by prefixes.

/// `low <= bits <= high` for a field of the packed key; limbs low first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RangeCheck {
    pub limb: usize,
    pub shift: u32,
    pub width: u32,
    pub low: Vec<u64>,
    pub high: Vec<u64>,
}

/// Ranges of fields up to this width are covered by prefixes.
pub const COVERED_WIDTH: u32 = 64;

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
}

/// Values and masks, unshifted, of one or two prefixes that cover a range; they hold less than four
/// times as many values. `ones` are the bits of the field.
pub fn cover(ones: u64, low: u64, high: u64) -> impl Iterator<Item = (u64, u64)> {
    let prefix = move |low: u64, high: u64| {
        // Bits in which values of the range differ.
        let shared = (low ^ high).leading_zeros();
        let free = u64::MAX.checked_shr(shared).unwrap_or(0);
        (low & !free, ones & !free)
    };
    let whole = prefix(low, high);
    // Where the highest of these bits changes, the range is cut, unless that saves little.
    let half = (ones & !whole.1) >> 1;
    let middle = whole.0 | half;
    let (left, right) = (prefix(low, middle), prefix(middle.wrapping_add(1) & ones, high));
    let cut = half > 0 && ones & !left.1 < half && ones & !right.1 < half;
    let (first, second) = match cut {
        true => (left, Some(right)),
        false => (whole, None),
    };
    std::iter::once(first).chain(second)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn range(width: u32, low: u64, high: u64) -> RangeCheck {
        RangeCheck { limb: 0, shift: 0, width, low: vec![low], high: vec![high] }
    }

    proptest! {
        /// Every value of the range has one prefix, and not many others have.
        #[test]
        fn a_cover_is_tight(width in 1..=9_u32, a in any::<u64>(), b in any::<u64>()) {
            let ones = u64::MAX >> (64 - width);
            let (low, high) = ((a & ones).min(b & ones), (a & ones).max(b & ones));
            let r = range(width, low, high);
            let cover: Vec<_> = cover(ones, low, high).collect();
            let mut held = 0;
            for v in 0..=ones {
                let n = cover.iter().filter(|(value, mask)| v & mask == *value).count();
                prop_assert!(n <= 1 && (n == 1 || !r.holds(&[v])), "{v} in {cover:?}");
                held += n as u64;
            }
            prop_assert!(held < 4 * (high - low + 1) && cover.len() <= 2, "{cover:?}");
        }
    }

    #[test]
    fn the_widest_field() {
        let cover = |low, high| cover(u64::MAX, low, high).collect::<Vec<_>>();
        assert_eq!(cover(0, u64::MAX), [(0, 0)]);
        assert_eq!(cover(u64::MAX, u64::MAX), [(u64::MAX, u64::MAX)]);
        let middle = 1 << 63;
        assert_eq!(cover(middle - 1, middle), [(middle - 1, u64::MAX), (middle, u64::MAX)]);
    }

    #[test]
    fn wide_ranges() {
        let r = RangeCheck { limb: 0, shift: 0, width: 128, low: vec![5, 1], high: vec![0, 2] };
        for (key, holds) in [([4, 1], false), ([5, 1], true), ([9, 1], true), ([0, 2], true), ([1, 2], false)] {
            assert_eq!(r.holds(&key), holds, "{key:?}");
        }
    }
}
