//! The language server (`fairlane lsp`): the compiler's answers to an editor, by the Language Server Protocol 3.17. See docs/editor.md.
//!
//! [`Server`] takes messages and gives messages; it reads files, and starts nothing. [`serve`] connects it with standard input and output.
//! Each answer is of the text as it is now, unsaved changes included: a program is analysed again as a whole when one of its files has changed.

#![forbid(unsafe_code)]

mod completion;
mod messages;
mod names;
mod outline;
mod program;
mod project;
mod text;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use fairlane_compiler::Options;
use lsp_server::{Connection, ErrorCode, Message, Notification, Request, Response};
use serde_json::{json, Value};

use program::Program;
use project::Project;
use text::Lines;

/// What an error of the client or of the server is answered with.
type Answer = Result<Value, (ErrorCode, String)>;

/// Serves an editor on standard input and output until it says `exit`. Gives whether it said `shutdown` before, as it should.
///
/// # Errors
/// Standard input or output fails, or what comes in is no message of the protocol.
pub fn serve(options: Options) -> std::io::Result<bool> {
    let (connection, threads) = Connection::stdio();
    let mut server = Server::new(options);
    let gone = || std::io::Error::other("the editor has gone");
    for message in &connection.receiver {
        let mut out = server.take(message);
        // Messages about a text that changes again at once are not asked for.
        if connection.receiver.is_empty() {
            out.extend(server.rest());
        }
        for message in out {
            connection.sender.send(message).map_err(|_| gone())?;
        }
        if server.exit {
            break;
        }
    }
    let said = server.shutdown;
    drop(connection);
    threads.join()?;
    Ok(said)
}

/// The server of one editor.
pub struct Server {
    options: Options,
    folder: Option<PathBuf>,
    project: Option<Project>,
    /// The texts of open files.
    open: HashMap<PathBuf, String>,
    /// Counts changes; a program of an older count is analysed again.
    now: u64,
    programs: HashMap<PathBuf, (u64, Rc<Program>)>,
    /// The messages shown for each program.
    shown: BTreeMap<PathBuf, BTreeMap<PathBuf, Vec<Value>>>,
    published: BTreeSet<PathBuf>,
    stale: bool,
    out: Vec<Message>,
    shutdown: bool,
    /// Whether the editor wants no more.
    pub exit: bool,
}

impl Server {
    /// A server that knows no files yet. Folders of includes and macros come from the command line and from the editor's settings.
    pub fn new(options: Options) -> Server {
        Server {
            options: Options { max_errors: Some(500), ..options },
            folder: None,
            project: None,
            open: HashMap::new(),
            now: 0,
            programs: HashMap::new(),
            shown: BTreeMap::new(),
            published: BTreeSet::new(),
            stale: false,
            out: Vec::new(),
            shutdown: false,
            exit: false,
        }
    }

    /// Takes a message, and gives what is to be said at once.
    pub fn take(&mut self, message: Message) -> Vec<Message> {
        match message {
            Message::Request(request) => {
                let response = self.answer(request);
                self.out.push(response.into());
            }
            Message::Notification(notification) => {
                let method = notification.method.clone();
                if catch_unwind(AssertUnwindSafe(|| self.note(notification))).is_err() {
                    self.say(1, &format!("{method} failed: this is a fault of the language server, please report it"));
                }
            }
            Message::Response(_) => {}
        }
        std::mem::take(&mut self.out)
    }

    /// What there is to say when no message waits: the compiler's messages about what has changed.
    pub fn rest(&mut self) -> Vec<Message> {
        if std::mem::take(&mut self.stale) && catch_unwind(AssertUnwindSafe(|| self.publish())).is_err() {
            self.say(1, "the compiler failed: this is a fault of it, please report it");
        }
        std::mem::take(&mut self.out)
    }

    fn answer(&mut self, request: Request) -> Response {
        let Request { id, method, params } = request;
        let result = catch_unwind(AssertUnwindSafe(|| self.request(&method, &params)));
        match result {
            Ok(Ok(value)) => Response { id, response_result: Ok(value) },
            Ok(Err((code, message))) => Response::new_err(id, code as i32, message),
            Err(_) => {
                let message = format!("{method} failed: this is a fault of the language server, please report it");
                Response::new_err(id, ErrorCode::InternalError as i32, message)
            }
        }
    }

    fn notify(&mut self, method: &str, params: Value) {
        self.out.push(Notification { method: method.to_string(), params }.into());
    }

    /// A line of the editor's own log or a message on its window: 1 error, 2 warning, 3 information.
    fn say(&mut self, severity: u32, text: &str) {
        self.notify("window/showMessage", json!({ "type": severity, "message": text }));
    }

    // -- notifications

    fn note(&mut self, notification: Notification) {
        let params = &notification.params;
        let path = document(params);
        match (&*notification.method, path) {
            ("exit", _) => self.exit = true,
            ("textDocument/didOpen", Some(path)) => {
                let text = params["textDocument"]["text"].as_str().unwrap_or("").to_string();
                self.change(path, Some(text));
            }
            ("textDocument/didChange", Some(path)) => {
                let text = self.open.get(&path).cloned().unwrap_or_default();
                let empty = Vec::new();
                let changes = params["contentChanges"].as_array().unwrap_or(&empty);
                let text = changes.iter().fold(text, edited);
                self.change(path, Some(text));
            }
            ("textDocument/didClose", Some(path)) => self.change(path, None),
            ("textDocument/didSave", _) | ("workspace/didChangeWatchedFiles", _) => {
                self.project = None;
                self.changed();
            }
            ("workspace/didChangeConfiguration", _) => {
                self.settings(&params["settings"]["fairlane"]);
                self.changed();
            }
            _ => {}
        }
    }

    fn change(&mut self, path: PathBuf, text: Option<String>) {
        if let (Some(text), Some(project)) = (&text, &mut self.project) {
            project.add(&path, text, &self.options.include);
        }
        match text {
            Some(text) => self.open.insert(path, text),
            None => self.open.remove(&path),
        };
        self.changed();
    }

    fn changed(&mut self) {
        self.now += 1;
        self.stale = true;
    }

    /// `{include: [..], define: [..]}`: folders relative to the folder that is open, macros.
    fn settings(&mut self, given: &Value) {
        let list = |key: &str| {
            let values = given.get(key).and_then(Value::as_array)?;
            Some(values.iter().filter_map(|value| value.as_str().map(str::to_string)).collect::<Vec<String>>())
        };
        if let Some(include) = list("include") {
            let folder = self.folder.clone().unwrap_or_default();
            self.options.include = include.iter().map(|name| text::normal(&folder.join(name))).collect();
            self.project = None;
        }
        if let Some(define) = list("define") {
            self.options.define = define;
        }
    }

    // -- programs

    fn project(&mut self) -> &Project {
        if self.project.is_none() {
            let mut project = self.folder.as_ref().map_or_else(Project::default, |folder| Project::of(folder, &self.options.include));
            for (path, text) in &self.open {
                project.add(path, text, &self.options.include);
            }
            self.project = Some(project);
        }
        self.project.get_or_insert_default()
    }

    /// The program of a file, and whether the file is only a part of one that nobody knows.
    fn program(&mut self, path: &Path) -> (PathBuf, Rc<Program>, bool) {
        if self.project().is_complete(path) {
            return (path.to_owned(), self.analysed(path), false);
        }
        if let Some(root) = self.project().program_of(path) {
            let program = self.analysed(&root);
            // Not where a macro decides, and decides otherwise.
            if program.file(path).is_some() {
                return (root, program, false);
            }
        }
        (path.to_owned(), self.analysed(path), true)
    }

    fn analysed(&mut self, root: &Path) -> Rc<Program> {
        if let Some((at, program)) = self.programs.get(root)
            && *at == self.now
        {
            return Rc::clone(program);
        }
        let program = Rc::new(Program::new(root, &self.open, &self.options));
        let now = self.now;
        self.programs.retain(|_, (at, _)| *at == now);
        self.programs.insert(root.to_owned(), (now, Rc::clone(&program)));
        program
    }

    fn publish(&mut self) {
        let mut paths: Vec<PathBuf> = self.open.keys().cloned().collect();
        paths.sort();
        self.shown.clear();
        for path in paths {
            let (root, program, part) = self.program(&path);
            self.shown.entry(root).or_insert_with(|| messages::messages(&program, part));
        }
        let mut all: BTreeMap<PathBuf, Vec<Value>> = self.open.keys().map(|path| (path.clone(), Vec::new())).collect();
        for (path, list) in self.shown.values().flatten() {
            let of = all.entry(path.clone()).or_default();
            of.extend(list.iter().filter(|value| !of.contains(value)).cloned().collect::<Vec<_>>());
        }
        let gone: Vec<PathBuf> = self.published.iter().filter(|path| !all.contains_key(*path)).cloned().collect();
        for path in gone {
            self.notify("textDocument/publishDiagnostics", json!({ "uri": text::uri(&path), "diagnostics": [] }));
        }
        self.published = all.keys().cloned().collect();
        for (path, list) in all {
            self.notify("textDocument/publishDiagnostics", json!({ "uri": text::uri(&path), "diagnostics": list }));
        }
    }

    // -- requests

    fn request(&mut self, method: &str, params: &Value) -> Answer {
        match method {
            "initialize" => return Ok(self.initialize(params)),
            "shutdown" => {
                self.shutdown = true;
                return Ok(Value::Null);
            }
            _ if !method.starts_with("textDocument/") => return Err((ErrorCode::MethodNotFound, format!("{method} is unknown"))),
            _ => {}
        }
        let path = document(params).ok_or((ErrorCode::InvalidParams, "the request names no file".to_string()))?;
        if method == "textDocument/formatting" {
            return Ok(self.format(&path));
        }
        let (_, program, _) = self.program(&path);
        let Some(file) = program.file(&path) else { return Ok(Value::Null) };
        let offset =
            || program.offset(file, &params["position"]).ok_or((ErrorCode::InvalidParams, "the request has no position".to_string()));
        let bounds = || {
            let place = |key: &str| program.offset(file, &params["range"][key]);
            place("start").zip(place("end")).ok_or((ErrorCode::InvalidParams, "the request has no range".to_string()))
        };
        let refused = |message: String| (ErrorCode::RequestFailed, message);
        let found = match method {
            "textDocument/hover" => names::hover(&program, file, offset()?),
            "textDocument/definition" => names::definition(&program, file, offset()?),
            "textDocument/references" => {
                let declaration = params["context"]["includeDeclaration"].as_bool().unwrap_or(true);
                names::references(&program, file, offset()?, declaration)
            }
            "textDocument/documentHighlight" => names::highlights(&program, file, offset()?),
            "textDocument/prepareRename" => Some(names::renamed(&program, file, offset()?).map_err(refused)?),
            "textDocument/rename" => {
                let new = params["newName"].as_str().unwrap_or("");
                Some(names::rename(&program, file, offset()?, new, &self.open, &self.options).map_err(refused)?)
            }
            "textDocument/completion" => Some(completion::completion(&program, file, offset()?)),
            "textDocument/signatureHelp" => completion::signature_help(&program, file, offset()?),
            "textDocument/documentSymbol" => Some(outline::symbols(&program, file)),
            "textDocument/semanticTokens/full" => Some(outline::semantic_tokens(&program, file)),
            "textDocument/inlayHint" => {
                let (from, to) = bounds()?;
                Some(outline::hints(&program, file, from, to))
            }
            "textDocument/codeAction" => {
                let (from, to) = bounds()?;
                Some(messages::fixes(&program, file, from, to))
            }
            _ => return Err((ErrorCode::MethodNotFound, format!("{method} is unknown"))),
        };
        Ok(found.unwrap_or(Value::Null))
    }

    fn initialize(&mut self, params: &Value) -> Value {
        let folders = params["workspaceFolders"].as_array().and_then(|list| list.first()).and_then(|first| first["uri"].as_str());
        self.folder = folders.or_else(|| params["rootUri"].as_str()).and_then(text::path);
        self.settings(&params["initializationOptions"]);
        json!({
            "capabilities": {
                "positionEncoding": "utf-16",
                "textDocumentSync": { "openClose": true, "change": 2, "save": true },
                "hoverProvider": true,
                "definitionProvider": true,
                "referencesProvider": true,
                "documentHighlightProvider": true,
                "renameProvider": { "prepareProvider": true },
                "completionProvider": { "triggerCharacters": [".", "@", "#"] },
                "signatureHelpProvider": { "triggerCharacters": ["(", ","] },
                "documentSymbolProvider": true,
                "documentFormattingProvider": true,
                "codeActionProvider": { "codeActionKinds": ["quickfix"] },
                "inlayHintProvider": true,
                "semanticTokensProvider": {
                    "legend": { "tokenTypes": outline::TOKEN_TYPES, "tokenModifiers": outline::TOKEN_MODIFIERS }, "full": true,
                },
            },
            "serverInfo": { "name": "fairlane", "version": env!("CARGO_PKG_VERSION") },
        })
    }

    /// The edit that formats a file; none where it is formatted, or better left as it is.
    fn format(&mut self, path: &Path) -> Value {
        let Some(old) = names::current(path, &self.open) else { return Value::Null };
        match fairlane_format::format(&old, fairlane_format::WIDTH) {
            Ok(new) if new == old => json!([]),
            Ok(new) => {
                let (start, end) = differing(&old, &new);
                let inserted = &new[start..new.len() - (old.len() - end)];
                json!([{ "range": Lines::new(&old).range(&old, start, end), "newText": inserted }])
            }
            Err(why) => {
                self.say(2, &format!("{}:{}:{}: not formatted: {}", path.display(), why.line, why.column, why.reason));
                Value::Null
            }
        }
    }
}

/// The bytes of the old text between the lines that both begin with and those that both end with.
fn differing(old: &str, new: &str) -> (usize, usize) {
    let same = |(a, b): &(&str, &str)| a == b;
    let start: usize = old.split_inclusive('\n').zip(new.split_inclusive('\n')).take_while(same).map(|(line, _)| line.len()).sum();
    let (rest, other) = (&old[start..], &new[start..]);
    let ends = rest.split_inclusive('\n').rev().zip(other.split_inclusive('\n').rev());
    let end: usize = ends.take_while(same).map(|(line, _)| line.len()).sum();
    (start, old.len() - end)
}

fn document(params: &Value) -> Option<PathBuf> {
    text::path(params["textDocument"]["uri"].as_str()?)
}

/// The text after one change.
fn edited(mut text: String, change: &Value) -> String {
    let new = change["text"].as_str().unwrap_or("");
    let Some(range) = change.get("range").filter(|range| !range.is_null()) else { return new.to_string() };
    let lines = Lines::new(&text);
    let place = |key: &str| {
        let number = |part: &str| range[key][part].as_u64().unwrap_or(0) as usize;
        lines.offset(&text, number("line"), number("character"))
    };
    let (start, end) = (place("start"), place("end"));
    text.replace_range(start..end.max(start), new);
    text
}
