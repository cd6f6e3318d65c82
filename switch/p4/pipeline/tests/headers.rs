//! Parser, deparser, header stacks, unions, variable-length fields, checksums.

mod common;

use common::*;
use fairlane_pipeline::*;
use proptest::prelude::*;
use serde_json::{json, Value as Json};

fn header(name: &str) -> Json {
    json!({"type": "header", "value": name})
}

fn stack(name: &str) -> Json {
    json!({"type": "header_stack", "value": name})
}

fn extract_stack(name: &str) -> Json {
    json!({"op": "extract", "parameters": [{"type": "stack", "value": name}]})
}

/// Copies the parser's error into the frame, so that tests see it.
fn with_error(b: &mut Build, ops: &[Json]) {
    let mut all = vec![set_port(1), prim("add_header", &[header("e")]), assign(field("e", "code"), std("parser_error"))];
    all.extend_from_slice(ops);
    b.always(0, "go", &all, None);
}

/// MPLS-like labels until the bottom bit.
fn labels() -> Build {
    let mut b = Build::new();
    b.header("e", &[("code", 8)]);
    b.header_type("label", json!([["v", 7, false], ["last", 1, false]])).stack("l", "label", 3);
    let last = json!({"type": "stack_field", "value": ["l", "last"]});
    b.state("start", &[extract_stack("l")], &[last], &[("0x00", Some("start")), ("default", None)]);
    b
}

#[test]
fn stacks_fill_and_overflow() {
    let mut b = labels();
    with_error(&mut b, &[]);
    let mut sw = b.switch();
    // NoError 1, PacketTooShort 2, StackOutOfBounds 4.
    assert_eq!(send(&mut sw, 0, &[2, 5, 8]), [(1, vec![1, 2, 5, 8])]);
    assert_eq!(send(&mut sw, 0, &[2, 4]), [(1, vec![2, 2, 4])]);
    assert_eq!(send(&mut sw, 0, &[2, 4, 6, 8]), [(1, vec![4, 2, 4, 6, 8])]);
}

#[test]
fn push_and_pop() {
    let run = |ops: &[Json], frame: &[u8]| {
        let mut b = labels();
        let mut all = vec![set_port(1)];
        all.extend_from_slice(ops);
        b.always(0, "go", &all, None);
        send(&mut b.switch(), 0, frame)[0].1.clone()
    };
    let frame = [2, 4, 7, 99];
    assert_eq!(run(&[prim("pop", &[stack("l"), hex(1)])], &frame), [4, 7, 99]);
    assert_eq!(run(&[prim("pop", &[stack("l"), hex(9)])], &frame), [99]);
    // Pushed elements are invalid until made valid; what falls off the end is gone.
    let set = [assign(field("l[0]", "v"), hex(0x3f))];
    let push = [prim("push", &[stack("l"), hex(1)]), prim("add_header", &[header("l[0]")])];
    assert_eq!(run(&[&push[..], &set].concat(), &frame), [0x7e, 2, 4, 99]);
    assert_eq!(run(&push[..1], &frame), [2, 4, 99]);
    // An element chosen at run time, read and written.
    let elem = |i: u64| {
        let deref =
            json!({"type": "expression", "value": {"op": "dereference_header_stack", "left": stack("l"), "right": field("e", "code")}});
        wrapped(json!({"type": "expression", "value": {"op": "access_field", "left": deref, "right": i}}))
    };
    let ops = [assign(field("e", "code"), hex(1)), assign(elem(0), hex(0x11))];
    assert_eq!(run(&ops, &frame), [2, 0x22, 7, 99]);
    let ops = [assign(field("e", "code"), hex(200)), assign(elem(0), hex(0x11))];
    assert_eq!(run(&ops, &frame), frame);
}

#[test]
fn varbit_extract_bounds() {
    let mut b = Build::new();
    b.header("e", &[("code", 8)]);
    b.header("len", &[("n", 8)]);
    b.header_type("opt", json!([["kind", 8, false], ["data", "*"], ["tail", 8, false]]));
    b.edit(|root| root["header_types"][3]["max_length"] = json!(10));
    b.instance("o", "opt", false);
    let bits = json!({"type": "expression", "value": expr("*", field("len", "n"), hex(4))});
    let extract = json!({"op": "extract_VL", "parameters": [{"type": "regular", "value": "o"}, bits]});
    b.state("start", &[Build::extract("len"), extract], &[], &[("default", None)]);
    with_error(&mut b, &[assign(field("o", "tail"), expr("+", field("o", "tail"), hex(1)))]);
    let mut sw = b.switch();
    let codes = sw.program().error_names().to_vec();
    let code = |name: &str| codes.iter().find(|c| c.1 == name).map(|c| c.0 as u8).expect("code");
    // 6 * 4 bits are 3 bytes.
    assert_eq!(send(&mut sw, 0, &[6, 1, 2, 3, 4, 5, 6]), [(1, vec![1, 6, 1, 2, 3, 4, 6, 6])]);
    assert_eq!(send(&mut sw, 0, &[0, 1, 5, 6]), [(1, vec![1, 0, 1, 6, 6])]);
    // Not a whole number of bytes; too long for the frame; too long for the header.
    assert_eq!(send(&mut sw, 0, &[1, 1, 2, 3])[0].1[0], code("ParserInvalidArgument"));
    assert_eq!(send(&mut sw, 0, &[8, 1, 2, 3])[0].1[0], code("PacketTooShort"));
    assert_eq!(send(&mut sw, 0, &[18; 20])[0].1[0], code("HeaderTooShort"));
}

#[test]
fn lookahead_advance_verify() {
    let mut b = Build::new();
    b.header("e", &[("code", 8)]);
    b.metadata("m", &[("peek", 12)]);
    b.header("t", &[("v", 8)]);
    let peek = json!({"op": "set", "parameters": [field("m", "peek"), {"type": "lookahead", "value": [4, 12]}]});
    let advance = json!({"op": "advance", "parameters": [hex(16)]});
    let verify = json!({"op": "verify", "parameters": [
        expr("!=", field("m", "peek"), hex(0xbad)), hex(77)]});
    let ahead = json!({"type": "lookahead", "value": [0, 8]});
    b.state("start", &[peek, verify, advance], &[ahead], &[("0x10&0xf0", Some("more")), ("default", None)]);
    b.state("more", &[Build::extract("t")], &[], &[("default", None)]);
    with_error(&mut b, &[assign(field("t", "v"), expr(">>", field("m", "peek"), hex(4)))]);
    let mut sw = b.switch();
    // The two bytes skipped are gone from the frame: nothing emits them.
    assert_eq!(send(&mut sw, 0, &[0xa1, 0x23, 0x15, 0x66]), [(1, vec![1, 0x12, 0x66])]);
    assert_eq!(send(&mut sw, 0, &[0xa1, 0x23, 0x25, 0x66]), [(1, vec![1, 0x25, 0x66])]);
    assert_eq!(send(&mut sw, 0, &[0xfb, 0xad, 0x15])[0].1[0], 77);
    assert_eq!(send(&mut sw, 0, &[0xf0])[0].1[0], 2);
    assert_eq!(send(&mut sw, 0, &[0xf0, 0x00])[0].1[0], 2);
}

#[test]
fn unions_hold_one_header() {
    let mut b = Build::new();
    b.header("h", &[("kind", 8)]);
    b.header("a", &[("x", 8)]).header("b", &[("y", 16)]);
    b.push("header_union_types", json!({"name": "u_t", "id": 0, "headers": [["a", "a"], ["b", "b"]]}));
    b.push("header_unions", json!({"name": "u", "id": 0, "union_type": "u_t", "header_ids": [2, 3]}));
    b.state("start", &[Build::extract("h")], &[field("h", "kind")], &[("0x01", Some("pa")), ("0x02", Some("pb")), ("default", None)]);
    b.state("pa", &[Build::extract("a")], &[], &[("default", None)]);
    b.state("pb", &[Build::extract("b")], &[], &[("default", None)]);
    let union = json!({"type": "header_union", "value": "u"});
    let valid = json!({"type": "expression", "value": {"op": "valid_union", "left": null, "right": union}});
    let as_data = json!({"type": "expression", "value": {"op": "b2d", "left": null, "right": valid}});
    b.always(0, "go", &[set_port(1), assign(field("h", "kind"), wrapped(as_data)), prim("add_header", &[header("b")])], None);
    let mut sw = b.switch();
    assert_eq!(send(&mut sw, 0, &[1, 9, 8, 7]), [(1, vec![1, 0, 0, 8, 7])]);
    assert_eq!(send(&mut sw, 0, &[2, 9, 8, 7]), [(1, vec![1, 9, 8, 7])]);
    assert_eq!(send(&mut sw, 0, &[3, 9, 8, 7]), [(1, vec![0, 0, 0, 9, 8, 7])]);
}

#[test]
fn assigning_an_invalid_header_invalidates() {
    let mut b = Build::new();
    b.header("h", &[("kind", 8)]);
    b.header_type("t", json!([["v", 16, false]])).instance("x", "t", false).instance("y", "t", false);
    b.state("start", &[Build::extract("h")], &[field("h", "kind")], &[("0x01", Some("more")), ("default", None)]);
    b.state("more", &[Build::extract("x")], &[], &[("default", None)]);
    b.always(0, "go", &[set_port(1), prim("add_header", &[header("y")]), prim("assign_header", &[header("y"), header("x")])], None);
    let mut sw = b.switch();
    assert_eq!(send(&mut sw, 0, &[1, 2, 3]), [(1, vec![1, 2, 3, 2, 3])]);
    assert_eq!(send(&mut sw, 0, &[0, 2, 3]), [(1, vec![0, 2, 3])]);
}

#[test]
fn value_sets_select() {
    let mut b = Build::new();
    b.header("e", &[("code", 8)]);
    b.header("h", &[("a", 4), ("b", 12)]);
    b.push("parse_vsets", json!({"name": "vs", "id": 0, "compressed_bitwidth": 16, "max_size": 2}));
    b.state("start", &[Build::extract("h")], &[field("h", "a"), field("h", "b")], &[("default", None)]);
    b.edit(|root| {
        if let Some(list) = root["parsers"][0]["parse_states"][0]["transitions"].as_array_mut() {
            list.insert(0, json!({"type": "parse_vset", "value": "vs", "mask": null, "next_state": "hit"}));
        }
    });
    b.state("hit", &[json!({"op": "verify", "parameters": [{"type": "bool", "value": false}, hex(55)]})], &[], &[("default", None)]);
    with_error(&mut b, &[]);
    let mut sw = b.switch();
    let set = ValueSetId(0);
    let run = |sw: &mut Switch, v: u16| send(sw, 0, &v.to_be_bytes())[0].1[0];
    assert_eq!(run(&mut sw, 0x1234), 1);
    let member = |v: u64, m: u64| ValueSetMember { value: Value::from(v), mask: Value::from(m) };
    sw.set_value_set(set, vec![member(0x1234, 0xffff), member(0x4000, 0xf000)]).expect("set");
    assert_eq!([0x1234, 0x1235, 0x4abc, 0x5abc].map(|v| run(&mut sw, v)), [55, 1, 55, 1]);
    assert!(matches!(sw.set_value_set(set, vec![member(0, 0); 3]), Err(ControlError::ResourceExhausted(_))));
    assert!(matches!(sw.set_value_set(set, vec![member(1 << 16, 0)]), Err(ControlError::InvalidArgument(_))));
    assert_eq!(sw.value_set(set).expect("read").len(), 2);
}

/// A checksum over some fields and the payload, verified and updated.
fn checksummed() -> Build {
    let mut b = Build::new();
    b.header("h", &[("flag", 4), ("v", 12), ("sum", 16), ("w", 32)]);
    b.header("x", &[("z", 8)]);
    b.extracts(&["h"]);
    let input = json!([
        field("h", "flag"), field("h", "v"), field("h", "w"), field("x", "z"),
        {"type": "hexstr", "value": "0x05", "bitwidth": 8}, {"type": "payload", "value": null}]);
    b.push("calculations", json!({"name": "c", "id": 0, "algo": "csum16", "input": input}));
    let cond = expr("==", field("h", "flag"), hex(4));
    b.push(
        "checksums",
        json!({"name": "s", "id": 0, "target": ["h", "sum"], "type": "generic", "calculation": "c",
        "verify": true, "update": true, "if_cond": cond}),
    );
    b.always(0, "go", &[set_port(1), assign(field("h", "w"), expr("+", field("h", "w"), std("checksum_error")))], None);
    b
}

/// RFC 1071 word by word.
fn naive_checksum(bytes: &[u8]) -> u16 {
    let mut sum = 0_u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

proptest! {
    #[test]
    fn checksums(mut frame in prop::collection::vec(any::<u8>(), 8..60), right in any::<bool>(), on in any::<bool>()) {
        frame[0] = frame[0] & 0x0f | if on { 0x40 } else { 0x50 };
        // x is invalid and is skipped.
        let covered = |f: &[u8]| [&f[..2], &f[4..8], &[5], &f[8..]].concat();
        if right {
            let sum = naive_checksum(&covered(&frame));
            frame[2..4].copy_from_slice(&sum.to_be_bytes());
        }
        let wrong = on && frame[2..4] != naive_checksum(&covered(&frame)).to_be_bytes();
        let mut expected = frame.clone();
        if wrong {
            let w = u32::from_be_bytes([frame[4], frame[5], frame[6], frame[7]]).wrapping_add(1);
            expected[4..8].copy_from_slice(&w.to_be_bytes());
        }
        if on {
            let sum = naive_checksum(&covered(&expected));
            expected[2..4].copy_from_slice(&sum.to_be_bytes());
        }
        prop_assert_eq!(send(&mut checksummed().switch(), 0, &frame), vec![(1, expected)]);
    }

    /// What is parsed and not changed is emitted bit by bit, at any alignment and width.
    #[test]
    fn parse_and_deparse_are_inverse(widths in prop::collection::vec(1..150_u64, 1..12), seed in any::<u64>(), extra in 0..5_usize) {
        let mut b = Build::new();
        let total: u64 = widths.iter().sum();
        let mut fields: Vec<Json> = widths.iter().enumerate().map(|(i, w)| json!([format!("f{i}"), w, false])).collect();
        let pad = (8 - total % 8) % 8;
        if pad > 0 {
            fields.push(json!(["pad", pad, false]));
        }
        b.header_type("t", json!(fields)).instance("h", "t", false).instance("copy", "t", false);
        b.extracts(&["h"]);
        b.always(0, "go", &[set_port(1), prim("assign_header", &[header("copy"), header("h")])], None);
        let n = ((total + pad) / 8) as usize;
        let mut x = seed | 1;
        let frame: Vec<u8> = (0..n + extra).map(|_| { x ^= x << 13; x ^= x >> 7; x ^= x << 17; x as u8 }).collect();
        let expected = [&frame[..n], &frame[..n], &frame[n..]].concat();
        prop_assert_eq!(send(&mut b.switch(), 0, &frame), vec![(1, expected)]);
    }
}

/// Headers that the program never looks at stay bytes of the frame, also where others come, go or
/// change places in front of them.
#[test]
fn unread_headers_stay_bytes() {
    let program = |change: &[Json], order: &[&str]| {
        let mut b = Build::new();
        b.header("a", &[("v", 8)]);
        b.header("new", &[("v", 16)]);
        // One as words, one of 12 and 4 bits, one wider than 64 bits.
        b.header("x", &[("p", 12), ("q", 4), ("r", 48)]);
        b.header("y", &[("w", 72)]);
        b.extracts(&["a", "x", "y"]);
        b.action("go", &[], &[&[set_port(1)], change].concat());
        b.table(0, "t", "exact", &[], &["go"], None);
        let order: Vec<_> = order.iter().map(|h| json!(h)).collect();
        b.edit(|r| r["deparsers"][0]["order"] = json!(order));
        b.switch()
    };
    let frame: Vec<u8> = (1..=24).collect();
    let all = ["new", "a", "x", "y"];
    let out = |change: &[Json], order: &[&str]| send(&mut program(change, order), 0, &frame)[0].1.clone();
    assert_eq!(out(&[], &all), frame);
    let set = assign(field("a", "v"), hex(0x77));
    assert_eq!(out(&[set], &all), [&[0x77], &frame[1..]].concat());
    let added = [prim("add_header", &[header("new")]), assign(field("new", "v"), hex(0x1234))];
    assert_eq!(out(&added, &all), [&[0x12, 0x34], &frame[..]].concat());
    let removed = [prim("remove_header", &[header("x")])];
    assert_eq!(out(&removed, &all), [&frame[..1], &frame[9..]].concat());
    assert_eq!(out(&[], &["y", "x", "a"]), [&frame[9..18], &frame[1..9], &frame[..1], &frame[18..]].concat());
    // One header instead of another of its length or less.
    let mut short = [prim("remove_header", &[header("a")])].to_vec();
    short.extend(added);
    assert_eq!(out(&short, &all), [&[0x12, 0x34], &frame[1..]].concat());
}
