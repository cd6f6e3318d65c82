//! Makes branches of a deparser that only assign into conditional values: the target runs a deparser's primitives one by one, so
//! that `psa_switch` cannot jump there.
//!
//! ```text
//! if (psa_normal(istd)) {            taken = !istd.drop && !istd.resubmit;
//!     normal_meta.count = 1;      => normal_meta.count = taken ? 1 : normal_meta.count;
//! }
//! ```
//!
//! Other branches stay; our switch jumps.

use fairlane_syntax::ast::{BinaryOp, Span, UnaryOp};

use crate::ir::{Expr, HeaderRef, Place, Program, Stmt};
use crate::lower::fold;
use crate::types::Type;

/// Runs the pass on the deparsers that compute.
pub fn run(program: &mut Program) {
    for i in 0..program.deparsers.len() {
        if program.deparsers[i].computes {
            let body = std::mem::take(&mut program.deparsers[i].body);
            program.deparsers[i].body = block(program, body);
        }
    }
}

fn block(program: &mut Program, body: Vec<Stmt>) -> Vec<Stmt> {
    let mut out = Vec::new();
    for s in body {
        if matches!(s, Stmt::If(..)) && assigns(&s) {
            predicate(program, s, None, &mut out);
        } else {
            out.push(s);
        }
    }
    out
}

/// Whether a statement does no more than assign to fields that are known.
fn assigns(s: &Stmt) -> bool {
    match s {
        Stmt::Assign(p, ..) => matches!(p.header, HeaderRef::Instance(_)) && !matches!(p.ty, Type::Varbit(_)),
        Stmt::If(_, yes, no, _) => yes.iter().chain(no).all(assigns),
        _ => false,
    }
}

fn predicate(program: &mut Program, s: Stmt, under: Option<&Expr>, out: &mut Vec<Stmt>) {
    match (s, under) {
        (Stmt::Assign(p, e, span), Some(taken)) => {
            let kept = Expr::place(p.clone());
            out.push(Stmt::Assign(p, fold::mux(taken.clone(), e, kept), span));
        }
        (Stmt::If(c, yes, no, span), under) => {
            let both = |c: Expr| match under {
                Some(taken) => fold::binary(BinaryOp::And, taken.clone(), c),
                None => c,
            };
            // Both conditions are fixed before either branch changes what they depend on.
            let taken = keep(program, both(c.clone()), span, out);
            let other = (!no.is_empty()).then(|| keep(program, both(fold::unary(UnaryOp::Not, c)), span, out));
            yes.into_iter().for_each(|s| predicate(program, s, Some(&taken), out));
            if let Some(other) = other {
                no.into_iter().for_each(|s| predicate(program, s, Some(&other), out));
            }
        }
        (s, _) => out.push(s),
    }
}

/// Puts a condition into a variable of its own.
fn keep(program: &mut Program, condition: Expr, span: Span, out: &mut Vec<Stmt>) -> Expr {
    let Some(scalars) = program.scalars else { return condition };
    let fields = &mut program.header_types[program.headers[scalars.0].ty.0].fields;
    let index = fields.len();
    let place = Place { header: HeaderRef::Instance(scalars), field: format!("$taken{index}").into(), index, ty: Type::Bool };
    fields.push((place.field.clone(), Type::Bool));
    out.push(Stmt::Assign(place.clone(), condition, span));
    Expr::place(place)
}
