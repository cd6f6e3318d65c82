//! Fills in what the program shows to the control plane.

use std::collections::HashSet;

use fairlane_syntax::ast::*;

use super::{fold, names, Lower};
use crate::control_plane::*;
use crate::ir::{self, Stmt, TableId};
use crate::types::{DeclId, Type};

/// An action that may be shown. One of the top level counts as declared in each block of `main` that uses it, in the order of uses.
pub(super) struct Shown {
    /// Where it is declared; the block of `main` comes first.
    pub position: Vec<usize>,
    /// What would be shown.
    pub action: Action,
    /// The tables that list it.
    pub tables: Vec<TableId>,
    /// Whether an `apply` block calls it.
    pub called: bool,
}

/// A table with nothing in it yet.
pub(super) fn table(name: &str, annotations: &[Annotation]) -> Table {
    Table {
        name: name.to_owned(),
        annotations: annotations.to_vec(),
        keys: Vec::new(),
        actions: Vec::new(),
        default_action: None,
        size: None,
        implementation: None,
        direct_counter: None,
        direct_meter: None,
        support_timeout: false,
        entries: Vec::new(),
        const_entries: false,
    }
}

impl<'a> Lower<'a, '_> {
    /// A type as the control plane sees it.
    pub(super) fn data_type(&self, t: &Type) -> DataType {
        match t {
            Type::Bits { width, signed: false } => DataType::Bits(*width),
            Type::Bits { width, signed: true } => DataType::SignedBits(*width),
            Type::Varbit(w) => DataType::Varbit(*w),
            Type::Bool => DataType::Bool,
            Type::ErrorCode => DataType::Error,
            Type::Str => DataType::String,
            Type::Tuple(ts) => DataType::Tuple(ts.iter().map(|t| self.data_type(t)).collect()),
            Type::Record(fs) => DataType::Tuple(fs.iter().map(|(_, t)| self.data_type(t)).collect()),
            Type::Struct(n) => DataType::Struct(self.type_name(n)),
            Type::Header(n) => DataType::Header(self.type_name(n)),
            Type::Union(n) => DataType::HeaderUnion(self.type_name(n)),
            Type::Stack(e, n) => DataType::Stack(Box::new(self.data_type(e)), *n),
            Type::Enum(n) => DataType::Enum(n.name.to_string()),
            Type::SerEnum(n, _) => DataType::SerializableEnum(n.name.to_string()),
            Type::Newtype(n, _) => DataType::Newtype(n.name.to_string()),
            Type::List(e) => DataType::Tuple(vec![self.data_type(e)]),
            // An integer literal without width has the width that it needs at least.
            _ => DataType::Bits(32),
        }
    }

    /// Remembers an action where it is declared; [`Self::use_action`] says that it is needed.
    pub(super) fn describe_action(&mut self, d: &'a Declaration, name: &str, position: Vec<usize>) {
        let DeclarationKind::Action(a) = &d.kind else { return };
        if self.shown_action(name, position.first()).is_some() {
            return;
        }
        let params = a
            .parameters
            .iter()
            .filter(|p| p.direction == Direction::None)
            .map(|p| {
                let ty = self.type_of(p.ty.id);
                Param {
                    name: names::name_annotation(&p.annotations).unwrap_or_else(|| p.name.name.clone()).to_string(),
                    annotations: p.annotations.clone(),
                    bits: fold::bits_of(&self.scalar(&ty)),
                    ty: self.data_type(&ty),
                }
            })
            .collect();
        let action = Action { name: name.to_owned(), annotations: d.annotations.clone(), params };
        self.shown_actions.push(Shown { position, action, tables: Vec::new(), called: false });
    }

    fn shown_action(&mut self, name: &str, block: Option<&usize>) -> Option<&mut Shown> {
        self.shown_actions.iter_mut().find(|s| s.action.name == name && s.position.first() == block)
    }

    /// An action is used by a table, at a place of its list, or called from an `apply` block: one called by actions only is part of
    /// those.
    pub(super) fn use_action(&mut self, d: &'a Declaration, name: &str, table: Option<(TableId, usize)>) {
        let block = self.position.first().copied();
        if self.checked.decls.iter().any(|x| std::ptr::eq(*x, d)) {
            // Actions of the top level: those that tables list come before those that are only called.
            let mut position = vec![block.unwrap_or(0), 0];
            match table {
                Some((_, at)) => position.extend(self.position.iter().skip(1).copied().chain([at])),
                None => position.extend([usize::MAX, self.shown_actions.len()]),
            }
            self.describe_action(d, name, position.clone());
            if let Some(s) = self.shown_action(name, block.as_ref())
                && position < s.position
            {
                s.position = position;
            }
        }
        if let Some(s) = self.shown_action(name, block.as_ref()) {
            match table {
                Some((table, _)) => s.tables.push(table),
                None => s.called = true,
            }
        }
    }

    /// Puts tables and actions in the order of their declaration in the program as inlined. A table that is applied nowhere is not
    /// there, nor are actions that only such tables list.
    pub(super) fn order_control_plane(&mut self) {
        let applied = applied_tables(&self.program);
        let mut actions = std::mem::take(&mut self.shown_actions);
        actions.sort_by(|a, b| a.position.cmp(&b.position));
        for mut shown in actions {
            let listed = shown.tables.iter().any(|t| applied.contains(t));
            if !listed && !shown.called || self.control_plane.actions.iter().any(|a| a.name == shown.action.name) {
                continue;
            }
            if !listed {
                // The program itself gives it all arguments.
                shown.action.params.clear();
            }
            self.control_plane.actions.push(shown.action);
        }
        let mut tables = std::mem::take(&mut self.shown_tables);
        tables.retain(|(_, id, _)| applied.contains(id));
        tables.sort_by(|(a, ..), (b, ..)| a.cmp(b));
        self.control_plane.tables = tables.into_iter().map(|(_, _, t)| t).collect();
    }

    /// What does not depend on the instances: types and headers of the controller.
    pub(super) fn describe_types(&mut self) {
        let mut seen = HashSet::new();
        for (i, d) in self.checked.decls.iter().enumerate() {
            let id = DeclId(i as u32);
            let fields = |l: &Self, declared: &'a [Field]| -> Vec<(String, DataType, Vec<Annotation>)> {
                declared.iter().map(|f| (f.name.name.to_string(), l.data_type(&l.type_of(f.ty.id)), f.annotations.clone())).collect()
            };
            let (name, kind) = match &d.kind {
                DeclarationKind::Struct(s) if s.type_parameters.is_empty() => {
                    (&s.name, TypeDefinitionKind::Struct(fields(self, &s.fields)))
                }
                DeclarationKind::Header(s) if s.type_parameters.is_empty() => {
                    self.controller_header(d, s);
                    (&s.name, TypeDefinitionKind::Header(fields(self, &s.fields)))
                }
                DeclarationKind::HeaderUnion(s) if s.type_parameters.is_empty() => {
                    (&s.name, TypeDefinitionKind::HeaderUnion(fields(self, &s.fields)))
                }
                DeclarationKind::Enum(e) => {
                    let Some(def) = self.checked.enums.get(&id) else { continue };
                    let kind = match &def.underlying {
                        Some(t) => TypeDefinitionKind::SerializableEnum(
                            fold::bits_of(t),
                            def.members.iter().map(|(n, v)| (n.to_string(), v.clone().unwrap_or_default())).collect(),
                        ),
                        None => TypeDefinitionKind::Enum(def.members.iter().map(|(n, _)| n.to_string()).collect()),
                    };
                    if def.underlying.is_none() {
                        self.program.enums.push((e.name.name.clone(), def.members.iter().map(|(n, _)| n.clone()).collect()));
                    }
                    (&e.name, kind)
                }
                DeclarationKind::Newtype(a) => (&a.name, TypeDefinitionKind::Newtype(self.data_type(&self.type_of(a.ty.id)))),
                _ => continue,
            };
            if seen.insert(name.name.clone()) {
                self.control_plane.types.push(TypeDefinition { name: name.name.to_string(), annotations: d.annotations.clone(), kind });
            }
        }
        let errors = self.checked.errors.iter().map(ToString::to_string).collect();
        self.control_plane.types.push(TypeDefinition {
            name: "error".into(),
            annotations: Vec::new(),
            kind: TypeDefinitionKind::Error(errors),
        });
    }

    fn controller_header(&mut self, d: &'a Declaration, s: &'a StructDeclaration) {
        let Some(name) = names::string_annotation(&d.annotations, "controller_header") else { return };
        let fields = s
            .fields
            .iter()
            .map(|f| {
                let ty = self.type_of(f.ty.id);
                Param {
                    name: names::name_annotation(&f.annotations).unwrap_or_else(|| f.name.name.clone()).to_string(),
                    annotations: f.annotations.clone(),
                    bits: fold::bits_of(&self.scalar(&ty)),
                    ty: self.data_type(&ty),
                }
            })
            .collect();
        self.control_plane.controller_headers.push(ControllerHeader {
            name: name.to_string(),
            annotations: d.annotations.iter().filter(|a| &*a.name.name != "controller_header").cloned().collect(),
            fields,
        });
    }
}

/// The tables that some block applies.
fn applied_tables(program: &ir::Program) -> HashSet<TableId> {
    fn of(body: &[Stmt], out: &mut HashSet<TableId>) {
        for s in body {
            match s {
                Stmt::Apply(t, _) => {
                    out.insert(*t);
                }
                Stmt::ApplyHit(t, yes, no, _) => {
                    out.insert(*t);
                    of(yes, out);
                    of(no, out);
                }
                Stmt::ApplySwitch(t, cases, default, _) => {
                    out.insert(*t);
                    cases.iter().for_each(|(_, b)| of(b, out));
                    default.iter().for_each(|b| of(b, out));
                }
                Stmt::If(_, yes, no, _) => {
                    of(yes, out);
                    of(no, out);
                }
                Stmt::Scope(_, b) | Stmt::Loop(b, _) => of(b, out),
                _ => {}
            }
        }
    }
    let mut out = HashSet::new();
    let deparsers = program.deparsers.iter().map(|d| &d.body);
    for body in [&program.verify, &program.ingress.body, &program.egress.body, &program.update].into_iter().chain(deparsers) {
        of(body, &mut out);
    }
    out
}
