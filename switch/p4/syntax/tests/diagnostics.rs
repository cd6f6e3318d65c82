//! Each file of `tests/diagnostics` holds its expected messages, above the lines at fault:
//!
//! ```text
//! // error[code] at COLUMN: message
//! // warning[code] at COLUMN: message
//! ```

use std::path::Path;

use fairlane_syntax::{parse_file, Options, Severity};

type Expected = (u32, u32, String);

/// The messages that the comments of a file announce: line, column, text.
fn expected(text: &str) -> Vec<Expected> {
    let mut out = Vec::new();
    let mut waiting: Vec<(u32, String)> = Vec::new();
    for (number, line) in (1u32..).zip(text.lines()) {
        let comment = line.trim_start().strip_prefix("// ").unwrap_or("");
        let parts = comment.split_once(" at ").and_then(|(head, rest)| Some((head, rest.split_once(": ")?)));
        match parts {
            Some((head, (column, message))) if head.starts_with("error[") || head.starts_with("warning[") => {
                let column = column.parse().unwrap_or_else(|_| panic!("line {number}: `{column}` is no column"));
                waiting.push((column, format!("{head}: {message}")));
            }
            _ => out.extend(waiting.drain(..).map(|(column, text)| (number, column, text))),
        }
    }
    assert!(waiting.is_empty(), "expected messages below the last line");
    out
}

fn check(path: &Path) {
    let text = std::fs::read_to_string(path).expect("the file was just listed");
    let parsed = parse_file(path, &Options::default()).expect("the file was just read");
    let mut found: Vec<Expected> = parsed
        .diagnostics
        .iter()
        .map(|diagnostic| {
            let at = parsed.sources.location(diagnostic.span.expect("all messages here have a place"));
            let severity = if diagnostic.severity == Severity::Error { "error" } else { "warning" };
            (at.line, at.column, format!("{severity}[{}]: {}", diagnostic.code, diagnostic.message))
        })
        .collect();
    let mut expected = expected(&text);
    assert!(!expected.is_empty(), "{}: nothing is expected", path.display());
    expected.sort();
    found.sort();
    let rendered = parsed.diagnostics.render(&parsed.sources);
    assert_eq!(expected, found, "{}\n{rendered}", path.display());
    for diagnostic in parsed.diagnostics.iter() {
        assert!(!diagnostic.message.ends_with('.'), "a message has no full stop: {}", diagnostic.message);
    }
}

#[test]
fn messages_are_those_that_the_files_announce() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/diagnostics");
    let mut files: Vec<_> = std::fs::read_dir(folder).expect("the folder").map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "p4"));
    files.sort();
    assert!(files.len() >= 5);
    files.iter().for_each(|path| check(path));
}
