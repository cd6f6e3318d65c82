//! Types of expressions (spec 8).

use fairlane_syntax::ast::*;
use fairlane_syntax::names::nearest;
use fairlane_syntax::Code;
use num_traits::{Signed, ToPrimitive, Zero};

use super::scope::{Context, Local};
use super::{Checker, MAX_DEPTH};
use crate::rule::Rule;
use crate::types::{DeclId, Type};

impl<'a> Checker<'a, '_> {
    /// The type of an expression, [`Type::Unknown`] after an error. Remembered by node.
    pub(crate) fn check_expr(&mut self, e: &Expr) -> Type {
        if self.depth > MAX_DEPTH {
            self.error(e.span, Rule::Expressions, "the expression is nested too deeply for this compiler");
            return Type::Unknown;
        }
        self.depth += 1;
        let t = self.expr(e);
        self.depth -= 1;
        self.out.types.insert(e.id, t.clone());
        t
    }

    /// As [`Self::check_expr`], where the type awaited is known.
    pub(crate) fn check_expr_expecting(&mut self, e: &Expr, _expected: &Type) -> Type {
        self.check_expr(e)
    }

    /// Checks an expression and that its value fits.
    pub(crate) fn check_against(&mut self, e: &Expr, expected: &Type, rule: Rule, what: &str) -> Type {
        let t = self.check_expr_expecting(e, expected);
        if self.expect_type(expected, &t, e.span, rule, what) {
            self.refuse_tuple(expected, e, rule, what);
        }
        t
    }

    /// Checks a condition.
    pub(crate) fn check_condition(&mut self, e: &Expr, rule: Rule) {
        self.check_against(e, &Type::Bool, rule, "the condition");
    }

    fn expr(&mut self, e: &Expr) -> Type {
        match &e.kind {
            ExprKind::Int(l) => self.int_literal(l, e.span),
            ExprKind::Bool(_) => Type::Bool,
            ExprKind::String(_) => Type::Str,
            ExprKind::Name(p) => self.name(p),
            ExprKind::This => {
                self.error(e.span, Rule::AbstractMethods, "`this` can only be used in the implementation of an abstract method");
                Type::Unknown
            }
            ExprKind::Member(base, m) => self.member(base, m),
            ExprKind::TypeMember(t, m) => self.type_member(t, m),
            ExprKind::Index(base, index) => self.index(base, index),
            ExprKind::Slice(base, high, low) => self.slice(base, high, low),
            ExprKind::Cast(t, inner) => {
                let to = self.resolve_type(t);
                let from = self.check_expr(inner);
                if !self.can_cast(&to, &from, 0) {
                    let (to, from) = (self.zonk(&to), self.zonk(&from));
                    let text = format!("a value of type `{from}` cannot be cast to `{to}`");
                    match (&to, &from) {
                        (Type::Bits { width, signed: true }, Type::Bits { .. }) => self.error_help(
                            e.span,
                            Rule::Casts,
                            text,
                            format!("change the width first: `(int<{width}>)(bit<{width}>)(...)`"),
                        ),
                        (Type::Bits { width, signed: false }, Type::Bits { width: from, .. }) => {
                            self.error_help(
                                e.span,
                                Rule::Casts,
                                text,
                                format!("change the sign first: `(bit<{width}>)(bit<{from}>)(...)`"),
                            );
                        }
                        _ => self.error(e.span, Rule::Casts, text),
                    }
                } else if self.zonk(&to) == Type::Bool
                    && self.zonk(&from) == Type::Int
                    && let Some(v) = self.eval_int(inner).filter(|v| !v.is_zero() && *v != 1.into())
                {
                    self.error(e.span, Rule::Casts, format!("only 0 and 1 can be cast to `bool`, not {v}"));
                }
                to
            }
            ExprKind::Unary(op, inner) => self.unary(*op, inner),
            ExprKind::Binary(op, l, r) => self.binary(*op, l, r, e.span),
            ExprKind::Ternary(c, t, f) => {
                self.check_condition(c, Rule::ConditionalOperator);
                let (tt, ft) = (self.check_expr(t), self.check_expr(f));
                match self.common_type(&tt, &ft) {
                    Some(Type::Int) if self.eval(c).is_none() => {
                        self.error_help(
                            e.span,
                            Rule::ConditionalOperator,
                            "both alternatives are literals without a width",
                            "give one a width: `8w1`",
                        );
                        Type::Unknown
                    }
                    Some(t) => t,
                    None => {
                        let (a, b) = (self.zonk(&tt), self.zonk(&ft));
                        let text = format!("the alternatives have different types, `{a}` and `{b}`");
                        self.error(e.span, Rule::ConditionalOperator, text);
                        Type::Unknown
                    }
                }
            }
            ExprKind::Call { callee, type_arguments, arguments } => self.call(e, callee, type_arguments, arguments),
            ExprKind::Construct(t, arguments) => self.construct(e, t, arguments),
            ExprKind::List { elements, dots } => {
                let mut types: Vec<Type> = elements.iter().map(|x| self.check_expr(x)).collect();
                if *dots {
                    types.push(Type::Default);
                }
                Type::Tuple(types)
            }
            ExprKind::Record { fields, dots } => {
                let mut types: Vec<(Symbol, Type)> = Vec::new();
                for (n, x) in fields {
                    let t = self.check_expr(x);
                    if types.iter().any(|(m, _)| *m == n.name) {
                        self.error(n.span, Rule::Structures, format!("field `{}` is given twice", n.name));
                    } else {
                        types.push((n.name.clone(), t));
                    }
                }
                if *dots {
                    types.push(("...".into(), Type::Default));
                }
                Type::Record(types)
            }
            ExprKind::InvalidHeader => Type::InvalidHeader,
            ExprKind::Dots => Type::Default,
            ExprKind::Default | ExprKind::DontCare => {
                self.error(e.span, Rule::Expressions, "`_` and `default` are no values");
                Type::Unknown
            }
            ExprKind::Invalid => Type::Unknown,
        }
    }

    fn int_literal(&mut self, l: &IntLiteral, span: Span) -> Type {
        let Some(w) = l.width else { return Type::Int };
        if w.signed && w.bits == 0 || w.bits > 1 << 16 {
            self.error(span, Rule::Literals, format!("{} is no width for a literal", w.bits));
            return Type::Unknown;
        }
        let t = Type::Bits { width: w.bits, signed: w.signed };
        if super::constants::wrap(l.value.clone(), &t) != l.value {
            self.report.warning(Code::Overflow, span, format!("the value {} does not fit into `{t}` and is cut", l.value));
        }
        t
    }

    /// The type of a top-level constant or instance.
    pub(crate) fn global_value_type(&mut self, id: DeclId) -> Option<Type> {
        match &self.decl(id).kind {
            DeclarationKind::Constant(c) => self.out.types.get(&c.ty.id).cloned(),
            DeclarationKind::Instantiation(i) => self.out.types.get(&i.ty.id).cloned(),
            DeclarationKind::ValueSet(v) => Some(Type::Set(Box::new(self.out.types.get(&v.element.id).cloned()?))),
            _ => None,
        }
    }

    fn name(&mut self, p: &Path) -> Type {
        if let Some(local) = self.lookup_local(p).cloned() {
            return match local {
                Local::Var { ty, .. } | Local::Instance(ty) => ty,
                Local::Table(i) => Type::Table(i),
                Local::TypeParam(_) => self.not_a_value(p, "a type"),
                Local::Action(_) => self.not_a_value(p, "an action"),
                Local::State => self.not_a_value(p, "a parser state"),
            };
        }
        let ids = self.lookup_global(&p.name.name);
        for id in &ids {
            if let Some(t) = self.global_value_type(*id) {
                return t;
            }
        }
        match ids.first().map(|id| &self.decl(*id).kind) {
            None => {
                self.undeclared(&p.name, "name");
                Type::Unknown
            }
            Some(DeclarationKind::Function(_) | DeclarationKind::ExternFunction(_)) => self.not_a_value(p, "a function"),
            Some(DeclarationKind::Action(_)) => self.not_a_value(p, "an action"),
            Some(DeclarationKind::Constant(_) | DeclarationKind::Instantiation(_)) => Type::Unknown,
            Some(_) => self.not_a_value(p, "a type"),
        }
    }

    fn not_a_value(&mut self, p: &Path, what: &str) -> Type {
        self.error(p.span, Rule::Expressions, format!("`{}` is {what}, not a value", p.name.name));
        Type::Unknown
    }

    /// The type that a bare name stands for, when it names a type rather than a value.
    pub(crate) fn type_name(&mut self, e: &Expr) -> Option<Type> {
        let ExprKind::Name(p) = &e.kind else { return None };
        match self.lookup_local(p) {
            Some(Local::TypeParam(t)) => return Some(t.clone()),
            Some(_) => return None,
            None => {}
        }
        let id = self.type_decl(&p.name.name)?;
        let t = self.type_of_decl(id, None, p.span, true);
        self.out.types.insert(e.id, t.clone());
        Some(t)
    }

    fn type_member(&mut self, t: &TypeExpr, m: &Ident) -> Type {
        let ty = self.resolve_type(t);
        match &ty {
            Type::ErrorCode => {
                if !self.out.errors.contains(&m.name) {
                    self.error(m.span, Rule::ErrorType, format!("error `{}` is not declared", m.name));
                }
                Type::ErrorCode
            }
            Type::Unknown => Type::Unknown,
            _ => self.enum_member(&ty, m),
        }
    }

    fn enum_member(&mut self, t: &Type, m: &Ident) -> Type {
        let (Type::Enum(n) | Type::SerEnum(n, _)) = t else {
            self.error(m.span, Rule::StructFields, format!("type `{t}` has no member `{}`", m.name));
            return Type::Unknown;
        };
        let members: Vec<Symbol> = self.enum_def(n.decl).map(|d| d.members.iter().map(|(m, _)| m.clone()).collect()).unwrap_or_default();
        if members.contains(&m.name) {
            return t.clone();
        }
        self.error_help(
            m.span,
            Rule::EnumMembers,
            format!("enum `{}` has no member `{}`", n.name, m.name),
            meant(&m.name, "its members are", members.iter().map(|m| &**m)),
        );
        Type::Unknown
    }

    fn member(&mut self, base: &Expr, m: &Ident) -> Type {
        if let Some(t) = self.type_name(base) {
            return if t.is_unknown() { t } else { self.enum_member(&t, m) };
        }
        let t = self.check_expr(base);
        let t = self.zonk(&t);
        match &t {
            Type::Unknown => Type::Unknown,
            Type::Struct(n) | Type::Header(n) | Type::Union(n) => {
                let fields = self.field_types(n).unwrap_or_default();
                if let Some((_, t)) = fields.iter().find(|(f, _)| *f == m.name) {
                    return t.clone();
                }
                self.error_help(
                    m.span,
                    Rule::StructFields,
                    format!("`{t}` has no field `{}`", m.name),
                    meant(&m.name, "its fields are", fields.iter().map(|(f, _)| &**f)),
                );
                Type::Unknown
            }
            Type::Record(fields) => match fields.iter().find(|(f, _)| *f == m.name) {
                Some((_, t)) => t.clone(),
                None => {
                    self.error(m.span, Rule::Structures, format!("there is no field `{}`", m.name));
                    Type::Unknown
                }
            },
            Type::Stack(element, _) => match &*m.name {
                "next" | "last" => {
                    if self.context != Context::Parser {
                        self.error_help(
                            m.span,
                            Rule::HeaderStacks,
                            format!("`{}` of a header stack can only be used in a parser", m.name),
                            "use an index",
                        );
                    }
                    (**element).clone()
                }
                "lastIndex" => {
                    if self.context != Context::Parser {
                        self.error(m.span, Rule::HeaderStacks, "`lastIndex` can only be used in a parser");
                    }
                    Type::bit(32)
                }
                "size" => Type::bit(32),
                _ => {
                    self.error_help(
                        m.span,
                        Rule::HeaderStacks,
                        format!("a header stack has no member `{}`", m.name),
                        "it has `next`, `last`, `lastIndex`, `size`, `push_front(n)` and `pop_front(n)`",
                    );
                    Type::Unknown
                }
            },
            Type::ApplyResult(table) => match &*m.name {
                "hit" | "miss" => Type::Bool,
                "action_run" => Type::ActionRun(*table),
                _ => {
                    self.error_help(
                        m.span,
                        Rule::StructFields,
                        format!("the result of a table's `apply` has no member `{}`", m.name),
                        "it has `hit`, `miss` and `action_run`",
                    );
                    Type::Unknown
                }
            },
            _ => {
                self.error(m.span, Rule::StructFields, format!("a value of type `{t}` has no member `{}`", m.name));
                Type::Unknown
            }
        }
    }

    fn index(&mut self, base: &Expr, index: &Expr) -> Type {
        let t = self.check_expr(base);
        let it = self.check_expr(index);
        let t = self.zonk(&t);
        let stripped = self.strip_newtype(&it);
        if !matches!(stripped, Type::Bits { .. } | Type::Int | Type::SerEnum(..) | Type::Unknown) {
            self.error(index.span, Rule::Arrays, format!("an index must be an integer, not `{it}`"));
        }
        let value = self.eval_int(index);
        let bound = match &t {
            Type::Stack(_, n) => *n as usize,
            Type::Tuple(ts) => ts.len(),
            Type::Unknown => return Type::Unknown,
            _ => {
                self.error(base.span, Rule::Arrays, format!("a value of type `{t}` cannot be indexed"));
                return Type::Unknown;
            }
        };
        if let Some(v) = &value
            && (v.is_negative() || v.to_usize().is_none_or(|v| v >= bound))
        {
            let text = format!("index {v} is out of bounds: `{t}` has {bound} elements");
            self.error(index.span, Rule::Arrays, text);
            return Type::Unknown;
        }
        match (&t, value) {
            (Type::Stack(element, _), _) => (**element).clone(),
            (Type::Tuple(ts), Some(v)) => v.to_usize().and_then(|v| ts.get(v).cloned()).unwrap_or(Type::Unknown),
            _ => {
                self.error(index.span, Rule::Tuples, "the index of a tuple must be known at compile time");
                Type::Unknown
            }
        }
    }

    fn slice(&mut self, base: &Expr, high: &Expr, low: &Expr) -> Type {
        let t = self.check_expr(base);
        self.check_expr(high);
        self.check_expr(low);
        let t = self.strip_newtype(&t);
        let t = match t {
            Type::SerEnum(_, u) => *u,
            t => t,
        };
        let (Some(h), Some(l)) = (self.eval_int(high), self.eval_int(low)) else {
            self.error(high.span.to(low.span), Rule::Bits, "the bounds of a slice must be known at compile time");
            return Type::Unknown;
        };
        let width = match t {
            Type::Bits { width, .. } => width,
            Type::Int => 1 << 16,
            Type::Unknown => return Type::Unknown,
            _ => {
                self.error(base.span, Rule::Bits, format!("a value of type `{t}` cannot be sliced"));
                return Type::Unknown;
            }
        };
        match (h.to_u32(), l.to_u32()) {
            (Some(h), Some(l)) if h >= l && h < width => Type::bit(h - l + 1),
            _ => {
                let text = format!(
                    "[{h}:{l}] is no slice of `{t}`: the bounds go from the high bit, at most {}, to the low one",
                    width.saturating_sub(1)
                );
                self.error(high.span.to(low.span), Rule::Bits, text);
                Type::Unknown
            }
        }
    }

    fn unary(&mut self, op: UnaryOp, inner: &Expr) -> Type {
        let t = self.check_expr(inner);
        let t = self.zonk(&t);
        let t = match t {
            Type::SerEnum(_, u) if op != UnaryOp::Not => *u,
            t => t,
        };
        let ok = match (op, &t) {
            (_, Type::Unknown) => return Type::Unknown,
            (UnaryOp::Not, Type::Bool) => true,
            (UnaryOp::Complement, Type::Bits { .. }) => true,
            (UnaryOp::Negate | UnaryOp::Plus, Type::Bits { .. } | Type::Int) => true,
            _ => false,
        };
        if !ok {
            self.error(inner.span, Rule::Bits, format!("`{}` is not defined on `{t}`", op.symbol()));
            return Type::Unknown;
        }
        t
    }

    fn binary(&mut self, op: BinaryOp, l: &Expr, r: &Expr, span: Span) -> Type {
        let lt = self.check_expr(l);
        let rt = self.check_expr(r);
        let (lt, rt) = (self.zonk(&lt), self.zonk(&rt));
        if lt.is_unknown() || rt.is_unknown() {
            return match op {
                BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge | BinaryOp::And | BinaryOp::Or => {
                    Type::Bool
                }
                _ => Type::Unknown,
            };
        }
        let mismatch = |c: &mut Self, rule| {
            let text = format!("`{}` is not defined on `{lt}` and `{rt}`", op.symbol());
            match (&lt, &rt) {
                (Type::Extern(_), _) | (_, Type::Extern(_)) => {
                    c.error(span, rule, format!("{text}: objects of an extern type are not compared"));
                }
                (Type::Bits { .. }, Type::Bits { .. }) => c.error_help(span, rule, text, "cast one operand to the type of the other"),
                (Type::Newtype(_, u), _) | (_, Type::Newtype(_, u)) => {
                    c.error_help(span, rule, text, format!("cast to the underlying type first: `({u})(...)`"));
                }
                _ => c.error(span, rule, text),
            }
            Type::Unknown
        };
        match op {
            BinaryOp::And | BinaryOp::Or => {
                if lt != Type::Bool || rt != Type::Bool {
                    mismatch(self, Rule::Booleans);
                }
                Type::Bool
            }
            BinaryOp::Eq | BinaryOp::Ne => {
                let common = self.common_type(&lt, &rt);
                match common {
                    // Two structures without a type have no order of fields.
                    Some(Type::Record(_)) => {
                        mismatch(self, Rule::Bits);
                    }
                    Some(t) if self.comparable(&t, 0) => {}
                    _ => {
                        mismatch(self, Rule::Bits);
                    }
                }
                Type::Bool
            }
            BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => {
                match self.common_type(&lt, &rt) {
                    Some(Type::Bits { .. } | Type::Int | Type::Unknown) => {}
                    // Two members of one serializable enum compare as their values.
                    Some(Type::SerEnum(..)) => {}
                    _ => {
                        mismatch(self, Rule::Bits);
                    }
                }
                Type::Bool
            }
            BinaryOp::Concat => {
                let width = |t: &Type| match t {
                    Type::Bits { width, .. } => Some(*width),
                    Type::SerEnum(_, u) => match **u {
                        Type::Bits { width, .. } => Some(width),
                        _ => None,
                    },
                    _ => None,
                };
                match (&lt, &rt) {
                    (Type::Str, Type::Str) => Type::Str,
                    _ => match (width(&lt), width(&rt)) {
                        (Some(a), Some(b)) => {
                            Type::Bits { width: a.saturating_add(b), signed: matches!(lt, Type::Bits { signed: true, .. }) }
                        }
                        _ => {
                            if lt == Type::Int || rt == Type::Int {
                                self.error_help(
                                    span,
                                    Rule::Concatenation,
                                    "both operands of `++` need a width",
                                    "give the literal one: `8w5`",
                                );
                                return Type::Unknown;
                            }
                            mismatch(self, Rule::Concatenation)
                        }
                    },
                }
            }
            BinaryOp::Shl | BinaryOp::Shr => {
                let lt = match &lt {
                    Type::SerEnum(_, u) => (**u).clone(),
                    t => t.clone(),
                };
                let amount = self.eval_int(r);
                let ok = match (&lt, &rt) {
                    (Type::Bits { .. }, Type::Bits { signed: false, .. } | Type::Int | Type::SerEnum(..)) => true,
                    (Type::Int, Type::Int | Type::Bits { signed: false, .. }) => {
                        if amount.is_none() {
                            self.error(r.span, Rule::Shifts, "an `int` can only be shifted by an amount known at compile time");
                            return Type::Unknown;
                        }
                        true
                    }
                    _ => false,
                };
                if !ok {
                    return mismatch(self, Rule::Shifts);
                }
                if let (Some(a), Type::Bits { width, .. }) = (&amount, &lt)
                    && *a >= (*width).into()
                {
                    self.report.warning(Code::Overflow, span, format!("a value of {width} bits is shifted by {a}"));
                }
                if let Some(a) = amount {
                    if a.is_negative() {
                        self.error(r.span, Rule::Shifts, format!("the shift amount {a} is negative"));
                        return Type::Unknown;
                    }
                    if a.to_u32().is_none_or(|a| a > super::constants::MAX_SHIFT) {
                        self.error(r.span, Rule::Shifts, format!("the shift amount {a} is absurdly large"));
                        return Type::Unknown;
                    }
                }
                lt
            }
            BinaryOp::AddSat | BinaryOp::SubSat => match self.common_type(&lt, &rt) {
                Some(t @ (Type::Bits { .. } | Type::Unknown)) => t,
                _ => mismatch(self, Rule::Bits),
            },
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::BitAnd | BinaryOp::BitOr | BinaryOp::BitXor => {
                match self.arithmetic(&lt, &rt) {
                    Some(t) => t,
                    None => mismatch(self, Rule::Bits),
                }
            }
            BinaryOp::Div | BinaryOp::Mod => {
                let Some(t) = self.arithmetic(&lt, &rt) else { return mismatch(self, Rule::Integers) };
                if matches!(t, Type::Bits { signed: true, .. }) {
                    return mismatch(self, Rule::Integers);
                }
                let (lv, rv) = (self.eval_int(l), self.eval_int(r));
                if rv.as_ref().is_some_and(Zero::is_zero) {
                    self.error(r.span, Rule::Integers, "division by zero");
                    return Type::Unknown;
                }
                if [&lv, &rv].iter().any(|v| v.as_ref().is_some_and(Signed::is_negative)) {
                    self.error(span, Rule::Integers, format!("`{}` is not defined on negative numbers", op.symbol()));
                    return Type::Unknown;
                }
                self.note_division(op, l, r, span);
                t
            }
        }
    }

    fn arithmetic(&mut self, lt: &Type, rt: &Type) -> Option<Type> {
        match self.common_type(lt, rt)? {
            t @ (Type::Bits { .. } | Type::Int | Type::Unknown) => Some(t),
            Type::SerEnum(_, u) => Some(*u),
            _ => None,
        }
    }
}

/// The way out where a member is not there: the one most like it, or all.
pub(crate) fn meant<'n>(name: &str, all: &str, names: impl Iterator<Item = &'n str> + Clone) -> String {
    if let Some(near) = nearest(name, names.clone()) {
        return format!("did you mean `{near}`?");
    }
    let list = names.take(16).map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
    if list.is_empty() {
        "there are none".to_owned()
    } else {
        format!("{all} {list}")
    }
}
