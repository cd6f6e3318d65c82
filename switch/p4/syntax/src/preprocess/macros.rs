//! Macros: definition and expansion (C11, 6.10.3), after Prosser's algorithm: each token carries the names of the macros that
//! it came out of, and is not expanded as one of these again.

use std::collections::VecDeque;
use std::rc::Rc;

use super::{Preprocessor, MAX_TOKENS};
use crate::ast::Symbol;
use crate::code::Code;
use crate::diagnostic::Diagnostic;
use crate::lexer;
use crate::span::Span;
use crate::token::{Punct, Token, TokenKind};

/// Macros may come out of each other, and calls stand in each other's arguments, that deep.
const MAX_DEPTH: usize = 100;

/// A macro.
#[derive(Debug, Clone)]
pub(super) struct Macro {
    /// Stands for its name in [`Hidden`].
    id: u32,
    /// Where it is defined.
    pub span: Span,
    /// The parameters of a function-like one; a variadic one ends in `__VA_ARGS__` or the name that stands for it.
    parameters: Option<Vec<Symbol>>,
    variadic: bool,
    /// What it stands for.
    pub body: Vec<Token>,
}

/// The macros that a token came out of, by [`Macro::id`].
type Hidden = Rc<Vec<u32>>;

/// A token on its way through expansion.
#[derive(Debug, Clone)]
struct Item {
    token: Token,
    hidden: Hidden,
}

impl Macro {
    /// Reads name and parameters off the front of `line`; the rest is the body.
    pub fn parse(mark: Span, line: &mut Vec<Token>) -> Result<(Symbol, Macro), Diagnostic> {
        let mut rest: VecDeque<Token> = std::mem::take(line).into();
        let name = match rest.pop_front() {
            Some(name) if name.kind == TokenKind::Word && &*name.text != "defined" => name,
            other => {
                let span = other.map_or(mark, |token| token.span);
                return Err(Diagnostic::error(Code::BadDefine, span, "`#define` awaits a name"));
            }
        };
        let mut new = Macro { id: 0, span: name.span, parameters: None, variadic: false, body: Vec::new() };
        if rest.front().is_some_and(|token| token.is(Punct::OpenParen) && !token.spaced) {
            rest.pop_front();
            new.parameters = Some(new.parse_parameters(&mut rest)?);
        }
        *line = rest.into();
        Ok((name.text, new))
    }

    fn parse_parameters(&mut self, rest: &mut VecDeque<Token>) -> Result<Vec<Symbol>, Diagnostic> {
        let fault = |span| Err(Diagnostic::error(Code::BadDefine, span, "the parameters of a macro are names between commas, then `)`"));
        let mut parameters: Vec<Symbol> = Vec::new();
        if rest.front().is_some_and(|token| token.is(Punct::CloseParen)) {
            rest.pop_front();
            return Ok(parameters);
        }
        loop {
            match rest.pop_front() {
                Some(token) if token.kind == TokenKind::Word => {
                    if parameters.contains(&token.text) {
                        let message = format!("the macro has two parameters `{}`", token.text);
                        return Err(Diagnostic::error(Code::BadDefine, token.span, message));
                    }
                    parameters.push(token.text);
                    if rest.front().is_some_and(|token| token.is(Punct::Dots)) {
                        rest.pop_front();
                        self.variadic = true;
                    }
                }
                Some(token) if token.is(Punct::Dots) => {
                    parameters.push("__VA_ARGS__".into());
                    self.variadic = true;
                }
                other => return fault(other.map_or(self.span, |token| token.span)),
            }
            match rest.pop_front() {
                Some(token) if token.is(Punct::CloseParen) => return Ok(parameters),
                Some(token) if token.is(Punct::Comma) && !self.variadic => {}
                other => return fault(other.map_or(self.span, |token| token.span)),
            }
        }
    }

    /// Finds a `##` at an end of the body.
    pub fn check(&self) -> Result<(), Diagnostic> {
        for end in [self.body.first(), self.body.last()].into_iter().flatten() {
            if end.is(Punct::HashHash) {
                return Err(Diagnostic::error(Code::BadDefine, end.span, "`##` cannot stand at an end of a macro's body"));
            }
        }
        Ok(())
    }

    /// Whether both mean the same (C11, 6.10.3 paragraph 2).
    pub fn same(&self, other: &Macro) -> bool {
        let alike = |(a, b): (&Token, &Token)| a.text() == b.text() && a.spaced == b.spaced;
        self.parameters == other.parameters
            && self.body.len() == other.body.len()
            && self.body.iter().zip(&other.body).skip(1).all(alike)
            && self.body.first().map(Token::text) == other.body.first().map(Token::text)
    }

    fn parameter(&self, token: &Token) -> Option<usize> {
        let parameters = self.parameters.as_ref()?;
        (token.kind == TokenKind::Word).then(|| parameters.iter().position(|name| *name == token.text))?
    }
}

impl Preprocessor<'_> {
    /// Puts a macro in force. Macros of one name share an id.
    pub(super) fn insert(&mut self, name: Symbol, mut new: Macro) {
        let next = self.macro_ids.len() as u32;
        new.id = *self.macro_ids.entry(name.clone()).or_insert(next);
        self.macros.insert(name, new);
    }

    /// Whether `#ifdef` holds.
    pub(super) fn is_defined(&self, name: &str) -> bool {
        self.macros.contains_key(name) || matches!(name, "__FILE__" | "__LINE__")
    }

    /// Expands all macros in a piece of text.
    pub(super) fn expand_text(&mut self, tokens: Vec<Token>) -> Vec<Token> {
        let nothing = Hidden::default();
        let items = tokens.into_iter().map(|token| Item { token, hidden: nothing.clone() }).collect();
        self.expand(items, 0).into_iter().map(|item| item.token).collect()
    }

    fn expand(&mut self, items: Vec<Item>, depth: usize) -> Vec<Item> {
        let mut out = Vec::with_capacity(items.len());
        let mut todo = items;
        todo.reverse();
        while let Some(item) = todo.pop() {
            if self.exhausted || item.token.kind != TokenKind::Word {
                out.push(item);
                continue;
            }
            if let Some(token) = self.built_in(&item.token) {
                out.push(Item { token, ..item });
                continue;
            }
            let Some(found) = self.macros.get(&item.token.text).filter(|found| !item.hidden.contains(&found.id)) else {
                out.push(item);
                continue;
            };
            if depth >= MAX_DEPTH || item.hidden.len() >= MAX_DEPTH {
                let message = format!("macros are nested more than {MAX_DEPTH} deep");
                self.exhaust(Diagnostic::error(Code::MacroDepth, item.token.span, message));
                out.push(item);
                continue;
            }
            let (arguments, hidden) = if found.parameters.is_some() {
                if !todo.last().is_some_and(|next| next.token.is(Punct::OpenParen)) {
                    out.push(item);
                    continue;
                }
                let found = found.clone();
                match self.arguments(&item.token, &found, &mut todo) {
                    Some((arguments, close)) => {
                        let common = item.hidden.iter().filter(|id| close.contains(id)).copied().collect();
                        (arguments, common)
                    }
                    None => continue,
                }
            } else {
                (Vec::new(), item.hidden.to_vec())
            };
            let Some(found) = self.macros.get(&item.token.text).cloned() else { continue };
            let mut hidden = hidden;
            hidden.push(found.id);
            let mut replaced = self.substitute(&found, &item.token, arguments, depth);
            self.expanded += replaced.len();
            if self.expanded > MAX_TOKENS {
                let message = format!("macros expand to more than {MAX_TOKENS} tokens");
                self.exhaust(Diagnostic::error(Code::MacroGrowth, item.token.span, message));
            }
            // Neighbours mostly share one list: make the new one once.
            let mut last: Option<(Hidden, Hidden)> = None;
            for new in &mut replaced {
                let united = match &last {
                    Some((old, united)) if Rc::ptr_eq(old, &new.hidden) => united.clone(),
                    _ => unite(&new.hidden, &hidden),
                };
                last = Some((std::mem::replace(&mut new.hidden, united.clone()), united));
                new.token.line_start = false;
            }
            if let Some(first) = replaced.first_mut() {
                first.token.line_start = item.token.line_start;
                first.token.spaced = item.token.spaced;
            } else if let Some(next) = todo.last_mut() {
                // Nothing stays: what follows takes its place on the line.
                next.token.line_start |= item.token.line_start;
                next.token.spaced = true;
            }
            todo.extend(replaced.into_iter().rev());
        }
        out
    }

    /// `__FILE__`, `__LINE__`
    fn built_in(&self, token: &Token) -> Option<Token> {
        let at = || self.sources.location(token.span);
        let (kind, text) = match &*token.text {
            "__FILE__" => (TokenKind::String, format!("{:?}", at().file)),
            "__LINE__" => (TokenKind::Number, at().line.to_string()),
            _ => return None,
        };
        Some(Token { kind, text: text.into(), ..token.clone() })
    }

    /// Takes the arguments off `todo`, with the hidden names of the closing parenthesis; reports a fault.
    fn arguments(&mut self, name: &Token, found: &Macro, todo: &mut Vec<Item>) -> Option<(Vec<Vec<Item>>, Hidden)> {
        let parameters = found.parameters.as_ref()?;
        todo.pop();
        let mut arguments = vec![Vec::new()];
        let mut nested = 0;
        loop {
            let Some(item) = todo.pop() else {
                self.diagnostics.push(
                    Diagnostic::error(Code::MacroArguments, name.span, format!("the arguments of macro `{}` do not end", name.text))
                        .note(found.span, "the macro is defined here"),
                );
                return None;
            };
            let rest_of_all = found.variadic && arguments.len() == parameters.len();
            match item.token.kind {
                TokenKind::Punct(Punct::CloseParen) if nested == 0 => {
                    if parameters.is_empty() && arguments.len() == 1 && arguments[0].is_empty() {
                        arguments.clear();
                    }
                    if found.variadic && arguments.len() + 1 == parameters.len() {
                        arguments.push(Vec::new());
                    }
                    if arguments.len() != parameters.len() {
                        let message = format!(
                            "macro `{}` awaits {} argument{}, not {}",
                            name.text,
                            parameters.len(),
                            if parameters.len() == 1 { "" } else { "s" },
                            arguments.len()
                        );
                        self.diagnostics.push(
                            Diagnostic::error(Code::MacroArguments, name.span, message).note(found.span, "the macro is defined here"),
                        );
                        return None;
                    }
                    return Some((arguments, item.hidden));
                }
                TokenKind::Punct(Punct::Comma) if nested == 0 && !rest_of_all => {
                    arguments.push(Vec::new());
                    continue;
                }
                TokenKind::Punct(Punct::OpenParen) => nested += 1,
                TokenKind::Punct(Punct::CloseParen) => nested -= 1,
                _ => {}
            }
            if let Some(last) = arguments.last_mut() {
                last.push(item);
            }
        }
    }

    /// The body with arguments in place of parameters, `#` and `##` done.
    fn substitute(&mut self, found: &Macro, name: &Token, arguments: Vec<Vec<Item>>, depth: usize) -> Vec<Item> {
        let mut expanded: Vec<Option<Vec<Item>>> = vec![None; arguments.len()];
        let mut out: Vec<Item> = Vec::new();
        let mut i = 0;
        // Whether a `##` waits for its right-hand side, and whether its left-hand side was empty.
        let mut paste = None;
        let nothing = Hidden::default();
        while let Some(token) = found.body.get(i) {
            i += 1;
            if out.len() > MAX_TOKENS {
                break;
            }
            if token.is(Punct::HashHash) {
                paste.get_or_insert(false);
                continue;
            }
            let before_paste = found.body.get(i).is_some_and(|next| next.is(Punct::HashHash));
            let piece = match found.parameter(token) {
                Some(parameter) if before_paste || paste.is_some() => arguments[parameter].clone(),
                Some(parameter) => {
                    if expanded[parameter].is_none() {
                        expanded[parameter] = Some(self.expand(arguments[parameter].clone(), depth + 1));
                    }
                    let mut piece = expanded[parameter].clone().unwrap_or_default();
                    if let Some(first) = piece.first_mut() {
                        first.token.spaced = token.spaced;
                    }
                    piece
                }
                None => {
                    let mut token = Token { span: name.span, line_start: false, ..token.clone() };
                    if token.is(Punct::Hash)
                        && found.parameters.is_some()
                        && let Some(parameter) = found.body.get(i).and_then(|next| found.parameter(next))
                    {
                        i += 1;
                        token.kind = TokenKind::String;
                        token.text = stringify(&arguments[parameter]).into();
                    }
                    vec![Item { token, hidden: nothing.clone() }]
                }
            };
            match paste.take() {
                None => out.extend(piece),
                Some(left_empty) => {
                    let nothing_yet = left_empty && piece.is_empty();
                    let swallow_comma = found.variadic
                        && piece.is_empty()
                        && found.parameter(token) == Some(arguments.len().saturating_sub(1))
                        && out.last().is_some_and(|last| last.token.is(Punct::Comma));
                    if swallow_comma {
                        out.pop();
                    } else if left_empty {
                        out.extend(piece);
                    } else {
                        Self::paste(&mut out, piece, name.span);
                    }
                    // `a ## b ## c`: where `a` and `b` are empty, `c` has nothing to join.
                    paste = (before_paste && nothing_yet).then_some(true);
                    continue;
                }
            }
            if before_paste && found.parameter(token).is_some_and(|parameter| arguments[parameter].is_empty()) {
                paste = Some(true);
            }
        }
        out
    }

    /// Joins the last token of `out` with the first of `piece`, if that makes a token; the others follow.
    fn paste(out: &mut Vec<Item>, piece: Vec<Item>, span: Span) {
        let mut piece = piece.into_iter();
        let (Some(right), Some(left)) = (piece.next(), out.last()) else { return };
        // GNU: `, ## __VA_ARGS__` keeps the comma and joins nothing.
        if left.token.is(Punct::Comma) {
            out.push(right);
            out.extend(piece);
            return;
        }
        let text = format!("{}{}", left.token.text(), right.token.text());
        let mut joined = lexer::tokens_at(span, &text);
        if let (1, Some(token)) = (joined.len(), joined.pop()) {
            let spaced = left.token.spaced;
            out.pop();
            out.push(Item { token: Token { spaced, ..token }, hidden: Hidden::default() });
        } else {
            out.push(right);
        }
        out.extend(piece);
    }
}

fn unite(a: &Hidden, b: &[u32]) -> Hidden {
    let missing = b.iter().filter(|id| !a.contains(id));
    Rc::new(a.iter().chain(missing).copied().collect())
}

/// The argument as a string literal (`#x`).
fn stringify(items: &[Item]) -> String {
    let mut text = String::from("\"");
    for (i, item) in items.iter().enumerate() {
        if i > 0 && (item.token.spaced || item.token.line_start) {
            text.push(' ');
        }
        if item.token.kind == TokenKind::String {
            text.push_str(&item.token.text().replace('\\', "\\\\").replace('"', "\\\""));
        } else {
            text.push_str(item.token.text());
        }
    }
    text.push('"');
    text
}
