//! Text to tokens (specification 6.4).
//!
//! The lexer never fails: text that is no token becomes a token that says so, and is an error only when it reaches the
//! parser. What stands in a group that `#if` skips may be anything.

use std::collections::HashMap;

use crate::ast::Symbol;
use crate::span::{FileId, Span};
use crate::token::{Punct, Token, TokenKind};

/// The tokens of a file, without an end token. Line ends are kept as [`Token::line_start`] of what follows.
pub(crate) fn tokens(file: FileId, text: &str) -> Vec<Token> {
    let (text, breaks) = splice(text);
    let mut lexer = Lexer { file, text: &text, at: 0, breaks, words: HashMap::new(), out: Vec::new(), annotation: 0 };
    lexer.run();
    lexer.out
}

/// Lexes a piece of text that has no place of its own (a macro of the command line, pasted tokens): every token stands at
/// `span`.
pub(crate) fn tokens_at(span: Span, text: &str) -> Vec<Token> {
    let mut list = tokens(span.file, text);
    for token in &mut list {
        token.span = span;
        token.line_start = false;
    }
    list
}

/// From this offset of the spliced text on, the offset in the original text is that much larger.
type Breaks = Vec<(u32, u32)>;

/// Joins lines that end in a backslash.
fn splice(text: &str) -> (String, Breaks) {
    let mut out = String::with_capacity(text.len());
    let mut breaks = Vec::new();
    let mut removed = 0;
    let mut rest = text;
    while let Some(i) = rest.find('\\') {
        let after = &rest[i + 1..];
        let end = if after.starts_with('\n') {
            1
        } else if after.starts_with("\r\n") {
            2
        } else {
            out.push_str(&rest[..=i]);
            rest = after;
            continue;
        };
        out.push_str(&rest[..i]);
        removed += 1 + end as u32;
        breaks.push((out.len() as u32, removed));
        rest = &after[end..];
    }
    out.push_str(rest);
    (out, breaks)
}

struct Lexer<'a> {
    file: FileId,
    text: &'a str,
    at: usize,
    breaks: Breaks,
    words: HashMap<&'a str, Symbol>,
    out: Vec<Token>,
    /// How many parentheses are open since that of an annotation, it counted.
    annotation: u32,
}

impl<'a> Lexer<'a> {
    fn run(&mut self) {
        let mut line_start = true;
        let mut spaced = false;
        while let Some(c) = self.rest().chars().next() {
            let start = self.at;
            let kind = match c {
                '\n' => {
                    self.at += 1;
                    line_start = true;
                    spaced = true;
                    continue;
                }
                c if c.is_ascii_whitespace() || c == '\u{b}' || c == '\u{feff}' => {
                    self.at += c.len_utf8();
                    spaced = true;
                    continue;
                }
                '/' if self.rest().starts_with("//") => {
                    self.at += self.rest().find('\n').unwrap_or(self.rest().len());
                    spaced = true;
                    continue;
                }
                '/' if self.rest().starts_with("/*") => match self.rest()[2..].find("*/") {
                    Some(length) => {
                        self.at += length + 4;
                        spaced = true;
                        continue;
                    }
                    None => {
                        self.at += 2;
                        self.push(TokenKind::OpenComment, start, line_start, spaced);
                        return;
                    }
                },
                '"' => self.string(),
                c if c.is_ascii_digit() => {
                    self.word();
                    TokenKind::Number
                }
                c if c == '_' || c.is_ascii_alphabetic() => {
                    self.word();
                    TokenKind::Word
                }
                _ => self.mark(c),
            };
            self.push(kind, start, line_start, spaced);
            line_start = false;
            spaced = false;
        }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn word(&mut self) {
        let rest = self.rest();
        self.at += rest.find(|c: char| c != '_' && !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
    }

    /// A string literal ends at its quote. It may run over lines among arguments, as long annotations do; elsewhere a line end ends
    /// it too soon, so that a forgotten quote does not swallow the rest of the file.
    fn string(&mut self) -> TokenKind {
        let argument = self.out.last().is_some_and(|last| {
            let before = [Punct::OpenParen, Punct::OpenBracket, Punct::Comma, Punct::Assign];
            last.kind == TokenKind::String || before.iter().any(|punct| last.is(*punct))
        });
        let lines = (argument || self.annotation > 0)
            && !self.out.iter().rev().find(|token| token.line_start).is_some_and(|first| first.is(Punct::Hash));
        self.at += 1;
        let mut escaped = false;
        for (i, c) in self.rest().char_indices() {
            match c {
                '\n' if !lines => {
                    self.at += i;
                    return TokenKind::OpenString;
                }
                '"' if !escaped => {
                    self.at += i + 1;
                    return TokenKind::String;
                }
                _ => escaped = c == '\\' && !escaped,
            }
        }
        self.at = self.text.len();
        TokenKind::OpenString
    }

    fn mark(&mut self, c: char) -> TokenKind {
        let rest = self.rest();
        match Punct::ALL.iter().find(|punct| rest.starts_with(punct.text())) {
            Some(punct) => {
                self.at += punct.text().len();
                TokenKind::Punct(*punct)
            }
            None => {
                self.at += c.len_utf8();
                TokenKind::Stray
            }
        }
    }

    fn push(&mut self, kind: TokenKind, start: usize, line_start: bool, spaced: bool) {
        match kind {
            TokenKind::Punct(Punct::OpenParen) if self.annotation > 0 => self.annotation += 1,
            TokenKind::Punct(Punct::OpenParen) => {
                let named = self.out.last().is_some_and(|name| name.kind == TokenKind::Word);
                let at = self.out.len().checked_sub(2).is_some_and(|i| self.out[i].is(Punct::At));
                self.annotation = u32::from(named && at);
            }
            TokenKind::Punct(Punct::CloseParen) => self.annotation = self.annotation.saturating_sub(1),
            _ => {}
        }
        let written = match kind {
            TokenKind::Punct(_) => "",
            _ => &self.text[start..self.at],
        };
        let text = self.words.entry(written).or_insert_with(|| written.into()).clone();
        let span = Span::new(self.file, self.original(start), self.original(self.at));
        self.out.push(Token { kind, text, span, line_start, spaced });
    }

    fn original(&self, offset: usize) -> u32 {
        let offset = offset as u32;
        let i = self.breaks.partition_point(|(start, _)| *start <= offset);
        offset + i.checked_sub(1).map_or(0, |i| self.breaks[i].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<String> {
        tokens(FileId(0), text).iter().map(|token| token.text().to_string()).collect()
    }

    #[test]
    fn takes_the_longest_mark_but_leaves_closing_angles_single() {
        assert_eq!(texts("a&&&b..c...|+|=x"), ["a", "&&&", "b", "..", "c", "...", "|+|=", "x"]);
        assert_eq!(texts("bit<bit<8>>x>>=2"), ["bit", "<", "bit", "<", "8", ">", ">", "x", ">", ">=", "2"]);
        assert_eq!(texts("{#} 8w0xFF_00 1..5"), ["{#}", "8w0xFF_00", "1", "..", "5"]);
    }

    #[test]
    fn skips_comments_and_joins_spliced_lines() {
        let list = tokens(FileId(0), "a/* \n */b // c\nd\\\ne f\\\r\n g");
        let seen: Vec<_> = list.iter().map(|t| (t.text().to_string(), t.line_start, t.spaced, t.span.start)).collect();
        assert_eq!(
            seen,
            [
                ("a".into(), true, false, 0),
                ("b".into(), false, true, 8),
                ("de".into(), true, true, 15),
                ("f".into(), false, true, 20),
                ("g".into(), false, true, 25),
            ]
        );
    }

    #[test]
    fn what_is_no_token_says_so() {
        let kinds = |text| tokens(FileId(0), text).into_iter().map(|t| t.kind).collect::<Vec<_>>();
        assert_eq!(kinds("é"), [TokenKind::Stray]);
        assert_eq!(kinds("\"a\\\"b\" \"c\nd\""), [TokenKind::String, TokenKind::String]);
        assert_eq!(kinds("x \"c\nd\""), [TokenKind::Word, TokenKind::OpenString, TokenKind::Word, TokenKind::OpenString]);
        assert_eq!(kinds("(\"c\nd\""), [TokenKind::Punct(Punct::OpenParen), TokenKind::String]);
        assert_eq!(kinds("@x(y \"c\nd\")")[4], TokenKind::String);
        assert_eq!(kinds("@x(y) z \"c\nd\"")[6], TokenKind::OpenString);
        assert_eq!(kinds("x /* y"), [TokenKind::Word, TokenKind::OpenComment]);
    }
}
