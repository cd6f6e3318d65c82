//! Statements (spec 12).

use fairlane_syntax::ast::{self, *};

use super::{fold, Binding, Lower};
use crate::check::CallTarget;
use crate::ir::{ActionId, Expr, ExprKind, Stmt};
use crate::types::Type;

impl<'a> Lower<'a, '_> {
    pub(super) fn block(&mut self, b: &'a Block) {
        self.scoped(|l| {
            for s in &b.statements {
                l.statement(s);
            }
        });
    }

    pub(super) fn statement(&mut self, s: &'a Statement) {
        if self.overflow_told {
            return;
        }
        match &s.kind {
            StatementKind::Empty => {}
            StatementKind::Declaration(d) => self.local(d),
            StatementKind::Assignment { target, op, value } => {
                if !self.for_each_choice(&[target, value], s.span, &mut |l| l.assignment(target, *op, value, s.span)) {
                    self.assignment(target, *op, value, s.span);
                }
            }
            StatementKind::Call(e) => {
                let call = &mut |l: &mut Self| {
                    // A bare `lookahead` still fails on a short packet.
                    let v = l.value(e);
                    l.settle_value(v, s.span);
                };
                if !self.for_each_choice(&[e], s.span, call) {
                    call(self);
                }
            }
            StatementKind::DirectApplication { ty, arguments } => {
                let Some(info) = self.checked.calls.get(&ty.id).cloned() else { return };
                if let CallTarget::Apply(id) = info.target {
                    self.arguments_in_order(&info, arguments, |l| l.apply_type(id, &info, arguments, s.span));
                }
            }
            StatementKind::Block(b) => self.block(b),
            StatementKind::If { condition, then_branch, else_branch } => {
                self.if_statement(condition, then_branch, else_branch.as_deref(), s.span);
            }
            StatementKind::Switch { subject, cases } => self.switch(subject, cases, s.span),
            StatementKind::For { init, condition, update, body } => self.for_loop(init, condition, update, body, s.span),
            StatementKind::ForIn { variable, collection, body } => self.for_in(variable, collection, body, s.span),
            StatementKind::Return(value) => {
                let Some(point) = self.returns.last().cloned() else { return };
                if let (Some(e), Some(target)) = (value, &point.result) {
                    let v = self.value_as(e, &point.ty);
                    self.store(target, v, s.span);
                } else if let Some(e) = value {
                    self.value(e);
                }
                self.leave(point.label, s.span);
            }
            StatementKind::Exit => {
                self.copy_out_pending(s.span);
                self.emit(Stmt::Exit(s.span));
            }
            StatementKind::Break => {
                if let Some((end, _)) = self.loops.last().copied() {
                    self.leave(end, s.span);
                }
            }
            StatementKind::Continue => {
                if let Some((_, next)) = self.loops.last().copied() {
                    self.leave(next, s.span);
                }
            }
        }
    }

    /// A constant, variable or instance declared among statements.
    pub(super) fn local(&mut self, d: &'a Declaration) {
        match &d.kind {
            DeclarationKind::Constant(c) => {
                let ty = self.type_of(c.ty.id);
                let v = self.value_as(&c.value, &ty);
                self.bind(&c.name.name, Binding::Value(v));
            }
            DeclarationKind::Variable(v) => {
                let ty = self.type_of(v.ty.id);
                let s = self.allocate(&v.name.name, &ty);
                self.initialise(v, &s, d.span);
                self.bind(&v.name.name, Binding::Storage(s));
            }
            DeclarationKind::Instantiation(i) => {
                if let Some(instance) = self.instantiate(i, d) {
                    self.bind(&i.name.name, Binding::Instance(instance));
                }
            }
            _ => {}
        }
    }

    /// Gives a new variable its first value.
    pub(super) fn initialise(&mut self, v: &'a VariableDeclaration, s: &super::storage::Storage, span: Span) {
        match &v.initializer {
            Some(e) => {
                let ty = self.type_of(v.ty.id);
                let value = self.value_as(e, &ty);
                self.store(s, value, span);
            }
            None => self.reset(s, span),
        }
    }

    /// `t.apply().hit`, `.miss`, negated or not: the table and whether the first branch is that of a hit.
    fn table_condition(&self, e: &'a ast::Expr) -> Option<(&'a ast::Expr, bool)> {
        match &e.kind {
            ast::ExprKind::Unary(UnaryOp::Not, inner) => self.table_condition(inner).map(|(t, hit)| (t, !hit)),
            ast::ExprKind::Member(base, m) if matches!(&*m.name, "hit" | "miss") => {
                let ast::ExprKind::Call { callee, .. } = &base.kind else { return None };
                let info = self.checked.calls.get(&base.id)?;
                let ast::ExprKind::Member(table, _) = &callee.kind else { return None };
                (info.target == CallTarget::TableApply).then_some((&**table, &*m.name == "hit"))
            }
            _ => None,
        }
    }

    fn if_statement(&mut self, condition: &'a ast::Expr, then: &'a Statement, otherwise: Option<&'a Statement>, span: Span) {
        let branch = |s: Option<&'a Statement>| {
            move |l: &mut Self| {
                if let Some(s) = s {
                    l.scoped(|l| l.statement(s));
                }
            }
        };
        if let Some((table, hit)) = self.table_condition(condition) {
            let Some(table) = self.table(table) else { return };
            self.apply_table_prelude(&table);
            let yes = self.collect(branch(Some(then)));
            let no = self.collect(branch(otherwise));
            let (yes, no) = if hit { (yes, no) } else { (no, yes) };
            self.emit(Stmt::ApplyHit(table.id, yes, no, span));
            return;
        }
        // `if (a && t.apply().hit) ..` without `else` is two nested ifs: no flag is needed.
        if let (ast::ExprKind::Binary(BinaryOp::And, l, r), None) = (&condition.kind, otherwise)
            && self.has_effects(condition)
        {
            if let Some((table, hit)) = self.table_condition(l) {
                let Some(table) = self.table(table) else { return };
                self.apply_table_prelude(&table);
                let inner = self.collect(|c| c.if_statement(r, then, None, span));
                let (yes, no) = if hit { (inner, Vec::new()) } else { (Vec::new(), inner) };
                self.emit(Stmt::ApplyHit(table.id, yes, no, span));
                return;
            }
            let c = self.condition(l);
            self.if_else(c, span, |c| c.if_statement(r, then, None, span), |_| {});
            return;
        }
        let c = self.condition(condition);
        self.if_else(c, span, branch(Some(then)), branch(otherwise));
    }

    fn switch(&mut self, subject: &'a ast::Expr, cases: &'a [SwitchCase], span: Span) {
        // Cases without a block share the next one's.
        let mut groups: Vec<(Vec<&'a ast::Expr>, &'a Block)> = Vec::new();
        let mut labels: Vec<&'a ast::Expr> = Vec::new();
        for c in cases {
            labels.push(&c.label);
            if let Some(b) = &c.body {
                groups.push((std::mem::take(&mut labels), b));
            }
        }
        let is_default = |e: &ast::Expr| matches!(e.kind, ast::ExprKind::Default | ast::ExprKind::DontCare);
        if let ast::ExprKind::Member(base, m) = &subject.kind
            && let (ast::ExprKind::Call { callee, .. }, "action_run") = (&base.kind, &*m.name)
        {
            let ast::ExprKind::Member(table, _) = &callee.kind else { return };
            let Some(table) = self.table(table) else { return };
            self.apply_table_prelude(&table);
            let mut arms: Vec<(Vec<ActionId>, Vec<Stmt>)> = Vec::new();
            let mut default = None;
            for (labels, b) in groups {
                let body = self.collect(|l| l.block(b));
                let ids: Vec<ActionId> = labels
                    .iter()
                    .filter_map(|e| match &e.kind {
                        ast::ExprKind::Name(p) => table.actions.iter().find(|(n, _)| *n == p.name.name).map(|(_, id)| *id),
                        _ => None,
                    })
                    .collect();
                if labels.iter().any(|e| is_default(e)) {
                    default = Some(body.clone());
                }
                if !ids.is_empty() {
                    arms.push((ids, body));
                }
            }
            self.emit(Stmt::ApplySwitch(table.id, arms, default, span));
            return;
        }
        let ty = self.type_of(subject.id);
        let v = self.scalar_value(subject);
        let v = if v.is_const() || matches!(v.kind, ExprKind::Param(_)) {
            v
        } else {
            let t = v.ty.clone();
            self.temporary_of(&t, v, "subject", span)
        };
        self.switch_chain(&v, &ty, &groups, span);
    }

    /// A switch on a value as a chain of conditions; labels are constants, so that their order is free.
    fn switch_chain(&mut self, v: &Expr, ty: &Type, groups: &[(Vec<&'a ast::Expr>, &'a Block)], span: Span) {
        let is_default = |e: &ast::Expr| matches!(e.kind, ast::ExprKind::Default | ast::ExprKind::DontCare);
        let Some(((labels, body), rest)) = groups.split_first() else { return };
        if labels.iter().any(|e| is_default(e)) {
            self.block(body);
            return;
        }
        let mut condition = Expr::boolean(false);
        for e in labels {
            let label = self.value_as(e, ty);
            let label = self.as_scalar(label);
            let equal = fold::binary(BinaryOp::Eq, v.clone(), label);
            condition = fold::binary(BinaryOp::Or, condition, equal);
        }
        self.if_else(condition, span, |l| l.block(body), |l| l.switch_chain(v, ty, rest, span));
    }
}
