//! A text in pieces: its tokens, and between them the comments and the lines that belong to the preprocessor.

use fairlane_syntax::token::{Punct, Token, TokenKind};

use crate::Refusal;

/// What a piece is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Word,
    Number,
    String,
    Punct(Punct),
    /// A character that begins no token.
    Stray,
    LineComment,
    BlockComment,
    /// A line of the preprocessor, with the lines that continue it.
    Directive,
    /// `@name`, with its arguments.
    Annotation,
    /// `@pragma` up to the end of its line, which ends it.
    Pragma,
}

/// A token, a comment, or what is kept as it is written.
#[derive(Debug, Clone)]
pub(crate) struct Piece<'a> {
    pub kind: Kind,
    pub text: std::borrow::Cow<'a, str>,
    /// Line ends between the piece before and this one.
    pub lines: usize,
    /// Where there is none: the characters between them.
    pub gap: usize,
    /// The column from 0 in which it begins, a tab counted as one.
    pub column: usize,
}

impl Piece<'_> {
    pub fn is(&self, punct: Punct) -> bool {
        self.kind == Kind::Punct(punct)
    }

    pub fn is_comment(&self) -> bool {
        matches!(self.kind, Kind::LineComment | Kind::BlockComment)
    }

    pub fn is_word(&self, words: &[&str]) -> bool {
        self.kind == Kind::Word && words.contains(&&*self.text)
    }
}

/// Splits a text, whose lines end in `\n`.
///
/// # Errors
/// A string or comment that does not end: what follows it cannot be told from its inside.
pub(crate) fn pieces(text: &str) -> Result<Vec<Piece<'_>>, Refusal> {
    let tokens = fairlane_syntax::raw_tokens(text);
    let mut splitter = Splitter { text, out: Vec::with_capacity(tokens.len()), end: 0 };
    let mut i = 0;
    while i < tokens.len() {
        let token = &tokens[i];
        splitter.comments(token.span.start as usize);
        if token.kind == TokenKind::OpenComment {
            return Err(Refusal::at(text, token.span.start as usize, "the comment does not end"));
        }
        i = match whole_line(&tokens, i) {
            Some(kind) => splitter.line(kind, &tokens, i)?,
            None if token.is(Punct::At) => splitter.annotation(&tokens, i)?,
            None => splitter.token(token)?,
        } + i;
    }
    splitter.comments(text.len());
    Ok(splitter.out)
}

/// The number of tokens from `i` to the end of its line.
pub(crate) fn rest_of_line(tokens: &[Token], i: usize) -> usize {
    1 + tokens[i + 1..].iter().take_while(|token| !token.line_start).count()
}

fn whole_line(tokens: &[Token], i: usize) -> Option<Kind> {
    let token = &tokens[i];
    if token.line_start && token.is(Punct::Hash) {
        return Some(Kind::Directive);
    }
    let pragma = token.is(Punct::At) && tokens.get(i + 1).is_some_and(|name| name.is_word("pragma") && !name.line_start);
    pragma.then_some(Kind::Pragma)
}

struct Splitter<'a> {
    text: &'a str,
    out: Vec<Piece<'a>>,
    /// The end of the piece before.
    end: usize,
}

impl<'a> Splitter<'a> {
    fn push(&mut self, kind: Kind, text: impl Into<std::borrow::Cow<'a, str>>, start: usize, end: usize) {
        let between = &self.text[self.end..start];
        let line = self.text[..start].rfind('\n').map_or(0, |i| i + 1);
        let lines = between.matches('\n').count() - between.matches("\\\n").count();
        let (gap, column) = (between.chars().count(), self.text[line..start].chars().count());
        self.out.push(Piece { kind, text: text.into(), lines, gap, column });
        self.end = end;
    }

    /// The comments from the piece before to `until`.
    fn comments(&mut self, until: usize) {
        let mut at = self.end;
        while let Some(slash) = self.text[at..until].find('/') {
            let start = at + slash;
            let (kind, end) = if self.text[start..until].starts_with("/*") {
                let end = self.text[start + 2..until].find("*/").map_or(until, |i| start + i + 4);
                (Kind::BlockComment, end)
            } else {
                (Kind::LineComment, line_end(self.text, start).min(until))
            };
            let text = &self.text[start..end];
            // After a backslash the comment goes on in the next line, though that be empty.
            let ends = kind == Kind::LineComment && !text.trim_end().ends_with('\\');
            let text = if ends { text.trim_end() } else { text };
            self.push(kind, text, start, end);
            at = end;
        }
    }

    fn token(&mut self, token: &Token) -> Result<usize, Refusal> {
        let (start, end) = (token.span.start as usize, token.span.end as usize);
        let kind = match token.kind {
            TokenKind::Word => Kind::Word,
            TokenKind::Number => Kind::Number,
            TokenKind::String => Kind::String,
            TokenKind::Punct(punct) => Kind::Punct(punct),
            TokenKind::Stray => Kind::Stray,
            _ => return Err(Refusal::at(self.text, start, "the string does not end on its line")),
        };
        // As the lexer has it: lines that a backslash joins are joined.
        self.push(kind, token.text().to_string(), start, end);
        Ok(1)
    }

    /// A line of the preprocessor or a `@pragma`: all to the end of its line, comments too.
    fn line(&mut self, kind: Kind, tokens: &[Token], i: usize) -> Result<usize, Refusal> {
        let count = rest_of_line(tokens, i);
        let (first, last) = (&tokens[i], &tokens[i + count - 1]);
        let mut start = first.span.start as usize;
        let mut end = last.span.end as usize;
        loop {
            let stop = line_end(self.text, end);
            match self.text[end..stop].find("/*") {
                Some(open) if !self.text[end..end + open].contains("//") => {
                    let inside = end + open + 2;
                    match self.text[inside..].find("*/") {
                        Some(length) => end = inside + length + 2,
                        None => return Err(Refusal::at(self.text, inside - 2, "the comment does not end")),
                    }
                }
                _ => {
                    end = stop;
                    break;
                }
            }
        }
        if kind == Kind::Directive {
            // Its indentation is the author's.
            let line = self.text[..start].rfind('\n').map_or(0, |i| i + 1).max(self.end);
            if self.text[line..start].trim().is_empty() {
                start = line;
            }
        }
        let whole = &self.text[start..end];
        let trimmed = whole.trim_end();
        // A backslash that a blank follows joins no lines; without the blank it would.
        let text = if trimmed.ends_with('\\') { whole } else { trimmed };
        self.push(kind, text, start, end);
        Ok(count)
    }

    /// `@name`, `@name(..)`, `@name[..]`: kept as written, since any tokens may stand inside.
    fn annotation(&mut self, tokens: &[Token], i: usize) -> Result<usize, Refusal> {
        let named = tokens.get(i + 1).is_some_and(|name| name.kind == TokenKind::Word);
        if !named {
            return self.token(&tokens[i]);
        }
        let mut count = 2;
        let (mut depth, mut j) = (0usize, i + 2);
        while let Some(token) = tokens.get(j) {
            match token.kind {
                TokenKind::OpenString | TokenKind::OpenComment => break,
                TokenKind::Punct(Punct::Hash) if token.line_start => break,
                TokenKind::Punct(Punct::OpenParen | Punct::OpenBracket) => depth += 1,
                TokenKind::Punct(Punct::CloseParen | Punct::CloseBracket) => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 {
                // Either nothing was opened, or the last bracket is closed.
                if (token.is(Punct::CloseParen) || token.is(Punct::CloseBracket)) && j > i + 2 {
                    count = j + 1 - i;
                }
                break;
            }
            j += 1;
        }
        let (start, end) = (tokens[i].span.start as usize, tokens[i + count - 1].span.end as usize);
        self.push(Kind::Annotation, &self.text[start..end], start, end);
        Ok(count)
    }
}

/// The end of the line that holds `from`, lines that end in a backslash joined to it.
fn line_end(text: &str, from: usize) -> usize {
    let mut at = from;
    loop {
        let Some(i) = text[at..].find('\n') else { return text.len() };
        if !text[from..at + i].ends_with('\\') {
            return at + i;
        }
        at += i + 1;
    }
}
