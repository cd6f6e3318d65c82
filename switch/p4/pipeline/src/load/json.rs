//! A cursor over JSON that knows its own path, so that every error can name where it is.

use num_bigint::{BigInt, Sign};
use serde_json::Value;

use crate::definition::Source;
use crate::error::LoadError;

pub type Result<T> = std::result::Result<T, LoadError>;

/// A JSON value and the path that led to it.
#[derive(Clone)]
pub struct Node<'a> {
    pub v: &'a Value,
    path: String,
}

impl<'a> Node<'a> {
    pub fn root(v: &'a Value) -> Node<'a> {
        Node { v, path: String::new() }
    }

    pub fn err(&self, message: impl Into<String>) -> LoadError {
        LoadError::new(self.path.clone(), message)
    }

    fn child(&self, key: &str, v: &'a Value) -> Node<'a> {
        let path = if self.path.is_empty() { key.to_string() } else { format!("{}.{key}", self.path) };
        Node { v, path }
    }

    /// The member `key`; an error when it is missing.
    pub fn get(&self, key: &str) -> Result<Node<'a>> {
        match self.v.get(key) {
            Some(v) => Ok(self.child(key, v)),
            None if self.v.is_object() => Err(self.err(format!("the attribute '{key}' is missing"))),
            None => Err(self.err(format!("expected an object with '{key}', found {}", kind(self.v)))),
        }
    }

    /// The member `key`, unless missing or null.
    pub fn opt(&self, key: &str) -> Option<Node<'a>> {
        self.v.get(key).filter(|v| !v.is_null()).map(|v| self.child(key, v))
    }

    /// Its number, which steps are logged by; 0 where the JSON gives none.
    pub fn id(&self) -> Result<i64> {
        self.opt("id").map_or(Ok(0), |id| id.int())
    }

    /// Its name, for messages; empty where the JSON gives none.
    pub fn name(&self) -> String {
        self.v.get("name").and_then(Value::as_str).unwrap_or_default().to_string()
    }

    /// Where it is in the P4 program, if the JSON says so.
    pub fn source(&self) -> Option<Source> {
        let info = self.v.get("source_info")?;
        let text = |key: &str| info.get(key).and_then(Value::as_str).unwrap_or_default().to_string();
        let number = |key: &str| info.get(key).and_then(Value::as_u64).unwrap_or(0);
        Some(Source { file: text("filename"), line: number("line"), column: number("column"), fragment: text("source_fragment") })
    }

    /// The items of an array.
    pub fn items(&self) -> Result<Vec<Node<'a>>> {
        let items = self.v.as_array().ok_or_else(|| self.err(format!("expected an array, found {}", kind(self.v))))?;
        Ok(items.iter().enumerate().map(|(i, v)| Node { v, path: format!("{}[{i}]", self.path) }).collect())
    }

    /// The items of the array `key`; none when it is missing.
    pub fn list(&self, key: &str) -> Result<Vec<Node<'a>>> {
        self.opt(key).map_or(Ok(Vec::new()), |n| n.items())
    }

    /// The items of an array of `n` items.
    pub fn tuple(&self, n: usize) -> Result<Vec<Node<'a>>> {
        let items = self.items()?;
        if items.len() != n {
            return Err(self.err(format!("expected {n} items, found {}", items.len())));
        }
        Ok(items)
    }

    pub fn str(&self) -> Result<&'a str> {
        self.v.as_str().ok_or_else(|| self.err(format!("expected a string, found {}", kind(self.v))))
    }

    pub fn int(&self) -> Result<i64> {
        self.v.as_i64().ok_or_else(|| self.err(format!("expected an integer, found {}", kind(self.v))))
    }

    /// An integer in `0..=max`.
    pub fn uint(&self, max: u64) -> Result<u64> {
        let v = self.v.as_u64().ok_or_else(|| self.err(format!("expected a non-negative integer, found {}", self.v)))?;
        if v > max {
            return Err(self.err(format!("{v} is too large, at most {max} is possible")));
        }
        Ok(v)
    }

    /// A truth value; like jsoncpp, a number that is not 0 is true.
    pub fn bool(&self) -> Result<bool> {
        self.v
            .as_bool()
            .or_else(|| self.v.as_i64().map(|n| n != 0))
            .ok_or_else(|| self.err(format!("expected true or false, found {}", kind(self.v))))
    }

    /// The member `key` as a truth value; `default` when missing.
    pub fn flag(&self, key: &str, default: bool) -> Result<bool> {
        self.opt(key).map_or(Ok(default), |n| n.bool())
    }

    /// A hexadecimal string, with optional sign and `0x`.
    pub fn hex(&self) -> Result<BigInt> {
        let text = self.str()?;
        let (sign, digits) = match text.strip_prefix('-') {
            Some(rest) => (Sign::Minus, rest),
            None => (Sign::Plus, text),
        };
        let digits = digits.strip_prefix("0x").unwrap_or(digits);
        if digits.len() > 16384 || digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(self.err(format!("'{}' is not a hexadecimal number", shorten(text))));
        }
        let magnitude = num_bigint::BigUint::parse_bytes(digits.as_bytes(), 16)
            .ok_or_else(|| self.err(format!("'{}' is not a hexadecimal number", shorten(text))))?;
        Ok(BigInt::from_biguint(sign, magnitude))
    }

    /// A hexadecimal string that is not negative and fits `width` bits, as a control-plane value.
    pub fn hex_value(&self, width: u32) -> Result<crate::Value> {
        let v = self.hex()?;
        let (sign, bytes) = v.to_bytes_be();
        let value = crate::Value::from_be_bytes(&bytes);
        if sign == Sign::Minus || value.bit_len() > width {
            return Err(self
                .err(format!("{} does not fit {width} bits", self.str().map(shorten).unwrap_or_default()))
                .hint("the width is that of the field or parameter it is for"));
        }
        Ok(value)
    }
}

fn kind(v: &Value) -> &'static str {
    match v {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Cuts text for an error message.
pub fn shorten(text: &str) -> String {
    if text.chars().count() <= 40 {
        text.to_string()
    } else {
        text.chars().take(37).chain("...".chars()).collect()
    }
}
