//! Where variables live: scalar fields, header instances, stacks, unions.

use fairlane_syntax::ast::*;

use super::values::Val;
use super::Lower;
use crate::ir::{self, Expr, HeaderRef, Place, Stmt};
use crate::types::Type;

/// The place of a variable of any type.
#[derive(Debug, Clone, PartialEq)]
pub enum Storage {
    /// A scalar.
    Scalar(Place),
    /// A header, with its type.
    Header(HeaderRef, Type),
    /// A stack, with the type of its elements.
    Stack(ir::StackId, Type),
    /// A header union.
    Union(ir::UnionId, Type),
    /// The next element of a union stack.
    UnionNext(ir::StackId, Type),
    /// A struct or tuple.
    Struct(Vec<(Symbol, Storage)>, Type),
    /// What `_` takes: nothing is kept.
    Nowhere,
}

impl Storage {
    /// All scalar places and headers within.
    pub fn leaves<'s>(&'s self, out: &mut Vec<&'s Storage>) {
        match self {
            Storage::Struct(fields, _) => fields.iter().for_each(|(_, s)| s.leaves(out)),
            _ => out.push(self),
        }
    }

    /// Whether writing to one may change the other.
    pub fn overlaps(&self, other: &Storage, program: &ir::Program) -> bool {
        let (mut a, mut b) = (Vec::new(), Vec::new());
        self.leaves(&mut a);
        other.leaves(&mut b);
        a.iter().any(|x| b.iter().any(|y| leaf_overlap(x, y, program)))
    }

    /// Whether an index within is only known at run time.
    pub fn is_dynamic(&self) -> bool {
        let mut leaves = Vec::new();
        self.leaves(&mut leaves);
        let dynamic = |h: &HeaderRef| !matches!(h, HeaderRef::Instance(_));
        leaves.iter().any(|s| match s {
            Storage::Scalar(p) => dynamic(&p.header),
            Storage::Header(h, _) => dynamic(h),
            Storage::UnionNext(..) => true,
            _ => false,
        })
    }
}

fn leaf_overlap(a: &Storage, b: &Storage, program: &ir::Program) -> bool {
    use Storage::*;
    let header_of = |s: &Storage| match s {
        Scalar(p) => Some((p.header.clone(), Some(p.field.clone()))),
        Header(h, _) => Some((h.clone(), None)),
        _ => None,
    };
    // Variables and metadata are never elements of a stack or members of a union.
    let metadata = |h: &HeaderRef| match h {
        HeaderRef::Instance(id) => {
            let ty = program.headers.get(id.0).and_then(|h| program.header_types.get(h.ty.0));
            ty.is_some_and(|t| t.metadata)
        }
        _ => false,
    };
    match (header_of(a), header_of(b)) {
        (Some((h, f)), Some((g, e))) => match (&h, &g) {
            (HeaderRef::Instance(x), HeaderRef::Instance(y)) => x == y && (f.is_none() || e.is_none() || f == e),
            // Elements of stacks: be careful.
            _ => !metadata(&h) && !metadata(&g),
        },
        // A stack or union may hold the header.
        (Some((h, _)), None) | (None, Some((h, _))) => !metadata(&h) && !matches!((a, b), (Nowhere, _) | (_, Nowhere)),
        (None, None) => match (a, b) {
            (Stack(x, _), Stack(y, _)) => x == y,
            (Union(x, _), Union(y, _)) => x == y,
            (Nowhere, _) | (_, Nowhere) => false,
            _ => true,
        },
    }
}

impl Lower<'_, '_> {
    /// The instance that holds scalar variables.
    pub(super) fn scalars(&mut self) -> ir::HeaderId {
        if let Some(id) = self.program.scalars {
            return id;
        }
        let name = self.unique.name("scalars");
        let ty = ir::HeaderTypeId(self.program.header_types.len());
        self.program.header_types.push(ir::HeaderType { name: name.clone(), fields: Vec::new(), metadata: true });
        let id = ir::HeaderId(self.program.headers.len());
        self.program.headers.push(ir::Header { name, ty });
        self.program.scalars = Some(id);
        id
    }

    /// A new scalar variable of a name that is unique.
    pub(super) fn scalar_variable(&mut self, name: &str, ty: &Type) -> Place {
        let ty = self.scalar(ty);
        let name: Symbol = self.unique.name(name).into();
        if let Type::Varbit(width) = ty {
            // A header type may hold one varbit field only, so that each variable is an instance of its own.
            let key = Type::Varbit(width);
            let header_type = match self.header_types.get(&key) {
                Some(id) => *id,
                None => self.add_header_type(&key, format!("$varbit{width}"), vec![("field".into(), key.clone())], true),
            };
            let header = self.add_header(name.to_string(), header_type);
            return Place { header: HeaderRef::Instance(header), field: "field".into(), index: 0, ty };
        }
        let header = self.scalars();
        let type_id = self.program.headers[header.0].ty;
        let fields = &mut self.program.header_types[type_id.0].fields;
        fields.push((name.clone(), ty.clone()));
        Place { header: HeaderRef::Instance(header), field: name, index: fields.len() - 1, ty }
    }

    pub(super) fn add_header(&mut self, name: String, ty: ir::HeaderTypeId) -> ir::HeaderId {
        self.program.headers.push(ir::Header { name, ty });
        ir::HeaderId(self.program.headers.len() - 1)
    }

    fn add_union(&mut self, name: String, t: &Type) -> ir::UnionId {
        let ty = self.union_type(t);
        let member_types = self.program.union_types[ty.0].members.clone();
        let members = member_types.into_iter().map(|(m, ht)| (m.clone(), self.add_header(format!("{name}.{m}"), ht))).collect();
        self.program.unions.push(ir::Union { name, ty, members });
        ir::UnionId(self.program.unions.len() - 1)
    }

    /// Storage for a variable, under a name made unique.
    pub(super) fn allocate(&mut self, name: &str, t: &Type) -> Storage {
        let fresh = |l: &mut Self| l.unique.name(name);
        match self.strip(t) {
            Type::Struct(n) => {
                let fields = self.fields(&n);
                let parts = fields.into_iter().map(|(f, ft)| (f.clone(), self.allocate(&format!("{name}.{f}"), &ft))).collect();
                Storage::Struct(parts, t.clone())
            }
            Type::Tuple(ts) => {
                let parts = ts
                    .iter()
                    .enumerate()
                    .map(|(i, ft)| (Symbol::from(format!("{i}")), self.allocate(&format!("{name}.{i}"), ft)))
                    .collect();
                Storage::Struct(parts, t.clone())
            }
            Type::Record(fs) => {
                let parts = fs.iter().map(|(f, ft)| (f.clone(), self.allocate(&format!("{name}.{f}"), ft))).collect();
                Storage::Struct(parts, t.clone())
            }
            Type::Header(_) => {
                let ty = self.header_type(t, false);
                let name = fresh(self);
                Storage::Header(HeaderRef::Instance(self.add_header(name, ty)), t.clone())
            }
            Type::Union(_) => {
                let name = fresh(self);
                Storage::Union(self.add_union(name, t), t.clone())
            }
            Type::Stack(element, size) => {
                let name = fresh(self);
                let elements = match &*element {
                    Type::Union(_) => {
                        let ty = self.union_type(&element);
                        let ids = (0..size).map(|i| self.add_union(format!("{name}[{i}]"), &element)).collect();
                        ir::StackElements::Unions(ty, ids)
                    }
                    _ => {
                        let ty = self.header_type(&element, false);
                        let ids = (0..size).map(|i| self.add_header(format!("{name}[{i}]"), ty)).collect();
                        ir::StackElements::Headers(ty, ids)
                    }
                };
                self.program.stacks.push(ir::Stack { name, elements });
                Storage::Stack(ir::StackId(self.program.stacks.len() - 1), (*element).clone())
            }
            Type::Void | Type::Unknown => Storage::Nowhere,
            other => Storage::Scalar(self.scalar_variable(name, &other)),
        }
    }

    /// The value of a variable.
    pub(super) fn load(&self, s: &Storage) -> Val {
        match s {
            Storage::Scalar(p) => Val::Scalar(Expr::place(p.clone())),
            Storage::Header(h, t) => Val::Header(h.clone(), t.clone()),
            Storage::Stack(s, t) => Val::Stack(*s, t.clone()),
            Storage::Union(u, t) => Val::Union(*u, t.clone()),
            Storage::Struct(fs, t) => Val::Struct(fs.iter().map(|(n, s)| (n.clone(), self.load(s))).collect(), t.clone()),
            Storage::UnionNext(..) | Storage::Nowhere => Val::Broken,
        }
    }

    /// The field of a header, which is a struct when the header nests one.
    pub(super) fn header_field(&self, h: &HeaderRef, t: &Type, name: &str) -> Storage {
        let Type::Header(n) = t else { return Storage::Nowhere };
        let flat = self.flat_fields(n);
        let Some((_, ft)) = self.fields(n).into_iter().find(|(f, _)| **f == *name) else { return Storage::Nowhere };
        self.field_storage(h, &flat, name, &ft, 0)
    }

    fn field_storage(&self, h: &HeaderRef, flat: &[(Symbol, Type)], path: &str, t: &Type, depth: u32) -> Storage {
        match self.strip(t) {
            Type::Struct(n) if depth < 32 => {
                let parts = self
                    .fields(&n)
                    .into_iter()
                    .map(|(f, ft)| (f.clone(), self.field_storage(h, flat, &format!("{path}.{f}"), &ft, depth + 1)))
                    .collect();
                Storage::Struct(parts, t.clone())
            }
            _ => match flat.iter().position(|(f, _)| **f == *path) {
                Some(index) => Storage::Scalar(Place { header: h.clone(), field: flat[index].0.clone(), index, ty: flat[index].1.clone() }),
                None => Storage::Nowhere,
            },
        }
    }

    /// All scalar fields of a header.
    pub(super) fn header_places(&self, h: &HeaderRef, t: &Type) -> Vec<Place> {
        let Type::Header(n) = t else { return Vec::new() };
        self.flat_fields(n).into_iter().enumerate().map(|(index, (field, ty))| Place { header: h.clone(), field, index, ty }).collect()
    }

    /// A new variable with a value.
    pub(super) fn temporary_of(&mut self, ty: &Type, value: Expr, name: &str, span: Span) -> Expr {
        let place = self.scalar_variable(name, ty);
        self.emit(Stmt::Assign(place.clone(), value, span));
        Expr::place(place)
    }

    /// Makes the headers of a new variable invalid, for it may be reached more than once.
    pub(super) fn reset(&mut self, s: &Storage, span: Span) {
        match s {
            Storage::Header(h, _) => self.emit(Stmt::SetValid(h.clone(), false, span)),
            Storage::Stack(id, _) => {
                if let ir::StackElements::Headers(_, ids) = &self.program.stacks[id.0].elements {
                    for h in ids.clone() {
                        self.emit(Stmt::SetValid(HeaderRef::Instance(h), false, span));
                    }
                }
            }
            Storage::Union(u, _) => {
                for (_, h) in self.program.unions[u.0].members.clone() {
                    self.emit(Stmt::SetValid(HeaderRef::Instance(h), false, span));
                }
            }
            Storage::Struct(fs, _) => {
                for (_, f) in fs {
                    self.reset(f, span);
                }
            }
            _ => {}
        }
    }
}
