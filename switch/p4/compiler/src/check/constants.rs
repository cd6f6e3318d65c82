//! Values known at compile time, and arithmetic on them (spec 18.1).

use fairlane_syntax::ast::*;
use num_bigint::BigInt;
use num_traits::{One, Signed, ToPrimitive, Zero};

use crate::types::{DeclId, Type};

/// A value known at compile time.
#[derive(Debug, Clone, PartialEq)]
pub enum ConstVal {
    /// Of an integer type, serializable enum, or new type of one.
    Int(BigInt),
    /// `bool`
    Bool(bool),
    /// `string`
    Str(Symbol),
    /// A member of an enum, by position.
    Enum(DeclId, usize),
    /// An error, by code.
    Error(usize),
    /// A struct, header, tuple or list; names where the source gives them.
    List(Vec<(Option<Symbol>, ConstVal)>),
}

/// The largest distance that constants are shifted; beyond it the result would not fit into memory.
pub const MAX_SHIFT: u32 = 1 << 16;

/// Brings a value into the range of a type: modulo its width.
pub fn wrap(value: BigInt, ty: &Type) -> BigInt {
    match ty {
        Type::Bits { width, signed } => {
            let modulus = BigInt::one() << *width;
            let mut v = value % &modulus;
            if v.is_negative() {
                v += &modulus;
            }
            if *signed && *width > 0 && v >= BigInt::one() << (*width - 1) {
                v -= modulus;
            }
            v
        }
        Type::SerEnum(_, under) | Type::Newtype(_, under) => wrap(value, under),
        _ => value,
    }
}

/// Brings a value into the range of a type: to the nearest end.
pub fn saturate(value: BigInt, ty: &Type) -> BigInt {
    let Type::Bits { width, signed } = ty else { return value };
    let (low, high) = if *signed && *width > 0 {
        let half = BigInt::one() << (*width - 1);
        (-half.clone(), half - 1)
    } else {
        (BigInt::zero(), (BigInt::one() << *width) - 1)
    };
    value.clamp(low, high)
}

/// `l op r` on integers; `None` where it has no value (division by zero, absurd shifts). The result
/// is that of a type `ty`: wrapped or saturated.
pub fn int_op(op: BinaryOp, l: &BigInt, r: &BigInt, ty: &Type) -> Option<BigInt> {
    let v = match op {
        BinaryOp::Add => l + r,
        BinaryOp::Sub => l - r,
        BinaryOp::Mul => l * r,
        BinaryOp::Div | BinaryOp::Mod => {
            if r.is_zero() || l.is_negative() || r.is_negative() {
                return None;
            }
            if op == BinaryOp::Div {
                l / r
            } else {
                l % r
            }
        }
        BinaryOp::AddSat => return Some(saturate(l + r, ty)),
        BinaryOp::SubSat => return Some(saturate(l - r, ty)),
        BinaryOp::Shl => {
            if r.is_negative() {
                return None;
            }
            match r.to_u32() {
                Some(n) if n <= MAX_SHIFT => l << n,
                _ if matches!(ty, Type::Bits { .. }) => BigInt::zero(),
                _ => return None,
            }
        }
        BinaryOp::Shr => {
            if r.is_negative() {
                return None;
            }
            match r.to_u32() {
                Some(n) if n <= MAX_SHIFT => l >> n,
                _ if l.is_negative() => BigInt::from(-1),
                _ => BigInt::zero(),
            }
        }
        BinaryOp::BitAnd => l & r,
        BinaryOp::BitOr => l | r,
        BinaryOp::BitXor => l ^ r,
        _ => return None,
    };
    Some(wrap(v, ty))
}

/// `l op r` for the comparisons.
pub fn compare(op: BinaryOp, l: &BigInt, r: &BigInt) -> Option<bool> {
    Some(match op {
        BinaryOp::Eq => l == r,
        BinaryOp::Ne => l != r,
        BinaryOp::Lt => l < r,
        BinaryOp::Le => l <= r,
        BinaryOp::Gt => l > r,
        BinaryOp::Ge => l >= r,
        _ => return None,
    })
}
