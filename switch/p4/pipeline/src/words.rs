//! Headers as words of the frame: each of up to eight bytes is loaded or stored once for all fields
//! in it.

/// A field within a word.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// Slot relative to the header's base.
    pub rel: u32,
    /// Bits of the word behind it.
    pub shift: u32,
    pub mask: u64,
}

/// Whole bytes of a header, at most eight, that hold whole fields.
#[derive(Debug, Clone, Copy)]
pub struct Word {
    /// Byte of the header where it begins.
    pub at: u32,
    pub bytes: u32,
    /// End of its fields among the parts; they begin where the word before ends.
    end: u32,
}

/// A header type's fields by words.
#[derive(Debug, Clone, Default)]
pub struct Words {
    words: Vec<Word>,
    parts: Vec<Part>,
}

impl Words {
    /// `None` when a field is too wide, too crooked, or of variable length.
    /// fields: of each, in order, its slot relative to the header's base, and its bits; `None` for one of variable length.
    pub fn new(fields: impl IntoIterator<Item = (u32, Option<u32>)>) -> Option<Words> {
        let mut all = Words::default();
        // Fields of the word that is not complete, and its bits.
        let (mut open, mut bits): (Vec<(u32, u32)>, u32) = (Vec::new(), 0);
        let mut at = 0;
        let close = |all: &mut Words, open: &mut Vec<(u32, u32)>, at: u32, bits: u32| {
            let mut left = bits;
            for (rel, width) in open.drain(..) {
                left -= width;
                let mask = u64::MAX >> (64 - width);
                let shift = left;
                all.parts.push(Part { rel, shift, mask });
            }
            let end = all.parts.len() as u32;
            let bytes = bits / 8;
            all.words.push(Word { at, bytes, end });
        };
        for (rel, width) in fields {
            let width = width.filter(|w| *w <= 64)?;
            if bits + width > 64 {
                // Only a word that ends with a byte can be left behind.
                if !bits.is_multiple_of(8) {
                    return None;
                }
                close(&mut all, &mut open, at, bits);
                at += bits / 8;
                bits = 0;
            }
            open.push((rel, width));
            bits += width;
        }
        if !bits.is_multiple_of(8) {
            return None;
        }
        if bits > 0 {
            close(&mut all, &mut open, at, bits);
        }
        Some(all)
    }

    /// Each word and the fields in it.
    #[cfg(not(target_family = "wasm"))] // machine code alone
    pub fn each(&self) -> impl Iterator<Item = (Word, &[Part])> {
        let starts = std::iter::once(0).chain(self.words.iter().map(|w| w.end));
        let words = self.words.iter().zip(starts);
        words.map(|(w, start)| (*w, &self.parts[start as usize..w.end as usize]))
    }

    /// Reads all fields; the header begins at byte `start`.
    #[inline]
    pub fn load(&self, slots: &mut [u64], base: u32, buf: &[u8], start: usize) {
        let mut first = 0;
        for w in &self.words {
            let v = load(buf, start + w.at as usize) >> (64 - 8 * w.bytes);
            let end = w.end as usize;
            for p in &self.parts[first..end] {
                slots[(base + p.rel) as usize] = v >> p.shift & p.mask;
            }
            first = end;
        }
    }

    /// Writes all fields; the header begins at byte `start`.
    #[inline]
    pub fn store(&self, slots: &[u64], base: u32, buf: &mut [u8], start: usize) {
        let mut first = 0;
        for w in &self.words {
            let end = w.end as usize;
            let mut v = 0;
            for p in &self.parts[first..end] {
                v |= slots[(base + p.rel) as usize] << p.shift;
            }
            first = end;
            store(buf, start + w.at as usize, w.bytes, v << (64 - 8 * w.bytes));
        }
    }
}

/// Eight bytes from byte `at`, those behind the end zero.
#[inline]
pub fn load(buf: &[u8], at: usize) -> u64 {
    match buf.get(at..).and_then(|rest| rest.first_chunk()) {
        Some(bytes) => u64::from_be_bytes(*bytes),
        None => load_end(buf, at),
    }
}

#[cold]
fn load_end(buf: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    let rest = buf.get(at..).unwrap_or(&[]);
    for (to, from) in bytes.iter_mut().zip(rest) {
        *to = *from;
    }
    u64::from_be_bytes(bytes)
}

/// The upper `bytes` bytes of `v` at byte `at`.
#[inline]
fn store(buf: &mut [u8], at: usize, bytes: u32, v: u64) {
    let all = v.to_be_bytes();
    let Some(rest) = buf.get_mut(at..) else {
        return;
    };
    // Copies of a known size are single instructions.
    match (bytes, rest.len()) {
        (8, 8..) => rest[..8].copy_from_slice(&all),
        (4, 4..) => rest[..4].copy_from_slice(&all[..4]),
        (2, 2..) => rest[..2].copy_from_slice(&all[..2]),
        (6, 6..) => {
            rest[..4].copy_from_slice(&all[..4]);
            rest[4..6].copy_from_slice(&all[4..6]);
        }
        (n, _) => {
            for (to, from) in rest.iter_mut().zip(&all[..n as usize]) {
                *to = *from;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::packet::{load_bits, BitWriter};
    use proptest::prelude::*;

    /// Of each field its slot and its bits, as they are given to [`Words::new`].
    fn fields(widths: &[u32]) -> impl Iterator<Item = (u32, Option<u32>)> + '_ {
        (0..).zip(widths.iter().map(|w| Some(*w)))
    }

    proptest! {
        /// Words and single fields read and write the same bytes.
        #[test]
        fn words_are_the_fields_one_by_one(
            mut widths in prop::collection::vec(1..=64_u32, 1..12),
            bytes in prop::collection::vec(any::<u8>(), 0..120),
            start in 0..4_usize,
        ) {
            let bits: u32 = widths.iter().sum();
            if !bits.is_multiple_of(8) {
                widths.push(8 - bits % 8);
            }
            if let Some(words) = Words::new(fields(&widths)) {
                let mut slots = vec![0; widths.len()];
                words.load(&mut slots, 0, &bytes, start);
                let offsets = widths.iter().scan(0_u32, |at, w| {
                    let offset = *at;
                    *at += w;
                    Some(offset)
                });
                let single: Vec<u64> = widths.iter().zip(offsets)
                    .map(|(w, offset)| load_bits(&bytes, start * 8 + offset as usize, *w)).collect();
                prop_assert_eq!(&slots, &single);
                let mut expected = bytes[..start.min(bytes.len())].to_vec();
                expected.resize(start, 0);
                let mut writer = BitWriter::new(&mut expected);
                for (value, width) in single.iter().zip(&widths) {
                    writer.push(*value, *width);
                }
                writer.finish();
                expected.push(7);
                let mut out = expected.clone();
                let length = out.len() - 1;
                out[start..length].fill(0xee);
                words.store(&slots, 0, &mut out, start);
                prop_assert_eq!(out, expected);
            }
        }
    }

    #[test]
    fn a_router_has_few_words() {
        let ipv4 = [4, 4, 8, 16, 16, 3, 13, 8, 8, 16, 32, 32];
        assert_eq!(Words::new(fields(&ipv4)).map(|w| w.words.len()), Some(3));
        assert!(Words::new(fields(&[4, 64, 4])).is_none());
    }
}
