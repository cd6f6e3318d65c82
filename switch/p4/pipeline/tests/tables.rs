//! Tables against a list searched from end to end.

mod common;

use common::table::{frame, program};
use common::*;
use fairlane_pipeline::*;
use proptest::prelude::*;
use serde_json::json;

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
        "exact" => v.prop_map(move |v| (KeyMatch::Exact(Value::from(v)), Want::Masked(v, full))).boxed(),
        "lpm" => (v, 0..=width)
            .prop_map(move |(v, len)| {
                let m = prefix(width, len);
                (KeyMatch::Lpm { value: Value::from(v & m), prefix_len: len }, Want::Masked(v & m, m))
            })
            .boxed(),
        "ternary" => (v, prop::sample::select(vec![0, 1, 3, full, full << 1 & full, prefix(width, 2)]))
            .prop_map(move |(v, m)| (KeyMatch::Ternary { value: Value::from(v & m), mask: Value::from(m) }, Want::Masked(v & m, m)))
            .boxed(),
        "optional" => (v, any::<bool>())
            .prop_map(move |(v, given)| match given {
                true => (KeyMatch::Exact(Value::from(v)), Want::Masked(v, full)),
                false => (KeyMatch::Any, Want::Masked(0, 0)),
            })
            .boxed(),
        _ => (value(width), value(width))
            .prop_map(|(a, b)| {
                let (lo, hi) = (a.min(b), a.max(b));
                (KeyMatch::Range { low: Value::from(lo), high: Value::from(hi) }, Want::Range(lo, hi))
            })
            .boxed(),
    }
}

type Entry = (Vec<KeyMatch>, Vec<Want>, i32);

fn entry_of(kinds: [&'static str; 3], ordered: bool) -> impl Strategy<Value = Entry> {
    let priority = if ordered { 1..4 } else { 0..1 };
    (one(kinds[0], 8), one(kinds[1], 16), one(kinds[2], 72), priority)
        .prop_map(|(a, b, c, p)| (vec![a.0, b.0, c.0], vec![a.1, b.1, c.1], p))
}

/// Runs random inserts, deletes and packets against both.
fn check(match_type: &str, kinds: [&'static str; 3], ops: Vec<(bool, Entry)>, packets: Vec<[u128; 3]>) -> Result<(), TestCaseError> {
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
                    prop_assert!(matches!(r, Err(ControlError::AlreadyExists(_))), "{:?}", r);
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
    let read: Vec<_> = sw.table_entries(t).expect("entries").into_iter().map(|s| s.entry.key).collect();
    prop_assert_eq!(read, list.iter().map(|(e, _)| e.0.clone()).collect::<Vec<_>>());
    for v in packets {
        let v = [v[0] & mask(8), v[1] & mask(16), v[2] & mask(72)];
        let hits: Vec<_> = list.iter().filter(|(e, _)| e.1.iter().zip(v).all(|(w, v)| w.holds(v))).collect();
        // The longest prefix or the highest priority; of equals any.
        let rank = |e: &Entry| match (match_type, &e.0[..]) {
            ("lpm", keys) => {
                keys.iter().map(|k| if let KeyMatch::Lpm { prefix_len, .. } = k { *prefix_len as i32 } else { 0 }).max().unwrap_or(0)
            }
            _ => e.2,
        };
        let best = hits.iter().map(|(e, _)| rank(e)).max();
        let allowed: Vec<u16> = hits.iter().filter(|(e, _)| Some(rank(e)) == best).map(|(_, id)| *id).collect();
        let out = send(&mut sw, 0, &frame(v));
        let got = u16::from_be_bytes([out[0].1[12], out[0].1[13]]);
        if ordered {
            prop_assert!(if best.is_some() { allowed.contains(&got) } else { out[0].0 == 2 }, "{} not in {:?}", got, allowed);
        } else {
            prop_assert_eq!(allowed.first().copied(), (out[0].0 == 1).then_some(got));
        }
    }
    Ok(())
}

fn packets() -> impl Strategy<Value = Vec<[u128; 3]>> {
    prop::collection::vec((value(8), value(16), value(72)).prop_map(|(a, b, c)| [a, b, c]), 1..30)
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
    optional_agrees "ternary" ["optional", "optional", "optional"];
    optional_with_ternary_and_exact_agrees "ternary" ["exact", "ternary", "optional"];
    ternary_with_lpm_agrees "ternary" ["ternary", "lpm", "ternary"];
    range_agrees "range" ["exact", "range", "range"];
    short_lpm_agrees "lpm" ["lpm", "exact", "exact"];
    three_ranges_agree "range" ["range", "range", "range"];
    range_with_lpm_and_optional_agrees "range" ["range", "lpm", "optional"];
    range_with_ternary_agrees "range" ["range", "ternary", "exact"];
}

proptest! {
    /// Short exact keys, which are looked up in an array, against a map.
    #[test]
    fn short_exact_keys_agree(
        changes in prop::collection::vec((any::<bool>(), 0..8_u64, 0..8_u64), 1..60),
    ) {
        let mut b = Build::new();
        b.header("k", &[("a", 3), ("b", 9), ("rest", 4)]).extracts(&["k"]);
        let to_port = assign(std("egress_spec"), json!({"type": "runtime_data", "value": 0}));
        b.action("to", &[("port", 9)], &[to_port]);
        b.action("miss", &[], &[set_port(400)]);
        let key = [("k", "a", "exact"), ("k", "b", "exact")];
        b.table(0, "t", "exact", &key, &["to", "miss"], None);
        let mut sw = b.switch();
        let t = table_id(&sw, "t");
        let mut map = std::collections::BTreeMap::new();
        for (i, (insert, x, y)) in changes.into_iter().enumerate() {
            let key = vec![exact(x), exact(y * 73)];
            let port = i as u64;
            if insert {
                let done = sw.table_insert(0, t, entry(key, 0, call(&sw, "to", &[port])));
                prop_assert_eq!(done.is_ok(), map.insert((x, y), port).is_none());
                // An entry that was there stays as it is.
                if done.is_err() {
                    let entry = entry(vec![exact(x), exact(y * 73)], 0, call(&sw, "to", &[port]));
                    sw.table_modify(0, t, entry).expect("modify");
                }
            } else {
                prop_assert_eq!(sw.table_delete(t, &key, 0).is_ok(), map.remove(&(x, y)).is_some());
            }
        }
        for x in 0..8_u64 {
            for y in 0..8_u64 {
                let bits = (x << 13 | (y * 73) << 4) as u16;
                let expected = map.get(&(x, y)).copied().unwrap_or(400) as PortId;
                prop_assert_eq!(send(&mut sw, 0, &bits.to_be_bytes())[0].0, expected);
            }
        }
        sw.table_clear(t).expect("clear");
        prop_assert_eq!(send(&mut sw, 0, &[0, 0])[0].0, 400);
    }
}

#[test]
fn fields_of_invalid_headers_match_as_zero() {
    let mut b = Build::new();
    b.header("k", &[("a", 8)]).header("x", &[("v", 8)]);
    b.state("start", &[Build::extract("k")], &[field("k", "a")], &[("0x01", Some("more")), ("default", None)]);
    b.state("more", &[Build::extract("x")], &[], &[("default", None)]);
    b.action("one", &[], &[set_port(1)]).action("two", &[], &[set_port(2)]);
    b.always(0, "pre", &[prim("remove_header", &[json!({"type": "header", "value": "x"})])], Some("t"));
    b.table(0, "t", "exact", &[("x", "v", "exact"), ("x", "$valid$", "exact")], &["one", "two"], None);
    let mut sw = b.switch();
    let t = table_id(&sw, "t");
    sw.table_insert(0, t, entry(vec![exact(0), exact(0)], 0, call(&sw, "one", &[]))).expect("insert");
    assert_eq!(send(&mut sw, 0, &[1, 5])[0].0, 1);
    assert_eq!(send(&mut sw, 0, &[2, 5])[0].0, 1);
}

#[test]
fn const_entries_and_defaults() {
    let mut b = program("ternary", ["ternary", "ternary", "ternary"]);
    let any = json!({"match_type": "ternary", "key": "0x00", "mask": "0x00"});
    let wide = json!({"match_type": "ternary", "key": "0x0000000000000000", "mask": "0x0000000000000000"});
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
    assert!(matches!(sw.table_insert(0, t, e.clone()), Err(ControlError::PermissionDenied(_))));
    assert!(matches!(sw.table_delete(t, &e.key, e.priority), Err(ControlError::PermissionDenied(_))));
    let hit = call(&sw, "hit", &[1]);
    assert!(matches!(sw.table_set_default(t, Some(hit)), Err(ControlError::PermissionDenied(_))));
    sw.table_clear(t).expect("clear");
    assert_eq!(sw.table_len(t), Ok(2));

    b.edit(|r| {
        r["pipelines"][0]["tables"][0]["entries"] = json!([make(&any, 2, "0x07"), make(&any, 2, "0x08")]);
    });
    let e = b.error();
    assert_eq!(e.path, "pipelines[0].tables[0].entries[1]");
    assert!(e.message.contains("matches the same as entry 0"), "{e}");
}

/// `WIDTHS` says what `program` builds.
#[test]
fn key_info() {
    let p = program("exact", ["exact"; 3]).load();
    assert_eq!(p.tables()[0].key.iter().map(|k| k.width).collect::<Vec<_>>(), WIDTHS);
}
