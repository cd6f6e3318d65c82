//! Longest prefix match: a trie whose nodes take as many bits a step as their prefixes fill, with
//! steps that have no choice left out, and buckets of a few prefixes for leaves (Nilsson and
//! Karlsson 1999, "LC-trie"; Srinivasan and Varghese 1999 for the expansion within a step).
//!
//! A place of a node is one word: nothing, an entry, a bucket, or a further node. A prefix that ends
//! within a node's step covers several of its places. The longest such is the place's *cover*: the
//! word itself when nothing else is there, the last of the bucket's prefixes, or a word of the
//! further node. So n random prefixes take a first node of about n places and a bucket, whatever the
//! key's width: two cache lines.
//!
//! All prefixes stand in a sorted map, too. A node is built anew from it when its prefixes have
//! doubled, or when a quarter is left, so that an update costs amortised O(1) nodes. Nodes of very many
//! prefixes stay as they are, so that an update costs at most `2 ^ MOST` places and prefixes.

use std::collections::BTreeMap;

use super::NO_ENTRY;

/// Bits a node decides at most.
const MOST: u32 = 16;
/// A node with more prefixes is not built anew when they double, nor when fewer than [`FEW`] are left: packets would wait for that.
const MANY: u32 = 1 << 15;
const FEW: u32 = 1 << 13;
/// Prefixes in a bucket at most.
const BUCKET: usize = 8;

/// A key, left-aligned: 32 bits for IPv4, 128 for IPv6.
pub trait Path: Copy + Ord + Default + std::fmt::Debug {
    const BITS: u32;
    /// The `bits` bits from bit `depth` on; at least one, and within the key.
    fn place(self, depth: u32, bits: u32) -> usize;
    /// How many leading bits two keys share.
    fn shared(self, other: Self) -> u32;
    /// The first `n` bits, others zero.
    fn first(self, n: u32) -> Self;
    /// The first `n` bits, others one.
    fn last(self, n: u32) -> Self;
}

macro_rules! path {
    ($t:ty) => {
        impl Path for $t {
            const BITS: u32 = <$t>::BITS;
            #[inline(always)]
            fn place(self, depth: u32, bits: u32) -> usize {
                (self << depth >> (<$t>::BITS - bits)) as usize
            }
            #[inline(always)]
            fn shared(self, other: Self) -> u32 {
                (self ^ other).leading_zeros()
            }
            #[inline(always)]
            fn first(self, n: u32) -> Self {
                self & !<$t>::MAX.checked_shr(n).unwrap_or(0)
            }
            #[inline(always)]
            fn last(self, n: u32) -> Self {
                self | <$t>::MAX.checked_shr(n).unwrap_or(0)
            }
        }
    };
}
path!(u32);
path!(u64);
path!(u128);

/// A place in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place(u32);

/// What a [`Place`] holds.
enum Holds {
    Nothing,
    /// The cover alone.
    Entry(u32),
    /// So many of the records from there on.
    Bucket(usize, usize),
    Node(usize),
}

const KIND: u32 = 3 << 30;
const IS_BUCKET: u32 = 1 << 30;
const IS_NODE: u32 = 2 << 30;

impl Place {
    const NOTHING: Place = Place(0);

    fn entry(entry: u32) -> Place {
        Place(entry + 1)
    }

    fn cover(cover: u32) -> Place {
        match cover {
            NO_ENTRY => Place::NOTHING,
            entry => Place::entry(entry),
        }
    }

    #[inline(always)]
    fn holds(self) -> Holds {
        let index = self.0 & !KIND;
        match self.0 & KIND {
            0 if index == 0 => Holds::Nothing,
            0 => Holds::Entry(index - 1),
            IS_BUCKET => Holds::Bucket((index >> 3) as usize, (index & 7) as usize + 1),
            _ => Holds::Node(index as usize),
        }
    }
}

/// A prefix and its entry.
#[derive(Debug, Clone, Copy, Default)]
pub struct Record<P> {
    pub bits: P,
    pub length: u32,
    pub entry: u32,
}

#[derive(Debug, Clone, Copy)]
struct Node<P> {
    /// The bits that lead here.
    prefix: P,
    /// Its places in [`Tries::places`].
    first: u32,
    /// The cover of the place that holds this node.
    cover: u32,
    depth: u8,
    bits: u8,
    /// Prefixes below.
    count: u32,
    /// With more or with fewer than these it is built anew.
    most: u32,
    least: u32,
}

impl<P: Path> Node<P> {
    fn end(&self) -> u32 {
        u32::from(self.depth) + u32::from(self.bits)
    }

    /// The index of the place that decides `bits`.
    #[inline(always)]
    fn place(&self, bits: P) -> usize {
        self.first as usize + bits.place(self.depth.into(), self.bits.into())
    }

    /// The indices of the places that a prefix covers which ends in this node.
    fn covered(&self, prefix: &Record<P>) -> std::ops::Range<usize> {
        let first = self.place(prefix.bits);
        first..first + (1 << (self.end() - prefix.length))
    }
}

/// The prefixes of one trie, and where its nodes begin.
#[derive(Debug)]
pub struct Root<P> {
    place: Place,
    all: BTreeMap<(P, u8), u32>,
}

impl<P: Path> Default for Root<P> {
    fn default() -> Self {
        Root { place: Place::NOTHING, all: BTreeMap::new() }
    }
}

impl<P: Path> Root<P> {
    /// No prefix is left.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The entry of exactly this prefix.
    pub fn get(&self, bits: P, length: u32) -> Option<u32> {
        self.all.get(&(bits.first(length), length as u8)).copied()
    }
}

/// Pieces of an array, given and taken back by their size.
#[derive(Debug)]
struct Pieces<T> {
    items: Vec<T>,
    free: Vec<Vec<u32>>,
}

impl<T: Copy> Pieces<T> {
    fn new(sizes: usize) -> Self {
        Pieces { items: Vec::new(), free: vec![Vec::new(); sizes] }
    }

    /// `len` items, each `item`; `size` says which pieces have this length.
    fn take(&mut self, size: usize, len: usize, item: T) -> usize {
        if let Some(at) = self.free[size].pop() {
            let at = at as usize;
            self.items[at..at + len].fill(item);
            return at;
        }
        let at = self.items.len();
        self.items.resize(at + len, item);
        at
    }

    fn give(&mut self, size: usize, at: usize) {
        self.free[size].push(at as u32);
    }
}

/// The nodes of any number of tries.
#[derive(Debug)]
pub struct Tries<P> {
    nodes: Pieces<Node<P>>,
    /// Pieces by bits.
    places: Pieces<Place>,
    /// Pieces by length less one, each falling in length of prefix.
    records: Pieces<Record<P>>,
    /// Length of prefix by entry.
    lengths: Vec<u8>,
}

impl<P: Path> Default for Tries<P> {
    fn default() -> Self {
        Tries { nodes: Pieces::new(1), places: Pieces::new(MOST as usize + 1), records: Pieces::new(BUCKET), lengths: Vec::new() }
    }
}

impl<P: Path> Tries<P> {
    /// The entry of the longest prefix of `key`, [`NO_ENTRY`] when there is none.
    #[inline]
    pub fn lookup(&self, root: &Root<P>, key: P) -> u32 {
        let mut place = root.place;
        let mut best = NO_ENTRY;
        loop {
            match place.holds() {
                Holds::Nothing => return best,
                Holds::Entry(entry) => return entry,
                Holds::Bucket(at, n) => {
                    for r in &self.records.items[at..at + n] {
                        if key.shared(r.bits) >= r.length {
                            return r.entry;
                        }
                    }
                    return best;
                }
                Holds::Node(at) => {
                    let node = &self.nodes.items[at];
                    if node.cover != NO_ENTRY {
                        best = node.cover;
                    }
                    if key.shared(node.prefix) < u32::from(node.depth) {
                        return best;
                    }
                    place = self.places.items[node.place(key)];
                }
            }
        }
    }

    /// Adds a prefix that is not there yet.
    pub fn insert(&mut self, root: &mut Root<P>, new: Record<P>) {
        let slot = new.entry as usize;
        if slot >= self.lengths.len() {
            self.lengths.resize(slot + 1, 0);
        }
        self.lengths[slot] = new.length as u8;
        root.all.insert((new.bits, new.length as u8), new.entry);
        root.place = match new.length {
            0 => self.cover(root.place, 0, &new),
            _ => self.put(root.place, 0, &new, &root.all),
        };
    }

    /// Removes a prefix that is there.
    pub fn remove(&mut self, root: &mut Root<P>, old: Record<P>) {
        root.all.remove(&(old.bits, old.length as u8));
        root.place = match old.length {
            0 => self.uncover(root.place, 0, &old, None),
            _ => self.drop(root.place, 0, &old, &root.all),
        };
    }

    /// Adds a prefix behind a place that `depth` bits lead to; it is longer.
    fn put(&mut self, place: Place, depth: u32, new: &Record<P>, all: &BTreeMap<(P, u8), u32>) -> Place {
        match place.holds() {
            Holds::Nothing => self.bucket(&[*new]),
            Holds::Entry(entry) => {
                let cover = self.record(entry, new.bits);
                self.bucket(&[*new, cover])
            }
            Holds::Bucket(at, n) => {
                let mut list = self.empty(at, n);
                let to = list.partition_point(|r| r.length > new.length);
                list.insert(to, *new);
                self.refill(list, depth)
            }
            Holds::Node(at) => {
                let node = self.nodes.items[at];
                let shared = new.bits.shared(node.prefix).min(new.length - 1);
                if shared < u32::from(node.depth) {
                    let between = self.between(at, shared);
                    return self.put(between, depth, new, all);
                }
                if node.count >= node.most {
                    return self.renew(at, all);
                }
                self.nodes.items[at].count += 1;
                let end = node.end();
                if new.length <= end {
                    for i in node.covered(new) {
                        self.places.items[i] = self.cover(self.places.items[i], end, new);
                    }
                } else {
                    let i = node.place(new.bits);
                    self.places.items[i] = self.put(self.places.items[i], end, new, all);
                }
                place
            }
        }
    }

    /// Removes a prefix behind a place that `depth` bits lead to; it is longer.
    fn drop(&mut self, place: Place, depth: u32, old: &Record<P>, all: &BTreeMap<(P, u8), u32>) -> Place {
        match place.holds() {
            Holds::Nothing | Holds::Entry(_) => place,
            Holds::Bucket(at, n) => {
                let mut list = self.empty(at, n);
                list.retain(|r| r.entry != old.entry);
                self.refill(list, depth)
            }
            Holds::Node(at) => {
                self.nodes.items[at].count -= 1;
                let node = self.nodes.items[at];
                if node.count <= node.least {
                    return self.renew(at, all);
                }
                let end = node.end();
                if old.length <= end {
                    let lengths = (u32::from(node.depth) + 1..old.length).rev();
                    let next = lengths.filter_map(|n| all.get(&(old.bits.first(n), n as u8))).next();
                    for i in node.covered(old) {
                        self.places.items[i] = self.uncover(self.places.items[i], end, old, next.copied());
                    }
                } else {
                    let i = node.place(old.bits);
                    self.places.items[i] = self.drop(self.places.items[i], end, old, all);
                }
                place
            }
        }
    }

    /// Makes a prefix the cover of a place, unless a longer one is; `end` bits lead to the place.
    fn cover(&mut self, place: Place, end: u32, new: &Record<P>) -> Place {
        match place.holds() {
            Holds::Nothing => Place::entry(new.entry),
            Holds::Entry(old) if self.longer(old, new) => place,
            Holds::Entry(_) => Place::entry(new.entry),
            Holds::Bucket(at, n) => {
                let last = &mut self.records.items[at + n - 1];
                if last.length > end {
                    let mut list = self.empty(at, n);
                    list.push(*new);
                    return self.refill(list, end);
                }
                if last.length <= new.length {
                    *last = *new;
                }
                place
            }
            Holds::Node(at) => {
                if !self.longer(self.nodes.items[at].cover, new) {
                    self.nodes.items[at].cover = new.entry;
                }
                place
            }
        }
    }

    fn longer(&self, cover: u32, new: &Record<P>) -> bool {
        let length = self.lengths.get(cover as usize);
        cover != NO_ENTRY && length.is_some_and(|l| u32::from(*l) > new.length)
    }

    /// Puts `next` in the place of a cover, where `old` is it.
    fn uncover(&mut self, place: Place, end: u32, old: &Record<P>, next: Option<u32>) -> Place {
        match place.holds() {
            Holds::Entry(entry) if entry == old.entry => Place::cover(next.unwrap_or(NO_ENTRY)),
            Holds::Nothing | Holds::Entry(_) => place,
            Holds::Bucket(at, n) => {
                if self.records.items[at + n - 1].entry != old.entry {
                    return place;
                }
                let mut list = self.empty(at, n);
                list.pop();
                if let Some(next) = next {
                    list.push(self.record(next, old.bits));
                }
                self.refill(list, end)
            }
            Holds::Node(at) => {
                let cover = &mut self.nodes.items[at].cover;
                if *cover == old.entry {
                    *cover = next.unwrap_or(NO_ENTRY);
                }
                place
            }
        }
    }

    /// The prefix of an entry, of which `bits` are a continuation.
    fn record(&self, entry: u32, bits: P) -> Record<P> {
        let length = u32::from(self.lengths[entry as usize]);
        Record { bits: bits.first(length), length, entry }
    }

    /// A bucket of 1 to [`BUCKET`] records, falling in length.
    fn bucket(&mut self, list: &[Record<P>]) -> Place {
        let n = list.len();
        let at = self.records.take(n - 1, n, Record::default());
        self.records.items[at..at + n].copy_from_slice(list);
        Place(IS_BUCKET | (at as u32) << 3 | (n as u32 - 1))
    }

    /// Gives up a bucket; what was in it.
    fn empty(&mut self, at: usize, n: usize) -> Vec<Record<P>> {
        self.records.give(n - 1, at);
        self.records.items[at..at + n].to_vec()
    }

    /// What a bucket has become; its records falling in length.
    fn refill(&mut self, mut list: Vec<Record<P>>, depth: u32) -> Place {
        let cover = list.pop_if(|last| last.length <= depth);
        list.sort_unstable_by_key(|r| (r.bits, r.length));
        self.build(&list, cover)
    }

    /// A node that begins at a bit above that of `at` and leads to it, with its cover.
    fn between(&mut self, at: usize, depth: u32) -> Place {
        let below = self.nodes.items[at];
        let bits = (u32::from(below.depth) - depth).min(4);
        let node = Node {
            prefix: below.prefix.first(depth),
            first: self.places.take(bits as usize, 1 << bits, Place::NOTHING) as u32,
            cover: below.cover,
            depth: depth as u8,
            bits: bits as u8,
            count: below.count,
            most: most(bits, below.count),
            least: least(below.count),
        };
        self.nodes.items[at].cover = NO_ENTRY;
        let to = node.place(below.prefix);
        self.places.items[to] = Place(IS_NODE | at as u32);
        let new = self.nodes.take(0, 1, node);
        Place(IS_NODE | new as u32)
    }

    /// Builds a node anew from the prefixes behind it.
    fn renew(&mut self, at: usize, all: &BTreeMap<(P, u8), u32>) -> Place {
        let node = self.nodes.items[at];
        self.free(Place(IS_NODE | at as u32));
        let (from, to) = (node.prefix, node.prefix.last(node.depth.into()));
        let list: Vec<_> = all
            .range((from, node.depth + 1)..=(to, u8::MAX))
            .map(|(&(bits, length), &entry)| Record { bits, length: length.into(), entry })
            .collect();
        let cover = (node.cover != NO_ENTRY).then(|| self.record(node.cover, node.prefix));
        self.build(&list, cover)
    }

    fn free(&mut self, place: Place) {
        match place.holds() {
            Holds::Nothing | Holds::Entry(_) => {}
            Holds::Bucket(at, n) => self.records.give(n - 1, at),
            Holds::Node(at) => {
                let node = self.nodes.items[at];
                let first = node.first as usize;
                for i in first..first + (1 << node.bits) {
                    self.free(self.places.items[i]);
                }
                self.places.give(node.bits.into(), first);
                self.nodes.give(0, at);
            }
        }
    }

    /// What a place holds: sorted prefixes longer than what leads to it, and a cover.
    fn build(&mut self, list: &[Record<P>], cover: Option<Record<P>>) -> Place {
        let entry = cover.map_or(NO_ENTRY, |c| c.entry);
        let (Some(first), Some(last)) = (list.first(), list.last()) else {
            return Place::cover(entry);
        };
        if list.len() + usize::from(cover.is_some()) <= BUCKET {
            let mut bucket = list.to_vec();
            bucket.sort_by_key(|r| std::cmp::Reverse(r.length));
            bucket.extend(cover);
            return self.bucket(&bucket);
        }
        let shortest = list.iter().map(|r| r.length).min().unwrap_or(1);
        let depth = first.bits.shared(last.bits).min(shortest - 1);
        let bits = step(list, depth);
        let count = list.len() as u32;
        let node = Node {
            prefix: first.bits.first(depth),
            first: self.places.take(bits as usize, 1 << bits, Place::NOTHING) as u32,
            cover: entry,
            depth: depth as u8,
            bits: bits as u8,
            count,
            most: most(bits, count),
            least: least(count),
        };
        let end = node.end();
        let (mut covers, longer): (Vec<_>, Vec<_>) = list.iter().partition(|r| r.length <= end);
        covers.sort_by_key(|r: &Record<P>| r.length);
        for r in covers {
            self.places.items[node.covered(&r)].fill(Place::entry(r.entry));
        }
        for same in longer.chunk_by(|a, b| node.place(a.bits) == node.place(b.bits)) {
            let i = node.place(same[0].bits);
            let cover = match self.places.items[i].holds() {
                Holds::Entry(entry) => Some(self.record(entry, same[0].bits)),
                _ => None,
            };
            self.places.items[i] = self.build(same, cover);
        }
        let at = self.nodes.take(0, 1, node);
        Place(IS_NODE | at as u32)
    }
}

/// How many prefixes a node of so many may come to have. One of most bits stays as it is, but those behind it grow.
fn most(bits: u32, count: u32) -> u32 {
    match bits == MOST || count > MANY {
        true => u32::MAX,
        false => 2 * count,
    }
}

/// How few prefixes a node of so many may come to have.
fn least(count: u32) -> u32 {
    (count / 4).min(FEW)
}

/// How many bits a node at `depth` takes: as many as leave half of its places in use.
fn step<P: Path>(list: &[Record<P>], depth: u32) -> u32 {
    // By how many bits after `depth` neighbours share.
    let mut forks = [0_usize; MOST as usize];
    for pair in list.windows(2) {
        let shared = pair[0].bits.shared(pair[1].bits).saturating_sub(depth);
        if let Some(n) = forks.get_mut(shared as usize) {
            *n += 1;
        }
    }
    let (mut used, mut best) = (1, 1);
    for bits in 1..=MOST.min(P::BITS - depth) {
        used += forks[bits as usize - 1];
        if 2 * used >= 1 << bits {
            best = bits;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Prefixes that nest and share paths often: few distinct bits far apart.
    fn key() -> impl Strategy<Value = u64> {
        (0..4_u64, 0..4_u64, 0..4_u64, any::<u64>(), any::<bool>()).prop_map(|(a, b, c, any, wild)| match wild {
            true => any,
            false => a << 60 | b << 45 | c << 31,
        })
    }

    fn check<P: Path>(ops: Vec<(bool, u64, u32)>, keys: Vec<u64>, to: impl Fn(u64) -> P) -> Result<(), TestCaseError> {
        let (mut tries, mut root) = (Tries::<P>::default(), Root::default());
        let mut list: BTreeMap<(u64, u32), u32> = BTreeMap::new();
        let record = |key, length, entry| Record { bits: to(key), length, entry };
        for (entry, (insert, key, length)) in ops.into_iter().enumerate() {
            let entry = entry as u32;
            let key = key.first(length);
            match list.get(&(key, length)).copied() {
                None if insert => {
                    tries.insert(&mut root, record(key, length, entry));
                    list.insert((key, length), entry);
                }
                Some(old) if !insert => {
                    list.remove(&(key, length));
                    tries.remove(&mut root, record(key, length, old));
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
            prop_assert_eq!(tries.lookup(&root, to(key)), naive);
        }
        // Without prefixes nothing is left.
        while let Some(((key, length), entry)) = list.pop_first() {
            tries.remove(&mut root, record(key, length, entry));
        }
        prop_assert!(root.is_empty());
        prop_assert_eq!(root.place, Place::NOTHING);
        let given =
            |free: &[Vec<u32>], len: &dyn Fn(usize) -> usize| -> usize { free.iter().enumerate().map(|(i, f)| f.len() * len(i)).sum() };
        prop_assert_eq!(given(&tries.nodes.free, &|_| 1), tries.nodes.items.len());
        prop_assert_eq!(given(&tries.places.free, &|i| 1 << i), tries.places.items.len());
        prop_assert_eq!(given(&tries.records.free, &|i| i + 1), tries.records.items.len());
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

    /// Nodes grow wide, are split and shrink: many prefixes, of which most share their first bits.
    #[test]
    fn thousands_come_and_go() {
        let (mut tries, mut root) = (Tries::<u32>::default(), Root::default());
        let mut state = 1_u64;
        let mut random = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 32) as u32
        };
        let mut list: BTreeMap<(u32, u32), u32> = BTreeMap::new();
        for entry in 0..20_000 {
            let length = 1 + random() % 32;
            let bits = (if entry % 4 == 0 { random() } else { random() >> 9 }).first(length);
            if list.insert((bits, length), entry).is_none() {
                let new = Record { bits, length, entry };
                tries.insert(&mut root, new);
            } else {
                list.insert((bits, length), root.get(bits, length).unwrap_or(NO_ENTRY));
            }
        }
        let mut order: Vec<_> = list.keys().copied().collect();
        order.sort_by_key(|(bits, length)| bits.wrapping_mul(0x9e37_79b9).wrapping_add(*length));
        for (i, (bits, length)) in order.into_iter().enumerate() {
            if i % 3000 == 0 {
                for _ in 0..3000 {
                    let key = random() >> (random() % 12);
                    let mut lengths = (0..=32).rev();
                    let naive = lengths.find_map(|n| list.get(&(key.first(n), n)));
                    let found = tries.lookup(&root, key);
                    assert_eq!(found, naive.copied().unwrap_or(NO_ENTRY), "{key:x}");
                }
            }
            let entry = list.remove(&(bits, length)).unwrap_or(NO_ENTRY);
            let old = Record { bits, length, entry };
            tries.remove(&mut root, old);
        }
        assert!(root.is_empty() && root.place == Place::NOTHING);
    }

    #[test]
    fn long_keys_to_their_last_bit() {
        let (mut tries, mut root) = (Tries::<u128>::default(), Root::default());
        for (entry, length) in [128, 127, 126, 3, 0].into_iter().enumerate() {
            let new = Record { bits: u128::MAX.first(length), length, entry: entry as u32 };
            tries.insert(&mut root, new);
        }
        for (key, entry) in [(u128::MAX, 0), (u128::MAX - 1, 1), (u128::MAX - 2, 2), (7 << 125, 3), (5, 4)] {
            assert_eq!(tries.lookup(&root, key), entry, "{key:x}");
        }
    }
}
