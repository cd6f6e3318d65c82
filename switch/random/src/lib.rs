//! Random numbers: one stream for each component of a run, from the run's seed and the component's name.
//!
//! | file | content |
//! |---|---|
//! | `stream.rs` | a stream, and how its key follows from seed and name |
//! | `draws.rs` | what a component draws from its stream |
//! | `nearest.rs` | exponential, logarithm and power rounded to the nearest number |
//!
//! The same seed and name give the same numbers on every x86-64 machine: the generator and the logarithms come from crates at pinned
//! versions, never from the platform's mathematics library.

#![forbid(unsafe_code)]

mod draws;
pub mod nearest;
mod stream;

pub use draws::{seed_of, Rng};
pub use stream::{key, Stream};
