//! Lookup structure: tuple space search (Srinivasan, Suri, Varghese 1999) with merged tuples (Daly
//! et al. 2019).
//!
//! Entries with the same mask share a hash table of masked keys, and so do entries of different masks
//! where that pays: hashed by the bits that the masks have in common, and checked one by one
//! (`plan.rs`). Tables are tried from the highest priority any of their entries has, and the entries
//! of one hash from the highest of theirs, so that a hit ends the search early. A range is covered by
//! one or two prefixes, so that it has a mask too. Which masks share a table is decided anew when the
//! number of entries or of tables has doubled.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::key::{Key, KeyMap, Keyed, Packed};
use super::list::List;
use super::plan::{and, bits, plan, sample, total, Masked};
use super::rows::{Piece, RangeField, Rows};

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
    /// One entry, to be checked.
    Checked(u32),
    /// Several: an index of [`TupleSpace::lists`].
    Several(u32),
}

const KIND: u32 = 3 << 30;
const CHECKED: u32 = 1 << 30;
const SEVERAL: u32 = 2 << 30;

impl Head {
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

#[derive(Debug)]
struct Tuple<const N: usize> {
    mask: [u64; N],
    heads: Keyed<N, Head>,
    /// Entries per rank; the highest orders the tuples.
    ranks: BTreeMap<i32, usize>,
}

/// The tuple of a mask, and how many pieces of entries have the mask.
#[derive(Debug, Clone, Copy)]
struct Use {
    tuple: u32,
    count: usize,
}

/// The lookup structure for keys of `N` limbs.
#[derive(Debug)]
pub struct TupleSpace<const N: usize> {
    rows: Rows<N>,
    tuples: Vec<Tuple<N>>,
    by_mask: KeyMap<N, Use>,
    /// Highest rank and tuple, falling.
    order: Vec<(i32, u32)>,
    /// Places in `tuples` not in use.
    free: Vec<u32>,
    lists: Vec<List>,
    free_lists: Vec<u32>,
    /// Pieces of entries, and how many there were at the last plan, with how many tuples.
    pieces: usize,
    planned: usize,
    planned_tuples: usize,
}

/// A plan is not looked for with fewer pieces.
const FEWEST: usize = 4;
/// What a new plan's cost must be at most of the old one's.
const BETTER: f64 = 0.75;

impl<const N: usize> TupleSpace<N> {
    /// For keys with these fields to be matched by ranges, with room for so many entries.
    pub fn new(fields: &[RangeField], room: usize) -> Self {
        Self::with(Rows::new(fields, room))
    }

    fn with(rows: Rows<N>) -> Self {
        TupleSpace {
            rows,
            tuples: Vec::new(),
            by_mask: KeyMap::default(),
            order: Vec::new(),
            free: Vec::new(),
            lists: Vec::new(),
            free_lists: Vec::new(),
            pieces: 0,
            planned: 0,
            planned_tuples: 0,
        }
    }

    pub fn clear(&mut self) {
        self.rows.clear();
        let rows = std::mem::replace(&mut self.rows, Rows::new(&[], 0));
        *self = Self::with(rows);
    }

    /// The entry that a key hits.
    #[inline]
    pub fn lookup(&self, key: &[u64; N]) -> Option<u32> {
        let mut found: Option<(i32, u32)> = None;
        for &(best, at) in &self.order {
            let least = found.map_or(i32::MIN, |(rank, _)| rank);
            if least > best {
                break;
            }
            let tuple = &self.tuples[at as usize];
            let Some(&head) = tuple.heads.get(&Key(and(key, &tuple.mask))) else {
                continue;
            };
            if least > head.rank {
                continue;
            }
            let hit = match head.at() {
                At::Entry(entry) => Some((head.rank, entry)),
                At::Checked(entry) => {
                    let holds = self.rows.holds(entry, key);
                    holds.then_some((head.rank, entry))
                }
                At::Several(list) => self.lists[list as usize].find(least, |entry| self.rows.holds(entry, key)),
            };
            // Of equal rank the lowest entry wins.
            if let Some((rank, entry)) = hit
                && found.is_none_or(|(r, e)| (rank, Reverse(entry)) > (r, Reverse(e)))
            {
                found = Some((rank, entry));
            }
        }
        found.map(|(_, entry)| entry)
    }

    /// The entry that was inserted with exactly this match.
    pub fn find(&self, p: &Packed) -> Option<u32> {
        self.rows.find(p)
    }

    /// Inserts an entry; its match must not be there yet.
    pub fn insert(&mut self, p: &Packed, entry: u32) {
        self.rows.insert(p, entry);
        let pieces: Vec<_> = self.rows.pieces(entry).collect();
        self.pieces += pieces.len();
        for (mask, _) in &pieces {
            if let Some(known) = self.by_mask.get_mut(&Key(*mask)) {
                known.count += 1;
                continue;
            }
            let tuple = self.choose(mask);
            self.by_mask.insert(Key(*mask), Use { tuple, count: 1 });
        }
        self.place(entry, &pieces);
        let tuples = self.order.len();
        if self.pieces >= 2 * self.planned.max(FEWEST) || tuples > 2 * self.planned_tuples.max(FEWEST) && self.pieces > self.planned * 5 / 4
        {
            self.plan();
        }
    }

    /// The tuple for a new mask: the one with most bits of those with no others, or one of its own.
    fn choose(&mut self, mask: &[u64; N]) -> u32 {
        let fits = |(_, at): &&(i32, u32)| {
            let other = &self.tuples[*at as usize].mask;
            and(other, mask) == *other
        };
        let near = self.order.iter().filter(fits);
        match near.max_by_key(|(_, at)| bits(&self.tuples[*at as usize].mask)) {
            Some((_, at)) => *at,
            None => self.tuple(*mask),
        }
    }

    /// Where the pieces of an entry are; two may have the same hash.
    fn places(&self, pieces: &[Piece<N>]) -> Vec<(u32, Key<N>)> {
        let mut out = Vec::with_capacity(2);
        for (mask, value) in pieces {
            let Some(known) = self.by_mask.get(&Key(*mask)) else {
                continue;
            };
            let tuple = &self.tuples[known.tuple as usize];
            let place = (known.tuple, Key(and(value, &tuple.mask)));
            if !out.contains(&place) {
                out.push(place);
            }
        }
        out
    }

    fn place(&mut self, entry: u32, pieces: &[Piece<N>]) {
        for (at, key) in self.places(pieces) {
            self.insert_piece(at, key, entry);
        }
    }

    /// The head of a masked key with one entry.
    fn one(&self, at: u32, entry: u32) -> Head {
        let decided = !self.rows.ranged(entry) && *self.rows.mask(entry) == self.tuples[at as usize].mask;
        Head { rank: self.rows.rank(entry), at: if decided { entry } else { entry | CHECKED } }
    }

    fn insert_piece(&mut self, at: u32, key: Key<N>, entry: u32) {
        let new = self.one(at, entry);
        let tuple = &mut self.tuples[at as usize];
        if let Some(head) = tuple.heads.get_mut(&key) {
            let list = match head.at() {
                At::Several(list) => list,
                At::Entry(first) | At::Checked(first) => {
                    let list = self.free_lists.pop().unwrap_or_else(|| {
                        self.lists.push(List::default());
                        (self.lists.len() - 1) as u32
                    });
                    self.lists[list as usize].insert(head.rank, first);
                    head.at = list | SEVERAL;
                    list
                }
            };
            self.lists[list as usize].insert(new.rank, entry);
            head.rank = head.rank.max(new.rank);
        } else {
            tuple.heads.insert(key, new);
        }
        let before = top(tuple);
        *tuple.ranks.entry(new.rank).or_insert(0) += 1;
        self.reorder(at, before);
    }

    /// Removes an entry.
    pub fn remove(&mut self, entry: u32) {
        let pieces: Vec<_> = self.rows.pieces(entry).collect();
        self.pieces -= pieces.len();
        for (at, key) in self.places(&pieces) {
            self.remove_piece(at, &key, entry);
        }
        for (mask, _) in pieces {
            if let Some(known) = self.by_mask.get_mut(&Key(mask)) {
                known.count -= 1;
                if known.count == 0 {
                    self.by_mask.remove(&Key(mask));
                }
            }
        }
        self.rows.remove(entry);
    }

    fn remove_piece(&mut self, at: u32, key: &Key<N>, entry: u32) {
        let rank = self.rows.rank(entry);
        let tuple = &mut self.tuples[at as usize];
        let Some(head) = tuple.heads.get_mut(key) else {
            return;
        };
        match head.at() {
            At::Entry(_) | At::Checked(_) => {
                tuple.heads.remove(key);
            }
            At::Several(list) => {
                let all = &mut self.lists[list as usize];
                all.remove(rank, entry);
                if let Some((rank, first)) = all.first() {
                    head.rank = rank;
                    if all.len() == 1 {
                        *all = List::default();
                        self.free_lists.push(list);
                        let one = self.one(at, first);
                        self.tuples[at as usize].heads.insert(*key, one);
                    }
                }
            }
        }
        let tuple = &mut self.tuples[at as usize];
        let before = top(tuple);
        if let Some(n) = tuple.ranks.get_mut(&rank) {
            *n -= 1;
            if *n == 0 {
                tuple.ranks.remove(&rank);
            }
        }
        self.reorder(at, before);
    }

    /// A new tuple; an empty one has no place in the order.
    fn tuple(&mut self, mask: [u64; N]) -> u32 {
        let new = Tuple { mask, heads: Keyed::default(), ranks: BTreeMap::new() };
        match self.free.pop() {
            Some(at) => {
                self.tuples[at as usize] = new;
                at
            }
            None => {
                self.tuples.push(new);
                (self.tuples.len() - 1) as u32
            }
        }
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
                self.tuples[at as usize].heads = Keyed::default();
                self.free.push(at);
            }
        }
    }

    /// Decides which masks share a tuple, and moves the entries if that saves enough.
    fn plan(&mut self) {
        let mut masks: Vec<Masked<N>> =
            self.by_mask.iter().map(|(mask, known)| Masked { mask: mask.0, count: known.count, sample: Vec::new() }).collect();
        masks.sort_by_key(|m| m.mask);
        let number = |mask: &[u64; N]| masks.binary_search_by_key(mask, |m| m.mask);
        let step = (self.pieces / sample(masks.len())).max(1);
        let mut values = vec![Vec::new(); masks.len()];
        for entry in self.rows.entries().step_by(step) {
            for (mask, value) in self.rows.pieces(entry) {
                if let Ok(i) = number(&mask) {
                    values[i].push(value);
                }
            }
        }
        let mut now: BTreeMap<u32, ([u64; N], Vec<usize>)> = BTreeMap::new();
        for (i, m) in masks.iter().enumerate() {
            if let Some(known) = self.by_mask.get(&Key(m.mask)) {
                let shared = self.tuples[known.tuple as usize].mask;
                now.entry(known.tuple).or_insert((shared, Vec::new())).1.push(i);
            }
        }
        for (m, sample) in masks.iter_mut().zip(values) {
            m.sample = sample;
        }
        let now: Vec<_> = now.into_values().collect();
        let new = plan(&masks);
        let cost: f64 = new.iter().map(|g| g.cost).sum();
        if cost <= BETTER * total(&masks, &now) {
            self.tuples.clear();
            self.order.clear();
            self.free.clear();
            self.lists.clear();
            self.free_lists.clear();
            for group in new {
                let tuple = self.tuple(group.mask);
                for m in group.members {
                    if let Some(known) = self.by_mask.get_mut(&Key(masks[m].mask)) {
                        known.tuple = tuple;
                    }
                }
            }
            let entries: Vec<u32> = self.rows.entries().collect();
            for entry in entries {
                let pieces: Vec<_> = self.rows.pieces(entry).collect();
                self.place(entry, &pieces);
            }
        }
        self.planned = self.pieces;
        self.planned_tuples = self.order.len();
    }
}

/// The highest rank of a tuple's entries.
fn top<const N: usize>(tuple: &Tuple<N>) -> Option<i32> {
    tuple.ranks.last_key_value().map(|(rank, _)| *rank)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::range::RangeCheck;
    use proptest::prelude::*;

    /// A match of two limbs, from few distinct values so that hits and overlaps are common: masks,
    /// and ranges of two fields.
    fn entry() -> impl Strategy<Value = Packed> {
        let mask = prop::sample::select(vec![0, 0xf, 0xf0, 0xff, 0xf_0000_0000, u64::MAX >> 8]);
        let range = |limb, shift| {
            prop::option::of((0..8_u64, 0..8_u64)).prop_map(move |bounds| {
                bounds.map(|(a, b)| RangeCheck { limb, shift, width: 3, low: vec![a.min(b)], high: vec![a.max(b)] })
            })
        };
        (mask.clone(), mask, 0..4_u64, 0..4_u64, 0..4_i32, range(1, 56), range(0, 60)).prop_map(|(m0, m1, v0, v1, rank, first, second)| {
            Packed {
                value: vec![(v0 | v0 << 32) & m0, (v1 | v1 << 4) & m1],
                mask: vec![m0, m1],
                ranges: first.into_iter().chain(second).collect(),
                rank,
            }
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
            let field = |limb, shift| RangeField { limb, shift, width: 3 };
            let mut index = TupleSpace::<2>::new(&[field(1, 56), field(0, 60)], 0);
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
                        let (_, entry) = list.remove(k);
                        index.remove(entry);
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
            for (_, entry) in std::mem::take(&mut list) {
                index.remove(entry);
            }
            prop_assert!(index.order.is_empty() && index.by_mask.is_empty() && index.rows.is_empty());
            prop_assert_eq!(index.free.len(), index.tuples.len());
            prop_assert_eq!(index.free_lists.len(), index.lists.len());
        }
    }

    /// A number that looks random.
    fn mix(n: u64) -> u64 {
        let z = (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z ^ z >> 27
    }

    /// An entry of one of 225 masks, and a key that it matches.
    fn of_many_masks(n: u64) -> (Packed, [u64; 2]) {
        let r = mix(n);
        let top = |bits: u64| !(u64::MAX >> bits);
        let mask = vec![top(8 + r % 15), top(20 + r / 15 % 15)];
        let key = [mix(r), mix(r + 1)];
        let value = vec![key[0] & mask[0], key[1] & mask[1]];
        let packed = Packed { value, mask, ranges: Vec::new(), rank: (r % 100) as i32 };
        (packed, key)
    }

    /// Masks that come in any order end in few tables, also when most of the entries go again.
    #[test]
    fn many_masks_share_few_tables() {
        let mut index = TupleSpace::<2>::new(&[], 0);
        let entries: Vec<_> = (0..4000).map(of_many_masks).collect();
        let mut live: Vec<u32> = Vec::new();
        let check = |index: &TupleSpace<2>, live: &[u32]| {
            for (_, key) in entries.iter().step_by(40) {
                let best = live
                    .iter()
                    .filter(|e| matches(&entries[**e as usize].0, key))
                    .max_by_key(|e| (entries[**e as usize].0.rank, Reverse(**e)));
                assert_eq!(index.lookup(key), best.copied());
            }
        };
        for (entry, (p, _)) in entries.iter().enumerate() {
            if index.find(p).is_none() {
                index.insert(p, entry as u32);
                live.push(entry as u32);
            }
        }
        assert!(index.by_mask.len() > 200, "{}", index.by_mask.len());
        assert!(index.order.len() <= 4, "{}", index.order.len());
        check(&index, &live);
        for entry in live.split_off(500) {
            index.remove(entry);
        }
        check(&index, &live);
    }

    /// Masks stay apart where the bits that they have in common tell no entries apart.
    #[test]
    fn masks_without_common_bits_stay_apart() {
        let mut index = TupleSpace::<2>::new(&[], 0);
        for n in 0..2000_u64 {
            let limb = (n % 2) as usize;
            let (mut value, mut mask) = (vec![0; 2], vec![0; 2]);
            (value[limb], mask[limb]) = (mix(n), u64::MAX);
            let p = Packed { value, mask, ranges: Vec::new(), rank: 1 };
            index.insert(&p, n as u32);
        }
        assert_eq!(index.order.len(), 2);
        let longest = index.lists.iter().map(List::len).max();
        assert!(longest.is_none_or(|n| n < 8), "{longest:?}");
        assert_eq!(index.lookup(&[mix(10), mix(11)]), Some(10));
    }
}
