//! Which program a file belongs to: a file without `main` is read as part of one that includes it.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::path::{Path, PathBuf};

use fairlane_syntax::token::{Punct, Token, TokenKind};

use crate::text::normal;

/// So many files of a folder are looked at.
const MAX_FILES: usize = 5_000;
/// Larger ones are not.
const MAX_BYTES: u64 = 1 << 20;

/// What the files of a folder include.
#[derive(Debug, Default)]
pub(crate) struct Project {
    /// The files that include a file.
    includers: HashMap<PathBuf, BTreeSet<PathBuf>>,
    complete: BTreeSet<PathBuf>,
}

impl Project {
    /// Reads the P4 files of a folder.
    pub fn of(folder: &Path, include: &[PathBuf]) -> Project {
        let mut out = Project::default();
        for path in p4_files(folder) {
            if let Ok(text) = std::fs::read_to_string(&path) {
                out.add(&path, &text, include);
            }
        }
        out
    }

    /// Adds a file, or what it includes now.
    pub fn add(&mut self, path: &Path, text: &str, include: &[PathBuf]) {
        let tokens = fairlane_syntax::raw_tokens(text);
        self.includers.values_mut().for_each(|by| {
            by.remove(path);
        });
        for name in includes(&tokens, text) {
            let folders = path.parent().into_iter().chain(include.iter().map(PathBuf::as_path));
            if let Some(found) = folders.map(|folder| normal(&folder.join(&name))).find(|file| file.is_file()) {
                self.includers.entry(found).or_default().insert(path.to_owned());
            }
        }
        if has_main(&tokens) {
            self.complete.insert(path.to_owned());
        } else {
            self.complete.remove(path);
        }
    }

    /// Whether the file is a program.
    pub fn is_complete(&self, path: &Path) -> bool {
        self.complete.contains(path)
    }

    /// The program that the file is a part of: the nearest that includes it.
    pub fn program_of(&self, path: &Path) -> Option<PathBuf> {
        let mut seen = BTreeSet::from([path.to_owned()]);
        let mut next = VecDeque::from([path.to_owned()]);
        while let Some(file) = next.pop_front() {
            if self.complete.contains(&file) {
                return Some(file);
            }
            for by in self.includers.get(&file).into_iter().flatten() {
                if seen.insert(by.clone()) {
                    next.push_back(by.clone());
                }
            }
        }
        None
    }
}

/// The names in the `#include` lines.
fn includes(tokens: &[Token], text: &str) -> Vec<String> {
    let mut out = Vec::new();
    for window in tokens.windows(3) {
        let [hash, word, name] = window else { continue };
        if !(hash.is(Punct::Hash) && hash.line_start && word.is_word("include")) {
            continue;
        }
        let rest = text[name.span.start as usize..].lines().next().unwrap_or("");
        let ends = if name.kind == TokenKind::String { '"' } else { '>' };
        out.extend(rest.get(1..).and_then(|rest| rest.split_once(ends)).map(|(name, _)| name.to_string()));
    }
    out
}

/// Whether an instance `main` is declared.
fn has_main(tokens: &[Token]) -> bool {
    tokens.windows(3).any(|w| w[0].is(Punct::CloseParen) && w[1].is_word("main") && w[2].is(Punct::Semicolon))
}

fn p4_files(folder: &Path) -> Vec<PathBuf> {
    let mut out = Vec::new();
    let mut folders = VecDeque::from([folder.to_owned()]);
    while let Some(folder) = folders.pop_front() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        paths.sort();
        for path in paths {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.starts_with('.') || matches!(&*name, "target" | "node_modules" | "build") || path.is_symlink() {
                continue;
            }
            if path.is_dir() {
                folders.push_back(path);
            } else if name.ends_with(".p4") && path.metadata().is_ok_and(|data| data.len() <= MAX_BYTES) {
                out.push(path);
            }
            if out.len() >= MAX_FILES || folders.len() >= MAX_FILES {
                return out;
            }
        }
    }
    out
}
