//! Fuzz targets: functions that take any bytes and must return. A panic, a hang or a broken property is a bug.
//!
//! `switch/bin/fuzz/runner` puts libFuzzer around them; `tests/replay.rs` runs each over its corpus in `cargo test`.

#![forbid(unsafe_code)]

mod json;
mod messages;
mod p4runtime;
mod packet;
mod programs;
mod source_text;
mod stf;

/// A fuzz target.
#[derive(Debug)]
pub struct Target {
    /// Its name, and that of its folder in `switch/bin/fuzz/corpus`.
    pub name: &'static str,
    /// Longest useful input, bytes.
    pub max_len: usize,
    /// One run. Returns, whatever the input.
    pub run: fn(&[u8]),
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target { name: "preprocess", max_len: 4096, run: source_text::preprocess },
    Target { name: "parse", max_len: 4096, run: source_text::parse },
    Target { name: "compile", max_len: 8192, run: source_text::compile },
    Target { name: "json", max_len: 4096, run: json::load },
    Target { name: "packet", max_len: 4096, run: packet::pipeline },
    Target { name: "p4runtime", max_len: 4096, run: p4runtime::session },
    Target { name: "stf", max_len: 4096, run: stf::script },
];

/// The target of that name.
pub fn find(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

/// The names of all targets, for messages.
pub fn names() -> String {
    TARGETS.iter().map(|target| target.name).collect::<Vec<_>>().join(", ")
}
