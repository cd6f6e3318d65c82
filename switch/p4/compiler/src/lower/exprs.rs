//! Expressions to values (spec 8).

use fairlane_syntax::ast::{self, *};
use num_bigint::BigInt;
use num_traits::ToPrimitive;

use super::storage::Storage;
use super::values::Val;
use super::{fold, Binding, Lower};
use crate::check::CallTarget;
use crate::ir::{self, Expr, ExprKind, HeaderRef, Stmt};
use crate::rule::Rule;
use crate::types::Type;

impl<'a> Lower<'a, '_> {
    /// The value of an expression. Calls inside are made now, in order.
    pub(super) fn value(&mut self, e: &'a ast::Expr) -> Val {
        if self.depth > 512 {
            return Val::Broken;
        }
        if let Some(v) = self.evaluated.get(&e.id) {
            return v.clone();
        }
        self.depth += 1;
        let v = self.value_inner(e);
        self.depth -= 1;
        v
    }

    /// The value of a scalar expression.
    pub(super) fn scalar_value(&mut self, e: &'a ast::Expr) -> Expr {
        let v = self.value(e);
        if matches!(v, Val::Broken) && !self.report.has_errors() {
            self.error(e.span, Rule::Bmv2, "this expression cannot be translated");
        }
        let s = self.as_scalar(v);
        let s = self.settle(s, e.span);
        self.shallow(s, e.span)
    }

    /// The value of an expression as one of a given type.
    pub(super) fn value_as(&mut self, e: &'a ast::Expr, t: &Type) -> Val {
        let v = self.value(e);
        self.convert(v, t)
    }

    /// A condition.
    pub(super) fn condition(&mut self, e: &'a ast::Expr) -> Expr {
        self.scalar_value(e)
    }

    /// An integer known at compile time.
    pub(super) fn constant_int(&mut self, e: &'a ast::Expr) -> Option<BigInt> {
        match self.value(e) {
            Val::Scalar(Expr { kind: ExprKind::Const(v), .. }) => Some(v),
            _ => None,
        }
    }

    fn value_inner(&mut self, e: &'a ast::Expr) -> Val {
        if matches!(e.kind, ast::ExprKind::Member(..) | ast::ExprKind::Call { .. })
            && let Some(v) = self.chosen_value(e)
        {
            return v;
        }
        match &e.kind {
            ast::ExprKind::Int(l) => {
                let ty = match l.width {
                    Some(w) => Type::Bits { width: w.bits, signed: w.signed },
                    None => Type::Int,
                };
                Val::Scalar(Expr::constant(crate::check::constants::wrap(l.value.clone(), &ty), ty))
            }
            ast::ExprKind::Bool(b) => Val::Scalar(Expr::boolean(*b)),
            ast::ExprKind::String(s) => Val::Text(s.clone()),
            ast::ExprKind::Name(p) => self.name(p),
            ast::ExprKind::Member(base, m) => self.member(e, base, m),
            ast::ExprKind::TypeMember(_, m) => match self.type_of(e.id) {
                Type::ErrorCode => match self.checked.errors.iter().position(|n| *n == m.name) {
                    Some(code) => Val::Scalar(Expr::constant(code, Type::ErrorCode)),
                    None => Val::Broken,
                },
                t => self.enum_member(&t, &m.name),
            },
            ast::ExprKind::Index(base, index) => self.index(base, index),
            ast::ExprKind::Slice(base, high, low) => {
                let v = self.scalar_value(base);
                let (h, l) = (self.constant_int(high), self.constant_int(low));
                match (h.and_then(|h| h.to_u32()), l.and_then(|l| l.to_u32())) {
                    (Some(h), Some(l)) if h >= l => Val::Scalar(fold::slice(v, h, l)),
                    _ => Val::Broken,
                }
            }
            ast::ExprKind::Cast(t, inner) => {
                let to = self.type_of(t.id);
                let v = self.value(inner);
                self.cast_value(v, &to, e.span)
            }
            ast::ExprKind::Unary(op, inner) => {
                let v = self.scalar_value(inner);
                Val::Scalar(fold::unary(*op, v))
            }
            ast::ExprKind::Binary(..) => self.binary_chain(e),
            ast::ExprKind::Ternary(c, t, f) => self.ternary(e, c, t, f),
            ast::ExprKind::Call { callee, type_arguments, arguments } => self.call(e, callee, type_arguments, arguments),
            ast::ExprKind::Construct(..) => Val::Broken,
            ast::ExprKind::List { elements, dots } => {
                let values = self.values_in_order(&elements.iter().collect::<Vec<_>>());
                let mut parts: Vec<(Symbol, Val)> = values.into_iter().enumerate().map(|(i, v)| (format!("{i}").into(), v)).collect();
                if *dots {
                    // Fields beyond the list take their default values in the conversion.
                    parts.retain(|(_, v)| !matches!(v, Val::Default));
                }
                let t = self.type_of(e.id);
                Val::Struct(parts, t)
            }
            ast::ExprKind::Record { fields, .. } => {
                let values = self.values_in_order(&fields.iter().map(|(_, x)| x).collect::<Vec<_>>());
                let parts = fields.iter().map(|(n, _)| n.name.clone()).zip(values).collect();
                let t = self.type_of(e.id);
                Val::Struct(parts, t)
            }
            ast::ExprKind::InvalidHeader => Val::Invalid,
            ast::ExprKind::Dots => Val::Default,
            ast::ExprKind::This | ast::ExprKind::Default | ast::ExprKind::DontCare | ast::ExprKind::Invalid => Val::Broken,
        }
    }

    /// Values from left to right: one that a later one could change is copied first.
    pub(super) fn values_in_order(&mut self, es: &[&'a ast::Expr]) -> Vec<Val> {
        let mut out = Vec::new();
        for (i, e) in es.iter().enumerate() {
            let v = self.value(e);
            let v = if es[i + 1..].iter().any(|x| self.has_effects(x)) { self.freeze(v, e.span) } else { v };
            out.push(v);
        }
        out
    }

    /// Whether evaluating the expression may change a variable or the packet.
    pub(super) fn has_effects(&self, e: &ast::Expr) -> bool {
        match &e.kind {
            ast::ExprKind::Call { callee, arguments, .. } => {
                let pure = self.checked.calls.get(&e.id).is_some_and(|c| matches!(c.target, CallTarget::BuiltIn(_)));
                !pure || self.has_effects(callee) || arguments.iter().any(|a| self.has_effects(&a.value))
            }
            ast::ExprKind::Member(b, _) | ast::ExprKind::Cast(_, b) | ast::ExprKind::Unary(_, b) => self.has_effects(b),
            ast::ExprKind::Index(a, b) | ast::ExprKind::Binary(_, a, b) => self.has_effects(a) || self.has_effects(b),
            ast::ExprKind::Slice(a, _, _) => self.has_effects(a),
            ast::ExprKind::Ternary(a, b, c) => self.has_effects(a) || self.has_effects(b) || self.has_effects(c),
            ast::ExprKind::List { elements, .. } => elements.iter().any(|x| self.has_effects(x)),
            ast::ExprKind::Record { fields, .. } => fields.iter().any(|(_, x)| self.has_effects(x)),
            _ => false,
        }
    }

    fn name(&mut self, p: &Path) -> Val {
        match self.lookup(p) {
            Some(Binding::Storage(s)) => return self.load(&s.clone()),
            Some(Binding::Value(v)) => return v.clone(),
            Some(_) => return Val::Broken,
            None => {}
        }
        let Some(ids) = self.checked.globals.get(&p.name.name) else { return Val::Broken };
        for id in ids {
            if let (Some(v), DeclarationKind::Constant(c)) = (self.checked.constants.get(id), &self.decl(*id).kind) {
                let t = self.type_of(c.ty.id);
                return self.constant(v, &t);
            }
        }
        Val::Broken
    }

    pub(super) fn enum_member(&self, t: &Type, m: &Symbol) -> Val {
        let (Type::Enum(n) | Type::SerEnum(n, _)) = t else { return Val::Broken };
        let Some(def) = self.checked.enums.get(&n.decl) else { return Val::Broken };
        let Some(i) = def.members.iter().position(|(name, _)| name == m) else { return Val::Broken };
        let ty = self.scalar(t);
        Val::Scalar(match &def.members[i].1 {
            Some(v) => Expr::constant(crate::check::constants::wrap(v.clone(), &ty), ty),
            None => Expr::constant(i, ty),
        })
    }

    /// Whether a name stands for a type here.
    pub(super) fn is_type_name(&self, e: &ast::Expr) -> bool {
        match &e.kind {
            ast::ExprKind::Name(p) => {
                self.lookup(p).is_none()
                    && self.checked.globals.get(&p.name.name).is_some_and(|ids| {
                        ids.iter().any(|id| {
                            !matches!(
                                self.decl(*id).kind,
                                DeclarationKind::Constant(_) | DeclarationKind::Instantiation(_) | DeclarationKind::ValueSet(_)
                            )
                        })
                    })
            }
            _ => false,
        }
    }

    fn member(&mut self, e: &'a ast::Expr, base: &'a ast::Expr, m: &Ident) -> Val {
        if self.is_type_name(base) {
            let t = self.type_of(e.id);
            return self.enum_member(&t, &m.name);
        }
        if let Some(s) = self.place(e) {
            // A field of `last` can be read as it is.
            let s =
                if matches!(&s, Storage::Scalar(p) if matches!(p.header, HeaderRef::Last(_))) { s } else { self.pin_relative(s, e.span) };
            return self.load(&s);
        }
        if let ast::ExprKind::Call { callee, .. } = &base.kind
            && self.checked.calls.get(&base.id).is_some_and(|c| c.target == CallTarget::TableApply)
        {
            return self.apply_result(callee, &m.name, e.span);
        }
        let t = self.type_of(base.id);
        let v = self.value(base);
        self.member_of(v, &m.name, &t)
    }

    /// `hit` or `miss` as a value.
    fn apply_result(&mut self, callee: &'a ast::Expr, m: &Symbol, span: Span) -> Val {
        let ast::ExprKind::Member(table, _) = &callee.kind else { return Val::Broken };
        let Some(table) = self.table(table) else { return Val::Broken };
        let place = self.scalar_variable(if &**m == "miss" { "missed" } else { "hit" }, &Type::Bool);
        let hit = &**m == "hit";
        let set = |v: bool| vec![Stmt::Assign(place.clone(), Expr::boolean(v), span)];
        let (yes, no) = (set(hit), set(!hit));
        self.apply_table_prelude(&table);
        self.emit(Stmt::ApplyHit(table.id, yes, no, span));
        Val::Scalar(Expr::place(place))
    }

    fn member_of(&mut self, v: Val, m: &Symbol, t: &Type) -> Val {
        match v {
            Val::Struct(parts, _) => match parts.iter().find(|(n, _)| n == m) {
                Some((_, v)) => v.clone(),
                None => {
                    // A list where a struct is awaited: by the position of the field.
                    let fields = match self.strip(t) {
                        Type::Struct(n) | Type::Header(n) => self.fields(&n),
                        _ => Vec::new(),
                    };
                    let at = fields.iter().position(|(f, _)| f == m);
                    at.and_then(|i| parts.get(i)).map_or(Val::Broken, |(_, v)| v.clone())
                }
            },
            Val::HeaderLiteral(Some(parts), _) => parts.into_iter().find(|(n, _)| n == m).map_or(Val::Broken, |(_, v)| v),
            Val::HeaderLiteral(None, Type::Header(n)) => {
                let field = self.fields(&n).into_iter().find(|(f, _)| f == m);
                field.map_or(Val::Broken, |(_, t)| self.default_value(&t))
            }
            Val::Header(h, t) => {
                let s = self.header_field(&h, &t, m);
                self.load(&s)
            }
            Val::Union(u, t) => self.union_member(u, &t, m).map_or(Val::Broken, |s| self.load(&s)),
            Val::Stack(id, _) => match &**m {
                "size" => Val::Scalar(Expr::constant(self.stack_size(id), Type::bit(32))),
                "lastIndex" => Val::Scalar(Expr { kind: ExprKind::LastIndex(id), ty: Type::bit(32) }),
                _ => Val::Broken,
            },
            _ => Val::Broken,
        }
    }

    pub(super) fn stack_size(&self, id: ir::StackId) -> u32 {
        match &self.program.stacks[id.0].elements {
            ir::StackElements::Headers(_, ids) => ids.len() as u32,
            ir::StackElements::Unions(_, ids) => ids.len() as u32,
        }
    }

    fn index(&mut self, base: &'a ast::Expr, index: &'a ast::Expr) -> Val {
        if let Some(s) = self.place(base) {
            return match self.index_place(&s, index) {
                Some(s) => self.load(&s),
                None => Val::Broken,
            };
        }
        let v = self.value(base);
        if let Val::Stack(..) = v {
            let v = if self.has_effects(index) { self.freeze(v, base.span) } else { v };
            let element = self.storage_of(&v).and_then(|s| self.index_place(&s, index));
            return element.map_or(Val::Broken, |s| self.load(&s));
        }
        let i = self.constant_int(index).and_then(|i| i.to_usize());
        match (v, i) {
            (Val::Struct(parts, _), Some(i)) => parts.get(i).map_or(Val::Broken, |(_, v)| v.clone()),
            (Val::StackLiteral(parts), Some(i)) => parts.get(i).cloned().unwrap_or(Val::Broken),
            _ => Val::Broken,
        }
    }

    /// The place of an l-value; `None` when the expression is none.
    pub(super) fn place(&mut self, e: &'a ast::Expr) -> Option<Storage> {
        if let Some(super::arguments::Destination::Place(s)) = self.located.get(&e.id) {
            return Some(s.clone());
        }
        match &e.kind {
            ast::ExprKind::Name(p) => match self.lookup(p) {
                Some(Binding::Storage(s)) => Some(s.clone()),
                _ => None,
            },
            ast::ExprKind::Member(base, m) => {
                let s = self.place(base)?;
                match s {
                    Storage::Struct(parts, _) => parts.into_iter().find(|(n, _)| *n == m.name).map(|(_, s)| s),
                    Storage::Header(h, t) => Some(self.header_field(&h, &t, &m.name)),
                    Storage::Union(u, t) => self.union_member(u, &t, &m.name),
                    Storage::UnionNext(s, t) => {
                        let Type::Union(n) = &t else { return None };
                        let (_, mt) = self.fields(n).into_iter().find(|(f, _)| *f == m.name)?;
                        Some(Storage::Header(HeaderRef::UnionNext(s, m.name.clone()), mt))
                    }
                    Storage::Stack(id, t) => match (&*m.name, &t) {
                        ("next", Type::Union(_)) => Some(Storage::UnionNext(id, t)),
                        ("next", _) => Some(Storage::Header(HeaderRef::Next(id), t)),
                        ("last", Type::Header(_)) => Some(Storage::Header(HeaderRef::Last(id), t)),
                        _ => None,
                    },
                    _ => None,
                }
            }
            ast::ExprKind::Index(base, index) => {
                let s = self.place(base)?;
                self.index_place(&s, index)
            }
            _ => None,
        }
    }

    fn union_member(&self, u: ir::UnionId, t: &Type, m: &Symbol) -> Option<Storage> {
        let (_, id) = self.program.unions[u.0].members.iter().find(|(n, _)| n == m)?;
        let Type::Union(n) = t else { return None };
        let (_, mt) = self.fields(n).into_iter().find(|(f, _)| f == m)?;
        Some(Storage::Header(HeaderRef::Instance(*id), mt))
    }

    fn index_place(&mut self, s: &Storage, index: &'a ast::Expr) -> Option<Storage> {
        if let (Some(k), Storage::Stack(id, t)) = (self.chosen.get(&index.id), s) {
            let ir::StackElements::Unions(_, ids) = &self.program.stacks[id.0].elements else { return None };
            return ids.get(*k as usize).map(|id| Storage::Union(*id, t.clone()));
        }
        let i = self.scalar_value(index);
        match s {
            Storage::Stack(id, t) => {
                let elements = self.program.stacks[id.0].elements.clone();
                match (&i.kind, elements) {
                    (ExprKind::Const(v), ir::StackElements::Headers(_, ids)) => {
                        let id = v.to_usize().and_then(|v| ids.get(v).copied())?;
                        Some(Storage::Header(HeaderRef::Instance(id), t.clone()))
                    }
                    (ExprKind::Const(v), ir::StackElements::Unions(_, ids)) => {
                        let id = v.to_usize().and_then(|v| ids.get(v).copied())?;
                        Some(Storage::Union(id, t.clone()))
                    }
                    (_, ir::StackElements::Headers(..)) => {
                        // The index is read when the element is used: keep it from changing in between.
                        let simple = i.is_const() || matches!(i.kind, ExprKind::Place(_) | ExprKind::Param(_));
                        let i = if simple {
                            i
                        } else {
                            let ty = i.ty.clone();
                            self.temporary_of(&ty, i, "index", index.span)
                        };
                        Some(Storage::Header(HeaderRef::Element(*id, Box::new(i)), t.clone()))
                    }
                    (_, ir::StackElements::Unions(..)) => {
                        self.error(index.span, Rule::Bmv2, "the index of a stack of header unions must be known at compile time");
                        None
                    }
                }
            }
            Storage::Struct(parts, _) => {
                let i = i.as_const().and_then(|v| v.to_usize())?;
                parts.get(i).map(|(_, s)| s.clone())
            }
            _ => None,
        }
    }

    fn cast_value(&mut self, v: Val, to: &Type, span: Span) -> Val {
        let target = self.strip(to);
        match (v, &target) {
            (Val::Scalar(e), Type::Bool) => {
                let e = self.settle(e, span);
                if e.ty == Type::Bool {
                    return Val::Scalar(e);
                }
                let zero = Expr::constant(0, e.ty.clone());
                Val::Scalar(fold::binary(BinaryOp::Ne, e, zero))
            }
            (Val::Scalar(e), t) => {
                let t = self.scalar(t);
                let e = self.settle(e, span);
                match (&e.ty, &t) {
                    (Type::Bool, Type::Bits { .. }) => Val::Scalar(fold::mux(e, Expr::constant(1, t.clone()), Expr::constant(0, t))),
                    (_, Type::Bits { .. } | Type::Int) => Val::Scalar(fold::cast(e, &t)),
                    _ => Val::Scalar(e),
                }
            }
            (v, _) => self.convert(v, to),
        }
    }

    /// `a + b + c + ..` from left to right, without recursion: such chains can be long.
    fn binary_chain(&mut self, e: &'a ast::Expr) -> Val {
        let mut chain = Vec::new();
        let mut first = e;
        while let ast::ExprKind::Binary(op, l, r) = &first.kind {
            chain.push((*op, &**l, &**r, first.span));
            first = l;
        }
        let mut v = self.value(first);
        for (op, l, r, span) in chain.into_iter().rev() {
            v = self.binary(v, op, l, r, span);
        }
        v
    }

    fn binary(&mut self, lv: Val, op: BinaryOp, l: &'a ast::Expr, r: &'a ast::Expr, span: Span) -> Val {
        if matches!(op, BinaryOp::And | BinaryOp::Or) {
            let lv = self.as_scalar(lv);
            let lv = self.settle(lv, span);
            let lv = self.shallow(lv, span);
            if let ExprKind::Bool(b) = lv.kind {
                if b == (op == BinaryOp::Or) {
                    return Val::Scalar(lv);
                }
                return Val::Scalar(self.scalar_value(r));
            }
            let effects = self.has_effects(r);
            if !effects {
                let rv = self.scalar_value(r);
                return Val::Scalar(fold::binary(op, lv, rv));
            }
            // The right operand is evaluated only when the left one leaves the result open (spec 8.5).
            let place = self.scalar_variable("tmp", &Type::Bool);
            self.emit(Stmt::Assign(place.clone(), lv, span));
            let flag = Expr::place(place.clone());
            let target = place.clone();
            let condition = if op == BinaryOp::And { flag.clone() } else { fold::unary(UnaryOp::Not, flag.clone()) };
            self.if_else(
                condition,
                span,
                |c| {
                    let rv = c.scalar_value(r);
                    c.emit(Stmt::Assign(target, rv, span));
                },
                |_| {},
            );
            return Val::Scalar(flag);
        }
        let lv = if self.has_effects(r) { self.freeze(lv, l.span) } else { lv };
        let rv = self.value(r);
        match (lv, rv) {
            (Val::Scalar(a), Val::Scalar(b)) => {
                let (a, b) = (self.settle(a, span), self.settle(b, span));
                let (a, b) = (self.shallow(a, span), self.shallow(b, span));
                let v = fold::binary(op, a, b);
                self.check_division(&v, op, span);
                Val::Scalar(v)
            }
            (Val::Text(a), Val::Text(b)) => Val::Text(format!("{a}{b}").into()),
            (a, b) if matches!(op, BinaryOp::Eq | BinaryOp::Ne) => {
                let (lt, rt) = (self.type_of(l.id), self.type_of(r.id));
                let (a, b) = match (matches!(a, Val::Struct(..) | Val::Invalid), matches!(b, Val::Struct(..) | Val::Invalid)) {
                    (true, false) => (self.convert(a, &rt), b),
                    (false, true) => (a, self.convert(b, &lt)),
                    _ => (a, b),
                };
                let (a, b) = (self.settle_value(a, span), self.settle_value(b, span));
                let equal = self.equal(&a, &b, span);
                Val::Scalar(if op == BinaryOp::Eq { equal } else { fold::unary(UnaryOp::Not, equal) })
            }
            _ => Val::Broken,
        }
    }

    /// Refuses what the target cannot compute.
    pub(super) fn check_division(&mut self, v: &Expr, op: BinaryOp, span: Span) {
        if matches!(v.kind, ExprKind::Binary(BinaryOp::Div | BinaryOp::Mod, ..)) {
            self.report.error_help(span, Rule::Bmv2, crate::check::no_division(op), crate::check::NO_DIVISION_HELP);
        }
    }

    /// Whether two values of one type are equal (spec 8.17, 8.18).
    fn equal(&mut self, a: &Val, b: &Val, span: Span) -> Expr {
        match (a, b) {
            (Val::Scalar(x), Val::Scalar(y)) => {
                if matches!(x.ty, Type::Varbit(_)) {
                    self.error(span, Rule::Bmv2, "varbit fields cannot be compared");
                }
                fold::binary(BinaryOp::Eq, x.clone(), y.clone())
            }
            (Val::Struct(xs, _), Val::Struct(ys, _)) => {
                let by_name = ys.iter().all(|(n, _)| xs.iter().any(|(m, _)| m == n));
                let mut all = Expr::boolean(true);
                for (i, (n, x)) in xs.iter().enumerate() {
                    let y = if by_name { ys.iter().find(|(m, _)| m == n) } else { ys.get(i) };
                    if let Some((_, y)) = y {
                        let e = self.equal(x, y, span);
                        all = fold::binary(BinaryOp::And, all, e);
                        all = self.shallow(all, span);
                    }
                }
                all
            }
            (Val::Stack(x, t), Val::Stack(y, _)) => {
                let (xs, ys) = (self.elements(*x), self.elements(*y));
                let mut all = Expr::boolean(true);
                for (p, q) in xs.into_iter().zip(ys) {
                    let e = self.equal(&Val::Header(p, t.clone()), &Val::Header(q, t.clone()), span);
                    all = fold::binary(BinaryOp::And, all, e);
                }
                all
            }
            (Val::Union(x, _), Val::Union(y, _)) => {
                let (xs, ys) = (self.program.unions[x.0].members.clone(), self.program.unions[y.0].members.clone());
                let ty = self.program.unions[x.0].ty;
                let types = self.program.union_types[ty.0].members.clone();
                let mut all = Expr::boolean(true);
                for (((_, p), (_, q)), (_, ht)) in xs.into_iter().zip(ys).zip(types) {
                    let Some(t) = self.header_types.iter().find(|(_, id)| **id == ht).map(|(t, _)| t.clone()) else { continue };
                    let e = self.equal(&Val::Header(HeaderRef::Instance(p), t.clone()), &Val::Header(HeaderRef::Instance(q), t), span);
                    all = fold::binary(BinaryOp::And, all, e);
                }
                all
            }
            // Headers: both invalid, or both valid with equal fields.
            _ => {
                let (Some((va, fa)), Some((vb, fb))) = (self.header_parts(a), self.header_parts(b)) else {
                    return Expr::boolean(false);
                };
                let mut same = fold::binary(BinaryOp::And, va.clone(), vb.clone());
                for (x, y) in fa.into_iter().zip(fb) {
                    let e = fold::binary(BinaryOp::Eq, x, y);
                    same = fold::binary(BinaryOp::And, same, e);
                    same = self.shallow(same, span);
                }
                let neither = fold::binary(BinaryOp::And, fold::unary(UnaryOp::Not, va), fold::unary(UnaryOp::Not, vb));
                fold::binary(BinaryOp::Or, neither, same)
            }
        }
    }

    fn elements(&self, s: ir::StackId) -> Vec<HeaderRef> {
        match &self.program.stacks[s.0].elements {
            ir::StackElements::Headers(_, ids) => ids.iter().map(|h| HeaderRef::Instance(*h)).collect(),
            ir::StackElements::Unions(..) => Vec::new(),
        }
    }

    fn header_parts(&self, v: &Val) -> Option<(Expr, Vec<Expr>)> {
        match v {
            Val::Header(h, t) => Some((
                Expr { kind: ExprKind::Valid(h.clone()), ty: Type::Bool },
                self.header_places(h, t).into_iter().map(Expr::place).collect(),
            )),
            Val::HeaderLiteral(Some(_), _) => {
                let mut out = Vec::new();
                self.scalars_of(v, &mut out);
                Some((Expr::boolean(true), out))
            }
            Val::HeaderLiteral(None, _) | Val::Invalid => Some((Expr::boolean(false), Vec::new())),
            _ => None,
        }
    }

    fn ternary(&mut self, e: &'a ast::Expr, c: &'a ast::Expr, t: &'a ast::Expr, f: &'a ast::Expr) -> Val {
        let cv = self.scalar_value(c);
        if let ExprKind::Bool(b) = cv.kind {
            return self.value(if b { t } else { f });
        }
        let ty = self.type_of(e.id);
        let scalar = matches!(self.scalar(&self.strip(&ty)), Type::Bits { .. } | Type::Bool | Type::Enum(_) | Type::ErrorCode);
        if scalar && !self.has_effects(t) && !self.has_effects(f) {
            let (tv, fv) = (self.value_as(t, &ty), self.value_as(f, &ty));
            let (tv, fv) = (self.as_scalar(tv), self.as_scalar(fv));
            let (tv, fv) = (self.settle(tv, t.span), self.settle(fv, f.span));
            let (tv, fv) = (self.shallow(tv, t.span), self.shallow(fv, f.span));
            return Val::Scalar(fold::mux(cv, tv, fv));
        }
        let s = self.allocate("tmp", &ty);
        let target = s.clone();
        let (target2, ty2) = (s.clone(), ty.clone());
        self.if_else(
            cv,
            e.span,
            |l| {
                let v = l.value_as(t, &ty);
                l.store(&target, v, e.span);
            },
            |l| {
                let v = l.value_as(f, &ty2);
                l.store(&target2, v, e.span);
            },
        );
        self.load(&s)
    }
}
