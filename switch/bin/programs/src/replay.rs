//! `fairlane-replay PROGRAM.json SETUP.stf`: packets in batches on standard input, what comes out on standard output; see
//! [`fairlane_stf::replay`]. Exit status 2 when something cannot be read.

use std::io::{BufReader, BufWriter};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use fairlane_device::pipeline::Program;
use fairlane_stf::Player;

/// Answer batches of packets as a switch would, for comparison with other switches
#[derive(Parser)]
#[command(name = "fairlane-replay", version)]
struct Arguments {
    /// The BMv2 JSON of a program
    program: PathBuf,
    /// An STF script with the entries of the program's tables
    setup: PathBuf,
}

pub fn main() -> ExitCode {
    match answer(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

fn answer(arguments: &Arguments) -> Result<(), String> {
    let (program, setup) = (arguments.program.display(), arguments.setup.display());
    let json = std::fs::read_to_string(&arguments.program).map_err(|e| format!("{program}: {e}"))?;
    let text = std::fs::read_to_string(&arguments.setup).map_err(|e| format!("{setup}: {e}"))?;
    let script = fairlane_stf::read(&text).map_err(|e| format!("{setup}:{}: {}", e.line, e.message))?;
    let mut player = Player::new(Program::from_json(&json).map(Arc::new).map_err(|e| format!("{program}: {e}"))?)?;
    for statement in &script.statements {
        player.play(statement.line, &statement.command).map_err(|e| format!("{setup}:{}: {e}", statement.line))?;
    }
    let (mut input, mut output) = (BufReader::new(std::io::stdin().lock()), BufWriter::new(std::io::stdout().lock()));
    fairlane_stf::replay::replay(&mut player, &mut input, &mut output).map_err(|e| format!("standard input: {e}"))
}
