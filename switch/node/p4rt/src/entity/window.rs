//! Reads and writes in parts.
//!
//! What a request selects is counted in objects (tables, arrays, profiles), by rising number, and in what each object has: cells, places of
//! entries, or things with ids of their own. A window remembers how far a request has come, so that the next part goes on there, even where
//! an object has become smaller meanwhile.

use std::ops::Range;

/// How far a request has come, and how much this part may still take.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Window {
    /// Objects before this one are done; of this one, all that is numbered below `done`.
    object: u32,
    done: u64,
    left: usize,
    /// There is more than this part takes.
    cut: bool,
    /// Something of the object has been selected, in this part or one before.
    pub found: bool,
}

impl Window {
    /// Takes everything.
    pub fn whole() -> Window {
        Window { left: usize::MAX, ..Window::default() }
    }

    /// Begins another part, which may take so much.
    pub fn refill(&mut self, left: usize) {
        (self.left, self.cut) = (left, false);
    }

    /// Goes on with another entity of the request, from its first object. An entity takes one at least.
    pub fn next_entity(&mut self) {
        *self = Window { left: self.left.saturating_sub(1), ..Window::default() };
    }

    /// This part is full.
    pub fn is_spent(&self) -> bool {
        self.left == 0
    }

    /// The entity has more than this part took.
    pub fn is_cut(&self) -> bool {
        self.cut
    }

    /// The object has been gone through, and nothing of it was selected.
    pub fn is_without(&self, object: u32) -> bool {
        self.object == object && !self.cut && !self.found
    }

    /// Takes room for what cannot be cut.
    pub fn spend(&mut self, cost: usize) {
        self.left = self.left.saturating_sub(cost);
    }

    /// Begins or goes on with an object; the number in it to go on from. `None` when it is done, or there is no room.
    pub fn enter(&mut self, object: u32) -> Option<u64> {
        if object < self.object {
            return None;
        }
        if self.left == 0 {
            self.cut = true;
            return None;
        }
        if object > self.object {
            (self.object, self.done, self.found) = (object, 0, false);
        }
        Some(self.done)
    }

    /// Takes something with a number, which is higher than those before. False when there is no room.
    pub fn one(&mut self, number: u32) -> bool {
        if self.left == 0 {
            self.cut = true;
            return false;
        }
        self.left -= 1;
        self.done = u64::from(number) + 1;
        true
    }

    /// The part of an object's cells that is in the window.
    pub fn take(&mut self, object: u32, cells: Range<usize>) -> Range<usize> {
        let none = cells.end..cells.end;
        let Some(done) = self.enter(object) else { return none };
        let skipped = usize::try_from(done).unwrap_or(usize::MAX).min(cells.len());
        let taken = self.left.min(cells.len() - skipped);
        self.left -= taken;
        self.done = (skipped + taken) as u64;
        self.cut |= skipped + taken < cells.len();
        let start = cells.start + skipped;
        start..start + taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Parts of one size after another take every cell of all arrays once, in order, and no more parts than it needs.
        #[test]
        fn parts_take_every_cell_once(sizes in prop::collection::vec(0..40_usize, 0..6), most in 1..50_usize) {
            let (mut taken, mut window, mut parts) = (Vec::new(), Window::default(), 0);
            loop {
                window.refill(most);
                for (array, size) in sizes.iter().enumerate() {
                    taken.extend(window.take(array as u32 + 1, 0..*size).map(|cell| (array, cell)));
                }
                parts += 1;
                if !window.is_cut() {
                    break;
                }
            }
            let all: Vec<_> = sizes.iter().enumerate().flat_map(|(array, size)| (0..*size).map(move |cell| (array, cell))).collect();
            prop_assert!(parts <= taken.len().div_ceil(most) + 1, "{parts} parts");
            prop_assert_eq!(taken, all);
        }

        /// So do things with ids, though some go and come between the parts: what stays is taken once.
        #[test]
        fn what_stays_is_taken_once(
            stays in prop::collection::btree_set(0..200_u32, 0..60),
            comes in prop::collection::vec(prop::collection::btree_set(0..200_u32, 0..20), 1..8),
            most in 1..20_usize,
        ) {
            let (mut taken, mut window) = (Vec::new(), Window::default());
            for other in comes.iter().cycle() {
                window.refill(most);
                let now: std::collections::BTreeSet<u32> = stays.union(other).copied().collect();
                if let Some(first) = window.enter(7) {
                    for &id in now.range(u32::try_from(first).unwrap_or(u32::MAX)..) {
                        if !window.one(id) {
                            break;
                        }
                        taken.push(id);
                    }
                }
                if !window.is_cut() {
                    break;
                }
            }
            prop_assert!(taken.is_sorted());
            taken.retain(|id| stays.contains(id));
            prop_assert_eq!(taken, stays.into_iter().collect::<Vec<_>>());
        }
    }
}
