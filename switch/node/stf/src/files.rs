//! A test and its program from files, and what is said of them: `fairlane-stf` prints it, `fairlane.native` hands it to Python.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use fairlane_pipeline::{Level, Observing, Program};

use crate::{read, run_observed, Coverage, Outcome};

/// A test that could be played.
#[derive(Debug)]
pub struct Played {
    test: String,
    program: Arc<Program>,
    outcome: Outcome,
}

impl Played {
    /// Whether all came out as expected.
    pub fn passed(&self) -> bool {
        self.outcome.differences.is_empty()
    }

    /// What the packets did in BMv2's words, down to a level, if it was kept.
    pub fn packet_log(&self, level: Level) -> String {
        let mut text = String::new();
        for (found, line) in self.outcome.steps.iter().filter_map(|step| self.program.worded(step)).filter(|(found, _)| *found >= level) {
            let _ = writeln!(text, "[{}] {line}", found.letter());
        }
        text
    }

    /// Counts what the packets reached.
    pub fn cover(&self, coverage: &mut Coverage) {
        coverage.add(&self.program, &self.outcome.steps);
    }

    /// A line for each difference, and the verdict. verbose: before them what reading commands and `log_msg` said.
    pub fn text(&self, verbose: bool) -> String {
        let (Self { test, outcome, .. }, mut text) = (self, String::new());
        for line in outcome.log.iter().filter(|_| verbose) {
            let _ = writeln!(text, "{line}");
        }
        for difference in &outcome.differences {
            let _ = writeln!(text, "{test}: {difference}");
        }
        let verdict = if self.passed() { "passed" } else { "FAILED" };
        let _ = writeln!(text, "{test}: {verdict} ({} packets in, {} out)", outcome.packets_in, outcome.packets_out);
        text
    }
}

/// Plays a test against a program for v1model, or against the BMv2 JSON of one (`.json`). The error names file and line.
pub fn play_files(program: &Path, test: &Path, options: &fairlane_compiler::Options) -> Result<Played, String> {
    play(load(program, options)?, test, Observing::Nothing)
}

/// Plays a test against a program, keeping packets' steps. The error names file and line.
pub fn play(program: Arc<Program>, test: &Path, observing: Observing) -> Result<Played, String> {
    let name = test.display();
    let text = std::fs::read_to_string(test).map_err(|e| format!("{name}: {e}"))?;
    let script = read(&text).map_err(|e| format!("{name}:{}: {}", e.line, e.message))?;
    // What steps name by number is written in the program as it runs.
    let program = if observing > Observing::Nothing { program.observed(observing).map_or(program, Arc::new) } else { program };
    let outcome = run_observed(Arc::clone(&program), &script, observing).map_err(|e| format!("{name}:{}: {}", e.line, e.message))?;
    Ok(Played { test: name.to_string(), program, outcome })
}

/// A program for v1model, or the BMv2 JSON of one (`.json`). The error has the compiler's messages.
pub fn load(path: &Path, options: &fairlane_compiler::Options) -> Result<Arc<Program>, String> {
    let json = if path.extension().is_some_and(|e| e == "json") {
        std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?
    } else {
        let outcome = fairlane_compiler::compile(path, options);
        outcome.json.ok_or(outcome.rendered)?.to_string()
    };
    Program::from_json(&json).map(Arc::new).map_err(|e| format!("{}: {e}", path.display()))
}
