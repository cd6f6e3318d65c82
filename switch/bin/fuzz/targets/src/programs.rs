//! The project's own test programs, compiled once a process.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use fairlane_p4rt::proto::p4::config::v1 as config;
use fairlane_pipeline::Program;
use prost_reflect::DynamicMessage;

use crate::messages::pool;

/// A program in all its forms.
pub struct Compiled {
    /// The BMv2 JSON.
    pub json: serde_json::Value,
    /// Loaded.
    pub program: Arc<Program>,
    /// For P4Runtime.
    pub p4info: config::P4Info,
}

/// From the repository's root. New ones go to the end: inputs choose a program by its number.
const SOURCES: &[&str] = &[
    "tests/p4runtime/entities.p4",
    "p4src/als.p4",
    "tests/p4/options/options.p4",
    "tests/p4/source_routing/source_routing.p4",
    "tests/p4/clone_recirculate/clone_recirculate.p4",
    "tests/p4/telemetry/telemetry.p4",
    "tests/p4/load_balance/load_balance.p4",
    "tests/p4/calculator/calculator.p4",
    "tests/p4/checksum/checksum.p4",
    "tests/p4/meters/meters.p4",
    "switch/p4/compiler/tests/programs/parsing.p4",
    "switch/p4/compiler/tests/programs/externs.p4",
    "switch/p4/compiler/tests/programs/control_flow.p4",
    "switch/p4/compiler/tests/programs/types.p4",
];

/// Compiles the programs at the first call.
pub fn all() -> &'static [Compiled] {
    static PROGRAMS: OnceLock<Vec<Compiled>> = OnceLock::new();
    PROGRAMS.get_or_init(|| SOURCES.iter().map(|source| compile(source)).collect())
}

/// The program that a number chooses.
pub fn choose(number: u8) -> &'static Compiled {
    let programs = all();
    &programs[number as usize % programs.len()]
}

fn compile(source: &str) -> Compiled {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../..").join(source);
    let outcome = fairlane_compiler::compile(&path, &Default::default());
    let json = outcome.json.unwrap_or_else(|| panic!("{source}: {}", outcome.rendered));
    let program = Program::from_json(&json.to_string()).unwrap_or_else(|error| panic!("{source}: {error}"));
    let p4info = p4info(&outcome.p4info.expect("P4Info beside the JSON"));
    Compiled { json, program: Arc::new(program), p4info }
}

/// P4Info from its text form.
///
/// # Panics
/// The text is none: then the compiler is at fault.
pub fn p4info(text: &str) -> config::P4Info {
    let descriptor = pool().get_message_by_name("p4.config.v1.P4Info").expect("P4Info");
    let message = DynamicMessage::parse_text_format(descriptor, text).unwrap_or_else(|error| panic!("P4Info: {error}\n{text}"));
    message.transcode_to().expect("P4Info")
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    /// Else the `packet` target compares the interpreter with itself.
    #[test]
    fn programs_have_machine_code() {
        let without = super::all().iter().filter_map(|compiled| compiled.program.translate().err()).collect::<Vec<_>>();
        assert!(without.is_empty(), "{without:?}");
    }
}
