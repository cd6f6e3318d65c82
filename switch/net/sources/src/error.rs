//! Errors in parameters.

/// A parameter that cannot be: the key at fault, what was given, and the way out.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ParameterError {
    #[error("`{key}` = {given} is not possible: {hint}")]
    Value { key: String, given: String, hint: &'static str },
    /// The text is not TOML, or a key is missing, unknown or of the wrong type; the message says where.
    #[error("{file}: {message}")]
    Text { file: String, message: String },
}

impl ParameterError {
    pub(crate) fn value(key: impl Into<String>, given: impl ToString, hint: &'static str) -> Self {
        ParameterError::Value { key: key.into(), given: given.to_string(), hint }
    }
}

/// Refuses anything but a finite number above 0.
pub(crate) fn positive(key: &str, value: f64) -> Result<(), ParameterError> {
    if value.is_finite() && value > 0.0 {
        Ok(())
    } else {
        Err(ParameterError::value(key, value, "give a number above 0"))
    }
}
