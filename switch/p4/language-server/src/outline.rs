//! A file as a whole: its outline, the kinds of its words, the values of its constants.

use std::collections::HashMap;

use fairlane_compiler::index::{Definition, Kind};
use fairlane_syntax::ast::{FileId, Span};
use fairlane_syntax::token::{is_keyword, Punct, TokenKind};
use serde_json::{json, Value};

use crate::names::kind_name;
use crate::program::Program;

/// The values of `SymbolKind`.
fn symbol_kind(kind: Kind) -> u32 {
    match kind {
        Kind::Method => 6,
        Kind::Field => 8,
        Kind::Constructor => 9,
        Kind::Enum => 10,
        Kind::BlockType => 11,
        Kind::Function | Kind::Action => 12,
        Kind::Variable | Kind::Parameter | Kind::Instance | Kind::ValueSet => 13,
        Kind::Constant => 14,
        Kind::EnumMember | Kind::Error | Kind::MatchKind => 22,
        Kind::Header | Kind::HeaderUnion | Kind::Struct => 23,
        Kind::State => 24,
        Kind::Typedef | Kind::TypeParameter => 26,
        Kind::Extern | Kind::Table | Kind::Parser | Kind::Control | Kind::Package => 5,
    }
}

/// The declarations of a file, those inside others below them.
pub(crate) fn symbols(program: &Program, file: FileId) -> Value {
    let shown = |d: &Definition| {
        let local = matches!(d.kind, Kind::Parameter | Kind::TypeParameter)
            || (d.kind == Kind::Variable && d.container.is_some_and(|of| program.definition(of).kind == Kind::Action));
        d.span.file == file && !local && program.shows(d.span, &d.name)
    };
    let mut children: HashMap<Option<usize>, Vec<usize>> = HashMap::new();
    for (id, d) in program.index().definitions.iter().enumerate().filter(|(_, d)| shown(d)) {
        let container = d.container.filter(|of| shown(program.definition(*of)));
        children.entry(container).or_default().push(id);
    }
    fn below(program: &Program, children: &HashMap<Option<usize>, Vec<usize>>, of: Option<usize>) -> Vec<Value> {
        let ids = children.get(&of).map_or(&[][..], Vec::as_slice);
        ids.iter().map(|id| symbol(program, *id, below(program, children, Some(*id)))).collect()
    }
    Value::Array(below(program, &children, None))
}

fn symbol(program: &Program, id: usize, children: Vec<Value>) -> Value {
    let d = program.definition(id);
    let holds = d.whole.file == d.span.file && d.whole.start <= d.span.start && d.span.end <= d.whole.end;
    let whole = if holds { d.whole } else { d.span };
    json!({
        "name": d.name.to_string(), "detail": d.ty.clone().unwrap_or_else(|| kind_name(d.kind).0.to_string()), "kind": symbol_kind(d.kind),
        "range": program.range(whole), "selectionRange": program.range(d.span), "children": children,
    })
}

/// The types of semantic tokens, by their place in this list.
pub(crate) const TOKEN_TYPES: &[&str] = &[
    "type",
    "struct",
    "enum",
    "enumMember",
    "class",
    "parameter",
    "variable",
    "property",
    "function",
    "method",
    "macro",
    "keyword",
    "string",
    "number",
    "typeParameter",
    "decorator",
    "event",
];
/// Their modifiers, by bits.
pub(crate) const TOKEN_MODIFIERS: &[&str] = &["declaration", "readonly"];

fn token_type(kind: Kind) -> &'static str {
    match kind {
        Kind::Header | Kind::HeaderUnion | Kind::Struct => "struct",
        Kind::Enum => "enum",
        Kind::EnumMember | Kind::Error | Kind::MatchKind => "enumMember",
        Kind::Extern | Kind::Parser | Kind::Control | Kind::BlockType | Kind::Package | Kind::Table => "class",
        Kind::Parameter => "parameter",
        Kind::Constant | Kind::Variable | Kind::Instance | Kind::ValueSet => "variable",
        Kind::Field => "property",
        Kind::Function | Kind::Action => "function",
        Kind::Method | Kind::Constructor => "method",
        Kind::Typedef => "type",
        Kind::TypeParameter => "typeParameter",
        Kind::State => "event",
    }
}

/// What each word of a file is, in the protocol's relative numbers.
pub(crate) fn semantic_tokens(program: &Program, file: FileId) -> Value {
    let mut known: HashMap<u32, (Kind, bool)> = HashMap::new();
    for (span, id) in program.index().uses.iter().filter(|(span, _)| span.file == file) {
        let definition = program.definition(*id);
        if program.shows(*span, &definition.name) {
            known.entry(span.start).or_insert((definition.kind, false));
        }
    }
    for d in program.index().definitions.iter().filter(|d| d.span.file == file && program.shows(d.span, &d.name)) {
        known.insert(d.span.start, (d.kind, true));
    }
    let macros = macros(program);
    let mut data: Vec<usize> = Vec::new();
    let mut last = (0, 0);
    let (text, Some(lines)) = (program.text(file), program.lines(file)) else { return Value::Null };
    let tokens = program.tokens(file);
    for (i, token) in tokens.iter().enumerate() {
        let before = i.checked_sub(1).map(|b| &tokens[b]);
        let (name, modifiers) = match token.kind {
            TokenKind::Number => ("number", 0),
            TokenKind::String if !token.text.contains('\n') => ("string", 0),
            TokenKind::Word => match known.get(&token.span.start) {
                _ if before.is_some_and(|b| b.is(Punct::At)) => ("decorator", 0),
                Some((kind, declared)) => (token_type(*kind), usize::from(*declared) | if *kind == Kind::Constant { 2 } else { 0 }),
                None if macros.contains(&&*token.text) => ("macro", 0),
                None if is_keyword(&token.text) && &*token.text != "_" => ("keyword", 0),
                None if matches!(&*token.text, "apply" | "actions" | "key" | "entries" | "state" | "default_action" | "type" | "list") => {
                    ("keyword", 0)
                }
                None => continue,
            },
            _ => continue,
        };
        let (line, character) = lines.position(text, token.span.start as usize);
        let length = text.get(token.span.start as usize..token.span.end as usize).unwrap_or("").encode_utf16().count();
        let kind = TOKEN_TYPES.iter().position(|known| *known == name).unwrap_or(0);
        let character_from = if line == last.0 { character - last.1 } else { character };
        data.extend([line - last.0, character_from, length, kind, modifiers]);
        last = (line, character);
    }
    json!({ "data": data })
}

/// The names of all macros of the program's files.
fn macros(program: &Program) -> std::collections::HashSet<&str> {
    let files = program.analysis.sources.files();
    let defined = (0..files.len()).flat_map(|i| program.tokens(FileId(i as u32)).windows(3));
    defined.filter(|w| w[0].is(Punct::Hash) && w[0].line_start && w[1].is_word("define")).map(|w| &*w[2].text).collect()
}

/// The values of constants where they are used, between two places.
pub(crate) fn hints(program: &Program, file: FileId, from: u32, to: u32) -> Value {
    let inside = |span: &Span| span.file == file && from <= span.start && span.end <= to;
    let uses = program.index().uses.iter().filter(|(span, _)| inside(span));
    let hint = |(span, id): &(Span, usize)| {
        let definition = program.definition(*id);
        let value = definition.value.as_ref().filter(|_| program.shows(*span, &definition.name))?;
        let text = match value.parse::<u128>() {
            Ok(number) if number > 9 => format!("= 0x{number:x}"),
            _ => format!("= {value}"),
        };
        let end = &program.range(*span)["end"];
        Some(json!({ "position": end, "label": text, "paddingLeft": true }))
    };
    Value::Array(uses.filter_map(hint).collect())
}
