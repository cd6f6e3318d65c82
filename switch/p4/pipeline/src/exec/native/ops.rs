//! Register code.

use std::mem::{offset_of, size_of};

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{types, InstBuilder, Value};

use super::calls::Helper;
use super::emit::{own, Emitter};
use crate::control::CounterData;
use crate::exec::packet::{Packet, Requests};
use crate::exec::state::State;
use crate::ir::*;
use crate::load::codegen::ones;

impl Emitter<'_, '_> {
    /// The first of the addresses that [`State`] keeps is that of register 0's cells.
    pub(super) fn cells(&mut self, at: usize) -> Value {
        let offset = (at * size_of::<usize>()) as i32;
        self.b.ins().load(types::I64, own().with_readonly(), self.addresses, offset)
    }

    /// Runs `inside` with the cell's address when the index is below `size`; otherwise, and when
    /// it yields none, the value is `other`.
    pub(super) fn cell(
        &mut self,
        at: usize,
        idx: Slot,
        (size, bytes): (usize, usize),
        other: Value,
        inside: impl FnOnce(&mut Self, Value) -> Value,
    ) -> Value {
        let base = self.cells(at);
        let i = self.get(idx);
        let bytes = bytes as i64;
        if let Some(&known) = self.constants.get(&idx) {
            if known >= size as u64 {
                return other;
            }
            let cell = self.b.ins().iadd_imm(base, known as i64 * bytes);
            return inside(self, cell);
        }
        let size = self.number(size as u64);
        let below = self.test(IntCC::UnsignedLessThan, i, size);
        self.either(below, other, |e| {
            let i = e.b.ins().imul_imm(i, bytes);
            let cell = e.b.ins().iadd(base, i);
            inside(e, cell)
        })
    }

    /// What `inside` yields where a condition holds; `other` elsewhere.
    fn either(&mut self, condition: Value, other: Value, inside: impl FnOnce(&mut Self) -> Value) -> Value {
        let (yes, end) = (self.b.create_block(), self.b.create_block());
        let result = self.b.append_block_param(end, types::I64);
        self.b.ins().brif(condition, yes, &[], end, &[other.into()]);
        self.b.switch_to_block(yes);
        self.b.seal_block(yes);
        let v = inside(self);
        self.b.ins().jump(end, &[v.into()]);
        self.b.switch_to_block(end);
        self.b.seal_block(end);
        result
    }

    pub(super) fn register(&self, reg: u32) -> (usize, usize) {
        let info = &self.program.registers[reg as usize];
        (info.size, info.width.div_ceil(64) as usize * 8)
    }

    pub(super) fn op(&mut self, op: &Op) {
        use IntCC::*;
        match *op {
            Op::Mov(u) => {
                let a = self.get(u.a);
                let v = self.mask(a, u.imm);
                self.define(u.dst, v);
            }
            Op::Add(t) => self.tri(&t, |e, a, b| e.b.ins().iadd(a, b)),
            Op::Sub(t) => self.tri(&t, |e, a, b| e.b.ins().isub(a, b)),
            Op::Mul(t) => self.tri(&t, |e, a, b| e.b.ins().imul(a, b)),
            Op::And(t) => self.tri(&t, |e, a, b| e.b.ins().band(a, b)),
            Op::Or(t) => self.tri(&t, |e, a, b| e.b.ins().bor(a, b)),
            Op::Xor(t) => self.tri(&t, |e, a, b| e.b.ins().bxor(a, b)),
            Op::Div(t) => self.divide(&t, |e, a, b| e.b.ins().udiv(a, b)),
            Op::Rem(t) => self.divide(&t, |e, a, b| e.b.ins().urem(a, b)),
            Op::Shl(t) => self.shift(&t, |e, a, b| e.b.ins().ishl(a, b)),
            Op::Shr(t) => self.shift(&t, |e, a, b| e.b.ins().ushr(a, b)),
            Op::Sar(t) => self.tri(&t, |e, a, b| {
                let most = e.number(63);
                let b = e.b.ins().umin(b, most);
                e.b.ins().sshr(a, b)
            }),
            Op::BitNot(u) => self.un(&u, |e, a, m| {
                let not = e.b.ins().bnot(a);
                e.b.ins().band(not, m)
            }),
            Op::Eq(t) => self.compare(&t, Equal),
            Op::Ne(t) => self.compare(&t, NotEqual),
            Op::LtU(t) => self.compare(&t, UnsignedLessThan),
            Op::LeU(t) => self.compare(&t, UnsignedLessThanOrEqual),
            Op::LtS(t) => self.compare(&t, SignedLessThan),
            Op::LeS(t) => self.compare(&t, SignedLessThanOrEqual),
            Op::NonZero(u) => self.against_zero(&u, NotEqual),
            Op::IsZero(u) => self.against_zero(&u, Equal),
            Op::Sext(u) => {
                let a = self.get(u.a);
                let shift = 64 - i64::from(u.imm as u32);
                let v = self.b.ins().ishl_imm(a, shift);
                let v = self.b.ins().sshr_imm(v, shift);
                self.define(u.dst, v);
            }
            Op::MinU(u) => self.un(&u, |e, a, m| e.b.ins().umin(a, m)),
            Op::ClampU(u) => self.un(&u, |e, a, m| {
                let zero = e.number(0);
                let negative = e.test(SignedLessThan, a, zero);
                let least = e.b.ins().umin(a, m);
                e.select(negative, zero, least)
            }),
            Op::ClampS(u) => {
                let max = i64::MAX >> (64 - u.imm as u32);
                let (low, high) = (self.number((-max - 1) as u64), self.number(max as u64));
                let a = self.get(u.a);
                let v = self.b.ins().smax(a, low);
                let v = self.b.ins().smin(v, high);
                self.define(u.dst, v);
            }
            Op::ClampUS(u) => {
                let max = self.number(i64::MAX as u64 >> (64 - u.imm as u32));
                let a = self.get(u.a);
                let v = self.b.ins().umin(a, max);
                self.define(u.dst, v);
            }
            Op::Select { dst, c, a, b } => {
                let (c, a, b) = (self.get(c), self.get(a), self.get(b));
                let v = self.select(c, a, b);
                self.define(dst, v);
            }
            Op::RegGet { dst, reg, idx, mask } => {
                let before = self.get(dst);
                let size = self.register(reg);
                let v = self.cell(reg as usize, idx, size, before, |e, cell| {
                    let v = e.b.ins().load(types::I64, own(), cell, 0);
                    e.mask(v, mask)
                });
                self.define(dst, v);
            }
            Op::RegVal { dst, reg, idx } => {
                let zero = self.number(0);
                let size = self.register(reg);
                let v = self.cell(reg as usize, idx, size, zero, |e, cell| e.b.ins().load(types::I64, own(), cell, 0));
                self.define(dst, v);
            }
            Op::RegSet { reg, idx, src } => {
                // Written by their index among limbs, as the interpreter does.
                let (size, bytes) = self.register(reg);
                let size = (size * bytes / 8, 8);
                let src = self.get(src);
                let zero = self.number(0);
                let width = self.program.registers[reg as usize].width;
                self.cell(reg as usize, idx, size, zero, |e, cell| {
                    let v = e.mask(src, ones(width.min(64)));
                    e.b.ins().store(own(), v, cell, 0);
                    zero
                });
            }
            Op::StackLast { dst, stack, rel } => {
                let (stack, rel) = (self.number(stack.into()), self.number(rel.into()));
                let v = self.call(Helper::StackLast, &[stack, rel]);
                self.define(dst, v);
            }
            Op::SetValid(h) => self.set_valid(h),
            Op::AddHeader(h) => {
                let h = self.number(h.into());
                self.call(Helper::AddHeader, &[h]);
            }
            Op::RemoveHeader(h) => {
                let h = self.number(h.into());
                self.call(Helper::RemoveHeader, &[h]);
            }
            Op::Count { counter, idx } => {
                let at = self.program.registers.len() + counter as usize;
                let size = self.program.counters[counter as usize].size;
                let zero = self.number(0);
                let size = (size, size_of::<CounterData>());
                self.cell(at, idx, size, zero, |e, cell| {
                    let at = offset_of!(Packet, ingress_length) as i32;
                    let length = e.b.ins().uload32(own(), e.packet, at);
                    let one = e.number(1);
                    e.add_to(cell, offset_of!(CounterData, packets), one);
                    e.add_to(cell, offset_of!(CounterData, bytes), length);
                    zero
                });
            }
            Op::Meter { meter, idx, dst, mask } => {
                let (meter, idx) = (self.number(meter.into()), self.get(idx));
                let colour = self.call(Helper::Meter, &[meter, idx]);
                let nothing = self.number(u64::MAX);
                let none = self.test(Equal, colour, nothing);
                let colour = self.mask(colour, mask);
                let before = self.get(dst);
                let v = self.select(none, before, colour);
                self.define(dst, v);
            }
            Op::MarkToDrop => {
                let at = offset_of!(State, drop_port) as i32;
                let port = self.b.ins().load(types::I64, own(), self.state, at);
                let zero = self.number(0);
                let arch = &self.ir.arch;
                for (f, v) in [(&arch.egress_spec, port), (&arch.mcast_grp, zero)] {
                    if let Some(f) = f {
                        self.set_field(f, v);
                    }
                }
            }
            Op::Random { dst, lo, hi, mask } => {
                let (lo, hi, before) = (self.get(lo), self.get(hi), self.get(dst));
                let some = self.test(UnsignedLessThanOrEqual, lo, hi);
                let v = self.either(some, before, |e| {
                    let v = e.call(Helper::Random, &[lo, hi]);
                    e.mask(v, mask)
                });
                self.define(dst, v);
            }
            Op::Hash { dst, base, calc, size } => {
                let (base, size) = (self.get(base), self.get(size));
                let calc = self.number(calc.into());
                let hash = self.call(Helper::Compute, &[calc]);
                let one = self.number(1);
                let size = self.b.ins().umax(size, one);
                let hash = self.b.ins().urem(hash, size);
                let v = self.b.ins().iadd(base, hash);
                self.define(dst, v);
            }
            Op::Digest(list) => {
                let list = self.number(list.into());
                let at = offset_of!(Packet, requests) + offset_of!(Requests, digest);
                self.set_packet(at, list);
            }
            Op::Exit => {
                let one = self.number(1);
                self.flag_to_packet(offset_of!(Packet, exit), one);
            }
            Op::Stop => {
                let stop = self.call(Helper::Stops, &[]);
                self.jump_if(stop, 0);
            }
            Op::Jump(to) => self.jump(to),
            Op::JumpIfZero(slot, to) => {
                let v = self.get(slot);
                self.jump_unless(v, to);
            }
            Op::JumpIfNonZero(slot, to) => {
                let v = self.get(slot);
                self.jump_if(v, to);
            }
            Op::UnlessEq(b) => self.branch(&b, Equal),
            Op::UnlessNe(b) => self.branch(&b, NotEqual),
            Op::UnlessLtU(b) => self.branch(&b, UnsignedLessThan),
            Op::UnlessLeU(b) => self.branch(&b, UnsignedLessThanOrEqual),
            Op::UnlessLtS(b) => self.branch(&b, SignedLessThan),
            Op::UnlessLeS(b) => self.branch(&b, SignedLessThanOrEqual),
            // A table is a lookup and what follows it.
            Op::Table(_) => {}
            Op::Heavy(i) => {
                let i = self.number(i.into());
                self.call(Helper::Heavy, &[i]);
            }
        }
    }

    pub(super) fn add_to(&mut self, cell: Value, at: usize, n: Value) {
        let v = self.b.ins().load(types::I64, own(), cell, at as i32);
        let v = self.b.ins().iadd(v, n);
        self.b.ins().store(own(), v, cell, at as i32);
    }

    pub(super) fn tri(&mut self, t: &Tri, f: impl FnOnce(&mut Self, Value, Value) -> Value) {
        let (a, b) = (self.get(t.a), self.get(t.b));
        let v = f(self, a, b);
        let v = self.mask(v, t.mask);
        self.define(t.dst, v);
    }

    pub(super) fn un(&mut self, u: &Un, f: impl FnOnce(&mut Self, Value, Value) -> Value) {
        let (a, imm) = (self.get(u.a), self.number(u.imm));
        let v = f(self, a, imm);
        self.define(u.dst, v);
    }

    /// 0 for a zero divisor.
    pub(super) fn divide(&mut self, t: &Tri, f: impl FnOnce(&mut Self, Value, Value) -> Value) {
        self.tri(t, |e, a, b| {
            let (zero, one) = (e.number(0), e.number(1));
            let divisor = e.b.ins().umax(b, one);
            let v = f(e, a, divisor);
            e.select(b, v, zero)
        });
    }

    /// 0 for an amount of 64 or more.
    pub(super) fn shift(&mut self, t: &Tri, f: impl FnOnce(&mut Self, Value, Value) -> Value) {
        let known = self.constants.get(&t.b).copied();
        self.tri(t, |e, a, b| {
            let v = f(e, a, b);
            match known {
                Some(n) if n < 64 => v,
                _ => {
                    let (zero, whole) = (e.number(0), e.number(64));
                    let less = e.test(IntCC::UnsignedLessThan, b, whole);
                    e.select(less, v, zero)
                }
            }
        });
    }

    pub(super) fn compare(&mut self, t: &Tri, cc: IntCC) {
        self.tri(t, |e, a, b| {
            let c = e.test(cc, a, b);
            e.truth(c)
        });
    }

    pub(super) fn against_zero(&mut self, u: &Un, cc: IntCC) {
        let (a, zero) = (self.get(u.a), self.number(0));
        let c = self.test(cc, a, zero);
        let v = self.truth(c);
        self.define(u.dst, v);
    }

    pub(super) fn branch(&mut self, b: &Branch, cc: IntCC) {
        let (x, y) = (self.get(b.a), self.get(b.b));
        let c = self.test(cc, x, y);
        self.jump_unless(c, b.to);
    }

    pub(super) fn set_valid(&mut self, h: u32) {
        let header = &self.ir.layout.headers[h as usize];
        if header.metadata {
            return;
        }
        if let Some(u) = header.union {
            for &other in &self.ir.layout.unions[u].headers {
                let zero = self.number(0);
                self.define(self.ir.layout.headers[other as usize].valid, zero);
            }
        }
        let one = self.number(1);
        self.define(header.valid, one);
    }
}
