//! libFuzzer around one target, named by `FAIRLANE_FUZZ_TARGET`. See `../README.md`; `make fuzz` builds and runs it.
#![no_main]

use std::sync::OnceLock;

use fairlane_fuzz_targets::{find, names, Target};
use libfuzzer_sys::fuzz_target;

fn target() -> &'static Target {
    static TARGET: OnceLock<&Target> = OnceLock::new();
    TARGET.get_or_init(|| {
        let name = std::env::var("FAIRLANE_FUZZ_TARGET").unwrap_or_default();
        find(&name).unwrap_or_else(|| {
            eprintln!("fairlane-fuzz: no target {name:?}: set FAIRLANE_FUZZ_TARGET to one of {}", names());
            std::process::exit(2)
        })
    })
}

fuzz_target!(|data: &[u8]| {
    (target().run)(data);
});
