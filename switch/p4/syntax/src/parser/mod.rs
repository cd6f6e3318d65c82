//! Tokens to syntax tree: a recursive descent parser, one function for each production of the grammar (specification,
//! appendix G), named in its comment.
//!
//! The grammar depends on which names are types: `a < b` compares and `f<T>(x)` calls, `(T) - x` casts and `(a) - x`
//! subtracts. So the parser keeps a table of declared names by scope. Where that leaves a choice open, it tries the list of type
//! arguments first and comes back; what failed once at a place is not tried there again, so the time stays linear for
//! nested tries too.
//!
//! After an error the parser skips to the end of the statement or declaration and goes on; it never gives up before the
//! end of the file.

mod annotation;
mod declaration;
mod expression;
mod local;
mod state;
mod statement;
mod table;
mod types;

use std::collections::{HashMap, HashSet};

use crate::ast::{Declaration, Ident, NodeId, Program, Symbol};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::span::Span;
use crate::token::{is_keyword, Punct, Token, TokenKind};

/// Blocks, statements, types and expressions may be nested that deep, all together.
const MAX_DEPTH: usize = 64;
/// Operators and selectors may follow each other in one expression that often.
const MAX_HEIGHT: u16 = 300;

/// The error has been reported; the caller skips to where it can go on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reported;

pub(crate) type Parse<T> = Result<T, Reported>;

/// What a name stands for, as far as parsing depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NameKind {
    Type,
    Object,
}

/// `p4program` : all declarations up to the end. The last token must be [`TokenKind::End`].
pub(crate) fn parse(tokens: Vec<Token>, diagnostics: &mut Diagnostics) -> Program {
    let tokens = sift(tokens, diagnostics);
    let mut parser = Parser {
        tokens: &tokens,
        at: 0,
        diagnostics,
        scopes: vec![HashMap::new()],
        heights: Vec::new(),
        depth: 0,
        trying: 0,
        no_type_arguments: HashSet::new(),
        inside_angles: false,
        assumed_closed: None,
    };
    let declarations = parser.program();
    let node_count = parser.heights.len() as u32;
    Program { declarations, node_count }
}

/// Reports what is no token and takes it out.
fn sift(tokens: Vec<Token>, diagnostics: &mut Diagnostics) -> Vec<Token> {
    let mut out = Vec::with_capacity(tokens.len());
    for mut token in tokens {
        let (message, help) = match token.kind {
            TokenKind::Punct(Punct::Hash | Punct::HashHash) => {
                (format!("{token} has a meaning only in preprocessor directives"), Some("a directive must be the first thing on its line"))
            }
            TokenKind::OpenString => ("the string does not end on its line".into(), Some("close it with `\"`")),
            TokenKind::OpenComment => ("the comment does not end".into(), Some("close it with `*/`")),
            _ => {
                out.push(token);
                continue;
            }
        };
        let mut error = Diagnostic::error(Code::BadToken, token.span, message).rule("6.4, lexical constructs");
        error.help = help.map(String::from);
        diagnostics.push(error);
        if token.kind == TokenKind::OpenString {
            token.kind = TokenKind::String;
            token.text = format!("{}\"", token.text.trim_end_matches('\\')).into();
            out.push(token);
        }
    }
    out
}

pub(crate) struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
    diagnostics: &'a mut Diagnostics,
    scopes: Vec<HashMap<Symbol, NameKind>>,
    /// The height of each node given out, by its id.
    heights: Vec<u16>,
    depth: usize,
    /// Above 0, errors are not reported: something is only tried.
    trying: usize,
    /// Places of a `<` that opens no list of type arguments.
    no_type_arguments: HashSet<usize>,
    /// Between `<` and `>`: a `>` ends the expression.
    inside_angles: bool,
    /// At this token a closing brace was found missing; the blocks around end here too.
    assumed_closed: Option<usize>,
}

impl<'a> Parser<'a> {
    fn program(&mut self) -> Vec<Declaration> {
        let mut out = Vec::new();
        while self.peek().kind != TokenKind::End {
            if self.eat(Punct::Semicolon) {
                continue;
            }
            let before = self.at;
            match self.declaration() {
                Ok(declaration) => out.extend(declaration),
                Err(Reported) => {
                    self.scopes.truncate(1);
                    self.skip_to_declaration(before);
                }
            }
        }
        out
    }

    // -- the cursor

    fn peek(&self) -> &'a Token {
        self.ahead(0)
    }

    /// The token that many places on; the end token beyond the end.
    fn ahead(&self, by: usize) -> &'a Token {
        let last = self.tokens.len() - 1;
        &self.tokens[(self.at + by).min(last)]
    }

    fn advance(&mut self) -> &'a Token {
        let token = self.peek();
        if token.kind != TokenKind::End {
            self.at += 1;
        }
        token
    }

    fn is(&self, punct: Punct) -> bool {
        self.peek().is(punct)
    }

    fn is_word(&self, word: &str) -> bool {
        self.peek().is_word(word)
    }

    fn eat(&mut self, punct: Punct) -> bool {
        let found = self.is(punct);
        if found {
            self.advance();
        }
        found
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.advance();
        }
        found
    }

    /// From `start` to the last token taken.
    fn span_from(&self, start: Span) -> Span {
        match self.at.checked_sub(1) {
            Some(last) if self.tokens[last].span.start >= start.start || self.tokens[last].span.file != start.file => {
                start.to(self.tokens[last].span)
            }
            _ => start,
        }
    }

    fn previous_span(&self) -> Span {
        self.tokens[self.at.saturating_sub(1)].span
    }

    // -- errors

    fn report(&mut self, error: Diagnostic) -> Reported {
        if self.trying == 0 {
            self.diagnostics.push(error);
        }
        Reported
    }

    /// "expected `what`, found .."
    fn unexpected<T>(&mut self, what: &str) -> Parse<T> {
        let found = self.peek();
        let error = if found.kind == TokenKind::Stray {
            // Not reported by `sift`, since an annotation may hold any character.
            Diagnostic::error(Code::BadToken, found.span, format!("the character {found} begins no token")).rule("6.4, lexical constructs")
        } else {
            Diagnostic::error(Code::UnexpectedToken, found.span, format!("expected {what}, found {found}"))
        };
        Err(self.report(error))
    }

    fn expect(&mut self, punct: Punct) -> Parse<Span> {
        if self.is(punct) {
            return Ok(self.advance().span);
        }
        self.unexpected(&format!("`{}`", punct.text()))
    }

    fn expect_word(&mut self, word: &str) -> Parse<Span> {
        if self.is_word(word) {
            return Ok(self.advance().span);
        }
        self.unexpected(&format!("`{word}`"))
    }

    /// `;`. Where it is missing at the end of a line, the statement is taken as complete.
    fn semicolon(&mut self) -> Parse<()> {
        if self.eat(Punct::Semicolon) {
            return Ok(());
        }
        let found = self.peek();
        let after = self.previous_span();
        let gap = Span::new(after.file, after.end, after.end);
        let span = if found.line_start { gap } else { found.span };
        let reported = self.report(Diagnostic::error(Code::UnexpectedToken, span, format!("expected `;`, found {found}")));
        if found.line_start || found.is(Punct::CloseBrace) {
            Ok(())
        } else {
            Err(reported)
        }
    }

    /// Runs `parse` one level deeper, unless that is too deep.
    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        if self.depth >= MAX_DEPTH {
            let span = self.peek().span;
            let message = format!("nested more than {MAX_DEPTH} deep");
            return Err(self.report(Diagnostic::error(Code::TooDeep, span, message).help("give the inner part a name of its own")));
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    /// Runs `parse` in silence; on failure goes back to where it began.
    fn attempt<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parse<T>) -> Option<T> {
        let (at, depth, inside_angles, scopes) = (self.at, self.depth, self.inside_angles, self.scopes.len());
        self.trying += 1;
        let result = parse(self).ok();
        self.trying -= 1;
        if result.is_none() {
            (self.at, self.depth, self.inside_angles) = (at, depth, inside_angles);
            self.scopes.truncate(scopes);
        }
        result
    }

    /// Skips to the next top-level declaration.
    fn skip_to_declaration(&mut self, before: usize) {
        let mut braces = 0usize;
        loop {
            let token = self.peek();
            match token.kind {
                TokenKind::End => return,
                _ if braces == 0 && self.at > before && token.line_start && begins_top_level(token) => return,
                TokenKind::Punct(Punct::OpenBrace) => braces += 1,
                TokenKind::Punct(Punct::CloseBrace) => {
                    braces = braces.saturating_sub(1);
                    if braces == 0 {
                        self.advance();
                        return;
                    }
                }
                TokenKind::Punct(Punct::Semicolon) if braces == 0 => {
                    self.advance();
                    return;
                }
                _ => {}
            }
            self.advance();
        }
    }

    /// Skips past the next `;` or block, or up to the `}` that ends the list. `before` is where the faulty item began.
    fn skip_item(&mut self, before: usize) {
        let mut braces = 0usize;
        loop {
            let token = self.peek();
            match token.kind {
                TokenKind::End => return,
                _ if token.line_start && begins_top_level(token) && self.at > before => return,
                TokenKind::Punct(Punct::OpenBrace) => braces += 1,
                TokenKind::Punct(Punct::CloseBrace) if braces == 0 => return,
                TokenKind::Punct(Punct::CloseBrace) => {
                    braces -= 1;
                    if braces == 0 {
                        self.advance();
                        return;
                    }
                }
                TokenKind::Punct(Punct::Semicolon) if braces == 0 => {
                    self.advance();
                    return;
                }
                _ => {}
            }
            self.advance();
        }
    }

    /// `{ item* }`. After a faulty item it goes on with the next one. A declaration that can stand only at the top level ends the
    /// list: the closing brace must be missing.
    fn braced(&mut self, mut item: impl FnMut(&mut Self) -> Parse<()>) -> Parse<Span> {
        let open = self.expect(Punct::OpenBrace)?;
        loop {
            let token = self.peek();
            if self.eat(Punct::CloseBrace) {
                return Ok(self.span_from(open));
            }
            if token.kind == TokenKind::End || begins_top_level(token) {
                if self.assumed_closed != Some(self.at) {
                    self.assumed_closed = Some(self.at);
                    let error = Diagnostic::error(Code::UnexpectedToken, token.span, format!("expected `}}`, found {token}"))
                        .note(open, "the brace is opened here");
                    let error = match token.kind {
                        TokenKind::End => error,
                        _ => error.help(format!("`{}` can stand only at the top level; a `}}` is missing before it", token.text())),
                    };
                    self.report(error);
                }
                return Ok(self.span_from(open));
            }
            let before = self.at;
            let scopes = self.scopes.len();
            if item(self).is_err() {
                self.scopes.truncate(scopes);
                if self.trying > 0 {
                    return Err(Reported);
                }
                self.skip_item(before);
                if self.at == before && !self.is(Punct::CloseBrace) {
                    self.advance();
                }
            }
        }
    }

    /// `item , item , ..` up to `close`, which is taken. A comma may stand before `close` when `trailing`.
    fn separated<T>(&mut self, close: Punct, trailing: bool, mut item: impl FnMut(&mut Self) -> Parse<T>) -> Parse<Vec<T>> {
        let mut out = Vec::new();
        if self.eat(close) {
            return Ok(out);
        }
        loop {
            out.push(item(self)?);
            if self.eat(close) {
                return Ok(out);
            }
            if !self.is(Punct::Comma) {
                return self.unexpected(&format!("`,` or `{}`", close.text()));
            }
            self.advance();
            if trailing && self.eat(close) {
                return Ok(out);
            }
        }
    }

    // -- names

    /// `name` : an identifier, or a word that has a meaning only elsewhere.
    fn name(&mut self) -> Parse<Ident> {
        let token = self.peek();
        if token.kind == TokenKind::Word && !is_keyword(&token.text) {
            self.advance();
            return Ok(Ident { name: token.text.clone(), span: token.span });
        }
        if token.kind == TokenKind::Word {
            let message = format!("expected a name, found {token}");
            return Err(self.report(
                Diagnostic::error(Code::UnexpectedToken, token.span, message)
                    .rule("6.4.2, a keyword names nothing")
                    .help(format!("choose another name, such as `{}_`", token.text)),
            ));
        }
        self.unexpected("a name")
    }

    fn at_name(&self) -> bool {
        is_name(self.peek())
    }

    fn declare_type(&mut self, name: &Ident) {
        self.declare(name, NameKind::Type);
    }

    fn declare_object(&mut self, name: &Ident) {
        self.declare(name, NameKind::Object);
    }

    fn declare(&mut self, name: &Ident, kind: NameKind) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.name.clone(), kind);
        }
    }

    fn is_type_name(&self, token: &Token) -> bool {
        is_name(token) && self.scopes.iter().rev().find_map(|scope| scope.get(&token.text)) == Some(&NameKind::Type)
    }

    /// Runs `parse` in a scope of its own.
    fn scoped<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        self.scopes.push(HashMap::new());
        let depth = self.scopes.len();
        let result = parse(self);
        self.scopes.truncate(depth - 1);
        result
    }

    // -- nodes

    fn new_id(&mut self, height: u16) -> NodeId {
        self.heights.push(height);
        NodeId(self.heights.len() as u32 - 1)
    }
}

fn is_name(token: &Token) -> bool {
    token.kind == TokenKind::Word && !is_keyword(&token.text)
}

/// Whether the token can only begin a declaration at the top level.
fn begins_top_level(token: &Token) -> bool {
    token.kind == TokenKind::Word
        && matches!(&*token.text, "control" | "enum" | "extern" | "header" | "header_union" | "package" | "parser" | "struct" | "typedef")
}
