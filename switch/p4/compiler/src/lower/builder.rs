//! Where lowered statements go: a tree of blocks, or the states of a parser.

use std::collections::HashMap;

use fairlane_syntax::ast::Span;

use super::{fold, Lower, MAX_STATEMENTS};
use crate::ir::{Case, Expr, ExprKind, Label, Match, State, StateId, Stmt, Target, Transition};
use crate::rule::Rule;
use crate::types::Type;

/// The statements in the making.
#[derive(Debug, Default)]
pub struct Builder {
    frames: Vec<Vec<Stmt>>,
    /// The states when a parser is in work.
    pub parser: Option<ParserBuilder>,
    next_label: u32,
}

/// The states of a parser in the making.
#[derive(Debug)]
pub struct ParserBuilder {
    /// The states; unfinished ones go to `reject`.
    pub states: Vec<State>,
    /// The state that statements are added to.
    pub current: StateId,
    /// Where a `select` goes that no case of it matches, once there is one.
    pub no_match: Option<StateId>,
    labels: HashMap<Label, StateId>,
}

impl ParserBuilder {
    /// A parser with its first state.
    pub fn new(start: String) -> Self {
        let mut p = ParserBuilder { states: Vec::new(), current: StateId(0), no_match: None, labels: HashMap::new() };
        p.add(start);
        p
    }

    /// Adds a state.
    pub fn add(&mut self, name: String) -> StateId {
        self.states.push(State { name, body: Vec::new(), next: Transition::Goto(Target::Reject) });
        StateId(self.states.len() - 1)
    }

    /// Ends the current state.
    pub fn finish(&mut self, next: Transition) {
        self.states[self.current.0].next = next;
    }
}

impl Lower<'_, '_> {
    pub(super) fn emit(&mut self, s: Stmt) {
        self.statements += 1;
        if self.statements > MAX_STATEMENTS {
            if !self.overflow_told {
                self.overflow_told = true;
                self.error(Span::default(), Rule::Bmv2, format!("the program has more than {MAX_STATEMENTS} statements after inlining"));
            }
            return;
        }
        if let Some(frame) = self.builder.frames.last_mut() {
            frame.push(s);
        } else if let Some(p) = &mut self.builder.parser {
            p.states[p.current.0].body.push(s);
        }
    }

    /// The statements that `f` makes, apart from the others.
    pub(super) fn collect(&mut self, f: impl FnOnce(&mut Self)) -> Vec<Stmt> {
        self.builder.frames.push(Vec::new());
        f(self);
        self.builder.frames.pop().unwrap_or_default()
    }

    fn in_parser(&self) -> bool {
        self.builder.frames.is_empty() && self.builder.parser.is_some()
    }

    fn new_state(&mut self, base: &str) -> StateId {
        let name = self.state_names.name(base);
        match &mut self.builder.parser {
            Some(p) => p.add(name),
            None => StateId(0),
        }
    }

    fn goto(&mut self, target: StateId) {
        if let Some(p) = &mut self.builder.parser {
            p.finish(Transition::Goto(Target::State(target)));
        }
    }

    fn enter(&mut self, state: StateId) {
        if let Some(p) = &mut self.builder.parser {
            p.current = state;
        }
    }

    pub(super) fn if_else(&mut self, condition: Expr, span: Span, then: impl FnOnce(&mut Self), otherwise: impl FnOnce(&mut Self)) {
        if let ExprKind::Bool(b) = condition.kind {
            if b {
                then(self);
            } else {
                otherwise(self);
            }
            return;
        }
        if self.in_parser() {
            let flag = fold::mux(condition, Expr::constant(1, Type::bit(1)), Expr::constant(0, Type::bit(1)));
            let key = self.temporary_of(&Type::bit(1), flag, "condition", span);
            let (yes, no, join) = (self.new_state("then"), self.new_state("else"), self.new_state("join"));
            let cases =
                vec![Case::Matches(vec![Match::Exact(1.into())], Target::State(yes)), Case::Matches(vec![Match::Any], Target::State(no))];
            if let Some(p) = &mut self.builder.parser {
                p.finish(Transition::Select(vec![key], cases));
            }
            self.enter(yes);
            then(self);
            self.goto(join);
            self.enter(no);
            otherwise(self);
            self.goto(join);
            self.enter(join);
            return;
        }
        let yes = self.collect(then);
        let no = self.collect(otherwise);
        if yes.is_empty() && no.is_empty() {
            return;
        }
        if yes.is_empty() {
            let negated = fold::unary(fairlane_syntax::ast::UnaryOp::Not, condition);
            self.emit(Stmt::If(negated, no, Vec::new(), span));
        } else {
            self.emit(Stmt::If(condition, yes, no, span));
        }
    }

    pub(super) fn new_label(&mut self) -> Label {
        self.builder.next_label += 1;
        Label(self.builder.next_label)
    }

    /// Runs `f`; [`Self::leave`] of the label goes behind what it makes.
    pub(super) fn scope(&mut self, label: Label, f: impl FnOnce(&mut Self)) {
        if self.in_parser() {
            let end = self.new_state("end");
            if let Some(p) = &mut self.builder.parser {
                p.labels.insert(label, end);
            }
            f(self);
            self.goto(end);
            self.enter(end);
            return;
        }
        let mut body = self.collect(f);
        // A jump to where control goes anyway is no jump.
        while let Some(Stmt::Leave(l, _)) = body.last() {
            if *l != label {
                break;
            }
            body.pop();
        }
        strip_tail(&mut body, label);
        if body.iter().any(|s| leaves(s, label)) {
            self.emit(Stmt::Scope(label, body));
        } else {
            body.into_iter().for_each(|s| {
                self.statements = self.statements.saturating_sub(1);
                self.emit(s);
            });
        }
    }

    pub(super) fn leave(&mut self, label: Label, span: Span) {
        if self.in_parser() {
            let target = self.builder.parser.as_ref().and_then(|p| p.labels.get(&label).copied());
            if let Some(t) = target {
                self.goto(t);
            }
            let dead = self.new_state("unreachable");
            self.enter(dead);
            return;
        }
        self.emit(Stmt::Leave(label, span));
    }

    /// Repeats what `f` makes until it is left.
    pub(super) fn repeat(&mut self, span: Span, f: impl FnOnce(&mut Self)) {
        if self.in_parser() {
            let head = self.new_state("loop");
            self.goto(head);
            self.enter(head);
            f(self);
            self.goto(head);
            let dead = self.new_state("unreachable");
            self.enter(dead);
            return;
        }
        let body = self.collect(f);
        self.emit(Stmt::Loop(body, span));
    }
}

/// Takes jumps out of tail positions: there control goes to the end of the scope anyway.
fn strip_tail(body: &mut Vec<Stmt>, label: Label) {
    if let Some(Stmt::Leave(l, _)) = body.last()
        && *l == label
    {
        body.pop();
        return strip_tail(body, label);
    }
    match body.last_mut() {
        Some(Stmt::If(_, a, b, _) | Stmt::ApplyHit(_, a, b, _)) => {
            strip_tail(a, label);
            strip_tail(b, label);
        }
        Some(Stmt::ApplySwitch(_, cases, default, _)) => {
            cases.iter_mut().for_each(|(_, b)| strip_tail(b, label));
            if let Some(b) = default {
                strip_tail(b, label);
            }
        }
        Some(Stmt::Scope(_, b)) => strip_tail(b, label),
        _ => {}
    }
}

/// Whether a statement leaves the scope of that label.
pub fn leaves(s: &Stmt, label: Label) -> bool {
    match s {
        Stmt::Leave(l, _) => *l == label,
        Stmt::If(_, a, b, _) | Stmt::ApplyHit(_, a, b, _) => a.iter().chain(b).any(|s| leaves(s, label)),
        Stmt::ApplySwitch(_, cases, default, _) => {
            cases.iter().flat_map(|(_, b)| b).chain(default.iter().flatten()).any(|s| leaves(s, label))
        }
        Stmt::Scope(_, b) | Stmt::Loop(b, _) => b.iter().any(|s| leaves(s, label)),
        _ => false,
    }
}
