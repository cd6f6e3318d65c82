//! Valid programs with tokens dropped, doubled, swapped, or replaced by tokens from elsewhere: the compiler answers with a program
//! or with errors, and never panics.

use std::path::Path;

use fairlane_compiler::{compile_source, Options};
use proptest::prelude::*;

fn sources() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    ["programs/control_flow.p4", "programs/parsing.p4", "programs/externs.p4", "programs/types.p4", "errors/tables.p4"]
        .iter()
        .map(|f| std::fs::read_to_string(folder.join(f)).unwrap())
        .collect()
}

/// Words, numbers and single marks; white space stays with the token before it.
fn tokens(text: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut word = false;
    for c in text.chars() {
        let in_word = c.is_ascii_alphanumeric() || c == '_';
        match out.last_mut() {
            Some(last) if c.is_whitespace() || in_word && word && !last.ends_with(char::is_whitespace) => last.push(c),
            _ => out.push(c.to_string()),
        }
        word = in_word || word && c.is_whitespace();
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn mutated_programs_never_panic(which in 0usize..5, edits in prop::collection::vec((0u8..5, any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..6)) {
        let mut parts = tokens(&sources()[which]);
        for (kind, at, from) in edits {
            let (at, from) = (at.index(parts.len()), from.index(parts.len()));
            let other = parts[from].clone();
            match kind {
                0 => { parts.remove(at); }
                1 => parts.insert(at, other),
                2 => parts.swap(at, from),
                3 => parts[at] = other,
                _ => parts.truncate(at.max(1)),
            }
            if parts.is_empty() {
                parts.push(";".to_owned());
            }
        }
        let outcome = compile_source("mutated.p4", &parts.concat(), &Options::default());
        prop_assert_eq!(outcome.json.is_none(), outcome.diagnostics.has_errors());
        prop_assert!(outcome.json.is_some() || !outcome.rendered.is_empty());
    }
}
