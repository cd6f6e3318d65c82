//! BMv2 JSON (behavioral-model, docs/JSON_format.md), laid out as p4c does.

mod actions;
mod expr;
#[cfg(test)]
mod expr_tests;
mod parsers;
mod pipelines;

use fairlane_syntax::ast::Span;
use fairlane_syntax::SourceMap;
use serde_json::{json, Map, Value};

use crate::ir::{Attribute, Checksum, ExprKind, Extern, FieldList, HeaderType, Program, StackElements, Stmt};
use crate::lower::fold::bits_of;
use crate::report::Report;
use crate::rule::Rule;
use crate::types::Type;
use expr::{field, hex, Expressions};
use pipelines::number;

/// The version of the format that is written.
const VERSION: [u32; 2] = [2, 23];
/// Enums of v1model that the target knows by other means.
const OWN_ENUMS: [&str; 4] = ["CounterType", "MeterType", "HashAlgorithm", "CloneType"];

pub(crate) struct Emitter<'p> {
    program: &'p Program,
    sources: &'p SourceMap,
    report: &'p mut Report,
    nodes: usize,
}

/// The JSON of a program; what the target cannot do goes to `report`.
pub(crate) fn emit(program: &Program, name: &str, sources: &SourceMap, report: &mut Report) -> Value {
    let mut e = Emitter { program, sources, report, nodes: 2 };
    e.document(name)
}

impl Emitter<'_> {
    fn expressions(&self) -> Expressions<'_> {
        Expressions { program: self.program }
    }

    /// Where something stands in the source, for the target's logs.
    fn source(&self, span: Span) -> Option<Value> {
        if span == Span::default() {
            return None;
        }
        let at = self.sources.location(span);
        let text = self.sources.text(span);
        let fragment: String = text.lines().next().unwrap_or("").chars().take(60).collect();
        let fragment = if fragment.len() < text.len() { format!("{fragment}...") } else { fragment };
        Some(json!({"filename": at.file.to_string(), "line": at.line, "column": at.column, "source_fragment": fragment}))
    }

    fn document(&mut self, name: &str) -> Value {
        let p = self.program;
        let mut o = Map::new();
        o.insert("header_types".into(), p.header_types.iter().enumerate().map(|(i, t)| header_type(i, t)).collect());
        let headers = p.headers.iter().enumerate().map(|(i, h)| {
            let t = &p.header_types[h.ty.0];
            json!({"name": h.name, "id": i, "header_type": t.name, "metadata": t.metadata, "pi_omit": true})
        });
        o.insert("headers".into(), headers.collect());
        let (mut stacks, mut union_stacks) = (Vec::new(), Vec::new());
        for s in &p.stacks {
            match &s.elements {
                StackElements::Headers(t, ids) => stacks.push(json!({
                    "name": s.name, "id": stacks.len(), "header_type": p.header_types[t.0].name, "size": ids.len(),
                    "header_ids": ids.iter().map(|h| h.0).collect::<Vec<_>>(),
                })),
                StackElements::Unions(t, ids) => union_stacks.push(json!({
                    "name": s.name, "id": union_stacks.len(), "union_type": p.union_types[t.0].name, "size": ids.len(),
                    "header_union_ids": ids.iter().map(|u| u.0).collect::<Vec<_>>(),
                })),
            }
        }
        o.insert("header_stacks".into(), stacks.into());
        let union_types = p.union_types.iter().enumerate().map(|(i, u)| {
            let members: Vec<Value> = u.members.iter().map(|(n, t)| json!([&**n, p.header_types[t.0].name])).collect();
            json!({"name": u.name, "id": i, "headers": members})
        });
        o.insert("header_union_types".into(), union_types.collect());
        let unions = p.unions.iter().enumerate().map(|(i, u)| {
            let ids: Vec<usize> = u.members.iter().map(|(_, h)| h.0).collect();
            json!({"name": u.name, "id": i, "union_type": p.union_types[u.ty.0].name, "header_ids": ids, "pi_omit": true})
        });
        o.insert("header_unions".into(), unions.collect());
        o.insert("header_union_stacks".into(), union_stacks.into());
        o.insert("field_lists".into(), p.field_lists.iter().map(|l| self.field_list(l)).collect());
        o.insert("errors".into(), p.errors.iter().enumerate().map(|(i, n)| json!([&**n, i])).collect());
        let enums = p.enums.iter().filter(|(n, _)| !OWN_ENUMS.contains(&&**n)).map(|(n, members)| {
            let entries: Vec<Value> = members.iter().enumerate().map(|(i, m)| json!([&**m, i])).collect();
            json!({"name": &**n, "entries": entries})
        });
        o.insert("enums".into(), enums.collect());
        o.insert("parsers".into(), p.parsers.iter().enumerate().map(|(i, x)| self.parser(i, x)).collect());
        let sets = p
            .value_sets
            .iter()
            .enumerate()
            .map(|(i, v)| json!({"name": v.name, "id": i, "compressed_bitwidth": v.bits, "max_size": number(&v.size)}));
        o.insert("parse_vsets".into(), sets.collect());
        o.insert("deparsers".into(), p.deparsers.iter().enumerate().map(|(i, x)| self.deparser(i, x)).collect());
        o.insert("meter_arrays".into(), self.meters().into());
        o.insert("counter_arrays".into(), self.counters().into());
        let registers = p.registers.iter().enumerate().map(|(i, r)| {
            let mut v = Map::new();
            v.insert("name".into(), json!(r.name));
            v.insert("id".into(), json!(i));
            if let Some(s) = self.source(r.span) {
                v.insert("source_info".into(), s);
            }
            v.insert("size".into(), number(&r.size));
            v.insert("bitwidth".into(), json!(r.bits));
            Value::from(v)
        });
        o.insert("register_arrays".into(), registers.collect());
        let mut calculations: Vec<Value> = p
            .calculations
            .iter()
            .enumerate()
            .map(|(i, c)| self.calculation(&c.name, i, &c.algorithm, &c.input, c.payload, c.span))
            .collect();
        let checksums = self.checksums(&mut calculations);
        o.insert("calculations".into(), calculations.into());
        o.insert("learn_lists".into(), p.learn_lists.iter().map(|l| self.field_list(l)).collect());
        let actions: Vec<Value> = p.actions.iter().enumerate().map(|(i, a)| self.action(i, a)).collect();
        o.insert("actions".into(), actions.into());
        let ingress = self.pipeline(0, &p.ingress);
        let egress = self.pipeline(1, &p.egress);
        o.insert("pipelines".into(), json!([ingress, egress]));
        o.insert("checksums".into(), checksums.into());
        o.insert("force_arith".into(), json!([]));
        o.insert("extern_instances".into(), p.externs.iter().enumerate().map(|(i, x)| self.extern_object(i, x)).collect());
        let aliases = p.aliases.iter().map(|(target, instance, field)| json!([&**target, [instance, &**field]]));
        o.insert("field_aliases".into(), aliases.collect());
        o.insert("program".into(), json!(name));
        o.insert("__meta__".into(), json!({"version": VERSION, "compiler": "fairlane-compile"}));
        o.into()
    }

    fn extern_object(&self, id: usize, x: &Extern) -> Value {
        let mut v = Map::new();
        v.insert("name".into(), json!(x.name));
        v.insert("id".into(), json!(id));
        v.insert("type".into(), json!(x.ty));
        if let Some(s) = self.source(x.span) {
            v.insert("source_info".into(), s);
        }
        let attributes = x.attributes.iter().map(|(name, a)| match a {
            Attribute::Number(n) => json!({"name": name, "type": "hexstr", "value": hex(n, 32)}),
            Attribute::Text(t) => json!({"name": name, "type": "string", "value": &**t}),
        });
        v.insert("attribute_values".into(), attributes.collect());
        v.into()
    }

    /// A list of fields, Booleans as they are stored.
    fn field_list(&self, l: &FieldList) -> Value {
        let x = self.expressions();
        let elements: Vec<Value> = l.elements.iter().map(|e| field(&x, e)).collect();
        let mut v = Map::new();
        v.insert("id".into(), json!(l.id));
        v.insert("name".into(), json!(l.name));
        if let Some(s) = self.source(l.span) {
            v.insert("source_info".into(), s);
        }
        v.insert("elements".into(), elements.into());
        v.into()
    }

    fn calculation(&self, name: &str, id: usize, algorithm: &str, input: &[crate::ir::Expr], payload: bool, span: Span) -> Value {
        let x = self.expressions();
        let mut fields: Vec<Value> = input
            .iter()
            .map(|e| match &e.kind {
                ExprKind::Place(p) => x.place(p),
                ExprKind::Const(_) => {
                    let mut v = x.value(e);
                    v["bitwidth"] = json!(bits_of(&e.ty));
                    v
                }
                _ => x.value(e),
            })
            .collect();
        if payload {
            fields.push(json!({"type": "payload", "value": Value::Null}));
        }
        let mut v = Map::new();
        v.insert("name".into(), json!(name));
        v.insert("id".into(), json!(id));
        if let Some(s) = self.source(span) {
            v.insert("source_info".into(), s);
        }
        v.insert("algo".into(), json!(algorithm));
        v.insert("input".into(), fields.into());
        v.into()
    }

    /// The checksums of both controls: update first, as p4c has them.
    fn checksums(&mut self, calculations: &mut Vec<Value>) -> Vec<Value> {
        let p = self.program;
        let mut out = Vec::new();
        for body in [&p.update, &p.verify] {
            let mut found = Vec::new();
            self.find_checksums(body, &crate::ir::Expr::boolean(true), &mut found);
            for c in found {
                let calculation = format!("checksum_calc_{}", out.len());
                calculations.push(self.calculation(&calculation, calculations.len(), &c.algorithm, &c.input, c.payload, c.span));
                let x = self.expressions();
                let mut v = Map::new();
                v.insert("name".into(), json!(format!("cksum_{}", out.len())));
                v.insert("id".into(), json!(out.len()));
                if let Some(s) = self.source(c.span) {
                    v.insert("source_info".into(), s);
                }
                v.insert("target".into(), x.place(&c.target)["value"].clone());
                v.insert("type".into(), json!("generic"));
                v.insert("calculation".into(), json!(calculation));
                v.insert("verify".into(), json!(c.verify));
                v.insert("update".into(), json!(!c.verify));
                v.insert("if_cond".into(), x.value(&c.condition));
                out.push(v.into());
            }
        }
        out
    }

    /// Checksums with the conditions that stand around them.
    fn find_checksums(&mut self, body: &[Stmt], condition: &crate::ir::Expr, out: &mut Vec<Checksum>) {
        use crate::lower::fold;
        use fairlane_syntax::ast::{BinaryOp, UnaryOp};
        for s in body {
            match s {
                Stmt::Checksum(c) => {
                    let mut c = (**c).clone();
                    c.condition = fold::binary(BinaryOp::And, condition.clone(), c.condition);
                    out.push(c);
                }
                Stmt::Scope(_, inner) => self.find_checksums(inner, condition, out),
                Stmt::If(c, yes, no, _) => {
                    let both = fold::binary(BinaryOp::And, condition.clone(), c.clone());
                    self.find_checksums(yes, &both, out);
                    let neither = fold::binary(BinaryOp::And, condition.clone(), fold::unary(UnaryOp::Not, c.clone()));
                    self.find_checksums(no, &neither, out);
                }
                s => {
                    self.report.error(actions::statement_span(s), Rule::Bmv2, "the checksum controls can only verify and update checksums");
                }
            }
        }
    }
}

fn header_type(id: usize, t: &HeaderType) -> Value {
    let mut bits = 0u32;
    let mut varbit = false;
    let mut fields: Vec<Value> = Vec::new();
    for (n, ty) in &t.fields {
        bits = bits.saturating_add(bits_of(ty));
        if let Type::Varbit(_) = ty {
            varbit = true;
            fields.push(json!([&**n, "*"]));
        } else {
            fields.push(json!([&**n, bits_of(ty), matches!(ty, Type::Bits { signed: true, .. })]));
        }
    }
    if t.metadata && !bits.is_multiple_of(8) && !varbit {
        fields.push(json!(["_padding", 8 - bits % 8, false]));
    }
    let mut v = json!({"name": t.name, "id": id, "fields": fields});
    if varbit {
        v["max_length"] = json!(bits.div_ceil(8));
    }
    v
}
