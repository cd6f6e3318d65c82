//! Expressions through the whole path, from JSON to the emitted frame, against an interpreter of
//! the JSON with unbounded integers that shares nothing with the crate.

mod common;

use common::*;
use num_bigint::BigInt;
use proptest::prelude::*;
use serde_json::{json, Value as Json};

/// Input fields: name, width, signed.
const INPUT: &[(&str, u32, bool)] = &[
    ("a", 8, false),
    ("b", 16, false),
    ("c", 32, false),
    ("d", 64, false),
    ("e", 48, false),
    ("s", 8, true),
    ("t", 32, true),
    ("u", 64, true),
    ("w", 100, false),
    ("x", 1, false),
    ("y", 3, false),
];

/// Output fields: name, width, signed, saturating.
const OUTPUT: &[(&str, u32, bool, bool)] = &[
    ("o1", 1, false, false),
    ("o8", 8, false, false),
    ("o32", 32, false, false),
    ("o64", 64, false, false),
    ("o100", 100, false, false),
    ("i8", 8, true, false),
    ("i64", 64, true, false),
    ("p8", 8, false, true),
    ("q8", 8, true, true),
    ("pad", 3, false, false),
];

type Inputs = Vec<BigInt>;

fn power(w: u32) -> BigInt {
    BigInt::from(1) << w
}

fn wrap(v: BigInt, width: u32, signed: bool) -> BigInt {
    let low = ((v % power(width)) + power(width)) % power(width);
    if signed && low >= power(width - 1) {
        low - power(width)
    } else {
        low
    }
}

fn clamp(v: BigInt, lo: BigInt, hi: BigInt) -> BigInt {
    v.max(lo).min(hi)
}

fn parse_hex(text: &str) -> BigInt {
    let (neg, digits) = match text.strip_prefix('-') {
        Some(d) => (true, d),
        None => (false, text),
    };
    let v = BigInt::parse_bytes(digits.trim_start_matches("0x").as_bytes(), 16).expect("hex");
    if neg {
        -v
    } else {
        v
    }
}

/// The reference: truth values are 0 and 1.
fn reference(e: &Json, inputs: &Inputs) -> BigInt {
    let v = &e["value"];
    match e["type"].as_str().expect("type") {
        "hexstr" => parse_hex(v.as_str().expect("hex")),
        "bool" => BigInt::from(u8::from(v.as_bool().expect("bool"))),
        "field" => {
            let at = INPUT.iter().position(|f| v[1] == f.0).expect("field");
            inputs[at].clone()
        }
        _ => operation(v, inputs),
    }
}

fn operation(v: &Json, inputs: &Inputs) -> BigInt {
    let get = |k: &str| reference(&v[k], inputs);
    let zero = BigInt::from(0);
    let truth = |b: bool| BigInt::from(u8::from(b));
    let small = |b: BigInt| u32::try_from(b).expect("small");
    match v["op"].as_str().expect("op") {
        "+" => get("left") + get("right"),
        "-" => get("left") - get("right"),
        "*" => get("left") * get("right"),
        "/" | "%" if get("right") == zero => zero,
        "/" => get("left") / get("right"),
        "%" => get("left") % get("right"),
        "&" => get("left") & get("right"),
        "|" => get("left") | get("right"),
        "^" => get("left") ^ get("right"),
        "~" => -get("right") - 1,
        "<<" => get("left") * power(small(get("right"))),
        ">>" => {
            // Rounds down, also for negative numbers.
            let (l, p) = (get("left"), power(small(get("right"))));
            let q = &l / &p;
            if l < zero && &q * &p != l {
                q - 1
            } else {
                q
            }
        }
        "two_comp_mod" => wrap(get("left"), small(get("right")), true),
        "usat_cast" => clamp(get("left"), zero, power(small(get("right"))) - 1),
        "sat_cast" => {
            let half = power(small(get("right")) - 1);
            clamp(get("left"), -half.clone(), half - 1)
        }
        "==" => truth(get("left") == get("right")),
        "!=" => truth(get("left") != get("right")),
        "<" => truth(get("left") < get("right")),
        "<=" => truth(get("left") <= get("right")),
        ">" => truth(get("left") > get("right")),
        ">=" => truth(get("left") >= get("right")),
        "and" => get("left") & get("right"),
        "or" => get("left") | get("right"),
        "not" => BigInt::from(1) - get("right"),
        "d2b" => truth(get("right") != zero),
        "b2d" => get("right"),
        "?" => get(if get("cond") != zero { "left" } else { "right" }),
        other => panic!("{other}"),
    }
}

fn unary(op: &str, e: Json) -> Json {
    json!({"type": "expression", "value": {"op": op, "left": null, "right": e}})
}

fn constant() -> BoxedStrategy<Json> {
    prop_oneof![
        prop::sample::select(vec![0_u64, 1, 2, 7, 255, 256, 65535, u64::MAX, 1 << 63, (1 << 63) - 1, 1 << 32]).prop_map(hex),
        any::<u64>().prop_map(hex),
        Just(json!({"type": "hexstr", "value": "-0x1"})),
        Just(json!({"type": "hexstr", "value": "0xfffffffffffffffffffffffff"})),
    ]
    .boxed()
}

fn data(depth: u32) -> BoxedStrategy<Json> {
    let leaf = prop_oneof![
        4 => prop::sample::select(INPUT).prop_map(|f| field("in", f.0)),
        1 => constant(),
    ]
    .boxed();
    if depth == 0 {
        return leaf;
    }
    let sub = move || data(depth - 1);
    let shift = prop_oneof![(0..130_u64).prop_map(hex), prop::sample::select(vec!["a", "x", "y"]).prop_map(|f| field("in", f)),];
    let width = prop::sample::select(vec![1_u64, 2, 7, 8, 9, 31, 32, 33, 48, 63, 64, 65, 100, 127, 128, 129]);
    prop_oneof![
        2 => leaf,
        6 => (prop::sample::select(vec!["+", "-", "*", "/", "%", "&", "|", "^"]), sub(), sub())
            .prop_map(|(op, l, r)| expr(op, l, r)),
        3 => (prop::sample::select(vec!["<<", ">>"]), sub(), shift).prop_map(|(op, l, r)| expr(op, l, r)),
        3 => (prop::sample::select(vec!["two_comp_mod", "usat_cast", "sat_cast"]), sub(), width)
            .prop_map(|(op, l, w)| expr(op, l, hex(w))),
        // The masks compilers write after arithmetic.
        4 => (sub(), prop::sample::select(vec![0xff_u64, 0xffff, 0xffff_ffff, u64::MAX, 0x7]))
            .prop_map(|(l, m)| expr("&", l, hex(m))),
        1 => sub().prop_map(|e| unary("~", e)),
        1 => boolean(depth - 1).prop_map(|e| unary("b2d", e)),
        1 => (boolean(depth - 1), sub(), sub()).prop_map(|(c, l, r)| {
            json!({"type": "expression", "value": {"op": "?", "cond": c, "left": l, "right": r}})
        }),
    ]
    .boxed()
}

fn boolean(depth: u32) -> BoxedStrategy<Json> {
    if depth == 0 {
        return any::<bool>().prop_map(|b| json!({"type": "bool", "value": b})).boxed();
    }
    prop_oneof![
        4 => (prop::sample::select(vec!["==", "!=", "<", "<=", ">", ">="]), data(depth - 1), data(depth - 1))
            .prop_map(|(op, l, r)| expr(op, l, r)),
        1 => data(depth - 1).prop_map(|e| unary("d2b", e)),
        1 => boolean(depth - 1).prop_map(|e| unary("not", e)),
        1 => (prop::sample::select(vec!["and", "or", "==", "!="]), boolean(depth - 1), boolean(depth - 1))
            .prop_map(|(op, l, r)| expr(op, l, r)),
    ]
    .boxed()
}

fn pack(values: &[(BigInt, u32)]) -> Vec<u8> {
    let mut all = BigInt::from(0);
    let mut bits = 0;
    for (v, w) in values {
        all = (all << *w) | wrap(v.clone(), *w, false);
        bits += w;
    }
    assert_eq!(bits % 8, 0);
    let (_, bytes) = all.to_bytes_be();
    let n = (bits / 8) as usize;
    let mut out = vec![0; n - bytes.len().min(n)];
    out.extend_from_slice(&bytes);
    out.split_off(out.len() - n)
}

fn program(exprs: &[Json]) -> Build {
    let mut b = Build::new();
    let mut fields: Vec<Json> = INPUT.iter().map(|(n, w, s)| json!([n, w, s])).collect();
    fields.push(json!(["pad", 8, false]));
    b.header_type("in_t", json!(fields)).instance("in", "in_t", false);
    let fields: Vec<Json> = OUTPUT.iter().map(|(n, w, s, sat)| json!([n, w, s, sat])).collect();
    b.header_type("out_t", json!(fields)).instance("out", "out_t", false);
    b.extracts(&["in"]);
    let mut prims = vec![prim("add_header", &[json!({"type": "header", "value": "out"})]), set_port(1)];
    for (o, e) in OUTPUT.iter().zip(exprs) {
        prims.push(assign(field("out", o.0), wrapped(e.clone())));
    }
    b.always(0, "compute", &prims, None);
    b
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn agree_with_unbounded_integers(
        exprs in prop::collection::vec(data(3), OUTPUT.len() - 1),
        raw in prop::collection::vec(prop::collection::vec(
            prop_oneof![any::<u128>(), Just(0), Just(u128::MAX), 0..4_u128, Just(1 << 63), Just(0x80)], INPUT.len()), 1..6),
    ) {
        let mut sw = program(&exprs).switch();
        for values in raw {
            let inputs: Inputs =
                INPUT.iter().zip(&values).map(|((_, w, s), v)| wrap(BigInt::from(*v), *w, *s)).collect();
            let mut frame: Vec<(BigInt, u32)> =
                INPUT.iter().zip(&inputs).map(|((_, w, _), v)| (v.clone(), *w)).collect();
            frame.push((BigInt::from(0), 8));
            let frame = pack(&frame);
            let mut expected: Vec<(BigInt, u32)> = OUTPUT.iter().zip(&exprs).map(|((_, w, s, sat), e)| {
                let v = reference(e, &inputs);
                let v = match (sat, s) {
                    (false, _) => v,
                    (true, false) => clamp(v, BigInt::from(0), power(*w) - 1),
                    (true, true) => clamp(v, -power(w - 1), power(w - 1) - 1),
                };
                (v, *w)
            }).collect();
            expected.push((BigInt::from(0), 3));
            let mut whole = frame.clone();
            whole.extend(pack(&expected));
            prop_assert_eq!(send(&mut sw, 0, &frame), vec![(1, whole)], "{}", serde_json::to_string(&exprs).unwrap_or_default());
        }
    }

    /// Conditions choose between two ports.
    #[test]
    fn conditions(cond in boolean(4), raw in prop::collection::vec(any::<u128>(), INPUT.len())) {
        let mut b = program(&[]);
        b.edit(|root| {
            root["pipelines"][0]["tables"] = json!([]);
            root["pipelines"][0]["init_table"] = json!("node");
            root["pipelines"][0]["conditionals"] = json!([{
                "name": "node", "id": 0, "expression": cond, "true_next": "tbl_yes", "false_next": "tbl_no"}]);
        });
        b.always(0, "yes", &[set_port(1)], None).always(0, "no", &[set_port(2)], None);
        let inputs: Inputs = INPUT.iter().zip(&raw).map(|((_, w, s), v)| wrap(BigInt::from(*v), *w, *s)).collect();
        let mut frame: Vec<(BigInt, u32)> = INPUT.iter().zip(&inputs).map(|((_, w, _), v)| (v.clone(), *w)).collect();
        frame.push((BigInt::from(0), 8));
        let expected = if reference(&cond, &inputs) == BigInt::from(1) { 1 } else { 2 };
        let out = send(&mut b.switch(), 0, &pack(&frame));
        prop_assert_eq!(out[0].0, expected);
    }
}
