//! Evaluation of expression trees with unbounded integers: the reference the register code must
//! agree with, and the way for what it cannot hold.

use num_bigint::BigInt;

use super::headers::{header_eq, union_eq, union_valid};
use super::num::Num;
use super::packet::{field_of, Packet};
use super::state::Register;
use crate::ir::*;

/// What an expression reads.
pub struct Env<'a> {
    pub ir: &'a Ir,
    pub registers: &'a [Register],
    pub pkt: &'a Packet,
}

impl Env<'_> {
    /// The value of a number. A header that does not exist (index out of bounds, empty stack)
    /// reads as 0, where BMv2 aborts.
    pub fn num(&self, e: &Expr) -> Num {
        match e {
            Expr::Const(c) => Num::from_big(c.clone()),
            Expr::Field(f) => self.pkt.num(f),
            Expr::Varbit(v) => {
                let bytes = &self.pkt.varbits[*v as usize].bytes;
                Num::from_big(BigInt::from_bytes_be(num_bigint::Sign::Plus, bytes))
            }
            Expr::Param(slot, width) => {
                let start = *slot as usize;
                Num::from_limbs(&self.pkt.slots[start..start + width.div_ceil(64) as usize])
            }
            Expr::StackLast(stack, f) => match self.last(*stack) {
                Some(h) => self.pkt.num(&field_of(self.ir, h, f)),
                None => Num::Small(0),
            },
            Expr::FieldOf(h, f) => match header(self, h) {
                Some(h) => self.pkt.num(&field_of(self.ir, h, f)),
                None => Num::Small(0),
            },
            Expr::Register(reg, idx) => {
                self.num(idx).to_u64().and_then(|i| self.registers[*reg as usize].limbs_at(i)).map_or(Num::Small(0), Num::from_limbs)
            }
            Expr::BitNot(a) => self.num(a).not(),
            Expr::Cond(c, a, b) => self.num(if self.truth(c) { a } else { b }),
            Expr::StackSize(s) => self.slot(self.ir.layout.stacks[*s as usize].next),
            Expr::UnionStackSize(s) => self.slot(self.ir.layout.union_stacks[*s as usize].next),
            Expr::StackLastIndex(s) => self.slot(self.ir.layout.stacks[*s as usize].next).sub(&Num::Small(1)),
            Expr::ToData(b) => Num::Small(self.truth(b).into()),
            Expr::Bin(op, a, b) => {
                let (a, b) = (self.num(a), self.num(b));
                let width = || b.to_u64().map_or(0, |w| w.min(65536)) as u32;
                match op {
                    BinOp::Add => a.add(&b),
                    BinOp::Sub => a.sub(&b),
                    BinOp::Mul => a.mul(&b),
                    BinOp::Div => a.div(&b),
                    BinOp::Rem => a.rem(&b),
                    BinOp::Shl => a.shl(&b),
                    BinOp::Shr => a.shr(&b),
                    BinOp::And => a.and(&b),
                    BinOp::Or => a.or(&b),
                    BinOp::Xor => a.xor(&b),
                    BinOp::TwoCompMod => a.two_comp_mod(width()),
                    BinOp::UsatCast => a.usat(width()),
                    BinOp::SatCast => a.sat(width()),
                }
            }
            _ => Num::Small(self.truth(e).into()),
        }
    }

    fn slot(&self, slot: Slot) -> Num {
        Num::from_u64(self.pkt.slots[slot as usize])
    }

    pub fn truth(&self, e: &Expr) -> bool {
        match e {
            Expr::Bool(b) => *b,
            Expr::Cmp(op, a, b) => {
                let order = self.num(a).cmp(&self.num(b));
                match op {
                    CmpOp::Eq => order.is_eq(),
                    CmpOp::Ne => order.is_ne(),
                    CmpOp::Lt => order.is_lt(),
                    CmpOp::Le => order.is_le(),
                    CmpOp::Gt => order.is_gt(),
                    CmpOp::Ge => order.is_ge(),
                }
            }
            Expr::BoolEq(a, b) => self.truth(a) == self.truth(b),
            Expr::BoolAnd(a, b) => self.truth(a) && self.truth(b),
            Expr::BoolOr(a, b) => self.truth(a) || self.truth(b),
            Expr::BoolNot(a) => !self.truth(a),
            Expr::Valid(h) => header(self, h).is_some_and(|h| self.valid(h)),
            Expr::ValidUnion(u) => union(self, u).is_some_and(|u| union_valid(self.ir, self.pkt, u)),
            Expr::HeaderEq(a, b) => match (header(self, a), header(self, b)) {
                (Some(a), Some(b)) => header_eq(self.ir, self.pkt, a, b),
                _ => false,
            },
            Expr::UnionEq(a, b) => match (union(self, a), union(self, b)) {
                (Some(a), Some(b)) => union_eq(self.ir, self.pkt, a, b),
                _ => false,
            },
            Expr::ToBool(a) => !self.num(a).is_zero(),
            Expr::Cond(c, a, b) => self.truth(if self.truth(c) { a } else { b }),
            _ => !self.num(e).is_zero(),
        }
    }

    pub fn valid(&self, h: u32) -> bool {
        self.pkt.slots[self.ir.layout.headers[h as usize].valid as usize] != 0
    }

    /// The last element of a stack.
    pub fn last(&self, stack: u32) -> Option<u32> {
        let stack = &self.ir.layout.stacks[stack as usize];
        let next = self.pkt.slots[stack.next as usize];
        stack.headers.get(next.checked_sub(1)? as usize).copied()
    }

    /// A number as index or length: at most `max`, 0 when negative.
    pub fn bounded(&self, e: &Expr, max: u64) -> u64 {
        let n = self.num(e);
        match n.to_u64() {
            Some(v) => v.min(max),
            None if n.is_negative() => 0,
            None => max,
        }
    }
}

/// Decimal text of a number, for `log_msg`.
pub fn decimal(n: &Num) -> String {
    match n {
        Num::Small(v) => v.to_string(),
        Num::Big(v) => BigInt::to_string(v),
    }
}

/// The header an expression names.
pub fn header(env: &Env, h: &HeaderRef) -> Option<u32> {
    match h {
        HeaderRef::Fixed(h) => Some(*h),
        HeaderRef::StackElem(s, idx) => {
            let i = env.num(idx).to_u64()?;
            env.ir.layout.stacks[*s as usize].headers.get(usize::try_from(i).ok()?).copied()
        }
        HeaderRef::UnionMember(u, i) => {
            let u = union(env, u)?;
            env.ir.layout.unions[u as usize].headers.get(*i as usize).copied()
        }
    }
}

/// The header union an expression names.
pub fn union(env: &Env, u: &UnionRef) -> Option<u32> {
    match u {
        UnionRef::Fixed(u) => Some(*u),
        UnionRef::StackElem(s, idx) => {
            let i = env.num(idx).to_u64()?;
            env.ir.layout.union_stacks[*s as usize].unions.get(usize::try_from(i).ok()?).copied()
        }
    }
}
