//! Feeds random frames to programs whose tables hold random entries, interpreted and as machine code: to look for panics, and for
//! differences between the two.
//!
//! `cargo run -p fairlane-pipeline --example soak -- prog.json ...`

#[path = "../tests/common/twin.rs"]
mod twin;

use std::process::ExitCode;
use std::sync::Arc;

use fairlane_pipeline::{MachineCode, Program};
use twin::run;

const FRAMES: u64 = 2000;

fn main() -> ExitCode {
    let mut wrong = 0;
    for path in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let program = match Program::from_json(&text) {
            Ok(p) => Arc::new(p),
            Err(e) => {
                println!("{path}: {e}");
                continue;
            }
        };
        let interpreted = run(&program, MachineCode::Never, FRAMES);
        let made = program.translate();
        let translated = run(&program, MachineCode::Always, FRAMES);
        let same = interpreted == translated;
        let verdict = if same { "the same" } else { "DIFFERENT" };
        println!("{path}: {} frames out, {verdict} as machine code ({made:?} bytes)", interpreted.emitted.len());
        if !same {
            wrong += 1;
            let pairs = interpreted.emitted.iter().zip(&translated.emitted);
            if let Some((a, b)) = pairs.into_iter().find(|(a, b)| a != b) {
                println!("  interpreted {a:02x?}\n  translated  {b:02x?}");
            }
        }
    }
    println!("{wrong} programs differ");
    ExitCode::from(u8::from(wrong > 0))
}
