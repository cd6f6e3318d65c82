//! What entries match, a row of words each: to check a packet against an entry whose hash it has,
//! and to find the entry that a client names.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault};

use rustc_hash::FxHasher;

use super::key::{array, Key, Packed};
use super::range::{cover, RangeCheck, COVERED_WIDTH};
use super::roomy;
use super::shards::Shards;

type FxMap<K, V> = HashMap<K, V, BuildHasherDefault<FxHasher>>;

/// A key field that is matched by ranges.
#[derive(Debug, Clone, Copy)]
pub struct RangeField {
    pub limb: usize,
    pub shift: u32,
    pub width: u32,
}

/// Where the bounds of such a field are in a row.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    limb: usize,
    shift: u32,
    ones: u64,
    word: usize,
    /// Both in one word.
    short: bool,
}

impl Bounds {
    #[inline]
    fn of(&self, row: &[u64]) -> (u64, u64) {
        match self.short {
            true => (row[self.word] & 0xffff_ffff, row[self.word] >> 32),
            false => (row[self.word], row[self.word + 1]),
        }
    }

    fn set(&self, row: &mut [u64], low: u64, high: u64) {
        match self.short {
            true => row[self.word] = low | high << 32,
            false => (row[self.word], row[self.word + 1]) = (low, high),
        }
    }
}

/// What rows have in common.
#[derive(Debug, Clone, Copy)]
struct Shape<const N: usize> {
    mask: [u64; N],
    /// The fields with a range, a bit each; [`WIDE`] for those that have no words in the row.
    ranges: u64,
    uses: usize,
}

const WIDE: u64 = 1 << 63;
/// Range fields with bounds in the row; a bit each in [`Shape::ranges`].
const FIELDS: usize = 32;
/// Shape and rank of no entry.
const NONE: u64 = u64::MAX;

/// Rows of shape and rank, the value's limbs, and the bounds of ranges. See the module.
#[derive(Debug)]
pub struct Rows<const N: usize> {
    bounds: Vec<Bounds>,
    stride: usize,
    words: Vec<u64>,
    shapes: Vec<Shape<N>>,
    free: Vec<u32>,
    by_shape: FxMap<(Key<N>, u64), u32>,
    /// By entry, ranges without words in the row.
    wide: FxMap<u32, Box<[RangeCheck]>>,
    /// All entries, by their rows.
    same: Shards<u32>,
}

fn hash(row: &[u64]) -> u64 {
    BuildHasherDefault::<FxHasher>::default().hash_one(row)
}

/// A mask and a value under it.
pub type Piece<const N: usize> = ([u64; N], [u64; N]);

impl<const N: usize> Rows<N> {
    pub fn new(fields: &[RangeField], room: usize) -> Rows<N> {
        let mut stride = 1 + N;
        let narrow = fields.iter().filter(|f| f.width <= COVERED_WIDTH);
        let place = |f: &RangeField| {
            let word = stride;
            let short = f.width <= 32;
            stride += if short { 1 } else { 2 };
            Bounds { limb: f.limb, shift: f.shift, ones: u64::MAX >> (64 - f.width.clamp(1, 64)), word, short }
        };
        Rows {
            bounds: narrow.take(FIELDS).map(place).collect(),
            stride,
            words: roomy(room * stride),
            shapes: Vec::new(),
            free: Vec::new(),
            by_shape: FxMap::default(),
            wide: FxMap::default(),
            same: Shards::default(),
        }
    }

    pub fn clear(&mut self) {
        let bounds = std::mem::take(&mut self.bounds);
        *self = Rows { bounds, stride: self.stride, ..Rows::new(&[], 0) };
    }

    #[inline]
    fn row(&self, entry: u32) -> &[u64] {
        let at = entry as usize * self.stride;
        &self.words[at..at + self.stride]
    }

    fn shape(&self, row: &[u64]) -> &Shape<N> {
        &self.shapes[row[0] as u32 as usize]
    }

    pub fn rank(&self, entry: u32) -> i32 {
        (self.row(entry)[0] >> 32) as i32
    }

    pub fn mask(&self, entry: u32) -> &[u64; N] {
        &self.shape(self.row(entry)).mask
    }

    /// The entry has ranges.
    pub fn ranged(&self, entry: u32) -> bool {
        self.shape(self.row(entry)).ranges != 0
    }

    /// Entries in use.
    pub fn entries(&self) -> impl Iterator<Item = u32> + '_ {
        let rows = self.words.chunks_exact(self.stride).enumerate();
        rows.filter(|(_, row)| row[0] != NONE).map(|(entry, _)| entry as u32)
    }

    /// The packet matches the entry.
    #[inline]
    pub fn holds(&self, entry: u32, key: &[u64; N]) -> bool {
        let row = self.row(entry);
        let shape = self.shape(row);
        // Without a branch for each field: a wrong guess would wait for the row, and while the guess
        // is that the entry is none, the next of a list are fetched already.
        let mut other = 0;
        for ((k, m), v) in key.iter().zip(&shape.mask).zip(&row[1..]) {
            other |= (k & m) ^ v;
        }
        for b in &self.bounds {
            let v = key[b.limb] >> b.shift & b.ones;
            let (low, high) = b.of(row);
            other |= u64::from(v < low) | u64::from(high < v);
        }
        if other != 0 {
            return false;
        }
        shape.ranges & WIDE == 0 || self.wide.get(&entry).is_none_or(|all| all.iter().all(|r| r.holds(key)))
    }

    /// A match's row but for its shape, the fields that have ranges, and the ranges that have no
    /// words in it.
    fn make(&self, p: &Packed) -> (Vec<u64>, u64, Vec<RangeCheck>) {
        let mut row = vec![0; self.stride];
        row[0] = u64::from(p.rank as u32) << 32;
        row[1..=N].copy_from_slice(&array::<N>(&p.value));
        for b in &self.bounds {
            b.set(&mut row, 0, b.ones);
        }
        let (mut ranges, mut wide) = (0, Vec::new());
        for r in &p.ranges {
            let here = |b: &Bounds| (b.limb, b.shift) == (r.limb, r.shift);
            match self.bounds.iter().position(here) {
                Some(i) => {
                    self.bounds[i].set(&mut row, r.low[0], r.high[0]);
                    ranges |= 1 << i;
                }
                None => {
                    ranges |= WIDE;
                    wide.push(r.clone());
                }
            }
        }
        (row, ranges, wide)
    }

    /// The entry with exactly this match.
    pub fn find(&self, p: &Packed) -> Option<u32> {
        let (mut row, ranges, wide) = self.make(p);
        let shape = self.by_shape.get(&(Key(array(&p.mask)), ranges))?;
        row[0] |= u64::from(*shape);
        let same = |entry: &u32| *self.row(*entry) == row && (wide.is_empty() || self.wide.get(entry).is_some_and(|w| **w == wide));
        self.same.find(hash(&row), same).copied()
    }

    /// Adds an entry whose match is not there yet.
    pub fn insert(&mut self, p: &Packed, entry: u32) {
        let (mut row, ranges, wide) = self.make(p);
        let mask = array(&p.mask);
        let shape = match self.by_shape.get(&(Key(mask), ranges)) {
            Some(shape) => *shape,
            None => {
                let new = Shape { mask, ranges, uses: 0 };
                let at = match self.free.pop() {
                    Some(at) => {
                        self.shapes[at as usize] = new;
                        at
                    }
                    None => {
                        self.shapes.push(new);
                        (self.shapes.len() - 1) as u32
                    }
                };
                self.by_shape.insert((Key(mask), ranges), at);
                at
            }
        };
        self.shapes[shape as usize].uses += 1;
        row[0] |= u64::from(shape);
        let at = entry as usize * self.stride;
        if self.words.len() < at + self.stride {
            self.words.resize(at + self.stride, NONE);
        }
        self.words[at..at + self.stride].copy_from_slice(&row);
        if !wide.is_empty() {
            self.wide.insert(entry, wide.into_boxed_slice());
        }
        let (words, stride) = (&self.words, self.stride);
        self.same.insert(hash(&row), entry, |other| {
            let at = *other as usize * stride;
            hash(&words[at..at + stride])
        });
    }

    /// Removes an entry.
    pub fn remove(&mut self, entry: u32) {
        let row = self.row(entry).to_vec();
        self.same.remove(hash(&row), |other| *other == entry);
        self.wide.remove(&entry);
        let at = row[0] as u32;
        let shape = &mut self.shapes[at as usize];
        shape.uses -= 1;
        if shape.uses == 0 {
            self.by_shape.remove(&(Key(shape.mask), shape.ranges));
            self.free.push(at);
        }
        self.words[entry as usize * self.stride] = NONE;
    }

    /// Masks and values that every packet of the entry has one of: with the narrowest of its ranges,
    /// since it leaves the fewest entries behind them.
    pub fn pieces(&self, entry: u32) -> impl Iterator<Item = Piece<N>> {
        let row = self.row(entry);
        let shape = *self.shape(row);
        let value = array::<N>(&row[1..=N]);
        let has = |(i, b): (usize, &Bounds)| (shape.ranges >> i & 1 != 0).then(|| (*b, b.of(row)));
        let ranges = self.bounds.iter().enumerate().filter_map(has);
        let narrowest = ranges.min_by_key(|(_, (low, high))| high.saturating_sub(*low));
        let plain = narrowest.is_none().then_some((shape.mask, value));
        let covered = narrowest.into_iter().flat_map(move |(b, (low, high))| {
            cover(b.ones, low, high).map(move |(v, m)| {
                let (mut mask, mut value) = (shape.mask, value);
                mask[b.limb] |= m << b.shift;
                value[b.limb] |= v << b.shift;
                (mask, value)
            })
        });
        plain.into_iter().chain(covered)
    }

    /// Nothing is left.
    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.by_shape.is_empty() && self.wide.is_empty() && self.same.is_empty() && self.entries().next().is_none()
    }
}
