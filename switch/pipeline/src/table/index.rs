//! Lookup structure: tuple space search (Srinivasan, Suri, Varghese 1999).
//!
//! Entries with the same mask share a hash table of masked keys. An exact table has one mask, a
//! ternary table one per distinct mask, an optional field doubles them. Masks are tried from the
//! highest priority any of their entries has, so that a hit ends the search early. A range is
//! covered by prefixes, so that it becomes masks too; the other ranges of an entry are checked on
//! the few entries a masked key leaves. An LPM table has a trie beside it (`lpm.rs`).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasherDefault, Hash, Hasher};

use rustc_hash::FxHasher;

use super::range::{covered, RangeCheck};

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

/// The entries of one masked key, in as little room as can be: most keys have one.
#[derive(Debug, Clone, Copy)]
struct Head {
    /// The highest.
    rank: i32,
    /// An index below two bits that say of what.
    at: u32,
}

/// What the index of a [`Head`] means.
enum At {
    /// One entry, which the masked key decides.
    Entry(u32),
    /// One entry, with ranges to check.
    Checked(u32),
    /// Several: an index of [`TupleSpace::several`].
    Several(u32),
}

const KIND: u32 = 3 << 30;
const CHECKED: u32 = 1 << 30;
const SEVERAL: u32 = 2 << 30;

impl Head {
    fn one(rank: i32, entry: u32, checked: bool) -> Head {
        let at = if checked { entry | CHECKED } else { entry };
        Head { rank, at }
    }

    #[inline]
    fn at(self) -> At {
        let index = self.at & !KIND;
        match self.at & KIND {
            0 => At::Entry(index),
            CHECKED => At::Checked(index),
            _ => At::Several(index),
        }
    }
}

/// The order within one masked key: rank, then the lower entry.
type Ordered = BTreeSet<(Reverse<i32>, u32)>;

/// What is kept of an entry that has ranges.
#[derive(Debug, Default)]
struct Ranged {
    ranges: Box<[RangeCheck]>,
    /// The range that masks cover.
    covered: Option<usize>,
}

impl Ranged {
    /// A masked key alone does not decide.
    fn checked(&self) -> bool {
        self.ranges.len() > usize::from(self.covered.is_some())
    }

    fn holds(&self, key: &[u64]) -> bool {
        let mut all = self.ranges.iter().enumerate();
        all.all(|(i, r)| Some(i) == self.covered || r.holds(key))
    }
}

#[derive(Debug)]
struct Tuple<const N: usize> {
    mask: [u64; N],
    heads: KeyMap<N, Head>,
    /// Entries per rank; the highest orders the masks.
    ranks: BTreeMap<i32, usize>,
}

/// The lookup structure for keys of `N` limbs.
#[derive(Debug, Default)]
pub struct TupleSpace<const N: usize> {
    tuples: Vec<Tuple<N>>,
    by_mask: KeyMap<N, u32>,
    /// Highest rank and tuple, falling.
    order: Vec<(i32, u32)>,
    /// Places in `tuples` not in use.
    free: Vec<u32>,
    several: Vec<Ordered>,
    free_several: Vec<u32>,
    /// By entry, for those with ranges.
    ranged: HashMap<u32, Ranged, BuildHasherDefault<FxHasher>>,
}

pub fn array<const N: usize>(limbs: &[u64]) -> [u64; N] {
    let mut out = [0; N];
    for (o, l) in out.iter_mut().zip(limbs) {
        *o = *l;
    }
    out
}

/// The masks and masked keys of an entry: one, or one for each prefix of its range.
fn pieces<const N: usize>(p: &Packed) -> Vec<([u64; N], Key<N>)> {
    let (value, mask) = (array::<N>(&p.value), array::<N>(&p.mask));
    let Some(range) = covered(&p.ranges).map(|i| &p.ranges[i]) else {
        return vec![(mask, Key(value))];
    };
    let make = |(v, m): (u64, u64)| {
        let (mut value, mut mask) = (value, mask);
        value[range.limb] |= v << range.shift;
        mask[range.limb] |= m << range.shift;
        (mask, Key(value))
    };
    range.prefixes().into_iter().map(make).collect()
}

impl<const N: usize> TupleSpace<N> {
    pub fn clear(&mut self) {
        *self = TupleSpace::default();
    }

    /// The entry that a key hits.
    #[inline]
    pub fn lookup(&self, key: &[u64; N]) -> Option<u32> {
        let mut found: Option<(i32, u32)> = None;
        for &(best, at) in &self.order {
            if found.is_some_and(|(rank, _)| rank > best) {
                break;
            }
            let tuple = &self.tuples[at as usize];
            let mut masked = *key;
            for (k, m) in masked.iter_mut().zip(&tuple.mask) {
                *k &= m;
            }
            let Some(&head) = tuple.heads.get(&Key(masked)) else {
                continue;
            };
            let hit = match head.at() {
                At::Entry(entry) => Some((head.rank, entry)),
                _ if found.is_some_and(|(rank, _)| rank > head.rank) => None,
                _ => self.search(head, key),
            };
            // Of equal rank the lowest entry wins.
            if let Some((rank, entry)) = hit {
                if found.is_none_or(|(r, e)| (rank, Reverse(entry)) > (r, Reverse(e))) {
                    found = Some((rank, entry));
                }
            }
        }
        found.map(|(_, entry)| entry)
    }

    /// The first entry of a masked key whose ranges hold.
    #[inline(never)]
    fn search(&self, head: Head, key: &[u64]) -> Option<(i32, u32)> {
        let holds = |entry: u32| self.ranged.get(&entry).is_none_or(|r| r.holds(key));
        match head.at() {
            At::Entry(entry) => Some((head.rank, entry)),
            At::Checked(entry) => holds(entry).then_some((head.rank, entry)),
            At::Several(at) => {
                let mut all = self.several[at as usize].iter();
                all.find(|(_, entry)| holds(*entry))
                    .map(|(Reverse(rank), entry)| (*rank, *entry))
            }
        }
    }

    /// The entry that was inserted with exactly this match.
    pub fn find(&self, p: &Packed) -> Option<u32> {
        let (mask, key) = match covered(&p.ranges) {
            None => (array(&p.mask), Key(array(&p.value))),
            Some(_) => pieces::<N>(p).into_iter().next()?,
        };
        let tuple = &self.tuples[*self.by_mask.get(&Key(mask))? as usize];
        let head = tuple.heads.get(&key)?;
        let same = |entry: u32| match self.ranged.get(&entry) {
            None => p.ranges.is_empty(),
            Some(r) => *r.ranges == p.ranges[..],
        };
        match head.at() {
            At::Entry(e) | At::Checked(e) => (head.rank == p.rank && same(e)).then_some(e),
            At::Several(at) => {
                let from = (Reverse(p.rank), 0)..=(Reverse(p.rank), u32::MAX);
                let mut all = self.several[at as usize].range(from);
                all.find(|(_, e)| same(*e)).map(|(_, e)| *e)
            }
        }
    }

    /// Inserts an entry; its match must not be there yet.
    pub fn insert(&mut self, p: &Packed, entry: u32) {
        if !p.ranges.is_empty() {
            let ranged = Ranged {
                ranges: p.ranges.clone().into_boxed_slice(),
                covered: covered(&p.ranges),
            };
            self.ranged.insert(entry, ranged);
        }
        for (mask, key) in pieces::<N>(p) {
            let at = self.tuple(mask);
            self.insert_piece(at, key, p, entry);
        }
    }

    fn insert_piece(&mut self, at: u32, key: Key<N>, p: &Packed, entry: u32) {
        let checked = self.ranged.get(&entry).is_some_and(Ranged::checked);
        let tuple = &mut self.tuples[at as usize];
        if let Some(head) = tuple.heads.get_mut(&key) {
            let list = match head.at() {
                At::Several(list) => list,
                At::Entry(first) | At::Checked(first) => {
                    let list = self.free_several.pop().unwrap_or_else(|| {
                        self.several.push(Ordered::new());
                        (self.several.len() - 1) as u32
                    });
                    self.several[list as usize].insert((Reverse(head.rank), first));
                    head.at = list | SEVERAL;
                    list
                }
            };
            self.several[list as usize].insert((Reverse(p.rank), entry));
            head.rank = head.rank.max(p.rank);
        } else {
            tuple.heads.insert(key, Head::one(p.rank, entry, checked));
        }
        let before = top(tuple);
        *tuple.ranks.entry(p.rank).or_insert(0) += 1;
        self.reorder(at, before);
    }

    /// Removes an entry inserted with this match.
    pub fn remove(&mut self, p: &Packed) {
        let Some(entry) = self.find(p) else { return };
        for (mask, key) in pieces::<N>(p) {
            if let Some(at) = self.by_mask.get(&Key(mask)).copied() {
                self.remove_piece(at, &key, p, entry);
            }
        }
        self.ranged.remove(&entry);
    }

    fn remove_piece(&mut self, at: u32, key: &Key<N>, p: &Packed, entry: u32) {
        let tuple = &mut self.tuples[at as usize];
        let Some(head) = tuple.heads.get_mut(key) else {
            return;
        };
        match head.at() {
            At::Entry(_) | At::Checked(_) => {
                tuple.heads.remove(key);
            }
            At::Several(list) => {
                let all = &mut self.several[list as usize];
                all.remove(&(Reverse(p.rank), entry));
                if let Some((Reverse(rank), first)) = all.first().copied() {
                    head.rank = rank;
                    if all.len() == 1 {
                        let checked = self.ranged.get(&first).is_some_and(Ranged::checked);
                        *head = Head::one(rank, first, checked);
                        all.clear();
                        self.free_several.push(list);
                    }
                }
            }
        }
        let before = top(tuple);
        if let Some(n) = tuple.ranks.get_mut(&p.rank) {
            *n -= 1;
            if *n == 0 {
                tuple.ranks.remove(&p.rank);
            }
        }
        self.reorder(at, before);
    }

    /// The tuple of a mask, made if need be; an empty one has no place in the order.
    fn tuple(&mut self, mask: [u64; N]) -> u32 {
        if let Some(at) = self.by_mask.get(&Key(mask)) {
            return *at;
        }
        let new = Tuple {
            mask,
            heads: KeyMap::default(),
            ranks: BTreeMap::new(),
        };
        let at = match self.free.pop() {
            Some(at) => {
                self.tuples[at as usize] = new;
                at
            }
            None => {
                self.tuples.push(new);
                (self.tuples.len() - 1) as u32
            }
        };
        self.by_mask.insert(Key(mask), at);
        at
    }

    /// Puts a tuple whose highest rank was `before` in its place, or drops it when it is empty.
    fn reorder(&mut self, at: u32, before: Option<i32>) {
        let now = top(&self.tuples[at as usize]);
        if now == before {
            return;
        }
        if let Some(before) = before {
            let from = self.order.partition_point(|(best, _)| *best > before);
            let behind = self.order[from..].iter().position(|(_, t)| *t == at);
            if let Some(behind) = behind {
                self.order.remove(from + behind);
            }
        }
        match now {
            Some(best) => {
                let to = self.order.partition_point(|(b, _)| *b >= best);
                self.order.insert(to, (best, at));
            }
            None => {
                let tuple = &mut self.tuples[at as usize];
                self.by_mask.remove(&Key(tuple.mask));
                tuple.heads = KeyMap::default();
                self.free.push(at);
            }
        }
    }
}

/// The highest rank of a tuple's entries.
fn top<const N: usize>(tuple: &Tuple<N>) -> Option<i32> {
    tuple.ranks.last_key_value().map(|(rank, _)| *rank)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A match of two limbs, from few distinct values so that hits and overlaps are common: masks,
    /// and ranges of two fields.
    fn entry() -> impl Strategy<Value = Packed> {
        let mask = prop::sample::select(vec![0, 0xf, 0xf0, 0xff, 0xf_0000_0000, u64::MAX >> 8]);
        let range = |limb, shift| {
            prop::option::of((0..8_u64, 0..8_u64)).prop_map(move |bounds| {
                bounds.map(|(a, b)| RangeCheck {
                    limb,
                    shift,
                    width: 3,
                    low: vec![a.min(b)],
                    high: vec![a.max(b)],
                })
            })
        };
        (
            mask.clone(),
            mask,
            0..4_u64,
            0..4_u64,
            0..4_i32,
            range(1, 56),
            range(0, 60),
        )
            .prop_map(|(m0, m1, v0, v1, rank, first, second)| Packed {
                value: vec![(v0 | v0 << 32) & m0, (v1 | v1 << 4) & m1],
                mask: vec![m0, m1],
                ranges: first.into_iter().chain(second).collect(),
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
            ops in prop::collection::vec((prop::bool::weighted(0.7), entry()), 1..60),
            keys in prop::collection::vec((0..4_u64, 0..4_u64, 0..8_u64, 0..8_u64), 1..40),
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
            for (a, b, c, d) in keys {
                let key = [a | a << 32 | d << 60, b | b << 4 | c << 56];
                let naive = list
                    .iter()
                    .filter(|(p, _)| matches(p, &key))
                    .max_by_key(|(p, entry)| (p.rank, std::cmp::Reverse(*entry)))
                    .map(|(_, entry)| *entry);
                prop_assert_eq!(index.lookup(&key), naive);
            }
            for (p, _) in std::mem::take(&mut list) {
                index.remove(&p);
            }
            prop_assert!(index.order.is_empty() && index.by_mask.is_empty() && index.ranged.is_empty());
            prop_assert_eq!(index.free.len(), index.tuples.len());
            prop_assert_eq!(index.free_several.len(), index.several.len());
        }
    }
}
