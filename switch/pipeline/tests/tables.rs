//! Tables against a list searched from end to end, and the control interface's rules.

mod common;

use common::*;
use fairlane_pipeline::*;
use proptest::prelude::*;
use serde_json::json;

/// A table over `k.a:8, k.b:16, k.w:72` with the given match types; the action writes its
/// argument to `k.out`.
fn program(match_type: &str, kinds: [&str; 3]) -> Build {
    let mut b = Build::new();
    b.header("k", &[("a", 8), ("b", 16), ("w", 72), ("out", 16)]);
    b.extracts(&["k"]);
    b.action(
        "hit",
        &[("v", 16)],
        &[
            set_port(1),
            assign(
                field("k", "out"),
                json!({"type": "runtime_data", "value": 0}),
            ),
        ],
    );
    b.action("miss", &[], &[set_port(2)]);
    let key = [
        ("k", "a", kinds[0]),
        ("k", "b", kinds[1]),
        ("k", "w", kinds[2]),
    ];
    b.table(0, "t", match_type, &key, &["hit", "miss"], "miss", None);
    b
}

const WIDTHS: [u32; 3] = [8, 16, 72];

fn mask(width: u32) -> u128 {
    (1 << width) - 1
}

/// One field of a match as the naive table sees it.
#[derive(Debug, Clone, PartialEq)]
enum Want {
    Masked(u128, u128),
    Range(u128, u128),
}

impl Want {
    fn holds(&self, v: u128) -> bool {
        match *self {
            Want::Masked(value, mask) => v & mask == value,
            Want::Range(lo, hi) => lo <= v && v <= hi,
        }
    }
}

fn prefix(width: u32, len: u32) -> u128 {
    mask(width) & !(mask(width - len.min(width)))
}

/// Few distinct values, so that entries overlap and packets hit.
fn value(width: u32) -> BoxedStrategy<u128> {
    prop_oneof![(0..3_u128), (0..3_u128).prop_map(move |v| v << (width - 2))].boxed()
}

fn one(kind: &'static str, width: u32) -> BoxedStrategy<(KeyMatch, Want)> {
    let v = value(width);
    let full = mask(width);
    match kind {
        "exact" => v
            .prop_map(move |v| (KeyMatch::Exact(Value::from(v)), Want::Masked(v, full)))
            .boxed(),
        "lpm" => (v, 0..=width)
            .prop_map(move |(v, len)| {
                let m = prefix(width, len);
                (
                    KeyMatch::Lpm {
                        value: Value::from(v & m),
                        prefix_len: len,
                    },
                    Want::Masked(v & m, m),
                )
            })
            .boxed(),
        "ternary" => (
            v,
            prop::sample::select(vec![0, 1, 3, full, full << 1 & full, prefix(width, 2)]),
        )
            .prop_map(move |(v, m)| {
                (
                    KeyMatch::Ternary {
                        value: Value::from(v & m),
                        mask: Value::from(m),
                    },
                    Want::Masked(v & m, m),
                )
            })
            .boxed(),
        _ => (value(width), value(width))
            .prop_map(|(a, b)| {
                let (lo, hi) = (a.min(b), a.max(b));
                (
                    KeyMatch::Range {
                        low: Value::from(lo),
                        high: Value::from(hi),
                    },
                    Want::Range(lo, hi),
                )
            })
            .boxed(),
    }
}

type Entry = (Vec<KeyMatch>, Vec<Want>, i32);

fn entry_of(kinds: [&'static str; 3], ordered: bool) -> impl Strategy<Value = Entry> {
    let priority = if ordered { 1..4 } else { 0..1 };
    (
        one(kinds[0], 8),
        one(kinds[1], 16),
        one(kinds[2], 72),
        priority,
    )
        .prop_map(|(a, b, c, p)| (vec![a.0, b.0, c.0], vec![a.1, b.1, c.1], p))
}

fn frame(v: [u128; 3]) -> Vec<u8> {
    let mut f = vec![v[0] as u8];
    f.extend_from_slice(&(v[1] as u16).to_be_bytes());
    f.extend_from_slice(&v[2].to_be_bytes()[7..]);
    f.extend_from_slice(&[0xff, 0xff]);
    f
}

/// Runs random inserts, deletes and packets against both.
fn check(
    match_type: &str,
    kinds: [&'static str; 3],
    ops: Vec<(bool, Entry)>,
    packets: Vec<[u128; 3]>,
) -> Result<(), TestCaseError> {
    let ordered = matches!(match_type, "ternary" | "range");
    let mut sw = program(match_type, kinds).switch();
    let t = table_id(&sw, "t");
    let mut list: Vec<(Entry, u16)> = Vec::new();
    for (i, (insert, e)) in ops.into_iter().enumerate() {
        let known = list.iter().position(|(o, _)| o.1 == e.1 && o.2 == e.2);
        if insert {
            let r = sw.table_insert(0, t, entry(e.0.clone(), e.2, call(&sw, "hit", &[i as u64])));
            match known {
                Some(_) => {
                    prop_assert!(matches!(r, Err(ControlError::AlreadyExists(_))), "{:?}", r)
                }
                None => {
                    prop_assert_eq!(r, Ok(()));
                    list.push((e, i as u16));
                }
            }
        } else {
            let r = sw.table_delete(t, &e.0, e.2);
            match known {
                Some(k) => {
                    prop_assert_eq!(r, Ok(()));
                    list.remove(k);
                }
                None => prop_assert!(matches!(r, Err(ControlError::NotFound(_))), "{:?}", r),
            }
        }
        prop_assert_eq!(sw.table_len(t), Ok(list.len()));
    }
    let read: Vec<_> = sw
        .table_entries(t)
        .expect("entries")
        .into_iter()
        .map(|s| s.entry.key)
        .collect();
    prop_assert_eq!(
        read,
        list.iter().map(|(e, _)| e.0.clone()).collect::<Vec<_>>()
    );
    for v in packets {
        let v = [v[0] & mask(8), v[1] & mask(16), v[2] & mask(72)];
        let hits: Vec<_> = list
            .iter()
            .filter(|(e, _)| e.1.iter().zip(v).all(|(w, v)| w.holds(v)))
            .collect();
        // The longest prefix or the highest priority; of equals any.
        let rank = |e: &Entry| match (match_type, &e.0[..]) {
            ("lpm", keys) => keys
                .iter()
                .map(|k| {
                    if let KeyMatch::Lpm { prefix_len, .. } = k {
                        *prefix_len as i32
                    } else {
                        0
                    }
                })
                .max()
                .unwrap_or(0),
            _ => e.2,
        };
        let best = hits.iter().map(|(e, _)| rank(e)).max();
        let allowed: Vec<u16> = hits
            .iter()
            .filter(|(e, _)| Some(rank(e)) == best)
            .map(|(_, id)| *id)
            .collect();
        let out = send(&mut sw, 0, &frame(v));
        let got = u16::from_be_bytes([out[0].1[12], out[0].1[13]]);
        if ordered {
            prop_assert!(
                if best.is_some() {
                    allowed.contains(&got)
                } else {
                    out[0].0 == 2
                },
                "{} not in {:?}",
                got,
                allowed
            );
        } else {
            prop_assert_eq!(allowed.first().copied(), (out[0].0 == 1).then_some(got));
        }
    }
    Ok(())
}

fn packets() -> impl Strategy<Value = Vec<[u128; 3]>> {
    prop::collection::vec(
        (value(8), value(16), value(72)).prop_map(|(a, b, c)| [a, b, c]),
        1..30,
    )
}

macro_rules! agrees {
    ($($name:ident $match_type:literal $kinds:expr;)*) => {
        proptest! {
            #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]
            $(#[test]
            fn $name(
                ops in prop::collection::vec((prop::bool::weighted(0.75), entry_of($kinds, matches!($match_type, "ternary" | "range"))), 1..40),
                packets in packets(),
            ) {
                check($match_type, $kinds, ops, packets)?;
            })*
        }
    };
}

agrees! {
    exact_agrees "exact" ["exact", "exact", "exact"];
    lpm_agrees "lpm" ["exact", "lpm", "exact"];
    wide_lpm_agrees "lpm" ["exact", "exact", "lpm"];
    ternary_agrees "ternary" ["ternary", "exact", "ternary"];
    ternary_with_lpm_agrees "ternary" ["ternary", "lpm", "ternary"];
    range_agrees "range" ["exact", "range", "range"];
    range_with_ternary_agrees "range" ["range", "ternary", "exact"];
}

#[test]
fn fields_of_invalid_headers_match_as_zero() {
    let mut b = Build::new();
    b.header("k", &[("a", 8)]).header("x", &[("v", 8)]);
    b.state(
        "start",
        &[Build::extract("k")],
        &[field("k", "a")],
        &[("0x01", Some("more")), ("default", None)],
    );
    b.state("more", &[Build::extract("x")], &[], &[("default", None)]);
    b.action("one", &[], &[set_port(1)])
        .action("two", &[], &[set_port(2)]);
    b.always(
        0,
        "pre",
        &[prim(
            "remove_header",
            &[json!({"type": "header", "value": "x"})],
        )],
        Some("t"),
    );
    b.table(
        0,
        "t",
        "exact",
        &[("x", "v", "exact"), ("x", "$valid$", "exact")],
        &["one", "two"],
        "two",
        None,
    );
    let mut sw = b.switch();
    let t = table_id(&sw, "t");
    sw.table_insert(
        0,
        t,
        entry(vec![exact(0), exact(0)], 0, call(&sw, "one", &[])),
    )
    .expect("insert");
    assert_eq!(send(&mut sw, 0, &[1, 5])[0].0, 1);
    assert_eq!(send(&mut sw, 0, &[2, 5])[0].0, 1);
}

#[test]
fn const_entries_and_defaults() {
    let mut b = program("ternary", ["ternary", "ternary", "ternary"]);
    let any = json!({"match_type": "ternary", "key": "0x00", "mask": "0x00"});
    let wide =
        json!({"match_type": "ternary", "key": "0x0000000000000000", "mask": "0x0000000000000000"});
    let one = json!({"match_type": "ternary", "key": "0x01", "mask": "0xff"});
    let make = |a: &serde_json::Value, p: u64, v: &str| {
        json!({"match_key": [a, {"match_type": "ternary", "key": "0x0000", "mask": "0x0000"}, wide], "priority": p,
               "action_entry": {"action_id": 0, "action_data": [v]}})
    };
    let entries = json!([make(&any, 2, "0x07"), make(&one, 1, "0x08")]);
    b.edit(|r| {
        r["pipelines"][0]["tables"][0]["entries"] = entries.clone();
        r["pipelines"][0]["tables"][0]["default_entry"]["action_const"] = json!(true);
    });
    let mut sw = b.switch();
    let t = table_id(&sw, "t");
    let out = |sw: &mut Switch, a| send(sw, 0, &frame([a, 0, 0]))[0].1[13];
    // The smaller number in the JSON is the higher priority.
    assert_eq!((out(&mut sw, 1), out(&mut sw, 2)), (8, 7));
    let states = sw.table_entries(t).expect("entries");
    assert!(states[1].entry.priority > states[0].entry.priority && states[0].is_const);
    let e = states[0].entry.clone();
    assert!(matches!(
        sw.table_insert(0, t, e.clone()),
        Err(ControlError::PermissionDenied(_))
    ));
    assert!(matches!(
        sw.table_delete(t, &e.key, e.priority),
        Err(ControlError::PermissionDenied(_))
    ));
    let hit = call(&sw, "hit", &[1]);
    assert!(matches!(
        sw.table_set_default(t, Some(hit)),
        Err(ControlError::PermissionDenied(_))
    ));
    sw.table_clear(t).expect("clear");
    assert_eq!(sw.table_len(t), Ok(2));

    b.edit(|r| {
        r["pipelines"][0]["tables"][0]["entries"] =
            json!([make(&any, 2, "0x07"), make(&any, 2, "0x08")])
    });
    let e = b.error();
    assert_eq!(e.path, "pipelines[0].tables[0].entries[1]");
    assert!(e.message.contains("matches the same as entry 0"), "{e}");
}

#[test]
fn refusals_name_table_field_and_width() {
    let mut sw = program("lpm", ["exact", "lpm", "exact"]).switch();
    let t = table_id(&sw, "t");
    let good = || {
        vec![
            exact(1),
            KeyMatch::Lpm {
                value: Value::from(0x1200_u64),
                prefix_len: 8,
            },
            exact(3),
        ]
    };
    let hit = call(&sw, "hit", &[5]);
    let mut refuse = |key: Vec<KeyMatch>, priority: i32, action: TableAction| {
        sw.table_insert(0, t, entry(key, priority, action))
            .expect_err("accepted")
            .to_string()
    };
    let mut key = good();
    key[0] = exact(256);
    assert_eq!(
        refuse(key, 0, hit.clone()),
        "table 't', field 'k.a': 0x100 needs 9 bits, the width is 8"
    );
    let mut key = good();
    key[1] = KeyMatch::Lpm {
        value: Value::from(0x1234_u64),
        prefix_len: 8,
    };
    assert_eq!(
        refuse(key, 0, hit.clone()),
        "table 't', field 'k.b': 0x1234 has bits outside the mask 0xff00"
    );
    let mut key = good();
    key[1] = KeyMatch::Lpm {
        value: Value::from(0_u64),
        prefix_len: 17,
    };
    assert_eq!(
        refuse(key, 0, hit.clone()),
        "table 't', field 'k.b': the prefix is 17 bits long, the field 16"
    );
    let mut key = good();
    key[2] = KeyMatch::Any;
    assert_eq!(
        refuse(key, 0, hit.clone()),
        "table 't', field 'k.w' is matched as Exact, the entry has no value"
    );
    assert_eq!(
        refuse(good()[..2].to_vec(), 0, hit.clone()),
        "table 't' has 3 key fields, the entry has 2"
    );
    assert_eq!(
        refuse(good(), 4, hit.clone()),
        "entries of table 't' have no priority, it must be 0, not 4"
    );
    let wrong = TableAction::Call(ActionCall {
        action: ActionId(0),
        args: vec![],
    });
    assert_eq!(
        refuse(good(), 0, wrong),
        "action 'hit' takes 1 arguments, found 0"
    );
    let wide = TableAction::Call(ActionCall {
        action: ActionId(0),
        args: vec![Value::from(65536_u64)],
    });
    assert_eq!(
        refuse(good(), 0, wide),
        "action 'hit', parameter 'v': 0x10000 needs 17 bits, the width is 16"
    );
    assert_eq!(
        refuse(good(), 0, TableAction::Member(1)),
        "table 't' has no action profile, its entries hold an action"
    );
    let e = TableEntry {
        idle_timeout: 5,
        ..entry(good(), 0, hit.clone())
    };
    let refused = sw.table_insert(0, t, e).expect_err("accepted");
    assert_eq!(
        refused,
        ControlError::InvalidArgument("table 't' does not support idle timeouts".into())
    );
    for i in 0..64 {
        let mut key = good();
        key[2] = exact(i);
        sw.table_insert(0, t, entry(key, 0, hit.clone()))
            .expect("insert");
    }
    let mut key = good();
    key[2] = exact(99);
    let full = sw
        .table_insert(0, t, entry(key, 0, hit))
        .expect_err("accepted");
    assert_eq!(
        full,
        ControlError::ResourceExhausted("table 't' is full: it holds 64 entries".into())
    );
    assert!(matches!(
        sw.table_get(TableId(9), &[], 0),
        Err(ControlError::NotFound(_))
    ));
}

#[test]
fn modify_default_and_clear() {
    let mut sw = program("exact", ["exact"; 3]).switch();
    let t = table_id(&sw, "t");
    let key = || vec![exact(1), exact(2), exact(3)];
    let (one, two) = (call(&sw, "hit", &[1]), call(&sw, "hit", &[2]));
    assert!(matches!(
        sw.table_modify(0, t, entry(key(), 0, one.clone())),
        Err(ControlError::NotFound(_))
    ));
    sw.table_insert(5, t, entry(key(), 0, one)).expect("insert");
    sw.table_modify(9, t, entry(key(), 0, two.clone()))
        .expect("modify");
    assert_eq!(send(&mut sw, 0, &frame([1, 2, 3]))[0].1[13], 2);
    assert_eq!(sw.table_get(t, &key(), 0).expect("get").entry.action, two);
    sw.table_set_default(t, Some(call(&sw, "hit", &[9])))
        .expect("default");
    assert_eq!(send(&mut sw, 0, &frame([0, 0, 0]))[0].1[13], 9);
    sw.table_set_default(t, None).expect("default");
    assert_eq!(sw.table_default(t), Ok(Some(call(&sw, "miss", &[]))));
    sw.table_clear(t).expect("clear");
    assert_eq!(send(&mut sw, 0, &frame([1, 2, 3]))[0].0, 2);
}

#[test]
fn direct_counters_meters_and_timeouts() {
    let mut b = program("exact", ["exact"; 3]);
    b.metadata("m", &[("colour", 8)]);
    b.push(
        "counter_arrays",
        json!({"name": "dc", "id": 0, "is_direct": true, "binding": "t"}),
    );
    b.push("meter_arrays", json!({"name": "dm", "id": 0, "is_direct": true, "rate_count": 2, "type": "packets", "size": 64,
        "binding": "t", "result_target": ["m", "colour"]}));
    b.edit(|r| {
        let t = &mut r["pipelines"][0]["tables"][0];
        t["with_counters"] = json!(true);
        t["support_timeout"] = json!(true);
        t["direct_meters"] = json!("dm");
        r["actions"][0]["primitives"][1] = assign(field("k", "out"), field("m", "colour"));
    });
    let mut sw = b.switch();
    let t = table_id(&sw, "t");
    let info = sw.program().table(t).expect("info").clone();
    assert_eq!(
        sw.program()
            .counter(info.direct_counter.expect("counter"))
            .expect("info")
            .name,
        "dc"
    );
    let key = || vec![exact(1), exact(2), exact(3)];
    let second = 1_000_000_000;
    let e = TableEntry {
        idle_timeout: 2 * second,
        ..entry(key(), 0, call(&sw, "hit", &[0]))
    };
    sw.table_insert(second, t, e.clone()).expect("insert");
    let run = |sw: &mut Switch, now| {
        send_at(sw, now, 0, &frame([1, 2, 3]), QueueInfo::default())[0].1[13]
    };
    assert_eq!(run(&mut sw, 2 * second), 0);
    let rates = MeterConfig {
        cir: 1,
        cburst: 1,
        pir: 2,
        pburst: 2,
    };
    sw.direct_meter_write(2 * second, t, &key(), 0, Some(rates))
        .expect("meter");
    let colours: Vec<u8> = (0..3).map(|_| run(&mut sw, 2 * second)).collect();
    assert_eq!(colours, [0, 1, 2]);
    let state = sw.table_get(t, &key(), 0).expect("get");
    assert_eq!(
        state.counter,
        Some(CounterData {
            packets: 4,
            bytes: 4 * 14
        })
    );
    assert_eq!((state.meter, state.last_hit), (Some(rates), 2 * second));
    sw.direct_counter_write(t, &key(), 0, CounterData::default())
        .expect("reset");
    assert_eq!(
        sw.table_get(t, &key(), 0).expect("get").counter,
        Some(CounterData::default())
    );
    assert!(sw.expired(4 * second - 1).is_empty());
    assert_eq!(sw.expired(4 * second), [(t, e.clone())]);
    assert!(sw.expired(6 * second - 1).is_empty());
    assert_eq!(sw.expired(6 * second).len(), 1);
    run(&mut sw, 7 * second);
    assert!(sw.expired(8 * second).is_empty());
}

#[test]
fn counters_meters_registers() {
    let mut b = Build::new();
    b.header("h", &[("i", 8), ("colour", 8), ("v", 48)]);
    b.extracts(&["h"]);
    b.push(
        "counter_arrays",
        json!({"name": "c", "id": 0, "is_direct": false, "size": 4}),
    );
    b.push("meter_arrays", json!({"name": "m", "id": 0, "is_direct": false, "rate_count": 2, "type": "bytes", "size": 4}));
    b.push(
        "register_arrays",
        json!({"name": "r", "id": 0, "size": 4, "bitwidth": 20}),
    );
    b.push(
        "register_arrays",
        json!({"name": "wide", "id": 1, "size": 2, "bitwidth": 100}),
    );
    let named = |ty: &str, n: &str| json!({"type": ty, "value": n});
    let i = || field("h", "i");
    b.always(
        0,
        "go",
        &[
            set_port(1),
            prim("count", &[named("counter_array", "c"), i()]),
            prim(
                "execute_meter",
                &[named("meter_array", "m"), i(), field("h", "colour")],
            ),
            prim(
                "register_read",
                &[field("h", "v"), named("register_array", "r"), i()],
            ),
            prim(
                "register_write",
                &[
                    named("register_array", "r"),
                    i(),
                    expr("+", field("h", "v"), hex(0xfffff)),
                ],
            ),
            prim(
                "register_write",
                &[
                    named("register_array", "wide"),
                    i(),
                    expr("<<", hex(0xabc), hex(88)),
                ],
            ),
        ],
        None,
    );
    let mut sw = b.switch();
    let p = sw.program().clone();
    let (c, m) = (
        p.counter_by_name("c").expect("c"),
        p.meter_by_name("m").expect("m"),
    );
    let (r, wide) = (
        p.register_by_name("r").expect("r"),
        p.register_by_name("wide").expect("wide"),
    );
    sw.register_write(r, 2, &Value::from(5_u64)).expect("write");
    sw.meter_write(
        0,
        m,
        2,
        Some(MeterConfig {
            cir: 0,
            cburst: 8,
            pir: 0,
            pburst: 16,
        }),
    )
    .expect("meter");
    let frames: Vec<_> = (0..3)
        .map(|_| send(&mut sw, 0, &[2, 9, 0, 0, 0, 0, 0, 0])[0].1.clone())
        .collect();
    assert_eq!(frames[0], [2, 0, 0, 0, 0, 0, 0, 5]);
    assert_eq!(frames[1], [2, 1, 0, 0, 0, 0, 0, 4]);
    assert_eq!(frames[2], [2, 2, 0, 0, 0, 0, 0, 3]);
    assert_eq!(
        sw.register_read_range(r, 1, 3).expect("range"),
        [0_u64, 2, 0].map(Value::from)
    );
    assert_eq!(sw.register_read(wide, 0), Ok(Value::from(0_u64)));
    assert_eq!(
        sw.counter_read(c, 2),
        Ok(CounterData {
            packets: 3,
            bytes: 24
        })
    );
    // Out of bounds: nothing happens, and the fields stay.
    assert_eq!(
        send(&mut sw, 0, &[4, 9, 0, 0, 0, 0, 0, 7])[0].1,
        [4, 9, 0, 0, 0, 0, 0, 7]
    );
    assert_eq!(
        send(&mut sw, 0, &[1, 9, 0, 0, 0, 0, 0, 7])[0].1,
        [1, 0, 0, 0, 0, 0, 0, 0]
    );
    assert_eq!(sw.register_read(wide, 1), Ok(Value::from(0xabc_u128 << 88)));
    let e = sw
        .register_write(r, 0, &Value::from(1_u64 << 20))
        .expect_err("too wide");
    assert_eq!(
        e.to_string(),
        "register 'r': 0x100000 needs 21 bits, the width is 20"
    );
    assert!(matches!(
        sw.register_read(r, 4),
        Err(ControlError::InvalidArgument(_))
    ));
    assert!(matches!(
        sw.register_read_range(r, 3, 2),
        Err(ControlError::InvalidArgument(_))
    ));
    assert!(matches!(
        sw.counter_read(c, 4),
        Err(ControlError::InvalidArgument(_))
    ));
    let swapped = MeterConfig {
        cir: 5,
        cburst: 1,
        pir: 4,
        pburst: 1,
    };
    assert!(matches!(
        sw.meter_write(0, m, 0, Some(swapped)),
        Err(ControlError::InvalidArgument(_))
    ));
    sw.reset();
    assert_eq!(sw.counter_read(c, 2), Ok(CounterData::default()));
    assert_eq!(sw.meter_read(m, 2), Ok(None));
}

/// A table whose entries point into an action profile with a selector over `k.a`.
fn selector(algo: &str) -> Build {
    let mut b = program("exact", ["exact"; 3]);
    b.edit(|r| {
        let p = &mut r["pipelines"][0];
        p["action_profiles"] = json!([{"name": "ap", "id": 0, "max_size": 8,
            "selector": {"algo": algo, "input": [field("k", "out")]}}]);
        let t = &mut p["tables"][0];
        t["type"] = json!("indirect_ws");
        t["action_profile"] = json!("ap");
        if let Some(t) = t.as_object_mut() {
            t.remove("default_entry");
        }
    });
    b
}

#[test]
fn groups_choose_by_hash_and_weight() {
    let mut sw = selector("identity").switch();
    let (t, ap) = (table_id(&sw, "t"), ProfileId(0));
    for m in 0..3 {
        sw.member_insert(ap, m, action_call(&sw, "hit", &[100 + u64::from(m)]))
            .expect("member");
    }
    let key = || vec![exact(1), exact(2), exact(3)];
    assert!(matches!(
        sw.table_insert(0, t, entry(key(), 0, TableAction::Group(1))),
        Err(ControlError::NotFound(_))
    ));
    sw.group_insert(ap, 1, &[(2, 1), (0, 2)], 0).expect("group");
    sw.table_insert(0, t, entry(key(), 0, TableAction::Group(1)))
        .expect("insert");
    // 0xffff modulo 3 weights (0, 0, 2) is 0.
    let run = |sw: &mut Switch, out: u16| {
        let mut f = frame([1, 2, 3]);
        f[12..].copy_from_slice(&out.to_be_bytes());
        send(sw, 0, &f).first().map(|f| f.1[13])
    };
    assert_eq!(
        [0, 1, 2, 3].map(|h| run(&mut sw, h)),
        [Some(100), Some(100), Some(102), Some(100)]
    );
    assert!(matches!(
        sw.member_delete(ap, 2),
        Err(ControlError::FailedPrecondition(_))
    ));
    assert!(matches!(
        sw.group_delete(ap, 1),
        Err(ControlError::FailedPrecondition(_))
    ));
    sw.group_modify(ap, 1, &[(1, 1)]).expect("modify");
    assert_eq!(run(&mut sw, 7), Some(101));
    sw.member_delete(ap, 2).expect("no longer used");
    sw.member_modify(ap, 1, action_call(&sw, "hit", &[55]))
        .expect("modify");
    assert_eq!(run(&mut sw, 7), Some(55));
    // An empty group does nothing: the packet keeps egress_spec 0.
    sw.group_modify(ap, 1, &[]).expect("empty");
    assert_eq!(run(&mut sw, 7), Some(7));
    let shot = vec![
        (action_call(&sw, "hit", &[1]), 1),
        (action_call(&sw, "hit", &[2]), 3),
    ];
    sw.table_modify(0, t, entry(key(), 0, TableAction::OneShot(shot.clone())))
        .expect("one shot");
    assert_eq!(
        [0, 1, 2, 3, 4].map(|h| run(&mut sw, h)),
        [1, 2, 2, 2, 1].map(Some)
    );
    assert_eq!(
        sw.table_get(t, &key(), 0).expect("get").entry.action,
        TableAction::OneShot(shot)
    );
    sw.group_delete(ap, 1).expect("no longer used");
    assert!(matches!(
        sw.group_insert(ap, 2, &[(1, 0)], 0),
        Err(ControlError::InvalidArgument(_))
    ));
    assert!(matches!(
        sw.group_insert(ap, 2, &[(9, 1)], 0),
        Err(ControlError::NotFound(_))
    ));
    assert!(matches!(
        sw.group_insert(ap, 2, &[(0, 3)], 2),
        Err(ControlError::ResourceExhausted(_))
    ));
    let plain = call(&sw, "hit", &[1]);
    assert!(matches!(
        sw.table_insert(0, t, entry(vec![exact(9), exact(9), exact(9)], 0, plain)),
        Err(ControlError::InvalidArgument(_))
    ));
    for m in 10..16 {
        sw.member_insert(ap, m, action_call(&sw, "miss", &[]))
            .expect("member");
    }
    assert!(matches!(
        sw.member_insert(ap, 99, action_call(&sw, "miss", &[])),
        Err(ControlError::ResourceExhausted(_))
    ));
}

/// `WIDTHS` says what `program` builds.
#[test]
fn key_info() {
    let p = program("exact", ["exact"; 3]).load();
    assert_eq!(
        p.tables()[0]
            .key
            .iter()
            .map(|k| k.width)
            .collect::<Vec<_>>(),
        WIDTHS
    );
}
