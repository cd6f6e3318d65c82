//! Conditions, and what they say of headers.

use fairlane_syntax::ast::*;

use super::state::State;
use super::Flow;
use crate::check::CallTarget;

impl<'a> Flow<'a> {
    /// Evaluates a condition; what is known where it holds and where it fails.
    pub(super) fn condition(&mut self, e: &'a Expr) -> (State, State) {
        if !self.spend() {
            return (self.now.clone(), self.now.clone());
        }
        self.depth += 1;
        let result = self.ways(e);
        self.depth -= 1;
        result
    }

    fn ways(&mut self, e: &'a Expr) -> (State, State) {
        match &e.kind {
            ExprKind::Bool(true) => (self.now.clone(), State::dead()),
            ExprKind::Bool(false) => (State::dead(), self.now.clone()),
            ExprKind::Unary(UnaryOp::Not, inner) => {
                let (holds, fails) = self.condition(inner);
                (fails, holds)
            }
            ExprKind::Binary(op @ (BinaryOp::And | BinaryOp::Or), l, r) => {
                let (holds, fails) = self.condition(l);
                let (on, mut off) = if *op == BinaryOp::And { (holds, fails) } else { (fails, holds) };
                self.now = on;
                let (holds, fails) = if self.now.dead { (State::dead(), State::dead()) } else { self.condition(r) };
                let (on, other) = if *op == BinaryOp::And { (holds, fails) } else { (fails, holds) };
                off.join_quietly(&other);
                if *op == BinaryOp::And {
                    (on, off)
                } else {
                    (off, on)
                }
            }
            _ => {
                self.read(e);
                let (mut holds, mut fails) = (self.now.clone(), self.now.clone());
                if let Some(base) = self.asked(e) {
                    let (places, exact) = self.places_of(base);
                    if let ([place], true) = (places.as_slice(), exact) {
                        holds.tell(place.header, true);
                        // Of a union that is not valid no member is; one that is has any of them.
                        place.headers().for_each(|h| fails.tell(h, false));
                    }
                }
                (holds, fails)
            }
        }
    }

    /// The header of `header.isValid()`.
    fn asked(&self, e: &'a Expr) -> Option<&'a Expr> {
        let ExprKind::Call { callee, .. } = &e.kind else { return None };
        let ExprKind::Member(base, _) = &callee.kind else { return None };
        match &self.checked.calls.get(&e.id)?.target {
            CallTarget::BuiltIn(name) if &**name == "isValid" => Some(base),
            _ => None,
        }
    }
}
