//! Whole parsers, controls and functions.

use std::collections::BTreeMap;

use fairlane_syntax::ast::*;
use fairlane_syntax::Code;

use super::state::State;
use super::storage::Place;
use super::{Binding, Flow};
use crate::types::DeclId;

impl<'a> Flow<'a> {
    /// Binds parameters: `out` ones come with nothing, all others written and valid.
    fn parameters(&mut self, params: &'a [Parameter]) {
        for p in params {
            let place = self.storage(&p.name, &p.ty);
            self.fresh(&place, p.direction != Direction::Out);
            self.bind(&p.name, Binding::Variable(place));
        }
    }

    /// `out` parameters that the end of `name` may find unwritten. Headers may be left invalid.
    pub(super) fn check_out(&mut self, params: &'a [Parameter], name: &Ident) {
        for p in params.iter().filter(|p| p.direction == Direction::Out) {
            let place = self.storage(&p.name, &p.ty);
            let mut leaves = Vec::new();
            place.leaves_outside_headers(&mut leaves);
            if leaves.iter().any(|l| self.now.is_unwritten(*l)) {
                let text = format!("out parameter `{}` may be uninitialized when `{}` ends", p.name.name, name.name);
                self.doubt(Code::UninitializedOutParam, p.span, text, "give it a value on every path to the end");
            }
        }
    }

    pub(super) fn function(&mut self, id: DeclId, f: &'a FunctionDeclaration) {
        let params = &f.prototype.parameters;
        self.parameters(params);
        self.scoped(|v| v.block(&f.body));
        self.end_body();
        self.check_out(params, &f.prototype.name);
        let ends: Vec<Place> = params.iter().map(|p| self.storage(&p.name, &p.ty)).collect();
        let summary = ends.iter().map(|place| place.headers().map(|h| self.now.validity(h)).collect()).collect();
        if !self.gave_up {
            self.summaries.insert(id, summary);
        }
    }

    /// All ways out of a body meet.
    pub(super) fn end_body(&mut self) {
        let returned = std::mem::replace(&mut self.returned, State::dead());
        self.now.join(&returned);
    }

    /// The implementations of an extern's abstract methods: nobody knows when they are called, so they run first.
    fn virtual_methods(&mut self, locals: &'a [Declaration]) {
        for d in locals {
            let DeclarationKind::Instantiation(i) = &d.kind else { continue };
            for inner in i.initializer.iter().flatten() {
                if let DeclarationKind::Function(f) = &inner.kind {
                    let before = self.now.clone();
                    self.implementation(f);
                    self.check_out(&f.prototype.parameters, &f.prototype.name);
                    self.now = before;
                }
            }
        }
    }

    /// The body of an abstract method's implementation.
    pub(super) fn implementation(&mut self, f: &'a FunctionDeclaration) {
        let returned = std::mem::replace(&mut self.returned, State::dead());
        self.scoped(|v| {
            v.parameters(&f.prototype.parameters);
            v.scoped(|v| v.block(&f.body));
        });
        self.end_body();
        self.returned = returned;
    }

    pub(super) fn control(&mut self, c: &'a ControlDeclaration) {
        self.parameters(&c.parameters);
        for p in &c.constructor_parameters {
            self.bind(&p.name, Binding::Other);
        }
        self.locals(&c.locals);
        self.virtual_methods(&c.locals);
        self.scoped(|v| v.block(&c.apply));
        self.end_body();
        let exited = std::mem::replace(&mut self.exited, State::dead());
        self.now.join(&exited);
        self.check_out(&c.parameters, &c.name);
    }

    fn locals(&mut self, locals: &'a [Declaration]) {
        locals.iter().for_each(|d| self.declaration(d));
    }

    pub(super) fn parser(&mut self, p: &'a ParserDeclaration) {
        self.parameters(&p.parameters);
        for c in &p.constructor_parameters {
            self.bind(&c.name, Binding::Other);
        }
        self.locals(&p.locals);
        self.virtual_methods(&p.locals);
        let position = |name: &str| p.states.iter().position(|s| &*s.name.name == name);
        let Some(start) = position("start") else { return };
        // What is known at the beginning of each state that has a way to it. The worklist is in the order of the source.
        let mut entries: BTreeMap<usize, State> = BTreeMap::from([(start, self.now.clone())]);
        let mut work = std::collections::BTreeSet::from([start]);
        self.silent += 1;
        while let Some(i) = work.pop_first() {
            if self.gave_up {
                break;
            }
            self.now = entries[&i].clone();
            self.state(&p.states[i]);
            for target in targets(&p.states[i]) {
                let Some(t) = position(target) else { continue };
                let mut entry = entries.get(&t).cloned().unwrap_or_else(State::dead);
                entry.join(&self.now);
                if entries.get(&t) != Some(&entry) {
                    entries.insert(t, entry);
                    work.insert(t);
                }
            }
        }
        self.silent -= 1;
        let mut end = State::dead();
        for (i, entry) in entries {
            self.now = entry;
            self.state(&p.states[i]);
            if targets(&p.states[i]).iter().any(|t| matches!(*t, "accept" | "reject")) {
                end.join(&self.now);
            }
        }
        self.now = end;
        self.check_out(&p.parameters, &p.name);
    }

    fn state(&mut self, s: &'a ParserState) {
        self.scoped(|v| {
            s.statements.iter().for_each(|st| v.statement(st));
            if let Some(Transition::Select(select)) = &s.transition
                && !v.now.dead
            {
                select.keys.iter().for_each(|k| v.read(k));
            }
        });
    }
}

/// Where a state leads.
fn targets(s: &ParserState) -> Vec<&str> {
    match &s.transition {
        None => vec!["reject"],
        Some(Transition::Direct(t)) => vec![&t.name],
        Some(Transition::Select(select)) => {
            let takes_all = |k: &Keyset| matches!(k.kind, KeysetKind::Default | KeysetKind::DontCare);
            let mut out: Vec<&str> = select.cases.iter().map(|c| &*c.target.name).collect();
            if !select.cases.iter().any(|c| takes_all(&c.keyset)) {
                out.push("reject");
            }
            out
        }
    }
}
