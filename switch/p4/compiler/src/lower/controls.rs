//! Controls, inlined where they are applied (spec 14.4, 15.1).

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use fairlane_syntax::ast::{self, *};

use super::arguments::{Bound, Passing};
use super::instances::{Instance, InstanceKind, State};
use super::{names, Binding, Lower, ReturnPoint};
use crate::check::CallInfo;
use crate::rule::Rule;
use crate::types::{DeclId, Type};

impl<'a> Lower<'a, '_> {
    /// `x.apply(..)` of an instance, or `C.apply(..)` of a type.
    pub(super) fn apply(&mut self, decl: DeclId, callee: &'a ast::Expr, info: &CallInfo, arguments: &'a [Argument], span: Span) {
        let ast::ExprKind::Member(object, _) = &callee.kind else { return self.apply_type(decl, info, arguments, span) };
        if self.is_type_name(object) {
            return self.apply_type(decl, info, arguments, span);
        }
        let Some(instance) = self.instance(object) else { return };
        self.apply_instance(&instance, info, arguments, span);
    }

    /// `C.apply(..)`: an instance of its own, named as the type (spec 15.1).
    pub(super) fn apply_type(&mut self, decl: DeclId, info: &CallInfo, arguments: &'a [Argument], span: Span) {
        let d = self.decl(decl);
        let (name, kind) = match &d.kind {
            DeclarationKind::Control(c) => (&c.name.name, InstanceKind::Control { decl, args: Vec::new(), state: RefCell::new(None) }),
            DeclarationKind::Parser(p) => (&p.name.name, InstanceKind::Parser { decl, args: Vec::new() }),
            _ => return,
        };
        // Two direct applications in one control are two instances; the second gets a number.
        let base = names::qualified(&self.prefix, name, &[]);
        let name = self.unique.name(&base);
        let types = info.type_args.iter().map(|(p, t)| (*p, t.substitute(&self.substitution))).collect();
        let mut position = self.position.clone();
        position.push(self.direct_applications);
        self.direct_applications += 1;
        let instance = Rc::new(Instance { name, kind, position, types });
        self.apply_instance(&instance, info, arguments, span);
    }

    fn apply_instance(&mut self, instance: &Rc<Instance<'a>>, info: &CallInfo, arguments: &'a [Argument], span: Span) {
        match &instance.kind {
            InstanceKind::Control { decl, args, state } => {
                let DeclarationKind::Control(c) = &self.decl(*decl).kind else { return };
                let bound = self.bind_arguments(info, &c.parameters, arguments, Passing::Closed, span);
                let known = state.borrow().clone();
                match known {
                    None => {
                        // Applied for the first time. Were it applied again with other arguments, its tables
                        // would need variables of their own for the parameters.
                        let params: Vec<(Symbol, Binding<'a>)> = bound.iter().map(|b| (b.name.clone(), b.binding.clone())).collect();
                        self.nested(span, |l| l.with_pending(&bound, |l| l.run_control(c, instance, args, state, params)));
                        self.copy_out(&bound, span);
                    }
                    Some(known) => self.apply_again(c, instance, &known, &bound, span),
                }
            }
            InstanceKind::Parser { decl, args } => {
                let DeclarationKind::Parser(p) = &self.decl(*decl).kind else { return };
                let bound = self.bind_arguments(info, &p.parameters, arguments, Passing::Closed, span);
                self.nested(span, |l| l.inline_parser(p, instance, args, &bound));
                self.copy_out(&bound, span);
            }
            _ => {}
        }
    }

    /// A further application: arguments that differ from the first ones go through the first ones' variables.
    fn apply_again(&mut self, c: &'a ControlDeclaration, instance: &Rc<Instance<'a>>, known: &State<'a>, bound: &[Bound<'a>], span: Span) {
        let InstanceKind::Control { args, state, .. } = &instance.kind else { return };
        let same = known.params.iter().all(|(n, b)| bound.iter().any(|x| x.name == *n && Self::same_binding(&x.binding, b)));
        if same {
            self.nested(span, |l| l.with_pending(bound, |l| l.run_control(c, instance, args, state, known.params.clone())));
            self.copy_out(bound, span);
            return;
        }
        // A control without tables and objects leaves nothing behind: it is made anew.
        let plain = |d: &Declaration| !matches!(d.kind, DeclarationKind::Table(_) | DeclarationKind::Instantiation(_));
        if c.locals.iter().all(plain) {
            let params: Vec<(Symbol, Binding<'a>)> = bound.iter().map(|b| (b.name.clone(), b.binding.clone())).collect();
            let fresh = RefCell::new(None);
            self.nested(span, |l| l.with_pending(bound, |l| l.run_control(c, instance, args, &fresh, params)));
            self.copy_out(bound, span);
            return;
        }
        // Swap: save what the first variables hold, copy the new arguments in, run, copy results out, restore.
        let mut saved: Vec<(super::storage::Storage, super::storage::Storage)> = Vec::new();
        let mut moved = Vec::new();
        for (name, first) in &known.params {
            let Some(now) = bound.iter().find(|b| b.name == *name) else { continue };
            if Self::same_binding(&now.binding, first) {
                continue;
            }
            let Binding::Storage(place) = first else {
                self.error(span, Rule::Bmv2, format!("`{}` is applied twice with different constants for `{name}`", instance.name));
                return;
            };
            let value = match &now.binding {
                Binding::Storage(s) => self.load(s),
                Binding::Value(v) => v.clone(),
                _ => continue,
            };
            let ty = Self::storage_type(place);
            let value = self.freeze(value, span);
            let backup = self.allocate("saved", &ty);
            let old = self.load(place);
            self.store(&backup, old, span);
            saved.push((place.clone(), backup));
            moved.push((place.clone(), value, now, name.clone()));
        }
        for (place, value, _, _) in &moved {
            self.store(place, value.clone(), span);
        }
        self.nested(span, |l| l.run_control(c, instance, args, state, known.params.clone()));
        // Results of `out` and `inout` parameters.
        let mut results = Vec::new();
        for (place, _, now, name) in &moved {
            let writable = c.parameters.iter().any(|p| p.name.name == *name && matches!(p.direction, Direction::Out | Direction::InOut));
            if let (true, Binding::Storage(target)) = (writable, &now.binding) {
                let v = self.load(place);
                let v = self.freeze(v, span);
                results.push((target.clone(), v));
            }
        }
        for (place, backup) in saved {
            let v = self.load(&backup);
            self.store(&place, v, span);
        }
        for (target, v) in results {
            self.store(&target, v, span);
        }
        self.copy_out(bound, span);
    }

    fn storage_type(s: &super::storage::Storage) -> Type {
        use super::storage::Storage::*;
        match s {
            Scalar(p) => p.ty.clone(),
            Header(_, t) | Struct(_, t) | Union(_, t) => t.clone(),
            _ => Type::Unknown,
        }
    }

    /// The statements of a control, its locals made on the first run.
    pub(super) fn run_control(
        &mut self,
        c: &'a ControlDeclaration,
        instance: &Rc<Instance<'a>>,
        args: &[(Symbol, Binding<'a>)],
        state: &RefCell<Option<State<'a>>>,
        params: Vec<(Symbol, Binding<'a>)>,
    ) {
        let scopes = std::mem::take(&mut self.scopes);
        let prefix = std::mem::replace(&mut self.prefix, instance.name.clone());
        let known = state.borrow().clone();
        let first = known.is_none();
        let scope: HashMap<Symbol, Binding<'a>> = match known {
            Some(s) => s.scope,
            None => args.iter().chain(&params).cloned().collect(),
        };
        self.scopes.push(scope);
        let position = std::mem::replace(&mut self.position, instance.position.clone());
        let in_action = std::mem::replace(&mut self.in_action, false);
        let substitution = std::mem::replace(&mut self.substitution, instance.types.clone());
        for (i, d) in c.locals.iter().enumerate() {
            // 0 is for actions of the top level: they come first.
            self.position.push(i + 1);
            self.control_local(d, first);
            self.position.pop();
        }
        // Instances made in passing (`C.apply()`) come after what is declared.
        self.position.push(c.locals.len() + 1);
        if first {
            let scope = self.scopes.last().cloned().unwrap_or_default();
            *state.borrow_mut() = Some(State { scope, params });
        }
        let label = self.new_label();
        self.returns.push(ReturnPoint { label, result: None, ty: Type::Void });
        let loops = std::mem::take(&mut self.loops);
        self.scope(label, |l| l.block(&c.apply));
        self.loops = loops;
        self.returns.pop();
        self.substitution = substitution;
        self.position = position;
        self.in_action = in_action;
        self.scopes = scopes;
        self.prefix = prefix;
    }

    /// A local declaration of a control: objects are made once, variables are initialised at each run.
    fn control_local(&mut self, d: &'a Declaration, first: bool) {
        match &d.kind {
            DeclarationKind::Variable(v) => {
                if first {
                    return self.local(d);
                }
                let path = Path { absolute: false, name: v.name.clone(), span: v.name.span };
                if let Some(Binding::Storage(s)) = self.lookup(&path).cloned() {
                    self.initialise(v, &s, d.span);
                }
            }
            DeclarationKind::Instantiation(i) if !first => {
                let path = Path { absolute: false, name: i.name.clone(), span: i.name.span };
                if let Some(Binding::Instance(instance)) = self.lookup(&path).cloned() {
                    self.clear_psa_extern(&instance, d.span);
                }
            }
            _ if !first => {}
            DeclarationKind::Action(a) => {
                let name = names::qualified(&self.prefix, &a.name.name, &d.annotations);
                let keep = self.scopes.len();
                self.describe_action(d, &name, self.position.clone());
                self.bind(&a.name.name, Binding::Action(d, keep, name));
            }
            DeclarationKind::Table(t) => {
                let table = self.make_table(t, d);
                self.bind(&t.name.name, Binding::Table(table));
            }
            _ => self.local(d),
        }
    }

    /// The table that an expression names.
    pub(super) fn table(&mut self, e: &'a ast::Expr) -> Option<Rc<super::TableBinding>> {
        let ast::ExprKind::Name(p) = &e.kind else { return None };
        match self.lookup(p) {
            Some(Binding::Table(t)) => Some(t.clone()),
            _ => None,
        }
    }

    /// Puts the statements that compute a table's keys before its application.
    pub(super) fn apply_table_prelude(&mut self, t: &super::TableBinding) {
        let prelude = self.program.tables[t.id.0].prelude.clone();
        for s in prelude {
            self.emit(s);
        }
    }
}
