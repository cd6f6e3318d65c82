//! Which masks share a hash table.
//!
//! A table of masks M1, M2, ... hashes the bits that they have in common; the entries of a hash are
//! checked one by one (Daly et al. 2019, "TupleMerge"). One table fewer saves a probe, more entries
//! behind a hash cost checks. What the second would cost is counted on a sample of the entries.

use super::key::{Key, KeyMap};

/// Pieces of entries to count on.
pub const SAMPLE: usize = 512;
/// With more masks than this the sample gets smaller, so that the time of a plan has a bound.
const MASKS: usize = 1024;
/// Tables that a mask may join: those with most bits in common of the first so many.
const TABLES: usize = 64;
const TRIED: usize = 3;
/// What a probe costs, in checks.
const PROBE: f64 = 4.0;
/// Of a list longer than this only a part is checked: it is sorted by rank, so that a hit ends it.
const LIST: f64 = 16.0;
const FARTHER: f64 = 0.125;

/// A mask and how many pieces of entries have it.
#[derive(Debug, Clone)]
pub struct Masked<const N: usize> {
    pub mask: [u64; N],
    pub count: usize,
    /// Of some of them, the value.
    pub sample: Vec<[u64; N]>,
}

pub fn and<const N: usize>(a: &[u64; N], b: &[u64; N]) -> [u64; N] {
    let mut out = *a;
    for (o, b) in out.iter_mut().zip(b) {
        *o &= b;
    }
    out
}

pub fn bits<const N: usize>(mask: &[u64; N]) -> u32 {
    mask.iter().map(|m| m.count_ones()).sum()
}

/// What a lookup costs in a table of these masks, hashed by `mask`.
fn cost<const N: usize>(mask: &[u64; N], members: &[&Masked<N>], scratch: &mut KeyMap<N, u32>) -> f64 {
    scratch.clear();
    let (mut n, mut pairs) = (0_usize, 0_usize);
    for value in members.iter().flat_map(|m| &m.sample) {
        let same = scratch.entry(Key(and(value, mask))).or_insert(0);
        pairs += *same as usize;
        *same += 1;
        n += 1;
    }
    let all: usize = members.iter().map(|m| m.count).sum();
    let shared = match n {
        0 | 1 => 0.0,
        n => 2.0 * pairs as f64 / (n as f64 * (n - 1) as f64),
    };
    let list = 1.0 + shared * all.saturating_sub(1) as f64;
    PROBE + list.min(LIST) + FARTHER * (list - LIST).max(0.0)
}

/// A table to be: its mask, the indices of those that share it, and its cost.
#[derive(Debug)]
pub struct Group<const N: usize> {
    pub mask: [u64; N],
    pub members: Vec<usize>,
    pub cost: f64,
}

/// What the tables of a grouping cost together.
pub fn total<const N: usize>(masks: &[Masked<N>], groups: &[([u64; N], Vec<usize>)]) -> f64 {
    let mut scratch = KeyMap::default();
    let one = |(mask, members): &([u64; N], Vec<usize>)| {
        let members: Vec<_> = members.iter().map(|m| &masks[*m]).collect();
        cost(mask, &members, &mut scratch)
    };
    groups.iter().map(one).sum()
}

/// The masks in groups, each mask in the order of its bits to where it adds least.
pub fn plan<const N: usize>(masks: &[Masked<N>]) -> Vec<Group<N>> {
    let mut order: Vec<usize> = (0..masks.len()).collect();
    order.sort_by_key(|m| (bits(&masks[*m].mask), masks[*m].mask));
    let (mut groups, mut scratch) = (Vec::<Group<N>>::new(), KeyMap::default());
    for m in order {
        let new = &masks[m];
        let alone = cost(&new.mask, &[new], &mut scratch);
        let mut near: Vec<usize> = (0..groups.len().min(TABLES)).collect();
        near.sort_by_key(|g| std::cmp::Reverse(bits(&and(&groups[*g].mask, &new.mask))));
        near.truncate(TRIED);
        let tried = near.into_iter().map(|g| {
            let group = &groups[g];
            let mask = and(&group.mask, &new.mask);
            let members: Vec<_> = group.members.iter().map(|m| &masks[*m]).chain([new]).collect();
            (g, mask, cost(&mask, &members, &mut scratch))
        });
        let best = tried.min_by(|a, b| f64::total_cmp(&(a.2 - groups[a.0].cost), &(b.2 - groups[b.0].cost)));
        match best {
            Some((g, mask, cost)) if cost <= groups[g].cost + alone => {
                groups[g].mask = mask;
                groups[g].members.push(m);
                groups[g].cost = cost;
            }
            _ => groups.push(Group { mask: new.mask, members: vec![m], cost: alone }),
        }
    }
    groups
}

/// How many pieces to look at where there are so many masks.
pub fn sample(masks: usize) -> usize {
    (SAMPLE * MASKS / masks.max(MASKS)).max(32)
}
