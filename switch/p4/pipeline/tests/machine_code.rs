//! Every program of the tests, and als.p4, does the same interpreted and as machine code.

#[path = "common/twin.rs"]
mod twin;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fairlane_pipeline::{EgressOut, IngressOut, MachineCode, Observing, Program, QueueInfo, Switch, SwitchConfig};
use twin::{run, run_observed};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

fn sources() -> Vec<PathBuf> {
    let folder = root().join("tests/p4");
    let entries = std::fs::read_dir(&folder).expect("tests/p4").flatten();
    let mut found: Vec<PathBuf> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            Some(entry.path().join(format!("{name}.p4")))
        })
        .filter(|source| source.is_file())
        .collect();
    found.push(root().join("p4src/als.p4"));
    found.sort();
    found
}

fn load(source: &Path) -> Arc<Program> {
    let made = fairlane_compiler::compile(source, &fairlane_compiler::Options::default());
    let json = made.json.unwrap_or_else(|| panic!("{}", made.rendered));
    Arc::new(Program::from_json(&json.to_string()).unwrap_or_else(|e| panic!("{e}")))
}

#[test]
fn every_program_does_the_same() {
    let sources = sources();
    assert!(sources.len() > 18, "only {} programs found", sources.len());
    let (mut interpreted_only, mut frames) = (Vec::new(), 0);
    for source in &sources {
        let program = load(source);
        let interpreted = run(&program, MachineCode::Never, 300);
        if program.translate().is_err() {
            interpreted_only.push(source.file_stem().unwrap().to_string_lossy().into_owned());
        }
        let native = run(&program, MachineCode::Always, 300);
        assert_eq!(interpreted, native, "{}", source.display());
        for observing in [Observing::Events, Observing::Everything] {
            let observed = run_observed(&program, MachineCode::Auto, (observing, true), 300);
            assert_eq!(interpreted, observed, "{} observed: {observing:?}", source.display());
            let unobserved = run_observed(&program, MachineCode::Always, (observing, false), 300);
            assert_eq!(interpreted, unobserved, "{} unobserved: {observing:?}", source.display());
        }
        frames += interpreted.emitted.len();
    }
    // A processor without a translator has nothing to compare.
    if cfg!(target_arch = "x86_64") {
        // PSA, and loops whose rounds are known at run time only.
        assert_eq!(interpreted_only, ["loop_variable_written", "psa_externs", "psa_paths"]);
    }
    assert!(frames > 1000, "{frames} frames came out");
}

/// A program is translated beside the packets, which do not wait for it and do not show it.
#[test]
fn a_program_is_translated_while_packets_go_on() {
    let program = load(&root().join("bench/forward.p4"));
    let config = |machine_code| SwitchConfig { machine_code, ..SwitchConfig::default() };
    let mut switches = [MachineCode::Auto, MachineCode::Never]
        .map(|machine_code| Switch::new(Arc::clone(&program), config(machine_code)).expect("memory"));
    let mut frame = vec![0; 60];
    frame[12..15].copy_from_slice(&[8, 0, 0x45]);
    for i in 0..30_000_u64 {
        let outs = switches.each_mut().map(|sw| {
            let (mut iout, mut eout) = (IngressOut::default(), EgressOut::default());
            sw.ingress(i, 1, &frame, &mut iout);
            if let Some(item) = iout.queued.pop() {
                sw.egress(i, item, QueueInfo::default(), &mut eout);
            }
            (iout.dropped, eout.emitted, eout.dropped)
        });
        assert_eq!(outs[0], outs[1]);
        frame[16 + i as usize % 40] = i as u8;
    }
    assert_eq!(switches[0].stats(), switches[1].stats());
}
