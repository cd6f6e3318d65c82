//! Statements and local declarations.

use fairlane_syntax::ast::*;

use super::state::{State, Validity};
use super::{Binding, Flow};
use crate::types::Type;

impl<'a> Flow<'a> {
    pub(super) fn block(&mut self, b: &'a Block) {
        b.statements.iter().for_each(|s| self.statement(s));
    }

    pub(super) fn statement(&mut self, s: &'a Statement) {
        if self.now.dead || !self.spend() {
            return;
        }
        self.depth += 1;
        self.one(s);
        self.depth -= 1;
    }

    fn one(&mut self, s: &'a Statement) {
        match &s.kind {
            StatementKind::Empty => {}
            StatementKind::Declaration(d) => self.declaration(d),
            StatementKind::Assignment { target, op, value } => {
                if op.is_some() {
                    self.read(target);
                }
                self.assign(target, value);
            }
            StatementKind::Call(e) => self.read(e),
            StatementKind::DirectApplication { ty, arguments } => self.call_by_signature(ty.id, arguments),
            StatementKind::Block(b) => self.scoped(|v| v.block(b)),
            StatementKind::If { condition, then_branch, else_branch } => {
                let before = self.now.clone();
                let (holds, fails) = self.condition(condition);
                self.now = holds;
                self.scoped(|v| v.statement(then_branch));
                let then_end = std::mem::replace(&mut self.now, fails);
                if let Some(s) = else_branch {
                    self.scoped(|v| v.statement(s));
                }
                let else_end = std::mem::replace(&mut self.now, State::dead());
                self.meet(&before, &[then_end, else_end]);
            }
            StatementKind::Switch { subject, cases } => self.switch(subject, cases),
            StatementKind::For { init, condition, update, body } => self.scoped(|v| {
                init.iter().for_each(|s| v.statement(s));
                let before = v.now.clone();
                let round = |v: &mut Self| {
                    let (holds, fails) = v.condition(condition);
                    v.now = holds;
                    v.round(body);
                    update.iter().for_each(|s| v.statement(s));
                    fails
                };
                let end = v.repeat(round);
                v.meet(&before, &[end]);
            }),
            StatementKind::ForIn { variable, collection, body } => self.scoped(|v| {
                match collection {
                    ForCollection::Expression(e) => v.read(e),
                    ForCollection::Range(a, b) => {
                        v.read(a);
                        v.read(b);
                    }
                }
                let before = v.now.clone();
                let round = |v: &mut Self| {
                    let end = v.now.clone();
                    match variable {
                        ForVariable::Declared(t, name) => {
                            let place = v.storage(name, t);
                            v.fresh(&place, true);
                            v.bind(name, Binding::Variable(place));
                        }
                        ForVariable::Existing(e) => v.write_all(e),
                    }
                    v.round(body);
                    end
                };
                let end = v.repeat(round);
                v.meet(&before, &[end]);
            }),
            StatementKind::Return(value) => {
                if let Some(e) = value {
                    self.read(e);
                }
                let now = std::mem::replace(&mut self.now, State::dead());
                self.returned.join(&now);
            }
            StatementKind::Exit => {
                let now = std::mem::replace(&mut self.now, State::dead());
                self.exited.join(&now);
            }
            StatementKind::Break | StatementKind::Continue => {
                let now = std::mem::replace(&mut self.now, State::dead());
                if let Some((breaks, continues)) = self.loops.last_mut() {
                    if matches!(s.kind, StatementKind::Break) { breaks } else { continues }.join(&now);
                }
            }
        }
    }

    /// The ways of a branching meet. Where only one goes on, what it knows stays known.
    pub(super) fn meet(&mut self, before: &State, ways: &[State]) {
        let mut result = State::dead();
        ways.iter().for_each(|w| result.join(w));
        if ways.iter().filter(|w| !w.dead).count() > 1 {
            let ways: Vec<&State> = ways.iter().collect();
            result.leave(before, &ways);
        }
        self.now = result;
    }

    /// The body of a loop once; ends where `continue` ends, too.
    fn round(&mut self, body: &'a Statement) {
        self.scoped(|v| v.statement(body));
        if let Some((_, continues)) = self.loops.last_mut() {
            let continues = std::mem::replace(continues, State::dead());
            self.now.join(&continues);
        }
    }

    /// Repeats a round until it brings nothing new, then warns in a last one. `f` gives the state in which the loop ends;
    /// the result is that joined with what `break` brings.
    fn repeat(&mut self, f: impl Fn(&mut Self) -> State) -> State {
        self.loops.push((State::dead(), State::dead()));
        let mut start = self.now.clone();
        self.silent += 1;
        while self.spend() {
            self.now = start.clone();
            f(self);
            let mut next = start.clone();
            next.join(&self.now);
            if next == start {
                break;
            }
            start = next;
        }
        self.silent -= 1;
        self.now = start;
        let mut end = f(self);
        if let Some((breaks, _)) = self.loops.pop() {
            end.join(&breaks);
        }
        end
    }

    fn switch(&mut self, subject: &'a Expr, cases: &'a [SwitchCase]) {
        let before = self.now.clone();
        self.ran.clear();
        self.read(subject);
        let base = std::mem::replace(&mut self.now, State::dead());
        let by_action =
            matches!(self.type_of(subject), Some(Type::ActionRun(_))).then(|| std::mem::take(&mut self.ran)).unwrap_or_default();
        let named = |label: &Expr, action: &Symbol| matches!(&label.kind, ExprKind::Name(p) if p.name.name == *action);
        // What is known where an action has run that the labels name, or that no case names.
        let after = |labels: &[&Expr], others: bool| {
            let mut taken = State::dead();
            let chosen = |name: &Symbol| labels.iter().any(|l| named(l, name)) || others && !cases.iter().any(|c| named(&c.label, name));
            let mut some = false;
            for (_, way) in by_action.iter().filter(|(name, _)| chosen(name)) {
                taken.join(way);
                some = true;
            }
            let mut state = base.clone();
            if some {
                state.took(&taken);
            }
            state
        };
        let mut ways = Vec::new();
        let (mut labels, mut others): (Vec<&Expr>, bool) = (Vec::new(), false);
        for c in cases {
            labels.push(&c.label);
            others |= matches!(c.label.kind, ExprKind::Default | ExprKind::DontCare);
            let Some(body) = &c.body else { continue };
            self.now = after(&labels, others);
            self.scoped(|v| v.block(body));
            ways.push(std::mem::replace(&mut self.now, State::dead()));
            (labels, others) = (Vec::new(), false);
        }
        if !self.takes_all(subject, cases) {
            ways.push(after(&[], true));
        }
        self.meet(&before, &ways);
    }

    /// Whether one of the cases always runs.
    fn takes_all(&self, subject: &Expr, cases: &[SwitchCase]) -> bool {
        if cases.iter().any(|c| matches!(c.label.kind, ExprKind::Default | ExprKind::DontCare)) {
            return true;
        }
        if !matches!(self.type_of(subject), Some(Type::ActionRun(_))) {
            return false;
        }
        let ExprKind::Member(call, _) = &subject.kind else { return false };
        self.table_of(call).is_some_and(|t| super::calls::actions(t).len() == cases.len() && super::calls::has_default(t))
    }

    pub(super) fn declaration(&mut self, d: &'a Declaration) {
        match &d.kind {
            DeclarationKind::Variable(v) => {
                let place = self.storage(&v.name, &v.ty);
                match &v.initializer {
                    Some(e) => {
                        self.read(e);
                        // A value that copies the variable of the round before cannot be: its name is not yet known.
                        self.now.set_unwritten(place.leaves(), false);
                        self.copy_validity(&place, e);
                    }
                    None => {
                        self.now.set_unwritten(place.leaves(), true);
                        self.set_headers(&place, Validity::No);
                    }
                }
                self.bind(&v.name, Binding::Variable(place));
            }
            DeclarationKind::Action(a) => self.bind(&a.name, Binding::Action(a)),
            DeclarationKind::Table(t) => self.bind(&t.name, Binding::Table(t)),
            DeclarationKind::Instantiation(i) => self.bind(&i.name, Binding::Instance(i)),
            DeclarationKind::Constant(c) => self.bind(&c.name, Binding::Other),
            DeclarationKind::ValueSet(s) => self.bind(&s.name, Binding::Other),
            _ => {}
        }
    }
}
