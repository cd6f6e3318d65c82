//! Parser states, value sets, the deparser.

use num_bigint::BigInt;
use num_traits::One;
use serde_json::{json, Value};

use super::actions::statement_span;
use super::expr::{field, hex, wrap};
use super::Emitter;
use crate::ir::{Case, Deparser, Expr, HeaderRef, Match, Parser, State, Stmt, Target, Transition};
use crate::lower::fold::bits_of;
use crate::rule::Rule;
use crate::types::Type;

impl Emitter<'_> {
    pub(super) fn parser(&mut self, id: usize, p: &Parser) -> Value {
        let out: Vec<Value> = p.states.iter().enumerate().map(|(id, s)| self.state(p, id, s)).collect();
        json!({"name": p.name, "id": id, "init_state": "start", "parse_states": out})
    }

    fn state(&mut self, p: &Parser, id: usize, s: &State) -> Value {
        let ops: Vec<Value> = s.body.iter().filter_map(|s| self.operation(s)).collect();
        let mut keys: Vec<Value> = Vec::new();
        let transitions: Vec<Value> = match &s.next {
            Transition::Goto(t) => vec![transition(p, "default", Value::Null, Value::Null, *t)],
            Transition::Select(exprs, cases) => {
                let x = self.expressions();
                keys = exprs.iter().map(|k| field(&x, k)).collect();
                cases.iter().map(|c| case(p, c, exprs)).collect()
            }
        };
        json!({"name": s.name, "id": id, "parser_ops": ops, "transitions": transitions, "transition_key": keys})
    }

    fn operation(&mut self, s: &Stmt) -> Option<Value> {
        let x = self.expressions();
        Some(match s {
            // `set` writes to fields that are known when the program is loaded.
            Stmt::Assign(p, e, _) if !matches!(p.ty, Type::Varbit(_)) && !matches!(p.header, HeaderRef::Element(..)) => {
                json!({"parameters": [x.target(p), x.data(e)], "op": "set"})
            }
            Stmt::Extract(h, length, _) => {
                let header = match h {
                    HeaderRef::Next(s) => json!({"type": "stack", "value": x.stack_name(*s)}),
                    HeaderRef::UnionNext(s, member) => json!({"type": "union_stack", "value": [x.stack_name(*s), &**member]}),
                    h => json!({"type": "regular", "value": x.header_name(h)}),
                };
                match length {
                    None => json!({"parameters": [header], "op": "extract"}),
                    Some(n) => json!({"parameters": [header, {"type": "expression", "value": x.value(n)}], "op": "extract_VL"}),
                }
            }
            Stmt::Verify(c, error, _) => json!({"parameters": [x.value(c), wrap_none(x.value(error))], "op": "verify"}),
            Stmt::Advance(n, _) => json!({"parameters": [wrap(x.value(n))], "op": "advance"}),
            s => {
                if matches!(s, Stmt::Exit(_) | Stmt::Loop(..) | Stmt::If(..) | Stmt::Scope(..) | Stmt::Leave(..)) {
                    self.report.error(statement_span(s), Rule::Bmv2, "this statement is not supported in a parser");
                    return None;
                }
                let p = self.primitive(s)?;
                json!({"parameters": [p], "op": "primitive"})
            }
        })
    }

    pub(super) fn deparser(&mut self, id: usize, d: &Deparser) -> Value {
        let mut order: Vec<Value> = Vec::new();
        let mut others: Vec<Stmt> = Vec::new();
        self.deparser_body(d, &d.body, &mut order, &mut others);
        let primitives = self.primitives(&others);
        let mut v = json!({"name": d.name, "id": id});
        if let Some(o) = v.as_object_mut() {
            if let Some(s) = self.source(d.span) {
                o.insert("source_info".into(), s);
            }
            o.insert("order".into(), order.into());
            o.insert("primitives".into(), primitives.into());
        }
        v
    }

    /// Takes emissions and other statements apart: the target runs all others first.
    fn deparser_body(&mut self, d: &Deparser, body: &[Stmt], order: &mut Vec<Value>, others: &mut Vec<Stmt>) {
        for s in body {
            match s {
                Stmt::Emit(h, span) => match self.expressions().header_name(h) {
                    Some(name) => order.push(json!(name)),
                    None => self.report.error(*span, Rule::Bmv2, "only whole headers can be emitted"),
                },
                // Headers of the deparser itself start invalid.
                Stmt::SetValid(_, false, _) if !d.computes => {}
                Stmt::Primitive(op, ..) if matches!(op.as_str(), "log_msg" | "assert" | "assume") => others.push(s.clone()),
                Stmt::Scope(_, inner) if !d.computes => self.deparser_body(d, inner, order, others),
                s if !d.computes => self.report.error_help(
                    statement_span(s),
                    Rule::Bmv2,
                    "the deparser can only emit headers: the target evaluates nothing else there",
                    "do it in egress",
                ),
                s if emits(s) => self.report.error_help(
                    statement_span(s),
                    Rule::Bmv2,
                    "the target emits each header that is valid, under no other condition",
                    "make the header invalid where it is not to be emitted",
                ),
                s => {
                    let x = self.expressions();
                    let emitted = written(s).and_then(|h| x.header_name(h)).is_some_and(|name| order.contains(&json!(name)));
                    if emitted {
                        self.report.error(statement_span(s), Rule::Bmv2, "the header was emitted before: the target emits after all else");
                    }
                    others.push(s.clone());
                }
            }
        }
    }
}

/// Whether a header is emitted within.
fn emits(s: &Stmt) -> bool {
    match s {
        Stmt::Emit(..) => true,
        Stmt::If(_, a, b, _) => a.iter().chain(b).any(emits),
        Stmt::Scope(_, b) | Stmt::Loop(b, _) => b.iter().any(emits),
        _ => false,
    }
}

/// The header that a statement writes to.
fn written(s: &Stmt) -> Option<&HeaderRef> {
    match s {
        Stmt::Assign(p, ..) => Some(&p.header),
        Stmt::AssignHeader(h, ..) | Stmt::SetValid(h, ..) => Some(h),
        _ => None,
    }
}

fn transition(p: &Parser, kind: &str, value: Value, mask: Value, to: Target) -> Value {
    let next = match to {
        Target::State(s) => json!(p.states[s.0].name),
        // The target has no `reject` to go to: it stops parsing there, as p4c has it.
        Target::Accept | Target::Reject => Value::Null,
    };
    json!({"type": kind, "value": value, "mask": mask, "next_state": next})
}

fn case(p: &Parser, c: &Case, keys: &[Expr]) -> Value {
    match c {
        Case::ValueSet(name, to) => transition(p, "parse_vset", json!(name), Value::Null, *to),
        Case::Matches(matches, to) => {
            if matches.iter().all(|m| matches!(m, Match::Any)) {
                return transition(p, "default", Value::Null, Value::Null, *to);
            }
            // Value and mask: all keys one behind the other, each padded to whole bytes.
            let (mut value, mut mask, mut bits) = (BigInt::from(0), BigInt::from(0), 0);
            let exact = matches.iter().all(|m| matches!(m, Match::Exact(_)));
            for (m, k) in matches.iter().zip(keys) {
                let width = bits_of(&k.ty);
                let padded = width.div_ceil(8) * 8;
                let all = (BigInt::one() << width) - 1;
                let (v, w) = match m {
                    Match::Any => (BigInt::from(0), BigInt::from(0)),
                    Match::Exact(v) => (v.clone(), all),
                    Match::Mask(v, w) => (v.clone(), w.clone()),
                    Match::Range(v, _) => (v.clone(), all),
                };
                value = (value << padded) + v;
                mask = (mask << padded) + w;
                bits += padded;
            }
            let mask = if exact { Value::Null } else { json!(hex(&mask, bits)) };
            transition(p, "hexstr", json!(hex(&value, bits)), mask, *to)
        }
    }
}

/// `verify` takes its error as it is.
fn wrap_none(v: Value) -> Value {
    match v.get("type").and_then(Value::as_str) {
        Some("stack_field") => wrap(v),
        _ => v,
    }
}
