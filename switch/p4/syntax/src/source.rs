//! The files of one compilation, and the way from a span back to file, line and column.

use std::sync::Arc;

use crate::span::{FileId, Span};

/// All files that one compilation has read, in the order of reading.
#[derive(Debug, Clone, Default)]
pub struct SourceMap {
    files: Vec<SourceFile>,
}

/// One file.
#[derive(Debug, Clone)]
pub struct SourceFile {
    /// The path as the user or an `#include` gave it; a built-in file is `<core.p4>`.
    pub name: String,
    /// The whole text.
    pub text: Arc<str>,
    /// The `#include` that brought the file in; `None` for the file that the user named.
    pub included_from: Option<Span>,
    line_starts: Vec<u32>,
    /// `#line` directives: from this byte on, the line numbers and the name to show.
    renumbered: Vec<Renumbering>,
}

#[derive(Debug, Clone)]
struct Renumbering {
    /// The first byte of the line after the directive.
    start: u32,
    line: u32,
    name: Option<String>,
}

/// A place as shown to people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The file's name, `#line` directives obeyed.
    pub file: String,
    /// The line, from 1, `#line` directives obeyed.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
}

impl SourceMap {
    /// Adds a file. Text beyond 4 GiB cannot be addressed and is refused by the caller.
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<Arc<str>>, included_from: Option<Span>) -> FileId {
        let text: Arc<str> = text.into();
        let mut line_starts = vec![0];
        line_starts.extend(text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(i, _)| i as u32 + 1));
        self.files.push(SourceFile { name: name.into(), text, included_from, line_starts, renumbered: Vec::new() });
        FileId(self.files.len() as u32 - 1)
    }

    /// The file with this id, or `None` when it is of another map.
    pub fn file(&self, id: FileId) -> Option<&SourceFile> {
        self.files.get(id.0 as usize)
    }

    /// All files in the order of reading.
    pub fn files(&self) -> &[SourceFile] {
        &self.files
    }

    /// Where a span begins.
    pub fn location(&self, span: Span) -> Location {
        let Some(file) = self.file(span.file) else {
            return Location { file: "<unknown>".into(), line: 0, column: 0 };
        };
        let physical = file.line_index(span.start);
        let line_start = file.line_starts[physical] as usize;
        let offset = floor_char_boundary(&file.text, span.start as usize);
        let column = file.text[line_start.min(offset)..offset].chars().count() as u32 + 1;
        let mut line = physical as u32 + 1;
        let mut name = &file.name;
        if let Some(marker) = file.renumbered.iter().rev().find(|marker| marker.start <= span.start) {
            let marker_line = file.line_index(marker.start) as u32 + 1;
            line = marker.line.saturating_add(line.saturating_sub(marker_line));
            name = marker.name.as_ref().unwrap_or(name);
        }
        Location { file: name.clone(), line, column }
    }

    /// The text of a span; empty when the span does not fit its file.
    pub fn text(&self, span: Span) -> &str {
        self.file(span.file).and_then(|file| file.text.get(span.start as usize..span.end as usize)).unwrap_or("")
    }

    /// The physical line in which a span begins, without its line end.
    pub fn line_text(&self, span: Span) -> &str {
        let Some(file) = self.file(span.file) else { return "" };
        let start = file.line_starts[file.line_index(span.start)] as usize;
        let rest = &file.text[start.min(file.text.len())..];
        rest.split('\n').next().unwrap_or("").trim_end_matches('\r')
    }

    /// From byte `start` of `file` on, lines count from `line` and belong to `name` (`#line`).
    pub(crate) fn renumber(&mut self, file: FileId, start: u32, line: u32, name: Option<String>) {
        if let Some(file) = self.files.get_mut(file.0 as usize) {
            file.renumbered.push(Renumbering { start, line, name });
        }
    }
}

impl SourceFile {
    /// The index from 0 of the line that holds byte `offset`.
    fn line_index(&self, offset: u32) -> usize {
        self.line_starts.partition_point(|start| *start <= offset).saturating_sub(1)
    }
}

fn floor_char_boundary(text: &str, offset: usize) -> usize {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_count_lines_and_characters_from_one() {
        let mut map = SourceMap::default();
        let file = map.add("a.p4", "ab\ncöd\n", None);
        let at = |start| map.location(Span::new(file, start, start));
        assert_eq!((at(0).line, at(0).column), (1, 1));
        assert_eq!((at(3).line, at(3).column), (2, 1));
        assert_eq!((at(6).line, at(6).column), (2, 3));
        assert_eq!(at(100).line, 3);
        assert_eq!(map.line_text(Span::new(file, 5, 6)), "cöd");
    }

    #[test]
    fn line_directives_renumber_what_follows() {
        let mut map = SourceMap::default();
        let file = map.add("a.p4", "x\n#line 10\ny\nz\n", None);
        map.renumber(file, 11, 10, Some("b.p4".into()));
        let z = map.location(Span::new(file, 13, 14));
        assert_eq!((z.file.as_str(), z.line), ("b.p4", 11));
        assert_eq!(map.location(Span::new(file, 0, 1)).line, 1);
    }
}
