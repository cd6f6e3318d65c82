//! Constants, default values and implicit casts; values kept from later writes.

use fairlane_syntax::ast::*;

use super::storage::Storage;
use super::values::Val;
use super::{fold, Lower};
use crate::check::constants::wrap;
use crate::check::ConstVal;
use crate::ir::{self, Expr, ExprKind, HeaderRef, Stmt};
use crate::types::Type;

impl<'a> Lower<'a, '_> {
    /// A value known at compile time.
    pub(super) fn constant(&self, v: &ConstVal, t: &Type) -> Val {
        match v {
            ConstVal::Int(i) => {
                let ty = self.scalar(t);
                Val::Scalar(Expr::constant(wrap(i.clone(), &ty), ty))
            }
            ConstVal::Bool(b) => Val::Scalar(Expr::boolean(*b)),
            ConstVal::Str(s) => Val::Text(s.clone()),
            ConstVal::Enum(_, i) => Val::Scalar(Expr::constant(*i, self.scalar(t))),
            ConstVal::Error(i) => Val::Scalar(Expr::constant(*i, Type::ErrorCode)),
            ConstVal::List(items) => {
                let fields: Vec<(Symbol, Type)> = match self.strip(t) {
                    Type::Struct(n) | Type::Header(n) => self.fields(&n),
                    Type::Tuple(ts) => ts.iter().enumerate().map(|(i, t)| (format!("{i}").into(), t.clone())).collect(),
                    Type::List(e) => (0..items.len()).map(|i| (format!("{i}").into(), (*e).clone())).collect(),
                    Type::Record(fs) => fs,
                    _ => Vec::new(),
                };
                let parts = fields
                    .iter()
                    .enumerate()
                    .map(|(i, (f, ft))| {
                        let item = items.iter().find(|(n, _)| n.as_ref() == Some(f)).or_else(|| items.get(i));
                        (f.clone(), item.map_or(Val::Default, |(_, v)| self.constant(v, ft)))
                    })
                    .collect();
                if let Type::Header(_) = t {
                    Val::HeaderLiteral(Some(parts), t.clone())
                } else {
                    Val::Struct(parts, t.clone())
                }
            }
        }
    }

    /// The default value of a type (spec 7.3).
    pub(super) fn default_value(&self, t: &Type) -> Val {
        match self.strip(t) {
            Type::Bool => Val::Scalar(Expr::boolean(false)),
            Type::Struct(n) => Val::Struct(self.fields(&n).into_iter().map(|(f, ft)| (f, self.default_value(&ft))).collect(), t.clone()),
            Type::Tuple(ts) => {
                Val::Struct(ts.iter().enumerate().map(|(i, ft)| (format!("{i}").into(), self.default_value(ft))).collect(), t.clone())
            }
            Type::Header(_) => Val::HeaderLiteral(None, t.clone()),
            Type::Stack(e, n) => Val::StackLiteral((0..n).map(|_| self.default_value(&e)).collect()),
            Type::Unknown | Type::Void | Type::Union(_) => Val::Broken,
            other => {
                // The first member of an enum, `NoError`, or zero.
                let ty = self.scalar(&other);
                Val::Scalar(Expr::constant(0, ty))
            }
        }
    }

    /// The value as one of type `to`: the implicit casts of spec 8.12.2.
    pub(super) fn convert(&mut self, v: Val, to: &Type) -> Val {
        let target = self.strip(to);
        match (v, &target) {
            (Val::Default, _) => self.default_value(to),
            (Val::Scalar(e), t) => {
                let t = self.scalar(t);
                match (&e.ty, &t) {
                    (Type::Int, Type::Bits { .. }) => Val::Scalar(fold::cast(e, &t)),
                    _ => Val::Scalar(e),
                }
            }
            (Val::Invalid, Type::Header(_)) => Val::HeaderLiteral(None, target),
            (Val::Struct(parts, _), Type::Struct(n)) => {
                let fields = self.fields(n);
                Val::Struct(self.convert_parts(parts, &fields), to.clone())
            }
            (Val::Struct(parts, _), Type::Header(n)) => {
                let fields = self.fields(n);
                Val::HeaderLiteral(Some(self.convert_parts(parts, &fields)), target)
            }
            (Val::Struct(parts, _), Type::Tuple(ts)) => {
                let fields: Vec<(Symbol, Type)> = ts.iter().enumerate().map(|(i, t)| (format!("{i}").into(), t.clone())).collect();
                // A struct passed where its tuple was inferred keeps its own names.
                let by_name = fields.iter().all(|(f, _)| parts.iter().any(|(n, _)| n == f));
                if by_name {
                    Val::Struct(self.convert_parts(parts, &fields), to.clone())
                } else {
                    let values = parts.into_iter().zip(&fields).map(|((_, v), (f, t))| (f.clone(), self.convert(v, t))).collect();
                    Val::Struct(values, to.clone())
                }
            }
            (Val::Struct(parts, _), Type::Stack(e, _)) => {
                let values = parts.into_iter().map(|(_, v)| self.convert(v, e)).collect();
                Val::StackLiteral(values)
            }
            (Val::Struct(parts, _), Type::Record(fields)) => Val::Struct(self.convert_parts(parts, &fields.clone()), to.clone()),
            (Val::Struct(parts, t), Type::List(e)) => {
                let values = parts.into_iter().map(|(n, v)| (n, self.convert(v, e))).collect();
                Val::Struct(values, t)
            }
            (v, _) => v,
        }
    }

    /// Values of a list or record in the order of the fields; `...` at the end gives defaults.
    fn convert_parts(&mut self, parts: Vec<(Symbol, Val)>, fields: &[(Symbol, Type)]) -> Vec<(Symbol, Val)> {
        let positional = parts.iter().all(|(n, _)| is_position(n));
        let named = !positional || parts.iter().any(|(n, _)| fields.iter().any(|(f, _)| f == n));
        let mut out = Vec::new();
        for (i, (f, t)) in fields.iter().enumerate() {
            let found = if named && parts.iter().any(|(n, _)| n == f) {
                parts.iter().find(|(n, _)| n == f)
            } else if positional {
                parts.get(i)
            } else {
                None
            };
            let v = match found {
                Some((_, v)) => self.convert(v.clone(), t),
                None => self.default_value(t),
            };
            out.push((f.clone(), v));
        }
        out
    }

    /// The scalar, or a zero after an error.
    pub(super) fn as_scalar(&mut self, v: Val) -> Expr {
        match v {
            Val::Scalar(e) => e,
            // A struct of one scalar (a tuple key) is that scalar.
            Val::Struct(mut parts, _) if parts.len() == 1 => match parts.pop() {
                Some((_, v)) => self.as_scalar(v),
                None => Expr::constant(0, Type::bit(1)),
            },
            _ => Expr::constant(0, Type::bit(1)),
        }
    }

    /// All scalars of a value, in order: of lists, structs and headers.
    pub(super) fn scalars_of(&self, v: &Val, out: &mut Vec<Expr>) {
        match v {
            Val::Scalar(e) => out.push(e.clone()),
            Val::Struct(parts, _) | Val::HeaderLiteral(Some(parts), _) => parts.iter().for_each(|(_, v)| self.scalars_of(v, out)),
            Val::Header(h, t) => out.extend(self.header_places(h, t).into_iter().map(Expr::place)),
            Val::Stack(s, t) => {
                if let ir::StackElements::Headers(_, ids) = &self.program.stacks[s.0].elements {
                    for h in ids {
                        out.extend(self.header_places(&HeaderRef::Instance(*h), t).into_iter().map(Expr::place));
                    }
                }
            }
            _ => {}
        }
    }

    /// The value out of reach of later writes: all that is read from variables is copied.
    pub(super) fn freeze(&mut self, v: Val, span: Span) -> Val {
        match v {
            Val::Scalar(e) if e.is_const() || matches!(e.kind, ExprKind::Param(_)) => Val::Scalar(e),
            Val::Scalar(e) => {
                let ty = e.ty.clone();
                if matches!(ty, Type::Int) {
                    return Val::Scalar(e);
                }
                Val::Scalar(self.temporary_of(&ty, e, "tmp", span))
            }
            Val::Struct(parts, t) => Val::Struct(parts.into_iter().map(|(n, v)| (n, self.freeze(v, span))).collect(), t),
            Val::HeaderLiteral(Some(parts), t) => {
                Val::HeaderLiteral(Some(parts.into_iter().map(|(n, v)| (n, self.freeze(v, span))).collect()), t)
            }
            Val::StackLiteral(parts) => Val::StackLiteral(parts.into_iter().map(|v| self.freeze(v, span)).collect()),
            Val::Header(h, t) => {
                let s = self.allocate("tmp_header", &t);
                if let Storage::Header(dst, _) = &s {
                    self.emit(Stmt::AssignHeader(dst.clone(), h, span));
                }
                self.load(&s)
            }
            Val::Stack(id, t) => {
                let size = match &self.program.stacks[id.0].elements {
                    ir::StackElements::Headers(_, ids) => ids.len() as u32,
                    ir::StackElements::Unions(_, ids) => ids.len() as u32,
                };
                let s = self.allocate("tmp_stack", &Type::Stack(Box::new(t), size));
                if let Storage::Stack(dst, _) = s {
                    self.emit(Stmt::AssignStack(dst, id, span));
                }
                self.load(&s)
            }
            Val::Union(u, t) => {
                let s = self.allocate("tmp_union", &t);
                if let Storage::Union(dst, _) = s {
                    self.emit(Stmt::AssignUnion(dst, u, span));
                }
                self.load(&s)
            }
            v => v,
        }
    }

    /// An expression that may stand inside another: bits of the packet ahead go through a variable.
    pub(super) fn settle(&mut self, e: Expr, span: Span) -> Expr {
        if matches!(e.kind, ExprKind::Lookahead(..)) {
            let ty = e.ty.clone();
            return self.temporary_of(&ty, e, "lookahead", span);
        }
        e
    }

    /// The expression, or a variable that holds it when it is nested deeply: readers of JSON bound the nesting of objects
    /// (serde_json at 128, JsonCpp at 1000), and an operator makes up to four levels.
    pub(super) fn shallow(&mut self, e: Expr, span: Span) -> Expr {
        if e.ty == Type::Int || !deeper(&e, MAX_EXPRESSION_DEPTH) {
            return e;
        }
        let ty = e.ty.clone();
        self.temporary_of(&ty, e, "tmp", span)
    }

    /// Like [`Self::settle`] for all scalars of a value.
    pub(super) fn settle_value(&mut self, v: Val, span: Span) -> Val {
        match v {
            Val::Scalar(e) => Val::Scalar(self.settle(e, span)),
            Val::Struct(parts, t) => Val::Struct(parts.into_iter().map(|(n, v)| (n, self.settle_value(v, span))).collect(), t),
            Val::HeaderLiteral(Some(parts), t) => {
                Val::HeaderLiteral(Some(parts.into_iter().map(|(n, v)| (n, self.settle_value(v, span))).collect()), t)
            }
            v => v,
        }
    }
}

/// The deepest nesting of operators in one expression of the target.
const MAX_EXPRESSION_DEPTH: u32 = 14;

/// Whether operators are nested more than `limit` deep.
fn deeper(e: &Expr, limit: u32) -> bool {
    let Some(rest) = limit.checked_sub(1) else { return true };
    match &e.kind {
        ExprKind::Unary(_, x) | ExprKind::Cast(x) | ExprKind::Slice(x, _, _) => deeper(x, rest),
        ExprKind::Binary(_, l, r) => deeper(l, rest) || deeper(r, rest),
        ExprKind::Mux(c, t, f) => deeper(c, rest) || deeper(t, rest) || deeper(f, rest),
        _ => false,
    }
}

/// Whether a name is one that positional elements get: `0`, `1`, ...
fn is_position(n: &str) -> bool {
    n.bytes().all(|b| b.is_ascii_digit())
}
