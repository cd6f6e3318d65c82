//! Packed keys, and what entries match of them.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};

use rustc_hash::FxHasher;

use super::range::RangeCheck;
use super::shards::Shards;

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

/// What belongs to each key, where there may be as many keys as entries.
#[derive(Debug)]
pub struct Keyed<const N: usize, V>(Shards<(Key<N>, V)>);

impl<const N: usize, V> Default for Keyed<N, V> {
    fn default() -> Self {
        Keyed(Shards::default())
    }
}

#[inline]
fn hash<const N: usize>(key: &Key<N>) -> u64 {
    BuildHasherDefault::<FxHasher>::default().hash_one(key)
}

impl<const N: usize, V> Keyed<N, V> {
    #[inline]
    pub fn get(&self, key: &Key<N>) -> Option<&V> {
        self.0.find(hash(key), |(other, _)| other == key).map(|(_, value)| value)
    }

    pub fn get_mut(&mut self, key: &Key<N>) -> Option<&mut V> {
        self.0.find_mut(hash(key), |(other, _)| other == key).map(|(_, value)| value)
    }

    /// Sets a key's value.
    pub fn insert(&mut self, key: Key<N>, value: V) {
        match self.get_mut(&key) {
            Some(old) => *old = value,
            None => self.0.insert(hash(&key), (key, value), |(key, _)| hash(key)),
        }
    }

    /// A key's value, which is the default where there was none.
    pub fn get_or_default(&mut self, key: Key<N>) -> &mut V
    where
        V: Default,
    {
        let new = || (key, V::default());
        &mut self.0.find_or_insert(hash(&key), |(other, _)| *other == key, new, |(key, _)| hash(key)).1
    }

    pub fn remove(&mut self, key: &Key<N>) {
        self.0.remove(hash(key), |(other, _)| other == key);
    }
}

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
