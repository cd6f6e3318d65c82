//! A hash table that never grows in one go: extendible hashing (Fagin, Nievergelt, Pippenger, Strong 1979).
//!
//! Items lie in shards of bounded size, by some bits of their hash. A full shard is split in two, and the directory of shards doubles where their
//! bits do not tell them apart. So an insertion moves at most one shard's items, however many there are in all, and packets do not wait for more.

use hashbrown::HashTable;

/// Items of a shard, as many as a table of 4096 buckets holds.
const MOST: usize = 4096 / 8 * 7;
/// The bits that choose the shard: above those that choose the bucket in a shard, among the best of [`rustc_hash::FxHasher`]'s.
const FIRST_BIT: u32 = 12;
/// So many of them; then shards grow after all, beyond 50 million items.
const MOST_BITS: u32 = 14;

#[derive(Debug)]
struct Shard<T> {
    /// Bits that all its items share.
    bits: u32,
    items: HashTable<T>,
}

/// See the module. The caller hashes, and compares.
#[derive(Debug)]
pub struct Shards<T> {
    /// The shard of each value of the bits in use: 2 ^ `bits` of them.
    directory: Vec<u32>,
    bits: u32,
    shards: Vec<Shard<T>>,
}

impl<T> Default for Shards<T> {
    fn default() -> Self {
        Shards { directory: vec![0], bits: 0, shards: vec![Shard { bits: 0, items: HashTable::new() }] }
    }
}

/// The bits of a hash that choose its shard.
#[inline(always)]
fn choice(hash: u64) -> usize {
    (hash >> FIRST_BIT) as usize
}

impl<T> Shards<T> {
    #[inline(always)]
    fn shard(&self, hash: u64) -> usize {
        // The directory's length is a power of two, and not zero.
        self.directory[choice(hash) & (self.directory.len() - 1)] as usize
    }

    #[inline]
    pub fn find(&self, hash: u64, same: impl FnMut(&T) -> bool) -> Option<&T> {
        self.shards[self.shard(hash)].items.find(hash, same)
    }

    pub fn find_mut(&mut self, hash: u64, same: impl FnMut(&T) -> bool) -> Option<&mut T> {
        let at = self.shard(hash);
        self.shards[at].items.find_mut(hash, same)
    }

    /// The shard for one more item.
    fn shard_with_room(&mut self, hash: u64, hash_of: &impl Fn(&T) -> u64) -> usize {
        let at = self.shard(hash);
        let shard = &self.shards[at];
        if shard.items.len() >= MOST && shard.bits < MOST_BITS {
            self.split(at, choice(hash), hash_of);
        }
        self.shard(hash)
    }

    /// Adds an item that is not there yet.
    pub fn insert(&mut self, hash: u64, item: T, hash_of: impl Fn(&T) -> u64) {
        let at = self.shard_with_room(hash, &hash_of);
        self.shards[at].items.insert_unique(hash, item, hash_of);
    }

    /// An item, which is a new one where there is none.
    pub fn find_or_insert(
        &mut self,
        hash: u64,
        same: impl FnMut(&T) -> bool,
        new: impl FnOnce() -> T,
        hash_of: impl Fn(&T) -> u64,
    ) -> &mut T {
        let at = self.shard_with_room(hash, &hash_of);
        self.shards[at].items.entry(hash, same, hash_of).or_insert_with(new).into_mut()
    }

    pub fn remove(&mut self, hash: u64, same: impl FnMut(&T) -> bool) -> Option<T> {
        let at = self.shard(hash);
        let found = self.shards[at].items.find_entry(hash, same).ok()?;
        Some(found.remove().0)
    }

    /// Splits a shard, which the bits of `choice` lead to.
    fn split(&mut self, at: usize, choice: usize, hash_of: &impl Fn(&T) -> u64) {
        let bits = self.shards[at].bits;
        if bits == self.bits {
            self.directory.extend_from_within(..);
            self.bits += 1;
        }
        let mut halves = [HashTable::with_capacity(MOST), HashTable::with_capacity(MOST)];
        for item in std::mem::take(&mut self.shards[at].items) {
            let hash = hash_of(&item);
            halves[self::choice(hash) >> bits & 1].insert_unique(hash, item, hash_of);
        }
        let new = self.shards.len() as u32;
        let [zero, one] = halves;
        self.shards[at] = Shard { bits: bits + 1, items: zero };
        self.shards.push(Shard { bits: bits + 1, items: one });
        let shared = choice & ((1 << bits) - 1);
        for place in (shared | 1 << bits..self.directory.len()).step_by(2 << bits) {
            self.directory[place] = new;
        }
    }

    #[cfg(test)]
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.shards.iter().flat_map(|shard| shard.items.iter())
    }

    /// Nothing is in it.
    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;
    use std::hash::{BuildHasher, BuildHasherDefault};

    fn hash(key: &u64) -> u64 {
        BuildHasherDefault::<rustc_hash::FxHasher>::default().hash_one(key)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]
        /// Keys with bits in different places, so that shards are split unevenly, come and go.
        #[test]
        fn agrees_with_a_map(seed: u64, shift in 0..40_u32, inserts in 5_000..40_000_usize, removed in 1..5_u64) {
            let (mut shards, mut map) = (Shards::default(), HashMap::new());
            let key = |i: u64| seed.wrapping_add(i) << shift;
            for i in 0..inserts as u64 {
                let key = key(i);
                if map.insert(key, i).is_none() {
                    prop_assert!(shards.find(hash(&key), |(k, _)| *k == key).is_none());
                    shards.insert(hash(&key), (key, i), |(k, _)| hash(k));
                }
                if i % removed == 0 {
                    let key = self::hash(&i) % (i + 1);
                    let key = seed.wrapping_add(key) << shift;
                    let gone = shards.remove(hash(&key), |(k, _)| *k == key);
                    prop_assert_eq!(gone.map(|(_, v)| v), map.remove(&key));
                }
            }
            prop_assert_eq!(shards.iter().count(), map.len());
            for (key, value) in &map {
                prop_assert_eq!(shards.find(hash(key), |(k, _)| k == key).map(|(_, v)| v), Some(value));
            }
        }
    }

    /// However they begin, keys of routes and hosts leave no shard with more than it should have.
    #[test]
    fn no_shard_is_large() {
        for shift in [0, 8, 16, 31] {
            let mut shards = Shards::default();
            for key in (0..300_000_u64).map(|key| key << shift) {
                shards.insert(hash(&key), key, hash);
            }
            let largest = shards.shards.iter().map(|shard| shard.items.len()).max();
            assert!(largest <= Some(MOST), "{shift}: {largest:?}");
        }
    }
}
