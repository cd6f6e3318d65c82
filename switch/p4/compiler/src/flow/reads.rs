//! Expressions that are read.

use fairlane_syntax::ast::*;
use fairlane_syntax::print::expression;
use fairlane_syntax::Code;
use num_traits::ToPrimitive;

use super::state::{State, Validity};
use super::storage::{Kind, Place};
use super::{Binding, Flow};
use crate::check::ConstVal;
use crate::types::Type;

impl<'a> Flow<'a> {
    /// Evaluates an expression for its value.
    pub(super) fn read(&mut self, e: &'a Expr) {
        if self.now.dead || !self.spend() {
            return;
        }
        self.depth += 1;
        self.value(e);
        self.depth -= 1;
    }

    fn value(&mut self, e: &'a Expr) {
        match &e.kind {
            ExprKind::Name(_) | ExprKind::Member(..) | ExprKind::Index(..) => {
                self.go_to(e, false);
                self.check_written(e);
            }
            ExprKind::Slice(base, high, low) => {
                self.read(base);
                self.read(high);
                self.read(low);
            }
            ExprKind::Cast(_, inner) | ExprKind::Unary(_, inner) => self.read(inner),
            ExprKind::Binary(BinaryOp::And | BinaryOp::Or, ..) => {
                let (mut holds, fails) = self.condition(e);
                holds.join_quietly(&fails);
                self.now = holds;
            }
            ExprKind::Binary(_, l, r) => {
                self.read(l);
                self.read(r);
            }
            ExprKind::Ternary(c, t, f) => {
                let before = self.now.clone();
                let (holds, fails) = self.condition(c);
                self.now = holds;
                self.read(t);
                let then_end = std::mem::replace(&mut self.now, fails);
                self.read(f);
                let else_end = std::mem::replace(&mut self.now, State::dead());
                self.meet(&before, &[then_end, else_end]);
            }
            ExprKind::Call { callee, arguments, .. } => self.call(e, callee, arguments),
            ExprKind::List { elements, .. } => elements.iter().for_each(|x| self.read(x)),
            ExprKind::Record { fields, .. } => fields.iter().for_each(|(_, x)| self.read(x)),
            _ => {}
        }
    }

    /// Evaluates what stands on the way to a place: indexes, and headers whose fields it goes through. `written` says that the
    /// place is written and not read.
    pub(super) fn go_to(&mut self, e: &'a Expr, written: bool) {
        match &e.kind {
            ExprKind::Member(base, m) => {
                if !is_place(base) {
                    self.read(base);
                    return;
                }
                self.go_to(base, written);
                match self.type_of(base) {
                    Some(Type::Header(_)) => self.check_valid(base),
                    Some(Type::Stack(..)) if &*m.name == "next" && !written => {
                        let text = format!("`{}` is read, and nothing has been extracted to it", expression(e));
                        self.doubt(Code::Uninitialized, e.span, text, "the element extracted last is `last`");
                    }
                    _ => {}
                }
            }
            ExprKind::Index(base, index) => {
                self.go_to(base, written);
                self.read(index);
            }
            ExprKind::Slice(base, high, low) => {
                // The other bits stay, so the old value is read.
                self.read(base);
                self.read(high);
                self.read(low);
            }
            ExprKind::Name(_) => {}
            _ => self.read(e),
        }
    }

    /// The places that an expression may be, and whether it is the one there is.
    pub(super) fn places_of(&self, e: &'a Expr) -> (Vec<Place>, bool) {
        match &e.kind {
            ExprKind::Name(p) => match self.lookup(p) {
                Some(Binding::Variable(place)) => (vec![place.clone()], true),
                _ => (Vec::new(), true),
            },
            ExprKind::Member(base, m) => {
                let (places, exact) = self.places_of(base);
                if matches!(self.type_of(base), Some(Type::Stack(..))) {
                    return match &*m.name {
                        "next" | "last" => (places.iter().flat_map(Place::elements).collect(), false),
                        _ => (Vec::new(), true),
                    };
                }
                (places.iter().filter_map(|p| p.field(&m.name)).collect(), exact)
            }
            ExprKind::Index(base, index) => {
                let (places, exact) = self.places_of(base);
                match self.constant(index) {
                    Some(i) => (places.iter().filter_map(|p| p.element(i)).collect(), exact),
                    None => (places.iter().flat_map(Place::elements).collect(), false),
                }
            }
            ExprKind::Slice(base, ..) => self.places_of(base),
            _ => (Vec::new(), true),
        }
    }

    /// The value of an index that is plainly known.
    fn constant(&self, e: &Expr) -> Option<u32> {
        match &e.kind {
            ExprKind::Int(l) => l.value.to_u32(),
            ExprKind::Cast(_, inner) => self.constant(inner),
            ExprKind::Name(p) if self.lookup(p).is_none() => {
                let ids = self.checked.globals.get(&p.name.name)?;
                match self.checked.constants.get(ids.last()?)? {
                    ConstVal::Int(v) => v.to_u32(),
                    _ => None,
                }
            }
            ExprKind::Binary(BinaryOp::Add, l, r) => self.constant(l)?.checked_add(self.constant(r)?),
            ExprKind::Binary(BinaryOp::Sub, l, r) => self.constant(l)?.checked_sub(self.constant(r)?),
            _ => None,
        }
    }

    /// Whether a header that an expression may be is valid: when one of several places is, it may be that one.
    pub(super) fn validity_of(&self, e: &'a Expr) -> Validity {
        let (places, _) = self.places_of(e);
        let all: Vec<Validity> = places.iter().filter(|p| p.shape.headers > 0).map(|p| self.now.validity(p.header)).collect();
        if all.is_empty() || all.contains(&Validity::Yes) {
            Validity::Yes
        } else if all.contains(&Validity::Maybe) {
            Validity::Maybe
        } else {
            Validity::No
        }
    }

    /// A field of this header is used.
    fn check_valid(&mut self, header: &'a Expr) {
        let how = match self.validity_of(header) {
            Validity::Yes => return,
            Validity::Maybe => "potentially invalid",
            Validity::No => "invalid",
        };
        let name = expression(header);
        let text = format!("accessing a field of the {how} header `{name}`");
        self.doubt(Code::InvalidHeader, header.span, text, format!("test `{name}.isValid()` before, or call `{name}.setValid()`"));
    }

    /// A whole value is read: none of it may be unwritten.
    fn check_written(&mut self, e: &'a Expr) {
        let (places, _) = self.places_of(e);
        let unwritten = |v: &Self, p: &Place| v.now.any_unwritten(p.leaves());
        if !places.iter().any(|p| unwritten(self, p)) {
            return;
        }
        let Some(first) = places.first().cloned() else { return };
        // One member of a union is enough.
        let lacking = |v: &Self, p: &Place| p.shape.fields().iter().all(|f| unwritten(v, &p.part(f)));
        let name = expression(e);
        let help = "give it a value on every path that leads here";
        match &first.shape.kind {
            Kind::Union(_) if !places.iter().any(|p| lacking(self, p)) => {}
            Kind::Stack(element, _) if element.is_union() && !places.iter().flat_map(Place::elements).any(|p| lacking(self, &p)) => {}
            Kind::Struct(fields) | Kind::Header(fields) | Kind::Union(fields) => {
                for f in fields {
                    if places.iter().any(|p| p.field(&f.name).is_some_and(|p| unwritten(self, &p))) {
                        self.doubt(Code::UninitializedUse, e.span, format!("`{name}.{}` may be uninitialized", f.name), help);
                    }
                }
            }
            Kind::Scalar => self.doubt(Code::UninitializedUse, e.span, format!("`{name}` may be uninitialized"), help),
            _ => self.doubt(Code::UninitializedUse, e.span, format!("`{name}` may not be completely initialized"), help),
        }
    }
}

/// Whether an expression names a place, rather than computes a value.
pub(super) fn is_place(e: &Expr) -> bool {
    matches!(e.kind, ExprKind::Name(_) | ExprKind::Member(..) | ExprKind::Index(..) | ExprKind::Slice(..) | ExprKind::TypeMember(..))
}
