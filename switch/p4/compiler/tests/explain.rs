//! The pages of `--explain`: each kind of message has one, its wrong program gives that message and no other, and its mended
//! program compiles without a word.
//!
//! The examples are parts of a program; the first line of each says which:
//!
//! | fence | what stands around the example |
//! |---|---|
//! | `p4 top` | the includes before it, an empty switch behind it, unless it has a `main`; nobody uses it, so `unused` is off |
//! | `p4 control` | a switch whose ingress it is: locals and `apply` |
//! | `p4 parser` | a switch whose parser it is: locals and states |
//! | `p4 pkginfo` | an empty switch, whose `main` it annotates |
//! | `p4 file` | nothing |

use std::io;
use std::path::Path;

use fairlane_compiler::explain::{explain, list, page, summary};
use fairlane_compiler::{compile_source_with, Code, Options, Outcome, Weight};
use fairlane_syntax::Files;

/// Kinds of messages that only a program too large to show gives.
const WITHOUT_EXAMPLE: [Code; 5] = [Code::IncludeCount, Code::FileSize, Code::MacroDepth, Code::MacroGrowth, Code::TooDeep];

const INCLUDES: &str = "#include <core.p4>\n#include <v1model.p4>\n";
const TYPES: &str = "header h_t { bit<8> a; bit<16> b; }\nstruct headers_t { h_t h; h_t[2] s; }\nstruct meta_t { bit<8> x; }\n";
const PARSER: &str = "state start {\n    pkt.extract(hdr.h);\n    transition accept;\n}";

/// A switch with this parser and ingress, and these annotations of `main`.
fn switch(parser: &str, ingress: &str, annotations: &str) -> String {
    format!(
        "{INCLUDES}{TYPES}parser ExampleParser(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {{\n{parser}\n}}\n\
         control ExampleVerify(inout headers_t hdr, inout meta_t meta) {{ apply {{}} }}\n\
         control ExampleIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {{\n{ingress}\n}}\n\
         control ExampleEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {{ apply {{}} }}\n\
         control ExampleUpdate(inout headers_t hdr, inout meta_t meta) {{ apply {{}} }}\n\
         control ExampleDeparser(packet_out pkt, in headers_t hdr) {{ apply {{ pkt.emit(hdr); }} }}\n\
         {annotations}\nV1Switch(ExampleParser(), ExampleVerify(), ExampleIngress(), ExampleEgress(), ExampleUpdate(), ExampleDeparser()) main;\n"
    )
}

/// The included files that examples name.
struct ExampleFiles;

impl Files for ExampleFiles {
    fn read(&self, path: &Path) -> io::Result<String> {
        match path.file_name().and_then(|n| n.to_str()) {
            Some("secret.p4") => Err(io::ErrorKind::PermissionDenied.into()),
            Some("endless.p4") => Ok("#include \"endless.p4\"\n".to_owned()),
            Some("guarded.p4") => Ok("#ifndef G\n#define G\n#include \"guarded.p4\"\n#endif\n".to_owned()),
            Some("found.p4") => Ok("const bit<8> FOUND = 1;\n".to_owned()),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

/// The examples of a page: what stands around each, and its text.
fn examples(code: Code) -> Vec<(String, String)> {
    let mut out: Vec<(String, String)> = Vec::new();
    let mut inside = false;
    for line in page(code).lines() {
        match line.strip_prefix("```") {
            Some(_) if inside => inside = false,
            Some(kind) => {
                inside = true;
                out.push((kind.to_owned(), String::new()));
            }
            None if inside => {
                let (_, text) = out.last_mut().expect("a fence was just met");
                text.push_str(line);
                text.push('\n');
            }
            None => {}
        }
    }
    assert!(!inside, "{code}: a fence has no end");
    out
}

fn compile(kind: &str, text: &str) -> Outcome {
    let mut options = Options::default();
    let program = match kind {
        "p4 top" => {
            options.warnings.set("unused", Weight::Disabled);
            let rest = if text.contains(" main;") { String::new() } else { switch(PARSER, "apply {}", "").replace(INCLUDES, "") };
            format!("{INCLUDES}{text}{rest}")
        }
        "p4 control" => switch(PARSER, text, ""),
        "p4 parser" => switch(text, "apply {}", ""),
        "p4 pkginfo" => switch(PARSER, "apply {}", text),
        "p4 file" => text.to_owned(),
        _ => panic!("`{kind}` is none of the fences above"),
    };
    compile_source_with("example.p4", &program, &options, &ExampleFiles)
}

#[test]
fn each_wrong_program_gives_its_message_and_each_mended_one_none() {
    let mut wrong = String::new();
    for code in Code::ALL {
        let examples = examples(*code);
        if WITHOUT_EXAMPLE.contains(code) {
            assert!(examples.is_empty() && page(*code).contains("No example"), "{code} has an example now: take it off the list");
            continue;
        }
        assert_eq!(examples.len(), 2, "{code}: a page has a wrong and a mended program");
        let bad = compile(&examples[0].0, &examples[0].1);
        let mut codes: Vec<Code> = bad.diagnostics.iter().map(|d| d.code).collect();
        codes.dedup();
        if codes != [*code] {
            wrong += &format!("== {code}: the wrong program gives {codes:?}\n{}", bad.rendered);
        }
        let good = compile(&examples[1].0, &examples[1].1);
        if !good.is_ok() || !good.rendered.is_empty() {
            wrong += &format!("== {code}: the mended program is not clean\n{}", good.rendered);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn pages_have_a_title_and_one_sentence_at_least() {
    for code in Code::ALL {
        assert!(page(*code).starts_with(&format!("# {code}\n")), "{code}");
        assert!(summary(*code).ends_with('.') && summary(*code).len() > 20, "{code}: {}", summary(*code));
        assert!(list().contains(&format!("  {code} ")), "{code}");
    }
    let shown = explain("unused").expect("the page");
    assert!(shown.contains("--Wdisable=unused") && shown.contains("A warning."), "{shown}");
    assert!(explain("no-main").expect("the page").contains("section 6.6"));
    assert!(explain("[unused]").is_ok(), "as it stands in a message");
    let unknown = explain("unusd").expect_err("no such page");
    assert!(unknown.contains("there is `unused`"), "{unknown}");
}
