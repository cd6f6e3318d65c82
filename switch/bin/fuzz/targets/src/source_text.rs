//! P4 source text: preprocessor, parser, and the whole compiler.

use std::io;
use std::path::Path;
use std::sync::Arc;

use fairlane_compiler::compile_source_with;
use fairlane_pipeline::Program;
use fairlane_syntax::{parse_text, preprocess_text, print, Files, Options};

use crate::programs;

/// Files an input may include: itself, and one with a macro. Nothing of the disk.
struct Included<'a>(&'a str);

impl Files for Included<'_> {
    fn read(&self, path: &Path) -> io::Result<String> {
        match path.file_name().and_then(|name| name.to_str()) {
            Some("self.p4") => Ok(self.0.to_owned()),
            Some("macro.p4") => Ok("#ifndef M\n#define M(x, ...) x ## y #x __VA_ARGS__ x\n#endif\n".to_owned()),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

/// Tokens come out, and every message can be shown.
pub fn preprocess(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (tokens, sources, diagnostics) = preprocess_text(Path::new("input.p4"), &*text, &Options::default(), &Included(&text));
    assert!(!tokens.is_empty(), "the last token is always there");
    diagnostics.render(&sources);
}

/// A tree comes out; what parses, prints back to itself.
pub fn parse(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let parse = |text: &str| parse_text(Path::new("input.p4"), text, &Options::default(), &Included(text));
    let parsed = parse(&text);
    parsed.diagnostics.render(&parsed.sources);
    if parsed.diagnostics.has_errors() {
        return;
    }
    let once = print::program(&parsed.program);
    let again = parse(&once);
    assert!(!again.diagnostics.has_errors(), "printed, it no longer parses: {}\n{once}", again.diagnostics.render(&again.sources));
    assert_eq!(once, print::program(&again.program), "printing twice gives two texts");
}

/// What the compiler accepts, the switch loads; what it refuses has a message.
pub fn compile(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let outcome = compile_source_with("input.p4", &text, &Default::default(), &Included(&text));
    assert_eq!(outcome.json.is_none(), outcome.diagnostics.has_errors());
    let Some(json) = outcome.json else {
        assert!(!outcome.rendered.is_empty(), "refused without a word");
        return;
    };
    match Program::from_json(&json.to_string()) {
        Ok(program) => drop(Arc::new(program)),
        Err(error) => panic!("the switch does not load what the compiler made: {error}\n{text}"),
    }
    let info = outcome.p4info.expect("P4Info beside the JSON");
    programs::p4info(&info);
}
