//! A program as the compiler understands it now, open files with their unsaved text.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use fairlane_compiler::index::{Definition, Index};
use fairlane_compiler::{analyze, Analysis, Options};
use fairlane_syntax::ast::{FileId, Span};
use fairlane_syntax::token::{Punct, Token, TokenKind};
use fairlane_syntax::{DiskFiles, Files};
use serde_json::{json, Value};

use crate::text::{normal, uri, Lines};

/// The files of the machine, under the texts of an editor.
pub(crate) struct Open<'a>(pub &'a HashMap<PathBuf, String>);

impl Files for Open<'_> {
    fn read(&self, path: &Path) -> io::Result<String> {
        match self.0.get(&normal(path)) {
            Some(text) => Ok(text.clone()),
            None => DiskFiles.read(path),
        }
    }
}

/// An analysed program.
pub(crate) struct Program {
    pub analysis: Analysis,
    /// Each file's path, `None` for those built in.
    paths: Vec<Option<PathBuf>>,
    lines: Vec<OnceCell<Lines>>,
    tokens: Vec<OnceCell<Vec<Token>>>,
}

impl Program {
    pub fn new(path: &Path, open: &HashMap<PathBuf, String>, options: &Options) -> Program {
        let text = Open(open).read(path).unwrap_or_default();
        let analysis = analyze(path, &text, options, &Open(open));
        let files = analysis.sources.files();
        let path_of = |name: &str| (!name.starts_with('<')).then(|| normal(Path::new(name)));
        let paths = files.iter().map(|file| path_of(&file.name)).collect();
        let (lines, tokens) = (vec![OnceCell::new(); files.len()], vec![OnceCell::new(); files.len()]);
        Program { analysis, paths, lines, tokens }
    }

    pub fn index(&self) -> &Index {
        &self.analysis.index
    }

    pub fn definition(&self, id: usize) -> &Definition {
        &self.index().definitions[id]
    }

    /// The file of that path; of one that is included twice, the first.
    pub fn file(&self, path: &Path) -> Option<FileId> {
        self.paths.iter().position(|known| known.as_deref() == Some(path)).map(|i| FileId(i as u32))
    }

    pub fn files(&self) -> impl Iterator<Item = (FileId, &Path)> {
        self.paths.iter().enumerate().filter_map(|(i, path)| Some((FileId(i as u32), path.as_deref()?)))
    }

    pub fn path(&self, file: FileId) -> Option<&Path> {
        self.paths.get(file.0 as usize)?.as_deref()
    }

    pub fn text(&self, file: FileId) -> &str {
        self.analysis.sources.file(file).map_or("", |file| &file.text)
    }

    pub fn lines(&self, file: FileId) -> Option<&Lines> {
        Some(self.lines.get(file.0 as usize)?.get_or_init(|| Lines::new(self.text(file))))
    }

    /// The tokens of a file as written.
    pub fn tokens(&self, file: FileId) -> &[Token] {
        self.tokens.get(file.0 as usize).map_or(&[], |cell| cell.get_or_init(|| fairlane_syntax::raw_tokens(self.text(file))))
    }

    pub fn offset(&self, file: FileId, position: &Value) -> Option<u32> {
        let number = |key: &str| position.get(key).and_then(Value::as_u64);
        let (line, character) = (number("line")? as usize, number("character")? as usize);
        Some(self.lines(file)?.offset(self.text(file), line, character) as u32)
    }

    pub fn range(&self, span: Span) -> Value {
        let text = self.text(span.file);
        self.lines(span.file).map_or(Value::Null, |lines| lines.range(text, span.start as usize, span.end as usize))
    }

    /// `{uri, range}`; a built-in file is written to a folder of this machine so that an editor can show it.
    pub fn location(&self, span: Span) -> Option<Value> {
        let uri = match self.path(span.file) {
            Some(path) => uri(path),
            None => uri(&self.built_in(span.file)?),
        };
        Some(json!({ "uri": uri, "range": self.range(span) }))
    }

    fn built_in(&self, file: FileId) -> Option<PathBuf> {
        let source = self.analysis.sources.file(file)?;
        let name = source.name.trim_matches(|c| c == '<' || c == '>');
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let cache = variable("XDG_CACHE_HOME").or_else(|| variable("LOCALAPPDATA")).or_else(|| Some(variable("HOME")?.join(".cache")));
        let path = cache.unwrap_or_else(std::env::temp_dir).join("fairlane").join("p4include").join(name);
        if std::fs::read_to_string(&path).is_ok_and(|text| text == *source.text) {
            return Some(path);
        }
        std::fs::create_dir_all(path.parent()?).ok()?;
        std::fs::write(&path, source.text.as_bytes()).ok()?;
        Some(path)
    }

    /// Whether the span shows the name itself, and no macro that brings it.
    pub fn shows(&self, span: Span, name: &str) -> bool {
        self.analysis.sources.text(span) == name
    }

    /// The word at a place.
    pub fn word(&self, file: FileId, offset: u32) -> Option<&Token> {
        let tokens = self.tokens(file);
        let from = tokens.partition_point(|token| token.span.end < offset);
        let mut near = tokens[from..].iter().take_while(|token| token.span.start <= offset);
        near.find(|token| token.kind == TokenKind::Word)
    }

    /// What the word at a place stands for.
    pub fn named(&self, file: FileId, offset: u32) -> Option<(Span, usize)> {
        let (span, id) = self.index().at(file, offset)?;
        self.shows(span, &self.definition(id).name).then_some((span, id))
    }

    /// Where the macro of that name is defined, in any of the files; the last one counts.
    pub fn macro_named(&self, name: &str) -> Option<Span> {
        (0..self.paths.len()).rev().find_map(|i| {
            let tokens = self.tokens(FileId(i as u32));
            let place = tokens.windows(3).rposition(|w| {
                w[0].is(Punct::Hash)
                    && w[0].line_start
                    && w[1].is_word("define")
                    && !w[1].line_start
                    && w[2].is_word(name)
                    && !w[2].line_start
            })?;
            Some(Span { file: FileId(i as u32), ..tokens[place + 2].span })
        })
    }

    /// The file that the `#include` of this line brings in.
    pub fn included(&self, file: FileId, offset: u32) -> Option<FileId> {
        let lines = self.lines(file)?;
        let line = lines.line(offset as usize).0;
        let by = |from: Span| from.file == file && lines.line(from.start as usize).0 == line;
        let files = self.analysis.sources.files();
        files.iter().position(|f| f.included_from.is_some_and(by)).map(|i| FileId(i as u32))
    }
}
