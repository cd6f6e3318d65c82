//! What a variable consists of, for the analysis: leaves, which are written or not, and headers, which are valid or not.

use std::rc::Rc;

use fairlane_syntax::ast::Symbol;

use crate::check::Checked;
use crate::types::{Named, Type};

/// A variable with more leaves than this is not followed: it is taken to be written and valid.
const MOST_LEAVES: u32 = 1 << 13;

/// The form of a value.
#[derive(Debug)]
pub(super) struct Shape {
    pub kind: Kind,
    /// How many leaves it has in all.
    pub leaves: u32,
    /// How many headers and header unions it has in all, itself included; the first is itself, when it is one.
    pub headers: u32,
}

/// The forms of values.
#[derive(Debug)]
pub(super) enum Kind {
    /// One leaf.
    Scalar,
    /// Fields, in order.
    Struct(Vec<Field>),
    Header(Vec<Field>),
    Union(Vec<Field>),
    /// An element, and how many there are.
    Stack(Rc<Shape>, u32),
    /// Elements by position.
    Tuple(Vec<Field>),
    /// What has no storage, or too much of it.
    Nothing,
}

/// A part of a value, and where it begins.
#[derive(Debug)]
pub(super) struct Field {
    pub name: Symbol,
    pub shape: Rc<Shape>,
    pub leaf: u32,
    pub header: u32,
}

/// A value's place in the storage of a parser, control or function.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub shape: Rc<Shape>,
    pub leaf: u32,
    pub header: u32,
}

impl Shape {
    pub(super) fn nothing() -> Rc<Shape> {
        Rc::new(Shape { kind: Kind::Nothing, leaves: 0, headers: 0 })
    }

    /// The form of values of a type.
    pub(super) fn of(checked: &Checked<'_>, t: &Type) -> Rc<Shape> {
        let shape = build(checked, t, 0);
        if shape.leaves > MOST_LEAVES || shape.headers > MOST_LEAVES {
            Shape::nothing()
        } else {
            shape
        }
    }

    pub(super) fn is_header(&self) -> bool {
        matches!(self.kind, Kind::Header(_))
    }

    pub(super) fn is_union(&self) -> bool {
        matches!(self.kind, Kind::Union(_))
    }

    /// The parts with names, of whatever has some.
    pub(super) fn fields(&self) -> &[Field] {
        match &self.kind {
            Kind::Struct(f) | Kind::Header(f) | Kind::Union(f) | Kind::Tuple(f) => f,
            _ => &[],
        }
    }
}

fn build(checked: &Checked<'_>, t: &Type, depth: u32) -> Rc<Shape> {
    if depth > 64 {
        return Shape::nothing();
    }
    match t {
        Type::Bool
        | Type::Bits { .. }
        | Type::Varbit(_)
        | Type::ErrorCode
        | Type::Enum(_)
        | Type::SerEnum(..)
        | Type::Newtype(..)
        | Type::Param(_)
        | Type::List(_)
        | Type::Int => Rc::new(Shape { kind: Kind::Scalar, leaves: 1, headers: 0 }),
        Type::Struct(n) => with_fields(checked, members(checked, n), depth, Kind::Struct, 0),
        Type::Header(n) => with_fields(checked, members(checked, n), depth, Kind::Header, 1),
        Type::Union(n) => with_fields(checked, members(checked, n), depth, Kind::Union, 1),
        Type::Tuple(ts) => {
            let parts = ts.iter().map(|t| (Symbol::from(""), t.clone())).collect();
            with_fields(checked, parts, depth, Kind::Tuple, 0)
        }
        Type::Record(parts) => with_fields(checked, parts.clone(), depth, Kind::Struct, 0),
        Type::Stack(t, n) => {
            let element = build(checked, t, depth + 1);
            let (leaves, headers) = (element.leaves.saturating_mul(*n), element.headers.saturating_mul(*n));
            Rc::new(Shape { kind: Kind::Stack(element, *n), leaves, headers })
        }
        _ => Shape::nothing(),
    }
}

fn members(checked: &Checked<'_>, n: &Named) -> Vec<(Symbol, Type)> {
    let Some(def) = checked.structs.get(&n.decl) else { return Vec::new() };
    let map: Vec<(u32, Type)> = def.type_params.iter().map(|p| p.id).zip(n.args.iter().cloned()).collect();
    def.fields.iter().map(|f| (f.name.clone(), f.ty.substitute(&map))).collect()
}

/// Lays parts out one behind the other; `own` headers come first.
fn with_fields(checked: &Checked<'_>, parts: Vec<(Symbol, Type)>, depth: u32, kind: fn(Vec<Field>) -> Kind, own: u32) -> Rc<Shape> {
    let (mut leaves, mut headers) = (0u32, own);
    let mut fields = Vec::with_capacity(parts.len());
    for (name, t) in parts {
        let shape = build(checked, &t, depth + 1);
        let (leaf, header) = (leaves, headers);
        leaves = leaves.saturating_add(shape.leaves);
        headers = headers.saturating_add(shape.headers);
        fields.push(Field { name, shape, leaf, header });
        if leaves > MOST_LEAVES || headers > MOST_LEAVES {
            return Shape::nothing();
        }
    }
    Rc::new(Shape { kind: kind(fields), leaves, headers })
}

impl Place {
    /// A part by its position among the fields.
    pub(super) fn part(&self, f: &Field) -> Place {
        Place { shape: f.shape.clone(), leaf: self.leaf + f.leaf, header: self.header + f.header }
    }

    /// A field by its name.
    pub(super) fn field(&self, name: &str) -> Option<Place> {
        self.shape.fields().iter().find(|f| &*f.name == name).map(|f| self.part(f))
    }

    /// An element of a stack or tuple.
    pub(super) fn element(&self, i: u32) -> Option<Place> {
        match &self.shape.kind {
            Kind::Stack(shape, n) if i < *n => {
                Some(Place { shape: shape.clone(), leaf: self.leaf + i * shape.leaves, header: self.header + i * shape.headers })
            }
            Kind::Tuple(fields) => fields.get(i as usize).map(|f| self.part(f)),
            _ => None,
        }
    }

    /// All elements of a stack.
    pub(super) fn elements(&self) -> Vec<Place> {
        let n = if let Kind::Stack(_, n) = &self.shape.kind { *n } else { 0 };
        (0..n).filter_map(|i| self.element(i)).collect()
    }

    /// The headers' numbers, that of the value itself first, if it is a header or a union.
    pub(super) fn headers(&self) -> std::ops::Range<u32> {
        self.header..self.header + self.shape.headers
    }

    /// The leaves' numbers.
    pub(super) fn leaves(&self) -> std::ops::Range<u32> {
        self.leaf..self.leaf + self.shape.leaves
    }

    /// The leaves that are in no header: structs and tuples only.
    pub(super) fn leaves_outside_headers(&self, out: &mut Vec<u32>) {
        match &self.shape.kind {
            Kind::Scalar => out.push(self.leaf),
            Kind::Struct(fields) | Kind::Tuple(fields) => fields.iter().for_each(|f| self.part(f).leaves_outside_headers(out)),
            _ => {}
        }
    }
}
