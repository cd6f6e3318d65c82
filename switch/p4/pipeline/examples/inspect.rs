//! Loads BMv2 JSON files and prints what they declare, or why they do not load.
//!
//! `cargo run -p fairlane-pipeline --example inspect -- [--code] prog.json`; `--code` prints the code it is run as, too.

use std::process::ExitCode;

use fairlane_pipeline::Program;

fn main() -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    let (flags, paths): (Vec<String>, Vec<String>) = std::env::args().skip(1).partition(|a| a == "--code");
    for path in paths {
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) => {
                eprintln!("{path}: {e}");
                code = ExitCode::FAILURE;
                continue;
            }
        };
        match Program::from_json(&text) {
            Ok(p) => {
                println!("{path}: {} tables, {} actions", p.tables().len(), p.actions().len());
                for t in p.tables() {
                    let key: Vec<String> = t.key.iter().map(|k| format!("{} {:?}<{}>", k.name, k.kind, k.width)).collect();
                    println!("  {:?} table {}({})", t.gress, t.name, key.join(", "));
                }
                if !flags.is_empty() {
                    print!("{}", p.listing());
                }
            }
            Err(e) => {
                eprintln!("{path}: {e}");
                code = ExitCode::FAILURE;
            }
        }
    }
    code
}
