//! P4Runtime.
pub mod proto;
