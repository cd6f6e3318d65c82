//! Passes over the specialised program, one file each, in the order in which they run.

pub mod simplify_parser;
pub mod synthesize_actions;
