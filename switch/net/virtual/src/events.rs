//! The event queue: for each slot at most one instant, the earliest first.
//!
//! A slot is something that can act: a switch, a link with frames on their way, one end of a flow, a timetable. It has one
//! instant at which it wants to act next, so the queue's size is the number of parts of the network, never of packets in it.
//! The order is total and the same in every run: by time, then by when the instant was set.

use crate::Nanos;

/// Names a slot; given out by [`EventQueue::add`].
pub type ActorSlot = u32;

const ABSENT: u32 = u32::MAX;
/// Children of a node: four keep the heap flat, and one node's children in two cache lines.
const ARITY: usize = 4;

#[derive(Debug, Clone, Copy)]
struct Entry {
    time: Nanos,
    /// Grows with each instant set: the order among equals.
    sequence: u64,
    slot: ActorSlot,
}

impl Entry {
    /// The order as one number: comparing two takes no jump that the processor could guess wrong.
    fn key(&self) -> u128 {
        u128::from(self.time) << 64 | u128::from(self.sequence)
    }
}

/// The place of the smallest entry.
fn least(entries: &[Entry]) -> Option<usize> {
    let lower = |a: usize, b: usize| if entries[b].key() < entries[a].key() { b } else { a };
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
}

impl EventQueue {
    /// A new slot without an instant.
    pub fn add(&mut self) -> ActorSlot {
        self.position.push(ABSENT);
        (self.position.len() - 1) as ActorSlot
    }

    /// The earliest instant and its slot. It stays until the slot is set anew.
    pub fn peek(&self) -> Option<(Nanos, ActorSlot)> {
        self.heap.first().map(|entry| (entry.time, entry.slot))
    }

    /// Sets, moves, or (with `None`) removes the instant of a slot. A slot that keeps its instant keeps its place in the order.
    pub fn set(&mut self, slot: ActorSlot, time: Option<Nanos>) {
        let Some(&at) = self.position.get(slot as usize) else { return };
        match (time, at) {
            (None, ABSENT) => {}
            (None, at) => self.remove(at as usize),
            (Some(time), ABSENT) => {
                self.sequence += 1;
                self.heap.push(Entry { time, sequence: self.sequence, slot });
                self.up(self.heap.len() - 1);
            }
            (Some(time), at) => {
                let at = at as usize;
                let before = self.heap[at].time;
                if before != time {
                    self.sequence += 1;
                    self.heap[at] = Entry { time, sequence: self.sequence, slot };
                    if time < before {
                        self.up(at);
                    } else {
                        self.down(at);
                    }
                }
            }
        }
    }

    /// The slot acts now and has asked for `time` again, which may be this same instant: behind all others of that instant.
    pub fn reset(&mut self, slot: ActorSlot, time: Option<Nanos>) {
        match (time, self.position.get(slot as usize)) {
            (Some(time), Some(&at)) if at != ABSENT => {
                self.sequence += 1;
                let at = at as usize;
                let earlier = time < self.heap[at].time;
                self.heap[at] = Entry { time, sequence: self.sequence, slot };
                if earlier {
                    self.up(at);
                } else {
                    self.down(at);
                }
            }
            _ => self.set(slot, time),
        }
    }

    /// Whether the slot has an instant that is not after `time`.
    pub fn is_before(&self, slot: ActorSlot, time: Option<Nanos>) -> bool {
        match (time, self.position.get(slot as usize)) {
            (Some(time), Some(&at)) if at != ABSENT => self.heap[at as usize].time <= time,
            _ => false,
        }
    }

    fn remove(&mut self, at: usize) {
        let removed = self.heap.swap_remove(at);
        self.position[removed.slot as usize] = ABSENT;
        if at < self.heap.len() {
            if at > 0 && self.heap[at].key() < self.heap[(at - 1) / ARITY].key() {
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
            if self.heap[parent].key() <= entry.key() {
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
            if entry.key() <= children[least].key() {
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
}
