//! What primitives and conditions read, so that their values can be told ([`crate::Observing::Values`]).

use serde_json::Value;

use super::json::Node;
use super::layout::{FieldName, Names};
use crate::definition::Read;
use crate::ir::{Field, Slot};

/// Primitives whose first argument is written, and not read.
const WRITES_FIRST: [&str; 13] = [
    "assign",
    "modify_field",
    "add",
    "subtract",
    "bit_xor",
    "bit_or",
    "bit_and",
    "shift_left",
    "shift_right",
    "register_read",
    "modify_field_rng_uniform",
    "modify_field_with_hash_based_offset",
    "assign_VL",
];

/// What a primitive reads.
pub fn of_primitive(call: &Node, names: &Names, params: &[(Slot, u32)]) -> Vec<(Read, Field)> {
    let op = call.v.get("op").and_then(Value::as_str).unwrap_or_default();
    let Some(arguments) = call.v.get("parameters").and_then(Value::as_array) else { return Vec::new() };
    let mut found = Vec::new();
    for (at, argument) in arguments.iter().enumerate() {
        let written = (at == 0 && WRITES_FIRST.contains(&op)) || (at == 2 && op == "execute_meter");
        if !written {
            walk(argument, names, params, &mut found);
        }
    }
    found
}

/// What an expression reads.
pub fn of_expression(expression: &Node, names: &Names) -> Vec<(Read, Field)> {
    let mut found = Vec::new();
    walk(expression.v, names, &[], &mut found);
    found
}

fn walk(v: &Value, names: &Names, params: &[(Slot, u32)], found: &mut Vec<(Read, Field)>) {
    let mut add = |read: Read, field| {
        if found.iter().all(|(known, _)| *known != read) {
            found.push((read, field));
        }
    };
    let one = |slot, width| Field { slot, width, signed: false, saturating: false, valid: names.layout.packet_end };
    match (v.get("type").and_then(Value::as_str), v.get("value")) {
        (Some("field"), Some(Value::Array(pair))) => {
            let [Value::String(header), Value::String(name)] = &pair[..] else { return };
            if let Some(FieldName::Fixed(field)) = names.find(header, name) {
                add(Read { name: format!("{header}.{name}"), width: field.width, param: None }, field);
            }
        }
        (Some("runtime_data" | "local"), Some(at)) => {
            let at = at.as_u64().and_then(|at| usize::try_from(at).ok());
            if let Some((at, (slot, width))) = at.and_then(|at| Some((at, *params.get(at)?))) {
                add(Read { name: String::new(), width, param: Some(at) }, one(slot, width));
            }
        }
        _ => match v {
            Value::Object(members) => members.values().for_each(|v| walk(v, names, params, found)),
            Value::Array(items) => items.iter().for_each(|v| walk(v, names, params, found)),
            _ => {}
        },
    }
}
