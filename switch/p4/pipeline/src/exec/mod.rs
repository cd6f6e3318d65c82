//! Running a program.

pub mod calc;
pub mod candidates;
pub mod checksums;
pub mod control;
pub mod deparser;
pub mod eval;
pub mod hash;
pub mod headers;
pub mod heavy;
pub mod meter;
#[cfg(not(target_family = "wasm"))]
pub mod native;
#[cfg(target_family = "wasm")]
#[path = "no_native.rs"]
pub mod native;
pub mod num;
pub mod packet;
pub mod parser;
pub mod run;
pub mod state;
pub mod values;
