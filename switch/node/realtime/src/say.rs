//! Lines for whoever started a program. Their reader may be gone, and the disk that they are kept on may be full: the program runs all
//! the same, where `println!` and `eprintln!` would end it.

use std::fmt::Display;
use std::io::Write as _;

/// A line on standard output, at once.
pub fn say(line: impl Display) {
    let mut output = std::io::stdout().lock();
    let _ = writeln!(output, "{line}");
    let _ = output.flush();
}

/// A line on standard error.
pub fn complain(line: impl Display) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
