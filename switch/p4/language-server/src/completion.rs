//! Completion, and the parameters of the call being written.

use fairlane_compiler::index::{Definition, Kind};
use fairlane_syntax::ast::FileId;
use fairlane_syntax::token::{Punct, Token, TokenKind};
use fairlane_syntax::BUILT_IN_FILES;
use serde_json::{json, Value};

use crate::names::{described, kind_name, signature};
use crate::program::Program;

const KEYWORDS: &[&str] = &[
    "abstract",
    "action",
    "actions",
    "apply",
    "bit",
    "bool",
    "const",
    "control",
    "default",
    "else",
    "entries",
    "enum",
    "error",
    "exit",
    "extern",
    "false",
    "for",
    "header",
    "header_union",
    "if",
    "in",
    "inout",
    "int",
    "key",
    "match_kind",
    "out",
    "package",
    "parser",
    "return",
    "select",
    "state",
    "string",
    "struct",
    "switch",
    "table",
    "transition",
    "true",
    "tuple",
    "typedef",
    "value_set",
    "varbit",
    "void",
];
const DIRECTIVES: &[&str] = &["define", "elif", "else", "endif", "error", "if", "ifdef", "ifndef", "include", "pragma", "undef", "warning"];
const ANNOTATIONS: &[&str] = &[
    "name",
    "hidden",
    "tableonly",
    "defaultonly",
    "optional",
    "noWarn",
    "deprecated",
    "pure",
    "noSideEffects",
    "atomic",
    "format",
    "field_list",
    "id",
    "brief",
    "description",
    "p4runtime_translation",
    "controller_header",
    "diagnostic",
];
/// What values have without a declaration.
const OF_HEADERS: &[&str] = &["isValid", "setValid", "setInvalid", "minSizeInBits", "minSizeInBytes", "maxSizeInBits", "maxSizeInBytes"];
const OF_STACKS: &[&str] = &["next", "last", "lastIndex", "size", "push_front", "pop_front"];

/// The values of `CompletionItemKind`.
mod item {
    pub const METHOD: u32 = 2;
    pub const KEYWORD: u32 = 14;
    pub const FILE: u32 = 17;
}

fn item_kind(kind: Kind) -> u32 {
    match kind {
        Kind::Method => item::METHOD,
        Kind::Function | Kind::Action => 3,
        Kind::Constructor => 4,
        Kind::Field => 5,
        Kind::Variable | Kind::Parameter | Kind::Instance => 6,
        Kind::Extern | Kind::Table | Kind::Parser | Kind::Control | Kind::Package => 7,
        Kind::BlockType => 8,
        Kind::Enum => 13,
        Kind::EnumMember | Kind::Error | Kind::MatchKind => 20,
        Kind::Constant => 21,
        Kind::Header | Kind::HeaderUnion | Kind::Struct => 22,
        Kind::State => 23,
        Kind::Typedef | Kind::TypeParameter | Kind::ValueSet => 25,
    }
}

fn item(program: &Program, id: usize) -> Value {
    let definition = program.definition(id);
    let detail = definition.ty.clone().unwrap_or_else(|| kind_name(definition.kind).0.to_string());
    json!({
        "label": definition.name.to_string(), "kind": item_kind(definition.kind), "detail": detail,
        "documentation": { "kind": "markdown", "value": described(program, id) },
    })
}

fn word(label: &str, kind: u32) -> Value {
    json!({ "label": label, "kind": kind })
}

/// What can stand at a place.
pub(crate) fn completion(program: &Program, file: FileId, offset: u32) -> Value {
    let all = program.tokens(file);
    let inside = |token: &&Token| {
        matches!(token.kind, TokenKind::String | TokenKind::OpenString) && token.span.start < offset && offset < token.span.end
    };
    let mut before = &all[..all.partition_point(|token| token.span.end <= offset)];
    let line_start = before.iter().rposition(|token| token.line_start).unwrap_or(0);
    if before.get(line_start).is_some_and(|first| first.is(Punct::Hash)) {
        return directive(&before[line_start..]);
    }
    if all.iter().any(|token| inside(&token)) || in_comment(program, file, offset) {
        return json!([]);
    }
    // The word being written is no part of what decides.
    if before.last().is_some_and(|last| last.span.end == offset && matches!(last.kind, TokenKind::Word | TokenKind::Number)) {
        before = &before[..before.len() - 1];
    }
    let Some(last) = before.last() else { return everything(program, file, offset) };
    if last.is(Punct::Dot) {
        return Value::Array(members(program, file, offset, &before[..before.len() - 1]));
    }
    if last.is(Punct::At) {
        return ANNOTATIONS.iter().map(|name| word(name, item::KEYWORD)).collect();
    }
    if last.is_word("transition") || (last.is(Punct::Colon) && property(before).as_deref() == Some("select")) {
        let mut out: Vec<Value> = vec![word("accept", 23), word("reject", 23)];
        if last.is_word("transition") {
            out.push(word("select", item::KEYWORD));
        }
        let parser = enclosing(program, file, offset, Kind::Parser);
        let states = parser.into_iter().flat_map(|id| program.index().parts(id)).filter(|(_, d)| d.kind == Kind::State);
        out.extend(states.map(|(id, _)| item(program, id)));
        return Value::Array(out);
    }
    match property(before).as_deref() {
        Some("key") if last.is(Punct::Colon) => of_kind(program, |d| d.kind == Kind::MatchKind),
        Some("actions") => {
            let visible = visible(program, file, offset).filter(|id| program.definition(*id).kind == Kind::Action);
            visible.map(|id| item(program, id)).collect()
        }
        _ => everything(program, file, offset),
    }
}

fn in_comment(program: &Program, file: FileId, offset: u32) -> bool {
    let all = program.tokens(file);
    let next = all.partition_point(|token| token.span.end <= offset);
    let from = next.checked_sub(1).map_or(0, |i| all[i].span.end as usize);
    let gap = program.text(file).get(from..offset as usize).unwrap_or("");
    let line = gap.rsplit('\n').next().unwrap_or("");
    line.contains("//") || gap.rfind("/*").is_some_and(|open| !gap[open..].contains("*/"))
}

fn directive(line: &[Token]) -> Value {
    match line.get(1) {
        Some(name) if name.is_word("include") => BUILT_IN_FILES.iter().map(|(name, _)| word(name, item::FILE)).collect(),
        _ if line.len() <= 2 => DIRECTIVES.iter().map(|name| word(name, item::KEYWORD)).collect(),
        _ => json!([]),
    }
}

fn of_kind(program: &Program, wanted: impl Fn(&Definition) -> bool) -> Value {
    let all = program.index().definitions.iter().enumerate().filter(|(_, d)| wanted(d));
    all.map(|(id, _)| item(program, id)).collect()
}

/// The word before the innermost open brace: `key` of `key = {`, `select` of `transition select(..) {`.
fn property(before: &[Token]) -> Option<String> {
    let mut depth = 0usize;
    let open = before.iter().rposition(|token| match token.kind {
        TokenKind::Punct(Punct::CloseBrace) => {
            depth += 1;
            false
        }
        TokenKind::Punct(Punct::OpenBrace) if depth > 0 => {
            depth -= 1;
            false
        }
        TokenKind::Punct(Punct::OpenBrace) => true,
        _ => false,
    })?;
    let head = &before[..open];
    match head.last()? {
        last if last.is(Punct::Assign) => head.get(head.len().checked_sub(2)?).map(|name| name.text().to_string()),
        last if last.is(Punct::CloseParen) => {
            let call = opening(head, head.len() - 1)?;
            head.get(call.checked_sub(1)?).map(|name| name.text().to_string())
        }
        _ => None,
    }
}

/// The bracket that belongs to the closing one at `close`.
fn opening(tokens: &[Token], close: usize) -> Option<usize> {
    let (open, closes) = match tokens.get(close)?.kind {
        TokenKind::Punct(Punct::CloseParen) => (Punct::OpenParen, Punct::CloseParen),
        TokenKind::Punct(Punct::CloseBracket) => (Punct::OpenBracket, Punct::CloseBracket),
        TokenKind::Punct(Punct::Greater) => (Punct::Less, Punct::Greater),
        _ => return None,
    };
    let mut depth = 0usize;
    for i in (0..=close).rev().take(2_000) {
        if tokens[i].is(closes) {
            depth += 1;
        } else if tokens[i].is(open) {
            depth -= 1;
            if depth == 0 {
                return Some(i);
            }
        } else if tokens[i].is(Punct::Semicolon) {
            return None;
        }
    }
    None
}

/// The innermost definition of a kind around a place.
fn enclosing(program: &Program, file: FileId, offset: u32, kind: Kind) -> Option<usize> {
    let holds = |d: &Definition| d.kind == kind && d.whole.file == file && d.whole.start <= offset && offset <= d.whole.end;
    program.index().definitions.iter().rposition(holds)
}

/// The definitions that a name at a place may mean, inner ones last.
fn visible(program: &Program, file: FileId, offset: u32) -> impl Iterator<Item = usize> + '_ {
    let definitions = program.index().definitions.iter().enumerate();
    let seen = move |d: &Definition| {
        let named = !matches!(
            d.kind,
            Kind::Field | Kind::EnumMember | Kind::Method | Kind::Constructor | Kind::State | Kind::Error | Kind::MatchKind
        );
        let inside = d.scope.is_none_or(|scope| scope.file == file && scope.start <= offset && offset <= scope.end);
        let before = d.span.file != file || d.span.end <= offset;
        named && inside && before
    };
    definitions.filter(move |(_, d)| seen(d)).map(|(id, _)| id)
}

fn everything(program: &Program, file: FileId, offset: u32) -> Value {
    let mut out: Vec<Value> = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    let mut ids: Vec<usize> = visible(program, file, offset).collect();
    ids.reverse();
    for id in ids {
        let name = &*program.definition(id).name;
        if !names.contains(&name) {
            names.push(name);
            out.push(item(program, id));
        }
    }
    out.extend(KEYWORDS.iter().map(|keyword| word(keyword, item::KEYWORD)));
    Value::Array(out)
}

/// A name with what is selected of it, as it stands before a dot: `hdr.stack[0].ipv4`.
struct Chain<'a> {
    names: Vec<&'a str>,
    /// Whether an index follows the name.
    indexed: Vec<bool>,
    /// Whether arguments follow the last one.
    called: bool,
}

/// Reads a chain that ends with `before`, from its end.
fn chain(before: &[Token]) -> Option<Chain<'_>> {
    let mut out = Chain { names: Vec::new(), indexed: Vec::new(), called: false };
    let mut i = before.len();
    loop {
        let mut indexed = false;
        while i > 0 && (before[i - 1].is(Punct::CloseBracket) || (before[i - 1].is(Punct::CloseParen) && out.names.is_empty())) {
            out.called |= before[i - 1].is(Punct::CloseParen);
            indexed |= before[i - 1].is(Punct::CloseBracket);
            i = opening(before, i - 1)?;
        }
        let name = before.get(i.checked_sub(1)?)?;
        if name.kind != TokenKind::Word {
            return None;
        }
        out.names.push(&name.text);
        out.indexed.push(indexed);
        i -= 1;
        if i == 0 || !before[i - 1].is(Punct::Dot) {
            break;
        }
        i -= 1;
    }
    out.names.reverse();
    out.indexed.reverse();
    Some(out)
}

/// The definition that a chain stands for, and whether it is a whole stack.
fn resolve(program: &Program, file: FileId, offset: u32, chain: &Chain) -> Option<(usize, bool)> {
    let first = *chain.names.first()?;
    let mut id = visible(program, file, offset).filter(|id| &*program.definition(*id).name == first).last()?;
    let mut stack = program.definition(id).is_stack && !chain.indexed[0];
    for (name, indexed) in chain.names.iter().zip(&chain.indexed).skip(1) {
        if stack {
            // `next` and `last` are elements.
            stack = !matches!(*name, "next" | "last");
            continue;
        }
        let of = program.definition(id).type_definition.unwrap_or(id);
        id = program.index().parts(of).find(|(_, d)| &*d.name == *name && d.kind != Kind::TypeParameter)?.0;
        stack = program.definition(id).is_stack && !indexed;
    }
    Some((id, stack))
}

fn members(program: &Program, file: FileId, offset: u32, before: &[Token]) -> Vec<Value> {
    let Some(chain) = chain(before) else { return Vec::new() };
    if chain.names == ["error"] {
        return match of_kind(program, |d| d.kind == Kind::Error) {
            Value::Array(list) => list,
            _ => Vec::new(),
        };
    }
    let method = |names: &[&str]| names.iter().map(|name| word(name, item::METHOD)).collect::<Vec<_>>();
    if chain.called {
        return if chain.names.last() == Some(&"apply") {
            ["hit", "miss", "action_run"].map(|name| word(name, 5)).to_vec()
        } else {
            Vec::new()
        };
    }
    let Some((id, stack)) = resolve(program, file, offset, &chain) else { return Vec::new() };
    if stack {
        return method(OF_STACKS);
    }
    let definition = program.definition(id);
    if definition.kind == Kind::Table {
        return method(&["apply"]);
    }
    let of = definition.type_definition.unwrap_or(id);
    let kind = program.definition(of).kind;
    let wanted = |d: &Definition| matches!(d.kind, Kind::Field | Kind::EnumMember | Kind::Method);
    let mut out: Vec<Value> = program.index().parts(of).filter(|(_, d)| wanted(d)).map(|(id, _)| item(program, id)).collect();
    match kind {
        Kind::Header | Kind::HeaderUnion => out.extend(method(OF_HEADERS)),
        Kind::Parser | Kind::Control | Kind::BlockType => out.extend(method(&["apply"])),
        _ => {}
    }
    out
}

/// The signatures of the call that a place is in, and the parameter that it is at.
pub(crate) fn signature_help(program: &Program, file: FileId, offset: u32) -> Option<Value> {
    let all = program.tokens(file);
    let before = &all[..all.partition_point(|token| token.span.end <= offset)];
    let (mut depth, mut commas, mut open) = (0usize, 0usize, None);
    for (i, token) in before.iter().enumerate().rev().take(2_000) {
        match token.kind {
            TokenKind::Punct(Punct::CloseParen | Punct::CloseBracket) => depth += 1,
            TokenKind::Punct(Punct::OpenParen) if depth == 0 => {
                open = Some(i);
                break;
            }
            TokenKind::Punct(Punct::OpenParen | Punct::OpenBracket) => depth = depth.saturating_sub(1),
            TokenKind::Punct(Punct::Comma) if depth == 0 => commas += 1,
            TokenKind::Punct(Punct::Semicolon) if depth == 0 => return None,
            TokenKind::Punct(Punct::OpenBrace | Punct::CloseBrace) if depth == 0 => commas = 0,
            _ => {}
        }
    }
    let mut end = open?;
    if before.get(end.checked_sub(1)?)?.is(Punct::Greater) {
        end = opening(before, end - 1)?;
    }
    let chain = chain(&before[..end])?;
    let last = *chain.names.last()?;
    let ids = callees(program, file, offset, &chain, last)?;
    let signatures: Vec<Value> = ids.iter().map(|id| one_signature(program, *id)).collect();
    let fits = |id: &&usize| parameters(program, **id).count() > commas;
    let active = ids.iter().position(|id| fits(&id)).unwrap_or(0);
    Some(json!({ "signatures": signatures, "activeSignature": active, "activeParameter": commas }))
}

fn parameters(program: &Program, id: usize) -> impl Iterator<Item = (usize, &Definition)> {
    program.index().parts(id).filter(|(_, d)| d.kind == Kind::Parameter)
}

/// What is called: all of one name.
fn callees(program: &Program, file: FileId, offset: u32, chain: &Chain, last: &str) -> Option<Vec<usize>> {
    if chain.names.len() > 1 {
        let outer = Chain {
            names: chain.names[..chain.names.len() - 1].to_vec(),
            indexed: chain.indexed[..chain.indexed.len() - 1].to_vec(),
            called: false,
        };
        let (id, _) = resolve(program, file, offset, &outer)?;
        let of = program.definition(id).type_definition.unwrap_or(id);
        if last == "apply" {
            return Some(vec![of]);
        }
        return Some(program.index().parts(of).filter(|(_, d)| d.kind == Kind::Method && &*d.name == last).map(|(id, _)| id).collect());
    }
    let named: Vec<usize> = visible(program, file, offset).filter(|id| &*program.definition(*id).name == last).collect();
    let id = *named.last()?;
    match program.definition(id).kind {
        Kind::Extern => Some(program.index().parts(id).filter(|(_, d)| d.kind == Kind::Constructor).map(|(id, _)| id).collect()),
        Kind::Function => Some(named.into_iter().filter(|id| program.definition(*id).kind == Kind::Function).collect()),
        Kind::Action | Kind::Parser | Kind::Control | Kind::Package => Some(vec![id]),
        _ => None,
    }
}

fn one_signature(program: &Program, id: usize) -> Value {
    let definition = program.definition(id);
    let label: String = signature(program, definition).split_whitespace().collect::<Vec<_>>().join(" ");
    let text = |d: &Definition| program.analysis.sources.text(d.whole).split_whitespace().collect::<Vec<_>>().join(" ");
    let parameters: Vec<Value> = parameters(program, id).map(|(_, d)| json!({ "label": text(d) })).collect();
    json!({ "label": label, "parameters": parameters })
}
