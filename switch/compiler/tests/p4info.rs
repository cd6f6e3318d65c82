//! P4Info of a whole program. The snapshot holds what p4c writes for it, but for the order of actions.

use std::path::Path;

#[test]
fn every_kind_of_object() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/p4info.p4");
    let outcome = fairlane_compiler::compile(&source, &fairlane_compiler::Options::default());
    insta::assert_snapshot!(outcome.p4info.unwrap_or(outcome.rendered));
}
