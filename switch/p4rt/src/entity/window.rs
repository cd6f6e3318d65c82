//! Reading large arrays in parts.

/// Which cells of arrays a read takes, counted through all the arrays that it selects.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    /// Cells before the first.
    pub skip: usize,
    /// Cells that may still be taken.
    pub left: usize,
}

impl Window {
    /// The part of an array's cells that is in the window, which goes on behind it.
    pub fn take(&mut self, cells: std::ops::Range<usize>) -> std::ops::Range<usize> {
        let skipped = self.skip.min(cells.len());
        let taken = self.left.min(cells.len() - skipped);
        self.skip -= skipped;
        self.left -= taken;
        let start = cells.start + skipped;
        start..start + taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Windows of one size after another take every cell of all arrays once, in order.
        #[test]
        fn windows_take_every_cell_once(sizes in prop::collection::vec(0..40_usize, 0..6), most in 1..50_usize) {
            let (mut taken, mut skip) = (Vec::new(), 0);
            loop {
                let mut window = Window { skip, left: most };
                for (array, size) in sizes.iter().enumerate() {
                    taken.extend(window.take(0..*size).map(|cell| (array, cell)));
                }
                if window.left > 0 {
                    break;
                }
                skip += most;
            }
            let all: Vec<_> = sizes.iter().enumerate().flat_map(|(array, size)| (0..*size).map(move |cell| (array, cell))).collect();
            prop_assert_eq!(taken, all);
        }
    }
}
