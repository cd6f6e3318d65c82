//! The compiler's messages as an editor shows them, and the fixes that they name.

use std::collections::BTreeMap;
use std::path::PathBuf;

use fairlane_syntax::ast::{FileId, Span};
use fairlane_syntax::{Code, Diagnostic, Severity};
use serde_json::{json, Value};

use crate::program::Program;
use crate::text::uri;

/// The messages of a program by file. `part`: the file is no program of its own, and what its names mean is declared elsewhere.
pub(crate) fn messages(program: &Program, part: bool) -> BTreeMap<PathBuf, Vec<Value>> {
    let mut out: BTreeMap<PathBuf, Vec<Value>> = BTreeMap::new();
    for message in program.analysis.diagnostics.iter() {
        if part && elsewhere(message.code) {
            continue;
        }
        let start = Span::new(FileId(0), 0, 0);
        let Some((path, span)) = shown(program, message.span.unwrap_or(start)) else { continue };
        let list = out.entry(path).or_default();
        let value = one(program, message, span);
        // A file that is included twice has each message twice.
        if !list.contains(&value) {
            list.push(value);
        }
    }
    out
}

/// Messages about a file that is a part of no program that is known.
fn elsewhere(code: Code) -> bool {
    matches!(code, Code::NoMain | Code::UndeclaredName | Code::Unused | Code::MissingInclude)
}

/// The place in a file that the user has: for one that is built in, where it is included.
fn shown(program: &Program, span: Span) -> Option<(PathBuf, Span)> {
    let mut span = span;
    for _ in 0..64 {
        if let Some(path) = program.path(span.file) {
            return Some((path.to_owned(), span));
        }
        span = program.analysis.sources.file(span.file)?.included_from?;
    }
    None
}

fn one(program: &Program, message: &Diagnostic, span: Span) -> Value {
    let severity = match message.severity {
        Severity::Error => 1,
        Severity::Warning => 2,
        Severity::Info => 3,
    };
    let mut text = message.message.clone();
    if let Some(rule) = &message.rule {
        text.push_str(&format!("\nP4_16 specification {rule}"));
    }
    if let Some(help) = &message.help {
        text.push_str(&format!("\nhelp: {help}"));
    }
    let mut related = Vec::new();
    for (place, note) in &message.notes {
        match place.and_then(|place| program.location(place)) {
            Some(location) => related.push(json!({ "location": location, "message": note })),
            None => text.push_str(&format!("\nnote: {note}")),
        }
    }
    let tags: &[u32] = match message.code {
        Code::Unused => &[1],
        Code::Deprecated => &[2],
        _ => &[],
    };
    json!({
        "range": program.range(span), "severity": severity, "code": message.code.name(), "source": "fairlane", "message": text,
        "relatedInformation": related, "tags": tags,
    })
}

/// The fixes that messages in a range name.
pub(crate) fn fixes(program: &Program, file: FileId, from: u32, to: u32) -> Value {
    let path = program.path(file);
    let mut out = Vec::new();
    for message in program.analysis.diagnostics.iter() {
        let Some(span) = message.span.filter(|span| program.path(span.file) == path && span.start <= to && from <= span.end) else {
            continue;
        };
        let meant = message.help.as_deref().and_then(|help| help.strip_prefix("did you mean `")?.split_once('`'));
        let (Some((meant, _)), Some(path)) = (meant, path) else { continue };
        let edit = json!({ "range": program.range(span), "newText": meant });
        out.push(json!({
            "title": format!("Replace it by `{meant}`"), "kind": "quickfix", "isPreferred": true,
            "diagnostics": [one(program, message, span)], "edit": { "changes": { uri(path): [edit] } },
        }));
    }
    Value::Array(out)
}
