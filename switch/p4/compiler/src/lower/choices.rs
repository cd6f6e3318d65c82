//! What the target indexes by constants only, indexed at run time: one branch for each element.

use fairlane_syntax::ast::{self, *};

use super::storage::Storage;
use super::values::Val;
use super::{fold, Lower};
use crate::ir::{self, Expr, HeaderRef, Stmt};
use crate::rule::Rule;
use crate::types::Type;

/// The largest stack for whose elements branches are made.
const MAX_ELEMENTS: u32 = 128;

impl<'a> Lower<'a, '_> {
    /// The index of a stack of header unions, in what an expression reads or writes, that is known at run time only and for which no
    /// element has been chosen yet; and the stack's size.
    fn open_index(&mut self, e: &'a ast::Expr) -> Option<(&'a ast::Expr, u32)> {
        match &e.kind {
            ast::ExprKind::Index(base, index) => {
                if let Type::Stack(element, size) = self.type_of(base.id) {
                    let open = matches!(self.strip(&element), Type::Union(_)) && !self.chosen.contains_key(&index.id);
                    if open && (self.has_effects(index) || self.constant_int(index).is_none()) {
                        return Some((index, size));
                    }
                }
                self.open_index(base)
            }
            ast::ExprKind::Call { callee, arguments, .. } => {
                self.open_index(callee).or_else(|| arguments.iter().find_map(|a| self.open_index(&a.value)))
            }
            ast::ExprKind::Member(e, _) | ast::ExprKind::Slice(e, ..) | ast::ExprKind::Cast(_, e) | ast::ExprKind::Unary(_, e) => {
                self.open_index(e)
            }
            _ => None,
        }
    }

    /// Lowers by `f` an expression or statement over `parts`: once, or once for each element that an index may name. An index
    /// beyond the stack does nothing (spec 8.18 leaves it open).
    ///
    /// ```text
    /// u[i].h.setValid();    i' = i; if (i' == 0) { u[0].h.setValid(); } else if (i' == 1) { u[1].h.setValid(); }
    /// ```
    ///
    /// Returns whether there was such an index; `f` has not been called otherwise.
    pub(super) fn for_each_choice(&mut self, parts: &[&'a ast::Expr], span: Span, f: &mut dyn FnMut(&mut Self)) -> bool {
        let Some((index, size)) = parts.iter().find_map(|e| self.open_index(e)) else { return false };
        if !self.expandable(size, index.span) {
            return true;
        }
        let value = self.scalar_value(index);
        let ty = value.ty.clone();
        let value = self.temporary_of(&ty, value, "index", span);
        self.branch_on(&value, 0, size, span, &mut |l, k| {
            if let Some(k) = k {
                l.chosen.insert(index.id, k);
                if !l.for_each_choice(parts, span, f) {
                    f(l);
                }
                l.chosen.remove(&index.id);
            }
        });
        true
    }

    /// The value of an expression that reads a stack of header unions at an index known at run time; `None` for another.
    pub(super) fn chosen_value(&mut self, e: &'a ast::Expr) -> Option<Val> {
        let ty = self.type_of(e.id);
        if !matches!(self.strip(&ty), Type::Bits { .. } | Type::Bool | Type::Enum(_) | Type::SerEnum(..)) {
            return None;
        }
        self.open_index(e)?;
        let place = self.scalar_variable("chosen", &ty);
        self.for_each_choice(&[e], e.span, &mut |l| {
            let v = l.value_as(e, &ty);
            l.store(&Storage::Scalar(place.clone()), v, e.span);
        });
        Some(Val::Scalar(Expr::place(place)))
    }

    /// `f` with each of the numbers from `k` to `size`, where `value` has it, and with none where it has another value.
    fn branch_on(&mut self, value: &Expr, k: u32, size: u32, span: Span, f: &mut dyn FnMut(&mut Self, Option<u32>)) {
        if k >= size {
            return f(self, None);
        }
        let here = fold::binary(BinaryOp::Eq, value.clone(), Expr::constant(k, value.ty.clone()));
        // Both branches need `f`, one after the other.
        let f = std::cell::RefCell::new(f);
        self.if_else(
            here,
            span,
            |l| (*f.borrow_mut())(l, Some(k)),
            |l| {
                l.branch_on(value, k + 1, size, span, &mut **f.borrow_mut());
            },
        );
    }

    /// Whether a stack is small enough for a branch for each of its elements, and the program not too large already.
    fn expandable(&mut self, size: u32, span: Span) -> bool {
        if size > MAX_ELEMENTS {
            let text = format!("the index of a stack of {size} must be known at compile time here; up to {MAX_ELEMENTS} it need not");
            self.error(span, Rule::Bmv2, text);
        }
        size <= MAX_ELEMENTS && !self.overflow_told
    }

    /// `extract` to an element known at run time; beyond the stack it is the error that the specification wants (spec 8.18).
    pub(super) fn extract_element(&mut self, stack: ir::StackId, index: Expr, length: Option<Expr>, span: Span) {
        let ir::StackElements::Headers(_, ids) = self.program.stacks[stack.0].elements.clone() else { return };
        if !self.expandable(ids.len() as u32, span) {
            return;
        }
        let ty = index.ty.clone();
        let index = self.temporary_of(&ty, index, "index", span);
        let error = self.checked.errors.iter().position(|n| &**n == "StackOutOfBounds").unwrap_or(0);
        self.branch_on(&index, 0, ids.len() as u32, span, &mut |l, k| match k {
            Some(k) => l.emit(Stmt::Extract(HeaderRef::Instance(ids[k as usize]), length.clone(), span)),
            None => l.emit(Stmt::Verify(Expr::boolean(false), Expr::constant(error, Type::ErrorCode), span)),
        });
    }
}
