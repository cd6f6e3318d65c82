//! Places in a text as the protocol counts them, and files as it names them.

use std::path::{Component, Path, PathBuf};

use serde_json::{json, Value};

/// The starts of a text's lines.
#[derive(Debug, Clone)]
pub(crate) struct Lines {
    starts: Vec<usize>,
}

impl Lines {
    pub fn new(text: &str) -> Lines {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(i, _)| i + 1);
        Lines { starts: std::iter::once(0).chain(ends).collect() }
    }

    /// Line and character from 0, characters in units of UTF-16.
    pub fn position(&self, text: &str, offset: usize) -> (usize, usize) {
        let mut offset = offset.min(text.len());
        while !text.is_char_boundary(offset) {
            offset -= 1;
        }
        let line = self.starts.partition_point(|start| *start <= offset) - 1;
        (line, text[self.starts[line]..offset].encode_utf16().count())
    }

    /// The byte of a place; beyond the end of its line or of the text, that end.
    pub fn offset(&self, text: &str, line: usize, character: usize) -> usize {
        let Some(start) = self.starts.get(line).copied() else { return text.len() };
        let end = self.starts.get(line + 1).map_or(text.len(), |next| next - 1);
        let mut units = 0;
        for (i, c) in text[start..end].char_indices() {
            if units >= character {
                return start + i;
            }
            units += c.len_utf16();
        }
        end
    }

    /// `{start, end}`
    pub fn range(&self, text: &str, start: usize, end: usize) -> Value {
        let place = |offset| {
            let (line, character) = self.position(text, offset);
            json!({ "line": line, "character": character })
        };
        json!({ "start": place(start), "end": place(end.max(start)) })
    }

    /// The line that holds a byte, and where it begins.
    pub fn line(&self, offset: usize) -> (usize, usize) {
        let line = self.starts.partition_point(|start| *start <= offset) - 1;
        (line, self.starts[line])
    }
}

/// The path that a `file:` URI names.
pub(crate) fn path(uri: &str) -> Option<PathBuf> {
    let rest = uri.strip_prefix("file://")?;
    // After the host, which is empty or this machine.
    let rest = &rest[rest.find('/')?..];
    let mut bytes = Vec::new();
    let mut left = rest.bytes();
    while let Some(byte) = left.next() {
        let digits: Option<(u8, u8)> = (byte == b'%').then(|| Some((left.next()?, left.next()?))).flatten();
        match digits {
            Some((high, low)) => {
                let text = [high, low];
                bytes.push(u8::from_str_radix(std::str::from_utf8(&text).ok()?, 16).ok()?);
            }
            None if byte == b'%' => return None,
            None => bytes.push(byte),
        }
    }
    let text = String::from_utf8(bytes).ok()?;
    let drive = cfg!(windows) && text.as_bytes().get(2) == Some(&b':');
    Some(normal(Path::new(if drive { &text[1..] } else { &text })))
}

/// The URI of a path.
pub(crate) fn uri(path: &Path) -> String {
    let mut out = String::from("file://");
    let text = fairlane_syntax::shown(path);
    if !text.starts_with('/') {
        out.push('/');
    }
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => out.push(byte as char),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// The path without `.` and `..`, by its words alone.
pub(crate) fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            part => out.push(part),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_utf16() {
        let text = "a\n\u{1f600}x\u{e9}y\r\n";
        let lines = Lines::new(text);
        let at = text.find('y').expect("there");
        assert_eq!(lines.position(text, at), (1, 4));
        assert_eq!(lines.offset(text, 1, 4), at);
        assert_eq!(lines.offset(text, 1, 99), text.len() - 1);
        assert_eq!(lines.offset(text, 9, 0), text.len());
    }

    #[test]
    fn uris_name_paths_and_back() {
        for name in ["/a b/\u{e9}%.p4", "/x.p4"] {
            assert_eq!(path(&uri(Path::new(name))), Some(PathBuf::from(name)));
        }
        assert_eq!(path("file:///a/%zz"), None);
        assert_eq!(path("untitled:1"), None);
        assert_eq!(normal(Path::new("/a/./b/../c")), PathBuf::from("/a/c"));
    }
}
