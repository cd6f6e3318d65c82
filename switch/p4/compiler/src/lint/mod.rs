//! What is legal and doubtful: warnings, by the names that p4c gives them, where p4c gives them.
//!
//! Each file has one question and walks the tree with it: [`names`] what is not used and what hides what, [`annotations`] what
//! annotations say, [`action_names`] which actions the control plane could not tell apart.

pub(crate) mod action_names;
pub(crate) mod annotations;
pub(crate) mod names;
