//! A test and its program from files, and what is said of them: `fairlane-stf` prints it, `fairlane.native` hands it to Python.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use fairlane_pipeline::Program;

use crate::{read, run, Outcome};

/// A test that could be played.
#[derive(Debug)]
pub struct Played {
    test: String,
    outcome: Outcome,
}

impl Played {
    /// Whether all came out as expected.
    pub fn passed(&self) -> bool {
        self.outcome.differences.is_empty()
    }

    /// A line for each difference, and the verdict. verbose: before them what reading commands and `log_msg` said.
    pub fn text(&self, verbose: bool) -> String {
        let (Self { test, outcome }, mut text) = (self, String::new());
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
    let name = test.display();
    let text = std::fs::read_to_string(test).map_err(|e| format!("{name}: {e}"))?;
    let script = read(&text).map_err(|e| format!("{name}:{}: {}", e.line, e.message))?;
    let outcome = run(load(program, options)?, &script).map_err(|e| format!("{name}:{}: {}", e.line, e.message))?;
    Ok(Played { test: name.to_string(), outcome })
}

fn load(path: &Path, options: &fairlane_compiler::Options) -> Result<Arc<Program>, String> {
    let json = if path.extension().is_some_and(|e| e == "json") {
        std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?
    } else {
        let outcome = fairlane_compiler::compile(path, options);
        outcome.json.ok_or(outcome.rendered)?.to_string()
    };
    Program::from_json(&json).map(Arc::new).map_err(|e| format!("{}: {e}", path.display()))
}
