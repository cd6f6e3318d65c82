//! A source that always has more to send.

use crate::{Emission, Nanos};

/// One emission of data without end, at the start.
#[derive(Clone, Debug)]
pub struct Persistent {
    start: Option<Nanos>,
}

impl Persistent {
    pub fn new(start: Nanos) -> Self {
        Persistent { start: Some(start) }
    }
}

impl Iterator for Persistent {
    type Item = Emission;

    fn next(&mut self) -> Option<Emission> {
        self.start.take().map(|at| Emission { at, bytes: u64::MAX })
    }
}
