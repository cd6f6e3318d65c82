//! `fairlane-stf PROGRAM TEST.stf`: exit status 0 when the test passes, 1 when it does not, 2 when something cannot be read.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

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
    let options = fairlane_compiler::Options {
        include: arguments.include.clone(),
        define: arguments.define.clone(),
        ..fairlane_compiler::Options::default()
    };
    let played = fairlane_stf::play_files(&arguments.program, &arguments.test, &options)?;
    print!("{}", played.text(arguments.verbose));
    Ok(played.passed())
}
