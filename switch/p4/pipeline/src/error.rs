//! The errors of loading a program and of the control interface.

use std::fmt;

/// Why a BMv2 JSON text cannot be loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadError {
    /// Where in the JSON value, as `pipelines[0].tables[3].key[1]`; empty when the text is not JSON.
    pub path: String,
    /// Line and column (from 1) when the text itself is at fault: not JSON, or cut short.
    pub position: Option<(usize, usize)>,
    /// What is wrong.
    pub message: String,
    /// The way out, when there is one to name.
    pub hint: Option<String>,
    /// The program is right, and takes more memory than a program may.
    pub too_large: bool,
}

impl LoadError {
    pub(crate) fn new(path: impl Into<String>, message: impl Into<String>) -> LoadError {
        LoadError { path: path.into(), position: None, message: message.into(), hint: None, too_large: false }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> LoadError {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((line, column)) = self.position {
            write!(f, "line {line}, column {column}: ")?;
        } else if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)?;
        if let Some(hint) = &self.hint {
            write!(f, " ({hint})")?;
        }
        Ok(())
    }
}

impl std::error::Error for LoadError {}

/// Why the control interface refused a request. Each variant stands for one canonical gRPC code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ControlError {
    /// `NOT_FOUND`: no such object, entry, member, group or session.
    #[error("{0}")]
    NotFound(String),
    /// `ALREADY_EXISTS`: an entry with this key, or a member, group or session with this id, exists.
    #[error("{0}")]
    AlreadyExists(String),
    /// `INVALID_ARGUMENT`: wrong width, kind, number of fields or parameters, index out of range.
    #[error("{0}")]
    InvalidArgument(String),
    /// `RESOURCE_EXHAUSTED`: a table, profile or group is full.
    #[error("{0}")]
    ResourceExhausted(String),
    /// `PERMISSION_DENIED`: the object is constant.
    #[error("{0}")]
    PermissionDenied(String),
    /// `FAILED_PRECONDITION`: the object is in use, for instance a member in a group.
    #[error("{0}")]
    FailedPrecondition(String),
    /// `UNIMPLEMENTED`: the object does not have what is asked for.
    #[error("{0}")]
    Unimplemented(String),
}
