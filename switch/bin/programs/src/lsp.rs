//! `fairlane-lsp`: the language server on standard input and output. Exit status 0 after `shutdown` and `exit`, 1 otherwise, as the protocol wants.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

/// Serve an editor: the Language Server Protocol on standard input and output
#[derive(Parser)]
#[command(name = "fairlane-lsp", version)]
struct Arguments {
    /// Add a directory to look for included files in
    #[arg(short = 'I', value_name = "DIR")]
    include: Vec<PathBuf>,
    /// Define a preprocessor macro
    #[arg(short = 'D', value_name = "NAME[=VALUE]")]
    define: Vec<String>,
    /// Standard input and output, the only way: editors name it
    #[arg(long)]
    stdio: bool,
}

pub fn main() -> ExitCode {
    let Arguments { include, define, stdio: _ } = Arguments::parse();
    let include = include.into_iter().map(|folder| std::path::absolute(&folder).unwrap_or(folder)).collect();
    let options = fairlane_compiler::Options { include, define, ..fairlane_compiler::Options::default() };
    match fairlane_language_server::serve(options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("fairlane-lsp: {error}");
            ExitCode::FAILURE
        }
    }
}
