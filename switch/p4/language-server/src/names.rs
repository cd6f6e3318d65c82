//! What a name is: hover, definition, references, rename.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use fairlane_compiler::index::{Definition, Kind};
use fairlane_compiler::Options;
use fairlane_syntax::ast::{Direction, FileId, Span};
use fairlane_syntax::token::{is_keyword, TokenKind};
use serde_json::{json, Map, Value};

use crate::program::{Open, Program};
use crate::text::uri;

/// What a declaration is called, and the section of the P4_16 specification about it.
pub(crate) fn kind_name(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Constant => ("constant", "11.1"),
        Kind::Variable => ("variable", "11.2"),
        Kind::Instance => ("instance", "11.3"),
        Kind::Header => ("header", "7.2.2"),
        Kind::HeaderUnion => ("header union", "7.2.5"),
        Kind::Struct => ("struct", "7.2.6"),
        Kind::Enum => ("enum", "7.2.1"),
        Kind::EnumMember => ("member of an enum", "7.2.1"),
        Kind::Error => ("error", "7.1.2"),
        Kind::MatchKind => ("match kind", "7.1.3"),
        Kind::Typedef => ("name of a type", "7.5"),
        Kind::Extern => ("extern object", "7.2.11"),
        Kind::Constructor => ("constructor", "7.2.11"),
        Kind::Method => ("method", "7.2.11"),
        Kind::Function => ("function", "10"),
        Kind::Action => ("action", "14.1"),
        Kind::Table => ("table", "14.2"),
        Kind::ValueSet => ("value set", "13.11"),
        Kind::Parser => ("parser", "13"),
        Kind::Control => ("control", "14"),
        Kind::BlockType => ("type of a parser or control", "7.2.13"),
        Kind::Package => ("package", "7.2.14"),
        Kind::Parameter => ("parameter", "6.8"),
        Kind::TypeParameter => ("type parameter", "7.2"),
        Kind::Field => ("field", "7.2"),
        Kind::State => ("state of a parser", "13.4"),
    }
}

/// The declaration in a few lines: a block without its body.
pub(crate) fn signature(program: &Program, definition: &Definition) -> String {
    let text = program.analysis.sources.text(definition.whole);
    let short = matches!(definition.kind, Kind::Table | Kind::Header | Kind::HeaderUnion | Kind::Struct | Kind::Enum | Kind::Constant)
        && text.lines().count() <= 20;
    let head = if short { text } else { text.split('{').next().unwrap_or(text) };
    let head = head.trim().trim_end_matches(';').trim_end();
    match definition.kind {
        _ if head.is_empty() || head.lines().count() > 20 => definition.name.to_string(),
        _ => outdent(head),
    }
}

/// Lines after the first, without the blanks that they have in common.
fn outdent(text: &str) -> String {
    let blanks = |line: &str| line.len() - line.trim_start().len();
    let common = text.lines().skip(1).filter(|line| !line.trim().is_empty()).map(blanks).min().unwrap_or(0);
    let lines: Vec<&str> = text.lines().enumerate().map(|(i, line)| if i == 0 { line } else { line.get(common..).unwrap_or("") }).collect();
    lines.join("\n")
}

pub(crate) fn hover(program: &Program, file: FileId, offset: u32) -> Option<Value> {
    let word = program.word(file, offset);
    if let Some((span, id)) = program.named(file, offset) {
        return Some(json!({ "contents": markdown(&described(program, id)), "range": program.range(span) }));
    }
    let word = word?;
    let span = Span { file, ..word.span };
    let defined = program.macro_named(&word.text)?;
    let text = program.text(defined.file);
    let (_, start) = program.lines(defined.file)?.line(defined.start as usize);
    let mut line = String::new();
    for part in text[start..].lines() {
        line.push_str(part);
        if !part.ends_with('\\') {
            break;
        }
        line.push('\n');
    }
    Some(json!({ "contents": markdown(&format!("```p4\n{line}\n```\nmacro")), "range": program.range(span) }))
}

fn markdown(text: &str) -> Value {
    json!({ "kind": "markdown", "value": text })
}

/// A declaration in Markdown.
pub(crate) fn described(program: &Program, id: usize) -> String {
    let definition = program.definition(id);
    let mut head = signature(program, definition);
    if matches!(definition.kind, Kind::EnumMember | Kind::Error)
        && let Some(of) = definition.container
    {
        head = format!("{}.{}", program.definition(of).name, definition.name);
    }
    let mut out = String::from("```p4\n");
    for annotation in &definition.annotations {
        out.push_str(program.analysis.sources.text(*annotation).trim());
        out.push('\n');
    }
    out.push_str(&head);
    out.push_str("\n```\n");
    let (what, section) = kind_name(definition.kind);
    let direction = match definition.direction {
        Direction::None => "",
        Direction::In => "`in` ",
        Direction::Out => "`out` ",
        Direction::InOut => "`inout` ",
    };
    out.push_str(&format!("{direction}{what}"));
    if let Some(of) = definition.container.map(|of| program.definition(of)) {
        out.push_str(&format!(" of `{}`", of.name));
    }
    if let Some(ty) = &definition.ty {
        out.push_str(&format!(", type `{ty}`"));
    }
    let shape = matches!(definition.kind, Kind::Header | Kind::Struct);
    let width = if shape { width_of_parts(program, id) } else { definition.width };
    if let Some(width) = width {
        out.push_str(&format!(", {width} bit{}", if width == 1 { "" } else { "s" }));
        if shape && width % 8 == 0 {
            out.push_str(&format!(" ({} bytes)", width / 8));
        }
    }
    if let Some(value) = &definition.value {
        out.push_str(&format!(", value {value}"));
        if let Ok(number) = value.parse::<u128>() {
            out.push_str(&format!(" (0x{number:x})"));
        }
    }
    out.push_str(&format!("  \nP4_16 specification, section {section}\n"));
    if let Some(comment) = comment_above(program, definition) {
        out.push_str("\n---\n");
        out.push_str(&comment);
    }
    out
}

fn width_of_parts(program: &Program, id: usize) -> Option<u64> {
    let mut fields = program.index().parts(id).filter(|(_, part)| part.kind == Kind::Field).peekable();
    fields.peek()?;
    fields.try_fold(0u64, |sum, (_, field)| sum.checked_add(field.width?))
}

/// The comment right above a declaration.
fn comment_above(program: &Program, definition: &Definition) -> Option<String> {
    let first = definition.annotations.iter().map(|a| a.start).filter(|start| *start < definition.whole.start).min();
    let start = first.unwrap_or(definition.whole.start) as usize;
    let text = program.text(definition.whole.file);
    let (line, _) = program.lines(definition.whole.file)?.line(start);
    let above: Vec<&str> = text.lines().take(line).collect();
    let mut comment: Vec<&str> = Vec::new();
    if above.last().is_some_and(|last| last.trim_end().ends_with("*/")) {
        for line in above.iter().rev().take(40) {
            comment.push(line.trim());
            if line.contains("/*") {
                break;
            }
        }
        comment.last().filter(|first| first.starts_with("/*"))?;
    } else {
        comment.extend(above.iter().rev().take(40).map(|line| line.trim()).take_while(|line| line.starts_with("//")));
    }
    comment.reverse();
    let plain = |line: &str| line.trim_start_matches(['/', '*']).trim_end_matches(['/', '*']).trim().to_string();
    let lines: Vec<String> = comment.iter().map(|line| plain(line)).filter(|line| !line.is_empty()).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

pub(crate) fn definition(program: &Program, file: FileId, offset: u32) -> Option<Value> {
    if let Some((_, id)) = program.named(file, offset) {
        return program.location(program.definition(id).span);
    }
    if let Some(included) = program.included(file, offset) {
        return program.location(Span::new(included, 0, 0));
    }
    program.location(program.macro_named(&program.word(file, offset)?.text)?)
}

/// The places of a definition that show its name, its declaration first. Files that are included twice count once.
fn places(program: &Program, id: usize, declaration: bool) -> Vec<Span> {
    let definition = program.definition(id);
    let mut out: Vec<Span> = declaration.then_some(definition.span).into_iter().chain(program.index().uses_of(id)).collect();
    out.retain(|span| program.shows(*span, &definition.name));
    out
}

pub(crate) fn references(program: &Program, file: FileId, offset: u32, declaration: bool) -> Option<Value> {
    let (_, id) = program.named(file, offset)?;
    let found: Vec<Value> = places(program, id, declaration).into_iter().filter_map(|span| program.location(span)).collect();
    Some(Value::Array(found))
}

/// The places in the same file.
pub(crate) fn highlights(program: &Program, file: FileId, offset: u32) -> Option<Value> {
    let (_, id) = program.named(file, offset)?;
    let here = places(program, id, true).into_iter().filter(|span| span.file == file);
    Some(here.map(|span| json!({ "range": program.range(span), "kind": 1 })).collect())
}

/// The range that a rename would replace.
pub(crate) fn renamed(program: &Program, file: FileId, offset: u32) -> Result<Value, String> {
    let (span, id) = program.named(file, offset).ok_or("there is no name of the program here")?;
    can_rename(program, id)?;
    Ok(json!({ "range": program.range(span), "placeholder": program.definition(id).name.to_string() }))
}

fn can_rename(program: &Program, id: usize) -> Result<(), String> {
    let definition = program.definition(id);
    if program.path(definition.span.file).is_none() {
        return Err(format!("`{}` is declared in a file that comes with the compiler", definition.name));
    }
    if !program.shows(definition.span, &definition.name) {
        return Err(format!("a macro declares `{}`", definition.name));
    }
    let all = std::iter::once(definition.span).chain(program.index().uses_of(id));
    for span in all {
        if !program.shows(span, &definition.name) {
            return Err(format!("a macro names `{}` at {}: rename it by hand", definition.name, shown_place(program, span)));
        }
    }
    Ok(())
}

fn shown_place(program: &Program, span: Span) -> String {
    let place = program.analysis.sources.location(span);
    format!("{}:{}", place.file, place.line)
}

/// The edits of a rename. It is refused where the program would be another: where the new name is taken, or text that is not compiled now
/// has the old one.
pub(crate) fn rename(
    program: &Program,
    file: FileId,
    offset: u32,
    new: &str,
    open: &HashMap<PathBuf, String>,
    options: &Options,
) -> Result<Value, String> {
    let (_, id) = program.named(file, offset).ok_or("there is no name of the program here")?;
    let starts = new.starts_with(|c: char| c == '_' || c.is_ascii_alphabetic());
    if !starts || !new.chars().all(|c| c == '_' || c.is_ascii_alphanumeric()) || is_keyword(new) {
        return Err(format!("`{new}` is no name"));
    }
    if program.macro_named(new).is_some() {
        return Err(format!("`{new}` is a macro"));
    }
    can_rename(program, id)?;
    let definition = program.definition(id);
    let spans = places(program, id, true);
    not_compiled(program, id, &spans)?;
    // By path, since a file may be included twice.
    let mut edits: BTreeMap<PathBuf, BTreeMap<u32, Span>> = BTreeMap::new();
    for span in &spans {
        let path =
            program.path(span.file).ok_or_else(|| format!("`{}` is used in a file that comes with the compiler", definition.name))?;
        edits.entry(path.to_owned()).or_default().insert(span.start, *span);
    }
    let mut changed = open.clone();
    let mut out = Map::new();
    for (path, places) in &edits {
        let Some(first) = places.values().next() else { continue };
        let mut text = program.text(first.file).to_string();
        for span in places.values().rev() {
            text.replace_range(span.start as usize..span.end as usize, new);
        }
        changed.insert(path.clone(), text);
        let list = places.values().map(|span| json!({ "range": program.range(*span), "newText": new })).collect();
        out.insert(uri(path), Value::Array(list));
    }
    let root = program.path(FileId(0)).ok_or("the program has no file")?;
    let after = Program::new(root, &changed, options);
    let same = after.index().uses.len() == program.index().uses.len()
        && after.index().definitions.len() == program.index().definitions.len()
        && after.index().uses.iter().zip(&program.index().uses).all(|(a, b)| a.1 == b.1)
        && after.analysis.diagnostics.error_count() == program.analysis.diagnostics.error_count();
    if !same {
        return Err(format!("`{new}` would hide or clash with another `{new}`"));
    }
    Ok(json!({ "changes": out }))
}

/// Refuses where the name stands in text that this program does not compile: the body of a macro, a branch of `#if`.
fn not_compiled(program: &Program, id: usize, spans: &[Span]) -> Result<(), String> {
    let name = &program.definition(id).name;
    for (file, path) in program.files() {
        for token in program.tokens(file).iter().filter(|token| token.kind == TokenKind::Word && token.text == *name) {
            let span = Span { file, ..token.span };
            let known = spans.iter().any(|other| other.start == span.start && program.path(other.file) == Some(path));
            if !known && program.index().at(file, span.start).is_none() {
                let place = shown_place(program, span);
                return Err(format!(
                    "`{name}` also stands at {place}, which is not compiled now (a macro, or a branch of `#if`): rename it by hand"
                ));
            }
        }
    }
    Ok(())
}

/// The files that a program reads, seen through open texts.
pub(crate) fn current(path: &std::path::Path, open: &HashMap<PathBuf, String>) -> Option<String> {
    use fairlane_syntax::Files as _;
    Open(open).read(path).ok()
}
