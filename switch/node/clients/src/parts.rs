//! The bytes of a message that has not come whole.

use std::collections::VecDeque;
use std::io::{self, Cursor, Read};
use std::time::Instant;

use crate::pool::{Full, Place};

/// The first part of memory for a message; each further one is twice as large, up to 256 KiB.
const SMALLEST: usize = 4 << 10;
const DOUBLINGS: usize = 6;

/// A message, as it comes. It lies in parts, none of which moves: a buffer that grew would take its old memory and its new one.
#[derive(Debug, Default)]
pub struct Parts(VecDeque<Vec<u8>>);

impl Parts {
    /// Keeps what has come. expected: how long the rest of the message is, with these bytes; `usize::MAX` where nobody knows. place: what
    /// counts the memory.
    ///
    /// # Errors
    /// [`Full`].
    pub fn keep(&mut self, mut bytes: &[u8], mut expected: usize, place: &Place, now: Instant) -> Result<(), Full> {
        while !bytes.is_empty() {
            let room = self.0.back().map_or(0, |last| last.capacity() - last.len());
            if room == 0 {
                let size = (SMALLEST << self.0.len().min(DOUBLINGS)).min(expected.max(bytes.len()));
                place.grow(size, now)?;
                self.0.push_back(Vec::with_capacity(size));
                continue;
            }
            let (kept, rest) = bytes.split_at(room.min(bytes.len()));
            if let Some(last) = self.0.back_mut() {
                last.extend_from_slice(kept);
            }
            expected = expected.saturating_sub(kept.len());
            bytes = rest;
        }
        Ok(())
    }

    /// The parts, in order.
    pub fn drain(&mut self) -> impl Iterator<Item = Vec<u8>> + '_ {
        self.0.drain(..)
    }
}

impl From<Vec<u8>> for Parts {
    fn from(only: Vec<u8>) -> Parts {
        Parts(VecDeque::from([only]))
    }
}

/// Reads a message; the memory of each part is freed when it is read.
#[derive(Debug)]
pub struct Reader(VecDeque<Cursor<Vec<u8>>>);

impl From<Parts> for Reader {
    fn from(parts: Parts) -> Reader {
        Reader(parts.0.into_iter().map(Cursor::new).collect())
    }
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(first) = self.0.front_mut() {
            let read = first.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            self.0.pop_front();
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bounds, Pool};
    use std::time::Duration;

    #[test]
    fn what_came_is_read_and_its_memory_is_counted() {
        let pool = Pool::new(Bounds { most: 1, most_bytes: 1_000_000, spared: Duration::ZERO, stall: None });
        let now = Instant::now();
        let place = pool.enter(now, None).expect("a place");
        let bytes: Vec<u8> = (0..400_000_u32).map(|index| (index % 251) as u8).collect();
        let mut parts = Parts::default();
        for (index, came) in bytes.chunks(7001).enumerate() {
            parts.keep(came, bytes.len() - index * 7001, &place, now).expect("room");
        }
        let capacity: usize = parts.0.iter().map(Vec::capacity).sum();
        assert_eq!((pool.held().1, capacity), (bytes.len(), bytes.len()), "what is expected bounds what is taken");
        let mut read = Vec::new();
        Reader::from(parts).read_to_end(&mut read).expect("memory cannot fail");
        assert!(read == bytes);
        assert_eq!(Parts::default().keep(&vec![0; 2_000_000], 0, &place, now), Err(Full));
    }
}
