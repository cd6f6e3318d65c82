//! Longest prefix match: a trie of four bits a step, with the steps that have no choice left out
//! (Srinivasan and Varghese 1999, "expanded" within each step; Morrison 1968 for the paths).
//!
//! A node at depth `d` holds the prefixes of `d + 1` to `d + 4` bits, each written to all of the
//! node's sixteen places that it covers unless a longer one is there. A longer prefix that is alone
//! behind its place needs no node: the place names it, and its bits are compared. So a lookup
//! follows the key from node to node and keeps the last entry that it met, and a write changes one
//! node or two. With n random prefixes it takes about log16(n) steps; the length of the key does
//! not matter.

use super::NO_ENTRY;

/// Bits a node decides.
const STEP: u32 = 4;
const PLACES: usize = 1 << STEP;
const ROOT: u32 = 0;

/// A key, left-aligned: 64 bits for most tables, 128 for IPv6.
pub trait Path: Copy + Eq + Default + std::fmt::Debug {
    /// The four bits from bit `depth` on.
    fn place(self, depth: u32) -> usize;
    /// How many leading bits two keys share.
    fn shared(self, other: Self) -> u32;
    /// The first `n` bits, others zero.
    fn first(self, n: u32) -> Self;
}

macro_rules! path {
    ($t:ty) => {
        impl Path for $t {
            #[inline(always)]
            fn place(self, depth: u32) -> usize {
                (self >> (<$t>::BITS - STEP - depth)) as usize & (PLACES - 1)
            }
            #[inline(always)]
            fn shared(self, other: Self) -> u32 {
                (self ^ other).leading_zeros()
            }
            #[inline(always)]
            fn first(self, n: u32) -> Self {
                match n {
                    0 => 0,
                    _ => self >> (<$t>::BITS - n) << (<$t>::BITS - n),
                }
            }
        }
    };
}
path!(u64);
path!(u128);

#[derive(Debug, Clone, Copy)]
struct Place {
    /// The node that decides further, [`ROOT`] for none; or with [`LEAF`] the only entry behind.
    child: u32,
    /// The entry of the longest prefix of this node that covers this place.
    entry: u32,
}

const LEAF: u32 = 1 << 31;

#[derive(Debug, Clone)]
struct Node<P> {
    prefix: P,
    depth: u32,
    places: [Place; PLACES],
}

/// The prefix of an entry.
#[derive(Debug, Clone, Copy, Default)]
pub struct Prefix<P> {
    pub bits: P,
    pub length: u32,
}

/// Prefixes and their entries.
#[derive(Debug)]
pub struct Trie<P> {
    nodes: Vec<Node<P>>,
    /// Places in `nodes` not in use.
    free: Vec<u32>,
    /// The entry of the prefix of length 0.
    all: u32,
}

impl<P: Path> Default for Trie<P> {
    fn default() -> Self {
        let mut trie = Trie {
            nodes: Vec::new(),
            free: Vec::new(),
            all: NO_ENTRY,
        };
        trie.node(P::default(), 0);
        trie
    }
}

impl<P: Path> Trie<P> {
    /// No prefix is left.
    pub fn is_empty(&self) -> bool {
        let root = &self.nodes[ROOT as usize];
        let bare = |p: &Place| p.entry == NO_ENTRY && p.child == ROOT;
        self.all == NO_ENTRY && root.places.iter().all(bare)
    }

    fn node(&mut self, key: P, depth: u32) -> u32 {
        let nothing = Place {
            child: ROOT,
            entry: NO_ENTRY,
        };
        let node = Node {
            prefix: key.first(depth),
            depth,
            places: [nothing; PLACES],
        };
        if let Some(at) = self.free.pop() {
            self.nodes[at as usize] = node;
            return at;
        }
        self.nodes.push(node);
        (self.nodes.len() - 1) as u32
    }

    /// The entry of the longest prefix of `key`, [`NO_ENTRY`] when there is none. `prefixes` are
    /// those of all entries, here and in the other calls.
    #[inline]
    pub fn lookup(&self, key: P, prefixes: &[Prefix<P>]) -> u32 {
        let mut best = self.all;
        let mut node = &self.nodes[ROOT as usize];
        loop {
            let place = &node.places[key.place(node.depth)];
            if place.entry != NO_ENTRY {
                best = place.entry;
            }
            if place.child == ROOT {
                return best;
            }
            if place.child & LEAF != 0 {
                let leaf = place.child & !LEAF;
                let prefix = &prefixes[leaf as usize];
                return match key.shared(prefix.bits) >= prefix.length {
                    true => leaf,
                    false => best,
                };
            }
            node = &self.nodes[place.child as usize];
            if key.shared(node.prefix) < node.depth {
                return best;
            }
        }
    }

    /// The places of the node at `depth` that a prefix covers.
    fn places(prefix: &Prefix<P>, depth: u32) -> std::ops::Range<usize> {
        let span = 1 << (STEP - (prefix.length - depth));
        let first = prefix.bits.first(prefix.length).place(depth);
        first..first + span
    }

    /// Adds the prefix of an entry.
    pub fn insert(&mut self, entry: u32, prefixes: &[Prefix<P>]) {
        match prefixes[entry as usize].length {
            0 => self.all = entry,
            _ => self.insert_below(ROOT, entry, prefixes),
        }
    }

    /// Adds a prefix that begins with those of node `at` and is longer.
    fn insert_below(&mut self, mut at: u32, entry: u32, prefixes: &[Prefix<P>]) {
        let new = &prefixes[entry as usize];
        // A node no deeper than this can hold a prefix of that length, or lead to it.
        let deepest = |length: u32| (length - 1) / STEP * STEP;
        loop {
            let depth = self.nodes[at as usize].depth;
            if new.length <= depth + STEP {
                for place in &mut self.nodes[at as usize].places[Self::places(new, depth)] {
                    let old = prefixes.get(place.entry as usize);
                    if old.is_none_or(|old| old.length <= new.length) {
                        place.entry = entry;
                    }
                }
                return;
            }
            let place = new.bits.place(depth);
            let child = self.nodes[at as usize].places[place].child;
            let next = if child == ROOT {
                self.nodes[at as usize].places[place].child = entry | LEAF;
                return;
            } else if child & LEAF != 0 {
                let other = child & !LEAF;
                let prefix = &prefixes[other as usize];
                // At least the bits that led here are shared.
                let fork = new.bits.shared(prefix.bits) / STEP * STEP;
                let fork = fork.min(deepest(new.length)).min(deepest(prefix.length));
                let between = self.node(new.bits, fork);
                self.insert_below(between, other, prefixes);
                between
            } else {
                let (prefix, below) = {
                    let below = &self.nodes[child as usize];
                    (below.prefix, below.depth)
                };
                let fork = new.bits.shared(prefix) / STEP * STEP;
                let fork = fork.min(deepest(new.length)).min(below);
                if fork == below {
                    child
                } else {
                    let between = self.node(new.bits, fork);
                    self.nodes[between as usize].places[prefix.place(fork)].child = child;
                    between
                }
            };
            self.nodes[at as usize].places[place].child = next;
            at = next;
        }
    }

    /// Removes the prefix of an entry that was added. `shorter` finds the entry of a prefix of the
    /// same bits and another length.
    pub fn remove(
        &mut self,
        entry: u32,
        prefixes: &[Prefix<P>],
        shorter: impl Fn(u32) -> Option<u32>,
    ) {
        let old = &prefixes[entry as usize];
        if old.length == 0 {
            self.all = NO_ENTRY;
            return;
        }
        // The nodes on the way, with the place taken in each.
        let mut way: Vec<(u32, usize)> = Vec::new();
        let mut at = ROOT;
        loop {
            let depth = self.nodes[at as usize].depth;
            if old.length <= depth + STEP {
                let next = (depth + 1..old.length).rev().find_map(shorter);
                for place in &mut self.nodes[at as usize].places[Self::places(old, depth)] {
                    if place.entry == entry {
                        place.entry = next.unwrap_or(NO_ENTRY);
                    }
                }
                break;
            }
            let place = old.bits.place(depth);
            let child = self.nodes[at as usize].places[place].child;
            if child == ROOT || child & LEAF != 0 {
                if child == entry | LEAF {
                    self.nodes[at as usize].places[place].child = ROOT;
                }
                break;
            }
            way.push((at, place));
            at = child;
        }
        self.prune(at, way);
    }

    /// Takes out nodes that decide nothing any more, from `at` upwards.
    fn prune(&mut self, mut at: u32, mut way: Vec<(u32, usize)>) {
        while let Some((above, place)) = way.pop() {
            let places = &self.nodes[at as usize].places;
            if places.iter().any(|p| p.entry != NO_ENTRY) {
                return;
            }
            let mut children = places.iter().map(|p| p.child).filter(|c| *c != ROOT);
            let only = children.next().unwrap_or(ROOT);
            if children.next().is_some() {
                return;
            }
            self.nodes[above as usize].places[place].child = only;
            self.free.push(at);
            at = above;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Prefixes that nest and share paths often: few distinct bits far apart.
    fn key() -> impl Strategy<Value = u64> {
        (0..4_u64, 0..4_u64, 0..4_u64, any::<u64>(), any::<bool>()).prop_map(
            |(a, b, c, any, wild)| match wild {
                true => any,
                false => a << 60 | b << 45 | c << 31,
            },
        )
    }

    fn check<P: Path>(
        ops: Vec<(bool, u64, u32)>,
        keys: Vec<u64>,
        to: impl Fn(u64) -> P,
    ) -> Result<(), TestCaseError> {
        let mut trie = Trie::<P>::default();
        let mut list: BTreeMap<(u64, u32), u32> = BTreeMap::new();
        let mut prefixes = Vec::new();
        for (insert, key, length) in ops {
            let key = key.first(length);
            let entry = prefixes.len() as u32;
            let bits = to(key);
            prefixes.push(Prefix { bits, length });
            match list.get(&(key, length)).copied() {
                None if insert => {
                    trie.insert(entry, &prefixes);
                    list.insert((key, length), entry);
                }
                Some(old) if !insert => {
                    list.remove(&(key, length));
                    let shorter = |n: u32| list.get(&(key.first(n), n)).copied();
                    trie.remove(old, &prefixes, shorter);
                }
                _ => {}
            }
        }
        for key in keys {
            let naive = list
                .iter()
                .filter(|((value, length), _)| key.first(*length) == *value)
                .max_by_key(|((_, length), _)| *length)
                .map_or(NO_ENTRY, |(_, entry)| *entry);
            prop_assert_eq!(trie.lookup(to(key), &prefixes), naive);
        }
        // Without prefixes nothing is left but the root.
        while let Some(((key, _), entry)) = list.pop_first() {
            let shorter = |n: u32| list.get(&(key.first(n), n)).copied();
            trie.remove(entry, &prefixes, shorter);
        }
        prop_assert!(trie.is_empty());
        prop_assert_eq!(trie.nodes.len() - trie.free.len(), 1);
        Ok(())
    }

    proptest! {
        #[test]
        fn agrees_with_a_list(
            ops in prop::collection::vec((prop::bool::weighted(0.7), key(), 0..=64_u32), 1..80),
            keys in prop::collection::vec(key(), 1..60),
        ) {
            check::<u64>(ops.clone(), keys.clone(), |k| k)?;
            // At the end of a long key, too.
            check::<u128>(ops, keys, |k| u128::from(k) << 64)?;
        }
    }

    #[test]
    fn long_keys_to_their_last_bit() {
        let mut trie = Trie::<u128>::default();
        let prefixes = [128, 127, 126, 3, 0].map(|length| Prefix {
            bits: u128::MAX.first(length),
            length,
        });
        for entry in 0..prefixes.len() as u32 {
            trie.insert(entry, &prefixes);
        }
        for (key, entry) in [
            (u128::MAX, 0),
            (u128::MAX - 1, 1),
            (u128::MAX - 2, 2),
            (7 << 125, 3),
            (5, 4),
        ] {
            assert_eq!(trie.lookup(key, &prefixes), entry, "{key:x}");
        }
    }
}
