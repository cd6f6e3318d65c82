//! What declarations define: structs, enums, externs, signatures.

use std::rc::Rc;

use fairlane_syntax::ast::*;

use crate::types::{Type, TypeParam};

/// A field of a struct, header or union.
#[derive(Debug, Clone)]
pub struct FieldDef {
    /// Its name.
    pub name: Symbol,
    /// Its type; may hold the type parameters of the struct.
    pub ty: Type,
}

/// A struct, header or header union.
#[derive(Debug)]
pub struct StructDef {
    /// Its type parameters.
    pub type_params: Vec<TypeParam>,
    /// Its fields, in order.
    pub fields: Vec<FieldDef>,
}

/// An enum.
#[derive(Debug)]
pub struct EnumDef {
    /// The type of its values; `None` when it has no representation.
    pub underlying: Option<Type>,
    /// Members, with their values when serializable.
    pub members: Vec<(Symbol, Option<num_bigint::BigInt>)>,
}

/// A parameter.
#[derive(Debug, Clone)]
pub struct ParamSig {
    /// Its name.
    pub name: Symbol,
    /// Its direction.
    pub direction: Direction,
    /// Its type; may hold type parameters of the declaration.
    pub ty: Type,
    /// Whether it has a default value or is `@optional`.
    pub optional: bool,
    /// Whether the value must be known at compile time although it has no direction (extern functions, constructors).
    pub span: Span,
}

/// What a function, method, action or constructor takes and gives.
#[derive(Debug)]
pub struct Signature {
    /// Its name.
    pub name: Symbol,
    /// Its own type parameters.
    pub type_params: Vec<TypeParam>,
    /// Its parameters.
    pub params: Vec<ParamSig>,
    /// What it returns.
    pub returns: Type,
}

/// An extern object type.
#[derive(Debug)]
pub struct ExternDef {
    /// Its name.
    pub name: Symbol,
    /// Its type parameters.
    pub type_params: Vec<TypeParam>,
    /// Its constructors.
    pub constructors: Vec<Rc<Signature>>,
    /// Its methods, and whether each is abstract.
    pub methods: Vec<(Rc<Signature>, bool)>,
}

/// A parser, control, parser type, control type or package type.
#[derive(Debug)]
pub struct Applicable {
    /// Its type parameters.
    pub type_params: Vec<TypeParam>,
    /// The parameters of `apply`; for a package those of the constructor.
    pub params: Vec<ParamSig>,
    /// The parameters of the constructor.
    pub constructor: Vec<ParamSig>,
    /// Whether it has a body and can be instantiated.
    pub concrete: bool,
}

impl Applicable {
    /// Maps the type parameters to `args`.
    pub fn substitution(&self, args: &[Type]) -> Vec<(u32, Type)> {
        self.type_params.iter().map(|p| p.id).zip(args.iter().cloned()).collect()
    }
}
