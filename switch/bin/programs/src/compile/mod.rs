//! `fairlane-compile`: P4_16 source to BMv2 JSON and P4Info, with the flags of p4c-bm2-ss and of the p4c driver.

mod command_line;
mod messages;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{ArgMatches, CommandFactory, FromArgMatches};
use fairlane_compiler::{compile, explain, p4info, preprocess, Options, Outcome, Warnings, Weight};

use crate::files::save;
use command_line::Arguments;
use messages::{convert, Format, Kind};

/// A wrong command line, as clap has it.
const USAGE: u8 = 2;

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

fn refuse(message: &str, code: u8) -> ExitCode {
    eprintln!("error: {message}");
    ExitCode::from(code)
}

pub fn main() -> ExitCode {
    let words = match command_line::words(std::env::args_os()) {
        Ok(words) => words,
        Err(message) => return refuse(&message, USAGE),
    };
    let matches = Arguments::command().get_matches_from(words);
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
            Err(message) => return refuse(&message, 1),
        },
        None => {}
    }
    let Some(program) = &arguments.program else { return ExitCode::FAILURE };
    let wanted = match Wanted::of(&arguments, program) {
        Ok(wanted) => wanted,
        Err(message) => return refuse(&message, USAGE),
    };
    let options = Options {
        include: arguments.include.clone(),
        define: arguments.define.clone(),
        undefine: arguments.undefine.clone(),
        warnings: warnings(&matches),
        max_errors: Some(arguments.max_errors),
    };
    if arguments.preprocess {
        return preprocessed(&arguments, program, &options);
    }
    for (kind, near) in options.warnings.unknown() {
        let guess = near.first().map(|n| format!("; is `{n}` meant?")).unwrap_or_default();
        eprintln!("warning: no option about warnings knows the kind `{kind}`{guess}");
    }
    for path in &arguments.trees {
        eprintln!("warning: {} is not written: p4c's own tree of a program is p4c's alone", path.display());
    }
    let outcome = compile(program, &options);
    eprint!("{}", outcome.rendered);
    if !outcome.is_ok() {
        return ExitCode::FAILURE;
    }
    let is_for = outcome.control_plane.as_ref().map_or("", |plane| &plane.arch);
    if let Some(arch) = arguments.arch.as_deref().filter(|arch| *arch != is_for) {
        let path = program.display();
        let message = format!("{path} is a program for {is_for}, not for {arch}: leave out `--arch {arch}`, or include <{arch}.p4>");
        return refuse(&message, 1);
    }
    match wanted.write(&outcome, arguments.verbose > 0) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => refuse(&message, 1),
    }
}

/// `-E`: to the standard output, and by the driver into a file.
fn preprocessed(arguments: &Arguments, program: &Path, options: &Options) -> ExitCode {
    let (text, messages) = match preprocess(program, options) {
        Ok((text, messages)) => (text, messages),
        Err(message) => return refuse(&message, 1),
    };
    eprint!("{messages}");
    let Some(text) = text else { return ExitCode::FAILURE };
    if !arguments.driver {
        show(&text);
        return ExitCode::SUCCESS;
    }
    let path = in_folder(arguments.output.as_deref().unwrap_or(Path::new(".")), program, "p4i");
    match save(&path, text.as_bytes(), true) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => refuse(&message, 1),
    }
}

/// The file of a program in a folder: its name without the last suffix, and another one.
fn in_folder(folder: &Path, program: &Path, suffix: &str) -> PathBuf {
    let mut name = program.file_stem().unwrap_or(program.as_os_str()).to_owned();
    name.push(".");
    name.push(suffix);
    folder.join(name)
}

/// The files that are to be written.
struct Wanted {
    json: Option<PathBuf>,
    /// Whether the folder of the JSON is made where it is missing.
    make_folder: bool,
    messages: Vec<(Kind, PathBuf, Format)>,
}

impl Wanted {
    fn of(arguments: &Arguments, program: &Path) -> Result<Wanted, String> {
        let output = arguments.output.as_deref();
        let json = match output {
            // Nobody means a folder by such a name, though p4c's driver makes one of it.
            Some(path) if arguments.driver && (path.is_dir() || path.extension().is_none_or(|suffix| suffix != "json")) => {
                Some(in_folder(path, program, "json"))
            }
            Some(path) if path.is_dir() => Some(in_folder(path, program, "json")),
            Some(path) => Some(path.to_owned()),
            None if arguments.driver => Some(in_folder(Path::new("."), program, "json")),
            None => None,
        };
        let mut messages = Vec::new();
        for (kind, one, many) in [
            (Kind::P4Info, &arguments.p4runtime_file, &arguments.p4runtime_files),
            (Kind::WriteRequest, &arguments.entries_file, &arguments.entries_files),
        ] {
            messages.extend(one.iter().map(|path| (kind, path.clone(), arguments.p4runtime_format)));
            for path in many {
                messages.push((kind, path.clone(), Format::of(path)?));
            }
        }
        Ok(Wanted { json, make_folder: arguments.driver, messages })
    }

    fn write(&self, outcome: &Outcome, tell: bool) -> Result<(), String> {
        let mut files: Vec<(&Path, Vec<u8>)> = Vec::new();
        if let (Some(path), Some(json)) = (&self.json, &outcome.json) {
            let mut text = serde_json::to_vec_pretty(json).map_err(|e| format!("{}: {e}", path.display()))?;
            text.push(b'\n');
            files.push((path, text));
        }
        let entries = outcome.control_plane.as_ref().map(p4info::entries);
        for (kind, path, format) in &self.messages {
            let text = match kind {
                Kind::P4Info => outcome.p4info.as_deref(),
                Kind::WriteRequest => entries.as_deref(),
            };
            files.push((path, convert(*kind, text.unwrap_or(""), *format)?));
        }
        for (path, bytes) in files {
            save(path, &bytes, self.make_folder && self.json.as_deref() == Some(path))?;
            if tell {
                eprintln!("wrote {}", path.display());
            }
        }
        Ok(())
    }
}
