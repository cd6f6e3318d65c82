//! Expressions in BMv2 JSON (JSON_format.md, "the type value object").
//!
//! The target computes with integers of any size, so that each operation whose result may leave the range of
//! its type is followed by a mask, or by `two_comp_mod` when signed.

use fairlane_syntax::ast::{BinaryOp, UnaryOp};
use num_bigint::BigInt;
use num_traits::{One, Signed};
use serde_json::{json, Value};

use crate::ir::{Expr, ExprKind, HeaderRef, Place, Program, StackElements, StackId};
use crate::lower::fold::bits_of;
use crate::types::Type;

/// How a value is written: hexadecimal, padded to whole bytes of its width.
pub fn hex(value: &BigInt, bits: u32) -> String {
    let digits = value.abs().to_str_radix(16);
    let wide = (bits.div_ceil(8) * 2) as usize;
    let sign = if value.is_negative() { "-" } else { "" };
    format!("{sign}0x{digits:0>wide$}")
}

fn hexstr(value: &BigInt, bits: u32) -> Value {
    json!({"type": "hexstr", "value": hex(value, bits)})
}

fn operation(op: &str, left: Value, right: Value) -> Value {
    json!({"type": "expression", "value": {"op": op, "left": left, "right": right}})
}

fn mask(bits: u32) -> BigInt {
    (BigInt::one() << bits) - 1
}

/// Writes expressions of one program.
pub struct Expressions<'p> {
    /// The program whose headers they name.
    pub program: &'p Program,
}

impl Expressions<'_> {
    /// The name of a header, when it has one.
    pub fn header_name(&self, h: &HeaderRef) -> Option<&str> {
        match h {
            HeaderRef::Instance(id) => Some(&self.program.headers[id.0].name),
            _ => None,
        }
    }

    /// The name of a stack.
    pub fn stack_name(&self, s: StackId) -> &str {
        &self.program.stacks[s.0].name
    }

    /// A stack as a value.
    pub fn stack(&self, s: StackId) -> Value {
        let kind = match self.program.stacks[s.0].elements {
            StackElements::Headers(..) => "header_stack",
            StackElements::Unions(..) => "header_union_stack",
        };
        json!({"type": kind, "value": self.stack_name(s)})
    }

    /// A header as a value.
    pub fn header(&self, h: &HeaderRef) -> Value {
        match h {
            HeaderRef::Instance(id) => json!({"type": "header", "value": self.program.headers[id.0].name}),
            HeaderRef::Element(s, i) => operation("dereference_header_stack", self.stack(*s), local(self.value(i))),
            HeaderRef::Next(s) | HeaderRef::Last(s) | HeaderRef::UnionNext(s, _) => {
                json!({"type": "stack", "value": self.stack_name(*s)})
            }
        }
    }

    /// A field to write to, or one to read as it is.
    pub fn place(&self, p: &Place) -> Value {
        match &p.header {
            HeaderRef::Instance(id) => json!({"type": "field", "value": [self.program.headers[id.0].name, &*p.field]}),
            HeaderRef::Last(s) | HeaderRef::Next(s) | HeaderRef::UnionNext(s, _) => {
                json!({"type": "stack_field", "value": [self.stack_name(*s), &*p.field]})
            }
            h @ HeaderRef::Element(..) => operation("access_field", self.header(h), json!(p.index)),
        }
    }

    /// A field as the target of an assignment: elements of stacks are expressions.
    pub fn target(&self, p: &Place) -> Value {
        let v = self.place(p);
        match p.header {
            HeaderRef::Element(..) => wrap(v),
            _ => v,
        }
    }

    /// The value of an expression; Booleans are Booleans.
    pub fn value(&self, e: &Expr) -> Value {
        match &e.kind {
            ExprKind::Const(v) => match e.ty {
                Type::Int => hexstr(v, 0),
                _ => hexstr(v, bits_of(&e.ty)),
            },
            ExprKind::Bool(b) => json!({"type": "bool", "value": b}),
            ExprKind::Place(p) => {
                let v = self.place(p);
                if e.ty == Type::Bool {
                    return operation("d2b", Value::Null, v);
                }
                v
            }
            ExprKind::Param(i) => {
                if e.ty == Type::Bool {
                    return operation("d2b", Value::Null, json!({"type": "local", "value": i}));
                }
                json!({"type": "runtime_data", "value": i})
            }
            ExprKind::Valid(h) => match self.header_name(h) {
                Some(name) => operation("d2b", Value::Null, json!({"type": "field", "value": [name, "$valid$"]})),
                None => operation("valid", Value::Null, self.header(h)),
            },
            ExprKind::ValidUnion(u) => {
                operation("valid_union", Value::Null, json!({"type": "header_union", "value": self.program.unions[u.0].name}))
            }
            ExprKind::LastIndex(s) => operation("last_stack_index", Value::Null, self.stack(*s)),
            ExprKind::Lookahead(offset, width) => json!({"type": "lookahead", "value": [offset, width]}),
            ExprKind::Unary(op, inner) => self.unary(*op, inner, &e.ty),
            ExprKind::Binary(op, l, r) => self.binary(*op, l, r, &e.ty),
            ExprKind::Mux(c, t, f) => json!({"type": "expression", "value": {
                "op": "?",
                "left": local(self.value(t)),
                "right": local(self.value(f)),
                "cond": local(self.value(c)),
            }}),
            ExprKind::Cast(inner) => self.cast(inner, &e.ty),
            ExprKind::Slice(inner, high, low) => {
                let v = local(self.value(inner));
                let bits = bits_of(&inner.ty);
                let moved = if *low == 0 { v } else { operation(">>", v, hexstr(&BigInt::from(*low), 0)) };
                let signed = matches!(inner.ty, Type::Bits { signed: true, .. });
                if high + 1 == bits && !signed {
                    return moved;
                }
                operation("&", moved, hexstr(&mask(high - low + 1), bits))
            }
        }
    }

    fn unary(&self, op: UnaryOp, inner: &Expr, ty: &Type) -> Value {
        let v = local(self.value(inner));
        match op {
            UnaryOp::Not => operation("not", Value::Null, v),
            UnaryOp::Complement => clamp(operation("~", Value::Null, v), ty),
            UnaryOp::Negate => clamp(operation("-", hexstr(&BigInt::from(0), bits_of(ty)), v), ty),
            UnaryOp::Plus => v,
        }
    }

    fn binary(&self, op: BinaryOp, l: &Expr, r: &Expr, ty: &Type) -> Value {
        let lv = local(self.value(l));
        match op {
            BinaryOp::And => operation("and", lv, local(self.value(r))),
            BinaryOp::Or => operation("or", lv, local(self.value(r))),
            BinaryOp::AddSat | BinaryOp::SubSat => {
                let plain = operation(if op == BinaryOp::AddSat { "+" } else { "-" }, lv, local(self.value(r)));
                let cast = if matches!(ty, Type::Bits { signed: true, .. }) { "sat_cast" } else { "usat_cast" };
                operation(cast, plain, hexstr(&BigInt::from(bits_of(ty)), 0))
            }
            BinaryOp::Concat => {
                let right = bits_of(&r.ty);
                let unsigned = |e: &Expr, v: Value| match e.ty {
                    Type::Bits { width, signed: true } => operation("&", v, hexstr(&mask(width), width)),
                    _ => v,
                };
                let high = operation("<<", unsigned(l, lv), hexstr(&BigInt::from(right), 0));
                let low = unsigned(r, local(self.value(r)));
                let joined = operation("|", high, low);
                if matches!(ty, Type::Bits { signed: true, .. }) {
                    clamp(joined, ty)
                } else {
                    joined
                }
            }
            BinaryOp::Shl | BinaryOp::Shr => {
                let width = bits_of(&l.ty);
                let amount = local(self.value(r));
                // The target shifts by the amount as it is: one beyond the width leaves nothing, whatever it is.
                let amount = if r.is_const() || bits_of(&r.ty) <= 8 {
                    amount
                } else {
                    let limit = hexstr(&BigInt::from(width), bits_of(&r.ty));
                    let over = operation(">", amount.clone(), limit.clone());
                    json!({"type": "expression", "value": {"op": "?", "left": limit, "right": amount, "cond": over}})
                };
                let shifted = operation(op.symbol(), lv, amount);
                if op == BinaryOp::Shl {
                    clamp(shifted, ty)
                } else {
                    shifted
                }
            }
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul => clamp(operation(op.symbol(), lv, local(self.value(r))), ty),
            // The result of these is in range when the operands are.
            _ => operation(op.symbol(), lv, local(self.value(r))),
        }
    }

    fn cast(&self, inner: &Expr, to: &Type) -> Value {
        let plain = self.value(inner);
        let v = local(plain.clone());
        match (&inner.ty, to) {
            // Not `v`: data of the action may stand alone here.
            (Type::Bits { width: from, signed: false }, Type::Bits { width, signed: false }) if from <= width => plain,
            (Type::Bits { width: from, signed: true }, Type::Bits { width, signed: true }) if from <= width => plain,
            (Type::Bits { width: from, signed: false }, Type::Bits { width, signed: true }) if from < width => plain,
            (_, Type::Bits { width, signed: false }) => operation("&", v, hexstr(&mask(*width), bits_of(&inner.ty).max(*width))),
            (_, Type::Bits { .. }) => clamp(v, to),
            _ => plain,
        }
    }

    /// The value as data: a Boolean is 0 or 1; expressions stand in one more object, as the loader wants it.
    pub fn data(&self, e: &Expr) -> Value {
        let v = self.value(e);
        let v = match (&e.ty, &e.kind) {
            (Type::Bool, _) => operation("b2d", Value::Null, v),
            _ => v,
        };
        wrap(v)
    }
}

/// A field as it is stored, Booleans and validity too; another value as it is.
pub fn field(x: &Expressions, e: &Expr) -> Value {
    match &e.kind {
        ExprKind::Place(p) => x.place(p),
        ExprKind::Valid(h) if x.header_name(h).is_some() => json!({"type": "field", "value": [x.header_name(h), "$valid$"]}),
        _ => x.value(e),
    }
}

/// Brings a result into the range of its type.
fn clamp(v: Value, ty: &Type) -> Value {
    match ty {
        Type::Bits { width, signed: false } => operation("&", v, hexstr(&mask(*width), *width)),
        Type::Bits { width, signed: true } => operation("two_comp_mod", v, hexstr(&BigInt::from(*width), 0)),
        _ => v,
    }
}

/// Data of the action is called `local` inside an expression.
fn local(v: Value) -> Value {
    if v.get("type").and_then(Value::as_str) == Some("runtime_data") {
        return json!({"type": "local", "value": v["value"]});
    }
    v
}

/// An expression in one more object.
pub fn wrap(v: Value) -> Value {
    match v.get("type").and_then(Value::as_str) {
        Some("expression" | "stack_field") => json!({"type": "expression", "value": v}),
        _ => v,
    }
}
