use std::collections::HashMap;
use std::io;
use std::path::Path;

use super::*;
use crate::diagnostic::Diagnostics;

/// Files in memory.
#[derive(Default)]
struct Memory(HashMap<String, String>);

impl Files for Memory {
    fn read(&self, path: &Path) -> io::Result<String> {
        self.0.get(&path.display().to_string()).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

fn run_with(text: &str, options: &Options, files: &[(&str, &str)]) -> (String, SourceMap, Diagnostics) {
    let files = Memory(files.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect());
    let mut sources = SourceMap::default();
    let mut diagnostics = Diagnostics::default();
    let tokens = preprocess(Path::new("dir/main.p4"), text.into(), options, &files, &mut sources, &mut diagnostics);
    let words: Vec<_> = tokens.iter().map(|token| token.text().to_string()).collect();
    (words.join(" ").trim_end().to_string(), sources, diagnostics)
}

fn run(text: &str) -> String {
    let (out, sources, diagnostics) = run_with(text, &Options::default(), &[]);
    assert_eq!(diagnostics.render(&sources), "");
    out
}

fn codes(text: &str, files: &[(&str, &str)]) -> Vec<&'static str> {
    run_with(text, &Options::default(), files).2.iter().map(|diagnostic| diagnostic.code.name()).collect()
}

#[test]
fn lines_that_are_no_directives_are_remarks() {
    assert_eq!(run("a\n# it's \"odd\n  #gone(1)\n#!x\n# 3rd b\n#\nb"), "a b");
    assert_eq!(codes("#endfi\n#inclde <x>\n# included\n#indeed", &[]), ["ignored-directive", "ignored-directive"]);
}

#[test]
fn object_like_macros_expand_but_not_within_themselves() {
    assert_eq!(run("#define A B c\n#define B A d\nA B"), "A d c B c d");
    assert_eq!(run("#define A 1\n#undef A\nA"), "A");
    assert_eq!(run("#define EMPTY\nx EMPTY y"), "x y");
    assert_eq!(run("#define LONG 1 + \\\n 2\nLONG"), "1 + 2");
}

#[test]
fn function_like_macros_take_arguments() {
    assert_eq!(run("#define F(x, y) y x\nF(1, (2, 3)) F"), "( 2 , 3 ) 1 F");
    assert_eq!(run("#define F(x) x x\n#define G 7\nF(F(G))\nF\n(1)"), "7 7 7 7 1 1");
    assert_eq!(run("#define N() 5\nN() N( )"), "5 5");
    assert_eq!(run("#define OBJ (1)\nOBJ"), "( 1 )");
    // C11 6.10.3.5, example 3: a macro's name out of its own expansion stays.
    assert_eq!(run("#define f(a) f(x * (a))\n#define x 2\nf(f(x))"), "f ( 2 * ( f ( 2 * ( 2 ) ) ) )");
}

#[test]
fn arguments_become_strings_and_join_to_tokens() {
    assert_eq!(run("#define S(x) #x\nS(a  + \"b\\n\")"), "\"a + \\\"b\\\\n\\\"\"");
    assert_eq!(run("#define W(n, v) n ## w ## v\n#define X 8\nW(X, 0xFF) W(4,)"), "Xw0xFF 4w");
    assert_eq!(run("#define J(a, b, c) a ## b ## c\nJ(x, y, z) J(, , z) J(x, , ) k J(, , )"), "xyz z x k");
    assert_eq!(run("#define V(f, ...) f(__VA_ARGS__)\nV(g, 1, 2) V(g)"), "g ( 1 , 2 ) g ( )");
    // Where nothing can be joined, both tokens stay, as with `cpp -x assembler-with-cpp`.
    assert_eq!(run("#define K(N) keep_##N##(x##N##=v)\nK(0)"), "keep_0 ( x0 = v )");
    assert_eq!(run("#define P(a, b) a ## + ## b\nP(1, 2)"), "1 + 2");
    assert_eq!(run("#define V(f, ...) f(0, ## __VA_ARGS__)\nV(g, 1) V(g)"), "g ( 0 , 1 ) g ( 0 )");
    assert_eq!(run("#define V(rest...) rest\nV(1, 2)"), "1 , 2");
}

#[test]
fn conditionals_nest_and_skip_anything() {
    let text = "#if 0\n#if 1\n\" ' é #else\n#else\n#endif\n#bad\n#elif 1\nyes\n#elif 1\nno\n#else\nno\n#endif";
    assert_eq!(run(text), "yes");
    assert_eq!(run("#ifdef A\na\n#else\nb\n#endif\n#ifndef A\nc\n#endif"), "b c");
    assert_eq!(run("#define A\n#if defined A && !defined(B)\na\n#endif"), "a");
}

#[test]
fn conditions_are_integer_expressions() {
    for (condition, holds) in [
        ("1 + 2 * 3 == 7", true),
        ("(1 + 2) * 3 == 9", true),
        ("10 / 3 == 3 && 10 % 3 == 1", true),
        ("1 << 4 >> 2 == 4", true),
        ("0x10 == 16 && 010 == 8 && 0b11 == 3 && 5UL == 5", true),
        ("unknown", false),
        ("~0 == -1", true),
        ("1 ? 2 : 3", true),
        ("0 ? 1 : 0", false),
        ("1 < 2 && 2 <= 2 && 3 > 2 && 2 >= 2 && 1 != 2", true),
        ("(5 & 3) == 1 && (5 | 3) == 7 && (5 ^ 3) == 6", true),
        ("-9223372036854775807 - 1 < 0", true),
    ] {
        assert_eq!(run(&format!("#if {condition}\nyes\n#endif")), if holds { "yes" } else { "" }, "{condition}");
    }
}

#[test]
fn includes_are_sought_beside_the_file_then_by_the_options_then_built_in() {
    let options = Options { include_dirs: vec!["inc".into()], ..Options::default() };
    let files = [
        ("dir/a.p4", "beside"),
        ("inc/a.p4", "by-option"),
        ("inc/core.p4", "own core"),
        ("inc/sub/b.p4", "#include \"c.p4\""),
        ("inc/sub/c.p4", "c"),
    ];
    let seen = |text: &str| run_with(text, &options, &files).0;
    assert_eq!(seen("#include \"a.p4\""), "beside");
    assert_eq!(seen("#include <a.p4>"), "by - option");
    assert_eq!(seen("#include <core.p4>"), "own core");
    assert_eq!(seen("#include <sub/b.p4>"), "c");
    assert_eq!(seen("#define FILE <sub/c.p4>\n#include FILE"), "c");
    assert_eq!(seen("#define FILE \"a.p4\"\n#include FILE"), "beside");
    assert!(run("#include <v1model.p4>").contains("standard_metadata_t"));
}

#[test]
fn options_define_and_undefine() {
    let macros = ["A", "B=2 + 3", "C(x)=x x", "D=4"].map(|text| MacroOption::Define(text.into())).into_iter();
    let macros = macros.chain([MacroOption::Undefine("D".into())]).collect();
    let options = Options { macros, ..Options::default() };
    assert_eq!(run_with("A B C(7) D __TARGET_BMV2__", &options, &[]).0, "1 2 + 3 7 7 D 1");
    let options = Options { macros: vec![MacroOption::Define("1x".into())], ..Options::default() };
    assert_eq!(run_with("", &options, &[]).2.error_count(), 1);
}

#[test]
fn tokens_keep_their_places() {
    let (_, sources, _) = run_with("", &Options::default(), &[]);
    assert_eq!(sources.files()[0].name, "dir/main.p4");
    let files = Memory::default();
    let mut sources = SourceMap::default();
    let mut diagnostics = Diagnostics::default();
    let text = "#define ADD(a) 1 + a\n\n  ADD(two)\n#line 50 \"other.p4\"\n__LINE__ __FILE__";
    let tokens = preprocess(Path::new("m.p4"), text.into(), &Options::default(), &files, &mut sources, &mut diagnostics);
    let places: Vec<_> = tokens
        .iter()
        .map(|token| (token.text().to_string(), sources.location(token.span).line, sources.location(token.span).column))
        .collect();
    let place = |text: &str, line, column| (text.to_string(), line, column);
    assert_eq!(places[..4], [place("1", 3, 3), place("+", 3, 3), place("two", 3, 7), place("50", 50, 1)]);
    assert_eq!(places[4].0, "\"other.p4\"");
}

#[test]
fn nothing_runs_without_end() {
    assert_eq!(codes("#include \"main.p4\"", &[("dir/main.p4", "#include \"main.p4\"\n#include \"main.p4\"")]), ["include-depth"]);
    // Each macro doubles the one before: 2^40 tokens.
    let mut text = String::from("#define M0 x x\n");
    (1..40).for_each(|i| text.push_str(&format!("#define M{i} M{} M{}\n", i - 1, i - 1)));
    assert_eq!(codes(&format!("{text}M39"), &[]), ["macro-growth"]);
    let mut text = String::from("#define D0 x\n");
    (1..300).for_each(|i| text.push_str(&format!("#define D{i} D{}\n", i - 1)));
    assert_eq!(codes(&format!("{text}D299"), &[]), ["macro-depth"]);
    let calls = "F(".repeat(5000) + &")".repeat(5000);
    assert_eq!(codes(&format!("#define F(x) x\n{calls}"), &[]), ["macro-depth"]);
    assert_eq!(codes(&format!("#if {}1\n#endif", "(".repeat(5000)), &[]), ["bad-condition"]);
    assert_eq!(codes(&format!("#if {}1\n#endif", "!".repeat(5000)), &[]), ["bad-condition"]);
}
