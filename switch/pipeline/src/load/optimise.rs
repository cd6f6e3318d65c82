//! Makes a pipeline's code shorter without changing what can be seen of it.
//!
//! The code has no backward jumps, so one walk from its start carries forward what is known of each
//! slot (a constant, a copy of another slot, a bound), and one walk from its end what is still read
//! of each. Constants and copies take the place of what they are equal to; what nobody reads is not
//! computed; a comparison and the jump that it decides become one instruction.

use std::collections::HashMap;

use super::codegen::ones;
use super::effects::{operands, Context, Effects};
use super::fuse::{target, Constants};
use crate::ir::*;

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
        next.iter()
            .map(|n| n.map_or(0, |n| self.nodes.get(&n).copied().unwrap_or(0)))
            .collect()
    }
}

/// What is known of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    Nothing,
    Constant(u64),
    /// Equal to that slot.
    Copy(Slot),
}

/// Knowledge of all slots at one place.
#[derive(Debug, Clone)]
struct Facts {
    known: Vec<Known>,
    /// No slot holds more.
    bound: Vec<u64>,
}

/// All bits a number up to `max` may have.
fn bits(max: u64) -> u64 {
    match max {
        0 => 0,
        _ => u64::MAX >> max.leading_zeros(),
    }
}

impl Facts {
    /// What holds for any packet: constants, and the widths of fields.
    fn new(context: &Context, constants: &Constants) -> Facts {
        let layout = context.layout;
        let slots = layout.init.len();
        let mut facts = Facts {
            known: vec![Known::Nothing; slots],
            bound: vec![u64::MAX; slots],
        };
        for header in &layout.headers {
            if !header.metadata {
                facts.bound[header.valid as usize] = 1;
            }
            for f in &layout.types[header.ty].fields {
                if !f.varbit && f.width <= 64 {
                    facts.bound[(header.base + f.rel) as usize] = ones(f.width);
                }
            }
        }
        for (&slot, &v) in &constants.by_slot {
            facts.set(slot, Known::Constant(v), v);
        }
        facts
    }

    fn grow(&mut self, slot: Slot) {
        if self.known.len() <= slot as usize {
            self.known.resize(slot as usize + 1, Known::Nothing);
            self.bound.resize(slot as usize + 1, u64::MAX);
        }
    }

    fn set(&mut self, slot: Slot, known: Known, bound: u64) {
        self.grow(slot);
        self.known[slot as usize] = known;
        self.bound[slot as usize] = bound;
    }

    fn known(&self, slot: Slot) -> Known {
        self.known
            .get(slot as usize)
            .copied()
            .unwrap_or(Known::Nothing)
    }

    fn bound(&self, slot: Slot) -> u64 {
        match self.known(slot) {
            Known::Constant(v) => v,
            Known::Copy(of) => self.bound[of as usize].min(self.bound[slot as usize]),
            Known::Nothing => self.bound.get(slot as usize).copied().unwrap_or(u64::MAX),
        }
    }

    /// The slot was written with something unknown.
    fn forget(&mut self, slot: Slot, bound: u64) {
        for k in &mut self.known {
            if *k == Known::Copy(slot) {
                *k = Known::Nothing;
            }
        }
        self.set(slot, Known::Nothing, bound);
    }

    /// What holds whichever way one came.
    fn meet(&mut self, other: &Facts) {
        let n = self.known.len().max(other.known.len());
        for slot in 0..n as Slot {
            self.grow(slot);
            let at = slot as usize;
            let (a, b) = (self.bound(slot), other.bound(slot));
            if self.known[at] != other.known(slot) {
                self.known[at] = Known::Nothing;
            }
            self.bound[at] = a.max(b);
        }
    }
}

/// The result of an instruction on constants.
fn fold(op: &Op, c: impl Fn(Slot) -> Option<u64>) -> Option<(Slot, u64)> {
    let un = |u: &Un, f: fn(u64, u64) -> u64| Some((u.dst, f(c(u.a)?, u.imm)));
    let tri = |t: &Tri, f: fn(u64, u64) -> u64| Some((t.dst, f(c(t.a)?, c(t.b)?) & t.mask));
    match op {
        Op::Mov(u) => un(u, |a, m| a & m),
        Op::BitNot(u) => un(u, |a, m| !a & m),
        Op::NonZero(u) => un(u, |a, _| u64::from(a != 0)),
        Op::IsZero(u) => un(u, |a, _| u64::from(a == 0)),
        Op::MinU(u) => un(u, u64::min),
        Op::Add(t) => tri(t, u64::wrapping_add),
        Op::Sub(t) => tri(t, u64::wrapping_sub),
        Op::Mul(t) => tri(t, u64::wrapping_mul),
        Op::And(t) => tri(t, |a, b| a & b),
        Op::Or(t) => tri(t, |a, b| a | b),
        Op::Xor(t) => tri(t, |a, b| a ^ b),
        Op::Shl(t) => tri(t, |a, b| if b < 64 { a << b } else { 0 }),
        Op::Shr(t) => tri(t, |a, b| if b < 64 { a >> b } else { 0 }),
        Op::Eq(t) => tri(t, |a, b| u64::from(a == b)),
        Op::Ne(t) => tri(t, |a, b| u64::from(a != b)),
        Op::LtU(t) => tri(t, |a, b| u64::from(a < b)),
        Op::LeU(t) => tri(t, |a, b| u64::from(a <= b)),
        _ => None,
    }
}

/// No larger number can an instruction yield.
fn bound_of(op: &Op, facts: &Facts) -> u64 {
    let of = |slot: Slot| facts.bound(slot);
    match op {
        Op::Mov(u) => of(u.a).min(u.imm),
        Op::MinU(u) => of(u.a).min(u.imm),
        Op::BitNot(u) => u.imm,
        Op::ClampU(u) => u.imm,
        Op::NonZero(_) | Op::IsZero(_) => 1,
        Op::Eq(_) | Op::Ne(_) | Op::LtU(_) | Op::LeU(_) | Op::LtS(_) | Op::LeS(_) => 1,
        Op::Add(t) => of(t.a).checked_add(of(t.b)).unwrap_or(u64::MAX).min(t.mask),
        Op::Mul(t) => of(t.a).checked_mul(of(t.b)).unwrap_or(u64::MAX).min(t.mask),
        Op::And(t) => of(t.a).min(of(t.b)).min(t.mask),
        Op::Or(t) | Op::Xor(t) => (bits(of(t.a)) | bits(of(t.b))).min(t.mask),
        Op::Shr(t) => match facts.known(t.b) {
            Known::Constant(n) if n < 64 => (of(t.a) >> n).min(t.mask),
            _ => of(t.a).min(t.mask),
        },
        Op::Div(t) => of(t.a).min(t.mask),
        Op::Sub(t) | Op::Rem(t) | Op::Shl(t) | Op::Sar(t) => t.mask,
        Op::Select { a, b, .. } => of(*a).max(of(*b)),
        _ => u64::MAX,
    }
}

/// Runs all passes, a few times: one makes work for another. `live` is read afterwards; returns
/// what is read, there or here, before it is written.
pub fn optimise(
    unit: &mut Unit,
    context: &Context,
    constants: &mut Constants,
    live: &[Slot],
) -> Vec<Slot> {
    let mut needed = Slots::default();
    for _ in 0..3 {
        propagate(unit, context, constants);
        needed = remove_unread(unit, context, live);
    }
    unit.thread_jumps();
    let all = context.layout.init.len() as Slot;
    (0..all).filter(|&slot| needed.has(slot)).collect()
}

fn join(entry: &mut HashMap<u32, Facts>, label: u32, facts: &Facts) {
    match entry.entry(label) {
        std::collections::hash_map::Entry::Occupied(mut e) => e.get_mut().meet(facts),
        std::collections::hash_map::Entry::Vacant(e) => {
            e.insert(facts.clone());
        }
    }
}

/// Constants, copies and bounds, forward. Code that is never reached goes.
fn propagate(unit: &mut Unit, context: &Context, constants: &mut Constants) {
    let start = Facts::new(context, constants);
    let at = unit.at();
    let mut entry: HashMap<u32, Facts> = HashMap::new();
    let mut now = Some(start.clone());
    for place in 0..unit.ops.len() {
        for label in at.get(&place).into_iter().flatten() {
            if let Some(facts) = entry.remove(label) {
                match &mut now {
                    Some(now) => now.meet(&facts),
                    None => now = Some(facts),
                }
            }
        }
        let (Some(facts), Some(mut op)) = (now.as_mut(), unit.ops[place]) else {
            unit.ops[place] = None;
            continue;
        };
        for slot in operands(&mut op) {
            match facts.known(*slot) {
                Known::Constant(v) => *slot = constants.slot(v),
                Known::Copy(of) => *slot = of,
                Known::Nothing => {}
            }
        }
        simplify(&mut op, facts, constants);
        match op {
            Op::JumpIfZero(slot, to) => match facts.known(slot) {
                Known::Constant(0) => op = Op::Jump(to),
                Known::Constant(_) => {
                    unit.ops[place] = None;
                    continue;
                }
                _ => {
                    let mut zero = facts.clone();
                    zero.set(slot, Known::Constant(0), 0);
                    join(&mut entry, to, &zero);
                    if facts.bound(slot) == 1 {
                        facts.set(slot, Known::Constant(1), 1);
                    }
                }
            },
            Op::Table(t) => {
                forget(facts, &context.of(&op), &start);
                for label in unit.after_table(context, t) {
                    join(&mut entry, label, facts);
                }
                now = None;
                unit.ops[place] = Some(op);
                continue;
            }
            _ => {
                let jump = target(&mut op).map(|to| *to);
                if let Some(to) = jump {
                    join(&mut entry, to, facts);
                }
            }
        }
        if let Op::Jump(to) = op {
            join(&mut entry, to, facts);
            now = None;
            unit.ops[place] = Some(op);
            continue;
        }
        unit.ops[place] = learn(&mut op, facts, context, &start).then_some(op);
    }
}

/// An instruction that an operand makes simpler.
fn simplify(op: &mut Op, facts: &mut Facts, constants: &mut Constants) {
    let known = |slot: Slot| match facts.known(slot) {
        Known::Constant(v) => Some(v),
        _ => constants.by_slot.get(&slot).copied(),
    };
    if let Some((dst, v)) = fold(op, known) {
        let a = constants.slot(v);
        facts.set(a, Known::Constant(v), v);
        let imm = u64::MAX;
        *op = Op::Mov(Un { dst, a, imm });
        return;
    }
    let mov = |dst, a, imm| Op::Mov(Un { dst, a, imm });
    let new = match *op {
        Op::NonZero(u) if facts.bound(u.a) <= 1 => mov(u.dst, u.a, u64::MAX),
        Op::MinU(u) if facts.bound(u.a) <= u.imm => mov(u.dst, u.a, u64::MAX),
        Op::Select { dst, c, a, b } => match known(c) {
            Some(0) => mov(dst, b, u64::MAX),
            Some(_) => mov(dst, a, u64::MAX),
            None => return,
        },
        Op::Add(t) | Op::Or(t) | Op::Xor(t) if known(t.a) == Some(0) => mov(t.dst, t.b, t.mask),
        Op::Add(t) | Op::Sub(t) | Op::Or(t) | Op::Xor(t) | Op::Shl(t) | Op::Shr(t)
            if known(t.b) == Some(0) =>
        {
            mov(t.dst, t.a, t.mask)
        }
        // All ones, as wide as the other side: nothing is cut.
        Op::And(t)
            if known(t.b).is_some_and(|m| m & bits(facts.bound(t.a)) == bits(facts.bound(t.a))) =>
        {
            mov(t.dst, t.a, t.mask)
        }
        Op::And(t)
            if known(t.a).is_some_and(|m| m & bits(facts.bound(t.b)) == bits(facts.bound(t.b))) =>
        {
            mov(t.dst, t.b, t.mask)
        }
        _ => return,
    };
    *op = new;
}

/// What an instruction makes known; false when it does nothing.
fn learn(op: &mut Op, facts: &mut Facts, context: &Context, start: &Facts) -> bool {
    if let Op::Mov(u) = op {
        let cuts = bits(facts.bound(u.a)) & !u.imm != 0;
        if !cuts {
            u.imm = u64::MAX;
            if u.a == u.dst {
                return false;
            }
            let (known, bound) = match facts.known(u.a) {
                Known::Nothing => (Known::Copy(u.a), facts.bound(u.a)),
                known => (known, facts.bound(u.a)),
            };
            // The same value once more.
            if known != Known::Nothing && facts.known(u.dst) == known {
                return false;
            }
            facts.forget(u.dst, bound);
            facts.set(u.dst, known, bound);
            return true;
        }
    }
    let bound = bound_of(op, facts);
    let effects = context.of(op);
    if let [dst] = effects.writes[..] {
        facts.forget(dst, bound);
        return true;
    }
    forget(facts, &effects, start);
    true
}

/// All that an instruction may write is unknown after it; fields keep their widths.
fn forget(facts: &mut Facts, effects: &Effects, start: &Facts) {
    if effects.may_write_all {
        *facts = start.clone();
        return;
    }
    for &slot in effects.writes.iter().chain(&effects.may_write) {
        let bound = start.bound.get(slot as usize).copied().unwrap_or(u64::MAX);
        facts.forget(slot, bound);
    }
}

/// A set of slots.
#[derive(Debug, Clone, Default)]
struct Slots(Vec<u64>);

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

    fn has(&self, slot: Slot) -> bool {
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
fn remove_unread(unit: &mut Unit, context: &Context, live: &[Slot]) -> Slots {
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
            if labels.into_iter().all(|&l| !unit.used(l)) {
                if let Some(joined) = unit.ops[j].and_then(|j| join_jump(&op, &j)) {
                    unit.ops[j] = None;
                    now.remove(written(&op));
                    op = joined;
                    unit.ops[place] = Some(op);
                }
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
        if let Op::JumpIfZero(slot, _) | Op::JumpIfNonZero(slot, _) = op {
            if !now.has(slot) {
                jump = Some(place);
            }
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
        if matches!(op, Op::Exit | Op::Stop) {
            live.iter().for_each(|&slot| now.add(slot));
        }
        here(&mut entry, place, &now);
    }
    now
}

fn written(op: &Op) -> Slot {
    match op {
        Op::IsZero(u) | Op::NonZero(u) => u.dst,
        Op::Eq(t) | Op::Ne(t) | Op::LtU(t) | Op::LeU(t) | Op::LtS(t) | Op::LeS(t) => t.dst,
        _ => Slot::MAX,
    }
}

/// A comparison and the jump after it as one instruction.
fn join_jump(op: &Op, jump: &Op) -> Option<Op> {
    let branch = |t: &Tri, to| Branch { a: t.a, b: t.b, to };
    if let Op::Eq(t) | Op::Ne(t) | Op::LtU(t) | Op::LeU(t) | Op::LtS(t) | Op::LeS(t) = op {
        if t.mask & 1 == 0 {
            return None;
        }
    }
    match (op, *jump) {
        (Op::IsZero(u), Op::JumpIfZero(slot, to)) if u.dst == slot => {
            Some(Op::JumpIfNonZero(u.a, to))
        }
        (Op::IsZero(u), Op::JumpIfNonZero(slot, to)) if u.dst == slot => {
            Some(Op::JumpIfZero(u.a, to))
        }
        (Op::NonZero(u), Op::JumpIfZero(slot, to)) if u.dst == slot => {
            Some(Op::JumpIfZero(u.a, to))
        }
        (Op::NonZero(u), Op::JumpIfNonZero(slot, to)) if u.dst == slot => {
            Some(Op::JumpIfNonZero(u.a, to))
        }
        (Op::Eq(t), Op::JumpIfZero(slot, to)) if t.dst == slot => Some(Op::UnlessEq(branch(t, to))),
        (Op::Ne(t), Op::JumpIfZero(slot, to)) if t.dst == slot => Some(Op::UnlessNe(branch(t, to))),
        (Op::LtU(t), Op::JumpIfZero(slot, to)) if t.dst == slot => {
            Some(Op::UnlessLtU(branch(t, to)))
        }
        (Op::LeU(t), Op::JumpIfZero(slot, to)) if t.dst == slot => {
            Some(Op::UnlessLeU(branch(t, to)))
        }
        (Op::LtS(t), Op::JumpIfZero(slot, to)) if t.dst == slot => {
            Some(Op::UnlessLtS(branch(t, to)))
        }
        (Op::LeS(t), Op::JumpIfZero(slot, to)) if t.dst == slot => {
            Some(Op::UnlessLeS(branch(t, to)))
        }
        (Op::Eq(t), Op::JumpIfNonZero(slot, to)) if t.dst == slot => {
            Some(Op::UnlessNe(branch(t, to)))
        }
        (Op::Ne(t), Op::JumpIfNonZero(slot, to)) if t.dst == slot => {
            Some(Op::UnlessEq(branch(t, to)))
        }
        _ => None,
    }
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
            if let Some(p) = first(self.labels[*to as usize]) {
                if let Some(Op::Jump(further)) = self.ops[p] {
                    *to = further;
                }
            }
            let there = first(self.labels[*to as usize]);
            let follows = there == first(place + 1);
            self.ops[place] = (!follows).then_some(op);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::packet::Packet;
    use crate::exec::run::run;
    use crate::exec::state::State;
    use crate::program::Program;
    use crate::SwitchConfig;
    use proptest::prelude::*;

    /// Widths of the fields in slots 0 to 7; then constants up to slot 12, then temporaries.
    const WIDTHS: [u32; 8] = [1, 1, 8, 9, 16, 32, 48, 64];
    const CONSTANTS: [u64; 5] = [1, 0, 2, 0xff, 0xffff_ffff];
    const SLOTS: u32 = 17;

    fn layout() -> Layout {
        let fields = WIDTHS.iter().enumerate().map(|(i, &width)| FieldDef {
            name: format!("f{i}"),
            width,
            signed: false,
            saturating: false,
            rel: i as u32,
            offset: 0,
            varbit: false,
        });
        let ty = HeaderType {
            name: "m".into(),
            fields: fields.collect(),
            slots: 8,
            bits: WIDTHS.iter().sum(),
            varbit: None,
            max_bytes: 0,
            words: None,
        };
        let header = Header {
            name: "m".into(),
            ty: 0,
            metadata: true,
            base: 0,
            valid: 8,
            varbit: None,
            union: None,
            length: None,
            opaque: false,
        };
        let mut init = vec![0; SLOTS as usize];
        init[8..13].copy_from_slice(&CONSTANTS);
        Layout {
            types: vec![ty],
            headers: vec![header],
            metadata_end: 8,
            packet_end: 8,
            init,
            ..Layout::default()
        }
    }

    type Draft = (u8, Slot, Slot, Slot, u64, usize);

    /// An instruction that keeps every field within its width.
    fn op((kind, dst, a, b, imm, _): Draft, to: u32) -> Op {
        let dst = if dst < 8 { dst } else { dst + 5 };
        let mask = imm & WIDTHS.get(dst as usize).map_or(u64::MAX, |&w| ones(w));
        let (t, u) = (Tri { dst, a, b, mask }, Un { dst, a, imm: mask });
        let whole = Un {
            dst: 13,
            a,
            imm: mask,
        };
        match kind {
            0 => Op::Mov(u),
            1 => Op::Add(t),
            2 => Op::Sub(t),
            3 => Op::Mul(t),
            4 => Op::And(t),
            5 => Op::Or(t),
            6 => Op::Xor(t),
            7 => Op::Shl(t),
            8 => Op::Shr(t),
            9 => Op::BitNot(u),
            10 => Op::Eq(t),
            11 => Op::Ne(t),
            12 => Op::LtU(t),
            13 => Op::LeS(t),
            14 => Op::NonZero(u),
            15 => Op::IsZero(u),
            16 => Op::MinU(u),
            17 => Op::Div(t),
            18 => Op::Select {
                dst: 14,
                c: a,
                a: b,
                b: dst,
            },
            19 => Op::Sext(Un { imm: 8, ..whole }),
            20 => Op::RegGet {
                dst,
                reg: 0,
                idx: a,
                mask,
            },
            21 => Op::RegSet {
                reg: 0,
                idx: a,
                src: b,
            },
            22 => Op::Random {
                dst,
                lo: a,
                hi: b,
                mask,
            },
            23 | 24 => Op::Jump(to),
            _ => Op::JumpIfZero(a, to),
        }
    }

    fn draft() -> impl Strategy<Value = Draft> {
        let mask = prop::sample::select(vec![u64::MAX, u64::MAX, 1, 0xff, 0xf0, 0]);
        (0..30_u8, 0..12_u32, 0..SLOTS, 0..SLOTS, mask, 0..6_usize)
    }

    /// Slots 0 to 7 and the register after the code ran.
    fn outcome(layout: &Layout, code: Vec<Op>, start: &[u64]) -> (Vec<u64>, Vec<u64>, u64) {
        let mut program = Program::default();
        let mut copy = Layout {
            types: layout.types.clone(),
            headers: layout.headers.clone(),
            init: layout.init.clone(),
            ..Layout::default()
        };
        copy.packet_end = 8;
        program.ir.layout = copy;
        let end = code.len() as u32;
        program.ir.code = code;
        let mut state = State::new(&program, &SwitchConfig::default());
        state.registers.push(crate::exec::state::Register {
            width: 64,
            limbs: 1,
            size: 4,
            cells: vec![5, 6, 7, 8],
        });
        let mut packet = Packet::new(&program.ir.layout);
        packet.slots[..8].copy_from_slice(start);
        run(&program.ir, &mut state, &mut packet, Code { start: 0, end });
        let fields = packet.slots[..8].to_vec();
        (fields, state.registers[0].cells.clone(), state.rng.0)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        /// What comes of a packet is the same before and after, for every slot that is read later.
        #[test]
        fn optimised_code_does_the_same(
            drafts in prop::collection::vec(draft(), 1..30),
            values in prop::collection::vec(any::<u64>(), 8),
            small in any::<bool>(),
            live in prop::collection::vec(any::<bool>(), 8),
        ) {
            let layout = layout();
            let start: Vec<u64> = values.iter().zip(WIDTHS)
                .map(|(v, w)| v & ones(w) & if small { 3 } else { u64::MAX }).collect();
            let n = drafts.len();
            let ops: Vec<Op> = drafts.iter().enumerate()
                .map(|(i, d)| op(*d, (i + 1 + d.5).min(n) as u32)).collect();
            let before = outcome(&layout, ops.clone(), &start);
            let read: Vec<Slot> = (0..8).filter(|&s| live[s as usize]).collect();
            // Label i is position i - 1; label 0 the end.
            let mut unit = Unit {
                ops: ops.iter().map(|op| {
                    let mut op = *op;
                    if let Some(to) = target(&mut op) {
                        *to = if *to as usize == n { 0 } else { *to + 1 };
                    }
                    Some(op)
                }).collect(),
                labels: std::iter::once(n).chain(0..n).collect(),
                nodes: HashMap::new(),
                forward: true,
            };
            prop_assert!(unit.is_forward());
            let known: HashMap<u64, Slot> = CONSTANTS.iter().zip(8..).map(|(v, s)| (*v, s)).collect();
            let mut constants = Constants::new(&known, layout.init.len());
            let context = Context {
                layout: &layout, heavy: &[], actions: &[], tables: &[], infos: &[],
                calculations: &[], arch: &Arch::default(), code: &[],
            };
            optimise(&mut unit, &context, &mut constants, &read);
            let (code, labels, _) = unit.pack();
            let code: Vec<Op> = code.into_iter().map(|mut op| {
                if let Some(to) = target(&mut op) {
                    *to = labels[*to as usize];
                }
                op
            }).collect();
            prop_assert!(code.len() <= ops.len());
            let mut grown = layout.init.clone();
            grown.extend(constants.added);
            let after = outcome(&Layout { init: grown, ..layout }, code.clone(), &start);
            for &slot in &read {
                prop_assert_eq!(before.0[slot as usize], after.0[slot as usize], "slot {} {:#?}\n{:#?}", slot, &ops, &code);
            }
            prop_assert_eq!((before.1, before.2), (after.1, after.2));
        }
    }
}
