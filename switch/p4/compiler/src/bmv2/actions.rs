//! Actions and their primitives. Branches and loops become jumps.

use std::collections::HashMap;

use fairlane_syntax::ast::Span;
use num_bigint::BigInt;
use serde_json::{json, Value};

use super::expr::{field, hex, wrap};
use super::Emitter;
use crate::ir::{Action, Arg, Label, StackElements, Stmt};
use crate::rule::Rule;
use crate::types::Type;

/// A jump whose target is not known yet.
struct Jump {
    at: usize,
    to: Target,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Target {
    Label(Label),
    Point(usize),
    End,
}

struct Body {
    primitives: Vec<Value>,
    jumps: Vec<Jump>,
    places: HashMap<Target, usize>,
    points: usize,
}

impl Body {
    fn point(&mut self) -> Target {
        self.points += 1;
        Target::Point(self.points)
    }

    fn here(&mut self, t: Target) {
        self.places.insert(t, self.primitives.len());
    }

    fn jump(&mut self, op: &str, parameters: Vec<Value>, to: Target, source: Option<Value>) {
        self.jumps.push(Jump { at: self.primitives.len(), to });
        self.primitives.push(primitive(op, parameters, source));
    }
}

fn primitive(op: &str, parameters: Vec<Value>, source: Option<Value>) -> Value {
    let mut v = json!({"op": op, "parameters": parameters});
    if let (Some(o), Some(s)) = (v.as_object_mut(), source) {
        o.insert("source_info".into(), s);
    }
    v
}

impl Emitter<'_> {
    /// An action.
    pub(super) fn action(&mut self, id: usize, a: &Action) -> Value {
        let data: Vec<Value> = a.params.iter().map(|(n, bits)| json!({"name": n, "bitwidth": bits})).collect();
        let primitives = self.primitives(&a.body);
        json!({"name": a.name, "id": id, "runtime_data": data, "primitives": primitives})
    }

    /// Statements as primitives.
    pub(super) fn primitives(&mut self, stmts: &[Stmt]) -> Vec<Value> {
        let mut body = Body { primitives: Vec::new(), jumps: Vec::new(), places: HashMap::new(), points: 0 };
        self.statements(stmts, &mut body);
        body.here(Target::End);
        for j in &body.jumps {
            let to = body.places.get(&j.to).copied().unwrap_or(0);
            let offset = json!({"type": "hexstr", "value": hex(&BigInt::from(to), 0)});
            if let Some(p) = body.primitives[j.at].get_mut("parameters").and_then(Value::as_array_mut) {
                p.push(offset);
            }
        }
        body.primitives
    }

    fn statements(&mut self, stmts: &[Stmt], body: &mut Body) {
        for s in stmts {
            self.statement(s, body);
        }
    }

    fn statement(&mut self, s: &Stmt, body: &mut Body) {
        match s {
            Stmt::If(c, then, otherwise, span) => {
                let (no, end) = (body.point(), body.point());
                let condition = self.expressions().data(c);
                body.jump("_jump_if_zero", vec![condition], no, self.source(*span));
                self.statements(then, body);
                if !otherwise.is_empty() {
                    body.jump("_jump", Vec::new(), end, self.source(*span));
                }
                body.here(no);
                self.statements(otherwise, body);
                body.here(end);
            }
            Stmt::Scope(label, inner) => {
                self.statements(inner, body);
                body.here(Target::Label(*label));
            }
            Stmt::Leave(label, span) => body.jump("_jump", Vec::new(), Target::Label(*label), self.source(*span)),
            Stmt::Loop(inner, span) => {
                let head = body.point();
                body.here(head);
                self.statements(inner, body);
                body.jump("_jump", Vec::new(), head, self.source(*span));
            }
            Stmt::Exit(span) => {
                body.primitives.push(primitive("exit", Vec::new(), self.source(*span)));
                body.jump("_jump", Vec::new(), Target::End, self.source(*span));
            }
            s => {
                if let Some(p) = self.primitive(s) {
                    body.primitives.push(p);
                }
            }
        }
    }

    /// A statement without branches, as one primitive.
    pub(super) fn primitive(&mut self, s: &Stmt) -> Option<Value> {
        let x = self.expressions();
        let (op, parameters, span): (&str, Vec<Value>, Span) = match s {
            Stmt::Assign(p, e, span) => {
                let op = if matches!(p.ty, Type::Varbit(_)) { "assign_VL" } else { "assign" };
                (op, vec![x.target(p), x.data(e)], *span)
            }
            Stmt::AssignHeader(a, b, span) => ("assign_header", vec![wrap(x.header(a)), wrap(x.header(b))], *span),
            Stmt::AssignStack(a, b, span) => {
                let op = match self.program.stacks[a.0].elements {
                    StackElements::Headers(..) => "assign_header_stack",
                    StackElements::Unions(..) => "assign_union_stack",
                };
                (op, vec![x.stack(*a), x.stack(*b)], *span)
            }
            Stmt::AssignUnion(a, b, span) => {
                let union = |u: &crate::ir::UnionId| json!({"type": "header_union", "value": self.program.unions[u.0].name});
                ("assign_union", vec![union(a), union(b)], *span)
            }
            Stmt::SetValid(h, valid, span) => (if *valid { "add_header" } else { "remove_header" }, vec![wrap(x.header(h))], *span),
            Stmt::Shift(st, push, count, span) => {
                let count = json!({"type": "hexstr", "value": hex(&BigInt::from(*count), 0)});
                (if *push { "push" } else { "pop" }, vec![x.stack(*st), count], *span)
            }
            Stmt::Primitive(op, args, span) => {
                let args = args.iter().map(|a| self.argument(a)).collect();
                return Some(primitive(op, args, self.source(*span)));
            }
            other => {
                self.report.error(statement_span(other), Rule::Bmv2, "this statement is not supported here");
                return None;
            }
        };
        Some(primitive(op, parameters, self.source(span)))
    }

    fn argument(&self, a: &Arg) -> Value {
        let x = self.expressions();
        match a {
            Arg::Expr(e) => x.value(e),
            Arg::Condition(e) => x.data(e),
            Arg::Place(p) => x.place(p),
            Arg::Header(h) => x.header(h),
            Arg::Object(kind, name) => json!({"type": kind, "value": name}),
            Arg::Text(t) => json!({"type": "string", "value": &**t}),
            Arg::Vector(es) => {
                let values: Vec<Value> = es.iter().map(|e| x.data(e)).collect();
                json!({"type": "parameters_vector", "value": values})
            }
            Arg::Fields(es) => {
                let fields: Vec<Value> = es.iter().map(|e| field(&x, e)).collect();
                json!({"type": "field_list", "value": fields})
            }
        }
    }
}

/// Where a statement stands.
pub(super) fn statement_span(s: &Stmt) -> Span {
    match s {
        Stmt::Apply(_, s)
        | Stmt::ApplyHit(_, _, _, s)
        | Stmt::ApplySwitch(_, _, _, s)
        | Stmt::Extract(_, _, s)
        | Stmt::Verify(_, _, s)
        | Stmt::Advance(_, s)
        | Stmt::Emit(_, s)
        | Stmt::Assign(_, _, s)
        | Stmt::AssignHeader(_, _, s)
        | Stmt::AssignStack(_, _, s)
        | Stmt::AssignUnion(_, _, s)
        | Stmt::SetValid(_, _, s)
        | Stmt::Shift(_, _, _, s)
        | Stmt::Primitive(_, _, s)
        | Stmt::If(_, _, _, s)
        | Stmt::Leave(_, s)
        | Stmt::Loop(_, s)
        | Stmt::Exit(s) => *s,
        Stmt::Checksum(c) => c.span,
        Stmt::Scope(..) => Span::default(),
    }
}
