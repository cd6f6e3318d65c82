//! Calls: functions and actions are inlined (spec 8.22, 10, 14.1.1).

use fairlane_syntax::ast::{self, *};
use num_traits::ToPrimitive;

use super::arguments::Passing;
use super::storage::Storage;
use super::values::Val;
use super::{Binding, Lower, ReturnPoint};
use crate::check::{CallInfo, CallTarget};
use crate::ir::{Expr, ExprKind, Stmt};
use crate::rule::Rule;
use crate::types::{DeclId, Type};

impl<'a> Lower<'a, '_> {
    /// Makes a call and gives its value.
    pub(super) fn call(&mut self, e: &'a ast::Expr, callee: &'a ast::Expr, _types: &'a [TypeExpr], arguments: &'a [Argument]) -> Val {
        let Some(info) = self.checked.calls.get(&e.id).cloned() else { return Val::Broken };
        self.arguments_in_order(&info, arguments, |l| l.call_of(e, callee, &info, arguments))
    }

    fn call_of(&mut self, e: &'a ast::Expr, callee: &'a ast::Expr, info: &CallInfo, arguments: &'a [Argument]) -> Val {
        match &info.target {
            CallTarget::Function(id) => self.call_function(*id, info, arguments, e.span),
            CallTarget::ExternFunction(id) if self.takes_name_of_architecture(*id, &info.signature.name) => {
                let text = format!("this `{}` is the program's own, not the architecture's", info.signature.name);
                self.report.error_help(e.span, Rule::V1model, text, "leave its declaration out");
                Val::Broken
            }
            CallTarget::ExternFunction(_) => self.extern_function(e, info, arguments),
            CallTarget::Method(_, i) => {
                let ast::ExprKind::Member(object, _) = &callee.kind else { return Val::Broken };
                let Some(instance) = self.instance(object) else { return Val::Broken };
                self.extern_method(e, &instance, *i, info, arguments)
            }
            CallTarget::Action => {
                let ast::ExprKind::Name(p) = &callee.kind else { return Val::Broken };
                self.call_action(p, info, arguments, e.span);
                Val::Broken
            }
            CallTarget::Apply(id) => {
                self.apply(*id, callee, info, arguments, e.span);
                Val::Broken
            }
            CallTarget::TableApply => {
                let ast::ExprKind::Member(table, _) = &callee.kind else { return Val::Broken };
                if let Some(table) = self.table(table) {
                    self.apply_table_prelude(&table);
                    self.emit(Stmt::Apply(table.id, e.span));
                }
                Val::Broken
            }
            CallTarget::BuiltIn(name) => self.builtin(e, callee, name, arguments),
            CallTarget::Constructor(_) => Val::Broken,
        }
    }

    fn builtin(&mut self, e: &'a ast::Expr, callee: &'a ast::Expr, name: &Symbol, arguments: &'a [Argument]) -> Val {
        let base = match &callee.kind {
            ast::ExprKind::Member(base, _) => base,
            ast::ExprKind::TypeMember(t, _) => {
                let ty = self.type_of(t.id);
                return self.size_of(&ty, name);
            }
            _ => return Val::Broken,
        };
        if name.contains("SizeIn") {
            let ty = self.type_of(base.id);
            return self.size_of(&ty, name);
        }
        let s = match self.place(base) {
            Some(s) => self.pin_relative(s, e.span),
            None => {
                let v = self.value(base);
                match (&v, &**name) {
                    (Val::HeaderLiteral(parts, _), "isValid") => return Val::Scalar(Expr::boolean(parts.is_some())),
                    _ => match self.storage_of(&v) {
                        Some(s) => s,
                        None => return Val::Broken,
                    },
                }
            }
        };
        match (&**name, s) {
            ("isValid", Storage::Header(h, _)) => Val::Scalar(Expr { kind: ExprKind::Valid(h), ty: Type::Bool }),
            ("isValid", Storage::Union(u, _)) => Val::Scalar(Expr { kind: ExprKind::ValidUnion(u), ty: Type::Bool }),
            ("setValid", Storage::Header(h, _)) => {
                self.emit(Stmt::SetValid(h, true, e.span));
                Val::Broken
            }
            ("setInvalid", Storage::Header(h, _)) => {
                self.emit(Stmt::SetValid(h, false, e.span));
                Val::Broken
            }
            ("push_front" | "pop_front", Storage::Stack(id, _)) => {
                let count = arguments.first().and_then(|a| self.constant_int(&a.value)).and_then(|v| v.to_u32());
                if let Some(count) = count {
                    self.emit(Stmt::Shift(id, &**name == "push_front", count, e.span));
                }
                Val::Broken
            }
            _ => Val::Broken,
        }
    }

    fn size_of(&self, t: &Type, name: &str) -> Val {
        let largest = name.starts_with("max");
        let bits = self.bits(t, largest, 0);
        let v = if name.ends_with("Bytes") { bits.div_ceil(8) } else { bits };
        Val::Scalar(Expr::constant(v, Type::Int))
    }

    /// The width of a type in bits: of varbit fields the largest or none.
    pub(super) fn bits(&self, t: &Type, largest: bool, depth: u32) -> u32 {
        if depth > 64 {
            return 0;
        }
        match self.strip(t) {
            Type::Varbit(w) => {
                if largest {
                    w
                } else {
                    0
                }
            }
            Type::Struct(n) | Type::Header(n) => {
                self.fields(&n).iter().map(|(_, t)| self.bits(t, largest, depth + 1)).fold(0, u32::saturating_add)
            }
            Type::Union(n) => {
                let widths = self.fields(&n).into_iter().map(|(_, t)| self.bits(&t, largest, depth + 1));
                if largest {
                    widths.max().unwrap_or(0)
                } else {
                    widths.min().unwrap_or(0)
                }
            }
            Type::Tuple(ts) => ts.iter().map(|t| self.bits(t, largest, depth + 1)).fold(0, u32::saturating_add),
            Type::Record(fs) => fs.iter().map(|(_, t)| self.bits(t, largest, depth + 1)).fold(0, u32::saturating_add),
            Type::Stack(e, n) => self.bits(&e, largest, depth + 1).saturating_mul(n),
            other => super::fold::bits_of(&other),
        }
    }

    fn call_function(&mut self, id: DeclId, info: &CallInfo, arguments: &'a [Argument], span: Span) -> Val {
        let DeclarationKind::Function(f) = &self.decl(id).kind else { return Val::Broken };
        let bound = self.bind_arguments(info, &f.prototype.parameters, arguments, Passing::Closed, span);
        let map: Vec<(u32, Type)> = info.type_args.iter().map(|(p, t)| (*p, t.substitute(&self.substitution))).collect();
        let substitution = std::mem::replace(&mut self.substitution, map);
        let scopes = std::mem::take(&mut self.scopes);
        let result = self.nested(span, |l| {
            l.scoped(|l| {
                for b in &bound {
                    l.bind(&b.name, b.binding.clone());
                }
                l.with_pending(&bound, |l| l.function_body(f))
            })
        });
        self.scopes = scopes;
        self.substitution = substitution;
        let result = result.unwrap_or(Val::Broken);
        // The result must not change with what is copied out.
        let result = if bound.iter().any(|b| b.copy_out.is_some()) { self.freeze(result, span) } else { result };
        self.copy_out(&bound, span);
        result
    }

    fn function_body(&mut self, f: &'a FunctionDeclaration) -> Val {
        let ty = self.type_of(f.prototype.return_type.id);
        // A body whose only `return` is its end needs no jumps.
        if let Some((Statement { kind: StatementKind::Return(Some(e)), .. }, rest)) = f.body.statements.split_last()
            && !rest.iter().any(returns)
        {
            let label = self.new_label();
            self.returns.push(ReturnPoint { label, result: None, ty: ty.clone() });
            let v = self.scoped(|l| {
                for s in rest {
                    l.statement(s);
                }
                l.value_as(e, &ty)
            });
            self.returns.pop();
            return v;
        }
        let result = if matches!(ty, Type::Void) { None } else { Some(self.allocate("result", &ty)) };
        let label = self.new_label();
        self.returns.push(ReturnPoint { label, result: result.clone(), ty });
        self.scope(label, |l| l.block(&f.body));
        self.returns.pop();
        result.map_or(Val::Broken, |s| self.load(&s))
    }

    /// A direct call of an action: inlined, its parameters without direction bound like `in` ones.
    fn call_action(&mut self, p: &Path, info: &CallInfo, arguments: &'a [Argument], span: Span) {
        let Some((d, keep, name)) = self.action(p) else { return };
        let DeclarationKind::Action(a) = &d.kind else { return };
        if !self.in_action {
            self.use_action(d, &name, None);
        }
        let in_action = std::mem::replace(&mut self.in_action, true);
        let bound = self.bind_arguments(info, &a.parameters, arguments, Passing::Open, span);
        self.nested(span, |l| {
            l.with_scopes(keep, |l| {
                l.scoped(|l| {
                    for b in &bound {
                        l.bind(&b.name, b.binding.clone());
                    }
                    l.with_pending(&bound, |l| l.action_body(a));
                });
            });
        });
        self.copy_out(&bound, span);
        self.in_action = in_action;
    }

    /// The statements of an action, which `return` leaves.
    pub(super) fn action_body(&mut self, a: &'a ActionDeclaration) {
        let label = self.new_label();
        self.returns.push(ReturnPoint { label, result: None, ty: Type::Void });
        self.scope(label, |l| l.block(&a.body));
        self.returns.pop();
    }

    /// An action by name: its declaration, how many scopes it sees, its control-plane name.
    pub(super) fn action(&mut self, p: &Path) -> Option<(&'a Declaration, usize, String)> {
        if let Some(Binding::Action(d, keep, name)) = self.lookup(p) {
            return Some((d, *keep, name.clone()));
        }
        let id =
            self.checked.globals.get(&p.name.name)?.iter().copied().find(|id| matches!(self.decl(*id).kind, DeclarationKind::Action(_)))?;
        let d = self.decl(id);
        Some((d, 0, super::names::qualified("", &p.name.name, &d.annotations)))
    }
}

/// Whether a `return` stands somewhere in the statement.
fn returns(s: &Statement) -> bool {
    match &s.kind {
        StatementKind::Return(_) => true,
        StatementKind::Block(b) => b.statements.iter().any(returns),
        StatementKind::If { then_branch, else_branch, .. } => returns(then_branch) || else_branch.as_deref().is_some_and(returns),
        StatementKind::Switch { cases, .. } => cases.iter().filter_map(|c| c.body.as_ref()).any(|b| b.statements.iter().any(returns)),
        StatementKind::For { body, .. } | StatementKind::ForIn { body, .. } => returns(body),
        _ => false,
    }
}
