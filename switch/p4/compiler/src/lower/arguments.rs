//! Arguments to parameters: copied in and out (spec 6.8), or by reference where nobody can tell.

use fairlane_syntax::ast::{self, Argument, BinaryOp, Direction, Parameter, Span, Symbol};

use super::storage::Storage;
use super::values::Val;
use super::{fold, Binding, Lower};
use crate::check::CallInfo;
use crate::ir::{self, Expr, ExprKind, HeaderRef, Place, Stmt};
use crate::types::Type;

/// What a parameter stands for, and what is to be done when the call is over.
#[derive(Debug)]
pub(super) struct Bound<'a> {
    pub name: Symbol,
    pub binding: Binding<'a>,
    /// The variable to copy out of, and where to.
    pub copy_out: Option<(Storage, Destination)>,
}

/// Where a result goes: found when the call begins (spec 6.8), so that later writes to an index do not matter.
#[derive(Debug, Clone)]
pub(super) enum Destination {
    /// A variable.
    Place(Storage),
    /// Some bits of a field, high and low.
    Bits(Place, u32, u32),
}

/// When arguments are copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Passing {
    /// The callee sees only its parameters: references do where arguments do not overlap.
    Closed,
    /// The callee sees variables of its surroundings, too: everything is copied.
    Open,
}

impl<'a> Lower<'a, '_> {
    /// Makes a call. Where a later argument has effects, those before it are evaluated first, left to right as the call has them: the
    /// place of an l-value is found, and its value kept (spec 6.8). The rest do not change anything, and `f` evaluates them.
    pub(super) fn arguments_in_order<T>(&mut self, info: &CallInfo, arguments: &'a [Argument], f: impl FnOnce(&mut Self) -> T) -> T {
        let last = arguments.iter().rposition(|a| self.has_effects(&a.value));
        let count = match last {
            Some(last)
                if arguments.len() > 1
                    || matches!(
                        arguments[0].value.kind,
                        ast::ExprKind::Index(..) | ast::ExprKind::Member(..) | ast::ExprKind::Slice(..)
                    ) =>
            {
                last + 1
            }
            _ => return f(self),
        };
        let mut kept = Vec::new();
        for (i, a) in arguments.iter().enumerate().take(count) {
            let e = &a.value;
            let parameter = info.order.iter().position(|o| *o == Some(i)).and_then(|p| info.signature.params.get(p));
            let Some(parameter) = parameter else { continue };
            if matches!(e.kind, ast::ExprKind::DontCare) || matches!(parameter.ty, Type::Extern(_) | Type::Parser(_) | Type::Control(_)) {
                continue;
            }
            kept.push(e.id);
            let v = if matches!(parameter.direction, Direction::Out | Direction::InOut) {
                let relative =
                    |s: &Storage| matches!(s, Storage::Header(HeaderRef::Next(_) | HeaderRef::Last(_), _) | Storage::UnionNext(..));
                let to = match &e.kind {
                    ast::ExprKind::Slice(..) => self.destination(e),
                    // `extract` moves `next` on, so that it stays what it is.
                    _ => match self.place(e) {
                        Some(s) if relative(&s) => None,
                        Some(s) => Some(Destination::Place(self.pin(s, e.span))),
                        None => None,
                    },
                };
                let Some(to) = to else { continue };
                let v = match &to {
                    Destination::Place(s) => self.load(s),
                    Destination::Bits(p, high, low) => Val::Scalar(fold::slice(Expr::place(p.clone()), *high, *low)),
                };
                self.located.insert(e.id, to);
                if parameter.direction == Direction::Out {
                    continue;
                }
                v
            } else {
                self.value(e)
            };
            let v = if i + 1 < count { self.freeze(v, e.span) } else { v };
            self.evaluated.insert(e.id, v);
        }
        let result = f(self);
        for id in kept {
            self.evaluated.remove(&id);
            self.located.remove(&id);
        }
        result
    }

    /// Evaluates the arguments of a call, left to right.
    pub(super) fn bind_arguments(
        &mut self,
        info: &CallInfo,
        params: &'a [Parameter],
        arguments: &'a [Argument],
        passing: Passing,
        span: Span,
    ) -> Vec<Bound<'a>> {
        let map: Vec<(u32, Type)> = info.type_args.iter().map(|(id, t)| (*id, t.substitute(&self.substitution))).collect();
        let types: Vec<Type> = info.signature.params.iter().map(|p| p.ty.substitute(&map).substitute(&self.substitution)).collect();
        let args: Vec<Option<&'a ast::Expr>> = (0..params.len())
            .map(|i| match info.order.get(i).copied().flatten().and_then(|a| arguments.get(a)) {
                Some(a) => Some(&a.value),
                None => params[i].default.as_ref(),
            })
            .collect();
        // Where the writable arguments are, and what is written when their bits are.
        let (mut places, mut touched): (Vec<Option<Storage>>, Vec<Option<Storage>>) = (Vec::new(), Vec::new());
        for (p, a) in params.iter().zip(&args) {
            let writable = matches!(p.direction, Direction::Out | Direction::InOut);
            let place = match a {
                Some(e) if writable && !matches!(e.kind, ast::ExprKind::DontCare) => match self.located.get(&e.id) {
                    Some(Destination::Bits(p, ..)) => Some(Storage::Scalar(p.clone())),
                    Some(Destination::Place(s)) => Some(s.clone()),
                    None => self.place(unsliced(e)),
                },
                _ => None,
            };
            places.push(place.clone().filter(|_| !a.is_some_and(|e| matches!(e.kind, ast::ExprKind::Slice(..)))));
            touched.push(place);
        }
        let mut out = Vec::new();
        for (i, p) in params.iter().enumerate() {
            let ty = types.get(i).cloned().unwrap_or(Type::Unknown);
            let name = p.name.name.clone();
            if matches!(ty, Type::Extern(_) | Type::Parser(_) | Type::Control(_)) {
                if let Some(instance) = args[i].and_then(|e| self.instance(e)) {
                    out.push(Bound { name, binding: Binding::Instance(instance), copy_out: None });
                }
                continue;
            }
            let bound = match p.direction {
                Direction::Out | Direction::InOut => {
                    let others = touched.iter().enumerate().filter(|(j, _)| *j != i).filter_map(|(_, s)| s.as_ref());
                    let alias = match &places[i] {
                        Some(s) => {
                            s.is_dynamic()
                                || passing == Passing::Open
                                || args[i].is_some_and(|e| self.located.contains_key(&e.id))
                                || others.into_iter().any(|o| o.overlaps(s, &self.program))
                        }
                        None => true,
                    };
                    match (&places[i], args[i]) {
                        (Some(s), _) if !alias => {
                            let s = s.clone();
                            if p.direction == Direction::Out {
                                self.reset(&s, span);
                            }
                            Bound { name, binding: Binding::Storage(s), copy_out: None }
                        }
                        (_, arg) => {
                            let s = self.allocate(&p.name.name, &ty);
                            if p.direction == Direction::Out {
                                self.reset(&s, span);
                            } else if let Some(e) = arg {
                                let v = self.value_as(e, &ty);
                                self.store(&s, v, span);
                            }
                            let copy_out = arg.and_then(|e| self.destination(e)).map(|d| (s.clone(), d));
                            Bound { name, binding: Binding::Storage(s), copy_out }
                        }
                    }
                }
                _ => {
                    let v = match args[i] {
                        Some(e) => self.value_as(e, &ty),
                        None => self.default_value(&ty),
                    };
                    let v = self.settle_value(v, span);
                    let overwritten = places.iter().flatten().any(|s| self.value_overlaps(&v, s));
                    let v = if self.is_plain(&v) && passing == Passing::Closed && !overwritten { v } else { self.freeze(v, span) };
                    let binding = match self.storage_of(&v) {
                        Some(s) => Binding::Storage(s),
                        None => Binding::Value(v),
                    };
                    Bound { name, binding, copy_out: None }
                }
            };
            out.push(bound);
        }
        out
    }

    /// Copies results to their arguments, in order.
    pub(super) fn copy_out(&mut self, bound: &[Bound<'a>], span: Span) {
        for b in bound {
            if let Some((from, to)) = &b.copy_out {
                self.deliver(from, to, span);
            }
        }
    }

    /// Runs the body of a call. `exit` inside must copy out what is bound before it ends the pipeline (spec 12.5).
    pub(super) fn with_pending<T>(&mut self, bound: &[Bound<'a>], f: impl FnOnce(&mut Self) -> T) -> T {
        self.pending.push(bound.iter().filter_map(|b| b.copy_out.clone()).collect());
        let result = f(self);
        self.pending.pop();
        result
    }

    /// What `exit` copies out: of the innermost call first.
    pub(super) fn copy_out_pending(&mut self, span: Span) {
        let pending: Vec<(Storage, Destination)> = self.pending.iter().rev().flatten().cloned().collect();
        for (from, to) in &pending {
            self.deliver(from, to, span);
        }
    }

    fn deliver(&mut self, from: &Storage, to: &Destination, span: Span) {
        let v = self.load(from);
        match to {
            Destination::Place(s) => self.store(s, v, span),
            Destination::Bits(p, high, low) => {
                let e = self.as_scalar(v);
                self.store_bits(p, *high, *low, e, span);
            }
        }
    }

    /// Where an l-value is; `None` for `_`.
    pub(super) fn destination(&mut self, e: &'a ast::Expr) -> Option<Destination> {
        if let Some(known) = self.located.get(&e.id) {
            return Some(known.clone());
        }
        if let ast::ExprKind::Slice(..) = &e.kind {
            let (p, high, low) = self.bits_place(e)?;
            return Some(Destination::Bits(p, high, low));
        }
        let s = self.place(e)?;
        Some(Destination::Place(self.pin(s, e.span)))
    }

    /// The field and the bits of it that a slice, maybe of slices, names.
    pub(super) fn bits_place(&mut self, e: &'a ast::Expr) -> Option<(Place, u32, u32)> {
        let ast::ExprKind::Slice(base, high, low) = &e.kind else { return None };
        let high = u32::try_from(self.constant_int(high)?).ok()?;
        let low = u32::try_from(self.constant_int(low)?).ok()?;
        if let ast::ExprKind::Slice(..) = &base.kind {
            let (p, _, offset) = self.bits_place(base)?;
            return Some((p, offset + high, offset + low));
        }
        let s = self.place(base)?;
        match self.pin(s, e.span) {
            Storage::Scalar(p) => Some((p, high, low)),
            _ => None,
        }
    }

    /// The same place with its index, if it has one, kept in a variable of its own.
    pub(super) fn pin(&mut self, s: Storage, span: Span) -> Storage {
        match s {
            Storage::Scalar(mut p) => {
                p.header = self.pin_header(p.header, span);
                Storage::Scalar(p)
            }
            Storage::Header(h, t) => Storage::Header(self.pin_header(h, span), t),
            Storage::Struct(parts, t) => Storage::Struct(parts.into_iter().map(|(n, s)| (n, self.pin(s, span))).collect(), t),
            s => s,
        }
    }

    /// Like [`Self::pin`] for `next` and `last` only, and what is within.
    pub(super) fn pin_relative(&mut self, s: Storage, span: Span) -> Storage {
        match &s {
            Storage::Scalar(Place { header: h, .. }) | Storage::Header(h, _) if matches!(h, HeaderRef::Next(_) | HeaderRef::Last(_)) => {
                self.pin(s, span)
            }
            Storage::Struct(..) => match s {
                Storage::Struct(parts, t) => Storage::Struct(parts.into_iter().map(|(n, s)| (n, self.pin_relative(s, span))).collect(), t),
                s => s,
            },
            _ => s,
        }
    }

    /// The element of a stack that `next` or `last` stands for now; there may be none (spec 8.18).
    fn relative_element(&mut self, stack: ir::StackId, next: bool, span: Span) -> HeaderRef {
        let ty = Type::bit(32);
        let last = Expr { kind: ExprKind::LastIndex(stack), ty: ty.clone() };
        let index = if next { fold::binary(BinaryOp::Add, last, Expr::constant(1, ty.clone())) } else { last };
        let index = self.temporary_of(&ty, index, "index", span);
        let inside = fold::binary(BinaryOp::Lt, index.clone(), Expr::constant(self.stack_size(stack), ty));
        let error = self.checked.errors.iter().position(|n| &**n == "StackOutOfBounds").unwrap_or(0);
        self.emit(Stmt::Verify(inside, Expr::constant(error, Type::ErrorCode), span));
        HeaderRef::Element(stack, Box::new(index))
    }

    fn pin_header(&mut self, h: HeaderRef, span: Span) -> HeaderRef {
        match h {
            HeaderRef::Next(s) => self.relative_element(s, true, span),
            HeaderRef::Last(s) => self.relative_element(s, false, span),
            HeaderRef::Element(s, i) if !i.is_const() && !matches!(i.kind, ExprKind::Param(_)) => {
                let ty = i.ty.clone();
                HeaderRef::Element(s, Box::new(self.temporary_of(&ty, *i, "index", span)))
            }
            h => h,
        }
    }

    /// Writes the value of a variable to an l-value of the source.
    pub(super) fn store_expr(&mut self, to: &'a ast::Expr, from: &Storage, span: Span) {
        if let Some(d) = self.destination(to) {
            self.deliver(from, &d, span);
        }
    }

    fn value_overlaps(&self, v: &Val, s: &Storage) -> bool {
        match v {
            Val::Scalar(e) => e.any(|x| match &x.kind {
                ExprKind::Place(p) => Storage::Scalar((**p).clone()).overlaps(s, &self.program),
                _ => false,
            }),
            Val::Struct(parts, _) | Val::HeaderLiteral(Some(parts), _) => parts.iter().any(|(_, v)| self.value_overlaps(v, s)),
            Val::StackLiteral(parts) => parts.iter().any(|v| self.value_overlaps(v, s)),
            v => self.storage_of(v).is_some_and(|t| t.overlaps(s, &self.program)),
        }
    }

    /// Whether reading the value again costs nothing: variables and constants.
    fn is_plain(&self, v: &Val) -> bool {
        match v {
            Val::Scalar(e) => {
                e.is_const() || matches!(&e.kind, ExprKind::Param(_)) || matches!(&e.kind, ExprKind::Place(_)) && self.is_static(e)
            }
            Val::Struct(parts, _) => parts.iter().all(|(_, v)| self.is_plain(v)),
            Val::HeaderLiteral(..) | Val::StackLiteral(..) | Val::Invalid => false,
            v => self.storage_of(v).is_none_or(|s| !s.is_dynamic()),
        }
    }

    fn is_static(&self, e: &Expr) -> bool {
        match &e.kind {
            ExprKind::Place(p) => !Storage::Scalar((**p).clone()).is_dynamic(),
            _ => true,
        }
    }

    /// The variable that a value is, when it is one.
    pub(super) fn storage_of(&self, v: &Val) -> Option<Storage> {
        Some(match v {
            Val::Scalar(Expr { kind: ExprKind::Place(p), .. }) => Storage::Scalar((**p).clone()),
            Val::Header(h, t) => Storage::Header(h.clone(), t.clone()),
            Val::Stack(s, t) => Storage::Stack(*s, t.clone()),
            Val::Union(u, t) => Storage::Union(*u, t.clone()),
            Val::Struct(parts, t) => {
                Storage::Struct(parts.iter().map(|(n, v)| Some((n.clone(), self.storage_of(v)?))).collect::<Option<_>>()?, t.clone())
            }
            _ => return None,
        })
    }
}

/// The field that a slice, maybe of slices, is of.
fn unsliced(e: &ast::Expr) -> &ast::Expr {
    match &e.kind {
        ast::ExprKind::Slice(base, ..) => unsliced(base),
        _ => e,
    }
}
