//! Whatever the input, the front end ends, in time, without a panic.

use std::path::Path;

use fairlane_syntax::{parse_text, print, Files, Options, Parsed};
use proptest::prelude::*;

/// Only the built-in files exist.
struct NoFiles;

impl Files for NoFiles {
    fn read(&self, _: &Path) -> std::io::Result<String> {
        Err(std::io::ErrorKind::NotFound.into())
    }
}

fn parse(text: &str) -> Parsed {
    let parsed = parse_text(Path::new("x.p4"), text, &Options::default(), &NoFiles);
    // Every message can be shown.
    let shown = parsed.diagnostics.render(&parsed.sources);
    assert_eq!(shown.is_empty(), !parsed.diagnostics.has_errors() && parsed.diagnostics.warning_count() == 0);
    parsed
}

const GRAMMAR: &str = include_str!("programs/grammar.p4");

/// Pieces that programs are made of, and pieces of them.
fn piece() -> impl Strategy<Value = String> {
    let words = [
        "control",
        "parser",
        "struct",
        "header",
        "table",
        "action",
        "state",
        "apply",
        "key",
        "actions",
        "entries",
        "if",
        "else",
        "switch",
        "for",
        "in",
        "return",
        "transition",
        "select",
        "default",
        "_",
        "bit",
        "int",
        "tuple",
        "list",
        "bool",
        "error",
        "typedef",
        "type",
        "enum",
        "extern",
        "const",
        "x",
        "T",
        "priority",
        "this",
        "value_set",
        "package",
    ];
    let marks = [
        "{",
        "}",
        "(",
        ")",
        "<",
        ">",
        ">>",
        "[",
        "]",
        ";",
        ":",
        ",",
        ".",
        "..",
        "...",
        "=",
        "==",
        "+",
        "-",
        "&&&",
        "?",
        "@",
        "@pragma",
        "#",
        "##",
        "{#}",
        "\n#define F(x) ",
        "\n#if ",
        "\n#endif\n",
        "\n#include <core.p4>\n",
        "\"",
        "/*",
        "*/",
        "//",
        "\\\n",
        "8w0xF",
        "99999999w9",
        "0b3",
        "é",
        "\0",
        "+:",
        "|+|=",
    ];
    prop_oneof![
        3 => proptest::sample::select(words.to_vec()).prop_map(|word| format!(" {word} ")),
        4 => proptest::sample::select(marks.to_vec()).prop_map(String::from),
        1 => any::<String>(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_text(text in any::<String>()) {
        parse(&text);
    }

    #[test]
    fn any_sequence_of_tokens(pieces in proptest::collection::vec(piece(), 0..60)) {
        parse(&pieces.concat());
    }

    /// A part of a real program taken out, doubled, or replaced.
    #[test]
    fn a_damaged_program(start in 0..GRAMMAR.len(), length in 0..80usize, other in piece(), again in any::<bool>()) {
        let start = (0..=start).rev().find(|i| GRAMMAR.is_char_boundary(*i)).unwrap_or(0);
        let end = (start + length).min(GRAMMAR.len());
        let end = (0..=end).rev().find(|i| GRAMMAR.is_char_boundary(*i)).unwrap_or(0);
        let cut = &GRAMMAR[start..end];
        let middle = if again { format!("{cut}{other}{cut}") } else { other };
        let parsed = parse(&format!("{}{middle}{}", &GRAMMAR[..start], &GRAMMAR[end..]));
        if !parsed.diagnostics.has_errors() {
            // What still parses prints back.
            let once = print::program(&parsed.program);
            let again = parse(&once);
            prop_assert!(!again.diagnostics.has_errors(), "{}", again.diagnostics.render(&again.sources));
            prop_assert_eq!(once, print::program(&again.program));
        }
    }

    /// An expression of known shape prints back to itself: precedence and associativity are right.
    #[test]
    fn expressions_print_back(expr in expression()) {
        let parsed = parse(&format!("const int x = {expr};"));
        prop_assert!(!parsed.diagnostics.has_errors(), "{}", parsed.diagnostics.render(&parsed.sources));
        let once = print::program(&parsed.program);
        prop_assert_eq!(&once, &print::program(&parse(&once).program));
    }
}

fn expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("a".to_string()),
        Just("8w3".to_string()),
        Just("x.y[3:0]".to_string()),
        Just("f<bit<8>>(1)".to_string()),
        Just("{ 1, 2 }".to_string()),
    ];
    leaf.prop_recursive(5, 40, 3, |inner| {
        let op = proptest::sample::select(vec![
            "+", "-", "*", "/", "%", "<<", ">>", "<", ">", "<=", ">=", "==", "!=", "&", "|", "^", "&&", "||", "++", "|+|", "|-|",
        ]);
        prop_oneof![
            (inner.clone(), op, inner.clone()).prop_map(|(a, op, b)| format!("{a} {op} {b}")),
            (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| format!("{a} ? {b} : {c}")),
            inner.clone().prop_map(|a| format!("(bit<(1 > 0 ? 8 : 9)>) {a}")),
            inner.clone().prop_map(|a| format!("!{a}")),
            inner.prop_map(|a| format!("({a})")),
        ]
    })
}

/// Each of these repeats something far too often: it is an error, and soon.
#[test]
fn deep_nesting_is_an_error_not_a_crash() {
    let many = |open: &str, close: &str| format!("{}1{}", open.repeat(20_000), close.repeat(20_000));
    let body = |text: String| format!("control c() {{ apply {{ {text} }} }}");
    let cases = [
        format!("const int x = {};", many("(", ")")),
        format!("const int x = {};", many("{", "}")),
        format!("const int x = {};", many("- ", "")),
        format!("const int x = {};", many("(bit<8>) ", "")),
        format!("const int x = {};", many("1 + ", "")),
        format!("const int x = {};", many("", ".y")),
        format!("const int x = {};", many("true ? 1 : ", "")),
        format!("const int x = {};", many("f(", ")")),
        format!("const {} x = 1;", many("tuple<", ">")),
        format!("const bit<8> x = {};", many("a<bit<(", ")>>(1)")),
        format!("const bit<8> x = {};", many("a < T < ", "")),
        format!("struct s {{ bit<8> x{}; }}", many("", "[2]")),
        body(many("{", "}")),
        body(many("if (a) { b(); } else ", "")),
        body(many("if (a) ", "")),
        body(many("for (;a;) ", "")),
        body(many("switch (a) { b: {", "}}")),
        format!("@a({}) struct s {{ }}", many("(", ")")),
    ];
    for (i, case) in cases.iter().enumerate() {
        let start = std::time::Instant::now();
        let parsed = parse(case);
        if i + 1 < cases.len() {
            assert!(parsed.diagnostics.has_errors(), "case {i}");
        }
        drop(parsed);
        // A bound for what grows without end; a busy machine must stay well below it.
        assert!(start.elapsed().as_secs() < 60, "case {i} took {:?}", start.elapsed());
    }
}
