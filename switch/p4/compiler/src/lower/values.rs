//! Values in the making: scalars, and what structs, headers and lists are made of.

use fairlane_syntax::ast::*;

use crate::ir::{self, Expr, HeaderRef};
use crate::types::Type;

/// A value of any type.
#[derive(Debug, Clone)]
pub enum Val {
    /// A scalar.
    Scalar(Expr),
    /// A struct, tuple or list; with the type of the struct when it is known.
    Struct(Vec<(Symbol, Val)>, Type),
    /// A header variable.
    Header(HeaderRef, Type),
    /// A header made of values; `None` when it is not valid.
    HeaderLiteral(Option<Vec<(Symbol, Val)>>, Type),
    /// A stack variable.
    Stack(ir::StackId, Type),
    /// A stack made of values.
    StackLiteral(Vec<Val>),
    /// A union variable.
    Union(ir::UnionId, Type),
    /// A text.
    Text(Symbol),
    /// `...`
    Default,
    /// `{#}` of a type not yet known.
    Invalid,
    /// What an error left.
    Broken,
}
