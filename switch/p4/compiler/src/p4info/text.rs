//! Protobuf's text format, as far as P4Info needs it. Fields at their default value are left out, as protobuf's own printer does.

use std::fmt::{Display, Write};

/// A text under construction.
#[derive(Debug, Default)]
pub(super) struct Text {
    out: String,
    depth: usize,
}

impl Text {
    pub fn finish(self) -> String {
        self.out
    }

    /// A line as it is, at the current depth.
    pub fn line(&mut self, line: impl Display) {
        let _ = writeln!(self.out, "{:1$}{line}", "", 2 * self.depth);
    }

    /// Begins a message.
    pub fn open(&mut self, name: &str) {
        self.line(format_args!("{name} {{"));
        self.depth += 1;
    }

    /// Ends a message.
    pub fn close(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        self.line("}");
    }

    /// A string field.
    pub fn string(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            self.repeated_string(name, value);
        }
    }

    /// One element of a repeated string field, or one of a `oneof`; written even when empty.
    pub fn repeated_string(&mut self, name: &str, value: &str) {
        self.bytes(name, value.as_bytes());
    }

    /// A field of bytes.
    pub fn bytes(&mut self, name: &str, value: &[u8]) {
        let escaped: String = value.iter().map(|byte| escape(*byte)).collect();
        self.line(format_args!("{name}: \"{escaped}\""));
    }

    /// An integer field.
    pub fn number<N: Display + Default + PartialEq>(&mut self, name: &str, value: N) {
        if value != N::default() {
            self.line(format_args!("{name}: {value}"));
        }
    }

    /// A `bool` field.
    pub fn flag(&mut self, name: &str, value: bool) {
        if value {
            self.line(format_args!("{name}: true"));
        }
    }

    /// An enum field; the caller leaves the default out.
    pub fn word(&mut self, name: &str, value: &str) {
        self.line(format_args!("{name}: {value}"));
    }
}

/// As protobuf's `CEscape`: octal for what has no letter.
fn escape(byte: u8) -> String {
    match byte {
        b'\n' => "\\n".into(),
        b'\r' => "\\r".into(),
        b'\t' => "\\t".into(),
        b'"' => "\\\"".into(),
        b'\'' => "\\'".into(),
        b'\\' => "\\\\".into(),
        0x20..=0x7e => char::from(byte).to_string(),
        _ => format!("\\{byte:03o}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_defaults_out_and_escapes() {
        let mut text = Text::default();
        text.open("a");
        text.number("zero", 0u32);
        text.number("n", 7u32);
        text.flag("off", false);
        text.string("empty", "");
        text.string("s", "é\"\\\u{1}");
        text.bytes("b", &[0, 10, 0xe9, b'0']);
        text.close();
        assert_eq!(text.finish(), "a {\n  n: 7\n  s: \"\\303\\251\\\"\\\\\\001\"\n  b: \"\\000\\n\\3510\"\n}\n");
    }
}
