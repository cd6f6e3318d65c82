//! Loops (spec 12.8): unrolled where the rounds are known, else left to the target.

use fairlane_syntax::ast::{self, *};
use num_bigint::BigInt;
use num_traits::ToPrimitive;

use super::values::Val;
use super::{fold, Binding, Lower};
use crate::ir::{self, Expr, ExprKind, HeaderRef, Stmt};
use crate::rule::Rule;
use crate::types::Type;

/// The most rounds that a loop is unrolled to.
const MAX_ROUNDS: usize = 1024;

impl<'a> Lower<'a, '_> {
    /// One round: `continue` goes to its end, `break` to `end`.
    fn round(&mut self, end: ir::Label, body: &'a Statement) {
        let next = self.new_label();
        self.loops.push((end, next));
        self.scope(next, |l| l.scoped(|l| l.statement(body)));
        self.loops.pop();
    }

    pub(super) fn for_loop(
        &mut self,
        init: &'a [Statement],
        condition: &'a ast::Expr,
        update: &'a [Statement],
        body: &'a Statement,
        span: Span,
    ) {
        if let Some(values) = self.known_rounds(init, condition, update, body) {
            let StatementKind::Declaration(d) = &init[0].kind else { return };
            let DeclarationKind::Variable(v) = &d.kind else { return };
            let end = self.new_label();
            self.scope(end, |l| {
                for value in values {
                    l.scoped(|l| {
                        l.bind(&v.name.name, Binding::Value(Val::Scalar(value)));
                        l.round(end, body);
                    });
                }
            });
            return;
        }
        self.scoped(|l| {
            for s in init {
                l.statement(s);
            }
            let end = l.new_label();
            l.scope(end, |l| {
                l.repeat(span, |l| {
                    let c = l.condition(condition);
                    l.if_else(fold::unary(UnaryOp::Not, c), span, |l| l.leave(end, span), |_| {});
                    l.round(end, body);
                    for s in update {
                        l.statement(s);
                    }
                });
            });
        });
    }

    /// The values of the loop variable when all rounds are known: one variable with a constant start, which only the
    /// update assigns.
    fn known_rounds(
        &mut self,
        init: &'a [Statement],
        condition: &'a ast::Expr,
        update: &'a [Statement],
        body: &'a Statement,
    ) -> Option<Vec<Expr>> {
        let [Statement { kind: StatementKind::Declaration(d), .. }] = init else { return None };
        let DeclarationKind::Variable(v) = &d.kind else { return None };
        let [Statement { kind: StatementKind::Assignment { target, op, value }, .. }] = update else { return None };
        let is_variable = |e: &ast::Expr| matches!(&e.kind, ast::ExprKind::Name(p) if p.name.name == v.name.name);
        if !is_variable(target) || writes(body, &v.name.name) || self.has_effects(condition) || self.has_effects(value) {
            return None;
        }
        let ty = self.type_of(v.ty.id);
        let initializer = v.initializer.as_ref().filter(|e| !self.has_effects(e))?;
        let first = self.value_as(initializer, &ty);
        let Val::Scalar(mut current) = first else { return None };
        let mut rounds = Vec::new();
        loop {
            if !current.is_const() {
                return None;
            }
            let state = current.clone();
            let (go, next) = self.scoped(|l| {
                l.bind(&v.name.name, Binding::Value(Val::Scalar(state.clone())));
                let go = l.condition(condition);
                let r = l.value_as(value, &ty);
                let r = l.as_scalar(r);
                (
                    go,
                    match op {
                        Some(op) => fold::binary(*op, state.clone(), r),
                        None => r,
                    },
                )
            });
            match go.kind {
                ExprKind::Bool(true) => rounds.push(current),
                ExprKind::Bool(false) => return Some(rounds),
                _ => return None,
            }
            if rounds.len() > MAX_ROUNDS {
                return None;
            }
            current = next;
        }
    }

    pub(super) fn for_in(&mut self, variable: &'a ForVariable, collection: &'a ForCollection, body: &'a Statement, span: Span) {
        let end = self.new_label();
        let items: Vec<Val> = match collection {
            // The elements of a list have their values before the first round, whatever the body writes.
            ForCollection::Expression(e) => match self.value(e) {
                Val::Struct(parts, _) => parts.into_iter().map(|(_, v)| self.freeze(v, span)).collect(),
                Val::StackLiteral(parts) => parts.into_iter().map(|v| self.freeze(v, span)).collect(),
                Val::Stack(id, t) => match &self.program.stacks[id.0].elements {
                    ir::StackElements::Headers(_, ids) => ids.iter().map(|h| Val::Header(HeaderRef::Instance(*h), t.clone())).collect(),
                    ir::StackElements::Unions(_, ids) => ids.iter().map(|u| Val::Union(*u, t.clone())).collect(),
                },
                _ => return,
            },
            ForCollection::Range(a, b) => {
                let low = self.scalar_value(a);
                let low = if self.has_effects(b) { self.freeze(Val::Scalar(low), span) } else { Val::Scalar(low) };
                let (low, high) = (self.as_scalar(low), self.scalar_value(b));
                match (low.as_const(), high.as_const()) {
                    (Some(x), Some(y)) => {
                        let count = (y - x).to_usize().map_or(0, |n| n.saturating_add(1));
                        if count > MAX_ROUNDS {
                            self.error(span, Rule::Bmv2, format!("the loop has {count} rounds; at most {MAX_ROUNDS} are unrolled"));
                            return;
                        }
                        let ty = if high.ty == Type::Int { low.ty.clone() } else { high.ty.clone() };
                        (0..count).map(|i| Val::Scalar(Expr::constant(x + BigInt::from(i), ty.clone()))).collect()
                    }
                    _ => return self.for_range(variable, low, high, body, span),
                }
            }
        };
        self.scope(end, |l| {
            for item in items {
                l.scoped(|l| {
                    match variable {
                        ForVariable::Declared(t, name) => {
                            let ty = l.type_of(t.id);
                            let v = l.convert(item, &ty);
                            let binding = if writes(body, &name.name) {
                                let s = l.allocate(&name.name, &ty);
                                l.store(&s, v, span);
                                Binding::Storage(s)
                            } else {
                                let v = l.freeze(v, span);
                                match l.storage_of(&v) {
                                    Some(s) => Binding::Storage(s),
                                    None => Binding::Value(v),
                                }
                            };
                            l.bind(&name.name, binding);
                        }
                        ForVariable::Existing(e) => {
                            let ty = l.type_of(e.id);
                            let v = l.convert(item, &ty);
                            if let Some(s) = l.place(e) {
                                l.store(&s, v, span);
                            }
                        }
                    }
                    l.round(end, body);
                });
            }
        });
    }

    /// A range whose ends are only known at run time.
    fn for_range(&mut self, variable: &'a ForVariable, low: Expr, high: Expr, body: &'a Statement, span: Span) {
        self.scoped(|l| {
            let (s, ty) = match variable {
                ForVariable::Declared(t, name) => {
                    let ty = l.type_of(t.id);
                    let s = l.allocate(&name.name, &ty);
                    l.bind(&name.name, Binding::Storage(s.clone()));
                    (Some(s), ty)
                }
                ForVariable::Existing(e) => (l.place(e), l.type_of(e.id)),
            };
            let Some(s) = s else { return };
            let scalar = l.scalar(&ty);
            let counter = l.scalar_variable("counter", &scalar);
            let last = l.temporary_of(&scalar, fold::cast(high, &scalar), "last", span);
            l.emit(Stmt::Assign(counter.clone(), fold::cast(low, &scalar), span));
            let end = l.new_label();
            let value = Expr::place(counter.clone());
            l.scope(end, |l| {
                let empty = fold::binary(BinaryOp::Gt, value.clone(), last.clone());
                l.if_else(empty, span, |l| l.leave(end, span), |_| {});
                l.repeat(span, |l| {
                    l.store(&s, Val::Scalar(value.clone()), span);
                    l.round(end, body);
                    // Compared before it is counted up: the last value may be the largest of the type.
                    let done = fold::binary(BinaryOp::Eq, value.clone(), last.clone());
                    l.if_else(done, span, |l| l.leave(end, span), |_| {});
                    let next = fold::binary(BinaryOp::Add, value.clone(), Expr::constant(1, scalar.clone()));
                    l.emit(Stmt::Assign(counter.clone(), next, span));
                });
            });
        });
    }
}

/// Whether the statement may assign the variable of that name: an assignment, or an argument that could be `out`.
fn writes(s: &Statement, name: &Symbol) -> bool {
    let root = |e: &ast::Expr| {
        let mut e = e;
        loop {
            match &e.kind {
                ast::ExprKind::Member(b, _) | ast::ExprKind::Index(b, _) | ast::ExprKind::Slice(b, _, _) => e = b,
                ast::ExprKind::Name(p) => return p.name.name == *name,
                _ => return false,
            }
        }
    };
    fn passes(e: &ast::Expr, root: &impl Fn(&ast::Expr) -> bool) -> bool {
        match &e.kind {
            ast::ExprKind::Call { arguments, .. } => arguments.iter().any(|a| root(&a.value) || passes(&a.value, root)),
            ast::ExprKind::Binary(_, l, r) | ast::ExprKind::Index(l, r) => passes(l, root) || passes(r, root),
            ast::ExprKind::Unary(_, x) | ast::ExprKind::Cast(_, x) | ast::ExprKind::Member(x, _) | ast::ExprKind::Slice(x, _, _) => {
                passes(x, root)
            }
            ast::ExprKind::Ternary(a, b, c) => passes(a, root) || passes(b, root) || passes(c, root),
            ast::ExprKind::List { elements, .. } => elements.iter().any(|x| passes(x, root)),
            ast::ExprKind::Record { fields, .. } => fields.iter().any(|(_, x)| passes(x, root)),
            _ => false,
        }
    }
    match &s.kind {
        StatementKind::Assignment { target, value, .. } => root(target) || passes(value, &root),
        StatementKind::Call(e) => passes(e, &root),
        StatementKind::DirectApplication { arguments, .. } => arguments.iter().any(|a| root(&a.value)),
        StatementKind::Block(b) => b.statements.iter().any(|s| writes(s, name)),
        StatementKind::If { condition, then_branch, else_branch } => {
            passes(condition, &root) || writes(then_branch, name) || else_branch.as_deref().is_some_and(|s| writes(s, name))
        }
        StatementKind::Switch { cases, .. } => {
            cases.iter().filter_map(|c| c.body.as_ref()).any(|b| b.statements.iter().any(|s| writes(s, name)))
        }
        StatementKind::For { init, update, body, .. } => init.iter().chain(update).any(|s| writes(s, name)) || writes(body, name),
        StatementKind::ForIn { variable, body, .. } => matches!(variable, ForVariable::Existing(e) if root(e)) || writes(body, name),
        StatementKind::Declaration(d) => match &d.kind {
            DeclarationKind::Variable(v) => v.initializer.as_ref().is_some_and(|e| passes(e, &root)),
            _ => false,
        },
        _ => false,
    }
}
