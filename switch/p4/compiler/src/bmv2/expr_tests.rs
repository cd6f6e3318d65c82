//! What the JSON computes, against what P4 says: any expression over fields, evaluated as the target does (integers of any size,
//! JSON_format.md), has the value that constant folding gives it.

use fairlane_syntax::ast::{BinaryOp, UnaryOp};
use num_bigint::BigInt;
use num_traits::{One, Signed, ToPrimitive, Zero};
use proptest::prelude::*;
use serde_json::Value;

use super::Expressions;
use crate::check::constants::wrap;
use crate::ir::{Expr, ExprKind, Header, HeaderId, HeaderRef, HeaderType, HeaderTypeId, Place, Program};
use crate::lower::fold;
use crate::types::Type;

const WIDTHS: [u32; 6] = [1, 7, 8, 16, 33, 64];

/// One header `f` with a field per width and sign.
fn program() -> Program {
    let fields = (0..12).map(|i| (format!("f{i}").into(), field_type(i))).collect();
    Program {
        header_types: vec![HeaderType { name: "f_t".into(), fields, metadata: true }],
        headers: vec![Header { name: "f".into(), ty: HeaderTypeId(0) }],
        ..Program::default()
    }
}

fn field_type(i: usize) -> Type {
    Type::Bits { width: WIDTHS[i % 6].max(if i >= 6 { 2 } else { 1 }), signed: i >= 6 }
}

/// A recipe for an expression: applied once to fields and once to their values.
#[derive(Debug, Clone)]
enum Recipe {
    Field(usize),
    Const(usize, u64),
    Unary(UnaryOp, Box<Recipe>),
    Binary(BinaryOp, Box<Recipe>, Box<Recipe>),
    Cast(usize, Box<Recipe>),
    Slice(Box<Recipe>, u32, u32),
    Mux(BinaryOp, Box<Recipe>, Box<Recipe>),
}

fn build(r: &Recipe, leaf: &impl Fn(usize) -> Expr) -> Expr {
    let to = |e: Expr, t: &Type| {
        // As in P4, sign and width are never changed in one cast.
        let same_sign = Type::Bits { width: fold::bits_of(&e.ty), signed: matches!(t, Type::Bits { signed: true, .. }) };
        fold::cast(fold::cast(e, &same_sign), t)
    };
    match r {
        Recipe::Field(i) => leaf(*i),
        Recipe::Const(i, v) => {
            let t = field_type(*i);
            Expr::constant(wrap(BigInt::from(*v), &t), t)
        }
        Recipe::Unary(op, e) => fold::unary(*op, build(e, leaf)),
        Recipe::Binary(op, l, r) => {
            let l = build(l, leaf);
            let r = build(r, leaf);
            match op {
                BinaryOp::Shl | BinaryOp::Shr => {
                    let unsigned = Type::bit(fold::bits_of(&r.ty));
                    fold::binary(*op, l, fold::cast(r, &unsigned))
                }
                BinaryOp::Concat => fold::binary(*op, l, r),
                _ => {
                    let t = l.ty.clone();
                    fold::binary(*op, l, to(r, &t))
                }
            }
        }
        Recipe::Cast(i, e) => to(build(e, leaf), &field_type(*i)),
        Recipe::Slice(e, h, l) => {
            let e = build(e, leaf);
            let top = fold::bits_of(&e.ty) - 1;
            let (h, l) = (h % (top + 1), l % (top + 1));
            fold::slice(e, h.max(l), h.min(l))
        }
        Recipe::Mux(op, l, r) => {
            let l = build(l, leaf);
            let t = l.ty.clone();
            let r = to(build(r, leaf), &t);
            fold::mux(fold::binary(*op, l.clone(), r.clone()), l, r)
        }
    }
}

fn recipe() -> impl Strategy<Value = Recipe> {
    let leaf = prop_oneof![(0usize..12).prop_map(Recipe::Field), (0usize..12, any::<u64>()).prop_map(|(i, v)| Recipe::Const(i, v))];
    leaf.prop_recursive(4, 24, 2, |inner| {
        let op = prop::sample::select(vec![
            BinaryOp::Add,
            BinaryOp::Sub,
            BinaryOp::Mul,
            BinaryOp::AddSat,
            BinaryOp::SubSat,
            BinaryOp::Shl,
            BinaryOp::Shr,
            BinaryOp::BitAnd,
            BinaryOp::BitOr,
            BinaryOp::BitXor,
            BinaryOp::Concat,
        ]);
        let comparison = prop::sample::select(vec![BinaryOp::Eq, BinaryOp::Ne, BinaryOp::Lt, BinaryOp::Ge]);
        let unary = prop::sample::select(vec![UnaryOp::Complement, UnaryOp::Negate]);
        prop_oneof![
            (unary, inner.clone()).prop_map(|(o, e)| Recipe::Unary(o, Box::new(e))),
            (op, inner.clone(), inner.clone()).prop_map(|(o, l, r)| Recipe::Binary(o, Box::new(l), Box::new(r))),
            (0usize..12, inner.clone()).prop_map(|(i, e)| Recipe::Cast(i, Box::new(e))),
            (inner.clone(), any::<u32>(), any::<u32>()).prop_map(|(e, h, l)| Recipe::Slice(Box::new(e), h, l)),
            (comparison, inner.clone(), inner).prop_map(|(o, l, r)| Recipe::Mux(o, Box::new(l), Box::new(r))),
        ]
    })
}

/// The value of a JSON expression, as the target computes it.
fn evaluate(v: &Value, fields: &[BigInt]) -> BigInt {
    let text = |v: &Value| {
        let s = v.as_str().unwrap();
        let (sign, digits) = s.strip_prefix('-').map_or((1, s), |d| (-1, d));
        BigInt::parse_bytes(digits.trim_start_matches("0x").as_bytes(), 16).unwrap() * sign
    };
    match v["type"].as_str().unwrap() {
        "hexstr" => text(&v["value"]),
        "bool" => BigInt::from(u8::from(v["value"].as_bool().unwrap())),
        "field" => fields[v["value"][1].as_str().unwrap()[1..].parse::<usize>().unwrap()].clone(),
        "expression" => {
            let e = &v["value"];
            if e.get("op").is_none() {
                return evaluate(e, fields);
            }
            let right = || evaluate(&e["right"], fields);
            let left = || evaluate(&e["left"], fields);
            let truth = |b: bool| BigInt::from(u8::from(b));
            let range = |signed: bool| {
                let w = right().to_u32().unwrap();
                let (low, high): (BigInt, BigInt) = if signed {
                    (-(BigInt::one() << (w - 1)), (BigInt::one() << (w - 1)) - 1)
                } else {
                    (BigInt::zero(), (BigInt::one() << w) - 1)
                };
                left().clamp(low, high)
            };
            match e["op"].as_str().unwrap() {
                "+" => left() + right(),
                "-" if e["left"].is_null() => -right(),
                "-" => left() - right(),
                "*" => left() * right(),
                "<<" => left() << right().to_u32().unwrap(),
                ">>" => left() >> right().to_u32().unwrap(),
                "&" => left() & right(),
                "|" => left() | right(),
                "^" => left() ^ right(),
                "~" => !right(),
                "not" => truth(right().is_zero()),
                "==" => truth(left() == right()),
                "!=" => truth(left() != right()),
                "<" => truth(left() < right()),
                ">" => truth(left() > right()),
                ">=" => truth(left() >= right()),
                "two_comp_mod" => wrap(left(), &Type::Bits { width: right().to_u32().unwrap(), signed: true }),
                "sat_cast" => range(true),
                "usat_cast" => range(false),
                "?" => {
                    if evaluate(&e["cond"], fields).is_zero() {
                        right()
                    } else {
                        left()
                    }
                }
                other => panic!("operation {other}"),
            }
        }
        other => panic!("value of type {other}"),
    }
}

proptest! {
    #[test]
    fn the_target_computes_what_p4_says(r in recipe(), seeds in prop::collection::vec(any::<u64>(), 12)) {
        let program = program();
        let values: Vec<BigInt> = seeds.iter().enumerate().map(|(i, s)| wrap(BigInt::from(*s), &field_type(i))).collect();
        let over_fields = build(&r, &|i| Expr::place(Place {
            header: HeaderRef::Instance(HeaderId(0)),
            field: format!("f{i}").into(),
            index: i,
            ty: field_type(i),
        }));
        let over_values = build(&r, &|i| Expr::constant(values[i].clone(), field_type(i)));
        let ExprKind::Const(expected) = &over_values.kind else { panic!("not folded: {over_values:?}") };
        prop_assert_eq!(&over_fields.ty, &over_values.ty);
        let json = Expressions { program: &program }.value(&over_fields);
        let got = evaluate(&json, &values);
        // What is written to a field is what counts.
        prop_assert!(got.is_negative() <= matches!(over_fields.ty, Type::Bits { signed: true, .. }), "{} is out of range: {}", got, json);
        prop_assert_eq!(&got, expected, "{}", json);
    }

    #[test]
    fn the_masks_of_a_range_hold_its_values_and_no_others(width in 1u32..10, a in any::<u32>(), b in any::<u32>()) {
        use crate::ir::Match;
        let modulus = 1u32 << width;
        let (low, high) = ((a % modulus).min(b % modulus), (a % modulus).max(b % modulus));
        let masks = crate::lower::range_masks(low.into(), high.into(), width);
        for x in 0..modulus {
            let hits = masks.iter().filter(|m| match m {
                Match::Any => true,
                Match::Exact(v) => *v == BigInt::from(x),
                Match::Mask(v, w) => (BigInt::from(x) & w) == *v,
                Match::Range(..) => false,
            }).count();
            prop_assert_eq!(hits, usize::from((low..=high).contains(&x)));
        }
    }
}
