//! `fairlane-compile`: P4_16 source to BMv2 JSON and P4Info, with the flags of p4c-bm2-ss and of the p4c driver.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser};
use fairlane_compiler::{compile, explain, Options, Warnings, Weight};

/// Compiles a P4_16 program for the v1model architecture.
#[derive(Debug, Parser)]
#[command(name = "fairlane-compile", version, about)]
struct Arguments {
    /// The program.
    #[arg(required_unless_present = "explain")]
    program: Option<PathBuf>,
    /// Explains a kind of message, with an example; without a name, lists all kinds.
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "", conflicts_with = "program")]
    explain: Option<String>,
    /// Where the BMv2 JSON goes; into a folder it goes under the program's name.
    #[arg(short = 'o', long = "output", value_name = "FILE|DIR")]
    output: Option<PathBuf>,
    /// Where the P4Info goes, by comma: protobuf text (.txt, .txtpb).
    #[arg(long = "p4runtime-files", alias = "p4runtime-file", value_name = "FILES", value_delimiter = ',')]
    p4runtime_files: Vec<PathBuf>,
    /// Format of the P4Info files whose name does not tell.
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = ["text"], hide = true)]
    p4runtime_format: String,
    /// Folders of included files.
    #[arg(short = 'I', value_name = "DIR")]
    include: Vec<PathBuf>,
    /// Macros: NAME or NAME=VALUE.
    #[arg(short = 'D', value_name = "MACRO")]
    define: Vec<String>,
    /// Macros to forget.
    #[arg(short = 'U', value_name = "MACRO")]
    undefine: Vec<String>,
    /// The architecture that the program must be for; else either.
    #[arg(short = 'a', long, value_parser = ["v1model", "psa"])]
    arch: Option<String>,
    /// The target.
    #[arg(short = 'b', long, default_value = "bmv2", value_parser = ["bmv2", "bmv2-ss-p4org"])]
    target: String,
    /// The version of the language.
    #[arg(long = "std", alias = "p4v", default_value = "p4-16", value_parser = ["p4-16", "p4_16", "p4-16-v1model", "16"])]
    std: String,
    /// Makes a kind of warning, or all, refuse the program.
    #[arg(long = "Werror", value_name = "KIND", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    error: Vec<String>,
    /// Hides a kind of warning, or all.
    #[arg(long = "Wdisable", value_name = "KIND", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    disable: Vec<String>,
    /// Shows a kind of warning, or all, as warnings again.
    #[arg(long = "Wwarn", value_name = "KIND", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    warn: Vec<String>,
    /// Shows a kind of warning, or all, as an information.
    #[arg(long = "Winfo", value_name = "KIND", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    info: Vec<String>,
    /// Shows so many errors at most, and counts the others.
    #[arg(long = "maxErrorCount", value_name = "N", default_value_t = 20)]
    max_errors: usize,
    /// Accepted for compatibility: `-Wall` and the like change nothing.
    #[arg(short = 'W', value_name = "WHAT", hide = true)]
    w: Vec<String>,
    /// Accepted for compatibility.
    #[arg(short = 'g', hide = true)]
    g: bool,
    /// Accepted for compatibility: externs unknown to the architecture stay errors.
    #[arg(long = "emit-externs", hide = true)]
    emit_externs: bool,
}

/// The options about warnings in the order in which they stand: the later word counts.
fn warnings(matches: &ArgMatches) -> Warnings {
    let mut told: Vec<(usize, &str, Weight)> = Vec::new();
    for (id, weight) in [("error", Weight::Error), ("disable", Weight::Disabled), ("warn", Weight::Warn), ("info", Weight::Info)] {
        let places = matches.indices_of(id).into_iter().flatten();
        let kinds = matches.get_many::<String>(id).into_iter().flatten();
        told.extend(places.zip(kinds).map(|(place, kind)| (place, kind.as_str(), weight)));
    }
    told.sort_by_key(|(place, ..)| *place);
    let mut out = Warnings::default();
    told.iter().for_each(|(_, kind, weight)| out.set(kind, *weight));
    out
}

/// Writes to standard output; a reader that has gone away (`| head`) is no fault.
fn show(text: &str) {
    let _ = io::stdout().write_all(text.as_bytes());
}

pub fn main() -> ExitCode {
    let matches = Arguments::command().get_matches();
    let arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|e| e.exit());
    match arguments.explain.as_deref() {
        Some("") => {
            show(&explain::list());
            return ExitCode::SUCCESS;
        }
        Some(name) => match explain::explain(name) {
            Ok(page) => {
                show(&page);
                return ExitCode::SUCCESS;
            }
            Err(message) => {
                eprintln!("error: {message}");
                return ExitCode::FAILURE;
            }
        },
        None => {}
    }
    let Some(program) = &arguments.program else { return ExitCode::FAILURE };
    let options = Options {
        include: arguments.include.clone(),
        define: arguments.define.clone(),
        undefine: arguments.undefine.clone(),
        warnings: warnings(&matches),
        max_errors: Some(arguments.max_errors),
    };
    for (kind, near) in options.warnings.unknown() {
        let guess = near.first().map(|n| format!("; is `{n}` meant?")).unwrap_or_default();
        eprintln!("warning: no option about warnings knows the kind `{kind}`{guess}");
    }
    let outcome = compile(program, &options);
    eprint!("{}", outcome.rendered);
    let (Some(json), Some(p4info)) = (&outcome.json, &outcome.p4info) else {
        return ExitCode::FAILURE;
    };
    let is_for = outcome.control_plane.as_ref().map_or("", |plane| &plane.arch);
    if let Some(wanted) = arguments.arch.as_deref().filter(|wanted| *wanted != is_for) {
        let path = program.display();
        eprintln!("error: {path} is a program for {is_for}, not for {wanted}: leave out `--arch {wanted}`, or include <{wanted}.p4>");
        return ExitCode::FAILURE;
    }
    match write_all(&arguments, program, json, p4info) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn write_all(arguments: &Arguments, program: &Path, json: &serde_json::Value, p4info: &str) -> Result<(), String> {
    for path in &arguments.p4runtime_files {
        if !matches!(path.extension().and_then(|e| e.to_str()), Some("txt" | "txtpb" | "pbtxt" | "prototxt")) {
            return Err(format!("{}: P4Info is written as protobuf text; name the file .txtpb or .txt", path.display()));
        }
    }
    if let Some(output) = &arguments.output {
        let path = if output.is_dir() {
            let stem = program.file_stem().unwrap_or(program.as_os_str());
            output.join(stem).with_extension("json")
        } else {
            output.clone()
        };
        let mut text = serde_json::to_string_pretty(json).map_err(|e| format!("{}: {e}", path.display()))?;
        text.push('\n');
        write(&path, &text).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
    }
    for path in &arguments.p4runtime_files {
        write(path, p4info).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
    }
    Ok(())
}

/// Writes beside the file and renames, so that nobody reads half of it. Devices and pipes are written to directly.
fn write(path: &Path, text: &str) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|m| !m.is_file()) {
        return fs::OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes());
    }
    let name = path.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "not a file name"))?;
    let mut temporary = name.to_owned();
    temporary.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(temporary);
    let result = fs::write(&temporary, text).and_then(|()| fs::rename(&temporary, path));
    if result.is_err() {
        // The failure that matters is the one above.
        let _ = fs::remove_file(&temporary);
    }
    result
}
