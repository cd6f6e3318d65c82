//! `fairlane-stf PROGRAM TEST.stf`: exit status 0 when the test passes, 1 when it does not, 2 when something cannot be read.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use fairlane_device::pipeline::Program;

/// Run an STF packet test against a P4 program, without interfaces or root
#[derive(Parser)]
#[command(name = "fairlane-stf", version)]
struct Arguments {
    /// A P4_16 program for v1model, or the BMv2 JSON of one (.json)
    program: PathBuf,
    /// The test script
    test: PathBuf,
    /// Add a directory to look for included files in
    #[arg(short = 'I', value_name = "DIR")]
    include: Vec<PathBuf>,
    /// Define a preprocessor macro
    #[arg(short = 'D', value_name = "NAME[=VALUE]")]
    define: Vec<String>,
    /// Print what reading commands and log_msg say
    #[arg(short, long)]
    verbose: bool,
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
    let test = arguments.test.display();
    let text = std::fs::read_to_string(&arguments.test).map_err(|e| format!("{test}: {e}"))?;
    let script = fairlane_stf::read(&text).map_err(|e| format!("{test}:{}: {}", e.line, e.message))?;
    let program = load(arguments)?;
    let outcome = fairlane_stf::run(program, &script).map_err(|e| format!("{test}:{}: {}", e.line, e.message))?;
    if arguments.verbose {
        for line in &outcome.log {
            println!("{line}");
        }
    }
    for difference in &outcome.differences {
        println!("{test}: {difference}");
    }
    let verdict = if outcome.differences.is_empty() { "passed" } else { "FAILED" };
    println!("{test}: {verdict} ({} packets in, {} out)", outcome.packets_in, outcome.packets_out);
    Ok(outcome.differences.is_empty())
}

fn load(arguments: &Arguments) -> Result<Arc<Program>, String> {
    let path: &Path = &arguments.program;
    let json = if path.extension().is_some_and(|e| e == "json") {
        std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?
    } else {
        let options = fairlane_compiler::Options {
            include: arguments.include.clone(),
            define: arguments.define.clone(),
            ..fairlane_compiler::Options::default()
        };
        let outcome = fairlane_compiler::compile(path, &options);
        outcome.json.ok_or(outcome.rendered)?.to_string()
    };
    Program::from_json(&json).map(Arc::new).map_err(|e| format!("{}: {e}", path.display()))
}
