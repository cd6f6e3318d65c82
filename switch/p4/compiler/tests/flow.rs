//! Warnings by the flow of values: `tests/flow/*.p4`. A comment `//~ text` stands on the line that is doubtful and holds a part of the
//! message; `//~^` is about the line above. Every such warning must be awaited, and every awaited one must come.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use fairlane_compiler::{compile_source, Code, Options, Outcome};

const FLOW: [Code; 4] = [Code::UninitializedUse, Code::UninitializedOutParam, Code::Uninitialized, Code::InvalidHeader];

fn flow_warnings(outcome: &Outcome) -> Vec<(u32, String)> {
    let doubts = outcome.diagnostics.iter().filter(|d| FLOW.contains(&d.code));
    doubts.map(|d| (d.span.map_or(0, |s| outcome.sources.location(s).line), d.message.clone())).collect()
}

#[test]
fn every_doubt_stands_where_it_is_awaited() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/flow");
    let (mut seen, mut wrong) = (0, String::new());
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let mut awaited: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        let mut code_line = 0;
        for (i, line) in text.lines().enumerate() {
            let Some((_, rest)) = line.split_once("//~") else {
                code_line = i as u32 + 1;
                continue;
            };
            let rest = match rest.strip_prefix('^') {
                Some(rest) => rest,
                None => {
                    code_line = i as u32 + 1;
                    rest
                }
            };
            awaited.entry(code_line).or_default().push(rest.trim().to_owned());
            seen += 1;
        }
        let outcome = compile_source(&name, &text, &Options::default());
        assert!(outcome.is_ok(), "{}", outcome.rendered);
        for (line, message) in flow_warnings(&outcome) {
            let here = awaited.entry(line).or_default();
            match here.iter().position(|a| message.contains(a.as_str())) {
                Some(i) => drop(here.remove(i)),
                None => wrong += &format!("{name}:{line}: not awaited: {message}\n"),
            }
        }
        for (line, rest) in awaited {
            rest.iter().for_each(|a| wrong += &format!("{name}:{line}: did not come: {a}\n"));
        }
    }
    assert!(seen >= 28, "only {seen} warnings are awaited");
    assert!(wrong.is_empty(), "{wrong}");
}

/// A switch with these declarations before it and this ingress.
fn switch(top: &str, locals: &str, apply: &str) -> String {
    format!(
        "#include <core.p4>\n#include <v1model.p4>\nheader h_t {{ bit<8> a; }}\nstruct H {{ h_t[1024] s; }}\nstruct M {{ bit<8> x; }}\n{top}\n\
         parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) {{ state start {{ transition accept; }} }}\n\
         control V(inout H h, inout M m) {{ apply {{}} }}\n\
         control I(inout H h, inout M m, inout standard_metadata_t s) {{ {locals}\n apply {{ {apply} }} }}\n\
         control E(inout H h, inout M m, inout standard_metadata_t s) {{ apply {{}} }}\n\
         control D(packet_out p, in H h) {{ apply {{ p.emit(h); }} }}\n\
         V1Switch(P(), V(), I(), E(), V(), D()) main;\n"
    )
}

/// Actions are run where they are called. Where that doubles with each of them and there is much to look at, the analysis gives
/// up: it costs no more, and says nothing.
#[test]
fn a_program_that_cannot_be_followed_costs_little() {
    let doubling = |n: u32| (1..n).map(|i| format!("action a{i}() {{ a{0}(); a{0}(); }}\n", i - 1)).collect::<String>();
    for (n, warned) in [(3, 1), (13, 0)] {
        let locals = format!("bit<8> x; h_t[4000] own; action a0() {{ own[3999].setValid(); m.x = x; }}\n{}", doubling(n));
        let program = switch("", &locals, &format!("a{}();", n - 1));
        let start = Instant::now();
        let outcome = compile_source("x.p4", &program, &Options::default());
        assert_eq!(flow_warnings(&outcome).len(), warned, "{n}: {}", outcome.rendered);
        assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
    }
}

#[test]
fn long_chains_and_wide_stacks_are_followed_or_left() {
    // Beyond the depth that is followed, nobody is warned, and nothing overflows.
    let chain: String = (1..300).map(|i| format!("action a{i}() {{ a{}(); }}\n", i - 1)).collect();
    for (last, warned) in [(10, 1), (299, 0)] {
        let program = switch("", &format!("bit<8> x; action a0() {{ m.x = x; }}\n{chain}"), &format!("a{last}();"));
        let outcome = compile_source("x.p4", &program, &Options::default());
        assert_eq!(flow_warnings(&outcome).len(), warned, "{last}: {}", outcome.rendered);
    }
    let program = switch("", "h_t[1024] own; h_t[20000] huge;", "own[7].a = 1; huge[7].a = 1; h.s[3] = own[3];");
    let outcome = compile_source("x.p4", &program, &Options::default());
    let lines: Vec<String> = flow_warnings(&outcome).into_iter().map(|(_, m)| m).collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].contains("`own[7]`") && lines[1].contains("`own[3].a`"), "{lines:?}");
}
