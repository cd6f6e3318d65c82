//! One executable that is each of our programs, so that their code is linked and kept once. The name by which it is started says which
//! program it is; under any other name it is the switch. See `docs/decisions/build-time.md`.
//!
//! Programs on interfaces are Linux's; the compiler and packet tests are everywhere (`docs/decisions/other-systems.md`).

#[cfg(target_os = "linux")]
mod blast;
mod compile;
mod files;
mod fmt;
#[cfg(target_os = "linux")]
mod link;
mod lsp;
#[cfg(target_os = "linux")]
mod relay;
mod replay;
mod stf;
#[cfg(target_os = "linux")]
mod switch;

use std::env::consts::EXE_SUFFIX;
use std::path::Path;
use std::process::ExitCode;

fairlane_memory::huge_pages!();

fn main() -> ExitCode {
    let started_as = std::env::args_os().next().unwrap_or_default();
    let name = Path::new(&started_as).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    match name.strip_suffix(EXE_SUFFIX).unwrap_or(name) {
        "fairlane-compile" => compile::main(),
        "fairlane-fmt" => fmt::main(),
        "fairlane-lsp" => lsp::main(),
        "fairlane-replay" => replay::main(),
        "fairlane-stf" => stf::main(),
        name => on_interfaces(name),
    }
}

#[cfg(target_os = "linux")]
fn on_interfaces(name: &str) -> ExitCode {
    match name {
        "fairlane-blast" => blast::main(),
        "fairlane-link" => link::main(),
        "fairlane-relay" => relay::main(),
        _ => switch::main(),
    }
}

/// Exit status 3: this machine cannot.
#[cfg(not(target_os = "linux"))]
fn on_interfaces(name: &str) -> ExitCode {
    eprintln!("{name} needs Linux, for its packet sockets. Here, run packet tests (fairlane-stf) and virtual time (fairlane run).");
    ExitCode::from(3)
}
