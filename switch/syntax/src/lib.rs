//! The P4_16 front of the compiler: source text to syntax tree. See docs/architecture.md.

pub mod ast;
pub mod span;
