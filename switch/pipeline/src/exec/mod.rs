//! Running a program.

pub mod calc;
pub mod checksums;
pub mod control;
pub mod deparser;
pub mod eval;
pub mod hash;
pub mod headers;
pub mod heavy;
pub mod meter;
pub mod native;
pub mod num;
pub mod packet;
pub mod parser;
pub mod run;
pub mod state;
