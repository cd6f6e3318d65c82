//! What an instruction reads and writes.

use std::ops::Range;

use crate::exec::hash::Algo;
use crate::info::TableInfo;
use crate::ir::*;

/// The slots an instruction touches.
#[derive(Debug, Default)]
pub struct Effects {
    pub reads: Vec<Slot>,
    /// Any slot may be read.
    pub reads_all: bool,
    /// Written whenever it is executed.
    pub writes: Vec<Slot>,
    /// Perhaps written.
    pub may_write: Vec<Slot>,
    /// Any slot but constants may be written.
    pub may_write_all: bool,
    /// It does more than write slots.
    pub acts: bool,
    /// The pipeline may end there: all that is read at its end is read.
    pub ends: bool,
}

impl Effects {
    fn anything() -> Effects {
        Effects { reads_all: true, may_write_all: true, acts: true, ends: true, ..Effects::default() }
    }
}

/// A program while it is loaded.
pub struct Context<'a> {
    pub layout: &'a Layout,
    pub heavy: &'a [Heavy],
    pub actions: &'a [Action],
    pub tables: &'a [TableIr],
    pub infos: &'a [TableInfo],
    pub calculations: &'a [Calculation],
    pub arch: &'a Arch,
    pub code: &'a [Op],
}

pub fn field_slots(f: &Field) -> impl Iterator<Item = Slot> {
    f.slot..f.slot + f.limbs() as u32
}

impl Context<'_> {
    /// That of a program that has been loaded.
    #[cfg(not(target_family = "wasm"))] // machine code alone
    pub fn of_program(program: &crate::definition::Definition) -> Context<'_> {
        let ir = &program.ir;
        Context {
            layout: &ir.layout,
            heavy: &ir.heavy,
            actions: &ir.actions,
            tables: &ir.tables,
            infos: &program.tables,
            calculations: &ir.calculations,
            arch: &ir.arch,
            code: &ir.code,
        }
    }

    pub fn header_slots(&self, h: u32) -> Range<Slot> {
        let header = &self.layout.headers[h as usize];
        header.base..header.base + self.layout.types[header.ty].slots
    }

    /// The validity bits that making `h` valid or invalid sets.
    pub fn validity(&self, h: u32) -> Vec<Slot> {
        let header = &self.layout.headers[h as usize];
        let mut slots = vec![header.valid];
        if let Some(u) = header.union {
            let others = &self.layout.unions[u].headers;
            slots.extend(others.iter().map(|&o| self.layout.headers[o as usize].valid));
        }
        slots
    }

    pub fn calculation_reads(&self, calc: u32, reads: &mut Vec<Slot>) {
        for item in &self.calculations[calc as usize].input {
            match item {
                CalcInput::Field(f) => {
                    reads.push(f.valid);
                    reads.extend(field_slots(f));
                }
                CalcInput::Varbit(_, valid) => reads.push(*valid),
                CalcInput::Const(..) => {}
                CalcInput::Header(h) => {
                    reads.push(self.layout.headers[*h as usize].valid);
                    reads.extend(self.header_slots(*h));
                }
            }
        }
    }

    pub fn of(&self, op: &Op) -> Effects {
        let mut e = Effects::default();
        e.reads.extend(operands(&mut { *op }).map(|s| *s));
        match op {
            unary!(u) => e.writes.push(u.dst),
            arithmetic!(t) | comparison!(t) => e.writes.push(t.dst),
            Op::Select { dst, .. } | Op::RegVal { dst, .. } => e.writes.push(*dst),
            // An index out of bounds leaves the destination alone.
            Op::RegGet { dst, .. } => e.may_write.push(*dst),
            Op::StackLast { dst, stack, rel } => {
                let stack = &self.layout.stacks[*stack as usize];
                e.reads.push(stack.next);
                let of = |h: &u32| self.layout.headers[*h as usize].base + rel;
                e.reads.extend(stack.headers.iter().map(of));
                e.writes.push(*dst);
            }
            Op::SetValid(h) => e.may_write = self.validity(*h),
            Op::AddHeader(h) => {
                e.reads.push(self.layout.headers[*h as usize].valid);
                e.may_write = self.validity(*h);
                e.may_write.extend(self.header_slots(*h));
                e.acts = true;
            }
            Op::RemoveHeader(h) => {
                e.reads.push(self.layout.headers[*h as usize].valid);
                e.may_write = self.validity(*h);
                e.acts = true;
            }
            Op::MarkToDrop => {
                for f in [&self.arch.egress_spec, &self.arch.mcast_grp].into_iter().flatten() {
                    e.writes.push(f.slot);
                }
            }
            Op::Meter { dst, .. } | Op::Random { dst, .. } => {
                e.may_write.push(*dst);
                e.acts = true;
            }
            Op::Hash { dst, calc, .. } => {
                self.calculation_reads(*calc, &mut e.reads);
                e.writes.push(*dst);
                e.acts = self.calculations[*calc as usize].algo == Algo::RoundRobin;
            }
            Op::RegSet { .. }
            | Op::Count { .. }
            | Op::Digest(_)
            | Op::Jump(_)
            | Op::JumpIfZero(..)
            | Op::JumpIfNonZero(..)
            | Op::UnlessEq(_)
            | Op::UnlessNe(_)
            | Op::UnlessLtU(_)
            | Op::UnlessLeU(_)
            | Op::UnlessLtS(_)
            | Op::UnlessLeS(_) => e.acts = true,
            Op::Exit | Op::Stop => (e.acts, e.ends) = (true, true),
            Op::Table(t) => return self.table(*t as usize),
            Op::Heavy(i) => return self.heavy(&self.heavy[*i as usize]),
        }
        e
    }

    /// A table may run any of its actions, with any arguments, and is left early when that one says so.
    fn table(&self, t: usize) -> Effects {
        let ir = &self.tables[t];
        if self.infos[t].profile.is_some() {
            return Effects::anything();
        }
        let mut e = Effects { acts: true, ..Effects::default() };
        for part in &ir.key {
            e.reads.push(part.field.valid);
            e.reads.extend(field_slots(&part.field));
        }
        e.may_write.extend(ir.meter_target.iter().map(|f| f.slot));
        for action in &self.infos[t].actions {
            let params = self.layout.params..self.layout.params + self.layout.params_len;
            e.may_write.extend(params);
            let code = self.actions[action.index()].code;
            for op in &self.code[code.start as usize..code.end as usize] {
                let inner = self.of(op);
                e.ends |= op.may_stop();
                if inner.reads_all || inner.may_write_all {
                    return Effects::anything();
                }
                // An action's temporaries and parameters are written before it reads them.
                let packet = |slot: &Slot| *slot < self.layout.packet_end;
                e.reads.extend(inner.reads.into_iter().filter(packet));
                e.may_write.extend(inner.writes);
                e.may_write.extend(inner.may_write);
            }
        }
        e
    }

    fn heavy(&self, h: &Heavy) -> Effects {
        let mut e = Effects { acts: true, ..Effects::default() };
        let known = match h {
            Heavy::Assign(LValue::Field(f), x) => {
                e.writes.extend(field_slots(f));
                self.expression(x, &mut e.reads)
            }
            Heavy::CopySlots { dst, src, n } => {
                e.writes.extend(*dst..dst + n);
                e.reads.extend(*src..src + n);
                true
            }
            Heavy::EvalBool(slot, x) | Heavy::Eval(slot, x) => {
                e.writes.push(*slot);
                self.expression(x, &mut e.reads)
            }
            Heavy::Digest(x) | Heavy::Resubmit(x) | Heavy::Recirculate(x) | Heavy::Truncate(x) => self.expression(x, &mut e.reads),
            Heavy::CloneIngress(x, y) | Heavy::CloneEgress(x, y) => self.expression(x, &mut e.reads) && self.expression(y, &mut e.reads),
            Heavy::TellReads(_, fields) => {
                e.reads.extend(fields.iter().flat_map(field_slots));
                true
            }
            Heavy::TellSet(_, f) => {
                e.reads.extend(field_slots(f));
                true
            }
            Heavy::Observe(_, slot) => {
                e.reads.extend(*slot);
                true
            }
            Heavy::LogMsg(_, values) => values.iter().all(|x| self.expression(x, &mut e.reads)),
            _ => false,
        };
        if known {
            e
        } else {
            Effects::anything()
        }
    }

    /// Adds what an expression reads; false when that depends on the packet.
    pub fn expression(&self, e: &Expr, reads: &mut Vec<Slot>) -> bool {
        match e {
            Expr::Const(_) | Expr::Bool(_) | Expr::Varbit(_) => true,
            Expr::Field(f) => {
                reads.extend(field_slots(f));
                true
            }
            Expr::Param(slot, width) => {
                reads.extend(*slot..slot + width.div_ceil(64));
                true
            }
            Expr::Valid(HeaderRef::Fixed(h)) => {
                reads.push(self.layout.headers[*h as usize].valid);
                true
            }
            Expr::StackSize(s) | Expr::StackLastIndex(s) => {
                reads.push(self.layout.stacks[*s as usize].next);
                true
            }
            Expr::Register(_, a) | Expr::BitNot(a) | Expr::BoolNot(a) | Expr::ToBool(a) | Expr::ToData(a) => self.expression(a, reads),
            Expr::Bin(_, a, b) | Expr::Cmp(_, a, b) | Expr::BoolEq(a, b) | Expr::BoolAnd(a, b) | Expr::BoolOr(a, b) => {
                self.expression(a, reads) && self.expression(b, reads)
            }
            Expr::Cond(c, a, b) => self.expression(c, reads) && self.expression(a, reads) && self.expression(b, reads),
            _ => false,
        }
    }
}

/// The slots an instruction names as what it reads.
pub fn operands(op: &mut Op) -> impl Iterator<Item = &mut Slot> {
    let list: [Option<&mut Slot>; 3] = match op {
        unary!(u) => [Some(&mut u.a), None, None],
        arithmetic!(t) | comparison!(t) => [Some(&mut t.a), Some(&mut t.b), None],
        Op::Select { c, a, b, .. } => [Some(c), Some(a), Some(b)],
        Op::RegGet { idx, .. } | Op::RegVal { idx, .. } => [Some(idx), None, None],
        Op::RegSet { idx, src, .. } => [Some(idx), Some(src), None],
        Op::Count { idx, .. } | Op::Meter { idx, .. } => [Some(idx), None, None],
        Op::Random { lo, hi, .. } => [Some(lo), Some(hi), None],
        Op::Hash { base, size, .. } => [Some(base), Some(size), None],
        Op::JumpIfZero(slot, _) | Op::JumpIfNonZero(slot, _) => [Some(slot), None, None],
        Op::UnlessEq(b) | Op::UnlessNe(b) | Op::UnlessLtU(b) | Op::UnlessLeU(b) | Op::UnlessLtS(b) | Op::UnlessLeS(b) => {
            [Some(&mut b.a), Some(&mut b.b), None]
        }
        Op::StackLast { .. }
        | Op::SetValid(_)
        | Op::AddHeader(_)
        | Op::RemoveHeader(_)
        | Op::MarkToDrop
        | Op::Digest(_)
        | Op::Exit
        | Op::Stop
        | Op::Jump(_)
        | Op::Table(_)
        | Op::Heavy(_) => [None, None, None],
    };
    list.into_iter().flatten()
}

/// Where a jump goes.
pub fn target(op: &mut Op) -> Option<&mut u32> {
    match op {
        Op::Jump(to) | Op::JumpIfZero(_, to) | Op::JumpIfNonZero(_, to) => Some(to),
        Op::UnlessEq(b) | Op::UnlessNe(b) | Op::UnlessLtU(b) | Op::UnlessLeU(b) | Op::UnlessLtS(b) | Op::UnlessLeS(b) => Some(&mut b.to),
        _ => None,
    }
}
