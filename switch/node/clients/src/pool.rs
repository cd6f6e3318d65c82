//! Places of which there are so many, and who loses one when they are taken.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::gone::{Gone, Reason};

/// How much there is of a pool, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Places.
    pub most: usize,
    /// Bytes, over all places.
    pub most_bytes: usize,
    /// Who has been idle for less than this keeps its place, even where others wait for one.
    pub spared: Duration,
    /// Who is idle for this long loses its place in any case.
    pub stall: Option<Duration>,
}

/// There is no place, and nobody who could lose one; or the place is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full;

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("other clients' messages fill the switch's memory for messages: try again in a few seconds")
    }
}

impl std::error::Error for Full {}

#[derive(Debug)]
struct Holder {
    bytes: usize,
    /// Requests under way: while there is one, the place is not idle.
    busy: usize,
    /// Whoever has never done anything goes before all others.
    used: bool,
    last: Instant,
    due: Option<Instant>,
    gone: Arc<Gone>,
}

#[derive(Debug, Default)]
struct Held {
    holders: HashMap<u64, Holder>,
    next: u64,
    bytes: usize,
    /// Who has lost a place and still holds memory.
    leaving: HashSet<u64>,
}

#[derive(Debug)]
struct Shared {
    bounds: Bounds,
    held: Mutex<Held>,
}

/// Places, each with a number of bytes. Clones are the same pool.
#[derive(Debug, Clone)]
pub struct Pool(Arc<Shared>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes room for so many places and bytes more.
    fn make_room(&self, held: &mut Held, asking: Option<u64>, places: usize, bytes: usize, now: Instant) -> Result<(), Full> {
        loop {
            let crowded = held.holders.len() + places > self.bounds.most;
            let large = held.bytes.saturating_add(bytes) > self.bounds.most_bytes;
            if !crowded && !large {
                return Ok(());
            }
            let may_lose = |(id, holder): &(&u64, &Holder)| {
                Some(**id) != asking
                    && holder.busy == 0
                    && now.saturating_duration_since(holder.last) >= self.bounds.spared
                    && (crowded || holder.bytes > 0)
            };
            let idlest = held.holders.iter().filter(may_lose).min_by_key(|(_, holder)| (holder.used, holder.last)).map(|(id, _)| *id);
            let loses = idlest.or_else(|| if crowded { None } else { held.larger_by_far(asking, bytes) });
            held.remove(loses.ok_or(Full)?, Some(Reason::Crowded));
        }
    }
}

/// Who holds this many times what another one asks for makes way for it, even while it grows.
const BY_FAR: usize = 4;

impl Held {
    fn larger_by_far(&self, asking: Option<u64>, bytes: usize) -> Option<u64> {
        let wanted = asking.and_then(|id| self.holders.get(&id)).map_or(0, |holder| holder.bytes) + bytes;
        let (&id, largest) = self.holders.iter().max_by_key(|(_, holder)| holder.bytes)?;
        (largest.bytes / BY_FAR >= wanted).then_some(id)
    }

    fn remove(&mut self, id: u64, reason: Option<Reason>) {
        let Some(holder) = self.holders.remove(&id) else { return };
        self.bytes -= holder.bytes;
        if let Some(reason) = reason {
            if holder.bytes > 0 {
                self.leaving.insert(id);
            }
            holder.gone.tell(reason);
        }
    }
}

impl Pool {
    /// An empty pool.
    pub fn new(bounds: Bounds) -> Pool {
        Pool(Arc::new(Shared { bounds, held: Mutex::default() }))
    }

    /// Takes a place. due: when it is lost, unless [`Place::settle`] is called before.
    ///
    /// # Errors
    /// [`Full`].
    pub fn enter(&self, now: Instant, due: Option<Duration>) -> Result<Place, Full> {
        let mut held = self.0.lock();
        self.0.make_room(&mut held, None, 1, 0, now)?;
        let (id, gone) = (held.next, Arc::new(Gone::default()));
        held.next += 1;
        let due = due.map(|due| now + due);
        held.holders.insert(id, Holder { bytes: 0, busy: 0, used: false, last: now, due, gone: Arc::clone(&gone) });
        drop(held);
        Ok(Place { pool: Arc::clone(&self.0), id, gone })
    }

    /// Makes room for one place more, where somebody is idle.
    pub fn relieve(&self, now: Instant) {
        let mut held = self.0.lock();
        let idlest = held.holders.iter().filter(|(_, holder)| holder.busy == 0).min_by_key(|(_, holder)| (holder.used, holder.last));
        if let Some((&id, _)) = idlest.filter(|(_, holder)| now.saturating_duration_since(holder.last) >= self.0.bounds.spared) {
            held.remove(id, Some(Reason::Crowded));
        }
    }

    /// Takes their places from all whose time is over.
    pub fn expire(&self, now: Instant) {
        let mut held = self.0.lock();
        let late = |holder: &Holder| {
            let stalled = self.0.bounds.stall.is_some_and(|stall| now.saturating_duration_since(holder.last) >= stall);
            holder.busy == 0 && (stalled || holder.due.is_some_and(|due| now >= due))
        };
        let over: Vec<u64> = held.holders.iter().filter(|(_, holder)| late(holder)).map(|(id, _)| *id).collect();
        over.into_iter().for_each(|id| held.remove(id, Some(Reason::Late)));
    }

    /// Places taken, and the bytes that they hold.
    pub fn held(&self) -> (usize, usize) {
        let held = self.0.lock();
        (held.holders.len(), held.bytes)
    }
}

/// A place in a pool, until it is dropped or lost.
#[derive(Debug)]
pub struct Place {
    pool: Arc<Shared>,
    id: u64,
    gone: Arc<Gone>,
}

impl Place {
    /// Whether it is lost.
    pub fn gone(&self) -> &Gone {
        &self.gone
    }

    fn with<R>(&self, work: impl FnOnce(&mut Holder) -> R) -> Option<R> {
        self.pool.lock().holders.get_mut(&self.id).map(work)
    }

    /// Holds so many bytes more; not idle now.
    ///
    /// # Errors
    /// [`Full`]: they must not be kept.
    pub fn grow(&self, bytes: usize, now: Instant) -> Result<(), Full> {
        let mut held = self.pool.lock();
        if bytes > 0 {
            self.pool.make_room(&mut held, Some(self.id), 0, bytes, now)?;
        }
        let holder = held.holders.get_mut(&self.id).ok_or(Full)?;
        holder.bytes += bytes;
        holder.last = now;
        holder.used = true;
        held.bytes += bytes;
        Ok(())
    }

    /// Not idle now.
    pub fn touch(&self, now: Instant) {
        self.with(|holder| {
            holder.last = now;
            holder.used = true;
        });
    }

    /// Another one has lost its place and still holds its memory: whoever grows lets it run first, or both would have theirs.
    pub fn must_wait(&self) -> bool {
        self.gone.reason().is_none() && !self.pool.lock().leaving.is_empty()
    }

    /// It is no longer due.
    pub fn settle(&self) {
        self.with(|holder| holder.due = None);
    }

    /// A request is under way: the place cannot be lost until [`Place::rest`] is called as often.
    pub fn work(&self) {
        self.with(|holder| {
            holder.busy += 1;
            holder.used = true;
            holder.due = None;
        });
    }

    /// A request has ended.
    pub fn rest(&self, now: Instant) {
        self.with(|holder| {
            holder.busy = holder.busy.saturating_sub(1);
            holder.last = now;
        });
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut held = self.pool.lock();
        held.remove(self.id, None);
        held.leaving.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn pool(most: usize, most_bytes: usize) -> Pool {
        Pool::new(Bounds { most, most_bytes, spared: SECOND, stall: Some(10 * SECOND) })
    }

    #[test]
    fn the_idlest_loses_its_place() {
        let (pool, start) = (pool(2, usize::MAX), Instant::now());
        let first = pool.enter(start, None).expect("a place");
        let second = pool.enter(start, None).expect("a place");
        first.touch(start + SECOND);
        assert_eq!(pool.enter(start, None).expect_err("nobody is idle"), Full);
        let third = pool.enter(start + SECOND, None).expect("the place of the second");
        assert_eq!((first.gone().reason(), second.gone().reason()), (None, Some(Reason::Crowded)));
        assert_eq!(pool.held().0, 2);
        drop(second);
        drop(third);
        assert_eq!(pool.held(), (1, 0));
    }

    #[test]
    fn whoever_has_a_request_under_way_keeps_its_place() {
        let (pool, start) = (pool(1, usize::MAX), Instant::now());
        let first = pool.enter(start, Some(SECOND)).expect("a place");
        first.work();
        pool.expire(start + 100 * SECOND);
        assert!(pool.enter(start + 100 * SECOND, None).is_err());
        first.rest(start + 100 * SECOND);
        assert!(pool.enter(start + 100 * SECOND, None).is_err(), "it has just been at work");
        assert!(pool.enter(start + 101 * SECOND, None).is_ok());
    }

    #[test]
    fn bytes_have_a_bound_over_all_places() {
        let (pool, start) = (pool(9, 100), Instant::now());
        let none = pool.enter(start, None).expect("a place");
        let first = pool.enter(start, None).expect("a place");
        first.grow(60, start).expect("room");
        let second = pool.enter(start, None).expect("a place");
        assert_eq!(second.grow(60, start), Err(Full), "the first is not idle yet");
        second.grow(40, start).expect("room");
        second.grow(10, start + SECOND).expect("the room of the first");
        assert_eq!((first.gone().reason(), none.gone().reason()), (Some(Reason::Crowded), None), "a place without bytes is no room");
        assert_eq!(pool.held(), (2, 50));
        assert_eq!((first.must_wait(), second.must_wait()), (false, true), "the first has its memory yet");
        assert_eq!(first.grow(1, start + SECOND), Err(Full), "lost is lost");
        assert_eq!(second.grow(51, start + 9 * SECOND), Err(Full), "nobody loses a place to itself");
        drop(first);
        assert!(!second.must_wait());
        drop(second);
        assert_eq!(pool.held(), (1, 0));
    }

    #[test]
    fn small_messages_find_room_beside_large_ones_that_grow() {
        let (pool, start) = (pool(9, 100), Instant::now());
        let large = pool.enter(start, None).expect("a place");
        let other = pool.enter(start, None).expect("a place");
        let small = pool.enter(start, None).expect("a place");
        large.grow(60, start).expect("room");
        other.grow(39, start).expect("room");
        assert_eq!(small.grow(16, start), Err(Full), "not smaller by far");
        small.grow(15, start).expect("the room of the largest");
        assert_eq!((large.gone().reason(), other.gone().reason()), (Some(Reason::Crowded), None));
        assert_eq!(pool.held(), (2, 54));
    }

    #[test]
    fn time_is_over() {
        let (pool, start) = (pool(9, 100), Instant::now());
        let due = pool.enter(start, Some(2 * SECOND)).expect("a place");
        let settled = pool.enter(start, Some(2 * SECOND)).expect("a place");
        settled.settle();
        pool.expire(start + SECOND);
        assert_eq!(due.gone().reason(), None);
        pool.expire(start + 2 * SECOND);
        assert_eq!((due.gone().reason(), settled.gone().reason()), (Some(Reason::Late), None));
        pool.expire(start + 10 * SECOND);
        assert_eq!(settled.gone().reason(), Some(Reason::Late), "stalled");
    }
}
