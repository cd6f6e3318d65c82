//! The P4_16 front of the compiler: source text to syntax tree. See docs/architecture.md.
//!
//! [`parse_file`] and [`parse_text`] run preprocessor, lexer and parser and give the tree, the files read and the messages.
//! They never panic, whatever the input, and always give a tree: what the parser could make nothing of is left out.

#![forbid(unsafe_code)]

use std::io;
use std::path::Path;

pub mod annotations;
pub mod ast;
pub mod code;
pub mod diagnostic;
mod lexer;
pub mod names;
mod parser;
mod preprocess;
pub mod print;
pub mod source;
pub mod span;
pub mod token;
pub mod visit;

pub use code::Code;
pub use diagnostic::{Diagnostic, Diagnostics, Severity};
pub use preprocess::{shown, written, DiskFiles, Files, MacroOption, Options, BUILT_IN_FILES};
pub use source::{Location, SourceFile, SourceMap};

/// What came out of a source file.
#[derive(Debug, Clone)]
pub struct Parsed {
    /// The tree, includes in place. Incomplete when there are errors.
    pub program: ast::Program,
    /// The files read; later stages need it to show their own messages.
    pub sources: SourceMap,
    /// The messages so far; later stages add theirs.
    pub diagnostics: Diagnostics,
}

/// Parses a file of the machine.
///
/// # Errors
/// The file itself cannot be read. Faults in it, and included files that cannot be read, are messages in [`Parsed::diagnostics`].
pub fn parse_file(path: &Path, options: &Options) -> io::Result<Parsed> {
    let text = DiskFiles.read(path)?;
    Ok(parse_text(path, text, options, &DiskFiles))
}

/// Parses a text as if it stood in a file of that name; includes come from `files`.
pub fn parse_text(name: &Path, text: impl Into<String>, options: &Options, files: &dyn Files) -> Parsed {
    let mut sources = SourceMap::default();
    let mut diagnostics = options.max_errors.map_or_else(Diagnostics::default, Diagnostics::with_limit);
    let tokens = preprocess::preprocess(name, text.into(), options, files, &mut sources, &mut diagnostics);
    let program = parser::parse(tokens, &mut diagnostics);
    Parsed { program, sources, diagnostics }
}

/// Only runs the preprocessor (`-E`): its tokens, the last one the end, the files read, and the messages.
pub fn preprocess_text(
    name: &Path,
    text: impl Into<String>,
    options: &Options,
    files: &dyn Files,
) -> (Vec<token::Token>, SourceMap, Diagnostics) {
    let mut sources = SourceMap::default();
    let mut diagnostics = Diagnostics::default();
    let tokens = preprocess::preprocess(name, text.into(), options, files, &mut sources, &mut diagnostics);
    (tokens, sources, diagnostics)
}

/// The tokens of a text as they are written, before the preprocessor; what lies between their spans is white space and comments.
pub fn raw_tokens(text: &str) -> Vec<token::Token> {
    lexer::tokens(span::FileId(0), text)
}
