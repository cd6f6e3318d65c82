//! What is still read of each slot, from the code's end to its start.

use std::collections::HashMap;

use super::Unit;
use crate::ir::*;
use crate::load::effects::{target, Context};

/// A set of slots.
#[derive(Debug, Clone, Default)]
pub struct Slots(Vec<u64>);

impl Slots {
    fn add(&mut self, slot: Slot) {
        let word = slot as usize / 64;
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (slot % 64);
    }

    fn remove(&mut self, slot: Slot) {
        if let Some(word) = self.0.get_mut(slot as usize / 64) {
            *word &= !(1 << (slot % 64));
        }
    }

    pub fn has(&self, slot: Slot) -> bool {
        let word = self.0.get(slot as usize / 64);
        word.is_some_and(|w| w >> (slot % 64) & 1 == 1)
    }

    fn add_all(&mut self, other: &Slots) {
        if other.0.len() > self.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (a, b) in self.0.iter_mut().zip(&other.0) {
            *a |= b;
        }
    }
}

/// Removes what nobody reads, and joins comparisons with the jumps that they decide.
pub fn remove_unread(unit: &mut Unit, context: &Context, live: &[Slot]) -> Slots {
    let all = context.layout.init.len() as Slot;
    let mut end = Slots::default();
    live.iter().for_each(|&slot| end.add(slot));
    let at = unit.at();
    let mut entry: HashMap<u32, Slots> = HashMap::new();
    let mut now = end;
    let here = |entry: &mut HashMap<u32, Slots>, place: usize, now: &Slots| {
        for &label in at.get(&place).into_iter().flatten() {
            entry.insert(label, now.clone());
        }
    };
    here(&mut entry, unit.ops.len(), &now);
    // A jump that was met, its slot read nowhere else: the instruction before may take it over.
    let mut jump: Option<usize> = None;
    for place in (0..unit.ops.len()).rev() {
        let Some(mut op) = unit.ops[place] else {
            here(&mut entry, place, &now);
            continue;
        };
        if let Some(j) = jump.take() {
            let labels = (place + 1..=j).filter_map(|p| at.get(&p)).flatten();
            if labels.into_iter().all(|&l| !unit.used(l))
                && let Some(joined) = unit.ops[j].and_then(|j| join_jump(&op, &j))
            {
                unit.ops[j] = None;
                now.remove(written(&op));
                op = joined;
                unit.ops[place] = Some(op);
            }
        }
        if let Op::Table(t) = op {
            now = Slots::default();
            for label in unit.after_table(context, t) {
                if let Some(live) = entry.get(&label) {
                    now.add_all(live);
                }
            }
        } else if let Some(to) = target(&mut op) {
            let there = entry.get(to).cloned().unwrap_or_default();
            if matches!(op, Op::Jump(_)) {
                now = there;
            } else {
                now.add_all(&there);
            }
        }
        if let Op::JumpIfZero(slot, _) | Op::JumpIfNonZero(slot, _) = op
            && !now.has(slot)
        {
            jump = Some(place);
        }
        let effects = context.of(&op);
        let mut touched = effects.writes.iter().chain(&effects.may_write);
        if !effects.acts && !effects.may_write_all && !touched.any(|&slot| now.has(slot)) {
            unit.ops[place] = None;
            here(&mut entry, place, &now);
            continue;
        }
        effects.writes.iter().for_each(|&slot| now.remove(slot));
        effects.reads.iter().for_each(|&slot| now.add(slot));
        if effects.reads_all {
            (0..all).for_each(|slot| now.add(slot));
        }
        if effects.ends {
            live.iter().for_each(|&slot| now.add(slot));
        }
        here(&mut entry, place, &now);
    }
    now
}

fn written(op: &Op) -> Slot {
    match op {
        Op::IsZero(u) | Op::NonZero(u) => u.dst,
        comparison!(t) => t.dst,
        _ => Slot::MAX,
    }
}

/// A comparison and the jump after it as one instruction.
fn join_jump(op: &Op, jump: &Op) -> Option<Op> {
    let branch = |t: &Tri, to| Branch { a: t.a, b: t.b, to };
    if let comparison!(t) = op
        && t.mask & 1 == 0
    {
        return None;
    }
    match (op, *jump) {
        (Op::IsZero(u), Op::JumpIfZero(slot, to)) if u.dst == slot => Some(Op::JumpIfNonZero(u.a, to)),
        (Op::IsZero(u), Op::JumpIfNonZero(slot, to)) if u.dst == slot => Some(Op::JumpIfZero(u.a, to)),
        (Op::NonZero(u), Op::JumpIfZero(slot, to)) if u.dst == slot => Some(Op::JumpIfZero(u.a, to)),
        (Op::NonZero(u), Op::JumpIfNonZero(slot, to)) if u.dst == slot => Some(Op::JumpIfNonZero(u.a, to)),
        (Op::Eq(t), Op::JumpIfZero(slot, to)) if t.dst == slot => Some(Op::UnlessEq(branch(t, to))),
        (Op::Ne(t), Op::JumpIfZero(slot, to)) if t.dst == slot => Some(Op::UnlessNe(branch(t, to))),
        (Op::LtU(t), Op::JumpIfZero(slot, to)) if t.dst == slot => Some(Op::UnlessLtU(branch(t, to))),
        (Op::LeU(t), Op::JumpIfZero(slot, to)) if t.dst == slot => Some(Op::UnlessLeU(branch(t, to))),
        (Op::LtS(t), Op::JumpIfZero(slot, to)) if t.dst == slot => Some(Op::UnlessLtS(branch(t, to))),
        (Op::LeS(t), Op::JumpIfZero(slot, to)) if t.dst == slot => Some(Op::UnlessLeS(branch(t, to))),
        (Op::Eq(t), Op::JumpIfNonZero(slot, to)) if t.dst == slot => Some(Op::UnlessNe(branch(t, to))),
        (Op::Ne(t), Op::JumpIfNonZero(slot, to)) if t.dst == slot => Some(Op::UnlessEq(branch(t, to))),
        _ => None,
    }
}
