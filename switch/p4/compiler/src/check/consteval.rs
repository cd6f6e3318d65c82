//! Expressions to values known at compile time (spec 18.1).

use fairlane_syntax::ast::*;
use num_bigint::BigInt;
use num_traits::{One, ToPrimitive, Zero};

use super::constants::{compare, int_op, wrap, ConstVal, MAX_SHIFT};
use super::scope::{Access, Local};
use super::Checker;
use crate::types::Type;

impl Checker<'_, '_> {
    /// The integer value of a checked expression, if known at compile time.
    pub(crate) fn eval_int(&mut self, e: &Expr) -> Option<BigInt> {
        match self.eval(e)? {
            ConstVal::Int(v) => Some(v),
            _ => None,
        }
    }

    /// The value of a checked expression, if known at compile time. Says nothing when it is not.
    pub(crate) fn eval(&mut self, e: &Expr) -> Option<ConstVal> {
        let ty = self.out.types.get(&e.id).map(|t| self.zonk(t)).unwrap_or(Type::Unknown);
        Some(match &e.kind {
            ExprKind::Int(l) => ConstVal::Int(wrap(l.value.clone(), &ty)),
            ExprKind::Bool(b) => ConstVal::Bool(*b),
            ExprKind::String(s) => ConstVal::Str(s.clone()),
            ExprKind::Name(p) => return self.eval_name(p),
            ExprKind::Member(base, m) => return self.eval_member(base, m, &ty),
            ExprKind::TypeMember(_, m) => ConstVal::Error(self.out.errors.iter().position(|n| *n == m.name)?),
            ExprKind::Index(base, i) => {
                let ConstVal::List(items) = self.eval(base)? else { return None };
                let i = self.eval_int(i)?.to_usize()?;
                items.get(i)?.1.clone()
            }
            ExprKind::Slice(base, high, low) => {
                let v = self.eval_int(base)?;
                let (h, l) = (self.eval_int(high)?.to_u32()?, self.eval_int(low)?.to_u32()?);
                if h < l || h > MAX_SHIFT {
                    return None;
                }
                ConstVal::Int((v >> l) & ((BigInt::one() << (h - l + 1)) - 1))
            }
            ExprKind::Cast(_, inner) => match self.eval(inner)? {
                ConstVal::Int(v) if matches!(ty, Type::Bool) => ConstVal::Bool(!v.is_zero()),
                ConstVal::Int(v) => ConstVal::Int(wrap(v, &ty)),
                ConstVal::Bool(b) if !matches!(ty, Type::Bool) => ConstVal::Int(BigInt::from(u8::from(b))),
                v => v,
            },
            ExprKind::Unary(op, inner) => match (op, self.eval(inner)?) {
                (UnaryOp::Not, ConstVal::Bool(b)) => ConstVal::Bool(!b),
                (UnaryOp::Complement, ConstVal::Int(v)) => ConstVal::Int(wrap(!v, &ty)),
                (UnaryOp::Negate, ConstVal::Int(v)) => ConstVal::Int(wrap(-v, &ty)),
                (UnaryOp::Plus, ConstVal::Int(v)) => ConstVal::Int(v),
                _ => return None,
            },
            ExprKind::Binary(op, l, r) => return self.eval_binary(*op, l, r, &ty),
            ExprKind::Ternary(c, t, f) => match self.eval(c)? {
                ConstVal::Bool(true) => return self.eval(t),
                ConstVal::Bool(false) => return self.eval(f),
                _ => return None,
            },
            ExprKind::List { elements, dots: false } => {
                ConstVal::List(elements.iter().map(|x| Some((None, self.eval(x)?))).collect::<Option<_>>()?)
            }
            ExprKind::Record { fields, dots: false } => {
                ConstVal::List(fields.iter().map(|(n, x)| Some((Some(n.name.clone()), self.eval(x)?))).collect::<Option<_>>()?)
            }
            ExprKind::Call { callee, arguments, .. } => {
                // Widths of types and of instances are known when the type is.
                if let ExprKind::Member(base, m) = &callee.kind {
                    if arguments.is_empty() && &*m.name == "minSizeInBits" || &*m.name == "minSizeInBytes" {
                        let t = self.out.types.get(&base.id).map(|t| self.zonk(t))?;
                        let bits = self.fixed_width(&t)?;
                        return Some(ConstVal::Int(BigInt::from(if &*m.name == "minSizeInBits" { bits } else { bits.div_ceil(8) })));
                    }
                    if &*m.name == "maxSizeInBits" || &*m.name == "maxSizeInBytes" {
                        let t = self.out.types.get(&base.id).map(|t| self.zonk(t))?;
                        let bits = self.largest_width(&t)?;
                        return Some(ConstVal::Int(BigInt::from(if &*m.name == "maxSizeInBits" { bits } else { bits.div_ceil(8) })));
                    }
                }
                if let ExprKind::Name(p) = &callee.kind
                    && &*p.name.name == "static_assert"
                {
                    return Some(ConstVal::Bool(true));
                }
                return None;
            }
            _ => return None,
        })
    }

    fn eval_name(&mut self, p: &Path) -> Option<ConstVal> {
        if let Some(local) = self.lookup_local(p) {
            return match local {
                Local::Var { access: Access::Constant(v), .. } => v.clone(),
                _ => None,
            };
        }
        let id = self.lookup_global(&p.name.name).into_iter().find(|id| matches!(self.decl(*id).kind, DeclarationKind::Constant(_)))?;
        self.out.constants.get(&id).cloned()
    }

    fn eval_member(&mut self, base: &Expr, m: &Ident, ty: &Type) -> Option<ConstVal> {
        if let (Type::Enum(n) | Type::SerEnum(n, _), ExprKind::Name(p)) = (ty, &base.kind)
            && self.lookup_local(p).is_none()
            && self.type_decl(&p.name.name).is_some()
        {
            let n = n.clone();
            // An enum in definition has no entry yet, and none of its members can be used.
            if self.resolving.contains(&n.decl) {
                return None;
            }
            let def = self.enum_def(n.decl)?;
            let i = def.members.iter().position(|(name, _)| *name == m.name)?;
            return Some(match &def.members[i].1 {
                Some(v) => ConstVal::Int(v.clone()),
                None => ConstVal::Enum(n.decl, i),
            });
        }
        let base_ty = self.out.types.get(&base.id).map(|t| self.zonk(t))?;
        if let (Type::Stack(_, n), "size") = (&base_ty, &*m.name) {
            return Some(ConstVal::Int(BigInt::from(*n)));
        }
        let ConstVal::List(items) = self.eval(base)? else { return None };
        if let Some((_, v)) = items.iter().find(|(n, _)| n.as_ref() == Some(&m.name)) {
            return Some(v.clone());
        }
        let (Type::Struct(n) | Type::Header(n)) = &base_ty else { return None };
        let i = self.field_types(n)?.iter().position(|(f, _)| *f == m.name)?;
        items.get(i).map(|(_, v)| v.clone())
    }

    fn eval_binary(&mut self, op: BinaryOp, l: &Expr, r: &Expr, ty: &Type) -> Option<ConstVal> {
        let lv = self.eval(l)?;
        match (op, &lv) {
            (BinaryOp::And, ConstVal::Bool(false)) => return Some(ConstVal::Bool(false)),
            (BinaryOp::Or, ConstVal::Bool(true)) => return Some(ConstVal::Bool(true)),
            _ => {}
        }
        let rv = self.eval(r)?;
        Some(match (op, lv, rv) {
            (BinaryOp::And | BinaryOp::Or, _, ConstVal::Bool(b)) => ConstVal::Bool(b),
            (BinaryOp::Concat, ConstVal::Int(a), ConstVal::Int(b)) => {
                let rt = self.out.types.get(&r.id).map(|t| self.strip_newtype(t))?;
                let Type::Bits { width, .. } = rt else { return None };
                let low = wrap(b, &Type::bit(width));
                ConstVal::Int(wrap((a << width) | low, ty))
            }
            (BinaryOp::Concat, ConstVal::Str(a), ConstVal::Str(b)) => ConstVal::Str(format!("{a}{b}").into()),
            (_, ConstVal::Int(a), ConstVal::Int(b)) => match compare(op, &a, &b) {
                Some(v) => ConstVal::Bool(v),
                None => ConstVal::Int(int_op(op, &a, &b, ty)?),
            },
            (BinaryOp::Eq, a, b) => ConstVal::Bool(a == b),
            (BinaryOp::Ne, a, b) => ConstVal::Bool(a != b),
            _ => return None,
        })
    }

    /// The width in bits of a type's values when they all have the same.
    pub(crate) fn fixed_width(&mut self, t: &Type) -> Option<u32> {
        self.width_of(t, false, 0)
    }

    /// The largest width in bits of a type's values (spec 9).
    pub(crate) fn largest_width(&mut self, t: &Type) -> Option<u32> {
        self.width_of(t, true, 0)
    }

    fn width_of(&mut self, t: &Type, largest: bool, depth: u32) -> Option<u32> {
        if depth > 64 {
            return None;
        }
        match t {
            Type::Bits { width, .. } => Some(*width),
            Type::Bool => Some(1),
            Type::Varbit(w) => Some(if largest { *w } else { 0 }),
            Type::SerEnum(_, u) | Type::Newtype(_, u) => self.width_of(u, largest, depth + 1),
            Type::Struct(n) | Type::Header(n) => {
                let fields = self.field_types(n)?;
                fields.iter().try_fold(0u32, |sum, (_, f)| sum.checked_add(self.width_of(f, largest, depth + 1)?))
            }
            Type::Union(n) => {
                let fields = self.field_types(n)?;
                let widths: Option<Vec<u32>> = fields.iter().map(|(_, f)| self.width_of(f, largest, depth + 1)).collect();
                let widths = widths?;
                if largest {
                    widths.into_iter().max()
                } else {
                    widths.into_iter().min()
                }
            }
            Type::Stack(e, n) => self.width_of(e, largest, depth + 1)?.checked_mul(*n),
            Type::Tuple(ts) => ts.iter().try_fold(0u32, |sum, f| sum.checked_add(self.width_of(f, largest, depth + 1)?)),
            _ => None,
        }
    }
}
