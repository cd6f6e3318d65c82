//! `fairlane-stf PROGRAM TEST.stf...`: exit status 0 when the tests pass, 1 when one does not, 2 when something cannot be read.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use fairlane_device::pipeline::{Level, Observing};
use fairlane_stf::Coverage;

/// Run STF packet tests against a P4 program, without interfaces or root
#[derive(Parser)]
#[command(name = "fairlane-stf", version)]
struct Arguments {
    /// A P4_16 program for v1model, or the BMv2 JSON of one (.json)
    program: PathBuf,
    /// The test scripts; each begins with the program's initial state
    #[arg(required = true)]
    tests: Vec<PathBuf>,
    /// Add a directory to look for included files in
    #[arg(short = 'I', value_name = "DIR")]
    include: Vec<PathBuf>,
    /// Define a preprocessor macro
    #[arg(short = 'D', value_name = "NAME[=VALUE]")]
    define: Vec<String>,
    /// Print what reading commands and log_msg say
    #[arg(short, long)]
    verbose: bool,
    /// Print what each packet does, in BMv2's words: trace (everything), debug, info, warn or error
    #[arg(short = 'L', long, value_name = "LEVEL", value_parser = level)]
    log_level: Option<Level>,
    /// Write what the tests reach of the program: FILE.info for lcov's tools, FILE.html and FILE.json beside it
    #[arg(long, value_name = "FILE.info")]
    coverage: Option<PathBuf>,
}

fn level(text: &str) -> Result<Level, String> {
    let levels = [("trace", Level::Trace), ("debug", Level::Debug), ("info", Level::Info), ("warn", Level::Warn), ("error", Level::Error)];
    let found = levels.into_iter().find(|(name, _)| *name == text);
    found.map(|(_, level)| level).ok_or_else(|| "use trace, debug, info, warn or error".to_string())
}

pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match play(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

fn play(arguments: &Arguments) -> Result<bool, String> {
    let options = fairlane_compiler::Options {
        include: arguments.include.clone(),
        define: arguments.define.clone(),
        ..fairlane_compiler::Options::default()
    };
    let observing = match (arguments.log_level, &arguments.coverage) {
        (None, None) => Observing::Nothing,
        _ => Observing::Everything,
    };
    let program = fairlane_stf::load(&arguments.program, &options)?;
    let (mut passed, mut coverage) = (true, Coverage::default());
    for test in &arguments.tests {
        let played = fairlane_stf::play(Arc::clone(&program), test, observing)?;
        if let Some(level) = arguments.log_level {
            print(&played.packet_log(level));
        }
        print(&played.text(arguments.verbose));
        passed &= played.passed();
        if arguments.coverage.is_some() {
            played.cover(&mut coverage);
        }
    }
    if let Some(path) = &arguments.coverage {
        for (extension, text) in [("info", coverage.lcov()), ("html", coverage.page()), ("json", coverage.json())] {
            let path = path.with_extension(extension);
            std::fs::write(&path, text).map_err(|error| format!("--coverage {}: {error}", path.display()))?;
        }
        print(&coverage.summary());
    }
    Ok(passed)
}

/// A reader that has gone (`| head`) is no reason to fail.
fn print(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}
