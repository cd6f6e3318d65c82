//! Makes a pipeline's code shorter without changing what can be seen of it.
//!
//! The code has no backward jumps, so one walk from its start carries forward what is known of each
//! slot (a constant, a copy of another slot, a bound), and one walk from its end what is still read
//! of each. Constants and copies take the place of what they are equal to; what nobody reads is not
//! computed; a comparison and the jump that it decides become one instruction.

mod forward;
#[cfg(test)]
mod tests;
mod unread;

use std::collections::HashMap;

use super::constants::Constants;
use super::effects::{target, Context};
use crate::ir::*;
use forward::propagate;
use unread::{remove_unread, Slots};

/// Code under way: removed instructions are `None`, jumps name labels.
pub struct Unit {
    pub ops: Vec<Option<Op>>,
    /// Position of each label; label 0 is the end, labels of no use are `usize::MAX`.
    pub labels: Vec<usize>,
    /// Label of each node that is reached.
    pub nodes: HashMap<u32, u32>,
    pub forward: bool,
}

impl Unit {
    /// Every jump leads onward.
    pub fn is_forward(&self) -> bool {
        let jumps = self.ops.iter().enumerate();
        jumps.into_iter().all(|(at, op)| {
            let to = op.and_then(|mut op| target(&mut op).map(|to| *to));
            to.is_none_or(|to| self.labels[to as usize] > at)
        })
    }

    /// The instructions left, where the labels are among them, and the labels of nodes.
    pub fn pack(self) -> (Vec<Op>, Vec<u32>, HashMap<u32, u32>) {
        let mut place = Vec::with_capacity(self.ops.len() + 1);
        let mut ops = Vec::new();
        for op in &self.ops {
            place.push(ops.len() as u32);
            ops.extend(*op);
        }
        place.push(ops.len() as u32);
        let labels = self.labels.iter();
        let labels = labels.map(|&at| place.get(at).copied().unwrap_or(0));
        (ops, labels.collect(), self.nodes)
    }

    /// Labels by position.
    fn at(&self) -> HashMap<usize, Vec<u32>> {
        let mut at: HashMap<usize, Vec<u32>> = HashMap::new();
        for (label, &position) in self.labels.iter().enumerate() {
            at.entry(position).or_default().push(label as u32);
        }
        at
    }

    /// Labels that may follow a table.
    fn after_table(&self, context: &Context, table: u32) -> Vec<u32> {
        let next = context.tables[table as usize].successors();
        next.iter().map(|n| n.map_or(0, |n| self.nodes.get(&n).copied().unwrap_or(0))).collect()
    }
}

/// Runs all passes, a few times: one makes work for another. `live` is read afterwards; returns
/// what is read, there or here, before it is written.
pub fn optimise(unit: &mut Unit, context: &Context, constants: &mut Constants, live: &[Slot]) -> Vec<Slot> {
    let mut needed = Slots::default();
    for _ in 0..3 {
        propagate(unit, context, constants);
        needed = remove_unread(unit, context, live);
    }
    unit.thread_jumps();
    let all = context.layout.init.len() as Slot;
    (0..all).filter(|&slot| needed.has(slot)).collect()
}

impl Unit {
    /// Something jumps to the label, or a table leads to it.
    fn used(&self, label: u32) -> bool {
        let jumped = self.ops.iter().any(|op| {
            let to = op.and_then(|mut op| target(&mut op).map(|to| *to));
            to == Some(label)
        });
        jumped || self.nodes.values().any(|&l| l == label)
    }

    /// A jump to a jump goes where that goes; a jump to what follows anyway goes.
    fn thread_jumps(&mut self) {
        for place in (0..self.ops.len()).rev() {
            let Some(mut op) = self.ops[place] else {
                continue;
            };
            let Some(to) = target(&mut op) else { continue };
            let first = |at: usize| (at..self.ops.len()).find(|&p| self.ops[p].is_some());
            if let Some(p) = first(self.labels[*to as usize])
                && let Some(Op::Jump(further)) = self.ops[p]
            {
                *to = further;
            }
            let there = first(self.labels[*to as usize]);
            let follows = there == first(place + 1);
            self.ops[place] = (!follows).then_some(op);
        }
    }
}
