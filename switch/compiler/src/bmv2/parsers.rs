//! Parser states, value sets, the deparser.

use num_bigint::BigInt;
use num_traits::One;
use serde_json::{json, Value};

use super::actions::statement_span;
use super::expr::{hex, wrap};
use super::Emitter;
use crate::ir::{Case, Expr, ExprKind, HeaderRef, Match, State, Stmt, Target, Transition};
use crate::lower::fold::bits_of;
use crate::report::BMV2;
use crate::types::Type;

impl Emitter<'_> {
    pub(super) fn parser(&mut self) -> Value {
        let states = self.program.parser.states.clone();
        let out: Vec<Value> = states.iter().enumerate().map(|(id, s)| self.state(id, s)).collect();
        json!({"name": "parser", "id": 0, "init_state": "start", "parse_states": out})
    }

    fn state(&mut self, id: usize, s: &State) -> Value {
        let ops: Vec<Value> = s.body.iter().filter_map(|s| self.operation(s)).collect();
        let mut keys: Vec<Value> = Vec::new();
        let transitions: Vec<Value> = match &s.next {
            Transition::Goto(t) => vec![self.transition("default", Value::Null, Value::Null, *t)],
            Transition::Select(exprs, cases) => {
                let x = self.expressions();
                keys = exprs
                    .iter()
                    .map(|k| match &k.kind {
                        ExprKind::Place(p) => x.place(p),
                        _ => x.value(k),
                    })
                    .collect();
                cases.iter().map(|c| self.case(c, exprs)).collect()
            }
        };
        json!({"name": s.name, "id": id, "parser_ops": ops, "transitions": transitions, "transition_key": keys})
    }

    fn transition(&self, kind: &str, value: Value, mask: Value, to: Target) -> Value {
        let next = match to {
            Target::State(s) => json!(self.program.parser.states[s.0].name),
            // The target has no `reject` to go to: it stops parsing there, as p4c has it.
            Target::Accept | Target::Reject => Value::Null,
        };
        json!({"type": kind, "value": value, "mask": mask, "next_state": next})
    }

    fn case(&self, c: &Case, keys: &[Expr]) -> Value {
        match c {
            Case::ValueSet(name, to) => self.transition("parse_vset", json!(name), Value::Null, *to),
            Case::Matches(matches, to) => {
                if matches.iter().all(|m| matches!(m, Match::Any)) {
                    return self.transition("default", Value::Null, Value::Null, *to);
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
                self.transition("hexstr", json!(hex(&value, bits)), mask, *to)
            }
        }
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
                    self.report.error(statement_span(s), BMV2, "this statement is not supported in a parser");
                    return None;
                }
                let p = self.primitive(s)?;
                json!({"parameters": [p], "op": "primitive"})
            }
        })
    }

    pub(super) fn deparser(&mut self) -> Value {
        let (body, span) = self.program.deparser.clone();
        let mut order: Vec<Value> = Vec::new();
        let mut primitives: Vec<Value> = Vec::new();
        self.deparser_body(&body, &mut order, &mut primitives);
        let mut v = json!({"name": "deparser", "id": 0});
        if let Some(o) = v.as_object_mut() {
            if let Some(s) = self.source(span) {
                o.insert("source_info".into(), s);
            }
            o.insert("order".into(), order.into());
            o.insert("primitives".into(), primitives.into());
        }
        v
    }

    fn deparser_body(&mut self, body: &[Stmt], order: &mut Vec<Value>, primitives: &mut Vec<Value>) {
        for s in body {
            match s {
                Stmt::Emit(h, span) => match self.expressions().header_name(h) {
                    Some(name) => order.push(json!(name)),
                    None => self.report.error(*span, BMV2, "only whole headers can be emitted"),
                },
                Stmt::Scope(_, inner) => self.deparser_body(inner, order, primitives),
                // Headers of the deparser itself start invalid.
                Stmt::SetValid(_, false, _) => {}
                Stmt::Primitive(op, ..) if matches!(op.as_str(), "log_msg" | "assert" | "assume") => {
                    primitives.extend(self.primitive(s));
                }
                s => self.report.error_help(
                    statement_span(s),
                    BMV2,
                    "the deparser can only emit headers: the target evaluates nothing else there",
                    "do it in egress",
                ),
            }
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
