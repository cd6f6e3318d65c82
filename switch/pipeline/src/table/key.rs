//! Packed keys, and what entries match of them.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use rustc_hash::FxHasher;

use super::range::RangeCheck;

/// A packed key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key<const N: usize>(pub [u64; N]);

impl<const N: usize> Hash for Key<N> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for limb in self.0 {
            state.write_u64(limb);
        }
    }
}

impl<const N: usize> std::fmt::Debug for Key<N> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:x?}", self.0)
    }
}

pub type KeyMap<const N: usize, V> = HashMap<Key<N>, V, BuildHasherDefault<FxHasher>>;

/// What an entry matches, packed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packed {
    pub value: Vec<u64>,
    pub mask: Vec<u64>,
    pub ranges: Vec<RangeCheck>,
    /// Larger wins: the priority, or the prefix length in an LPM table.
    pub rank: i32,
}

pub fn array<const N: usize>(limbs: &[u64]) -> [u64; N] {
    let mut out = [0; N];
    for (o, l) in out.iter_mut().zip(limbs) {
        *o = *l;
    }
    out
}
