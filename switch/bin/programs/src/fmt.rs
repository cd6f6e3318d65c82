//! `fairlane-fmt FILES|-`: formats P4 files. Exit status 0 when all are formatted, 1 when `--check` or `--diff` finds one that is not, 2 when a file
//! cannot be read or written, 7 when one is left as it is because it cannot be formatted safely.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use similar::TextDiff;

/// The file is fine, or now is.
const FORMATTED: u8 = 0;
const DIFFERS: u8 = 1;
const UNREADABLE: u8 = 2;
const LEFT: u8 = 7;

/// Format P4_16 source files: white space changes, and nothing else
#[derive(Parser)]
#[command(name = "fairlane-fmt", version)]
struct Arguments {
    /// Files, folders (all .p4 files inside), or - for standard input to standard output
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Change nothing; name the files that are not formatted, and exit with 1 if there are any
    #[arg(long)]
    check: bool,
    /// Change nothing; print what would change, and exit with 1 if there is anything
    #[arg(long)]
    diff: bool,
    /// Break lines that are longer than this, where they can be broken
    #[arg(long, value_name = "COLUMNS", default_value_t = fairlane_format::WIDTH, value_parser = width)]
    width: usize,
}

fn width(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|columns| (40..=1000).contains(columns)).ok_or_else(|| "use 40 to 1000 columns".to_string())
}

pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mut files = Vec::new();
    let mut worst = FORMATTED;
    for given in &arguments.files {
        if given.is_dir() {
            files.extend(inside(given));
        } else {
            files.push(given.clone());
        }
    }
    let (mut changed, mut left) = (0, 0);
    for path in &files {
        let status = match format(path, &arguments) {
            Ok(true) => {
                changed += 1;
                if arguments.check || arguments.diff {
                    DIFFERS
                } else {
                    FORMATTED
                }
            }
            Ok(false) => FORMATTED,
            Err((status, message)) => {
                left += 1;
                eprintln!("{message}");
                status
            }
        };
        // What could not be done matters more than what was not wanted.
        worst = worst.max(status);
    }
    if files.len() > 1 {
        let would = if arguments.check || arguments.diff { "to format" } else { "formatted" };
        eprintln!("{changed} of {} files {would}, {left} left as they are", files.len());
    }
    ExitCode::from(worst)
}

/// The P4 files of a folder and of those inside it, in the order of their names; hidden folders are left out.
fn inside(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    let mut out = Vec::new();
    for path in paths {
        let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if path.is_dir() && !path.is_symlink() && !hidden {
            out.extend(inside(&path));
        } else if path.is_file() && path.extension().is_some_and(|extension| extension == "p4") {
            out.push(path);
        }
    }
    out
}

/// Formats one file; whether it changes, or would.
fn format(path: &Path, arguments: &Arguments) -> Result<bool, (u8, String)> {
    let piped = path == Path::new("-");
    let shown = if piped { "<stdin>".to_string() } else { path.display().to_string() };
    let read = if piped {
        let mut bytes = Vec::new();
        io::stdin().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        fs::read(path)
    };
    let bytes = read.map_err(|error| (UNREADABLE, format!("{shown}: cannot read it: {error}")))?;
    let old = String::from_utf8(bytes).map_err(|error| {
        let line = error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|byte| **byte == b'\n').count() + 1;
        (LEFT, format!("{shown}:{line}: left as it is: the text is not UTF-8"))
    })?;
    let only_told = arguments.check || arguments.diff;
    let new = match fairlane_format::format(&old, arguments.width) {
        Ok(new) => new,
        Err(why) => {
            if piped && !only_told {
                print(&old);
            }
            return Err((LEFT, format!("{shown}:{}:{}: left as it is: {}", why.line, why.column, why.reason)));
        }
    };
    let differs = new != old;
    if arguments.diff && differs {
        let diff = TextDiff::from_lines(&old, &new);
        print(&diff.unified_diff().header(&shown, &shown).to_string());
    }
    if arguments.check && differs {
        print(&format!("{shown}\n"));
    }
    if piped && !only_told {
        print(&new);
    } else if differs && !only_told {
        crate::files::save(path, new.as_bytes(), false).map_err(|message| (UNREADABLE, message))?;
    }
    Ok(differs)
}

/// A reader that has gone (`| head`) is no reason to fail.
fn print(text: &str) {
    let _ = io::stdout().write_all(text.as_bytes());
}
