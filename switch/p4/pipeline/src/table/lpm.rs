//! Lookup in an LPM table: a trie over the prefix field for each combination of the exact fields.

use super::key::{array, Key, Keyed, Packed};
use super::trie::{Path, Record, Root, Tries};
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
    fn short(&self, key: &[u64]) -> u32 {
        ((key[self.limb] >> self.shift) as u32) << (u32::BITS - self.width)
    }

    fn narrow(&self, key: &[u64]) -> u64 {
        key[self.limb] << (u64::BITS - self.width - self.shift)
    }

    fn wide(&self, key: &[u64]) -> u128 {
        let (low, high) = (key[self.limb], key.get(self.limb + 1).copied().unwrap_or(0));
        (u128::from(high) << 64 | u128::from(low)) << (u128::BITS - self.width)
    }
}

/// The tries of one width of path.
#[derive(Debug)]
struct Forest<const N: usize, P> {
    tries: Tries<P>,
    /// For the one combination of no exact fields.
    only: Root<P>,
    by_exact: Keyed<N, Root<P>>,
}

impl<const N: usize, P: Path> Default for Forest<N, P> {
    fn default() -> Self {
        Forest { tries: Tries::default(), only: Root::default(), by_exact: Keyed::default() }
    }
}

impl<const N: usize, P: Path> Forest<N, P> {
    /// The trie of a combination of exact fields.
    #[inline]
    fn root(&self, exact: Option<Key<N>>) -> Option<&Root<P>> {
        match exact {
            None => Some(&self.only),
            Some(exact) => self.by_exact.get(&exact),
        }
    }

    #[inline]
    fn lookup(&self, exact: Option<Key<N>>, path: P) -> Option<u32> {
        let entry = self.tries.lookup(self.root(exact)?, path);
        (entry != NO_ENTRY).then_some(entry)
    }

    fn get(&self, exact: Option<Key<N>>, path: P, length: u32) -> Option<u32> {
        self.root(exact)?.get(path, length)
    }

    fn insert(&mut self, exact: Option<Key<N>>, new: Record<P>) {
        let root = match exact {
            None => &mut self.only,
            Some(exact) => self.by_exact.get_or_default(exact),
        };
        self.tries.insert(root, new);
    }

    fn remove(&mut self, exact: Option<Key<N>>, old: Record<P>) {
        let Some(exact) = exact else {
            return self.tries.remove(&mut self.only, old);
        };
        if let Some(root) = self.by_exact.get_mut(&exact) {
            self.tries.remove(root, old);
            if root.is_empty() {
                self.by_exact.remove(&exact);
            }
        }
    }
}

#[derive(Debug)]
enum Form<const N: usize> {
    Short(Forest<N, u32>),
    Narrow(Forest<N, u64>),
    Wide(Forest<N, u128>),
}

/// Does the same with the tries of whatever width, and the path of a key.
macro_rules! forest {
    ($form:expr, $field:expr, $key:expr, $forest:ident, $path:ident => $body:expr) => {
        match $form {
            Form::Short($forest) => {
                let $path = $field.short($key);
                $body
            }
            Form::Narrow($forest) => {
                let $path = $field.narrow($key);
                $body
            }
            Form::Wide($forest) => {
                let $path = $field.wide($key);
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
        let form = match field.width {
            0..=32 => Form::Short(Forest::default()),
            33..=64 => Form::Narrow(Forest::default()),
            _ => Form::Wide(Forest::default()),
        };
        Lpm { field, exact, form }
    }

    pub fn clear(&mut self) {
        *self = Lpm::new(self.field, self.exact);
    }

    #[inline]
    fn exact_key(&self, key: &[u64; N]) -> Option<Key<N>> {
        let mut out = *key;
        for (k, m) in out.iter_mut().zip(self.exact.as_ref()?) {
            *k &= m;
        }
        Some(Key(out))
    }

    /// The entry that a key hits.
    #[inline]
    pub fn lookup(&self, key: &[u64; N]) -> Option<u32> {
        let exact = self.exact_key(key);
        forest!(&self.form, self.field, key, forest, path => forest.lookup(exact, path))
    }

    /// The entry that was inserted with exactly this match.
    pub fn find(&self, p: &Packed) -> Option<u32> {
        let (key, length) = (array(&p.value), p.rank.max(0) as u32);
        let exact = self.exact_key(&key);
        forest!(&self.form, self.field, &key, forest, path => forest.get(exact, path, length))
    }

    /// Adds an entry whose match is not there yet.
    pub fn insert(&mut self, p: &Packed, entry: u32) {
        let (key, length) = (array(&p.value), p.rank.max(0) as u32);
        let exact = self.exact_key(&key);
        forest!(&mut self.form, self.field, &key, forest, bits => {
            forest.insert(exact, Record { bits, length, entry });
        });
    }

    /// Removes an entry that was inserted with this match.
    pub fn remove(&mut self, p: &Packed, entry: u32) {
        let (key, length) = (array(&p.value), p.rank.max(0) as u32);
        let exact = self.exact_key(&key);
        forest!(&mut self.form, self.field, &key, forest, bits => {
            forest.remove(exact, Record { bits, length, entry });
        });
    }
}
