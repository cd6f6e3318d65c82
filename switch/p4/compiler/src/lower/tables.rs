//! Tables and their actions (spec 14.2).

use std::rc::Rc;

use fairlane_syntax::ast::{self, *};
use num_bigint::BigInt;
use num_traits::ToPrimitive;

use super::arguments::Passing;
use super::instances::InstanceKind;
use super::matches::{entry_match, normalise, prefix_length};
use super::values::Val;
use super::{describe, fold, names, Binding, Lower, TableBinding};
use crate::check::{CallInfo, CallTarget, Signature};
use crate::control_plane as cp;
use crate::ir::{self, ActionId, Expr, ExprKind, HeaderRef, Implementation, Match, TableId};
use crate::rule::Rule;
use crate::types::Type;

/// An action as a table lists it.
pub(super) struct Listed<'a> {
    pub reference: Option<&'a ActionReference>,
    pub name: Symbol,
    pub id: ActionId,
    pub declaration: &'a ActionDeclaration,
    pub full_name: String,
}

impl<'a> Lower<'a, '_> {
    /// Makes a table of the control in work.
    pub(super) fn make_table(&mut self, t: &'a TableDeclaration, d: &'a Declaration) -> Rc<TableBinding> {
        let name = names::qualified(&self.prefix, &t.name.name, &d.annotations);
        // No table is made within the making of one.
        let id = TableId(self.program.tables.len());
        let mut table = ir::Table {
            name: name.clone(),
            keys: Vec::new(),
            prelude: Vec::new(),
            actions: Vec::new(),
            default: None,
            size: None,
            entries: None,
            implementation: Implementation::Simple,
            with_counters: false,
            direct_meter: None,
            support_timeout: false,
            span: d.span,
        };
        let mut shown = describe::table(&name, &d.annotations);
        let mut selector: Vec<Expr> = Vec::new();
        let mut key_types: Vec<(Type, Symbol)> = Vec::new();
        let mut listed: Vec<Listed<'a>> = Vec::new();
        for p in &t.properties {
            match &p.kind {
                TablePropertyKind::Key(keys) => self.keys(keys, &mut table, &mut shown, &mut selector, &mut key_types),
                TablePropertyKind::Actions(list) => {
                    for a in list {
                        if let Some(l) = self.listed_action(a, (id, listed.len())) {
                            listed.push(l);
                        }
                    }
                }
                _ => {}
            }
        }
        let default = t.properties.iter().find_map(|p| match &p.kind {
            TablePropertyKind::Other(n, e) if &*n.name == "default_action" => Some((e, p.is_const)),
            _ => None,
        });
        let mut hidden_default = false;
        if default.is_none() && !listed.iter().any(|l| &*l.name == "NoAction") {
            // A table without default action does nothing on a miss (spec 14.2.1).
            if let Some(l) = self.no_action((id, listed.len())) {
                hidden_default = true;
                listed.push(l);
            }
        }
        for (i, l) in listed.iter().enumerate() {
            if listed[..i].iter().any(|k| k.full_name == l.full_name) {
                let span = l.reference.map_or(d.span, |r| r.span);
                let text = format!("two actions of table `{name}` have the control-plane name `{}`", l.full_name);
                self.report.error_help(span, Rule::ControlPlaneNames, text, "give them different `@name`s");
            }
        }
        table.actions = listed.iter().map(|l| l.id).collect();
        self.default_action(default, &listed, &mut table, &mut shown);
        for (i, l) in listed.iter().enumerate() {
            let annotations = l.reference.map(|r| r.annotations.clone()).unwrap_or_default();
            shown.actions.push(cp::TableAction {
                action: l.full_name.clone(),
                table_only: names::has_annotation(&annotations, "tableonly"),
                default_only: names::has_annotation(&annotations, "defaultonly") || hidden_default && i + 1 == listed.len(),
                annotations,
            });
        }
        for p in &t.properties {
            match &p.kind {
                TablePropertyKind::Entries(entries) => {
                    shown.const_entries = p.is_const;
                    let largest_wins = property_bool(t, "largest_priority_wins").unwrap_or(true);
                    table.entries = Some(self.entries(entries, &key_types, &listed, largest_wins, &mut shown));
                }
                TablePropertyKind::Other(n, e) => self.property(&n.name, e, &p.annotations, &mut table, &mut shown, &selector),
                _ => {}
            }
        }
        if table.direct_meter.is_some() || table.with_counters {
            self.attach(&table);
        }
        self.program.tables.push(table);
        if !names::has_annotation(&d.annotations, "hidden") {
            self.shown_tables.push((self.position.clone(), id, shown));
        }
        Rc::new(TableBinding { id, actions: listed.into_iter().map(|l| (l.name, l.id)).collect() })
    }

    fn keys(
        &mut self,
        keys: &'a [KeyElement],
        table: &mut ir::Table,
        shown: &mut cp::Table,
        selector: &mut Vec<Expr>,
        key_types: &mut Vec<(Type, Symbol)>,
    ) {
        let mut lpm = 0;
        for (i, k) in keys.iter().enumerate() {
            let ty = self.type_of(k.expression.id);
            let mut value = Expr::boolean(false);
            let statements = self.collect(|l| {
                let e = l.scalar_value(&k.expression);
                let simple = match &e.kind {
                    ExprKind::Place(p) => matches!(p.header, HeaderRef::Instance(_)),
                    ExprKind::Valid(h) => matches!(h, HeaderRef::Instance(_)),
                    _ => false,
                };
                let later = keys[i + 1..].iter().any(|k| l.has_effects(&k.expression));
                value = if simple && !later {
                    e
                } else {
                    let scalar = if e.ty == Type::Int { Type::bit(32) } else { e.ty.clone() };
                    l.temporary_of(&scalar, e, "key", k.span)
                };
            });
            table.prelude.extend(statements);
            let match_kind = k.match_kind.name.name.clone();
            if &*match_kind == "selector" {
                shown.keys.push(cp::KeyField {
                    name: String::new(),
                    annotations: k.annotations.clone(),
                    match_kind: match_kind.to_string(),
                    bits: fold::bits_of(&value.ty),
                    ty: self.data_type(&ty),
                });
                selector.push(value);
                continue;
            }
            if !matches!(&*match_kind, "exact" | "lpm" | "ternary" | "range" | "optional") {
                self.error(k.match_kind.span, Rule::V1model, format!("match kind `{match_kind}` is not supported"));
            }
            if &*match_kind == "lpm" {
                lpm += 1;
                if lpm == 2 {
                    self.error(k.span, Rule::Bmv2, format!("table `{}` has more than one `lpm` key", table.name));
                }
            }
            if matches!(value.ty, Type::Varbit(_)) {
                self.error(k.span, Rule::Bmv2, "a varbit field cannot be a key");
            }
            let name = names::name_annotation(&k.annotations).map(|n| n.to_string()).or_else(|| self.key_name(&k.expression));
            let name = name.unwrap_or_else(|| {
                self.report.error_help(
                    k.expression.span,
                    Rule::ComputedControlPlaneNames,
                    "a key that is computed has no name that the control plane could use",
                    "give it one: `... : exact @name(\"key\");`",
                );
                String::new()
            });
            shown.keys.push(cp::KeyField {
                name: name.clone(),
                annotations: k.annotations.clone(),
                match_kind: match_kind.to_string(),
                bits: fold::bits_of(&value.ty),
                ty: self.data_type(&ty),
            });
            key_types.push((ty, match_kind.clone()));
            table.keys.push(ir::Key { expr: value, match_kind, name });
        }
    }

    /// The control-plane name of a key without `@name`, by its expression (spec 18.3.1, P4Runtime 6.1); `None` for one that is
    /// computed. Fields go by their `@name`; what is before an absolute one (`@name(".x")`) is left out.
    fn key_name(&mut self, e: &'a ast::Expr) -> Option<String> {
        Some(match &e.kind {
            ast::ExprKind::Name(p) if self.lookup(p).is_none() => self.constant_int(e)?.to_string(),
            ast::ExprKind::Name(p) => p.name.name.to_string(),
            ast::ExprKind::Member(b, m) => {
                let ty = self.type_of(b.id);
                let public = match self.strip(&ty) {
                    Type::Struct(n) | Type::Header(n) | Type::Union(n) => {
                        self.declared_fields(&n).iter().find(|f| f.name.name == m.name).and_then(|f| names::name_annotation(&f.annotations))
                    }
                    _ => None,
                };
                match public.as_deref().map(|p| (p, p.strip_prefix('.'))) {
                    Some((_, Some(absolute))) => absolute.to_owned(),
                    Some((relative, None)) => format!("{}.{relative}", self.key_name(b)?),
                    None => format!("{}.{}", self.key_name(b)?, m.name),
                }
            }
            ast::ExprKind::Index(b, i) => format!("{}[{}]", self.key_name(b)?, self.key_name(i)?),
            ast::ExprKind::Slice(b, h, l) => format!("{}[{}:{}]", self.key_name(b)?, self.key_name(h)?, self.key_name(l)?),
            ast::ExprKind::Int(i) => match i.base {
                2 => format!("0b{}", i.value.to_str_radix(2)),
                8 => format!("0o{}", i.value.to_str_radix(8)),
                16 => format!("0x{}", i.value.to_str_radix(16)),
                _ => i.value.to_string(),
            },
            ast::ExprKind::Binary(BinaryOp::BitAnd, l, r) => format!("{} & {}", self.key_name(l)?, self.key_name(r)?),
            ast::ExprKind::Call { callee, .. } => match &callee.kind {
                ast::ExprKind::Member(b, m) if &*m.name == "isValid" => format!("{}.$valid$", self.key_name(b)?),
                _ => return None,
            },
            ast::ExprKind::Unary(..) | ast::ExprKind::Binary(..) | ast::ExprKind::Cast(..) => self.constant_int(e)?.to_string(),
            _ => return None,
        })
    }

    fn no_action(&mut self, place: (TableId, usize)) -> Option<Listed<'a>> {
        let path = Path { absolute: true, name: Ident { name: "NoAction".into(), span: Span::default() }, span: Span::default() };
        self.table_action(&path, place, None, &[])
    }

    fn listed_action(&mut self, a: &'a ActionReference, place: (TableId, usize)) -> Option<Listed<'a>> {
        self.table_action(&a.name, place, Some(a), a.arguments.as_deref().unwrap_or(&[]))
    }

    /// The action of the target for an action in a table's list. One action serves all tables of an
    /// instance, unless the list binds parameters.
    fn table_action(
        &mut self,
        p: &Path,
        place: (TableId, usize),
        reference: Option<&'a ActionReference>,
        arguments: &'a [Argument],
    ) -> Option<Listed<'a>> {
        let (d, keep, full_name) = self.action(p)?;
        let DeclarationKind::Action(a) = &d.kind else { return None };
        self.use_action(d, &full_name, Some(place));
        let key = (crate::types::DeclId(d.span.start), format!("{full_name}@{}#{}", self.prefix, d.span.file.0));
        let known = if arguments.is_empty() { self.global_actions.get(&key).copied() } else { None };
        let id = match known {
            Some(id) => id,
            None => {
                let id = self.make_action(a, d, keep, &full_name, arguments);
                if arguments.is_empty() {
                    self.global_actions.insert(key, id);
                }
                id
            }
        };
        Some(Listed { reference, name: p.name.name.clone(), id, declaration: a, full_name })
    }

    fn make_action(
        &mut self,
        a: &'a ActionDeclaration,
        d: &'a Declaration,
        keep: usize,
        name: &str,
        arguments: &'a [Argument],
    ) -> ActionId {
        let id = ActionId(self.program.actions.len());
        self.program.actions.push(ir::Action { name: name.to_owned(), params: Vec::new(), body: Vec::new(), span: d.span });
        let mut params = Vec::new();
        let mut bindings: Vec<(Symbol, Binding<'a>)> = Vec::new();
        for p in a.parameters.iter().filter(|p| p.direction == Direction::None) {
            let declared = self.type_of(p.ty.id);
            let ty = self.scalar(&declared);
            if !matches!(ty, Type::Bits { .. } | Type::Bool | Type::Enum(_) | Type::ErrorCode) {
                self.error(p.span, Rule::Bmv2, format!("an action parameter of type `{declared}` cannot be given by the control plane"));
                continue;
            }
            let public = names::name_annotation(&p.annotations).unwrap_or_else(|| p.name.name.clone());
            let bits = fold::bits_of(&ty);
            let given = |ty: &Type| Expr { kind: ExprKind::Param(params.len()), ty: ty.clone() };
            // An entry gives bits without a sign, and the target computes with them as they are.
            let value = match ty {
                Type::Bits { width, signed: true } => Expr { kind: ExprKind::Cast(Box::new(given(&Type::bit(width)))), ty },
                _ => given(&ty),
            };
            bindings.push((p.name.name.clone(), Binding::Value(Val::Scalar(value))));
            params.push((public.to_string(), bits));
        }
        let returns = std::mem::take(&mut self.returns);
        let loops = std::mem::take(&mut self.loops);
        let pending = std::mem::take(&mut self.pending);
        let in_action = std::mem::replace(&mut self.in_action, true);
        let body = self.collect(|l| {
            // Parameters with a direction get the values that the list gives, when the action runs.
            let directed: Vec<&'a Parameter> = a.parameters.iter().filter(|p| p.direction != Direction::None).collect();
            let bound = if arguments.is_empty() || directed.is_empty() {
                Vec::new()
            } else {
                let info = CallInfo {
                    target: CallTarget::Action,
                    type_args: Vec::new(),
                    order: (0..directed.len())
                        .map(|i| {
                            arguments.iter().position(|x| x.name.as_ref().is_some_and(|n| n.name == directed[i].name.name)).or(Some(i))
                        })
                        .collect(),
                    signature: Rc::new(Signature {
                        name: a.name.name.clone(),
                        type_params: Vec::new(),
                        params: directed
                            .iter()
                            .map(|p| crate::check::ParamSig {
                                name: p.name.name.clone(),
                                direction: p.direction,
                                ty: l.type_of(p.ty.id),
                                optional: false,
                                span: p.span,
                            })
                            .collect(),
                        returns: Type::Void,
                    }),
                };
                let params = &a.parameters[..directed.len()];
                l.arguments_in_order(&info, arguments, |l| l.bind_arguments(&info, params, arguments, Passing::Open, d.span))
            };
            l.with_scopes(keep, |l| {
                l.scoped(|l| {
                    for (n, b) in &bindings {
                        l.bind(n, b.clone());
                    }
                    for b in &bound {
                        l.bind(&b.name, b.binding.clone());
                    }
                    l.with_pending(&bound, |l| l.action_body(a));
                });
            });
            l.copy_out(&bound, d.span);
        });
        self.returns = returns;
        self.loops = loops;
        self.pending = pending;
        self.in_action = in_action;
        let action = &mut self.program.actions[id.0];
        action.params = params;
        action.body = body;
        id
    }

    fn default_action(
        &mut self,
        given: Option<(&'a ast::Expr, bool)>,
        listed: &[Listed<'a>],
        table: &mut ir::Table,
        shown: &mut cp::Table,
    ) {
        let (name, arguments, is_const): (Symbol, &'a [Argument], bool) = match given {
            None => ("NoAction".into(), &[], false),
            Some((e, is_const)) => match &e.kind {
                ast::ExprKind::Name(p) => (p.name.name.clone(), &[], is_const),
                ast::ExprKind::Call { callee, arguments, .. } => match &callee.kind {
                    ast::ExprKind::Name(p) => (p.name.name.clone(), arguments, is_const),
                    _ => return,
                },
                _ => return,
            },
        };
        let Some(l) = listed.iter().find(|l| l.name == name) else { return };
        let Some(args) = self.action_arguments(l, arguments) else { return };
        shown.default_action = Some(cp::DefaultAction { action: l.full_name.clone(), arguments: args.clone(), is_const });
        table.default = Some((l.id, args, is_const));
    }

    /// Constants for the parameters that the control plane binds.
    fn action_arguments(&mut self, l: &Listed<'a>, arguments: &'a [Argument]) -> Option<Vec<BigInt>> {
        let free: Vec<&'a Parameter> = l.declaration.parameters.iter().filter(|p| p.direction == Direction::None).collect();
        let skip = arguments.len().saturating_sub(free.len());
        let mut out = Vec::new();
        for (i, p) in free.iter().enumerate() {
            let a = arguments.iter().find(|a| a.name.as_ref().is_some_and(|n| n.name == p.name.name)).or_else(|| arguments.get(skip + i));
            let Some(a) = a else {
                // The checker has told that an argument is missing; a bare name leaves all to be zero.
                out.push(BigInt::from(0));
                continue;
            };
            let ty = self.type_of(p.ty.id);
            let v = self.value_as(&a.value, &ty);
            match self.as_scalar(v).kind {
                ExprKind::Const(v) => out.push(unsigned(v, &self.scalar(&ty))),
                ExprKind::Bool(b) => out.push(BigInt::from(u8::from(b))),
                _ => {
                    self.error(a.span, Rule::TableProperties, "the argument must be known at compile time");
                    return None;
                }
            }
        }
        Some(out)
    }

    fn property(
        &mut self,
        name: &str,
        e: &'a ast::Expr,
        annotations: &'a [Annotation],
        table: &mut ir::Table,
        shown: &mut cp::Table,
        selector: &[Expr],
    ) {
        let given = names::name_annotation(annotations).map(|n| n.trim_start_matches('.').to_owned());
        let object_name = |kind: &str| given.clone().unwrap_or_else(|| format!("{}.{kind}", table.name));
        match name {
            "size" => {
                let size = self.constant_int(e).and_then(|v| v.to_u64());
                table.size = size;
                shown.size = size;
            }
            "support_timeout" => {
                if let Val::Scalar(Expr { kind: ExprKind::Bool(b), .. }) = self.value(e) {
                    table.support_timeout = b;
                    shown.support_timeout = b;
                }
            }
            "psa_idle_timeout" => {
                let v = self.value(e);
                let ages = self.enum_name(&v).is_some_and(|n| &*n == "NOTIFY_CONTROL");
                table.support_timeout = ages;
                shown.support_timeout = ages;
            }
            "implementation" | "psa_implementation" => {
                let Some(i) = self.table_object(e, &object_name("action_profile"), annotations) else { return };
                let InstanceKind::Extern { decl, .. } = &i.kind else { return };
                let selecting = match &*self.checked.externs.get(decl).map(|d| d.name.clone()).unwrap_or_else(|| "".into()) {
                    "action_profile" | "ActionProfile" => false,
                    "action_selector" | "ActionSelector" => true,
                    other => {
                        self.error(
                            e.span,
                            Rule::V1model,
                            format!("a table is implemented by an action profile or selector, not by `{other}`"),
                        );
                        return;
                    }
                };
                shown.implementation = Some(i.name.clone());
                table.implementation =
                    if selecting { Implementation::Selector(i.name.clone()) } else { Implementation::Profile(i.name.clone()) };
                if let Some((stage, p)) = self.program.profiles.iter_mut().find(|(_, p)| p.name == i.name) {
                    if let Some((_, input @ None)) = &mut p.selector {
                        *input = Some(selector.to_vec());
                    }
                    if stage.is_empty() {
                        *stage = if self.stage == super::Stage::Egress { "egress".into() } else { "ingress".into() };
                    }
                }
                if let Some(p) = self.control_plane.action_profiles.iter_mut().find(|p| p.name == i.name) {
                    p.tables.push(table.name.clone());
                }
            }
            "counters" | "psa_direct_counter" => {
                let Some(i) = self.table_object(e, &object_name("counter"), annotations) else { return };
                table.with_counters = true;
                shown.direct_counter = Some(i.name.clone());
                let Some(c) = self.program.counters.iter_mut().find(|c| c.name == i.name) else {
                    self.error(e.span, Rule::V1model, "`counters` must name a `direct_counter`");
                    return;
                };
                match &mut c.cells {
                    ir::Cells::Direct(t @ None) => *t = Some(table.name.clone()),
                    ir::Cells::Direct(Some(other)) => {
                        let text = format!("direct counter `{}` already belongs to table `{other}`", i.name);
                        self.error(e.span, Rule::V1model, text);
                    }
                    ir::Cells::Array(_) => self.error(e.span, Rule::V1model, "`counters` must name a `direct_counter`"),
                }
                if let Some(c) = self.control_plane.counters.iter_mut().find(|c| c.name == i.name) {
                    c.table = Some(table.name.clone());
                }
            }
            "meters" | "psa_direct_meter" => {
                let Some(i) = self.table_object(e, &object_name("meter"), annotations) else { return };
                table.direct_meter = Some(i.name.clone());
                shown.direct_meter = Some(i.name.clone());
                let Some(m) = self.program.meters.iter_mut().find(|m| m.name == i.name) else {
                    self.error(e.span, Rule::V1model, "`meters` must name a `direct_meter`");
                    return;
                };
                match &mut m.cells {
                    ir::Cells::Direct(t @ None) => *t = Some(table.name.clone()),
                    ir::Cells::Direct(Some(other)) => {
                        let text = format!("direct meter `{}` already belongs to table `{other}`", i.name);
                        self.error(e.span, Rule::V1model, text);
                    }
                    ir::Cells::Array(_) => self.error(e.span, Rule::V1model, "`meters` must name a `direct_meter`"),
                }
                if let Some(m) = self.control_plane.meters.iter_mut().find(|m| m.name == i.name) {
                    m.table = Some(table.name.clone());
                }
            }
            _ => {}
        }
    }

    /// The object of a table property: one declared, or made in place.
    fn table_object(&mut self, e: &'a ast::Expr, name: &str, annotations: &'a [Annotation]) -> Option<Rc<super::Instance<'a>>> {
        if matches!(e.kind, ast::ExprKind::Name(_)) {
            let found = self.instance(e);
            if found.is_none() {
                self.error(e.span, Rule::V1model, "this table property must name an extern object");
            }
            return found;
        }
        self.instance_named(e, name, annotations)
    }

    /// Direct meters know the size of their table.
    fn attach(&mut self, table: &ir::Table) {
        let size = match &table.entries {
            Some(e) if !e.is_empty() => e.len() as u64,
            _ => table.size.unwrap_or(1024),
        };
        if let Some(m) = table.direct_meter.as_ref().and_then(|n| self.program.meters.iter_mut().find(|m| m.name == *n)) {
            m.table_size = size;
        }
    }

    fn entries(
        &mut self,
        entries: &'a [TableEntry],
        keys: &[(Type, Symbol)],
        listed: &[Listed<'a>],
        largest_wins: bool,
        shown: &mut cp::Table,
    ) -> Vec<ir::Entry> {
        let mut out: Vec<ir::Entry> = Vec::new();
        let ordered = keys.iter().any(|(_, k)| matches!(&**k, "ternary" | "range" | "optional"));
        for e in entries {
            let mut matches = self.keyset(&e.keyset, &keys.iter().map(|(t, _)| t.clone()).collect::<Vec<_>>());
            for (m, (t, kind)) in matches.iter_mut().zip(keys) {
                normalise(m, kind, fold::bits_of(&self.scalar(t)));
                if let (Match::Mask(_, mask), "lpm") = (&*m, &**kind) {
                    let width = fold::bits_of(&self.scalar(t));
                    if prefix_length(mask, width).is_none() {
                        self.error(e.keyset.span, Rule::Entries, "the mask of an `lpm` key must be a prefix: ones, then zeros");
                    }
                }
            }
            for (m, (t, _)) in matches.iter().zip(keys) {
                let signed = matches!(self.scalar(t), Type::Bits { signed: true, .. });
                if let (Match::Range(low, high), true) = (m, signed) {
                    let half = BigInt::from(1) << (fold::bits_of(&self.scalar(t)) - 1);
                    if (*low >= half) != (*high >= half) {
                        self.error(
                            e.keyset.span,
                            Rule::Bmv2,
                            "a range of a signed key that goes over zero: the target compares bits without a sign",
                        );
                    }
                }
            }
            let Some(l) = listed.iter().find(|l| l.name == e.action.name.name.name) else { continue };
            let arguments = e.action.arguments.as_deref().unwrap_or(&[]);
            let Some(args) = self.action_arguments(l, arguments) else { continue };
            let explicit = e.priority.as_ref().and_then(|p| self.constant_int(p));
            let annotated = names::int_annotation(&e.annotations, "priority").into_iter().next();
            let priority = match (&explicit, annotated) {
                (Some(p), _) => Some(if largest_wins { -p.clone() } else { p.clone() }),
                (None, Some(p)) => Some(p),
                (None, None) => None,
            };
            shown.entries.push(cp::Entry {
                matches: matches.iter().zip(keys).map(|(m, (t, k))| entry_match(m, k, fold::bits_of(&self.scalar(t)))).collect(),
                action: l.full_name.clone(),
                arguments: args.clone(),
                priority: 0,
                is_const: e.is_const,
            });
            out.push(ir::Entry { matches, action: l.id, args, priority, span: e.span });
        }
        rank(&mut out);
        if ordered {
            let n = out.len() as u32;
            for (e, s) in out.iter().zip(shown.entries.iter_mut().rev().take(out.len()).rev()) {
                let p = e.priority.as_ref().and_then(|p| p.to_u32()).unwrap_or(1);
                s.priority = (n + 1).saturating_sub(p).max(1);
            }
        }
        out
    }

    /// Matches for keys of the given types.
    pub(super) fn keyset(&mut self, k: &'a Keyset, keys: &[Type]) -> Vec<Match> {
        match &k.kind {
            KeysetKind::Default | KeysetKind::DontCare => vec![Match::Any; keys.len()],
            KeysetKind::Tuple(parts) => {
                if let ([one], true) = (keys, parts.len() != keys.len()) {
                    let inner = self.part_types(one);
                    return self.keyset(k, &inner);
                }
                parts
                    .iter()
                    .zip(keys)
                    .flat_map(|(p, t)| {
                        let inner = self.part_types(t);
                        self.keyset(p, &inner)
                    })
                    .collect()
            }
            KeysetKind::Value(e) => {
                let whole = match keys {
                    [one] => one.clone(),
                    many => Type::Tuple(many.to_vec()),
                };
                let v = self.value_as(e, &whole);
                let mut scalars = Vec::new();
                self.scalars_of(&v, &mut scalars);
                let scalars: Vec<Expr> = scalars
                    .into_iter()
                    .zip(keys)
                    .map(|(s, t)| if s.ty == Type::Int { fold::cast(s, &self.scalar(t)) } else { s })
                    .collect();
                scalars
                    .into_iter()
                    .map(|s| match s.kind {
                        ExprKind::Const(v) => Match::Exact(unsigned(v, &s.ty)),
                        ExprKind::Bool(b) => Match::Exact(u8::from(b).into()),
                        _ => {
                            self.error(e.span, Rule::Sets, "the value must be known at compile time");
                            Match::Any
                        }
                    })
                    .collect()
            }
            KeysetKind::Mask(a, b) | KeysetKind::Range(a, b) => {
                let Some(t) = keys.first().cloned() else { return Vec::new() };
                let (x, y) = (self.value_as(a, &t), self.value_as(b, &t));
                let (x, y) = (self.as_scalar(x), self.as_scalar(y));
                match (x.as_const(), y.as_const()) {
                    (Some(p), Some(q)) => {
                        let (p, q) = (unsigned(p.clone(), &x.ty), unsigned(q.clone(), &y.ty));
                        vec![if matches!(k.kind, KeysetKind::Mask(..)) { Match::Mask(p, q) } else { Match::Range(p, q) }]
                    }
                    _ => {
                        self.error(k.span, Rule::Sets, "the value must be known at compile time");
                        vec![Match::Any]
                    }
                }
            }
        }
    }

    /// The scalar types that a key is made of.
    pub(super) fn part_types(&self, t: &Type) -> Vec<Type> {
        match self.strip(t) {
            Type::Struct(n) | Type::Header(n) => self.fields(&n).iter().flat_map(|(_, t)| self.part_types(t)).collect(),
            Type::Tuple(ts) => ts.iter().flat_map(|t| self.part_types(t)).collect(),
            _ => vec![t.clone()],
        }
    }
}

/// The bits of a value, as the target holds them.
fn unsigned(v: BigInt, t: &Type) -> BigInt {
    match t {
        Type::Bits { width, .. } => crate::check::constants::wrap(v, &Type::bit(*width)),
        _ => v,
    }
}

/// Numbers the entries: the one that wins gets 1.
fn rank(entries: &mut [ir::Entry]) {
    if entries.iter().all(|e| e.priority.is_none()) {
        for (i, e) in entries.iter_mut().enumerate() {
            e.priority = Some(BigInt::from(i + 1));
        }
        return;
    }
    let mut order: Vec<usize> = (0..entries.len()).collect();
    order.sort_by(|a, b| match (&entries[*a].priority, &entries[*b].priority) {
        (Some(x), Some(y)) => x.cmp(y),
        (Some(_), None) => std::cmp::Ordering::Less,
        (None, Some(_)) => std::cmp::Ordering::Greater,
        (None, None) => std::cmp::Ordering::Equal,
    });
    for (rank, i) in order.into_iter().enumerate() {
        entries[i].priority = Some(BigInt::from(rank + 1));
    }
}

fn property_bool(t: &TableDeclaration, name: &str) -> Option<bool> {
    t.properties.iter().find_map(|p| match &p.kind {
        TablePropertyKind::Other(n, e) if &*n.name == name => match e.kind {
            ast::ExprKind::Bool(b) => Some(b),
            _ => None,
        },
        _ => None,
    })
}
