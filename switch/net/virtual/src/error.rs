//! What is wrong with a description of a network, and why a run cannot go on.

use std::io;

use fairlane_endpoint::algorithm::Fault;

use crate::Nanos;

/// What is wrong with a description; `key` is where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {what}")]
pub struct BuildError {
    pub key: String,
    pub what: String,
}

impl BuildError {
    pub(crate) fn new(key: impl Into<String>, what: impl Into<String>) -> BuildError {
        BuildError { key: key.into(), what: what.into() }
    }
}

/// Why a run cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Build(#[from] BuildError),
    #[error("at {} s: {fault}", *.time as f64 / 1e9)]
    Fault { time: Nanos, fault: Fault },
    #[error("{path}: {error}")]
    File { path: String, error: io::Error },
}

/// `; did you mean "x"?` when a name is near another: one letter, or at most a third of them, are to be changed.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let best = known.map(|other| (distance(name, other), other)).min();
    match best {
        Some((distance, other)) if distance <= (name.len().max(other.len()) / 3).max(1) => format!("; did you mean {other:?}?"),
        _ => String::new(),
    }
}

/// Levenshtein's distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row.last().copied().unwrap_or(0)
}
