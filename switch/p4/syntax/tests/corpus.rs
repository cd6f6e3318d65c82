//! Whole programs: those in the repository parse without a message, the built-in files among them.

use std::path::{Path, PathBuf};

use fairlane_syntax::{parse_file, parse_text, DiskFiles, Options};

fn options() -> Options {
    Options { include_dirs: vec![repository().join("p4src")], ..Options::default() }
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

fn p4_files(folder: &Path, out: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            p4_files(&path, out);
        } else if path.extension().is_some_and(|extension| extension == "p4") {
            out.push(path);
        }
    }
}

#[test]
fn the_built_in_files_parse_in_both_versions() {
    for version in ["20180101", "20200408"] {
        let options =
            Options { macros: vec![fairlane_syntax::MacroOption::Define(format!("V1MODEL_VERSION={version}"))], ..Options::default() };
        let parsed = parse_text(Path::new("x.p4"), "#include <v1model.p4>\n", &options, &DiskFiles);
        assert_eq!(parsed.diagnostics.render(&parsed.sources), "");
        assert!(parsed.program.declarations.len() > 50);
    }
}

/// als.p4 as it is and with each scheme, and the programs of the packet tests.
fn programs() -> Vec<(PathBuf, Options)> {
    let als = repository().join("p4src/als.p4");
    let mut found = vec![(als.clone(), options())];
    let schemes = std::fs::read_dir(repository().join("p4src/schemes")).expect("a folder");
    for scheme in schemes.flatten().map(|entry| entry.path()).filter(|path| path.join("chosen.p4").is_file()) {
        let macros = vec![fairlane_syntax::MacroOption::Define("CHOSEN".to_owned())];
        found.push((als.clone(), Options { include_dirs: vec![scheme, repository().join("p4src")], macros, ..Options::default() }));
    }
    let mut files = Vec::new();
    p4_files(&repository().join("tests/p4"), &mut files);
    found.extend(files.into_iter().map(|file| (file, options())));
    found
}

#[test]
fn the_programs_of_the_repository_parse() {
    let programs = programs();
    assert!(programs.len() > 50);
    for (file, options) in programs {
        let parsed = parse_file(&file, &options).expect("the file was just listed");
        assert_eq!(parsed.diagnostics.render(&parsed.sources), "", "{} with {:?}", file.display(), options.include_dirs);
    }
}

/// `print(parse(text))` parses to what `text` parses to: printing it once more changes nothing.
fn assert_prints_back(name: &Path, parsed: &fairlane_syntax::Parsed) {
    let once = fairlane_syntax::print::program(&parsed.program);
    let again = parse_text(name, once.clone(), &Options::default(), &DiskFiles);
    assert_eq!(again.diagnostics.render(&again.sources), "", "{}", name.display());
    let twice = fairlane_syntax::print::program(&again.program);
    assert_eq!(once, twice, "{}", name.display());
    assert!(again.program.declarations.len() == parsed.program.declarations.len());
}

#[test]
fn what_is_printed_parses_to_the_same() {
    let grammar = (Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/grammar.p4"), options());
    for (file, options) in programs().into_iter().chain([grammar]) {
        let parsed = parse_file(&file, &options).expect("the file was just listed");
        assert_eq!(parsed.diagnostics.render(&parsed.sources), "", "{}", file.display());
        assert_prints_back(&file, &parsed);
    }
}

/// A `@pragma` ends with its line, and may hold parentheses that match nothing.
#[test]
fn pragmas_are_printed_as_they_can_be_read() {
    let programs = [
        "@pragma x header h ~ ) ; })\nconst bit<8> c = 1;",
        "@pragma x f(1) (\nconst bit<8> c = 1;",
        "@pragma x f(1)\nconst bit<8> c = 1;",
        "control C(@pragma x )\nin bit<8> a, @pragma\nin bit<8> b);",
    ];
    for text in programs {
        let parsed = parse_text(Path::new("x.p4"), text, &Options::default(), &DiskFiles);
        assert_eq!(parsed.diagnostics.render(&parsed.sources), "", "{text}");
        assert_prints_back(Path::new(text), &parsed);
    }
}
