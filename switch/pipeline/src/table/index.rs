//! Lookup structure: tuple space search (Srinivasan, Suri, Varghese 1999).
//!
//! Entries with the same mask share a hash table of masked keys. An exact table has one mask, an
//! LPM table one per prefix length, a ternary table one per distinct mask. Masks are tried from
//! the highest priority any of their entries has, so that a hit ends the search early. Ranges are
//! checked on the few entries a masked key leaves.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use rustc_hash::FxHasher;

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

/// `low <= bits <= high` for a field of the packed key; limbs low first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RangeCheck {
    pub limb: usize,
    pub shift: u32,
    pub width: u32,
    pub low: Vec<u64>,
    pub high: Vec<u64>,
}

impl RangeCheck {
    fn holds(&self, key: &[u64]) -> bool {
        if self.width <= 64 {
            let mask = if self.width == 64 {
                u64::MAX
            } else {
                (1 << self.width) - 1
            };
            let v = key[self.limb] >> self.shift & mask;
            return self.low[0] <= v && v <= self.high[0];
        }
        let limbs = &key[self.limb..self.limb + self.low.len()];
        let at_least = |a: &[u64], b: &[u64]| a.iter().rev().ge(b.iter().rev());
        at_least(limbs, &self.low) && at_least(&self.high, limbs)
    }
}

/// What an entry matches, packed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packed {
    pub value: Vec<u64>,
    pub mask: Vec<u64>,
    pub ranges: Vec<RangeCheck>,
    /// Larger wins: the priority, or the prefix length in an LPM table.
    pub rank: i64,
}

const NONE: u32 = u32::MAX;

/// An entry under its masked key.
#[derive(Debug, Clone)]
struct Candidate {
    rank: i64,
    ranges: Box<[RangeCheck]>,
    /// Next in order of falling rank, then rising entry.
    next: u32,
}

#[derive(Debug)]
struct Tuple<const N: usize> {
    mask: [u64; N],
    heads: HashMap<Key<N>, u32, BuildHasherDefault<FxHasher>>,
    /// Highest rank of its entries.
    best: i64,
    /// Entries per rank, to keep `best` right.
    ranks: std::collections::BTreeMap<i64, usize>,
    /// Entries with ranges.
    ranged: usize,
    /// All entries have the same rank and none has ranges: a masked key decides by itself.
    plain: bool,
}

impl<const N: usize> std::fmt::Debug for Key<N> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:x?}", self.0)
    }
}

/// The lookup structure for keys of `N` limbs.
#[derive(Debug, Default)]
pub struct TupleSpace<const N: usize> {
    tuples: Vec<Tuple<N>>,
    /// By entry.
    candidates: Vec<Candidate>,
}

fn array<const N: usize>(limbs: &[u64]) -> [u64; N] {
    let mut out = [0; N];
    for (o, l) in out.iter_mut().zip(limbs) {
        *o = *l;
    }
    out
}

impl<const N: usize> TupleSpace<N> {
    pub fn clear(&mut self) {
        *self = TupleSpace::default();
    }

    /// The entry that a key hits.
    #[inline]
    pub fn lookup(&self, key: &[u64; N]) -> Option<u32> {
        let mut found: Option<(i64, u32)> = None;
        for tuple in &self.tuples {
            if let Some((rank, _)) = found {
                if rank > tuple.best {
                    break;
                }
            }
            let mut masked = *key;
            for (k, m) in masked.iter_mut().zip(&tuple.mask) {
                *k &= m;
            }
            let Some(&head) = tuple.heads.get(&Key(masked)) else {
                continue;
            };
            if tuple.plain {
                // Of equal rank the lowest entry wins.
                found = match found {
                    Some((rank, entry)) if rank == tuple.best => Some((rank, entry.min(head))),
                    _ => Some((tuple.best, head)),
                };
                continue;
            }
            let mut at = head;
            while at != NONE {
                let c = &self.candidates[at as usize];
                if let Some((rank, entry)) = found {
                    if (rank, at) > (c.rank, entry) {
                        break;
                    }
                }
                if c.ranges.iter().all(|r| r.holds(key)) {
                    found = Some((c.rank, at));
                    break;
                }
                at = c.next;
            }
        }
        found.map(|(_, entry)| entry)
    }

    fn head(&self, p: &Packed) -> Option<(usize, Key<N>, u32)> {
        let mask = array(&p.mask);
        let at = self.tuples.iter().position(|t| t.mask == mask)?;
        let key = Key(array(&p.value));
        let head = *self.tuples[at].heads.get(&key)?;
        Some((at, key, head))
    }

    /// The entry that was inserted with exactly this match.
    pub fn find(&self, p: &Packed) -> Option<u32> {
        let (_, _, mut at) = self.head(p)?;
        while at != NONE {
            let c = &self.candidates[at as usize];
            if c.rank == p.rank && *c.ranges == p.ranges[..] {
                return Some(at);
            }
            at = c.next;
        }
        None
    }

    /// Inserts an entry; its match must not be there yet.
    pub fn insert(&mut self, p: &Packed, entry: u32) {
        let mask = array(&p.mask);
        let at = match self.tuples.iter().position(|t| t.mask == mask) {
            Some(at) => at,
            None => {
                self.tuples.push(Tuple {
                    mask,
                    heads: HashMap::default(),
                    best: i64::MIN,
                    ranks: std::collections::BTreeMap::new(),
                    ranged: 0,
                    plain: true,
                });
                self.tuples.len() - 1
            }
        };
        let key = Key(array(&p.value));
        // Keep the chain in order of falling rank, then rising entry.
        let (mut before, mut next) = (
            NONE,
            self.tuples[at].heads.get(&key).copied().unwrap_or(NONE),
        );
        while next != NONE {
            let c = &self.candidates[next as usize];
            if (p.rank, next) > (c.rank, entry) {
                break;
            }
            before = next;
            next = c.next;
        }
        let candidate = Candidate {
            rank: p.rank,
            ranges: p.ranges.clone().into_boxed_slice(),
            next,
        };
        let slot = entry as usize;
        if slot >= self.candidates.len() {
            let empty = Candidate {
                rank: 0,
                ranges: Box::default(),
                next: NONE,
            };
            self.candidates.resize(slot + 1, empty);
        }
        self.candidates[slot] = candidate;
        if before == NONE {
            self.tuples[at].heads.insert(key, entry);
        } else {
            self.candidates[before as usize].next = entry;
        }
        *self.tuples[at].ranks.entry(p.rank).or_insert(0) += 1;
        self.tuples[at].ranged += usize::from(!p.ranges.is_empty());
        self.rerank(at);
    }

    /// Removes an entry inserted with this match.
    pub fn remove(&mut self, p: &Packed) {
        let Some((tuple, key, head)) = self.head(p) else {
            return;
        };
        let (mut before, mut at) = (NONE, head);
        while at != NONE {
            let c = &self.candidates[at as usize];
            let next = c.next;
            if c.rank == p.rank && *c.ranges == p.ranges[..] {
                if before != NONE {
                    self.candidates[before as usize].next = next;
                } else if next != NONE {
                    self.tuples[tuple].heads.insert(key, next);
                } else {
                    self.tuples[tuple].heads.remove(&key);
                }
                self.tuples[tuple].ranged -= usize::from(!p.ranges.is_empty());
                let ranks = &mut self.tuples[tuple].ranks;
                if let Some(n) = ranks.get_mut(&p.rank) {
                    *n -= 1;
                    if *n == 0 {
                        ranks.remove(&p.rank);
                    }
                }
                self.rerank(tuple);
                return;
            }
            before = at;
            at = next;
        }
    }

    /// Puts a tuple whose entries changed in its place, or drops it when it has none left.
    fn rerank(&mut self, at: usize) {
        let tuple = &mut self.tuples[at];
        tuple.plain = tuple.ranks.len() == 1 && tuple.ranged == 0;
        let best = tuple.ranks.last_key_value().map(|(r, _)| *r);
        match best {
            None => {
                self.tuples.remove(at);
            }
            Some(best) if best == self.tuples[at].best => {}
            Some(best) => {
                let mut tuple = self.tuples.remove(at);
                tuple.best = best;
                let to = self.tuples.partition_point(|t| t.best >= best);
                self.tuples.insert(to, tuple);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A match of two limbs, from few distinct values so that hits and overlaps are common.
    fn entry() -> impl Strategy<Value = Packed> {
        let mask = prop::sample::select(vec![0, 0xf, 0xf0, 0xff, 0xf_0000_0000, u64::MAX]);
        (
            mask.clone(),
            mask,
            0..4_u64,
            0..4_u64,
            0..4_i64,
            prop::option::of((0..8_u64, 0..8_u64)),
        )
            .prop_map(|(m0, m1, v0, v1, rank, range)| Packed {
                value: vec![(v0 | v0 << 32) & m0, (v1 | v1 << 4) & m1],
                mask: vec![m0, m1],
                ranges: range
                    .into_iter()
                    .map(|(low, high)| RangeCheck {
                        limb: 1,
                        shift: 8,
                        width: 3,
                        low: vec![low],
                        high: vec![high],
                    })
                    .collect(),
                rank,
            })
    }

    fn matches(p: &Packed, key: &[u64; 2]) -> bool {
        (0..2).all(|i| key[i] & p.mask[i] == p.value[i]) && p.ranges.iter().all(|r| r.holds(key))
    }

    proptest! {
        /// Inserting, removing and looking up agree with a list searched from end to end.
        #[test]
        fn agrees_with_a_list(
            ops in prop::collection::vec((any::<bool>(), entry()), 1..40),
            keys in prop::collection::vec((0..4_u64, 0..4_u64, 0..8_u64), 1..40),
        ) {
            let mut index = TupleSpace::<2>::default();
            let mut list: Vec<(Packed, u32)> = Vec::new();
            for (i, (insert, p)) in ops.into_iter().enumerate() {
                let known = list.iter().position(|(q, _)| *q == p);
                prop_assert_eq!(index.find(&p), known.map(|k| list[k].1));
                match known {
                    None if insert => {
                        index.insert(&p, i as u32);
                        list.push((p, i as u32));
                    }
                    Some(k) if !insert => {
                        index.remove(&p);
                        list.remove(k);
                    }
                    _ => {}
                }
            }
            for (a, b, c) in keys {
                let key = [a | a << 32, b | b << 4 | c << 8];
                let naive = list
                    .iter()
                    .filter(|(p, _)| matches(p, &key))
                    .max_by_key(|(p, entry)| (p.rank, std::cmp::Reverse(*entry)))
                    .map(|(_, entry)| *entry);
                prop_assert_eq!(index.lookup(&key), naive);
            }
        }
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
    }
}
