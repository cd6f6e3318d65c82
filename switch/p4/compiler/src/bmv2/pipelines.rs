//! Pipelines: the control flow between tables and conditions.

use std::collections::HashMap;

use num_bigint::BigInt;
use num_traits::One;
use serde_json::{json, Map, Value};

use super::expr::{field, hex};
use super::Emitter;
use crate::ir::{ActionId, Cells, ExprKind, Implementation, Label, Match, Pipeline, Stmt, Table, TableId};
use crate::lower::fold::bits_of;
use crate::rule::Rule;

/// The tables' size when the source gives none.
const DEFAULT_SIZE: u64 = 1024;

/// Where control goes: a table or condition by name, or the end.
type Node = Option<String>;

/// What follows a table.
#[derive(Debug, Clone, PartialEq)]
enum Next {
    /// The same, whatever happens.
    Always(Node),
    /// On hit, on miss.
    HitMiss(Node, Node),
    /// By action; else, and without `default` case.
    Actions(Vec<(ActionId, Node)>, Node),
}

#[derive(Default)]
struct Graph {
    next: HashMap<TableId, Next>,
    /// In the order of discovery, which is from the end.
    tables: Vec<TableId>,
    conditionals: Vec<Value>,
    labels: HashMap<Label, Node>,
}

impl Emitter<'_> {
    pub(super) fn pipeline(&mut self, id: usize, p: &Pipeline) -> Value {
        let mut graph = Graph::default();
        let init = self.flow(&p.body, None, &mut graph);
        graph.tables.sort();
        let tables: Vec<Value> = graph
            .tables
            .iter()
            .map(|t| {
                let next = graph.next.get(t).cloned().unwrap_or(Next::Always(None));
                self.table(*t, &next)
            })
            .collect();
        let profiles: Vec<Value> = self.profiles(&p.name);
        graph.conditionals.reverse();
        let mut v = json!({"name": p.name, "id": id});
        if let Some(o) = v.as_object_mut() {
            if let Some(s) = self.source(p.span) {
                o.insert("source_info".into(), s);
            }
            o.insert("init_table".into(), json!(init));
            o.insert("tables".into(), tables.into());
            o.insert("action_profiles".into(), profiles.into());
            o.insert("conditionals".into(), graph.conditionals.into());
        }
        v
    }

    /// The first node of some statements that go on to `next`.
    fn flow(&mut self, body: &[Stmt], next: Node, graph: &mut Graph) -> Node {
        let mut next = next;
        for s in body.iter().rev() {
            next = match s {
                Stmt::Apply(t, span) => self.apply(*t, Next::Always(next), *span, graph),
                Stmt::ApplyHit(t, yes, no, span) => {
                    let hit = self.flow(yes, next.clone(), graph);
                    let miss = self.flow(no, next, graph);
                    self.apply(*t, Next::HitMiss(hit, miss), *span, graph)
                }
                Stmt::ApplySwitch(t, cases, default, span) => {
                    let mut by_action = Vec::new();
                    for (actions, b) in cases {
                        let to = self.flow(b, next.clone(), graph);
                        by_action.extend(actions.iter().map(|a| (*a, to.clone())));
                    }
                    let other = match default {
                        Some(b) => self.flow(b, next, graph),
                        None => next,
                    };
                    self.apply(*t, Next::Actions(by_action, other), *span, graph)
                }
                Stmt::If(c, yes, no, span) => {
                    let t = self.flow(yes, next.clone(), graph);
                    let f = self.flow(no, next, graph);
                    let name = format!("node_{}", self.nodes);
                    let mut v = json!({"name": name, "id": self.nodes});
                    self.nodes += 1;
                    let expression = self.expressions().value(c);
                    if let Some(o) = v.as_object_mut() {
                        if let Some(s) = self.source(*span) {
                            o.insert("source_info".into(), s);
                        }
                        o.insert("expression".into(), expression);
                        o.insert("true_next".into(), json!(t));
                        o.insert("false_next".into(), json!(f));
                    }
                    graph.conditionals.push(v);
                    Some(name)
                }
                Stmt::Scope(label, inner) => {
                    graph.labels.insert(*label, next.clone());
                    self.flow(inner, next, graph)
                }
                Stmt::Leave(label, _) => graph.labels.get(label).cloned().flatten(),
                Stmt::Exit(_) => None,
                Stmt::Loop(..) => next,
                s => {
                    self.report.error(super::actions::statement_span(s), Rule::Bmv2, "this statement is not supported in a pipeline");
                    next
                }
            };
        }
        next
    }

    fn apply(&mut self, t: TableId, next: Next, span: fairlane_syntax::ast::Span, graph: &mut Graph) -> Node {
        let name = self.program.tables[t.0].name.clone();
        match graph.next.get(&t) {
            None => {
                graph.next.insert(t, next);
                graph.tables.push(t);
            }
            Some(known) if *known == next => {}
            Some(_) => self.report.error_help(
                span,
                Rule::Bmv2,
                format!("table `{name}` is applied more than once and goes on differently: the target knows one successor of a table"),
                "apply it once and keep what it found in a variable, or declare it twice",
            ),
        }
        Some(name)
    }

    fn table(&mut self, id: TableId, next: &Next) -> Value {
        let t = self.program.tables[id.0].clone();
        let mut o = Map::new();
        o.insert("name".into(), json!(t.name));
        o.insert("id".into(), json!(id.0));
        if let Some(s) = self.source(t.span) {
            o.insert("source_info".into(), s);
        }
        let keys: Vec<Value> = t
            .keys
            .iter()
            .map(|k| {
                let x = self.expressions();
                let target = match &k.expr.kind {
                    ExprKind::Place(p) => x.place(p)["value"].clone(),
                    ExprKind::Valid(h) => json!([x.header_name(h), "$valid$"]),
                    _ => Value::Null,
                };
                let kind = if &*k.match_kind == "optional" { "ternary" } else { &*k.match_kind };
                json!({"match_type": kind, "name": k.name, "target": target, "mask": Value::Null})
            })
            .collect();
        o.insert("key".into(), keys.into());
        o.insert("match_type".into(), json!(match_type(&t)));
        let simple = match &t.implementation {
            Implementation::Simple => {
                o.insert("type".into(), json!("simple"));
                true
            }
            Implementation::Profile(p) => {
                o.insert("type".into(), json!("indirect"));
                o.insert("action_profile".into(), json!(p));
                false
            }
            Implementation::Selector(p) => {
                o.insert("type".into(), json!("indirect_ws"));
                o.insert("action_profile".into(), json!(p));
                false
            }
        };
        let size = match (&t.entries, t.size) {
            (Some(e), size) if !e.is_empty() => size.unwrap_or(0).max(e.len() as u64),
            (_, Some(size)) if size > 0 => size,
            _ => DEFAULT_SIZE,
        };
        o.insert("max_size".into(), json!(size));
        o.insert("with_counters".into(), json!(t.with_counters));
        o.insert("support_timeout".into(), json!(t.support_timeout));
        o.insert("direct_meters".into(), json!(t.direct_meter));
        o.insert("action_ids".into(), json!(t.actions.iter().map(|a| a.0).collect::<Vec<_>>()));
        let name = |a: &ActionId| self.program.actions[a.0].name.clone();
        o.insert("actions".into(), json!(t.actions.iter().map(name).collect::<Vec<_>>()));
        let mut by_action = Map::new();
        let base = match next {
            Next::Always(n) => {
                for a in &t.actions {
                    by_action.insert(name(a), json!(n));
                }
                json!(n)
            }
            Next::HitMiss(hit, miss) => {
                by_action.insert("__HIT__".into(), json!(hit));
                by_action.insert("__MISS__".into(), json!(miss));
                Value::Null
            }
            Next::Actions(cases, other) => {
                for a in &t.actions {
                    let to = cases.iter().find(|(b, _)| b == a).map_or(other, |(_, n)| n);
                    by_action.insert(name(a), json!(to));
                }
                json!(other)
            }
        };
        o.insert("base_default_next".into(), base);
        o.insert("next_tables".into(), by_action.into());
        if let (Some((action, args, is_const)), true) = (&t.default, simple) {
            let data: Vec<Value> = args.iter().map(|v| json!(hex(v, 0))).collect();
            o.insert(
                "default_entry".into(),
                json!({"action_id": action.0, "action_const": is_const, "action_data": data, "action_entry_const": is_const}),
            );
        }
        if let Some(entries) = &t.entries {
            let entries: Vec<Value> = entries.iter().map(|e| self.entry(&t, e)).collect();
            o.insert("entries".into(), entries.into());
        }
        o.into()
    }

    fn entry(&self, t: &Table, e: &crate::ir::Entry) -> Value {
        let keys: Vec<Value> = e.matches.iter().zip(&t.keys).map(|(m, k)| entry_key(m, &k.match_kind, bits_of(&k.expr.ty))).collect();
        let args: Vec<Value> = e.args.iter().map(|v| json!(hex(v, 0))).collect();
        let mut o = Map::new();
        if let Some(s) = self.source(e.span) {
            o.insert("source_info".into(), s);
        }
        o.insert("match_key".into(), keys.into());
        o.insert("action_entry".into(), json!({"action_id": e.action.0, "action_data": args}));
        let priority = e.priority.as_ref().and_then(|p| i64::try_from(p.clone()).ok()).unwrap_or(1);
        o.insert("priority".into(), json!(priority));
        o.into()
    }

    fn profiles(&mut self, pipeline: &str) -> Vec<Value> {
        let mut out = Vec::new();
        for (i, (stage, p)) in self.program.profiles.iter().enumerate() {
            if stage != pipeline {
                continue;
            }
            let mut o = Map::new();
            o.insert("name".into(), json!(p.name));
            o.insert("id".into(), json!(i));
            if let Some(s) = self.source(p.span) {
                o.insert("source_info".into(), s);
            }
            o.insert("max_size".into(), number(&p.size));
            if let Some((algorithm, input)) = &p.selector {
                let x = self.expressions();
                let input: Vec<Value> = input.iter().flatten().map(|e| field(&x, e)).collect();
                o.insert("selector".into(), json!({"algo": &**algorithm, "input": input}));
            }
            out.push(o.into());
        }
        out
    }

    pub(super) fn counters(&self) -> Vec<Value> {
        let mut out = Vec::new();
        for c in &self.program.counters {
            let mut o = Map::new();
            o.insert("name".into(), json!(c.name));
            o.insert("id".into(), json!(out.len()));
            if let Some(s) = self.source(c.span) {
                o.insert("source_info".into(), s);
            }
            match &c.cells {
                Cells::Array(size) => {
                    o.insert("size".into(), number(size));
                    o.insert("is_direct".into(), json!(false));
                }
                Cells::Direct(Some(table)) => {
                    o.insert("is_direct".into(), json!(true));
                    o.insert("binding".into(), json!(table));
                }
                Cells::Direct(None) => continue,
            }
            out.push(o.into());
        }
        out
    }

    pub(super) fn meters(&self) -> Vec<Value> {
        let mut out = Vec::new();
        for m in &self.program.meters {
            let mut o = Map::new();
            o.insert("name".into(), json!(m.name));
            o.insert("id".into(), json!(out.len()));
            if let Some(s) = self.source(m.span) {
                o.insert("source_info".into(), s);
            }
            match &m.cells {
                Cells::Array(size) => {
                    o.insert("is_direct".into(), json!(false));
                    o.insert("size".into(), number(size));
                    o.insert("rate_count".into(), json!(2));
                    o.insert("type".into(), json!(&*m.unit));
                }
                Cells::Direct(Some(table)) => {
                    // Without a field to write to the colour is of no use, but the control plane may set rates.
                    let Some(target) = &m.target else { continue };
                    o.insert("is_direct".into(), json!(true));
                    o.insert("rate_count".into(), json!(2));
                    o.insert("type".into(), json!(&*m.unit));
                    o.insert("size".into(), json!(m.table_size));
                    o.insert("binding".into(), json!(table));
                    o.insert("result_target".into(), self.expressions().place(target)["value"].clone());
                }
                Cells::Direct(None) => continue,
            }
            out.push(o.into());
        }
        out
    }
}

/// An integer of the source as a JSON number.
pub(super) fn number(v: &BigInt) -> Value {
    u64::try_from(v.clone()).map_or_else(|_| json!(v.to_string()), |n| json!(n))
}

/// The match type of a table by those of its keys (JSON_format.md, tables).
fn match_type(t: &Table) -> &'static str {
    let has = |k: &str| t.keys.iter().any(|key| &*key.match_kind == k);
    if has("range") {
        "range"
    } else if has("ternary") || has("optional") {
        "ternary"
    } else if has("lpm") {
        "lpm"
    } else {
        "exact"
    }
}

fn entry_key(m: &Match, kind: &str, bits: u32) -> Value {
    let all: BigInt = (BigInt::one() << bits) - 1;
    let zero = BigInt::from(0);
    let hex = |v: &BigInt| hex(v, bits);
    match kind {
        "exact" => match m {
            Match::Exact(v) | Match::Mask(v, _) | Match::Range(v, _) => json!({"match_type": "exact", "key": hex(v)}),
            Match::Any => json!({"match_type": "exact", "key": hex(&zero)}),
        },
        "lpm" => {
            let (v, n) = match m {
                Match::Exact(v) | Match::Range(v, _) => (v.clone(), bits),
                Match::Mask(v, mask) => (v.clone(), crate::lower::prefix_length(mask, bits).unwrap_or(bits)),
                Match::Any => (zero, 0),
            };
            json!({"match_type": "lpm", "key": hex(&v), "prefix_length": n})
        }
        "range" => {
            let (a, b) = match m {
                Match::Range(a, b) => (a.clone(), b.clone()),
                Match::Exact(v) | Match::Mask(v, _) => (v.clone(), v.clone()),
                Match::Any => (zero, all),
            };
            json!({"match_type": "range", "start": hex(&a), "end": hex(&b)})
        }
        _ => {
            let (v, mask) = match m {
                Match::Exact(v) | Match::Range(v, _) => (v.clone(), all),
                Match::Mask(v, mask) => (v.clone(), mask.clone()),
                Match::Any => (zero.clone(), zero),
            };
            json!({"match_type": "ternary", "key": hex(&v), "mask": hex(&mask)})
        }
    }
}
