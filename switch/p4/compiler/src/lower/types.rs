//! Types of the source to types of the target.

use fairlane_syntax::ast::*;

use super::{fold, names, Lower};
use crate::ir;
use crate::rule::Rule;
use crate::types::{Named, Type};

impl<'a> Lower<'a, '_> {
    /// The type of a scalar on the target: new types and serializable enums are their bits.
    pub(super) fn scalar(&self, t: &Type) -> Type {
        match t {
            Type::Newtype(_, u) | Type::SerEnum(_, u) => self.scalar(u),
            _ => t.clone(),
        }
    }

    /// The type with new types seen through at the top.
    pub(super) fn strip(&self, t: &Type) -> Type {
        match t {
            Type::Newtype(_, u) => self.strip(u),
            _ => t.clone(),
        }
    }

    /// Names and types of the fields of a struct, header or union.
    pub(super) fn fields(&self, n: &Named) -> Vec<(Symbol, Type)> {
        let Some(def) = self.checked.structs.get(&n.decl) else { return Vec::new() };
        let map: Vec<(u32, Type)> = def.type_params.iter().map(|p| p.id).zip(n.args.iter().cloned()).collect();
        def.fields.iter().map(|f| (f.name.clone(), f.ty.substitute(&map).substitute(&self.substitution))).collect()
    }

    /// The declared fields with their annotations.
    pub(super) fn declared_fields(&self, n: &Named) -> &'a [Field] {
        match &self.decl(n.decl).kind {
            DeclarationKind::Header(s) | DeclarationKind::HeaderUnion(s) | DeclarationKind::Struct(s) => &s.fields,
            _ => &[],
        }
    }

    /// The name of a struct-like type in the JSON: generic instances differ by their arguments.
    pub(super) fn type_name(&self, n: &Named) -> String {
        let base = names::qualified("", &n.name, &self.decl(n.decl).annotations);
        if n.args.is_empty() {
            base
        } else {
            let args: Vec<String> = n.args.iter().map(ToString::to_string).collect();
            format!("{base}<{}>", args.join(", "))
        }
    }

    /// Names and scalar types of the fields of a header, structs inside taken apart (`s.f`).
    pub(super) fn flat_fields(&self, n: &Named) -> Vec<(Symbol, Type)> {
        let mut out = Vec::new();
        for (name, t) in self.fields(n) {
            self.flatten_field(&name, &t, &mut out, 0);
        }
        out
    }

    fn flatten_field(&self, name: &str, t: &Type, out: &mut Vec<(Symbol, Type)>, depth: u32) {
        match self.strip(t) {
            Type::Struct(n) | Type::Header(n) if depth < 32 => {
                for (f, t) in self.fields(&n) {
                    self.flatten_field(&format!("{name}.{f}"), &t, out, depth + 1);
                }
            }
            Type::Tuple(ts) if depth < 32 => {
                for (i, t) in ts.iter().enumerate() {
                    self.flatten_field(&format!("{name}.{i}"), t, out, depth + 1);
                }
            }
            other => out.push((name.into(), self.scalar(&other))),
        }
    }

    /// The header type of the target for a header or metadata struct.
    pub(super) fn header_type(&mut self, t: &Type, metadata: bool) -> ir::HeaderTypeId {
        if let Some(id) = self.header_types.get(t) {
            return *id;
        }
        let (Type::Header(n) | Type::Struct(n)) = t else {
            // Only headers and structs come here; an empty type keeps the rest going.
            return self.add_header_type(t, "unknown".into(), Vec::new(), true);
        };
        let fields = self.flat_fields(n);
        let span = self.decl(n.decl).span;
        let bits: u32 = fields.iter().map(|(_, t)| fold::bits_of(t)).fold(0, u32::saturating_add);
        if !metadata && !bits.is_multiple_of(8) {
            self.report.error_help(
                span,
                Rule::Bmv2,
                format!("the fields of header `{}` have {bits} bits in all, which is no number of whole bytes", n.name),
                format!("add a field of {} bits", 8 - bits % 8),
            );
        }
        let varbits = fields.iter().filter(|(_, t)| matches!(t, Type::Varbit(_))).count();
        if varbits > 1 {
            self.error(span, Rule::Bmv2, format!("header `{}` has more than one varbit field", n.name));
        }
        let name = self.type_name(n);
        self.add_header_type(t, name, fields, metadata)
    }

    pub(super) fn add_header_type(&mut self, t: &Type, name: String, fields: Vec<(Symbol, Type)>, metadata: bool) -> ir::HeaderTypeId {
        let id = ir::HeaderTypeId(self.program.header_types.len());
        self.program.header_types.push(ir::HeaderType { name, fields, metadata });
        self.header_types.insert(t.clone(), id);
        id
    }

    pub(super) fn union_type(&mut self, t: &Type) -> ir::UnionTypeId {
        if let Some(id) = self.union_types.get(t) {
            return *id;
        }
        let Type::Union(n) = t else { return ir::UnionTypeId(0) };
        let members = self.fields(n).into_iter().map(|(f, ft)| (f, self.header_type(&ft, false))).collect();
        let id = ir::UnionTypeId(self.program.union_types.len());
        let name = self.type_name(n);
        self.program.union_types.push(ir::UnionType { name, members });
        self.union_types.insert(t.clone(), id);
        id
    }
}
