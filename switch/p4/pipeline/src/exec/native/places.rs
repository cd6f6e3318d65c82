//! Where the values of slots are at each step: at hand, in memory, or both.
//!
//! One walk onward finds what is at hand whichever way one came; operands that are not are loaded.
//! One walk back finds what somebody reads from memory later; of all that is set only this is
//! stored. A step that something behind it jumps to (a loop of the parser) finds nothing at hand,
//! and everything is in memory before the jump.

use std::collections::HashMap;

use super::steps::{Label, Step, Steps, Touch};
use crate::ir::*;
use crate::load::effects::Context;

/// A set of slots.
#[derive(Debug, Clone, PartialEq)]
struct Set(Vec<u64>);

impl Set {
    fn new(slots: usize, full: bool) -> Set {
        Set(vec![if full { u64::MAX } else { 0 }; slots.div_ceil(64)])
    }

    fn has(&self, slot: Slot) -> bool {
        self.0[slot as usize / 64] >> (slot % 64) & 1 == 1
    }

    fn add(&mut self, slot: Slot) {
        self.0[slot as usize / 64] |= 1 << (slot % 64);
    }

    fn remove(&mut self, slot: Slot) {
        self.0[slot as usize / 64] &= !(1 << (slot % 64));
    }

    fn join(&mut self, other: &Set) {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a |= b);
    }

    fn meet(&mut self, other: &Set) {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a &= b);
    }
}

/// What is to be done at each step.
#[derive(Debug)]
pub struct Places {
    pub reached: Vec<bool>,
    /// Operands to be loaded before it.
    pub loads: Vec<Vec<Slot>>,
    /// Results to be stored after it.
    pub stores: Vec<Vec<Slot>>,
    /// Labels by position.
    pub labels: HashMap<usize, Vec<Label>>,
}

/// `live` is read from memory when the pass has ended; `constants` are never in memory only.
pub fn places(steps: &Steps, context: &Context, ir: &Ir, live: &[Slot], constants: &HashMap<Slot, u64>) -> Places {
    let n = steps.steps.len();
    let slots = context.layout.init.len();
    let mut touches: Vec<Touch> = steps.steps.iter().map(|s| s.touch(context, ir)).collect();
    for t in &mut touches {
        t.uses.retain(|s| !constants.contains_key(s));
        t.uses.sort_unstable();
        t.uses.dedup();
        t.sets.sort_unstable();
        t.sets.dedup();
    }
    let mut labels: HashMap<usize, Vec<Label>> = HashMap::new();
    for (label, &at) in steps.labels.iter().enumerate() {
        labels.entry(at).or_default().push(label as Label);
    }
    let ways: Vec<Vec<Label>> = (0..n)
        .map(|i| {
            let mut to = steps.steps[i].targets();
            if touches[i].fails {
                to.push(steps.parsed);
            }
            if matches!(steps.steps[i], Step::SelectCall(..)) {
                to.push(steps.parsed);
            }
            to
        })
        .collect();

    // Onward. A loop may make more steps reached: once all of them are known to be, nothing changes.
    let mut loops = vec![false; steps.labels.len()];
    for (i, to) in ways.iter().enumerate() {
        for &label in to {
            loops[label as usize] |= steps.labels[label as usize] <= i;
        }
    }
    let mut entry: HashMap<Label, Set> = HashMap::new();
    let mut reached = vec![false; n];
    let mut loads = vec![Vec::new(); n];
    let mut now = Some(Set::new(slots, false));
    for i in 0..n {
        for &label in labels.get(&i).into_iter().flatten() {
            let there = match loops[label as usize] {
                true => Some(Set::new(slots, false)),
                false => entry.remove(&label),
            };
            match (&mut now, there) {
                (Some(now), Some(there)) => now.meet(&there),
                (None, there) => now = there,
                _ => {}
            }
        }
        let Some(at_hand) = now.as_mut() else {
            continue;
        };
        reached[i] = true;
        let t = &touches[i];
        loads[i] = t.uses.iter().copied().filter(|&s| !at_hand.has(s)).collect();
        t.uses.iter().for_each(|&s| at_hand.add(s));
        let before = at_hand.clone();
        t.sets.iter().for_each(|&s| at_hand.add(s));
        t.clobbers.iter().for_each(|&s| at_hand.remove(s));
        if t.clobbers_all {
            *at_hand = Set::new(slots, false);
        }
        for &label in &ways[i] {
            let mut there = at_hand.clone();
            if label == steps.parsed {
                there.meet(&before);
            }
            match entry.get_mut(&label) {
                Some(known) => known.meet(&there),
                None => {
                    entry.insert(label, there);
                }
            }
        }
        if !steps.steps[i].continues() {
            now = None;
        }
    }

    // Back.
    let mut end = Set::new(slots, false);
    live.iter().for_each(|&s| end.add(s));
    let mut needed: HashMap<Label, Set> = HashMap::new();
    let mut stores = vec![Vec::new(); n];
    let mut now = end.clone();
    for &label in labels.get(&n).into_iter().flatten() {
        needed.insert(label, now.clone());
    }
    for i in (0..n).rev() {
        let t = &touches[i];
        if !steps.steps[i].continues() {
            now = Set::new(slots, false);
        }
        let mut failed = Set::new(slots, false);
        for &label in &ways[i] {
            let back = steps.labels[label as usize] <= i;
            let there = match back {
                true => Set::new(slots, true),
                false => match needed.get(&label) {
                    Some(there) => there.clone(),
                    None => Set::new(slots, true),
                },
            };
            if label == steps.parsed {
                failed.join(&there);
            }
            now.join(&there);
        }
        stores[i] = t.sets.iter().copied().filter(|&s| now.has(s)).collect();
        t.sets.iter().for_each(|&s| now.remove(s));
        now.join(&failed);
        loads[i].iter().for_each(|&s| now.add(s));
        t.memory.iter().for_each(|&s| now.add(s));
        if t.all_memory {
            now = Set::new(slots, true);
        }
        if t.ends {
            now.join(&end);
        }
        for &label in labels.get(&i).into_iter().flatten() {
            needed.insert(label, now.clone());
        }
    }
    Places { reached, loads, stores, labels }
}
