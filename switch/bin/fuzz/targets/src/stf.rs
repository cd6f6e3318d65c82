//! Packet tests: the reader, and what it reads played against a program.

use fairlane_stf::{read, run};

use crate::programs;

/// The first byte chooses the program, the rest is the script.
pub fn script(data: &[u8]) {
    let Some((&number, text)) = data.split_first() else { return };
    if let Ok(script) = read(&String::from_utf8_lossy(text)) {
        // A script that does not fit the program is an error that names the line.
        if let Err(error) = run(programs::choose(number).program.clone(), &script) {
            assert!(script.statements.iter().any(|statement| statement.line == error.line), "{error}");
        }
    }
}
