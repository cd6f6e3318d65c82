//! The control interface's rules.

mod common;

use common::table::{frame, program};
use common::*;
use fairlane_pipeline::*;
use serde_json::json;

#[test]
fn refusals_name_table_field_and_width() {
    let mut sw = program("lpm", ["exact", "lpm", "exact"]).switch();
    let t = table_id(&sw, "t");
    let good = || vec![exact(1), KeyMatch::Lpm { value: Value::from(0x1200_u64), prefix_len: 8 }, exact(3)];
    let hit = call(&sw, "hit", &[5]);
    let mut refuse = |key: Vec<KeyMatch>, priority: i32, action: TableAction| {
        sw.table_insert(0, t, entry(key, priority, action)).expect_err("accepted").to_string()
    };
    let mut key = good();
    key[0] = exact(256);
    assert_eq!(refuse(key, 0, hit.clone()), "table 't', field 'k.a': 0x100 needs 9 bits, the width is 8");
    let mut key = good();
    key[1] = KeyMatch::Lpm { value: Value::from(0x1234_u64), prefix_len: 8 };
    assert_eq!(refuse(key, 0, hit.clone()), "table 't', field 'k.b': 0x1234 has bits outside the mask 0xff00");
    let mut key = good();
    key[1] = KeyMatch::Lpm { value: Value::from(0_u64), prefix_len: 17 };
    assert_eq!(refuse(key, 0, hit.clone()), "table 't', field 'k.b': the prefix is 17 bits long, the field 16");
    let mut key = good();
    key[2] = KeyMatch::Any;
    assert_eq!(refuse(key, 0, hit.clone()), "table 't', field 'k.w' is matched as Exact, the entry has no value");
    assert_eq!(refuse(good()[..2].to_vec(), 0, hit.clone()), "table 't' has 3 key fields, the entry has 2");
    assert_eq!(refuse(good(), 4, hit.clone()), "entries of table 't' have no priority, it must be 0, not 4");
    let wrong = TableAction::Call(ActionCall { action: ActionId(0), args: vec![] });
    assert_eq!(refuse(good(), 0, wrong), "action 'hit' takes 1 arguments, found 0");
    let wide = TableAction::Call(ActionCall { action: ActionId(0), args: vec![Value::from(65536_u64)] });
    assert_eq!(refuse(good(), 0, wide), "action 'hit', parameter 'v': 0x10000 needs 17 bits, the width is 16");
    assert_eq!(refuse(good(), 0, TableAction::Member(1)), "table 't' has no action profile, its entries hold an action");
    let e = TableEntry { idle_timeout: 5, ..entry(good(), 0, hit.clone()) };
    let refused = sw.table_insert(0, t, e).expect_err("accepted");
    assert_eq!(refused, ControlError::InvalidArgument("table 't' does not support idle timeouts".into()));
    for i in 0..64 {
        let mut key = good();
        key[2] = exact(i);
        sw.table_insert(0, t, entry(key, 0, hit.clone())).expect("insert");
    }
    let mut key = good();
    key[2] = exact(99);
    let full = sw.table_insert(0, t, entry(key, 0, hit)).expect_err("accepted");
    assert_eq!(full, ControlError::ResourceExhausted("table 't' is full: it holds 64 entries".into()));
    assert!(matches!(sw.table_get(TableId(9), &[], 0), Err(ControlError::NotFound(_))));
}

#[test]
fn modify_default_and_clear() {
    let mut sw = program("exact", ["exact"; 3]).switch();
    let t = table_id(&sw, "t");
    let key = || vec![exact(1), exact(2), exact(3)];
    let (one, two) = (call(&sw, "hit", &[1]), call(&sw, "hit", &[2]));
    assert!(matches!(sw.table_modify(0, t, entry(key(), 0, one.clone())), Err(ControlError::NotFound(_))));
    sw.table_insert(5, t, entry(key(), 0, one)).expect("insert");
    sw.table_modify(9, t, entry(key(), 0, two.clone())).expect("modify");
    assert_eq!(send(&mut sw, 0, &frame([1, 2, 3]))[0].1[13], 2);
    assert_eq!(sw.table_get(t, &key(), 0).expect("get").entry.action, two);
    sw.table_set_default(t, Some(call(&sw, "hit", &[9]))).expect("default");
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
    b.push("counter_arrays", json!({"name": "dc", "id": 0, "is_direct": true, "binding": "t"}));
    b.push(
        "meter_arrays",
        json!({"name": "dm", "id": 0, "is_direct": true, "rate_count": 2, "type": "packets", "size": 64,
        "binding": "t", "result_target": ["m", "colour"]}),
    );
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
    assert_eq!(sw.program().counter(info.direct_counter.expect("counter")).expect("info").name, "dc");
    let key = || vec![exact(1), exact(2), exact(3)];
    let second = 1_000_000_000;
    let e = TableEntry { idle_timeout: 2 * second, ..entry(key(), 0, call(&sw, "hit", &[0])) };
    sw.table_insert(second, t, e.clone()).expect("insert");
    let run = |sw: &mut Switch, now| send_at(sw, now, 0, &frame([1, 2, 3]), QueueInfo::default())[0].1[13];
    assert_eq!(run(&mut sw, 2 * second), 0);
    let rates = MeterConfig { cir: 1, cburst: 1, pir: 2, pburst: 2, ..MeterConfig::default() };
    sw.direct_meter_write(2 * second, t, &key(), 0, Some(rates)).expect("meter");
    let colours: Vec<u8> = (0..3).map(|_| run(&mut sw, 2 * second)).collect();
    assert_eq!(colours, [0, 1, 2]);
    let state = sw.table_get(t, &key(), 0).expect("get");
    assert_eq!(state.counter, Some(CounterData { packets: 4, bytes: 4 * 14 }));
    assert_eq!((state.meter, state.last_hit), (Some(rates), 2 * second));
    sw.direct_counter_write(t, &key(), 0, CounterData::default()).expect("reset");
    assert_eq!(sw.table_get(t, &key(), 0).expect("get").counter, Some(CounterData::default()));
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
    b.push("counter_arrays", json!({"name": "c", "id": 0, "is_direct": false, "size": 4}));
    b.push("meter_arrays", json!({"name": "m", "id": 0, "is_direct": false, "rate_count": 2, "type": "bytes", "size": 4}));
    b.push("register_arrays", json!({"name": "r", "id": 0, "size": 4, "bitwidth": 20}));
    b.push("register_arrays", json!({"name": "wide", "id": 1, "size": 2, "bitwidth": 100}));
    let named = |ty: &str, n: &str| json!({"type": ty, "value": n});
    let i = || field("h", "i");
    b.always(
        0,
        "go",
        &[
            set_port(1),
            prim("count", &[named("counter_array", "c"), i()]),
            prim("execute_meter", &[named("meter_array", "m"), i(), field("h", "colour")]),
            prim("register_read", &[field("h", "v"), named("register_array", "r"), i()]),
            prim("register_write", &[named("register_array", "r"), i(), expr("+", field("h", "v"), hex(0xfffff))]),
            prim("register_write", &[named("register_array", "wide"), i(), expr("<<", hex(0xabc), hex(88))]),
        ],
        None,
    );
    let mut sw = b.switch();
    let p = sw.program().clone();
    let (c, m) = (p.counter_by_name("c").expect("c"), p.meter_by_name("m").expect("m"));
    let (r, wide) = (p.register_by_name("r").expect("r"), p.register_by_name("wide").expect("wide"));
    sw.register_write(r, 2, &Value::from(5_u64)).expect("write");
    sw.meter_write(0, m, 2, Some(MeterConfig { cir: 0, cburst: 8, pir: 0, pburst: 16, ..MeterConfig::default() })).expect("meter");
    let frames: Vec<_> = (0..3).map(|_| send(&mut sw, 0, &[2, 9, 0, 0, 0, 0, 0, 0])[0].1.clone()).collect();
    assert_eq!(frames[0], [2, 0, 0, 0, 0, 0, 0, 5]);
    assert_eq!(frames[1], [2, 1, 0, 0, 0, 0, 0, 4]);
    assert_eq!(frames[2], [2, 2, 0, 0, 0, 0, 0, 3]);
    assert_eq!(sw.register_read_range(r, 1, 3).expect("range"), [0_u64, 2, 0].map(Value::from));
    assert_eq!(sw.register_read(wide, 0), Ok(Value::from(0_u64)));
    assert_eq!(sw.counter_read(c, 2), Ok(CounterData { packets: 3, bytes: 24 }));
    // Out of bounds: nothing happens, and the fields stay.
    assert_eq!(send(&mut sw, 0, &[4, 9, 0, 0, 0, 0, 0, 7])[0].1, [4, 9, 0, 0, 0, 0, 0, 7]);
    assert_eq!(send(&mut sw, 0, &[1, 9, 0, 0, 0, 0, 0, 7])[0].1, [1, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(sw.register_read(wide, 1), Ok(Value::from(0xabc_u128 << 88)));
    let e = sw.register_write(r, 0, &Value::from(1_u64 << 20)).expect_err("too wide");
    assert_eq!(e.to_string(), "register 'r': 0x100000 needs 21 bits, the width is 20");
    assert!(matches!(sw.register_read(r, 4), Err(ControlError::InvalidArgument(_))));
    assert!(matches!(sw.register_read_range(r, 3, 2), Err(ControlError::InvalidArgument(_))));
    assert!(matches!(sw.counter_read(c, 4), Err(ControlError::InvalidArgument(_))));
    let swapped = MeterConfig { cir: 5, cburst: 1, pir: 4, pburst: 1, ..MeterConfig::default() };
    assert!(matches!(sw.meter_write(0, m, 0, Some(swapped)), Err(ControlError::InvalidArgument(_))));
    sw.reset().expect("memory");
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
        sw.member_insert(ap, m, action_call(&sw, "hit", &[100 + u64::from(m)])).expect("member");
    }
    let key = || vec![exact(1), exact(2), exact(3)];
    assert!(matches!(sw.table_insert(0, t, entry(key(), 0, TableAction::Group(1))), Err(ControlError::NotFound(_))));
    sw.group_insert(ap, 1, &[(2, 1), (0, 2)], 0).expect("group");
    sw.table_insert(0, t, entry(key(), 0, TableAction::Group(1))).expect("insert");
    // 0xffff modulo 3 weights (0, 0, 2) is 0.
    let run = |sw: &mut Switch, out: u16| {
        let mut f = frame([1, 2, 3]);
        f[12..].copy_from_slice(&out.to_be_bytes());
        send(sw, 0, &f).first().map(|f| f.1[13])
    };
    assert_eq!([0, 1, 2, 3].map(|h| run(&mut sw, h)), [Some(100), Some(100), Some(102), Some(100)]);
    assert!(matches!(sw.member_delete(ap, 2), Err(ControlError::FailedPrecondition(_))));
    assert!(matches!(sw.group_delete(ap, 1), Err(ControlError::FailedPrecondition(_))));
    sw.group_modify(ap, 1, &[(1, 1)]).expect("modify");
    assert_eq!(run(&mut sw, 7), Some(101));
    sw.member_delete(ap, 2).expect("no longer used");
    sw.member_modify(ap, 1, action_call(&sw, "hit", &[55])).expect("modify");
    assert_eq!(run(&mut sw, 7), Some(55));
    // An empty group does nothing: the packet keeps egress_spec 0.
    sw.group_modify(ap, 1, &[]).expect("empty");
    assert_eq!(run(&mut sw, 7), Some(7));
    let shot = vec![(action_call(&sw, "hit", &[1]), 1), (action_call(&sw, "hit", &[2]), 3)];
    sw.table_modify(0, t, entry(key(), 0, TableAction::OneShot(shot.clone()))).expect("one shot");
    assert_eq!([0, 1, 2, 3, 4].map(|h| run(&mut sw, h)), [1, 2, 2, 2, 1].map(Some));
    assert_eq!(sw.table_get(t, &key(), 0).expect("get").entry.action, TableAction::OneShot(shot));
    sw.group_delete(ap, 1).expect("no longer used");
    assert!(matches!(sw.group_insert(ap, 2, &[(1, 0)], 0), Err(ControlError::InvalidArgument(_))));
    assert!(matches!(sw.group_insert(ap, 2, &[(9, 1)], 0), Err(ControlError::NotFound(_))));
    assert!(matches!(sw.group_insert(ap, 2, &[(0, 3)], 2), Err(ControlError::ResourceExhausted(_))));
    let plain = call(&sw, "hit", &[1]);
    assert!(matches!(sw.table_insert(0, t, entry(vec![exact(9), exact(9), exact(9)], 0, plain)), Err(ControlError::InvalidArgument(_))));
    for m in 10..16 {
        sw.member_insert(ap, m, action_call(&sw, "miss", &[])).expect("member");
    }
    assert!(matches!(sw.member_insert(ap, 99, action_call(&sw, "miss", &[])), Err(ControlError::ResourceExhausted(_))));
}
