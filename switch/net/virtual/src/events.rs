//! The event queue: for each slot at most one instant, the earliest first.
//!
//! A slot is something that can act: a switch, a link with frames on their way, one end of a flow, a timetable. It has one
//! instant at which it wants to act next, so the queue's size is the number of parts of the network, never of packets in it.
//! The order is total and the same in every run: by time, then by when the instant was set. Of those set at the same time, what came over a link or the
//! control channel goes first, by a rank that its place in the network gives it; then the others in the order in which they were set. So the order among
//! the parts of one partition does not depend on where the others are: what they send carries the time at which it was sent, and the rank.

use crate::Nanos;

/// Names a slot; given out by [`EventQueue::add`].
pub type ActorSlot = u32;

const ABSENT: u32 = u32::MAX;
/// Children of a node: four keep the heap flat, and one node's children in two cache lines.
const ARITY: usize = 4;

#[derive(Debug, Clone, Copy)]
struct Entry {
    key: Key,
    slot: ActorSlot,
}

/// Where an instant stands in the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    /// The instant, and when it was set, as one number: comparing two takes no jump that the processor could guess wrong.
    time_set: u128,
    /// A rank, or [`OWN`] and a number that grows with each instant set.
    rank: u64,
}

/// Behind all ranks.
const OWN: u64 = 1 << 63;

impl Key {
    fn new(time: Nanos, set: Nanos, rank: u64) -> Key {
        Key { time_set: u128::from(time) << 64 | u128::from(set), rank }
    }

    fn time(&self) -> Nanos {
        (self.time_set >> 64) as Nanos
    }
}

/// The place of the smallest entry.
fn least(entries: &[Entry]) -> Option<usize> {
    let lower = |a: usize, b: usize| if entries[b].key < entries[a].key { b } else { a };
    match entries.len() {
        0 => None,
        ARITY => Some(lower(lower(0, 1), lower(2, 3))),
        len => Some((1..len).fold(0, lower)),
    }
}

/// An indexed heap of slots.
#[derive(Debug, Default)]
pub struct EventQueue {
    heap: Vec<Entry>,
    /// Of each slot: where it is in `heap`, or [`ABSENT`].
    position: Vec<u32>,
    sequence: u64,
    /// The present instant.
    now: Nanos,
}

impl EventQueue {
    /// A new slot without an instant.
    pub fn add(&mut self) -> ActorSlot {
        self.position.push(ABSENT);
        (self.position.len() - 1) as ActorSlot
    }

    /// The earliest instant and its slot. It stays until the slot is set anew.
    pub fn peek(&self) -> Option<(Nanos, ActorSlot)> {
        self.heap.first().map(|entry| (entry.key.time(), entry.slot))
    }

    /// What is set from here on is set at this instant.
    pub fn at(&mut self, now: Nanos) {
        self.now = now;
    }

    fn own(&mut self, time: Nanos) -> Key {
        self.sequence += 1;
        Key::new(time, self.now, OWN | self.sequence)
    }

    /// Sets, moves, or (with `None`) removes the instant of a slot. A slot that keeps its instant keeps its place in the order.
    pub fn set(&mut self, slot: ActorSlot, time: Option<Nanos>) {
        let Some(&at) = self.position.get(slot as usize) else { return };
        match time {
            Some(time) if at == ABSENT || self.heap[at as usize].key.time() != time => {
                let key = self.own(time);
                self.put(slot, key);
            }
            Some(_) => {}
            None if at != ABSENT => self.remove(at as usize),
            None => {}
        }
    }

    /// The slot acts now and has asked for `time` again, which may be this same instant: behind all others that were set before.
    pub fn reset(&mut self, slot: ActorSlot, time: Option<Nanos>) {
        match time {
            Some(time) => {
                let key = self.own(time);
                self.put(slot, key);
            }
            None => self.set(slot, None),
        }
    }

    /// The next instant of a slot for what comes over a link or the control channel: `sent` then, and with this rank (below 2^63) among the others.
    pub fn expect(&mut self, slot: ActorSlot, next: Option<(Nanos, Nanos)>, rank: u64) {
        match next {
            Some((time, sent)) => self.put(slot, Key::new(time, sent, rank)),
            None => self.set(slot, None),
        }
    }

    fn put(&mut self, slot: ActorSlot, key: Key) {
        let Some(&at) = self.position.get(slot as usize) else { return };
        if at == ABSENT {
            self.heap.push(Entry { key, slot });
            self.up(self.heap.len() - 1);
            return;
        }
        let at = at as usize;
        let earlier = key < self.heap[at].key;
        self.heap[at].key = key;
        if earlier {
            self.up(at);
        } else {
            self.down(at);
        }
    }

    /// Whether the slot has an instant that is not after `time`.
    pub fn is_before(&self, slot: ActorSlot, time: Option<Nanos>) -> bool {
        match (time, self.position.get(slot as usize)) {
            (Some(time), Some(&at)) if at != ABSENT => self.heap[at as usize].key.time() <= time,
            _ => false,
        }
    }

    fn remove(&mut self, at: usize) {
        let removed = self.heap.swap_remove(at);
        self.position[removed.slot as usize] = ABSENT;
        if at < self.heap.len() {
            if at > 0 && self.heap[at].key < self.heap[(at - 1) / ARITY].key {
                self.up(at);
            } else {
                self.down(at);
            }
        }
    }

    fn up(&mut self, mut at: usize) {
        let entry = self.heap[at];
        while at > 0 {
            let parent = (at - 1) / ARITY;
            if self.heap[parent].key <= entry.key {
                break;
            }
            self.place(at, self.heap[parent]);
            at = parent;
        }
        self.place(at, entry);
    }

    fn down(&mut self, mut at: usize) {
        let entry = self.heap[at];
        loop {
            let first = at * ARITY + 1;
            let children = self.heap.get(first..self.heap.len().min(first + ARITY)).unwrap_or_default();
            let Some(least) = least(children) else { break };
            if entry.key <= children[least].key {
                break;
            }
            self.place(at, children[least]);
            at = first + least;
        }
        self.place(at, entry);
    }

    fn place(&mut self, at: usize, entry: Entry) {
        self.heap[at] = entry;
        self.position[entry.slot as usize] = at as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Against a sorted map from (time, order of setting) to slot.
        #[test]
        fn order_is_time_then_order_of_setting(steps in prop::collection::vec((0u32..10, prop::option::of(0u64..20)), 0..200)) {
            let mut queue = EventQueue::default();
            for _ in 0..10 {
                queue.add();
            }
            let mut model: BTreeMap<u32, (u64, usize)> = BTreeMap::new();
            for (order, (slot, time)) in steps.into_iter().enumerate() {
                queue.set(slot, time);
                match time {
                    Some(time) if model.get(&slot).is_none_or(|known| known.0 != time) => { model.insert(slot, (time, order)); }
                    Some(_) => {}
                    None => { model.remove(&slot); }
                }
                let expected = model.iter().min_by_key(|(_, key)| **key).map(|(slot, key)| (key.0, *slot));
                prop_assert_eq!(queue.peek(), expected);
            }
        }
    }

    #[test]
    fn a_slot_that_asks_for_now_again_goes_behind_the_others() {
        let mut queue = EventQueue::default();
        let (a, b) = (queue.add(), queue.add());
        queue.set(a, Some(5));
        queue.set(b, Some(5));
        assert_eq!(queue.peek(), Some((5, a)));
        queue.reset(a, Some(5));
        assert_eq!(queue.peek(), Some((5, b)));
    }

    #[test]
    fn what_is_sent_goes_by_its_time_of_sending_and_then_by_rank() {
        let mut queue = EventQueue::default();
        let slots: Vec<ActorSlot> = (0..5).map(|_| queue.add()).collect();
        queue.at(2);
        queue.set(slots[0], Some(9));
        queue.at(3);
        queue.set(slots[1], Some(9));
        queue.expect(slots[2], Some((9, 3)), 8);
        queue.expect(slots[3], Some((9, 3)), 7);
        queue.expect(slots[4], Some((9, 1)), 9);
        for slot in [4, 0, 3, 2, 1] {
            assert_eq!(queue.peek(), Some((9, slots[slot])));
            queue.set(slots[slot], None);
        }
    }
}
