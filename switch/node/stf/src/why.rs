//! Why a packet of a script took its way: its steps, with the values before and after each.

use std::path::Path;
use std::sync::Arc;

use fairlane_pipeline::{Observing, PacketEvent, Program};
use serde_json::{json, Value as Json};

use crate::read::{Command, Script};
use crate::run::{Player, RunError};
use crate::sources::StateLines;

/// Packets' steps as data (docs/why.md), parser states with their lines. The program must note values ([`Program::observed`]). `root`: the
/// folder from which the names of its files count.
pub fn explained(program: &Program, events: &[PacketEvent], root: &Path) -> Vec<Json> {
    let mut steps = program.explained(events);
    let lines = StateLines::of(program, root);
    for step in steps.iter_mut().filter(|step| step["kind"] == "state") {
        if let Some(source) = step["state"].as_str().and_then(|state| lines.find(state)) {
            step["source"] = json!({ "file": source.file, "line": source.line, "column": source.column, "text": source.fragment.trim() });
        }
    }
    steps
}

/// Plays a script up to a packet of it, counted from 1: where the packet stands, its frame, its steps, and the frames that came out.
///
/// # Errors
/// A command does not fit the program, or there is no such packet.
pub fn why(program: &Program, script: &Script, packet: usize) -> Result<Json, RunError> {
    if packet == 0 {
        return Err(RunError { line: 1, message: "packets are counted from 1".to_string() });
    }
    let failed = |line: u32| move |message: String| RunError { line, message };
    let program = program.observed(Observing::Values).ok_or_else(|| "the program cannot be loaded again".to_string()).map_err(failed(1))?;
    let program = Arc::new(program);
    let mut player = Player::watching(Arc::clone(&program)).map_err(failed(1))?;
    let mut left = packet;
    for statement in &script.statements {
        if let Command::Packet { port, bytes } = &statement.command {
            left -= 1;
            if left == 0 {
                let (out, steps) = player.watched(*port, bytes);
                let out: Vec<Json> = out.iter().map(|(port, frame)| json!({ "port": port, "frame": hex(frame) })).collect();
                return Ok(json!({
                    "line": statement.line,
                    "port": port,
                    "frame": hex(bytes),
                    "steps": explained(&program, &steps, Path::new("")),
                    "out": out,
                }));
            }
        }
        player.play(statement.line, &statement.command).map_err(failed(statement.line))?;
    }
    let packets = packet - left;
    let last = script.statements.last().map_or(1, |statement| statement.line);
    Err(RunError { line: last, message: format!("there is no packet {packet}: the script has {packets}, counted from 1") })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
