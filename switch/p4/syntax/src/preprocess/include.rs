//! `#include`: where files are sought, and the files built in.

use std::io;
use std::path::{Path, PathBuf, MAIN_SEPARATOR};

use super::{Preprocessor, MAX_FILES, MAX_FILE_BYTES, MAX_INCLUDE_DEPTH};
use crate::code::Code;
use crate::diagnostic::Diagnostic;
use crate::span::Span;
use crate::token::{Punct, Token, TokenKind};

/// The files that `#include` finds without any `-I`: name and text.
pub const BUILT_IN_FILES: &[(&str, &str)] = &[
    ("core.p4", include_str!("../../include/core.p4")),
    ("v1model.p4", include_str!("../../include/v1model.p4")),
    ("psa.p4", PSA),
    // p4c's name for it.
    ("bmv2/psa.p4", PSA),
];

const PSA: &str = include_str!("../../include/psa.p4");

/// Where the text of files comes from.
pub trait Files {
    /// The text of a file. Bytes that are not UTF-8 (in comments of old files) may be replaced.
    ///
    /// # Errors
    /// The file cannot be read; [`io::ErrorKind::NotFound`] lets the search go on.
    fn read(&self, path: &Path) -> io::Result<String>;
}

/// The files of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct DiskFiles;

impl Files for DiskFiles {
    fn read(&self, path: &Path) -> io::Result<String> {
        let bytes = std::fs::read(path)?;
        Ok(String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }
}

/// How messages and the compiled program name a file: with `/` on every system.
pub fn shown(path: &Path) -> String {
    path.display().to_string().replace(MAIN_SEPARATOR, "/")
}

impl Preprocessor<'_> {
    /// `#include "x"`, `#include <x>`, `#include MACRO`
    pub(super) fn include(&mut self, mark: Span, arguments: &[Token], folder: Option<&Path>, depth: usize) {
        if self.exhausted {
            return;
        }
        let Some((name, quoted, span)) = self.file_name(mark, arguments) else {
            self.diagnostics.push(
                Diagnostic::error(Code::BadDirective, mark, "`#include` awaits a file name")
                    .help("write `#include <name>` or `#include \"name\"`"),
            );
            return;
        };
        if depth >= MAX_INCLUDE_DEPTH {
            let message = format!("files include each other more than {MAX_INCLUDE_DEPTH} deep");
            self.exhaust(Diagnostic::error(Code::IncludeDepth, span, message).help("guard the file with `#ifndef`, `#define`, `#endif`"));
            return;
        }
        self.included += 1;
        if self.included > MAX_FILES {
            self.exhaust(Diagnostic::error(Code::IncludeCount, span, format!("more than {MAX_FILES} files are included")));
            return;
        }
        let mut candidates: Vec<PathBuf> = Vec::new();
        if quoted {
            candidates.extend(folder.map(|folder| folder.join(&name)));
        }
        candidates.extend(self.options.include_dirs.iter().map(|folder| folder.join(&name)));
        for path in candidates {
            match self.files.read(&path) {
                Ok(text) if text.len() > MAX_FILE_BYTES => {
                    let message = format!("`{}` is longer than {} MiB", shown(&path), MAX_FILE_BYTES >> 20);
                    self.diagnostics.push(Diagnostic::error(Code::FileSize, span, message));
                    return;
                }
                Ok(text) => {
                    let file = self.sources.add(shown(&path), text, Some(mark));
                    self.file(file, path.parent().map(Path::to_path_buf), depth + 1);
                    return;
                }
                Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
                Err(error) => {
                    let message = format!("cannot read `{}`: {error}", shown(&path));
                    self.diagnostics.push(Diagnostic::error(Code::UnreadableFile, span, message));
                    return;
                }
            }
        }
        match BUILT_IN_FILES.iter().find(|(built_in, _)| *built_in == name) {
            Some((_, text)) => {
                let file = self.sources.add(format!("<{name}>"), *text, Some(mark));
                self.file(file, None, depth + 1);
            }
            None => {
                let names: Vec<_> = BUILT_IN_FILES.iter().map(|(name, _)| *name).collect();
                self.diagnostics.push(
                    Diagnostic::error(Code::MissingInclude, span, format!("cannot find the file `{name}`"))
                        .help(format!("name its folder with `-I`; built in are {}", names.join(", "))),
                );
            }
        }
    }

    /// The name, whether it stood in quotes, and where.
    fn file_name(&mut self, mark: Span, arguments: &[Token]) -> Option<(String, bool, Span)> {
        let first = arguments.first()?;
        let last = arguments.last()?;
        if first.kind == TokenKind::String {
            return Some((first.text.trim_matches('"').to_string(), true, first.span));
        }
        if first.is(Punct::Less) {
            // A path is no sequence of tokens: take the text as it stands.
            let span = first.span.to(last.span);
            let line = self.sources.line_text(first.span);
            let start = self.sources.location(first.span).column as usize;
            let rest: String = line.chars().skip(start).collect();
            let name = rest.split_once('>')?.0.to_string();
            return (!name.is_empty()).then_some((name, false, span));
        }
        if first.kind != TokenKind::Word {
            return None;
        }
        let expanded = self.expand_text(arguments.to_vec());
        let first = expanded.first()?;
        if first.kind == TokenKind::String {
            return Some((first.text.trim_matches('"').to_string(), true, mark));
        }
        let inner: String = expanded.iter().skip(1).take_while(|t| !t.is(Punct::Greater)).map(|t| t.text().to_string()).collect();
        (first.is(Punct::Less) && !inner.is_empty()).then_some((inner, false, mark))
    }
}
