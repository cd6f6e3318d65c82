//! The P4_16 compiler: typed front end, v1model middle end, BMv2 JSON and P4Info back ends.
//! See docs/architecture.md.

pub mod control_plane;
pub mod p4info;

mod check;
mod report;
mod types;
