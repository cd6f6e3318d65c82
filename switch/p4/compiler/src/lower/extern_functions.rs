//! Extern functions of core.p4 and v1model.p4, to the target's primitives.

use fairlane_syntax::ast::{self, *};
use fairlane_syntax::Code;

use super::storage::Storage;
use super::values::Val;
use super::{Lower, Stage};
use crate::check::CallInfo;
use crate::control_plane as cp;
use crate::ir::{self, Arg, Expr, ExprKind, HeaderRef, Stmt};
use crate::rule::Rule;
use crate::types::Type;

impl<'a> Lower<'a, '_> {
    pub(super) fn extern_function(&mut self, e: &'a ast::Expr, info: &CallInfo, arguments: &'a [Argument]) -> Val {
        let name = info.signature.name.clone();
        let map: Vec<(u32, Type)> = info.type_args.iter().map(|(p, t)| (*p, t.substitute(&self.substitution))).collect();
        let types: Vec<Type> = info.signature.params.iter().map(|p| p.ty.substitute(&map)).collect();
        let arg = |i: usize| info.order.get(i).copied().flatten().and_then(|a| arguments.get(a)).map(|a| &a.value);
        let span = e.span;
        if self.stage != Stage::Parser && &*name != "static_assert" && !name.starts_with("psa_") {
            self.control_plane.calls_extern_functions = true;
        }
        match &*name {
            "mark_to_drop" => {
                if let Some(fields) = arg(0).and_then(|a| self.copied_metadata(a)) {
                    self.mark_copy_to_drop(&fields, span);
                    return Val::Struct(Vec::new(), Type::Void);
                }
                let std = self.program.headers.iter().position(|h| h.name == "standard_metadata").unwrap_or(0);
                let h = HeaderRef::Instance(ir::HeaderId(std));
                self.emit(Stmt::Primitive("mark_to_drop".into(), vec![Arg::Header(h)], span));
            }
            "verify" => {
                let (Some(c), Some(err)) = (arg(0), arg(1)) else { return Val::Broken };
                let (c, err) = (self.scalar_value(c), self.scalar_value(err));
                if c.kind != ExprKind::Bool(true) {
                    self.emit(Stmt::Verify(c, err, span));
                }
            }
            "psa_clone_i2e" | "psa_resubmit" | "psa_normal" | "psa_clone_e2e" | "psa_recirculate" => {
                return arg(0).map_or(Val::Broken, |first| self.psa_question(&name, first, arg(1)));
            }
            "static_assert" => return Val::Scalar(Expr::boolean(true)),
            "random" => {
                let (Some(dest), Some(low), Some(high)) = (arg(0), arg(1), arg(2)) else { return Val::Broken };
                let low = self.simple_argument(low, types.get(1));
                let high = self.simple_argument(high, types.get(2));
                self.with_out(dest, types.first(), span, |l, place| {
                    l.emit(Stmt::Primitive(
                        "modify_field_rng_uniform".into(),
                        vec![Arg::Place(place), Arg::Expr(low), Arg::Expr(high)],
                        span,
                    ));
                });
            }
            "hash" => {
                let (Some(dest), Some(algorithm), Some(base), Some(data), Some(max)) = (arg(0), arg(1), arg(2), arg(3), arg(4)) else {
                    return Val::Broken;
                };
                let algorithm = self.algorithm(algorithm);
                let base = self.simple_argument(base, types.get(2));
                let input = self.calculation_input(data, types.get(3));
                let max = self.simple_argument(max, types.get(4));
                let calculation = self.unique.name("calc");
                self.program.calculations.push(ir::Calculation { name: calculation.clone(), algorithm, input, payload: false, span });
                self.with_out(dest, types.first(), span, |l, place| {
                    let args = vec![Arg::Place(place), Arg::Expr(base), Arg::Object("calculation", calculation), Arg::Expr(max)];
                    l.emit(Stmt::Primitive("modify_field_with_hash_based_offset".into(), args, span));
                });
            }
            "digest" => self.digest(arg(0), arg(1), types.get(1), span),
            "clone" | "clone3" | "clone_preserving_field_list" => self.clone_packet(&name, [arg(0), arg(1), arg(2)], &types, span),
            "resubmit" | "resubmit_preserving_field_list" | "recirculate" | "recirculate_preserving_field_list" => {
                self.pass_again(&name, arg(0), types.first(), span);
            }
            "truncate" => {
                let Some(length) = arg(0) else { return Val::Broken };
                let length = self.simple_argument(length, types.first());
                self.emit(Stmt::Primitive("truncate".into(), vec![Arg::Expr(length)], span));
            }
            "assert" | "assume" => {
                let Some(c) = arg(0) else { return Val::Broken };
                let c = self.scalar_value(c);
                self.emit(Stmt::Primitive(name.to_string(), vec![Arg::Condition(c)], span));
            }
            "log_msg" => {
                let Some(Val::Text(text)) = arg(0).map(|e| self.value(e)) else {
                    self.error(span, Rule::V1model, "the first argument of `log_msg` must be a string");
                    return Val::Broken;
                };
                let mut values = Vec::new();
                if let Some(data) = arg(1) {
                    let v = self.value(data);
                    let v = self.settle_value(v, span);
                    self.scalars_of(&v, &mut values);
                }
                self.emit(Stmt::Primitive("log_msg".into(), vec![Arg::Text(text), Arg::Vector(values)], span));
            }
            "verify_checksum" | "verify_checksum_with_payload" | "update_checksum" | "update_checksum_with_payload" => {
                self.checksum(&name, [arg(0), arg(1), arg(2), arg(3)], &types, span);
            }
            other => self.error(span, Rule::V1model, format!("extern function `{other}` is not one of the architecture's")),
        }
        Val::Broken
    }

    /// A copy of the packet, with the fields that it keeps.
    fn clone_packet(&mut self, name: &str, [kind, session, list]: [Option<&'a ast::Expr>; 3], types: &[Type], span: Span) {
        let (Some(kind), Some(session)) = (kind, session) else { return };
        let v = self.value(kind);
        let ingress = match self.enum_name(&v).as_deref() {
            Some("I2E") => true,
            Some("E2E") => false,
            _ => {
                self.error(kind.span, Rule::V1model, "the kind of clone must be `CloneType.I2E` or `CloneType.E2E`");
                return;
            }
        };
        let stage = if ingress { Stage::Ingress } else { Stage::Egress };
        if self.stage != stage {
            let (what, block) = if ingress { ("I2E", "ingress") } else { ("E2E", "egress") };
            self.error(span, Rule::V1model, format!("`{name}({what}, ...)` can only be called in {block}"));
        }
        let session = self.simple_argument(session, types.get(1));
        let list = match name {
            "clone_preserving_field_list" => self.field_list(list, span),
            "clone3" => self.data_list(list, types.get(2), span),
            _ => {
                let n = self.unique.name("fl");
                Some(self.new_field_list(n, Vec::new(), span))
            }
        };
        let Some(list) = list else { return };
        let op = if ingress { "clone_ingress_pkt_to_egress" } else { "clone_egress_pkt_to_egress" };
        self.emit(Stmt::Primitive(op.into(), vec![Arg::Expr(session), list_id(list)], span));
    }

    /// The packet goes through the pipeline again, with the fields that it keeps.
    fn pass_again(&mut self, name: &str, list: Option<&'a ast::Expr>, ty: Option<&Type>, span: Span) {
        let resubmit = name.starts_with("resubmit");
        let stage = if resubmit { Stage::Ingress } else { Stage::Egress };
        if self.stage != stage {
            let block = if resubmit { "ingress" } else { "egress" };
            self.error(span, Rule::V1model, format!("`{name}` can only be called in {block}"));
        }
        let list = if name.ends_with("list") { self.field_list(list, span) } else { self.data_list(list, ty, span) };
        let Some(list) = list else { return };
        let op = if resubmit { "resubmit" } else { "recirculate" };
        self.emit(Stmt::Primitive(op.into(), vec![list_id(list)], span));
    }

    pub(super) fn algorithm(&mut self, e: &'a ast::Expr) -> Symbol {
        let v = self.value(e);
        match self.enum_name(&v) {
            Some(n) => n,
            None => {
                self.error(e.span, Rule::V1model, "the hash algorithm must be known at compile time");
                "crc32".into()
            }
        }
    }

    /// What a hash or checksum runs over: fields and constants, in order.
    pub(super) fn calculation_input(&mut self, e: &'a ast::Expr, t: Option<&Type>) -> Vec<Expr> {
        let v = self.value(e);
        let v = match t {
            Some(t) => self.convert(v, t),
            None => v,
        };
        let mut scalars = Vec::new();
        self.scalars_of(&v, &mut scalars);
        let mut out = Vec::new();
        for s in scalars {
            if s.ty == Type::Int {
                self.error(e.span, Rule::V1model, "a literal in a hash or checksum needs a width");
                continue;
            }
            let direct = match &s.kind {
                ExprKind::Const(_) => true,
                ExprKind::Place(p) => matches!(p.header, HeaderRef::Instance(_)),
                _ => false,
            };
            let s = if direct {
                s
            } else {
                let ty = s.ty.clone();
                self.temporary_of(&ty, s, "tmp", e.span)
            };
            out.push(s);
        }
        out
    }

    /// A digest reads its fields at the end of the pipeline, so that they are copied now.
    fn digest(&mut self, receiver: Option<&'a ast::Expr>, data: Option<&'a ast::Expr>, t: Option<&Type>, span: Span) {
        let (Some(receiver), Some(data)) = (receiver, data) else { return };
        let receiver = self.simple_argument(receiver, Some(&Type::bit(32)));
        let ty = t.cloned().unwrap_or(Type::Unknown);
        let (name, annotations) = match &ty {
            Type::Struct(n) => (self.type_name(n), self.decl(n.decl).annotations.clone()),
            // One for each call, numbered as p4c does.
            _ => {
                let name = (0..).map(|n| format!("digest_{n}")).find(|n| !self.control_plane.digests.iter().any(|d| d.name == *n));
                (name.unwrap_or_default(), Vec::new())
            }
        };
        self.send_digest(receiver, data, ty, (name, annotations), span);
    }

    /// A digest to the control plane, under a name and with annotations.
    pub(super) fn send_digest(
        &mut self,
        receiver: Expr,
        data: &'a ast::Expr,
        ty: Type,
        (name, annotations): (String, Vec<Annotation>),
        span: Span,
    ) {
        let v = self.value(data);
        let v = self.convert(v, &ty);
        let v = self.freeze(v, span);
        let mut elements = Vec::new();
        self.scalars_of(&v, &mut elements);
        let mut fields = Vec::new();
        for e in elements {
            if e.is_const() || matches!(e.kind, ExprKind::Param(_)) {
                let ty = if e.ty == Type::Int { Type::bit(32) } else { e.ty.clone() };
                fields.push(self.temporary_of(&ty, e, "digest", span));
            } else {
                fields.push(e);
            }
        }
        let id = self.program.learn_lists.len() as u32 + 1;
        self.program.learn_lists.push(ir::FieldList { id, name: name.clone(), elements: fields, span });
        if !self.control_plane.digests.iter().any(|d| d.name == name) {
            let ty = self.data_type(&ty);
            self.control_plane.digests.push(cp::Digest { name, annotations, ty });
        }
        self.emit(Stmt::Primitive("generate_digest".into(), vec![Arg::Expr(receiver), list_id(id)], span));
    }

    /// The list of the metadata fields annotated `@field_list(n)`.
    fn field_list(&mut self, e: Option<&'a ast::Expr>, span: Span) -> Option<u32> {
        let index = e.and_then(|e| self.constant_int(e)).and_then(|v| u32::try_from(v).ok());
        let Some(index) = index else {
            self.error(span, Rule::V1model, "the number of the field list must be known at compile time");
            return None;
        };
        if let Some(id) = self.field_list_ids.get(&index) {
            return Some(*id);
        }
        self.report.warning(Code::Missing, span, format!("no field of the user metadata is annotated `@field_list({index})`"));
        let name = self.unique.name("empty");
        let id = self.new_field_list(name, Vec::new(), span);
        self.field_list_ids.insert(index, id);
        Some(id)
    }

    /// The list of fields given as data, in the deprecated forms.
    fn data_list(&mut self, e: Option<&'a ast::Expr>, t: Option<&Type>, span: Span) -> Option<u32> {
        let e = e?;
        let v = self.value(e);
        let v = match t {
            Some(t) => self.convert(v, t),
            None => v,
        };
        let mut elements = Vec::new();
        self.scalars_of(&v, &mut elements);
        if elements.iter().any(|x| !matches!(x.kind, ExprKind::Place(_))) {
            self.error(e.span, Rule::Bmv2, "only fields can be kept");
            return None;
        }
        let name = self.unique.name("fl");
        Some(self.new_field_list(name, elements, span))
    }
}

impl<'a> Lower<'a, '_> {
    /// The fields of an argument that is a copy of the standard metadata; `None` when it is the standard metadata itself.
    fn copied_metadata(&mut self, e: &'a ast::Expr) -> Option<Vec<(Symbol, Storage)>> {
        let Storage::Struct(fields, _) = self.place(e)? else { return None };
        let real = self.program.headers.iter().position(|h| h.name == "standard_metadata")?;
        let (_, spec) = fields.iter().find(|(name, _)| &**name == "egress_spec")?;
        match spec {
            Storage::Scalar(p) if p.header == HeaderRef::Instance(ir::HeaderId(real)) => None,
            _ => Some(fields),
        }
    }

    /// What the primitive does to the standard metadata (v1model: egress_spec is the drop port, no multicast), to a copy.
    fn mark_copy_to_drop(&mut self, fields: &[(Symbol, Storage)], span: Span) {
        for (name, value) in [("egress_spec", DROP_PORT), ("mcast_grp", 0)] {
            let Some((_, storage)) = fields.iter().find(|(field, _)| &**field == name) else { continue };
            let Storage::Scalar(place) = storage else { continue };
            let constant = Expr::constant(value, place.ty.clone());
            self.store(storage, Val::Scalar(constant), span);
        }
    }
}

/// `egress_spec` that means drop, unless the switch is told another (`--drop-port`).
const DROP_PORT: u32 = 511;

fn list_id(id: u32) -> Arg {
    Arg::Expr(Expr::constant(id, Type::bit(32)))
}
