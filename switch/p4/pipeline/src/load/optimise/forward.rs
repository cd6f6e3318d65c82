//! What is known of each slot, from the code's start to its end: constants, copies, bounds.

use std::collections::HashMap;

use super::Unit;
use crate::ir::*;
use crate::load::codegen::ones;
use crate::load::constants::Constants;
use crate::load::effects::{operands, target, Context, Effects};

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
        let mut facts = Facts { known: vec![Known::Nothing; slots], bound: vec![u64::MAX; slots] };
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
        self.known.get(slot as usize).copied().unwrap_or(Known::Nothing)
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
        Op::Add(t) => of(t.a).saturating_add(of(t.b)).min(t.mask),
        Op::Mul(t) => of(t.a).saturating_mul(of(t.b)).min(t.mask),
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

fn join(entry: &mut HashMap<u32, Facts>, label: u32, facts: &Facts) {
    match entry.entry(label) {
        std::collections::hash_map::Entry::Occupied(mut e) => e.get_mut().meet(facts),
        std::collections::hash_map::Entry::Vacant(e) => {
            e.insert(facts.clone());
        }
    }
}

/// Constants, copies and bounds, forward. Code that is never reached goes.
pub fn propagate(unit: &mut Unit, context: &Context, constants: &mut Constants) {
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
        Op::Add(t) | Op::Sub(t) | Op::Or(t) | Op::Xor(t) | Op::Shl(t) | Op::Shr(t) if known(t.b) == Some(0) => mov(t.dst, t.a, t.mask),
        // All ones, as wide as the other side: nothing is cut.
        Op::And(t) if known(t.b).is_some_and(|m| m & bits(facts.bound(t.a)) == bits(facts.bound(t.a))) => mov(t.dst, t.a, t.mask),
        Op::And(t) if known(t.a).is_some_and(|m| m & bits(facts.bound(t.b)) == bits(facts.bound(t.b))) => mov(t.dst, t.b, t.mask),
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
