//! Programs in error: `tests/errors/*.p4`. A comment `//~ text` stands on the line at fault and holds a part of the message;
//! `//~^` is about the line above. Every message must be awaited, and every awaited one must come.

use std::collections::BTreeMap;
use std::path::Path;

use fairlane_compiler::{compile_source, Options, Weight};

#[test]
fn every_message_stands_where_it_is_awaited() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/errors");
    let mut seen = 0;
    let mut wrong = String::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let mut awaited: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        for (i, line) in text.lines().enumerate() {
            if let Some((_, rest)) = line.split_once("//~") {
                let (at, rest) = match rest.strip_prefix('^') {
                    Some(rest) => (i as u32, rest),
                    None => (i as u32 + 1, rest),
                };
                awaited.entry(at).or_default().push(rest.trim().to_owned());
            }
        }
        seen += awaited.values().map(Vec::len).sum::<usize>();
        let outcome = compile_source(&name, &text, &Options::default());
        assert!(outcome.json.is_none(), "{name} compiles");
        for d in outcome.diagnostics.iter() {
            let line = d.span.map_or(0, |s| outcome.sources.location(s).line);
            let here = awaited.entry(line).or_default();
            match here.iter().position(|a| d.message.contains(a.as_str())) {
                Some(i) => {
                    here.remove(i);
                }
                None => wrong += &format!("{name}:{line}: not awaited: {}\n", d.message),
            }
        }
        for (line, rest) in awaited {
            for a in rest {
                wrong += &format!("{name}:{line}: did not come: {a}\n");
            }
        }
    }
    assert!(seen >= 50, "only {seen} messages are awaited");
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn a_message_shows_place_rule_and_way_out() {
    let text = "#include <core.p4>\n#include <v1model.p4>\nstruct s_t { bit<8> a; }\nconst bit<8> X = 1 + true;\n";
    let outcome = compile_source("x.p4", text, &Options::default());
    insta::assert_snapshot!(outcome.rendered);
}

#[test]
fn unknown_versions_of_v1model_are_refused() {
    let compile = |version: &str| {
        let text = format!("#include <core.p4>\n#define V1MODEL_VERSION {version}\n#include <v1model.p4>\nconst bit<8> X = true;\n");
        let outcome = compile_source("x.p4", &text, &Options::default());
        let told = outcome.diagnostics.iter().filter(|d| d.message.contains("version of v1model")).count();
        (told, outcome.rendered)
    };
    for known in ["20180101", "20190101", "20200408"] {
        assert_eq!(compile(known).0, 0, "{known}");
    }
    for unknown in ["20180100", "20200409", "-20200408", "20200408000", "(1 << 70)"] {
        assert_eq!(compile(unknown).0, 1, "{unknown}");
    }
    insta::assert_snapshot!(compile("20170101").1);
}

fn weighed(kind: &str, weight: Weight) -> Options {
    let mut options = Options::default();
    options.warnings.set(kind, weight);
    options
}

#[test]
fn warnings_refuse_the_program_only_when_told() {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/control_flow.p4")).unwrap();
    let doubtful = text.replace("state start {", "state lost { transition accept; }\n    state start {");
    let compile = |options: &Options| compile_source("x.p4", &doubtful, options);
    let lenient = compile(&Options::default());
    assert!(lenient.json.is_some() && lenient.rendered.contains("state `lost` is never reached"));
    assert!(compile(&weighed("", Weight::Error)).json.is_none());
    let silent = compile(&weighed("", Weight::Disabled));
    assert!(silent.json.is_some() && silent.rendered.is_empty(), "{}", silent.rendered);
}

/// Whole messages, with source lines and carets: `golden/messages.p4` is in error, `golden/warnings.p4` only doubtful.
#[test]
fn messages_look_as_they_should() {
    for (name, accepted) in [("messages", false), ("warnings", true)] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{name}.p4"));
        let text = std::fs::read_to_string(path).unwrap();
        let outcome = compile_source(&format!("{name}.p4"), &text, &Options::default());
        assert_eq!(outcome.is_ok(), accepted, "{}", outcome.rendered);
        insta::assert_snapshot!(name, outcome.rendered);
    }
}
