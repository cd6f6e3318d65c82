//! Every program in `tests/p4`, compiled and run against its packet test.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fairlane_pipeline::{Observing, Program};
use fairlane_stf::{Command, Outcome, Script};

fn folders() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/p4");
    let mut found: Vec<PathBuf> = std::fs::read_dir(&root)
        .unwrap_or_else(|e| panic!("{}: {e}", root.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir() && !path.ends_with("include"))
        .collect();
    found.sort();
    found
}

/// What is not as the script says. STF looks only at ports that a script names; here a packet at any other port is wrong, too.
fn wrong(name: &str, script: &Script, outcome: &Outcome) -> Vec<String> {
    let mut wrong: Vec<String> = outcome.differences.iter().map(|d| format!("{name}: {d}")).collect();
    let expected = script.statements.iter().filter(|s| matches!(s.command, Command::Expect { .. })).count();
    if wrong.is_empty() && outcome.packets_out != expected {
        wrong.push(format!("{name}: {expected} packets expected, {} came out, some at ports not named", outcome.packets_out));
    }
    wrong
}

/// With every step kept and its values, the same packets come out, and entries that are compared one by one say the same as a table's look-up.
fn with_values(name: &str, program: &Program, script: &Script, plain: &Outcome) -> Result<(), String> {
    let program = Arc::new(program.observed(Observing::Values).ok_or("cannot be loaded again")?);
    let outcome = fairlane_stf::run_observed(Arc::clone(&program), script, Observing::Values).map_err(|e| format!("{name}.stf: {e}"))?;
    let packets = Outcome { steps: Vec::new(), ..outcome.clone() };
    if packets != *plain {
        return Err(format!("{name}: other packets come out when steps are kept"));
    }
    let steps = program.explained(&outcome.steps);
    for step in steps.iter().filter(|step| step["kind"] == "table") {
        let (hit, tried) = (step["hit"] == true, &step["candidates"]);
        let matching = tried["matching"].as_u64().unwrap_or(0);
        let first = &tried["shown"][0];
        if hit != (matching > 0) || (hit && (first["hit"] != true || first["entry"]["match"] != step["entry"]["match"])) {
            return Err(format!("{name}: the table and its entries disagree: {step:#}"));
        }
        let shown = tried["shown"].as_array().into_iter().flatten();
        let preferred = |entry: &serde_json::Value| entry["priority"].as_i64().unwrap_or(0);
        let beaten = |one: &&serde_json::Value| one["fields"].as_array().is_some_and(|fields| fields.iter().all(|field| field == true));
        if shown.filter(beaten).any(|one| preferred(&one["entry"]) > preferred(&first["entry"])) {
            return Err(format!("{name}: an entry of higher priority was not hit: {step:#}"));
        }
    }
    match outcome.steps.is_empty() || !steps.is_empty() {
        true => Ok(()),
        false => Err(format!("{name}: no step is explained")),
    }
}

/// The differences of one program's test, or why it could not be run.
fn check(folder: &Path) -> Result<(), String> {
    let name = folder.file_name().unwrap().to_string_lossy().into_owned();
    let source = folder.join(format!("{name}.p4"));
    let outcome = fairlane_compiler::compile(&source, &fairlane_compiler::Options::default());
    let json = outcome.json.ok_or_else(|| outcome.rendered.clone())?;
    let program = Program::from_json(&json.to_string()).map_err(|e| format!("{name}: {e}"))?;
    let text = std::fs::read_to_string(folder.join(format!("{name}.stf"))).map_err(|e| format!("{name}.stf: {e}"))?;
    let script = fairlane_stf::read(&text).map_err(|e| format!("{name}.stf: {e}"))?;
    let program = Arc::new(program);
    let outcome = fairlane_stf::run(Arc::clone(&program), &script).map_err(|e| format!("{name}.stf: {e}"))?;
    with_values(&name, &program, &script, &outcome)?;
    if outcome.packets_in == 0 {
        return Err(format!("{name}.stf sends no packet"));
    }
    let differences = wrong(&name, &script, &outcome);
    if differences.is_empty() {
        Ok(())
    } else {
        Err(differences.join("\n"))
    }
}

#[test]
fn every_program_passes_its_packet_test() {
    let folders = folders();
    assert!(folders.len() >= 18, "only {} programs found", folders.len());
    let failures: Vec<String> = folders.iter().filter_map(|folder| check(folder).err()).collect();
    println!("{} of {} programs pass", folders.len() - failures.len(), folders.len());
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// The packet tests of als.p4, compiled with these macros, that are not passed.
fn als(define: &[&str], tests: &[&str]) -> Vec<String> {
    with(define, None, tests)
}

/// The same with the choice of schemes in a folder.
fn with(define: &[&str], chosen: Option<&Path>, tests: &[&str]) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let define = define.iter().map(|name| (*name).to_owned()).collect();
    let include = chosen.map_or_else(Vec::new, |folder| vec![folder.to_owned(), root.join("p4src")]);
    let options = fairlane_compiler::Options { define, include, ..fairlane_compiler::Options::default() };
    let outcome = fairlane_compiler::compile(&root.join("p4src/als.p4"), &options);
    let json = outcome.json.unwrap_or_else(|| panic!("{}", outcome.rendered));
    let program = Arc::new(Program::from_json(&json.to_string()).unwrap_or_else(|e| panic!("{e}")));
    let mut failures = Vec::new();
    for name in tests {
        let text = std::fs::read_to_string(root.join(format!("tests/p4src/{name}.stf"))).unwrap();
        let script = fairlane_stf::read(&text).unwrap_or_else(|e| panic!("{name}.stf: {e}"));
        let outcome = fairlane_stf::run(program.clone(), &script).unwrap_or_else(|e| panic!("{name}.stf: {e}"));
        failures.extend(wrong(name, &script, &outcome));
    }
    failures
}

#[test]
fn als_passes_its_packet_tests() {
    let failures = als(&[], &["rewriting", "forwarding", "multicast"]);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn als_with_ipv6_passes_its_packet_tests() {
    for define in [&["IPV6"][..], &["IPV6", "CONNECTION_SKETCH"]] {
        let failures = als(define, &["ipv6"]);
        assert!(failures.is_empty(), "{define:?}\n{}", failures.join("\n"));
    }
}

#[test]
fn als_with_the_sketch_passes_them_too() {
    let failures = als(&["CONNECTION_SKETCH"], &["rewriting", "forwarding", "multicast", "sketch"]);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The packet test of a scheme that is at every port, and others of the program with it.
fn everywhere(scheme: &str, others: &[&str]) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../p4src/schemes").join(scheme);
    let own = format!("../../p4src/schemes/{scheme}/{scheme}");
    with(&["CHOSEN"], Some(&folder), &[others, &[own.as_str()]].concat())
}

#[test]
fn als_with_sources_believes_them_at_their_ports() {
    let failures = everywhere("sources", &[]);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn als_with_protection_passes_them_too() {
    let failures = everywhere("protection", &["rewriting", "forwarding", "multicast"]);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
