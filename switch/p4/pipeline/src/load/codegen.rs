//! Expressions to register code.
//!
//! The code computes modulo 2^64. That is exact where only the low bits matter (`+ - * & | ^ ~ <<`
//! before a mask or an assignment), and where interval analysis shows that a value fits 64 bits
//! (comparisons, `>>`, division, saturation). Anything else stays an expression tree, evaluated
//! with unbounded integers.

use std::collections::HashMap;

use num_bigint::BigInt;

use crate::ir::*;

/// How a slot holds a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    /// The value, in 0..2^64.
    Unsigned,
    /// The value in two's complement, in -2^63..2^63.
    Signed,
    /// The value modulo 2^64 only.
    Low,
}

type Range = Option<(i128, i128)>;

/// Builds the program's code; owns the slots beyond the packet.
pub struct CodeGen {
    pub layout: Layout,
    pub code: Vec<Op>,
    pub heavy: Vec<Heavy>,
    /// Constants by value.
    pub consts: HashMap<u64, Slot>,
    temps: Vec<Slot>,
    used_temps: usize,
    /// Widths of the register arrays.
    pub register_widths: Vec<u32>,
}

pub fn ones(width: u32) -> u64 {
    if width >= 64 {
        u64::MAX
    } else {
        (1 << width) - 1
    }
}

fn class_of(range: Range) -> Class {
    match range {
        Some((lo, hi)) if lo >= 0 && hi <= i128::from(u64::MAX) => Class::Unsigned,
        Some((lo, hi)) if lo >= i128::from(i64::MIN) && hi <= i128::from(i64::MAX) => Class::Signed,
        _ => Class::Low,
    }
}

fn width_range(width: u32, signed: bool) -> Range {
    match (width, signed) {
        (0, _) => Some((0, 0)),
        (1..=126, false) => Some((0, (1 << width) - 1)),
        (1..=126, true) => Some((-(1 << (width - 1)), (1 << (width - 1)) - 1)),
        _ => None,
    }
}

fn const_u32(e: &Expr) -> Option<u32> {
    match e {
        Expr::Const(c) => u32::try_from(c).ok(),
        _ => None,
    }
}

impl CodeGen {
    pub fn new(layout: Layout, register_widths: Vec<u32>) -> CodeGen {
        let one = layout.packet_end;
        CodeGen {
            layout,
            code: Vec::new(),
            heavy: Vec::new(),
            consts: HashMap::from([(1, one)]),
            temps: Vec::new(),
            used_temps: 0,
            register_widths,
        }
    }

    /// A new slot that starts as `init`.
    pub fn slot(&mut self, init: u64) -> Slot {
        self.layout.init.push(init);
        (self.layout.init.len() - 1) as Slot
    }

    pub fn constant(&mut self, v: u64) -> Slot {
        if let Some(&slot) = self.consts.get(&v) {
            return slot;
        }
        let slot = self.slot(v);
        self.consts.insert(v, slot);
        slot
    }

    fn temp(&mut self) -> Slot {
        if self.used_temps == self.temps.len() {
            let slot = self.slot(0);
            self.temps.push(slot);
        }
        self.used_temps += 1;
        self.temps[self.used_temps - 1]
    }

    /// Temporaries may be used anew: call between statements.
    pub fn end_statement(&mut self) {
        self.used_temps = 0;
    }

    pub fn here(&self) -> u32 {
        self.code.len() as u32
    }

    pub fn push_heavy(&mut self, h: Heavy) {
        self.heavy.push(h);
        self.code.push(Op::Heavy((self.heavy.len() - 1) as u32));
    }

    /// Interval a number lies in, when it is bounded by 127 bits.
    fn range(&self, e: &Expr) -> Range {
        use BinOp::*;
        match e {
            Expr::Const(c) => i128::try_from(c).ok().map(|v| (v, v)),
            Expr::Varbit(_) => None,
            Expr::Field(f) => width_range(f.width, f.signed),
            Expr::Param(_, w) => width_range(*w, false),
            Expr::StackLast(_, f) | Expr::FieldOf(_, f) => width_range(f.width, f.signed),
            Expr::Register(r, _) => width_range(self.register_widths[*r as usize], false),
            Expr::BitNot(a) => self.range(a).map(|(lo, hi)| (!hi, !lo)),
            Expr::Cond(_, a, b) => match (self.range(a), self.range(b)) {
                (Some(x), Some(y)) => Some((x.0.min(y.0), x.1.max(y.1))),
                _ => None,
            },
            Expr::StackSize(s) => Some((0, self.layout.stacks[*s as usize].headers.len() as i128)),
            Expr::StackLastIndex(s) => Some((-1, self.layout.stacks[*s as usize].headers.len() as i128 - 1)),
            Expr::UnionStackSize(s) => Some((0, self.layout.union_stacks[*s as usize].unions.len() as i128)),
            Expr::Bin(op, a, b) => {
                let (ra, rb) = (self.range(a), self.range(b));
                match op {
                    TwoCompMod | SatCast => width_range(const_u32(b)?, true),
                    UsatCast => width_range(const_u32(b)?, false),
                    And => match (ra, rb) {
                        (Some((al, ah)), Some((bl, bh))) if al >= 0 && bl >= 0 => Some((0, ah.min(bh))),
                        (Some((al, ah)), _) if al >= 0 => Some((0, ah)),
                        (_, Some((bl, bh))) if bl >= 0 => Some((0, bh)),
                        _ => None,
                    },
                    Or | Xor => {
                        let ((al, ah), (bl, bh)) = (ra?, rb?);
                        let bits = |v: i128| 128 - if v < 0 { !v } else { v }.leading_zeros();
                        let n = bits(al).max(bits(ah)).max(bits(bl)).max(bits(bh));
                        if n > 126 {
                            None
                        } else if al >= 0 && bl >= 0 {
                            Some((0, (1 << n) - 1))
                        } else {
                            Some((-(1 << n), (1 << n) - 1))
                        }
                    }
                    Add => Some((ra?.0.checked_add(rb?.0)?, ra?.1.checked_add(rb?.1)?)),
                    Sub => Some((ra?.0.checked_sub(rb?.1)?, ra?.1.checked_sub(rb?.0)?)),
                    Mul => {
                        let ((al, ah), (bl, bh)) = (ra?, rb?);
                        let p = [al.checked_mul(bl)?, al.checked_mul(bh)?, ah.checked_mul(bl)?, ah.checked_mul(bh)?];
                        Some((*p.iter().min()?, *p.iter().max()?))
                    }
                    Div if ra?.0 >= 0 && rb?.0 >= 0 => Some((0, ra?.1)),
                    // A zero divisor gives zero; otherwise less than the divisor.
                    Rem if ra?.0 >= 0 && rb?.0 >= 0 => Some((0, ra?.1.min(rb?.1))),
                    Div | Rem => None,
                    Shl => {
                        let c = const_u32(b)?;
                        if c > 100 {
                            return None;
                        }
                        Some((ra?.0.checked_mul(1 << c)?, ra?.1.checked_mul(1 << c)?))
                    }
                    Shr => match (ra?, const_u32(b)) {
                        ((lo, hi), Some(c)) => Some((lo >> c.min(127), hi >> c.min(127))),
                        ((lo, hi), None) if rb?.0 >= 0 => Some((lo.min(0), hi.max(0))),
                        _ => None,
                    },
                }
            }
            _ => Some((0, 1)),
        }
    }

    /// Emits code for `e`; the result's slot, and how it holds the value. `None`, with no promise
    /// about the code emitted, when 64 bits are not enough; `exact` asks for more than `Low`.
    fn emit(&mut self, e: &Expr, exact: bool) -> Option<(Slot, Class)> {
        let class = class_of(self.range(e));
        if exact && class == Class::Low {
            return None;
        }
        let slot = self.emit_any(e)?;
        Some((slot, class))
    }

    fn tri(&mut self, make: fn(Tri) -> Op, a: Slot, b: Slot) -> Slot {
        let dst = self.temp();
        self.code.push(make(Tri { dst, a, b, mask: u64::MAX }));
        dst
    }

    fn un(&mut self, make: fn(Un) -> Op, a: Slot, imm: u64) -> Slot {
        let dst = self.temp();
        self.code.push(make(Un { dst, a, imm }));
        dst
    }

    /// The value of `e` modulo 2^64.
    fn emit_any(&mut self, e: &Expr) -> Option<Slot> {
        Some(match e {
            Expr::Const(c) => {
                let v = crate::exec::num::Num::from_big(c.clone()).low_u64();
                self.constant(v)
            }
            Expr::Field(f) if f.signed && f.width < 64 => self.un(Op::Sext, f.slot, f.width.into()),
            Expr::Field(f) if f.signed && f.width > 64 => return None,
            Expr::Field(f) => f.slot,
            Expr::Param(slot, _) => *slot,
            Expr::StackLast(stack, f) if f.width <= 64 && !f.signed => {
                let dst = self.temp();
                self.code.push(Op::StackLast { dst, stack: *stack, rel: f.rel });
                dst
            }
            Expr::StackLast(..) | Expr::FieldOf(..) | Expr::Varbit(_) => return None,
            Expr::Register(reg, idx) => {
                if self.register_widths[*reg as usize] > 64 {
                    return None;
                }
                let (idx, class) = self.emit(idx, true)?;
                if class != Class::Unsigned {
                    return None;
                }
                let dst = self.temp();
                self.code.push(Op::RegVal { dst, reg: *reg, idx });
                dst
            }
            Expr::BitNot(a) => {
                let a = self.emit_any(a)?;
                self.un(Op::BitNot, a, u64::MAX)
            }
            Expr::Cond(c, a, b) => {
                let c = self.truth(c)?;
                let (a, b) = (self.emit_any(a)?, self.emit_any(b)?);
                let dst = self.temp();
                self.code.push(Op::Select { dst, c, a, b });
                dst
            }
            Expr::StackSize(s) => self.layout.stacks[*s as usize].next,
            Expr::UnionStackSize(s) => self.layout.union_stacks[*s as usize].next,
            Expr::StackLastIndex(s) => {
                let next = self.layout.stacks[*s as usize].next;
                let one = self.constant(1);
                self.tri(Op::Sub, next, one)
            }
            Expr::ToData(b) => self.truth(b)?,
            Expr::Bin(op, a, b) => self.bin(*op, a, b)?,
            _ => self.truth(e)?,
        })
    }

    fn bin(&mut self, op: BinOp, a: &Expr, b: &Expr) -> Option<Slot> {
        use BinOp::*;
        Some(match op {
            And => {
                if let Expr::Const(c) = b
                    && let Ok(mask) = u64::try_from(c)
                {
                    return self.masked(a, mask);
                }
                if let Expr::Const(c) = a
                    && let Ok(mask) = u64::try_from(c)
                {
                    return self.masked(b, mask);
                }
                let (a, b) = (self.emit_any(a)?, self.emit_any(b)?);
                self.tri(Op::And, a, b)
            }
            Add | Sub | Mul | Or | Xor => {
                let (a, b) = (self.emit_any(a)?, self.emit_any(b)?);
                let make = match op {
                    Add => Op::Add,
                    Sub => Op::Sub,
                    Mul => Op::Mul,
                    Or => Op::Or,
                    _ => Op::Xor,
                };
                self.tri(make, a, b)
            }
            Shl => {
                let a = self.emit_any(a)?;
                let (b, class) = self.emit(b, true)?;
                if class != Class::Unsigned {
                    return None;
                }
                self.tri(Op::Shl, a, b)
            }
            Shr => {
                if let (Expr::Field(f), Some(c)) = (a, const_u32(b))
                    && f.width > 64
                    && !f.signed
                {
                    return Some(self.wide_slice(f, c));
                }
                let (a, ca) = self.emit(a, true)?;
                let (b, cb) = self.emit(b, true)?;
                match (ca, cb) {
                    (Class::Unsigned, Class::Unsigned) => self.tri(Op::Shr, a, b),
                    (Class::Signed, Class::Unsigned) => self.tri(Op::Sar, a, b),
                    _ => return None,
                }
            }
            Div | Rem => {
                let (a, ca) = self.emit(a, true)?;
                let (b, cb) = self.emit(b, true)?;
                if ca != Class::Unsigned || cb != Class::Unsigned {
                    return None;
                }
                self.tri(if op == Div { Op::Div } else { Op::Rem }, a, b)
            }
            TwoCompMod => {
                let width = const_u32(b)?;
                let a = self.emit_any(a)?;
                match width {
                    1..=63 => self.un(Op::Sext, a, width.into()),
                    64 => a,
                    _ => return None,
                }
            }
            UsatCast => {
                let width = const_u32(b)?;
                let (a, class) = self.emit(a, true)?;
                match class {
                    Class::Unsigned => self.un(Op::MinU, a, ones(width)),
                    _ => self.un(Op::ClampU, a, ones(width)),
                }
            }
            SatCast => {
                let width = const_u32(b)?;
                let (a, class) = self.emit(a, true)?;
                if width > 64 {
                    return Some(a);
                }
                match class {
                    Class::Unsigned => self.un(Op::ClampUS, a, width.into()),
                    _ => self.un(Op::ClampS, a, width.into()),
                }
            }
        })
    }

    /// Bits `shift..shift + 64` of a wide field.
    fn wide_slice(&mut self, f: &Field, shift: u32) -> Slot {
        let (limb, bit) = (shift / 64, shift % 64);
        let limbs = f.limbs() as u32;
        if limb >= limbs {
            return self.constant(0);
        }
        if bit == 0 {
            return f.slot + limb;
        }
        let amount = self.constant(bit.into());
        let low = self.tri(Op::Shr, f.slot + limb, amount);
        if limb + 1 >= limbs {
            return low;
        }
        let amount = self.constant((64 - bit).into());
        let high = self.tri(Op::Shl, f.slot + limb + 1, amount);
        self.tri(Op::Or, low, high)
    }

    /// `a & mask`, the mask made part of the instruction before where possible.
    fn masked(&mut self, a: &Expr, mask: u64) -> Option<Slot> {
        let inside = matches!(self.range(a), Some((lo, hi)) if lo >= 0 && mask & (mask.wrapping_add(1)) == 0 && hi <= i128::from(mask));
        let slot = self.emit_any(a)?;
        if inside {
            return Some(slot);
        }
        if self.fuse(slot, None, mask) {
            return Some(slot);
        }
        Some(self.un(Op::Mov, slot, mask))
    }

    /// Applies a mask, and perhaps another destination, to the last instruction when that
    /// computed the temporary `slot`.
    fn fuse(&mut self, slot: Slot, to: Option<Slot>, mask: u64) -> bool {
        if !self.temps.contains(&slot) {
            return false;
        }
        let keep = mask == u64::MAX;
        match self.code.last_mut() {
            Some(arithmetic!(t)) if t.dst == slot => {
                t.mask &= mask;
                t.dst = to.unwrap_or(slot);
                true
            }
            Some(Op::Mov(u) | Op::BitNot(u)) if u.dst == slot => {
                u.imm &= mask;
                u.dst = to.unwrap_or(slot);
                true
            }
            Some(comparison!(t)) if t.dst == slot && mask & 1 == 1 => {
                t.dst = to.unwrap_or(slot);
                true
            }
            Some(Op::MinU(u) | Op::ClampU(u)) if u.dst == slot && u.imm & mask == u.imm => {
                u.dst = to.unwrap_or(slot);
                true
            }
            Some(Op::Select { dst, .. } | Op::StackLast { dst, .. }) if keep && *dst == slot => {
                *dst = to.unwrap_or(slot);
                true
            }
            Some(Op::Sext(u)) if keep && u.dst == slot => {
                u.dst = to.unwrap_or(slot);
                true
            }
            _ => false,
        }
    }

    /// A truth value as 0 or 1.
    fn truth(&mut self, e: &Expr) -> Option<Slot> {
        Some(match e {
            Expr::Bool(b) => self.constant((*b).into()),
            Expr::Valid(HeaderRef::Fixed(h)) => self.layout.headers[*h as usize].valid,
            Expr::BoolNot(a) => {
                let a = self.truth(a)?;
                self.un(Op::IsZero, a, 0)
            }
            Expr::BoolAnd(a, b) => {
                let (a, b) = (self.truth(a)?, self.truth(b)?);
                self.tri(Op::And, a, b)
            }
            Expr::BoolOr(a, b) => {
                let (a, b) = (self.truth(a)?, self.truth(b)?);
                self.tri(Op::Or, a, b)
            }
            Expr::BoolEq(a, b) => {
                let (a, b) = (self.truth(a)?, self.truth(b)?);
                self.tri(Op::Eq, a, b)
            }
            Expr::ToBool(a) => {
                // Zero modulo 2^64 says nothing of a wider value.
                if class_of(self.range(a)) == Class::Low {
                    return None;
                }
                let one_bit = matches!(self.range(a), Some((0, 1)));
                let a = self.emit_any(a)?;
                if one_bit {
                    a
                } else {
                    self.un(Op::NonZero, a, 0)
                }
            }
            Expr::Cond(c, a, b) => {
                let (c, a, b) = (self.truth(c)?, self.truth(a)?, self.truth(b)?);
                let dst = self.temp();
                self.code.push(Op::Select { dst, c, a, b });
                dst
            }
            Expr::Cmp(op, a, b) => self.compare(*op, a, b)?,
            _ => return None,
        })
    }

    fn compare(&mut self, op: CmpOp, a: &Expr, b: &Expr) -> Option<Slot> {
        // `hdr.x.$valid$ == 1` and its like need no code.
        if let (Some((0, 1)), Expr::Const(c)) = (self.range(a), b) {
            let one = *c == BigInt::from(1);
            if (op == CmpOp::Eq && one) || (op == CmpOp::Ne && *c == BigInt::from(0)) {
                return self.emit_any(a);
            }
        }
        let (ra, rb) = (self.range(a), self.range(b));
        let (a, ca) = self.emit(a, true)?;
        let (b, cb) = self.emit(b, true)?;
        let small = |r: Range| matches!(r, Some((_, hi)) if hi <= i128::from(i64::MAX));
        let signed = match (ca, cb) {
            (Class::Unsigned, Class::Unsigned) => false,
            _ if small(ra) && small(rb) => true,
            _ => return None,
        };
        type Make = fn(Tri) -> Op;
        let (lt, le): (Make, Make) = if signed { (Op::LtS, Op::LeS) } else { (Op::LtU, Op::LeU) };
        Some(match op {
            CmpOp::Eq => self.tri(Op::Eq, a, b),
            CmpOp::Ne => self.tri(Op::Ne, a, b),
            CmpOp::Lt => self.tri(lt, a, b),
            CmpOp::Le => self.tri(le, a, b),
            CmpOp::Gt => self.tri(lt, b, a),
            CmpOp::Ge => self.tri(le, b, a),
        })
    }

    fn try_emit<T>(&mut self, f: impl FnOnce(&mut CodeGen) -> Option<T>) -> Option<T> {
        let (len, temps) = (self.code.len(), self.used_temps);
        let result = f(self);
        if result.is_none() {
            self.code.truncate(len);
            self.used_temps = temps;
        }
        result
    }

    /// Code for a truth value; the slot that then holds it.
    pub fn condition(&mut self, e: &Expr) -> Slot {
        if let Some(slot) = self.try_emit(|g| g.truth(e)) {
            return slot;
        }
        let slot = self.temp();
        self.push_heavy(Heavy::EvalBool(slot, e.clone()));
        slot
    }

    /// Code for a number that must be exact and not negative; `None` when 64 bits do not do.
    pub fn unsigned(&mut self, e: &Expr) -> Option<Slot> {
        self.try_emit(|g| match g.emit(e, true)? {
            (slot, Class::Unsigned) => Some(slot),
            _ => None,
        })
    }

    /// Code for the low 64 bits of a number.
    pub fn low(&mut self, e: &Expr) -> Slot {
        if let Some((slot, _)) = self.try_emit(|g| g.emit(e, false)) {
            return slot;
        }
        let slot = self.temp();
        self.push_heavy(Heavy::Eval(slot, e.clone()));
        slot
    }

    /// `dst = base + calculation % size`, cut to the field's width.
    pub fn hash(&mut self, f: &Field, base: Slot, calc: u32, size: Slot) {
        let dst = self.temp();
        self.code.push(Op::Hash { dst, base, calc, size });
        self.code.push(Op::Mov(Un { dst: f.slot, a: dst, imm: ones(f.width) }));
    }

    /// `dst = e`, cut or saturated to the field's width.
    pub fn assign(&mut self, dst: &LValue, e: &Expr) {
        let LValue::Field(f) = dst else {
            self.push_heavy(Heavy::Assign(dst.clone(), e.clone()));
            return;
        };
        if f.width > 64 {
            match e {
                Expr::Field(s) if s.width == f.width && !s.signed && !f.saturating => {
                    self.push_heavy(Heavy::CopySlots { dst: f.slot, src: s.slot, n: f.limbs() as u32 });
                }
                Expr::Param(s, w) if *w == f.width && !f.saturating => {
                    self.push_heavy(Heavy::CopySlots { dst: f.slot, src: *s, n: f.limbs() as u32 });
                }
                _ => self.push_heavy(Heavy::Assign(dst.clone(), e.clone())),
            }
            return;
        }
        let saturated;
        let e = if f.saturating {
            let cast = if f.signed { BinOp::SatCast } else { BinOp::UsatCast };
            let width = Expr::Const(BigInt::from(f.width));
            saturated = Expr::Bin(cast, Box::new(e.clone()), Box::new(width));
            &saturated
        } else {
            e
        };
        let mask = match self.range(e) {
            Some((lo, hi)) if lo >= 0 && hi <= i128::from(ones(f.width)) => u64::MAX,
            _ => ones(f.width),
        };
        match self.try_emit(|g| g.emit(e, false)) {
            Some((slot, _)) => {
                if !self.fuse(slot, Some(f.slot), mask) {
                    self.code.push(Op::Mov(Un { dst: f.slot, a: slot, imm: mask }));
                }
            }
            None => self.push_heavy(Heavy::Assign(dst.clone(), e.clone())),
        }
    }
}
