//! An indexed binary heap: for each port at most one instant, the earliest first.

use crate::{Nanos, PortId};

const ABSENT: u32 = u32::MAX;

/// The instants at which ports have something to do. Ties go to the lowest port number, so that runs repeat.
#[derive(Debug, Clone, Default)]
pub struct Schedule {
    heap: Vec<(Nanos, PortId)>,
    /// Position in `heap` of each port, or [`ABSENT`].
    position: Vec<u32>,
}

impl Schedule {
    /// The earliest instant and its port, of several at that instant the lowest port. O(1).
    pub fn peek(&self) -> Option<(Nanos, PortId)> {
        self.heap.first().copied()
    }

    /// Sets, moves or (with `None`) removes the instant of a port. O(log ports); memory grows to the highest port number,
    /// which should be at most [`crate::MAX_PORT`].
    pub fn set(&mut self, port: PortId, instant: Option<Nanos>) {
        let slot = port as usize;
        if slot >= self.position.len() {
            if instant.is_none() {
                return;
            }
            self.position.resize(slot + 1, ABSENT);
        }
        let at = self.position[slot];
        match (instant, at) {
            (None, ABSENT) => {}
            (None, at) => self.remove(at as usize),
            (Some(instant), ABSENT) => {
                self.heap.push((instant, port));
                let last = self.heap.len() - 1;
                self.position[slot] = last as u32;
                self.sift_up(last);
            }
            (Some(instant), at) => {
                let at = at as usize;
                if self.heap[at].0 != instant {
                    self.heap[at].0 = instant;
                    self.restore(at);
                }
            }
        }
    }

    fn remove(&mut self, at: usize) {
        let last = self.heap.len() - 1;
        self.swap(at, last);
        if let Some((_, port)) = self.heap.pop() {
            self.position[port as usize] = ABSENT;
        }
        if at < self.heap.len() {
            self.restore(at);
        }
    }

    fn restore(&mut self, at: usize) {
        if !self.sift_up(at) {
            self.sift_down(at);
        }
    }

    fn sift_up(&mut self, mut at: usize) -> bool {
        let from = at;
        while at > 0 && self.heap[at] < self.heap[(at - 1) / 2] {
            self.swap(at, (at - 1) / 2);
            at = (at - 1) / 2;
        }
        at != from
    }

    fn sift_down(&mut self, mut at: usize) {
        loop {
            let (left, right) = (2 * at + 1, 2 * at + 2);
            let mut least = at;
            for child in [left, right] {
                if child < self.heap.len() && self.heap[child] < self.heap[least] {
                    least = child;
                }
            }
            if least == at {
                return;
            }
            self.swap(at, least);
            at = least;
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        self.position[self.heap[a].1 as usize] = a as u32;
        self.position[self.heap[b].1 as usize] = b as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn agrees_with_a_sorted_map(steps in prop::collection::vec((0u32..12, prop::option::of(0u64..40)), 0..200)) {
            let (mut schedule, mut model) = (Schedule::default(), BTreeMap::new());
            for (port, instant) in steps {
                schedule.set(port, instant);
                match instant {
                    Some(instant) => { model.insert(port, instant); }
                    None => { model.remove(&port); }
                }
                let expected = model.iter().map(|(&port, &instant)| (instant, port)).min();
                prop_assert_eq!(schedule.peek(), expected);
            }
        }
    }
}
