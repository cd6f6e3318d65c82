//! Passes over the specialised program, one file each, in the order in which they run.

pub mod predicate_deparsers;
pub mod simplify_parser;
pub mod synthesize_actions;
