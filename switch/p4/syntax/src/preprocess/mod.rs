//! The preprocessor: the part of the C preprocessor (C11, 6.10) that P4 programs use.
//!
//! It works on tokens, so that every token keeps the place where the user wrote it; a token out of a macro's body stands
//! where the macro is used. It has `#include` with `-I` and the built-in `core.p4` and `v1model.p4`, object-like and
//! function-like macros with `#`, `##` and `__VA_ARGS__`, the conditionals with integer expressions, `#error`,
//! `#warning` and `#line`. `#pragma` is passed over, as p4c does. Like p4c's (`cpp -x assembler-with-cpp`) it takes a line that
//! begins with `#` and is no directive for a remark, and lets tokens stand side by side that `##` cannot join.

mod condition;
mod include;
mod macros;
mod written;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::ast::Symbol;
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::lexer;
use crate::source::SourceMap;
use crate::span::{FileId, Span};
use crate::token::{Punct, Token, TokenKind};

pub use include::{shown, DiskFiles, Files, BUILT_IN_FILES};
use macros::Macro;
pub use written::written;

/// What the preprocessor is told from outside.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// `-I`: where included files are sought, in order, after the folder of the including file and before the built-in files.
    pub include_dirs: Vec<PathBuf>,
    /// `-D` and `-U`, in the order of the command line. `__TARGET_BMV2__` is always defined, as p4c's BMv2 back end does.
    pub macros: Vec<MacroOption>,
    /// `--maxErrorCount`: so many errors are shown, at least 1; `None` for 20, as in p4c.
    pub max_errors: Option<usize>,
}

/// A macro given on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MacroOption {
    /// `-D NAME` (which is 1), `-D NAME=VALUE`, `-D NAME(a)=VALUE`
    Define(String),
    /// `-U NAME`
    Undefine(String),
}

/// Includes may be nested that deep.
const MAX_INCLUDE_DEPTH: usize = 64;
/// Files that one compilation may read, each `#include` counted.
const MAX_FILES: usize = 4096;
/// Tokens that macros may expand to, all together: more is a macro that grows without end.
const MAX_TOKENS: usize = 500_000;
/// Directives, as they may be meant.
const DIRECTIVES: [&str; 14] =
    ["include", "define", "undef", "if", "ifdef", "ifndef", "elif", "elifdef", "elifndef", "else", "endif", "error", "warning", "pragma"];
/// Bytes of one file.
const MAX_FILE_BYTES: usize = 64 << 20;

/// Reads a file with all that it includes; messages go to `diagnostics`. The last token is [`TokenKind::End`].
pub(crate) fn preprocess(
    name: &Path,
    text: String,
    options: &Options,
    files: &dyn Files,
    sources: &mut SourceMap,
    diagnostics: &mut Diagnostics,
) -> Vec<Token> {
    let mut preprocessor = Preprocessor {
        options,
        files,
        sources,
        diagnostics,
        macros: HashMap::new(),
        macro_ids: HashMap::new(),
        out: Vec::new(),
        included: 0,
        expanded: 0,
        exhausted: false,
    };
    let file = preprocessor.sources.add(shown(name), text, None);
    preprocessor.predefine(file);
    preprocessor.file(file, name.parent().map(Path::to_path_buf), 0);
    let end = preprocessor.sources.file(file).map_or(0, |file| file.text.len() as u32);
    let mut out = preprocessor.out;
    out.push(Token { kind: TokenKind::End, text: "".into(), span: Span::new(file, end, end), line_start: true, spaced: true });
    out
}

struct Preprocessor<'a> {
    options: &'a Options,
    files: &'a dyn Files,
    sources: &'a mut SourceMap,
    diagnostics: &'a mut Diagnostics,
    macros: HashMap<Symbol, Macro>,
    macro_ids: HashMap<Symbol, u32>,
    out: Vec<Token>,
    included: usize,
    expanded: usize,
    /// A limit was passed: nothing more is expanded or included.
    exhausted: bool,
}

/// An `#if` that waits for its `#endif`.
struct Conditional {
    span: Span,
    /// Whether the group around it is kept.
    enclosing: bool,
    /// Whether the group that is read now is kept.
    active: bool,
    /// Whether a group was kept already.
    taken: bool,
    seen_else: bool,
}

impl Preprocessor<'_> {
    fn predefine(&mut self, file: FileId) {
        let span = Span::new(file, 0, 0);
        self.define_text(span, "__TARGET_BMV2__");
        for option in self.options.macros.clone() {
            match option {
                MacroOption::Define(text) => self.define_text(span, &text),
                MacroOption::Undefine(name) => {
                    self.macros.remove(name.as_str());
                }
            }
        }
    }

    /// `NAME`, `NAME=VALUE`, `NAME(a)=VALUE`
    fn define_text(&mut self, span: Span, text: &str) {
        let (name, value) = text.split_once('=').unwrap_or((text, "1"));
        let mut line = lexer::tokens_at(span, name);
        let body = lexer::tokens_at(span, value);
        match Macro::parse(span, &mut line) {
            Ok((name, mut new)) if line.is_empty() => {
                new.body = body;
                self.insert(name, new);
            }
            _ => self.diagnostics.push(
                Diagnostic::error(Code::BadDefine, span, format!("`-D {text}` defines no macro"))
                    .without_span()
                    .help("write `-D NAME` or `-D NAME=VALUE`"),
            ),
        }
    }

    fn file(&mut self, file: FileId, folder: Option<PathBuf>, depth: usize) {
        let Some(source) = self.sources.file(file) else { return };
        let tokens = lexer::tokens(file, &source.text.clone());
        let mut conditionals: Vec<Conditional> = Vec::new();
        let mut text: Vec<Token> = Vec::new();
        let mut rest = tokens.as_slice();
        while let Some(first) = rest.first() {
            let end = 1 + rest[1..].iter().position(|token| token.line_start).unwrap_or(rest.len() - 1);
            let (line, after) = rest.split_at(end);
            rest = after;
            let active = conditionals.last().is_none_or(|conditional| conditional.active);
            if !first.is(Punct::Hash) {
                if active {
                    text.extend_from_slice(line);
                }
                continue;
            }
            let name = line.get(1).map_or("", |token| token.text());
            let mark = line.get(1).map_or(first.span, |token| token.span);
            let arguments = line.get(2..).unwrap_or(&[]);
            if self.conditional(name, mark, arguments, active, &mut conditionals) || !active {
                continue;
            }
            self.flush(&mut text);
            if name == "include" {
                self.include(mark, arguments, folder.as_deref(), depth);
            } else {
                self.directive(name, mark, line);
            }
        }
        self.flush(&mut text);
        for open in conditionals {
            self.diagnostics.push(
                Diagnostic::error(Code::OpenConditional, open.span, "this conditional has no `#endif`")
                    .help("add `#endif` before the end of the file"),
            );
        }
    }

    /// Expands what was read since the last directive.
    fn flush(&mut self, text: &mut Vec<Token>) {
        if !text.is_empty() {
            let expanded = self.expand_text(std::mem::take(text));
            self.out.extend(expanded);
        }
    }

    /// Handles `#if` and its kin, in skipped groups too; false when the directive is another one.
    fn conditional(&mut self, name: &str, mark: Span, arguments: &[Token], active: bool, open: &mut Vec<Conditional>) -> bool {
        let opens = matches!(name, "if" | "ifdef" | "ifndef");
        if opens {
            let holds = active && self.holds(name, mark, arguments);
            open.push(Conditional { span: mark, enclosing: active, active: holds, taken: holds, seen_else: false });
            return true;
        }
        if !matches!(name, "elif" | "elifdef" | "elifndef" | "else" | "endif") {
            return false;
        }
        let Some(mut last) = open.pop() else {
            self.diagnostics.push(Diagnostic::error(Code::StrayConditional, mark, format!("`#{name}` without `#if`")));
            return true;
        };
        if name == "endif" {
            return true;
        }
        if last.seen_else {
            self.diagnostics.push(
                Diagnostic::error(Code::StrayConditional, mark, format!("`#{name}` after `#else`"))
                    .note(last.span, "the conditional begins here"),
            );
        }
        last.active = last.enclosing
            && !last.taken
            && match name {
                "else" => true,
                "elif" => self.holds("if", mark, arguments),
                _ => self.holds(&name[2..], mark, arguments),
            };
        last.taken |= last.active;
        last.seen_else |= name == "else";
        open.push(last);
        true
    }

    fn holds(&mut self, name: &str, mark: Span, arguments: &[Token]) -> bool {
        if name == "if" {
            return self.condition(mark, arguments);
        }
        match arguments {
            [word, ..] if word.kind == TokenKind::Word => self.is_defined(&word.text) == (name == "ifdef" || name == "def"),
            _ => {
                self.diagnostics.push(Diagnostic::error(Code::BadDirective, mark, format!("`#{name}` awaits the name of a macro")));
                false
            }
        }
    }

    /// All directives but conditionals and `#include`. `line` is the whole line with its `#`.
    fn directive(&mut self, name: &str, mark: Span, line: &[Token]) {
        let arguments = line.get(2..).unwrap_or(&[]);
        match name {
            "" | "pragma" | "ident" => {}
            "define" => self.define(mark, arguments),
            "undef" => match arguments {
                [word, ..] if word.kind == TokenKind::Word => {
                    self.macros.remove(&word.text);
                }
                _ => self.diagnostics.push(Diagnostic::error(Code::BadDirective, mark, "`#undef` awaits the name of a macro")),
            },
            "error" | "warning" => {
                let words = arguments.first().zip(arguments.last()).map(|(first, last)| first.span.to(last.span));
                let text = words.map_or("", |span| self.sources.text(span)).to_string();
                let text = if text.is_empty() { format!("#{name}") } else { text };
                self.diagnostics.push(if name == "error" {
                    Diagnostic::error(Code::HashError, mark, text)
                } else {
                    Diagnostic::warning(Code::HashWarning, mark, text)
                });
            }
            "line" => self.line(mark, arguments),
            // A line marker, as cpp leaves it in preprocessed text: `# 12 "file" 1`.
            _ if name.parse::<u32>().is_ok() && arguments.first().is_none_or(|token| token.kind == TokenKind::String) => {
                self.line(mark, &line[1..]);
            }
            _ => self.remark(name, mark, line),
        }
    }

    /// A line that begins with `#` and is no directive. Only one that looks like a slip is told of: there, text that was meant to be
    /// left out may stay.
    fn remark(&mut self, name: &str, mark: Span, line: &[Token]) {
        let joined = line.get(1).is_some_and(|token| !token.spaced && token.kind == TokenKind::Word);
        let meant = crate::names::nearest(name, DIRECTIVES.iter().copied().filter(|directive| directive.len() > 3));
        if let (true, Some(meant)) = (joined, meant) {
            self.diagnostics.push(
                Diagnostic::warning(Code::IgnoredDirective, mark, format!("`#{name}` is no directive: the line is ignored"))
                    .help(format!("write `#{meant}` if that is meant, or `//` before a remark")),
            );
        }
    }

    fn define(&mut self, mark: Span, arguments: &[Token]) {
        let mut rest = arguments.to_vec();
        match Macro::parse(mark, &mut rest) {
            Ok((name, mut new)) => {
                new.body = rest;
                if let Err(error) = new.check() {
                    self.diagnostics.push(error);
                    return;
                }
                if let Some(old) = self.macros.get(&name).filter(|old| !old.same(&new)) {
                    self.diagnostics.push(
                        Diagnostic::warning(Code::MacroRedefined, new.span, format!("macro `{name}` is defined anew, differently"))
                            .note(old.span, "the earlier definition")
                            .help(format!("write `#undef {name}` before it if that is meant")),
                    );
                }
                self.insert(name, new);
            }
            Err(error) => self.diagnostics.push(error),
        }
    }

    /// `#line N`, `#line N "file"`
    fn line(&mut self, mark: Span, arguments: &[Token]) {
        let arguments = self.expand_text(arguments.to_vec());
        let number = arguments.first().and_then(|token| token.text().parse::<u32>().ok());
        let (Some(number), Some(file)) = (number, self.sources.file(mark.file)) else {
            let message = "`#line` awaits a line number and, optionally, a file name in quotes";
            self.diagnostics.push(Diagnostic::error(Code::BadDirective, mark, message));
            return;
        };
        let name = arguments.get(1).filter(|token| token.kind == TokenKind::String).map(|t| t.text.trim_matches('"').to_string());
        let text = &file.text[mark.end as usize..];
        let next = mark.end + text.find('\n').map_or(text.len(), |i| i + 1) as u32;
        self.sources.renumber(mark.file, next, number, name);
    }

    /// Says once that a limit was passed.
    fn exhaust(&mut self, error: Diagnostic) {
        if !self.exhausted {
            self.exhausted = true;
            self.diagnostics.push(error);
        }
    }
}

#[cfg(test)]
mod tests;
