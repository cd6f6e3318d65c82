//! Calls: of actions and tables, which are run where they are called, and of all else, which is what its parameters say.

use fairlane_syntax::ast::*;

use super::state::{State, Validity};
use super::{Binding, Flow};
use crate::check::{CallInfo, CallTarget};

impl<'a> Flow<'a> {
    pub(super) fn call(&mut self, e: &'a Expr, callee: &'a Expr, arguments: &'a [Argument]) {
        let checked = self.checked;
        let Some(info) = checked.calls.get(&e.id) else {
            arguments.iter().for_each(|a| self.read(&a.value));
            return;
        };
        match (&info.target, &callee.kind) {
            (CallTarget::BuiltIn(name), ExprKind::Member(base, _)) => self.built_in(name, base),
            (CallTarget::BuiltIn(_) | CallTarget::Constructor(_), _) => {}
            (CallTarget::TableApply, ExprKind::Member(base, _)) => {
                if let Some(table) = self.table_named(base) {
                    self.table(table);
                }
            }
            (CallTarget::Action, ExprKind::Name(p)) => {
                let given: Vec<Option<&Argument>> = info.order.iter().map(|i| arguments.get((*i)?)).collect();
                match self.action_named(p) {
                    Some((action, local)) => self.action(action, local, &given),
                    None => given.iter().flatten().for_each(|a| self.read(&a.value)),
                }
            }
            (CallTarget::Method(..), ExprKind::Member(base, _)) => {
                self.pass(info, arguments, None);
                self.implementations_of(base);
            }
            (CallTarget::Function(id), _) => {
                let ends = self.summaries.get(id).cloned();
                self.pass(info, arguments, ends);
            }
            _ => self.pass(info, arguments, None),
        }
    }

    /// A call whose callee is known by the id of something that is no expression: `C.apply(..)` of a type.
    pub(super) fn call_by_signature(&mut self, id: NodeId, arguments: &'a [Argument]) {
        let checked = self.checked;
        if let Some(info) = checked.calls.get(&id) {
            self.pass(info, arguments, None);
        }
    }

    fn built_in(&mut self, name: &str, base: &'a Expr) {
        self.go_to(base, true);
        let places = self.places_of(base).0;
        match name {
            "isValid" => places.iter().flat_map(|p| p.headers()).for_each(|h| self.now.ask(h)),
            "setValid" => self.set_header(base, Validity::Yes),
            "setInvalid" => self.set_header(base, Validity::No),
            "push_front" | "pop_front" => {
                for p in places {
                    self.now.set_unwritten(p.leaves(), false);
                    self.set_headers(&p, Validity::Yes);
                }
            }
            _ => {}
        }
    }

    /// Reads the arguments and writes those of `out` and `inout` parameters. `ends` is the validity that the callee leaves in each.
    fn pass(&mut self, info: &CallInfo, arguments: &'a [Argument], ends: Option<Vec<Vec<Validity>>>) {
        let given =
            || info.signature.params.iter().zip(&info.order).enumerate().filter_map(|(i, (p, at))| Some((i, p, arguments.get((*at)?)?)));
        for (_, p, a) in given() {
            if p.direction != Direction::Out {
                self.read(&a.value);
            }
        }
        for (i, p, a) in given() {
            if !matches!(p.direction, Direction::Out | Direction::InOut) || matches!(a.value.kind, ExprKind::DontCare) {
                continue;
            }
            self.write_all(&a.value);
            let Some(end) = ends.as_ref().and_then(|e| e.get(i)) else { continue };
            if let ([place], true) = (self.places_of(&a.value).0.as_slice(), self.places_of(&a.value).1) {
                if place.shape.is_header() {
                    self.set_header(&a.value, end.first().copied().unwrap_or(Validity::Yes));
                } else if place.shape.headers as usize == end.len() {
                    place.headers().zip(end).for_each(|(h, v)| self.now.set_valid(h, *v));
                }
            }
        }
    }

    /// A method of an extern may call what implements its abstract methods.
    fn implementations_of(&mut self, base: &'a Expr) {
        let ExprKind::Name(p) = &base.kind else { return };
        let Some(Binding::Instance(i)) = self.lookup(p) else { return };
        for d in i.initializer.iter().flatten() {
            if let DeclarationKind::Function(f) = &d.kind {
                let before = self.now.clone();
                self.silently(|v| v.implementation(f));
                self.now.join(&before);
            }
        }
    }

    /// An action by its name, and whether it is one of the control's.
    fn action_named(&self, p: &Path) -> Option<(&'a ActionDeclaration, bool)> {
        match self.lookup(p) {
            Some(Binding::Action(a)) => return Some((a, true)),
            Some(_) => return None,
            None => {}
        }
        self.checked.globals.get(&p.name.name)?.iter().find_map(|id| match &self.checked.decls[id.0 as usize].kind {
            DeclarationKind::Action(a) => Some((a, false)),
            _ => None,
        })
    }

    fn table_named(&self, e: &Expr) -> Option<&'a TableDeclaration> {
        let ExprKind::Name(p) = &e.kind else { return None };
        match self.lookup(p) {
            Some(Binding::Table(t)) => Some(t),
            _ => None,
        }
    }

    /// The table of `t.apply()`.
    pub(super) fn table_of(&self, call: &Expr) -> Option<&'a TableDeclaration> {
        let ExprKind::Call { callee, .. } = &call.kind else { return None };
        let ExprKind::Member(base, _) = &callee.kind else { return None };
        self.table_named(base)
    }

    /// Runs an action. `given` holds the arguments of its first parameters; the others are the control plane's.
    fn action(&mut self, a: &'a ActionDeclaration, local: bool, given: &[Option<&'a Argument>]) {
        if self.now.dead || !self.spend() {
            return;
        }
        let given = |i: usize| given.get(i).copied().flatten().map(|a| &a.value).filter(|e| !matches!(e.kind, ExprKind::DontCare));
        for (i, p) in a.parameters.iter().enumerate() {
            if let (Some(e), true) = (given(i), p.direction != Direction::Out) {
                self.read(e);
            }
        }
        let mut bindings = Vec::new();
        for (i, p) in a.parameters.iter().enumerate() {
            let place = self.storage(&p.name, &p.ty);
            self.fresh(&place, p.direction != Direction::Out);
            if let (Some(e), true) = (given(i), p.direction != Direction::Out) {
                self.copy_validity(&place, e);
            }
            bindings.push((&p.name, place));
        }
        // The body sees the control's names, not those of the place of the call.
        let scopes = self.scopes.clone();
        self.scopes.truncate(if local { self.outer } else { 0 });
        self.scopes.push(bindings.iter().map(|(name, place)| (name.name.clone(), Binding::Variable(place.clone()))).collect());
        let returned = std::mem::replace(&mut self.returned, State::dead());
        let loops = std::mem::take(&mut self.loops);
        self.depth += 8;
        self.scoped(|v| v.block(&a.body));
        self.depth -= 8;
        self.end_body();
        self.loops = loops;
        self.returned = returned;
        self.check_out(&a.parameters, &a.name);
        self.scopes = scopes;
        for (i, p) in a.parameters.iter().enumerate() {
            let (Some(e), Direction::Out | Direction::InOut) = (given(i), p.direction) else { continue };
            self.go_to(e, true);
            self.written(e);
            let (from, (to, exact)) = (bindings[i].1.clone(), self.places_of(e));
            if from.shape.is_header() {
                let valid = self.now.validity(from.header);
                self.set_header(e, valid);
            } else if let ([to], true) = (to.as_slice(), exact) {
                let to = to.clone();
                self.copy_headers(&to, &from);
            }
        }
    }

    /// Runs a table: its keys, then any of its actions.
    fn table(&mut self, t: &'a TableDeclaration) {
        if self.now.dead || !self.spend() {
            return;
        }
        let before = self.now.clone();
        for p in &t.properties {
            if let TablePropertyKind::Key(keys) = &p.kind {
                keys.iter().for_each(|k| self.read(&k.expression));
            }
        }
        let base = std::mem::replace(&mut self.now, State::dead());
        let mut ran: Vec<(Symbol, State)> = Vec::new();
        for reference in actions(t) {
            let Some((action, local)) = self.action_named(&reference.name) else { continue };
            self.now = base.clone();
            let given: Vec<Option<&Argument>> = reference.arguments.iter().flatten().map(Some).collect();
            self.action(action, local, &given);
            ran.push((action.name.name.clone(), std::mem::replace(&mut self.now, State::dead())));
        }
        // Without a default action it is `NoAction`.
        if ran.is_empty() || !has_default(t) {
            ran.push(("NoAction".into(), base.clone()));
        }
        let ways: Vec<State> = ran.iter().map(|(_, way)| way.clone()).collect();
        self.meet(&before, &ways);
        // A table with an action that removes a header: which packets meet it, the control plane knows.
        self.now.trust(&base);
        self.ran = ran;
    }
}

/// The actions of a table.
pub(super) fn actions(t: &TableDeclaration) -> &[ActionReference] {
    t.properties
        .iter()
        .find_map(|p| if let TablePropertyKind::Actions(list) = &p.kind { Some(list.as_slice()) } else { None })
        .unwrap_or(&[])
}

/// Whether a table names its default action.
pub(super) fn has_default(t: &TableDeclaration) -> bool {
    t.properties.iter().any(|p| matches!(&p.kind, TablePropertyKind::Other(n, _) if &*n.name == "default_action"))
}
