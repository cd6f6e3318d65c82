//! Programs beside their formatted text, and all programs of the repository.

use std::fs;
use std::path::{Path, PathBuf};

use fairlane_format::{format, WIDTH};

fn here(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// `UPDATE=1 cargo test` writes the expected texts anew.
#[test]
fn programs_come_out_as_expected() {
    let mut programs = 0;
    for entry in fs::read_dir(here("tests/programs")).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "p4") {
            continue;
        }
        programs += 1;
        let text = fs::read_to_string(&path).expect("a text");
        let new = format(&text, WIDTH).expect("formatted");
        let golden = path.with_extension("formatted");
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&golden, &new).expect("written");
        }
        assert_eq!(new, fs::read_to_string(&golden).expect("an expected text"), "{}", path.display());
        assert_eq!(format(&new, WIDTH).as_deref(), Ok(&*new), "{} a second time", path.display());
    }
    assert_eq!(programs, 2);
}

fn p4_files(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        if entry.is_dir() && !entry.is_symlink() {
            p4_files(&entry, out);
        } else if entry.extension().is_some_and(|extension| extension == "p4") {
            out.push(entry);
        }
    }
}

/// Wherever a text is cut off, the formatter gives a text that it leaves alone, or refuses; and it does not panic.
#[test]
fn torn_programs_are_formatted_or_refused() {
    let mut files = Vec::new();
    p4_files(&here("../../../p4src"), &mut files);
    assert!(files.len() > 40);
    let mut refused = 0;
    for (i, path) in files.iter().enumerate().step_by(3) {
        let text = fs::read_to_string(path).expect("a text");
        for part in 1..4 {
            let mut at = (text.len() * part / 4 + i * 7) % text.len();
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            for torn in [&text[..at], &text[at..]] {
                match format(torn, 60) {
                    Ok(new) => assert_eq!(format(&new, 60).as_deref(), Ok(&*new), "{}", path.display()),
                    Err(_) => refused += 1,
                }
            }
        }
    }
    assert!(refused * 2 < files.len(), "{refused} refused");
}

#[test]
fn what_cannot_be_told_is_refused_with_its_place() {
    let refusal = |text| format(text, WIDTH).map_err(|why| (why.line, why.column, why.reason));
    assert_eq!(refusal("const bit<8> x = 1;\n  /* open"), Err((2, 3, "the comment does not end".into())));
    assert_eq!(refusal("a = \"open\n;"), Err((1, 5, "the string does not end on its line".into())));
    assert_eq!(
        refusal("#define S(x) #x\n@name(\"a\") const bit<8> x = S(a+b);"),
        Err((2, 29, "a macro here depends on lines or blanks".into()))
    );
    assert_eq!(refusal("const bit<8> x = 1; const bit<8> y = __LINE__;"), Err((1, 38, "a macro here depends on lines or blanks".into())));
}

#[test]
fn ends_of_lines_and_the_mark_of_unicode_stay() {
    assert_eq!(format("\u{feff}const bit<8>x=1;\r\nerror{A}\r\n", WIDTH).as_deref(), Ok("\u{feff}const bit<8> x = 1;\r\nerror { A }\r\n"));
    assert_eq!(format("", WIDTH).as_deref(), Ok(""));
    assert_eq!(format("// only", WIDTH).as_deref(), Ok("// only\n"));
}

#[test]
fn long_lines_break_at_commas_and_operators() {
    let long = "control c(inout bit<8> a) { apply { first(aaaaaaaaaaaaaa, bbbbbbbbbbbbbbbb, cccccccccc); x = aaaaaaaaaaaaaaaaaa + bbbbbbbbbbbbbbbbbbb + ccccccccccccc; } }";
    let expected = "\
control c(inout bit<8> a) {
    apply {
        first(aaaaaaaaaaaaaa, bbbbbbbbbbbbbbbb,
              cccccccccc);
        x = aaaaaaaaaaaaaaaaaa + bbbbbbbbbbbbbbbbbbb
            + ccccccccccccc;
    }
}
";
    assert_eq!(format(long, 52).as_deref(), Ok(expected));
}
