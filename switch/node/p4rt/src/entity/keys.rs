//! Match keys: `FieldMatch` messages to [`KeyMatch`] and back [P4Runtime sec 9.1.1].

use fairlane_pipeline::{KeyMatch, Value};

use crate::bytes::{ordered, prefix_mask, trailing_zeros, within};
use crate::model::Field;
use crate::proto::p4::config::v1::match_field::MatchType;
use crate::proto::p4::v1 as p4;
use crate::status::{Result, Status};

use p4::field_match::{self as field_match, FieldMatchType};

/// Reads a key: one item for each field, in order of the program's key. Omitted fields match everything.
///
/// # Errors
/// INVALID_ARGUMENT that names the field.
pub(super) fn decode(fields: &[Field], matches: &[p4::FieldMatch]) -> Result<Vec<KeyMatch>> {
    let mut key = vec![None; fields.len()];
    for given in matches {
        let Some(field) = fields.iter().find(|field| field.id == given.field_id) else {
            return Err(Status::invalid(format!("match field id {} is not in the P4Info", given.field_id)));
        };
        let at = |status: Status| status.at(format!("match field \"{}\"", field.name));
        let slot = key.get_mut(field.position).ok_or_else(|| at(Status::internal("it is not in the program's key")))?;
        if slot.is_some() {
            return Err(at(Status::invalid("it is given twice")));
        }
        *slot = Some(decode_field(field, given).map_err(at)?);
    }
    for field in fields {
        if field.kind == MatchType::Exact && key[field.position].is_none() {
            return Err(Status::invalid(format!("match field \"{}\": it is exact and cannot be left out", field.name)));
        }
    }
    Ok(key.into_iter().map(|item| item.unwrap_or(KeyMatch::Any)).collect())
}

fn decode_field(field: &Field, given: &p4::FieldMatch) -> Result<KeyMatch> {
    let width = field.scalar.width;
    let named = |part: &'static str| move |status: Status| status.at(part);
    match (field.kind, &given.field_match_type) {
        (MatchType::Exact, Some(FieldMatchType::Exact(exact))) => {
            let value = field.scalar.decode(&exact.value)?;
            Ok(if field.validity { KeyMatch::Valid(!value.is_zero()) } else { KeyMatch::Exact(value) })
        }
        (MatchType::Lpm, Some(FieldMatchType::Lpm(lpm))) => {
            let value = field.scalar.decode(&lpm.value)?;
            let prefix_len =
                u32::try_from(lpm.prefix_len).ok().filter(|len| (1..=width).contains(len)).ok_or_else(|| match lpm.prefix_len {
                    0 => Status::invalid("prefix_len is 0: leave the field out to match everything"),
                    len => Status::invalid(format!("prefix_len {len}; the width is {width} bits")),
                })?;
            if trailing_zeros(&value, width) < width - prefix_len {
                return Err(Status::invalid(format!("the value {value} has bits beyond its prefix of {prefix_len} bits")));
            }
            Ok(KeyMatch::Lpm { value, prefix_len })
        }
        (MatchType::Ternary, Some(FieldMatchType::Ternary(ternary))) => {
            let value = field.scalar.decode(&ternary.value).map_err(named("value"))?;
            let mask = field.scalar.decode(&ternary.mask).map_err(named("mask"))?;
            if mask.is_zero() {
                return Err(Status::invalid("the mask is 0: leave the field out to match everything"));
            }
            if !within(&value, &mask) {
                return Err(Status::invalid(format!("the value {value} has bits outside its mask {mask}")));
            }
            Ok(KeyMatch::Ternary { value, mask })
        }
        (MatchType::Range, Some(FieldMatchType::Range(range))) => {
            let low = field.scalar.decode(&range.low).map_err(named("low"))?;
            let high = field.scalar.decode(&range.high).map_err(named("high"))?;
            if !ordered(&low, &high) {
                return Err(Status::invalid(format!("low {low} is above high {high}")));
            }
            if low.is_zero() && high == Value::ones(width) {
                return Err(Status::invalid("the range is everything: leave the field out instead"));
            }
            Ok(KeyMatch::Range { low, high })
        }
        (MatchType::Optional, Some(FieldMatchType::Optional(optional))) => Ok(KeyMatch::Exact(field.scalar.decode(&optional.value)?)),
        (kind, Some(other)) => Err(Status::invalid(format!("it is {} in the P4Info; {} was given", kind.as_str_name(), name_of(other)))),
        (_, None) => Err(Status::invalid("its field_match_type is not set")),
    }
}

fn name_of(kind: &FieldMatchType) -> &'static str {
    match kind {
        FieldMatchType::Exact(_) => "EXACT",
        FieldMatchType::Ternary(_) => "TERNARY",
        FieldMatchType::Lpm(_) => "LPM",
        FieldMatchType::Range(_) => "RANGE",
        FieldMatchType::Optional(_) => "OPTIONAL",
        FieldMatchType::Other(_) => "a match of another kind",
    }
}

/// The form in which a key of the switch is compared and written: one per meaning.
pub(super) fn canonical(fields: &[Field], mut key: Vec<KeyMatch>) -> Vec<KeyMatch> {
    for field in fields {
        let Some(item) = key.get_mut(field.position) else { continue };
        let width = field.scalar.width;
        let taken = std::mem::replace(item, KeyMatch::Any);
        *item = match (field.kind, taken) {
            (MatchType::Lpm, KeyMatch::Exact(value)) => KeyMatch::Lpm { value, prefix_len: width },
            (MatchType::Ternary, KeyMatch::Exact(value)) => KeyMatch::Ternary { value, mask: Value::ones(width) },
            (MatchType::Ternary, KeyMatch::Lpm { value, prefix_len }) if prefix_len > 0 => {
                KeyMatch::Ternary { value, mask: prefix_mask(prefix_len, width) }
            }
            (MatchType::Range, KeyMatch::Exact(value)) => KeyMatch::Range { low: value.clone(), high: value },
            (_, KeyMatch::Lpm { prefix_len: 0, .. }) => KeyMatch::Any,
            (MatchType::Optional, KeyMatch::Ternary { value, mask }) if mask == Value::ones(width) => KeyMatch::Exact(value),
            (_, KeyMatch::Ternary { mask, .. }) if mask.is_zero() => KeyMatch::Any,
            (_, KeyMatch::Range { low, high }) if low.is_zero() && high == Value::ones(width) => KeyMatch::Any,
            (_, other) => other,
        };
    }
    key
}

/// Writes a canonical key; fields that match everything are left out.
pub(super) fn encode(fields: &[Field], key: &[KeyMatch]) -> Vec<p4::FieldMatch> {
    let encode_field = |field: &Field| {
        let text = |value: &Value| field.scalar.encode(value);
        let kind = match key.get(field.position)? {
            KeyMatch::Any => return None,
            KeyMatch::Exact(value) if field.kind == MatchType::Optional => {
                FieldMatchType::Optional(field_match::Optional { value: text(value) })
            }
            KeyMatch::Exact(value) => FieldMatchType::Exact(field_match::Exact { value: text(value) }),
            KeyMatch::Valid(valid) => FieldMatchType::Exact(field_match::Exact { value: text(&Value::from(u64::from(*valid))) }),
            KeyMatch::Lpm { value, prefix_len } => {
                FieldMatchType::Lpm(field_match::Lpm { value: text(value), prefix_len: *prefix_len as i32 })
            }
            KeyMatch::Ternary { value, mask } => FieldMatchType::Ternary(field_match::Ternary { value: text(value), mask: text(mask) }),
            KeyMatch::Range { low, high } => FieldMatchType::Range(field_match::Range { low: text(low), high: text(high) }),
        };
        Some(p4::FieldMatch { field_id: field.id, field_match_type: Some(kind) })
    };
    fields.iter().filter_map(encode_field).collect()
}

#[cfg(test)]
#[path = "keys_tests.rs"]
mod tests;
