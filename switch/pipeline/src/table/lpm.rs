//! Lookup in an LPM table: a trie over the prefix field for each combination of the exact fields.

use super::index::{array, Key, KeyMap, Packed, TupleSpace};
use super::trie::{Path, Prefix, Trie};
use super::NO_ENTRY;

/// Where a prefix field lies in the packed key.
#[derive(Debug, Clone, Copy)]
pub struct PrefixField {
    pub limb: usize,
    pub shift: u32,
    pub width: u32,
}

/// Prefix fields of more bits are left to the tuple space.
pub const WIDEST: u32 = u128::BITS;

impl PrefixField {
    fn narrow(&self, key: &[u64]) -> u64 {
        key[self.limb] << (u64::BITS - self.width - self.shift)
    }

    fn wide(&self, key: &[u64]) -> u128 {
        let (low, high) = (key[self.limb], key.get(self.limb + 1).copied().unwrap_or(0));
        (u128::from(high) << 64 | u128::from(low)) << (u128::BITS - self.width)
    }

    /// A mask with only the first `length` of the field's bits.
    fn mask<const N: usize>(&self, length: u32) -> [u64; N] {
        let mut out = [0; N];
        let bits = u128::MAX.first(length) >> (u128::BITS - self.width) << self.shift;
        out[self.limb] = bits as u64;
        if let Some(high) = out.get_mut(self.limb + 1) {
            *high = (bits >> 64) as u64;
        }
        out
    }
}

/// The tries of one width of path.
#[derive(Debug)]
struct Tries<const N: usize, P> {
    /// For the one combination of no exact fields.
    only: Trie<P>,
    by_exact: KeyMap<N, Trie<P>>,
    /// By entry.
    prefixes: Vec<Prefix<P>>,
}

impl<const N: usize, P: Path> Default for Tries<N, P> {
    fn default() -> Self {
        Tries {
            only: Trie::default(),
            by_exact: KeyMap::default(),
            prefixes: Vec::new(),
        }
    }
}

#[derive(Debug)]
enum Form<const N: usize> {
    Narrow(Tries<N, u64>),
    Wide(Tries<N, u128>),
}

macro_rules! tries {
    ($lpm:expr, $key:expr, $tries:ident, $path:ident => $body:expr) => {
        match &mut $lpm.form {
            Form::Narrow($tries) => {
                let $path = $lpm.field.narrow($key);
                $body
            }
            Form::Wide($tries) => {
                let $path = $lpm.field.wide($key);
                $body
            }
        }
    };
}

/// See the module.
#[derive(Debug)]
pub struct Lpm<const N: usize> {
    field: PrefixField,
    /// The bits of all exact fields; `None` when there are none.
    exact: Option<[u64; N]>,
    form: Form<N>,
}

impl<const N: usize> Lpm<N> {
    pub fn new(field: PrefixField, exact: Option<[u64; N]>) -> Lpm<N> {
        let form = match field.width <= u64::BITS {
            true => Form::Narrow(Tries::default()),
            false => Form::Wide(Tries::default()),
        };
        Lpm { field, exact, form }
    }

    pub fn clear(&mut self) {
        *self = Lpm::new(self.field, self.exact);
    }

    fn exact_key(exact: &[u64; N], key: &[u64; N]) -> Key<N> {
        let mut out = *key;
        for (k, m) in out.iter_mut().zip(exact) {
            *k &= m;
        }
        Key(out)
    }

    /// The entry that a key hits.
    #[inline]
    pub fn lookup(&self, key: &[u64; N]) -> Option<u32> {
        let entry = match &self.form {
            Form::Narrow(tries) => Self::descend(tries, &self.exact, key, self.field.narrow(key)),
            Form::Wide(tries) => Self::descend(tries, &self.exact, key, self.field.wide(key)),
        };
        (entry != NO_ENTRY).then_some(entry)
    }

    #[inline]
    fn descend<P: Path>(
        tries: &Tries<N, P>,
        exact: &Option<[u64; N]>,
        key: &[u64; N],
        path: P,
    ) -> u32 {
        match exact {
            None => tries.only.lookup(path, &tries.prefixes),
            Some(exact) => match tries.by_exact.get(&Self::exact_key(exact, key)) {
                Some(trie) => trie.lookup(path, &tries.prefixes),
                None => NO_ENTRY,
            },
        }
    }

    /// Adds an entry whose match is not there yet.
    pub fn insert(&mut self, p: &Packed, entry: u32) {
        let (key, length) = (array(&p.value), p.rank.max(0) as u32);
        let (exact, slot) = (self.exact, entry as usize);
        tries!(self, &key, tries, bits => {
            if slot >= tries.prefixes.len() {
                tries.prefixes.resize(slot + 1, Prefix::default());
            }
            tries.prefixes[slot] = Prefix { bits, length };
            let trie = match exact {
                None => &mut tries.only,
                Some(exact) => tries.by_exact.entry(Self::exact_key(&exact, &key)).or_default(),
            };
            trie.insert(entry, &tries.prefixes);
        });
    }

    /// Removes an entry; `all` still finds the others of the table.
    pub fn remove(&mut self, p: &Packed, entry: u32, all: &TupleSpace<N>) {
        let key = array(&p.value);
        let (exact, field) = (self.exact, self.field);
        let shorter = |n: u32| {
            let mut mask = field.mask::<N>(n);
            for (m, e) in mask.iter_mut().zip(exact.iter().flatten()) {
                *m |= e;
            }
            all.get(mask, Self::exact_key(&mask, &key).0)
        };
        // The path was noted when the entry was added.
        tries!(self, &key, tries, _path => {
            match exact {
                None => tries.only.remove(entry, &tries.prefixes, shorter),
                Some(exact) => {
                    let at = Self::exact_key(&exact, &key);
                    if let Some(trie) = tries.by_exact.get_mut(&at) {
                        trie.remove(entry, &tries.prefixes, shorter);
                        if trie.is_empty() {
                            tries.by_exact.remove(&at);
                        }
                    }
                }
            }
        });
    }
}
