//! One executable that is each of our programs, so that their code is linked and kept once. The name by which it is started says which
//! program it is; under any other name it is the switch. See `docs/decisions/build-time.md`.

mod blast;
mod compile;
mod link;
mod relay;
mod replay;
mod stf;
mod switch;

use std::path::Path;
use std::process::ExitCode;

fairlane_memory::huge_pages!();

fn main() -> ExitCode {
    let started_as = std::env::args_os().next().unwrap_or_default();
    match Path::new(&started_as).file_name().and_then(|name| name.to_str()) {
        Some("fairlane-blast") => blast::main(),
        Some("fairlane-compile") => compile::main(),
        Some("fairlane-link") => link::main(),
        Some("fairlane-relay") => relay::main(),
        Some("fairlane-replay") => replay::main(),
        Some("fairlane-stf") => stf::main(),
        _ => switch::main(),
    }
}
