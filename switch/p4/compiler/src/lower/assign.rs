//! Assignments, taken apart to fields (spec 12.1).

use fairlane_syntax::ast::{self, BinaryOp, Span};
use num_bigint::BigInt;
use num_traits::One;

use super::storage::Storage;
use super::values::Val;
use super::{fold, Lower};
use crate::ir::{self, Expr, ExprKind, HeaderRef, Place, Stmt};
use crate::types::Type;

impl<'a> Lower<'a, '_> {
    /// `target = value`, the value being of the target's type.
    pub(super) fn store(&mut self, target: &Storage, value: Val, span: Span) {
        // `{a, b} = {b, a}`: what is overwritten before it is read is copied first.
        let value = match value {
            v @ (Val::Struct(..) | Val::HeaderLiteral(Some(_), _) | Val::StackLiteral(..)) if self.reads(&v, target) => {
                self.freeze(v, span)
            }
            v => v,
        };
        self.store_parts(target, value, span);
    }

    fn store_parts(&mut self, target: &Storage, value: Val, span: Span) {
        match (target, value) {
            (Storage::Nowhere, _) | (_, Val::Broken) => {}
            (Storage::Scalar(p), Val::Scalar(e)) => {
                if e.kind == ExprKind::Place(Box::new(p.clone())) {
                    return;
                }
                let e = if e.ty == Type::Int { fold::cast(e, &p.ty) } else { e };
                // Bits ahead can be set to a field only.
                let e = if matches!(p.header, HeaderRef::Element(..)) { self.settle(e, span) } else { e };
                self.emit(Stmt::Assign(p.clone(), e, span));
            }
            (Storage::Scalar(p), v @ Val::Struct(..)) => {
                let e = self.as_scalar(v);
                self.emit(Stmt::Assign(p.clone(), e, span));
            }
            (Storage::Struct(parts, _), Val::Struct(values, _)) => {
                let by_name = parts.iter().all(|(n, _)| values.iter().any(|(m, _)| m == n));
                for (i, (n, s)) in parts.iter().enumerate() {
                    let v = if by_name { values.iter().find(|(m, _)| m == n) } else { values.get(i) };
                    if let Some((_, v)) = v {
                        self.store_parts(s, v.clone(), span);
                    }
                }
            }
            (Storage::Header(h, _), Val::Header(g, _)) if *h == g => {}
            (Storage::Header(h, _), Val::Header(g, _)) => self.emit(Stmt::AssignHeader(h.clone(), g, span)),
            (Storage::Header(h, t), Val::HeaderLiteral(Some(values), _)) => {
                self.emit(Stmt::SetValid(h.clone(), true, span));
                for (n, v) in values {
                    let s = self.header_field(h, t, &n);
                    self.store_parts(&s, v, span);
                }
            }
            (Storage::Header(h, _), Val::HeaderLiteral(None, _) | Val::Invalid) => {
                self.emit(Stmt::SetValid(h.clone(), false, span));
            }
            (Storage::Stack(a, _), Val::Stack(b, _)) if *a == b => {}
            (Storage::Stack(a, _), Val::Stack(b, _)) => self.emit(Stmt::AssignStack(*a, b, span)),
            (Storage::Stack(a, t), Val::StackLiteral(values)) => {
                let ids = match &self.program.stacks[a.0].elements {
                    ir::StackElements::Headers(_, ids) => ids.clone(),
                    ir::StackElements::Unions(..) => Vec::new(),
                };
                for (id, v) in ids.iter().zip(values) {
                    let v = self.convert(v, t);
                    self.store_parts(&Storage::Header(HeaderRef::Instance(*id), t.clone()), v, span);
                }
            }
            (Storage::Union(a, _), Val::Union(b, _)) if *a == b => {}
            (Storage::Union(a, _), Val::Union(b, _)) => self.emit(Stmt::AssignUnion(*a, b, span)),
            (Storage::Union(a, _), Val::Invalid) => {
                for (_, h) in self.program.unions[a.0].members.clone() {
                    self.emit(Stmt::SetValid(HeaderRef::Instance(h), false, span));
                }
            }
            _ => {}
        }
    }

    /// Whether the value reads something that the target holds.
    fn reads(&self, v: &Val, target: &Storage) -> bool {
        let place = |p: &Place| Storage::Scalar(p.clone()).overlaps(target, &self.program);
        match v {
            Val::Scalar(e) => e.any(|x| match &x.kind {
                ExprKind::Place(p) => place(p),
                ExprKind::Valid(h) => Storage::Header(h.clone(), Type::Unknown).overlaps(target, &self.program),
                _ => false,
            }),
            Val::Struct(parts, _) | Val::HeaderLiteral(Some(parts), _) => parts.iter().any(|(_, v)| self.reads(v, target)),
            Val::StackLiteral(parts) => parts.iter().any(|v| self.reads(v, target)),
            Val::Header(h, t) => Storage::Header(h.clone(), t.clone()).overlaps(target, &self.program),
            Val::Stack(s, t) => Storage::Stack(*s, t.clone()).overlaps(target, &self.program),
            Val::Union(u, t) => Storage::Union(*u, t.clone()).overlaps(target, &self.program),
            _ => false,
        }
    }

    /// The assignment statement, with an operator when compound.
    pub(super) fn assignment(&mut self, target: &'a ast::Expr, op: Option<BinaryOp>, value: &'a ast::Expr, span: Span) {
        if let ast::ExprKind::Slice(..) = &target.kind {
            return self.slice_assignment(target, op, value, span);
        }
        let t = self.type_of(target.id);
        let Some(place) = self.place(target) else { return };
        // The l-value is evaluated before the value (spec 8.1).
        let place = if self.has_effects(value) { self.pin(place, span) } else { self.pin_relative(place, span) };
        match op {
            None => {
                let v = self.value_as(value, &t);
                self.store(&place, v, span);
            }
            Some(op) => {
                // `A op= B` is `A = A op B`, from left to right.
                let current = self.load(&place);
                let current = if self.has_effects(value) { self.freeze(current, span) } else { current };
                let l = self.as_scalar(current);
                let v = self.value(value);
                let r = self.as_scalar(v);
                let r = self.settle(r, span);
                let result = fold::binary(op, l, r);
                self.check_division(&result, op, span);
                self.store(&place, Val::Scalar(result), span);
            }
        }
    }

    fn slice_assignment(&mut self, target: &'a ast::Expr, op: Option<BinaryOp>, value: &'a ast::Expr, span: Span) {
        let t = self.type_of(target.id);
        let Some((p, h, l)) = self.bits_place(target) else { return };
        let current = Val::Scalar(fold::slice(Expr::place(p.clone()), h, l));
        let current = if op.is_some() && self.has_effects(value) { self.freeze(current, span) } else { current };
        let current = self.as_scalar(current);
        let v = self.value_as(value, &t);
        let e = self.as_scalar(v);
        let e = self.settle(e, span);
        let e = match op {
            None => e,
            Some(op) => {
                let result = fold::binary(op, current, e);
                self.check_division(&result, op, span);
                result
            }
        };
        self.store_bits(&p, h, l, e, span);
    }

    /// `p[h:l] = e` as `p = (p & ~mask) | (((T)e << l) & mask)`
    pub(super) fn store_bits(&mut self, p: &Place, h: u32, l: u32, e: Expr, span: Span) {
        let width = fold::bits_of(&p.ty);
        let ones: BigInt = (BigInt::one() << (h.saturating_sub(l) + 1)) - 1;
        let mask = ones << l;
        let all: BigInt = (BigInt::one() << width) - 1;
        let keep = &all - &mask;
        let ty = Type::bit(width);
        let old = fold::cast(Expr::place(p.clone()), &ty);
        let kept = fold::binary(BinaryOp::BitAnd, old, Expr::constant(keep, ty.clone()));
        let wide = fold::cast(e, &ty);
        let moved = fold::binary(BinaryOp::Shl, wide, Expr::constant(l, Type::Int));
        let new = fold::binary(BinaryOp::BitAnd, moved, Expr::constant(mask, ty));
        let value = fold::binary(BinaryOp::BitOr, kept, new);
        self.emit(Stmt::Assign(p.clone(), fold::cast(value, &p.ty), span));
    }
}
