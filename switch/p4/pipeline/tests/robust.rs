//! Bad programs are refused with the place at fault; nothing panics, whatever comes.

mod common;

use common::*;
use fairlane_pipeline::*;
use proptest::prelude::*;
use serde_json::{json, Value as Json};

/// A program that uses most of the format.
fn rich() -> Build {
    let mut b = Build::new();
    b.header("eth", &[("dst", 48), ("src", 48), ("type", 16)]);
    b.header("ip", &[("a", 4), ("ihl", 4), ("ttl", 8), ("sum", 16), ("src", 32), ("dst", 128)]);
    b.header_type("opt_t", json!([["data", "*"]]));
    b.edit(|r| r["header_types"][3]["max_length"] = json!(40));
    b.instance("opt", "opt_t", false);
    b.header_type("hop_t", json!([["swid", 31, false], ["last", 1, false]])).stack("hops", "hop_t", 3);
    b.header("ua", &[("x", 8)]).header("ub", &[("y", 16)]);
    b.push("header_union_types", json!({"name": "u_t", "id": 0, "headers": [["ua", "ua"], ["ub", "ub"]]}));
    b.push("header_unions", json!({"name": "u", "id": 0, "union_type": "u_t", "header_ids": [7, 8]}));
    b.metadata("m", &[("flag", 1), ("n", 16), ("big", 72), ("colour", 2)]);
    b.push("field_lists", json!({"id": 1, "name": "fl", "elements": [field("m", "n")]}));
    b.push("learn_lists", json!({"id": 1, "name": "ll", "elements": [field("ip", "dst")]}));
    b.push("parse_vsets", json!({"name": "vs", "id": 0, "compressed_bitwidth": 16}));
    b.push("register_arrays", json!({"name": "r", "id": 0, "size": 16, "bitwidth": 48}));
    b.push("counter_arrays", json!({"name": "c", "id": 0, "is_direct": false, "size": 4}));
    b.push("counter_arrays", json!({"name": "dc", "id": 1, "is_direct": true, "binding": "route"}));
    b.push("meter_arrays", json!({"name": "me", "id": 0, "is_direct": false, "rate_count": 2, "type": "bytes", "size": 4}));
    b.push(
        "calculations",
        json!({"name": "calc", "id": 0, "algo": "csum16", "input": [
        field("ip", "a"), field("ip", "ihl"), field("ip", "ttl"), field("ip", "dst"), field("opt", "data"),
        {"type": "hexstr", "value": "0x01", "bitwidth": 4}, {"type": "payload", "value": null}]}),
    );
    b.push(
        "checksums",
        json!({"name": "s", "id": 0, "target": ["ip", "sum"], "type": "generic", "calculation": "calc",
        "verify": true, "update": true, "if_cond": expr("==", field("ip", "a"), hex(4))}),
    );
    let length = json!({"type": "expression", "value": expr("<<", expr("-", field("ip", "ihl"), hex(5)), hex(5))});
    b.state(
        "start",
        &[Build::extract("eth")],
        &[field("eth", "type")],
        &[("0x0800", Some("ip")), ("0x0900&0xff00", Some("hops")), ("default", None)],
    );
    b.state(
        "ip",
        &[
            Build::extract("ip"),
            json!({"op": "verify", "parameters": [expr(">=", field("ip", "ihl"), hex(5)), hex(2)]}),
            json!({"op": "extract_VL", "parameters": [{"type": "regular", "value": "opt"}, length]}),
        ],
        &[json!({"type": "lookahead", "value": [0, 8]})],
        &[("0x01", Some("ua")), ("0x02", Some("hops")), ("default", None)],
    );
    b.state("ua", &[json!({"op": "advance", "parameters": [hex(8)]}), Build::extract("ua")], &[], &[("default", None)]);
    b.state(
        "hops",
        &[json!({"op": "extract", "parameters": [{"type": "stack", "value": "hops"}]})],
        &[json!({"type": "stack_field", "value": ["hops", "last"]})],
        &[("0x00", Some("hops")), ("default", None)],
    );
    let param = |i: u64| json!({"type": "runtime_data", "value": i});
    let named = |ty: &str, n: &str| json!({"type": ty, "value": n});
    b.action(
        "go",
        &[("port", 9), ("mac", 48)],
        &[
            assign(std("egress_spec"), param(0)),
            assign(field("eth", "dst"), param(1)),
            assign(field("ip", "ttl"), wrapped(expr("&", expr("-", field("ip", "ttl"), hex(1)), hex(255)))),
            prim("count", &[named("counter_array", "c"), field("ip", "ihl")]),
            prim("register_read", &[field("m", "n"), named("register_array", "r"), field("ip", "ihl")]),
            prim("register_write", &[named("register_array", "r"), field("ip", "ihl"), wrapped(expr("+", field("m", "n"), hex(3)))]),
            prim("execute_meter", &[named("meter_array", "me"), field("ip", "a"), field("m", "colour")]),
            prim("push", &[named("header_stack", "hops"), hex(1)]),
            prim("add_header", &[named("header", "hops[0]")]),
        ],
    );
    b.action(
        "rest",
        &[],
        &[
            assign(field("m", "big"), wrapped(expr("*", field("ip", "dst"), field("ip", "src")))),
            assign(field("m", "n"), wrapped(expr(">>", field("m", "big"), field("ip", "ihl")))),
            prim("modify_field_with_hash_based_offset", &[field("m", "n"), hex(0), named("calculation", "calc"), hex(8)]),
            prim("modify_field_rng_uniform", &[field("ip", "src"), hex(0), field("ip", "src")]),
            prim("generate_digest", &[hex(1), hex(1)]),
            prim("clone_ingress_pkt_to_egress", &[hex(1), hex(1)]),
            assign(std("mcast_grp"), field("ip", "ihl")),
            prim(
                "log_msg",
                &[json!({"type": "string", "value": "{} {}"}), json!({"type": "parameters_vector", "value": [field("m", "big")]})],
            ),
            prim("pop", &[named("header_stack", "hops"), hex(2)]),
            prim("assign_header", &[named("header", "hops[1]"), named("header", "hops[2]")]),
            prim("add_header", &[named("header", "ub")]),
        ],
    );
    b.table(0, "route", "lpm", &[("ip", "dst", "lpm"), ("m", "flag", "exact")], &["go", "rest"], Some("acl"));
    b.table(0, "acl", "ternary", &[("eth", "src", "ternary"), ("ip", "$valid$", "exact")], &["go", "rest"], Some("span"));
    b.table(0, "span", "range", &[("ip", "ttl", "range"), ("m", "big", "ternary")], &["go", "rest"], None);
    b.edit(|r| {
        r["pipelines"][0]["tables"][0]["with_counters"] = json!(true);
        r["pipelines"][0]["init_table"] = json!("cond");
        r["pipelines"][0]["conditionals"] = json!([{"name": "cond", "id": 0, "true_next": "route", "false_next": "acl",
            "expression": expr("and", expr("<", field("ip", "ttl"), hex(9)), json!({"type": "expression", "value":
                {"op": "valid", "left": null, "right": {"type": "header", "value": "ip"}}}))}]);
    });
    b.always(
        1,
        "out",
        &[
            prim("truncate", &[std("packet_length")]),
            prim("clone_egress_pkt_to_egress", &[std("deq_qdepth"), hex(1)]),
            prim("recirculate", &[field("m", "flag")]),
            prim("remove_header", &[named("header", "hops[2]")]),
        ],
        None,
    );
    b
}

/// Drives a program with entries in all tables and frames of all kinds.
fn exercise(program: Program, frames: &[Vec<u8>]) {
    let mut sw =
        Switch::new(std::sync::Arc::new(program), SwitchConfig { max_passes: 3, log: true, ..SwitchConfig::default() }).expect("memory");
    let p = sw.program().clone();
    for (i, t) in p.tables().iter().enumerate() {
        for (n, &action) in t.actions.iter().enumerate() {
            let Some(info) = p.action(action) else {
                continue;
            };
            let args = info.params.iter().map(|_| Value::from(1_u64)).collect();
            let key = t
                .key
                .iter()
                .map(|k| match k.kind {
                    MatchKind::Exact => exact(n as u64 & 1),
                    MatchKind::Valid => KeyMatch::Valid(true),
                    MatchKind::Range => KeyMatch::Range { low: Value::from(0_u64), high: Value::ones(k.width) },
                    _ => KeyMatch::Any,
                })
                .collect();
            let e = entry(key, i32::from(t.needs_priority), TableAction::Call(ActionCall { action, args }));
            let _ = sw.table_insert(0, TableId(i as u32), e);
        }
    }
    let replicas = vec![Replica { port: 1, rid: 1 }, Replica { port: 600, rid: 2 }];
    for g in 0..6 {
        let _ = sw.multicast_insert(g, replicas.clone());
        let _ = sw.clone_insert(g.into(), CloneSession { replicas: replicas.clone(), multicast_group: None, packet_length: 9 });
    }
    let (mut iout, mut eout) = (IngressOut::default(), EgressOut::default());
    for (i, f) in frames.iter().enumerate() {
        sw.ingress(i as u64 * 1000, i as PortId, f, &mut iout);
        let mut left = 30;
        let mut work: Vec<Queued> = iout.queued.drain(..).collect();
        while let (Some(item), true) = (work.pop(), left > 0) {
            left -= 1;
            sw.egress(i as u64 * 1000 + 500, item, QueueInfo::default(), &mut eout);
            work.append(&mut eout.queued);
        }
    }
    sw.expired(u64::MAX);
    for i in 0..p.tables().len() {
        let _ = sw.table_entries(TableId(i as u32));
        let _ = sw.table_clear(TableId(i as u32));
    }
}

fn frames() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let body = prop::collection::vec(any::<u8>(), 0..120);
    prop::collection::vec(
        (body, 0..5_u8).prop_map(|(mut f, kind)| {
            // Steer some towards the deeper parser states.
            if f.len() > 15 && kind < 3 {
                let low = f[15] & 7;
                f[12..16].copy_from_slice(&[8 + kind / 2, 0, 0x40 | low, 4]);
            }
            f
        }),
        1..8,
    )
}

/// Every node of the JSON, by pointer.
fn nodes(v: &Json, at: String, out: &mut Vec<String>) {
    out.push(at.clone());
    match v {
        Json::Array(a) => a.iter().enumerate().for_each(|(i, x)| nodes(x, format!("{at}/{i}"), out)),
        Json::Object(o) => o.iter().for_each(|(k, x)| {
            nodes(x, format!("{at}/{}", k.replace('~', "~0").replace('/', "~1")), out);
        }),
        _ => {}
    }
}

/// One random change of one node.
fn mutate(root: &mut Json, which: usize, how: u8, other: usize) {
    let mut all = Vec::new();
    nodes(root, String::new(), &mut all);
    let donor = root.pointer(&all[other % all.len()]).cloned();
    let Some(node) = root.pointer_mut(&all[which % all.len()]) else {
        return;
    };
    *node = match (how % 8, &*node) {
        (0, _) => Json::Null,
        (1, Json::Number(n)) => json!(n.as_i64().unwrap_or(0).wrapping_add(1)),
        (1, Json::String(s)) => json!(format!("{s}0")),
        (2, Json::Number(_)) => json!([0, 1, -1, 65, 511, 4096, 70000, i64::MAX][other % 8]),
        (2, Json::String(_)) => json!(["0x0", "-0x1", "0xffffffffffffffffff", "", "*", "start", "zz"][other % 7]),
        (3, Json::Array(a)) if !a.is_empty() => {
            let mut a = a.clone();
            a.remove(other % a.len());
            Json::Array(a)
        }
        (4, Json::Array(a)) if !a.is_empty() => {
            let mut a = a.clone();
            a.push(a[other % a.len()].clone());
            Json::Array(a)
        }
        (5, Json::Bool(b)) => json!(!b),
        (6, Json::Object(o)) if !o.is_empty() => {
            let mut o = o.clone();
            let key = o.keys().nth(other % o.len()).cloned().unwrap_or_default();
            o.remove(&key);
            Json::Object(o)
        }
        _ => donor.unwrap_or(Json::Null),
    };
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_frames(frames in frames()) {
        let program = Program::from_json(&rich().json().to_string()).map_err(|e| TestCaseError::fail(e.to_string()))?;
        exercise(program, &frames);
    }

    #[test]
    fn mutated_programs(changes in prop::collection::vec((any::<usize>(), any::<u8>(), any::<usize>()), 1..4), frames in frames()) {
        let mut root = rich().json();
        for (which, how, other) in changes {
            mutate(&mut root, which, how, other);
        }
        if let Ok(p) = Program::from_json(&root.to_string()) {
            exercise(p, &frames);
        }
    }

    #[test]
    fn arbitrary_text(text in ".{0,200}") {
        let _ = Program::from_json(&text);
    }
}

#[test]
fn cut_text_says_where() {
    let text = serde_json::to_string_pretty(&rich().json()).expect("text");
    for cut in (0..text.len()).step_by(97) {
        let e = Program::from_json(&text[..cut]).map(|_| ()).expect_err("half a program loaded");
        let lines = text[..cut].lines().count().max(1);
        assert!(e.position.is_some_and(|(line, _)| line.abs_diff(lines) <= 1), "{e} at {lines}");
    }
    let e = Program::from_json(&text[..text.len() / 2]).map(|_| ()).expect_err("half a program loaded");
    assert!(e.to_string().contains("the JSON ends too early (the file is cut off, compile the program again)"), "{e}");
}

#[test]
fn errors_name_the_path() {
    let check = |edit: &dyn Fn(&mut Json), path: &str, message: &str| {
        let mut b = rich();
        b.edit(|r| edit(r));
        let e = b.error();
        assert_eq!((e.path.as_str(), e.message.as_str()), (path, message));
    };
    check(
        &|r| r["pipelines"][0]["tables"][1]["key"][0]["target"][1] = json!("sorc"),
        "pipelines[0].tables[1].key[0].target[1]",
        "header 'eth' has no field 'sorc'",
    );
    check(
        &|r| r["pipelines"][0]["tables"][0]["next_tables"]["go"] = json!("nowhere"),
        "pipelines[0].tables[0].next_tables.go",
        "there is no table, conditional or call 'nowhere' in this pipeline",
    );
    check(
        &|r| r["pipelines"][0]["tables"][2]["next_tables"]["go"] = json!("cond"),
        "pipelines[0]",
        "the control flow of pipeline 'ingress' has a cycle",
    );
    check(
        &|r| r["actions"][0]["primitives"][0]["op"] = json!("teleport"),
        "actions[0].primitives[0].op",
        "there is no primitive 'teleport'",
    );
    check(
        &|r| r["actions"][0]["primitives"][0]["parameters"][1]["value"] = json!(2),
        "actions[0].primitives[0].parameters[1].value",
        "there is no action parameter number 2, the action has 2",
    );
    check(
        &|r| r["parsers"][0]["parse_states"][0]["transitions"][0]["value"] = json!("0x080000"),
        "parsers[0].parse_states[0].transitions[0].value",
        "the value has 3 bytes, the transition key 2",
    );
    check(
        &|r| r["pipelines"][0]["tables"][0]["action_ids"][0] = json!(77),
        "pipelines[0].tables[0].action_ids[0]",
        "there is no action with id 77",
    );
    check(
        &|r| r["header_types"][1]["fields"][0][1] = json!(47),
        "headers[1]",
        "header 'eth' is 111 bits long, which is no whole number of bytes",
    );
    check(&|r| r["calculations"][0]["algo"] = json!("md5"), "calculations[0].algo", "there is no algorithm 'md5'");
    check(&|r| r["__meta__"]["version"] = json!([3, 0]), "__meta__.version", "BMv2 JSON of version 3.0 cannot be read, only 2.x");
    check(&|r| r["headers"][0]["name"] = json!("meta"), "field_aliases[0][1][0]", "there is no header 'standard_metadata'");
    check(
        &|r| r["actions"][1]["primitives"][9]["parameters"][0]["value"] = json!("eth"),
        "actions[1].primitives[9]",
        "the two sides are of different types",
    );
}
