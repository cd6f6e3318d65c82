//! Builds expressions, folding constants on the way (spec 18.1).

use fairlane_syntax::ast::{BinaryOp, UnaryOp};
use num_bigint::BigInt;
use num_traits::{One, ToPrimitive, Zero};

use crate::check::constants::{compare, int_op, wrap};
use crate::ir::{Expr, ExprKind};
use crate::types::Type;

/// The width of a scalar type on the target.
pub fn bits_of(t: &Type) -> u32 {
    match t {
        Type::Bits { width, .. } | Type::Varbit(width) => *width,
        Type::Bool => 1,
        Type::ErrorCode | Type::Enum(_) => 32,
        Type::SerEnum(_, u) | Type::Newtype(_, u) => bits_of(u),
        _ => 32,
    }
}

/// The exponent of a power of two.
fn power_of_two(n: &BigInt) -> Option<u64> {
    let bits = n.bits().checked_sub(1)?;
    (*n == BigInt::one() << bits).then_some(bits)
}

/// `op e`
pub fn unary(op: UnaryOp, e: Expr) -> Expr {
    let ty = e.ty.clone();
    match (op, &e.kind) {
        (UnaryOp::Plus, _) => e,
        (UnaryOp::Not, ExprKind::Bool(b)) => Expr::boolean(!b),
        (UnaryOp::Not, ExprKind::Unary(UnaryOp::Not, inner)) => (**inner).clone(),
        (UnaryOp::Complement, ExprKind::Const(v)) => Expr::constant(wrap(!v.clone(), &ty), ty),
        (UnaryOp::Negate, ExprKind::Const(v)) => Expr::constant(wrap(-v.clone(), &ty), ty),
        _ => Expr { kind: ExprKind::Unary(op, Box::new(e)), ty },
    }
}

/// The value in another type of integers.
pub fn cast(e: Expr, to: &Type) -> Expr {
    if e.ty == *to {
        return e;
    }
    match (&e.kind, &e.ty, to) {
        (ExprKind::Const(v), _, Type::Bool) => Expr::boolean(!v.is_zero()),
        (ExprKind::Const(v), _, _) => Expr::constant(wrap(v.clone(), to), to.clone()),
        (ExprKind::Bool(b), _, Type::Bits { .. }) => Expr::constant(u8::from(*b), to.clone()),
        _ => Expr { kind: ExprKind::Cast(Box::new(e)), ty: to.clone() },
    }
}

/// `e[high:low]`
pub fn slice(e: Expr, high: u32, low: u32) -> Expr {
    let ty = Type::bit(high.saturating_sub(low) + 1);
    if let ExprKind::Const(v) = &e.kind {
        return Expr::constant(wrap(v.clone() >> low, &ty), ty);
    }
    if low == 0 && e.ty == ty {
        return e;
    }
    if let ExprKind::Slice(inner, _, l) = &e.kind {
        return Expr { kind: ExprKind::Slice(inner.clone(), l + high, l + low), ty };
    }
    Expr { kind: ExprKind::Slice(Box::new(e), high, low), ty }
}

/// `c ? t : f`
pub fn mux(c: Expr, t: Expr, f: Expr) -> Expr {
    match c.kind {
        ExprKind::Bool(true) => t,
        ExprKind::Bool(false) => f,
        _ => {
            let ty = t.ty.clone();
            Expr { kind: ExprKind::Mux(Box::new(c), Box::new(t), Box::new(f)), ty }
        }
    }
}

/// `l op r`, both of the type that the operator wants; an `int` operand takes the other's type.
pub fn binary(op: BinaryOp, l: Expr, r: Expr) -> Expr {
    use BinaryOp::*;
    let (l, r) = match op {
        Shl | Shr | Concat | And | Or => (l, r),
        _ => match (&l.ty, &r.ty) {
            (Type::Int, Type::Int) => (l, r),
            (Type::Int, t) => {
                let t = t.clone();
                (cast(l, &t), r)
            }
            (t, Type::Int) => {
                let t = t.clone();
                (l, cast(r, &t))
            }
            _ => (l, r),
        },
    };
    let ty = match op {
        Eq | Ne | Lt | Le | Gt | Ge | And | Or => Type::Bool,
        Concat => {
            Type::Bits { width: bits_of(&l.ty).saturating_add(bits_of(&r.ty)), signed: matches!(l.ty, Type::Bits { signed: true, .. }) }
        }
        _ => l.ty.clone(),
    };
    match (op, &l.kind, &r.kind) {
        (And, ExprKind::Bool(false), _) | (Or, ExprKind::Bool(true), _) => return l,
        (And, ExprKind::Bool(true), _) | (Or, ExprKind::Bool(false), _) => return r,
        (And, _, ExprKind::Bool(true)) | (Or, _, ExprKind::Bool(false)) => return l,
        (Eq, ExprKind::Bool(a), ExprKind::Bool(b)) => return Expr::boolean(a == b),
        (Ne, ExprKind::Bool(a), ExprKind::Bool(b)) => return Expr::boolean(a != b),
        (Concat, ExprKind::Const(a), ExprKind::Const(b)) => {
            let width = bits_of(&r.ty);
            let low = wrap(b.clone(), &Type::bit(width));
            return Expr::constant(wrap((a.clone() << width) | low, &ty), ty);
        }
        (_, ExprKind::Const(a), ExprKind::Const(b)) => {
            if let Some(v) = compare(op, a, b) {
                return Expr::boolean(v);
            }
            if let Some(v) = int_op(op, a, b, &ty) {
                return Expr::constant(v, ty);
            }
        }
        // The target does not divide, but a power of two is a shift or a mask.
        (Div | Mod, _, ExprKind::Const(n)) if matches!(ty, Type::Bits { signed: false, .. }) && power_of_two(n).is_some() => {
            let bits = power_of_two(n).unwrap_or(0);
            return if op == Div { binary(Shr, l, Expr::constant(bits, Type::Int)) } else { binary(BitAnd, l, Expr::constant(n - 1, ty)) };
        }
        // Neutral operands, and shifts that leave nothing: the target limits shift amounts.
        (Add | Sub | BitOr | BitXor | Shl | Shr | AddSat | SubSat, _, ExprKind::Const(z)) if z.is_zero() => return l,
        (Add | BitOr | BitXor, ExprKind::Const(z), _) if z.is_zero() && r.ty == ty => return r,
        (Mul, _, ExprKind::Const(v)) if v.is_one() => return l,
        (Mul, ExprKind::Const(v), _) if v.is_one() => return r,
        (Shl, _, ExprKind::Const(n)) if n.to_u32().is_none_or(|n| n >= bits_of(&ty)) => {
            return Expr::constant(0, ty);
        }
        (Shr, _, ExprKind::Const(n)) => {
            let width = bits_of(&ty);
            if n.to_u32().is_none_or(|n| n >= width) {
                if matches!(ty, Type::Bits { signed: true, .. }) && width > 0 {
                    let all = Expr::constant(BigInt::from(width - 1), Type::bit(32));
                    return Expr { kind: ExprKind::Binary(op, Box::new(l), Box::new(all)), ty };
                }
                return Expr::constant(0, ty);
            }
        }
        _ => {}
    }
    Expr { kind: ExprKind::Binary(op, Box::new(l), Box::new(r)), ty }
}
