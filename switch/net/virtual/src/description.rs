//! Names in a description of a network, and what is wrong with one.

use crate::PortId;

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

/// One end of a link: a node by name, and its port (0 for a host).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkEnd {
    pub node: String,
    pub port: PortId,
}

impl LinkEnd {
    pub fn new(node: impl Into<String>, port: PortId) -> LinkEnd {
        LinkEnd { node: node.into(), port }
    }
}
