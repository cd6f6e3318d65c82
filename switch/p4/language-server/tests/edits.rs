//! Random edits with random requests between them: no request ends in a fault of the server, and the first text has the first messages again.
//! `EDITS=10000 cargo test -p fairlane-language-server --release` makes more of them.

use std::path::{Path, PathBuf};

use fairlane_compiler::Options;
use fairlane_language_server::Server;
use fairlane_random::Rng;
use lsp_server::{ErrorCode, Message, Notification, Request};
use serde_json::{json, Value};

const METHODS: [&str; 12] = [
    "hover",
    "definition",
    "references",
    "documentHighlight",
    "prepareRename",
    "rename",
    "completion",
    "signatureHelp",
    "documentSymbol",
    "semanticTokens/full",
    "formatting",
    "codeAction",
];
const PIECES: [&str; 22] = [
    "",
    "",
    " ",
    "{",
    "}",
    "(",
    ")",
    ";",
    ".",
    "<",
    ">",
    "\n",
    "x",
    "hdr.",
    "#if 1\n",
    "#endif\n",
    "/*",
    "*/",
    "\"",
    "apply",
    "\u{e9}\u{1f600}",
    "#define hdr hdr.x\n",
];

struct Editor {
    server: Server,
    path: PathBuf,
    text: String,
    asked: i32,
    messages: Value,
}

impl Editor {
    fn open(path: &Path) -> Editor {
        let text = std::fs::read_to_string(path).expect("a program");
        let mut server = Server::new(Options { include: vec![path.parent().expect("a folder").to_owned()], ..Options::default() });
        server.take(request(0, "initialize", json!({})));
        let mut editor = Editor { server, path: path.to_owned(), text: text.clone(), asked: 0, messages: Value::Null };
        editor.note("textDocument/didOpen", json!({ "textDocument": { "uri": editor.uri(), "text": text } }));
        editor
    }

    fn uri(&self) -> String {
        format!("file://{}", self.path.display())
    }

    fn note(&mut self, method: &str, params: Value) {
        let mut out = self.server.take(Notification { method: method.into(), params }.into());
        out.extend(self.server.rest());
        for message in out {
            let Message::Notification(Notification { method, params }) = message else { panic!("no answer was awaited") };
            assert!(!(method == "window/showMessage" && params["message"].as_str().is_some_and(|text| text.contains("fault"))), "{params}");
            if method == "textDocument/publishDiagnostics" && params["uri"] == self.uri() {
                self.messages = params["diagnostics"].clone();
            }
        }
    }

    /// Replaces bytes of the text.
    fn replace(&mut self, start: usize, end: usize, new: &str) {
        let change = json!({ "range": { "start": self.place(start), "end": self.place(end) }, "text": new });
        self.text.replace_range(start..end, new);
        self.note("textDocument/didChange", json!({ "textDocument": { "uri": self.uri() }, "contentChanges": [change] }));
    }

    fn place(&self, offset: usize) -> Value {
        let before = &self.text[..offset];
        let line = before.rfind('\n').map_or(0, |i| i + 1);
        json!({ "line": before.matches('\n').count(), "character": before[line..].encode_utf16().count() })
    }

    fn ask(&mut self, method: &str, offset: usize) {
        let place = self.place(offset);
        let params = json!({
            "textDocument": { "uri": self.uri() }, "position": place, "range": { "start": place, "end": place }, "newName": "renamed",
        });
        self.asked += 1;
        for message in self.server.take(request(self.asked, &format!("textDocument/{method}"), params)) {
            if let Message::Response(answer) = message
                && let Err(error) = answer.response_result
            {
                // A rename may be refused, and nothing else.
                assert_eq!(error.code, ErrorCode::RequestFailed as i32, "{method}: {}", error.message);
            }
        }
    }
}

fn request(id: i32, method: &str, params: Value) -> Message {
    Request { id: id.into(), method: method.into(), params }.into()
}

fn boundary(text: &str, offset: usize) -> usize {
    (0..=offset.min(text.len())).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0)
}

#[test]
fn random_edits_end_where_they_began() {
    let edits: usize = std::env::var("EDITS").map_or(40, |count| count.parse().expect("a number"));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").canonicalize().expect("the repository");
    for name in ["tests/p4/basic/basic.p4", "p4src/als.p4"] {
        let mut draw = Rng::stream(1, name);
        let mut editor = Editor::open(&root.join(name));
        let (first, messages) = (editor.text.clone(), editor.messages.clone());
        for turn in 0..edits {
            if turn % 40 == 39 {
                editor.replace(0, editor.text.len(), &first);
                continue;
            }
            let mut upto = |most: usize| draw.up_to(most as u64) as usize;
            let start = boundary(&editor.text, upto(editor.text.len()));
            let end = boundary(&editor.text, start + [0, 0, 0, 1, 1, 3, 10, 200][upto(7)]).max(start);
            let from = boundary(&first, upto(first.len()));
            let part = &first[from..boundary(&first, from + upto(60)).max(from)];
            let new = PIECES.get(upto(PIECES.len())).copied().unwrap_or(part);
            let (method, offset) = (METHODS[upto(METHODS.len() - 1)], upto(editor.text.len()));
            editor.replace(start, end, new);
            let at = if turn % 2 == 0 { start } else { offset };
            editor.ask(method, boundary(&editor.text, at));
        }
        editor.replace(0, editor.text.len(), &first);
        assert_eq!(editor.messages, messages, "{name}");
    }
}
