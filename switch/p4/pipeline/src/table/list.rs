//! The entries of one masked key, the first to be tried first.

use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Rank, the higher first; then the lower entry.
type Item = (Reverse<i32>, u32);

/// From more than `LONG` on a list is a tree, and with `LONG / 4` an array again: an array is
/// read faster, but an insertion moves half of it.
const LONG: usize = 1024;

#[derive(Debug, Clone)]
pub enum List {
    Array(Vec<Item>),
    Tree(BTreeSet<Item>),
}

impl Default for List {
    fn default() -> Self {
        List::Array(Vec::new())
    }
}

impl List {
    pub fn insert(&mut self, rank: i32, entry: u32) {
        let new = (Reverse(rank), entry);
        match self {
            List::Array(items) => {
                if let Err(at) = items.binary_search(&new) {
                    items.insert(at, new);
                }
                if items.len() > LONG {
                    *self = List::Tree(items.drain(..).collect());
                }
            }
            List::Tree(items) => {
                items.insert(new);
            }
        }
    }

    pub fn remove(&mut self, rank: i32, entry: u32) {
        let old = (Reverse(rank), entry);
        match self {
            List::Array(items) => {
                if let Ok(at) = items.binary_search(&old) {
                    items.remove(at);
                }
            }
            List::Tree(items) => {
                items.remove(&old);
                if items.len() <= LONG / 4 {
                    *self = List::Array(items.iter().copied().collect());
                }
            }
        }
    }

    pub fn len(&self) -> usize {
        match self {
            List::Array(items) => items.len(),
            List::Tree(items) => items.len(),
        }
    }

    pub fn first(&self) -> Option<(i32, u32)> {
        let first = match self {
            List::Array(items) => items.first(),
            List::Tree(items) => items.first(),
        };
        first.map(|&(Reverse(rank), entry)| (rank, entry))
    }

    /// The first item of rank `least` at least whose entry is wanted.
    #[inline]
    pub fn find(&self, least: i32, wanted: impl Fn(u32) -> bool) -> Option<(i32, u32)> {
        match self {
            List::Array(items) => search(items.iter(), least, wanted),
            List::Tree(items) => search(items.iter(), least, wanted),
        }
    }
}

#[inline(always)]
fn search<'a>(items: impl Iterator<Item = &'a Item>, least: i32, wanted: impl Fn(u32) -> bool) -> Option<(i32, u32)> {
    for &(Reverse(rank), entry) in items {
        if rank < least {
            return None;
        }
        if wanted(entry) {
            return Some((rank, entry));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]
        /// Grown beyond an array and shrunk again.
        #[test]
        fn agrees_with_a_tree(
            items in prop::collection::vec((0..9_i32, 0..3000_u32), 2000..3000),
            left in 0..300_usize,
            least in 0..9_i32,
            part in 1..50_u32,
        ) {
            let (mut list, mut tree) = (List::default(), BTreeSet::new());
            let agree = |list: &List, tree: &BTreeSet<Item>| -> Result<(), TestCaseError> {
                prop_assert_eq!(list.len(), tree.len());
                prop_assert_eq!(list.first(), tree.first().map(|i| (i.0.0, i.1)));
                let found = tree.iter().find(|i| i.0.0 >= least && i.1 % part == 0);
                prop_assert_eq!(list.find(least, |e| e % part == 0), found.map(|i| (i.0.0, i.1)));
                Ok(())
            };
            for &(rank, entry) in &items {
                list.insert(rank, entry);
                tree.insert((Reverse(rank), entry));
            }
            agree(&list, &tree)?;
            for &(rank, entry) in &items[left..] {
                list.remove(rank, entry);
                tree.remove(&(Reverse(rank), entry));
            }
            agree(&list, &tree)?;
        }
    }
}
