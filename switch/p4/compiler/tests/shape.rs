//! What BMv2's loader insists on beyond the values: how parameters of primitives and of parser operations are written.

use std::path::Path;

use fairlane_compiler::{compile, Options};
use serde_json::Value;

fn compiled(name: &str) -> Value {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../../tests/p4/{name}/{name}.p4"));
    let outcome = compile(&source, &Options::default());
    outcome.json.unwrap_or_else(|| panic!("{}", outcome.rendered))
}

fn parameters(operations: &Value) -> impl Iterator<Item = (&str, &Value)> {
    operations.as_array().into_iter().flatten().flat_map(|o| {
        let op = o["op"].as_str().unwrap_or_default();
        o["parameters"].as_array().into_iter().flatten().map(move |p| (op, p))
    })
}

/// `local` is the name of an action's data inside an expression only.
#[test]
fn data_of_an_action_that_stands_alone_is_runtime_data() {
    // A counter's index is cast from a parameter.
    let json = compiled("tunnel");
    let mut data = 0;
    for action in json["actions"].as_array().unwrap() {
        for (op, parameter) in parameters(&action["primitives"]) {
            assert_ne!(parameter["type"], "local", "{op} in {}", action["name"]);
            data += usize::from(parameter["type"] == "runtime_data");
        }
    }
    assert!(data > 3, "{data} parameters are data of the action");
}

/// The length of `advance` is an expression in one more object, like a varbit's.
#[test]
fn lengths_in_parsers_are_wrapped() {
    let json = compiled("options");
    let mut lengths = 0;
    for state in json["parsers"][0]["parse_states"].as_array().unwrap() {
        for (op, parameter) in parameters(&state["parser_ops"]) {
            if matches!(op, "advance" | "extract_VL") && parameter["type"] == "expression" {
                assert!(parameter["value"]["type"].is_string(), "{op}: {parameter}");
                lengths += 1;
            }
        }
    }
    assert!(lengths >= 2, "{lengths} lengths are expressions");
}
