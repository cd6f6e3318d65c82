//! P4Info of whole programs. The snapshots hold what p4c writes for them.

use std::path::Path;

fn p4info(file: &str) -> String {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(file);
    let outcome = fairlane_compiler::compile(&source, &fairlane_compiler::Options::default());
    outcome.p4info.unwrap_or(outcome.rendered)
}

#[test]
fn every_kind_of_object() {
    insta::assert_snapshot!(p4info("p4info.p4"));
}

#[test]
fn what_is_shown_and_in_which_order() {
    insta::assert_snapshot!(p4info("visible.p4"));
}
