//! Which types convert into which (spec 8.12).

use fairlane_syntax::ast::*;
use fairlane_syntax::Code;

use super::Checker;
use crate::rule::Rule;
use crate::types::Type;

impl Checker<'_, '_> {
    /// Says so when a value of type `actual` cannot stand where `expected` is awaited.
    pub(crate) fn expect_type(&mut self, expected: &Type, actual: &Type, span: Span, rule: Rule, what: &str) -> bool {
        if self.unify(expected, actual) {
            if let (
                Type::Default,
                t @ (Type::List(_) | Type::Set(_) | Type::Extern(_) | Type::Parser(_) | Type::Control(_) | Type::Package(_)),
            ) = (actual, self.zonk(expected))
            {
                self.error(span, Rule::DefaultValues, format!("there is no default value of type `{t}` for `...` to stand for"));
            }
            return true;
        }
        let (e, a) = (self.zonk(expected), self.zonk(actual));
        if let (Type::Newtype(_, under), Type::Int) = (&e, &a) {
            // Beyond the specification, as p4c has it: an integer without width becomes what is awaited.
            if matches!(self.zonk(under), Type::Bits { .. }) {
                return true;
            }
        }
        self.tell_mismatch(&e, &a, span, rule, what);
        false
    }

    /// Says so when `{a, b}` is needed and a value of a tuple type is given: only the written list becomes a struct (spec 8.12.2).
    pub(crate) fn refuse_tuple(&mut self, expected: &Type, e: &Expr, rule: Rule, what: &str) {
        let expected = self.zonk(expected);
        match &e.kind {
            ExprKind::List { elements, .. } => {
                let parts: Vec<Type> = match &expected {
                    Type::Struct(n) | Type::Header(n) => self.field_types(n).unwrap_or_default().into_iter().map(|(_, t)| t).collect(),
                    Type::Tuple(ts) => ts.clone(),
                    Type::Stack(t, _) | Type::List(t) => vec![(**t).clone(); elements.len()],
                    _ => return,
                };
                for (part, element) in parts.iter().zip(elements) {
                    self.refuse_tuple(part, element, rule, "the element");
                }
            }
            ExprKind::Record { fields, .. } => {
                let (Type::Struct(n) | Type::Header(n)) = &expected else { return };
                let types = self.field_types(n).unwrap_or_default();
                for (name, value) in fields {
                    if let Some((_, t)) = types.iter().find(|(f, _)| *f == name.name) {
                        self.refuse_tuple(t, value, rule, "the field's value");
                    }
                }
            }
            ExprKind::Ternary(_, t, f) => {
                self.refuse_tuple(&expected, t, rule, what);
                self.refuse_tuple(&expected, f, rule, what);
            }
            _ => {
                let Some(t) = self.out.types.get(&e.id).map(|t| self.zonk(t)) else { return };
                self.warn_of_overflow(&expected, &t, e);
                if matches!(t, Type::Tuple(_)) && matches!(expected, Type::Struct(_) | Type::Header(_) | Type::Stack(..)) {
                    self.tell_mismatch(&expected, &t, e.span, rule, what);
                }
            }
        }
    }

    /// A number without a width takes the width awaited, and may lose bits by that.
    fn warn_of_overflow(&mut self, expected: &Type, t: &Type, e: &Expr) {
        if *t != Type::Int || !matches!(expected, Type::Bits { .. }) {
            return;
        }
        let Some(v) = self.eval_int(e) else { return };
        let kept = super::constants::wrap(v.clone(), expected);
        if kept == v {
            return;
        }
        if num_traits::Signed::is_negative(&v) && matches!(expected, Type::Bits { signed: false, .. }) {
            self.report.warning(Code::Mismatch, e.span, format!("the negative number {v} becomes {kept} in `{expected}`"));
            self.report.help(format!("cast it when that is meant: `({expected})...`"));
        } else {
            self.report.warning(Code::Overflow, e.span, format!("the value {v} does not fit into `{expected}` and becomes {kept}"));
        }
    }

    fn tell_mismatch(&mut self, e: &Type, a: &Type, span: Span, rule: Rule, what: &str) {
        let text = format!("{what} has type `{a}` where `{e}` is awaited");
        match (e, a) {
            (Type::Bits { .. }, Type::Bits { .. }) | (Type::Newtype(..), Type::Bits { .. }) | (Type::Bits { .. }, Type::Newtype(..)) => {
                self.error_help(span, rule, text, format!("cast it: `({e})(...)`"));
            }
            (Type::Bool, Type::Bits { width: 1, signed: false }) => {
                self.error_help(span, rule, text, "compare it: `... == 1`, or cast it: `(bool)(...)`");
            }
            (Type::Bits { width: 1, signed: false }, Type::Bool) => {
                self.error_help(span, rule, text, "cast it: `(bit<1>)(...)`");
            }
            (Type::Bool, Type::Bits { .. } | Type::Int) => self.error_help(span, rule, text, "compare it: `... != 0`"),
            _ => self.error(span, rule, text),
        }
    }

    /// Whether an explicit cast from `from` to `to` is legal (spec 8.12.1).
    pub(crate) fn can_cast(&mut self, to: &Type, from: &Type, depth: u32) -> bool {
        if depth > 16 {
            return false;
        }
        let (to, from) = (self.zonk(to), self.zonk(from));
        match (&to, &from) {
            (Type::Unknown, _) | (_, Type::Unknown) | (Type::Param(_), _) | (_, Type::Param(_)) => true,
            (Type::Bool, Type::Bits { width: 1, signed: false }) | (Type::Bits { width: 1, signed: false }, Type::Bool) => true,
            (Type::Bool, Type::Int) => true,
            (Type::Bits { width: w, signed: s }, Type::Bits { width: v, signed: t }) => s == t || w == v,
            (Type::Bits { .. }, Type::Int) => true,
            (Type::Int, Type::Bits { .. }) => true,
            (Type::SerEnum(_, u), f) if !matches!(f, Type::SerEnum(..)) => self.can_cast(&u.clone(), f, depth + 1),
            (Type::SerEnum(a, _), Type::SerEnum(b, _)) if a == b => true,
            (t, Type::SerEnum(_, u)) => self.can_cast(t, &u.clone(), depth + 1),
            (Type::Newtype(a, _), Type::Newtype(b, _)) if a == b => true,
            // From a new type and to one only the type that it is made of leads (spec 7.6).
            (Type::Newtype(_, u), f) => *f == Type::Int || **u == *f,
            (t, Type::Newtype(_, u)) => *t == **u,
            (t, f) => self.unify(t, f),
        }
    }

    /// Whether `==` is defined on a type (spec 8).
    pub(crate) fn comparable(&mut self, t: &Type, depth: u32) -> bool {
        if depth > 32 {
            return false;
        }
        match self.zonk(t) {
            Type::Extern(_)
            | Type::Parser(_)
            | Type::Control(_)
            | Type::Package(_)
            | Type::Void
            | Type::Set(_)
            | Type::Table(_)
            | Type::ApplyResult(_)
            | Type::ActionRun(_)
            | Type::Param(_) => false,
            Type::Struct(n) | Type::Header(n) | Type::Union(n) => {
                let fields = self.field_types(&n).unwrap_or_default();
                fields.iter().all(|(_, f)| self.comparable(f, depth + 1))
            }
            Type::Stack(e, _) => self.comparable(&e, depth + 1),
            Type::Tuple(ts) => ts.iter().all(|f| self.comparable(f, depth + 1)),
            _ => true,
        }
    }

    /// The type of both operands after implicit casts between them, or `None` when they do not fit.
    pub(crate) fn common_type(&mut self, l: &Type, r: &Type) -> Option<Type> {
        let (l, r) = (self.zonk(l), self.zonk(r));
        match (&l, &r) {
            (Type::Unknown, _) | (_, Type::Unknown) => Some(Type::Unknown),
            (Type::SerEnum(a, _), Type::SerEnum(b, _)) if a == b => Some(l),
            (Type::SerEnum(_, u), _) => {
                let u = (**u).clone();
                self.common_type(&u, &r)
            }
            (_, Type::SerEnum(_, u)) => {
                let u = (**u).clone();
                self.common_type(&l, &u)
            }
            (Type::Int, _) if self.unify(&r, &l) => Some(self.zonk(&r)),
            (Type::Tuple(_) | Type::Record(_) | Type::InvalidHeader, _) if self.unify(&r, &l) => Some(self.zonk(&r)),
            _ if self.unify(&l, &r) => Some(self.zonk(&l)),
            _ => None,
        }
    }

    /// Whether the expression is an l-value that may be written (spec 6.7); says why not.
    pub(crate) fn check_lvalue(&mut self, e: &Expr) -> bool {
        match &e.kind {
            ExprKind::Name(p) => {
                use super::scope::{Access, Local};
                match self.lookup_local(p).cloned() {
                    Some(Local::Var { access: Access::Variable, .. }) => true,
                    Some(Local::Var { access: Access::ReadOnly(why), .. }) => {
                        self.error(e.span, Rule::LValues, format!("`{}` is {why} and cannot be written", p.name.name));
                        false
                    }
                    Some(Local::Var { access: Access::Constant(_), .. }) => {
                        self.error(e.span, Rule::LValues, format!("`{}` is a constant and cannot be written", p.name.name));
                        false
                    }
                    _ => {
                        self.error(e.span, Rule::LValues, format!("`{}` cannot be written", p.name.name));
                        false
                    }
                }
            }
            ExprKind::Member(base, m) => {
                let t = self.out.types.get(&base.id).map(|t| self.zonk(t)).unwrap_or(Type::Unknown);
                match t {
                    Type::Struct(_) | Type::Header(_) | Type::Union(_) => self.check_lvalue(base),
                    Type::Stack(..) if matches!(&*m.name, "next" | "last") => self.check_lvalue(base),
                    Type::Unknown => false,
                    _ => {
                        self.error(e.span, Rule::LValues, "this is no l-value and cannot be written");
                        false
                    }
                }
            }
            ExprKind::Index(base, _) => self.check_lvalue(base),
            ExprKind::Slice(base, _, _) => self.check_lvalue(base),
            ExprKind::Invalid => false,
            _ => {
                self.error(e.span, Rule::LValues, "this is no l-value and cannot be written");
                false
            }
        }
    }
}
