//! The loader of BMv2 JSON: any text, and edited programs.

use std::sync::Arc;

use arbitrary::{Result, Unstructured};
use fairlane_pipeline::{MachineCode, Program, Switch, SwitchConfig};
use serde_json::{json, Value};

use crate::{packet, programs};

/// An input that begins with `{` is a text. Any other chooses a program, edits its JSON, and, when that loads, runs packets.
pub fn load(data: &[u8]) {
    if data.first() == Some(&b'{') {
        if let Ok(program) = Program::from_json(&String::from_utf8_lossy(data)) {
            program.listing();
        }
        return;
    }
    let mut bytes = Unstructured::new(data);
    let _ = edited(&mut bytes);
}

fn edited(bytes: &mut Unstructured) -> Result<()> {
    let mut json = programs::choose(bytes.arbitrary()?).json.clone();
    for _ in 0..bytes.int_in_range(1..=6u8)? {
        edit(&mut json, bytes)?;
    }
    let text = json.to_string();
    match Program::from_json(&text) {
        Ok(program) => {
            program.listing();
            let program = Arc::new(program);
            let config = SwitchConfig { max_passes: 4, max_parser_states: 64, ..SwitchConfig::default() };
            let rest = bytes.bytes(bytes.len())?;
            // Translation takes many times as long as all the rest, so that few inputs have it.
            if rest.len() % 8 == 0 {
                packet::both(&program, &config, rest);
            } else {
                let config = SwitchConfig { machine_code: MachineCode::Never, ..config };
                packet::drive(&mut Switch::new(program.clone(), config).expect("memory"), &program, rest);
            }
        }
        Err(error) => {
            let place = error.to_string();
            assert!(!place.is_empty() && place.len() < 4096, "a message of {} bytes", place.len());
        }
    }
    Ok(())
}

/// Changes one value somewhere below: steps into members until the bytes say stop.
fn edit(at: &mut Value, bytes: &mut Unstructured) -> Result<()> {
    if !bytes.ratio(1, 12)? {
        match at {
            Value::Array(items) if !items.is_empty() => {
                let i = bytes.choose_index(items.len())?;
                return edit(&mut items[i], bytes);
            }
            Value::Object(members) if !members.is_empty() => {
                let i = bytes.choose_index(members.len())?;
                return members.iter_mut().nth(i).map_or(Ok(()), |(_, value)| edit(value, bytes));
            }
            _ => {}
        }
    }
    match at {
        Value::Array(items) if !items.is_empty() && bytes.ratio(3, 4)? => {
            let (i, j) = (bytes.choose_index(items.len())?, bytes.choose_index(items.len())?);
            match bytes.int_in_range(0..=3u8)? {
                0 => drop(items.remove(i)),
                1 => items.swap(i, j),
                2 => items.push(items[i].clone()),
                _ => items[j] = items[i].clone(),
            }
        }
        Value::Object(members) if !members.is_empty() && bytes.ratio(3, 4)? => {
            let names: Vec<String> = members.keys().cloned().collect();
            let (one, two) = (bytes.choose(&names)?, bytes.choose(&names)?);
            if let Some(value) = members.shift_remove(one)
                && one != two
            {
                members.insert(two.clone(), value);
            }
        }
        Value::Number(number) => {
            let old = number.as_i64().unwrap_or(0);
            *at = match bytes.int_in_range(0..=5u8)? {
                0 => json!(old.wrapping_add(1)),
                1 => json!(old.wrapping_sub(1)),
                2 => json!(bytes.arbitrary::<i64>()?),
                3 => json!(bytes.int_in_range(0..=70_000u32)?),
                4 => json!(old as f64 + 0.5),
                _ => json!(bytes.arbitrary::<i8>()?),
            };
        }
        _ => *at = other(bytes)?,
    }
    Ok(())
}

/// A value that the format has somewhere.
fn other(bytes: &mut Unstructured) -> Result<Value> {
    const WORDS: &[&str] = &[
        "",
        "0x",
        "0x00",
        "0xffffffffffffffffff",
        "-0x1",
        "default",
        "parse_vset",
        "hexstr",
        "field",
        "header",
        "header_stack",
        "runtime_data",
        "local",
        "lookahead",
        "stack_field",
        "expression",
        "bool",
        "bits_to_bool",
        "last_stack_index",
        "string",
        "ingress",
        "egress",
        "exact",
        "lpm",
        "ternary",
        "range",
        "optional",
        "valid",
        "crc16",
        "csum16",
        "identity",
        "+",
        "-",
        "<<",
        ">>",
        "==",
        "d2b",
        "b2d",
        "two_comp_mod",
        "?",
        "usat_cast",
        "sat_cast",
        "access_field",
        "dereference_header_stack",
        "size_stack",
        "scalars",
        "standard_metadata",
        "extract",
        "extract_VL",
        "set",
        "shift",
        "advance",
        "primitive",
        "verify",
        "assign",
        "register_read",
        "register_write",
        "push",
        "pop",
        "clone_ingress_pkt_to_egress",
        "resubmit",
        "exit",
        "assume",
    ];
    Ok(match bytes.int_in_range(0..=6u8)? {
        0 => Value::Null,
        1 => json!(bytes.arbitrary::<bool>()?),
        2 => json!(bytes.arbitrary::<i16>()?),
        3 => json!([]),
        4 => json!({}),
        5 => json!({"type": *bytes.choose(WORDS)?, "value": *bytes.choose(WORDS)?}),
        _ => json!(*bytes.choose(WORDS)?),
    })
}
