//! Division and modulo are for values known at compile time (spec 8.9); the target has neither.

use fairlane_syntax::ast::*;
use num_bigint::BigInt;
use num_traits::{One, Zero};

use super::scope::{Access, Context, Local};
use super::{Checked, Checker};
use crate::report::Report;
use crate::rule::Rule;

impl Checker<'_, '_> {
    /// Notes a division that nothing makes a constant or a shift: by a variable, or of one by what is no power of two. In functions the
    /// arguments decide. The operands have been checked.
    pub(crate) fn note_division(&mut self, op: BinaryOp, l: &Expr, r: &Expr, span: Span) {
        let Some(decl) = self.current_decl else { return };
        if !matches!(self.context, Context::Apply | Context::Action | Context::Parser) || self.eval_int(l).is_some_and(|v| v.is_zero()) {
            return;
        }
        let power_of_two = |v: &BigInt| !v.is_zero() && (v & (v - BigInt::one())).is_zero();
        let hopeless = match self.eval_int(r) {
            Some(v) => !power_of_two(&v) && self.is_variable(l),
            None => self.is_variable(r),
        };
        if hopeless {
            self.out.divisions.push((decl, span, op));
        }
    }

    /// Whether the value comes from a variable that can be written.
    fn is_variable(&self, e: &Expr) -> bool {
        match &e.kind {
            ExprKind::Name(p) => matches!(self.lookup_local(p), Some(Local::Var { access: Access::Variable, .. })),
            ExprKind::Member(x, _) | ExprKind::Index(x, _) | ExprKind::Slice(x, _, _) | ExprKind::Cast(_, x) | ExprKind::Unary(_, x) => {
                self.is_variable(x)
            }
            ExprKind::Binary(_, l, r) => self.is_variable(l) || self.is_variable(r),
            _ => false,
        }
    }
}

/// Tells of the divisions that `main` needs, in a program that is not lowered, for its `main` is no v1model switch: lowering sees more.
pub(crate) fn tell_divisions(checked: &Checked<'_>, report: &mut Report) {
    if checked.divisions.is_empty() {
        return;
    }
    let reached = crate::flow::reached::from_main(checked);
    for (_, span, op) in checked.divisions.iter().filter(|(decl, _, _)| reached.contains(decl)) {
        report.error_help(*span, Rule::Bmv2, no_division(*op), NO_DIVISION_HELP);
    }
}

/// What is said of a division that the target would have to compute.
pub(crate) fn no_division(op: BinaryOp) -> String {
    format!("`{}` is only possible with constants or a power of two on the right: the target does not divide", op.symbol())
}

/// The way out of such a division.
pub(crate) const NO_DIVISION_HELP: &str = "multiply by a reciprocal that the control plane sets, and shift";
