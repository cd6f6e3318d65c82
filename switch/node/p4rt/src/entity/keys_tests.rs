//! Keys survive the way to the switch and back, and what the specification forbids is refused.

use super::*;
use crate::types::Scalar;
use proptest::prelude::*;

fn field(index: usize, kind: MatchType, width: u32) -> Field {
    Field { id: index as u32 + 1, name: format!("f{index}"), kind, position: index, scalar: Scalar::bits(width), validity: false }
}

/// One field of each kind, and a key of it as the switch keeps it.
fn any_item() -> impl Strategy<Value = (MatchType, u32, KeyMatch)> {
    (1u32..130, any::<[u8; 17]>(), any::<[u8; 17]>(), 0usize..6).prop_map(|(width, a, b, kind)| {
        let cut = |bytes: [u8; 17]| {
            let mut bytes = Value::from_be_bytes(&bytes).to_be_bytes(width);
            if width % 8 != 0 {
                bytes[0] &= (1 << (width % 8)) - 1;
            }
            Value::from_be_bytes(&bytes)
        };
        let and = |value: &Value, mask: &Value| {
            let (value, mask) = (value.to_be_bytes(width), mask.to_be_bytes(width));
            Value::from_be_bytes(&value.iter().zip(mask).map(|(v, m)| v & m).collect::<Vec<_>>())
        };
        let (value, mask) = (cut(a), cut(b));
        match kind {
            0 => (MatchType::Exact, width, KeyMatch::Exact(value)),
            1 => {
                let prefix_len = 1 + u32::from(b[0]) % width;
                (MatchType::Lpm, width, KeyMatch::Lpm { value: and(&value, &prefix_mask(prefix_len, width)), prefix_len })
            }
            2 if !mask.is_zero() => (MatchType::Ternary, width, KeyMatch::Ternary { value: and(&value, &mask), mask }),
            3 => {
                let (low, high) = if ordered(&value, &mask) { (value, mask) } else { (mask, value) };
                match low.is_zero() && high == Value::ones(width) {
                    true => (MatchType::Range, width, KeyMatch::Any),
                    false => (MatchType::Range, width, KeyMatch::Range { low, high }),
                }
            }
            4 => (MatchType::Optional, width, KeyMatch::Exact(value)),
            _ => (MatchType::Ternary, width, KeyMatch::Any),
        }
    })
}

proptest! {
    #[test]
    fn keys_survive(items in prop::collection::vec(any_item(), 0..6)) {
        let fields: Vec<Field> = items.iter().enumerate().map(|(index, (kind, width, _))| field(index, *kind, *width)).collect();
        let key: Vec<KeyMatch> = items.into_iter().map(|(_, _, item)| item).collect();
        let messages = encode(&fields, &key);
        let back = decode(&fields, &messages).unwrap();
        prop_assert_eq!(&canonical(&fields, back), &key);
        // The order of the fields in the message has no meaning.
        let reversed: Vec<_> = messages.into_iter().rev().collect();
        prop_assert_eq!(decode(&fields, &reversed).unwrap(), key);
    }

    #[test]
    fn any_message_is_read_or_refused(
        kind in 2i32..7, width in 0u32..70, id in 0u32..3, a in prop::collection::vec(any::<u8>(), 0..10),
        b in prop::collection::vec(any::<u8>(), 0..10), len in any::<i32>(), given in 0usize..6,
    ) {
        let kind = MatchType::try_from(kind).unwrap();
        let fields = [field(0, kind, width)];
        let given = match given {
            0 => Some(FieldMatchType::Exact(field_match::Exact { value: a })),
            1 => Some(FieldMatchType::Lpm(field_match::Lpm { value: a, prefix_len: len })),
            2 => Some(FieldMatchType::Ternary(field_match::Ternary { value: a, mask: b })),
            3 => Some(FieldMatchType::Range(field_match::Range { low: a, high: b })),
            4 => Some(FieldMatchType::Optional(field_match::Optional { value: a })),
            _ => None,
        };
        let message = [p4::FieldMatch { field_id: id, field_match_type: given }];
        if let Ok(key) = decode(&fields, &message) {
            let key = canonical(&fields, key);
            prop_assert_eq!(decode(&fields, &encode(&fields, &key)), Ok(key));
        }
    }
}

#[test]
fn one_form_for_each_meaning() {
    let one = |kind: MatchType, item: KeyMatch| canonical(&[field(0, kind, 8)], vec![item]).remove(0);
    let value = Value::from(5u64);
    let ones = Value::ones(8);
    let zero = Value::from(0u64);
    assert_eq!(one(MatchType::Lpm, KeyMatch::Exact(value.clone())), KeyMatch::Lpm { value: value.clone(), prefix_len: 8 });
    assert_eq!(one(MatchType::Lpm, KeyMatch::Lpm { value: zero.clone(), prefix_len: 0 }), KeyMatch::Any);
    assert_eq!(one(MatchType::Ternary, KeyMatch::Exact(value.clone())), KeyMatch::Ternary { value: value.clone(), mask: ones.clone() });
    assert_eq!(one(MatchType::Ternary, KeyMatch::Ternary { value: zero.clone(), mask: zero.clone() }), KeyMatch::Any);
    assert_eq!(one(MatchType::Range, KeyMatch::Range { low: zero, high: ones.clone() }), KeyMatch::Any);
    assert_eq!(one(MatchType::Optional, KeyMatch::Ternary { value: value.clone(), mask: ones }), KeyMatch::Exact(value));
}
