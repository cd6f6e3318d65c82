//! `ValueSetEntry`: parser value sets [P4Runtime sec 9.6].

use fairlane_pipeline::{KeyMatch, Value, ValueSetMember};

use super::{find, keys, only_modify, select, wrap, Kind, Target, Type, Window};
use crate::bytes::{prefix_mask, trailing_zeros};
use crate::model::{Field, ValueSet};
use crate::proto::p4::config::v1::match_field::MatchType;
use crate::proto::p4::v1 as p4;
use crate::status::{Result, Status};

impl Target<'_> {
    pub(super) fn write_value_set(&mut self, kind: Type, entry: &p4::ValueSetEntry) -> Result<()> {
        only_modify(kind, "a value set")?;
        let model = self.model;
        let set = find(&model.value_sets, "value_set_id", entry.value_set_id)?;
        let at = |status: Status| status.at(format!("value set \"{}\"", set.name));
        if set.size > 0 && entry.members.len() > set.size {
            let text = format!("{} members; its size is {}", entry.members.len(), set.size);
            return Err(at(Status::exhausted(text)));
        }
        let mut members: Vec<ValueSetMember> = Vec::with_capacity(entry.members.len());
        for (index, member) in entry.members.iter().enumerate() {
            let at = |status: Status| at(status.at(format!("member {}", index + 1)));
            let member = decode_member(set, &member.r#match).map_err(at)?;
            if members.contains(&member) {
                return Err(at(Status::exists("it is given twice")));
            }
            members.push(member);
        }
        self.switch.set_value_set(set.program, members).map_err(|error| at(error.into()))
    }

    pub(super) fn read_value_sets(&self, filter: &p4::ValueSetEntry, window: &mut Window, out: &mut Vec<p4::Entity>) -> Result<()> {
        for (value_set_id, set) in select(&self.model.value_sets, "value_set_id", filter.value_set_id)? {
            if window.take(value_set_id, 0..1).is_empty() {
                continue;
            }
            let members = self.switch.value_set(set.program)?;
            window.spend(members.len());
            let members = members.iter().map(|member| p4::ValueSetMember { r#match: encode_member(set, member) }).collect();
            out.push(wrap(Kind::ValueSetEntry(p4::ValueSetEntry { value_set_id, members })));
        }
        Ok(())
    }
}

fn decode_member(set: &ValueSet, matches: &[p4::FieldMatch]) -> Result<ValueSetMember> {
    let key = keys::decode(&set.fields, matches)?;
    let (mut value_bits, mut mask_bits) = (Vec::new(), Vec::new());
    for (field, item) in set.fields.iter().zip(key) {
        let width = field.scalar.width;
        let (value, mask) = match item {
            KeyMatch::Exact(value) => (value, Value::ones(width)),
            KeyMatch::Lpm { value, prefix_len } => (value, prefix_mask(prefix_len, width)),
            KeyMatch::Ternary { value, mask } => (value, mask),
            KeyMatch::Any => (Value::from(0u64), Value::from(0u64)),
            KeyMatch::Range { .. } | KeyMatch::Valid(_) => {
                return Err(Status::unimplemented(format!("match field \"{}\": value sets do not match ranges", field.name)));
            }
        };
        push_bits(&mut value_bits, &value, width);
        push_bits(&mut mask_bits, &mask, width);
    }
    Ok(ValueSetMember { value: from_bits(&value_bits), mask: from_bits(&mask_bits) })
}

fn encode_member(set: &ValueSet, member: &ValueSetMember) -> Vec<p4::FieldMatch> {
    let total: u32 = set.fields.iter().map(|field| field.scalar.width).sum();
    let (mut value_bits, mut mask_bits) = (Vec::new(), Vec::new());
    push_bits(&mut value_bits, &member.value, total);
    push_bits(&mut mask_bits, &member.mask, total);
    let mut at = 0;
    let mut key = Vec::with_capacity(set.fields.len());
    for field in &set.fields {
        let end = at + field.scalar.width as usize;
        key.push(item(field, from_bits(&value_bits[at..end]), from_bits(&mask_bits[at..end])));
        at = end;
    }
    keys::encode(&set.fields, &keys::canonical(&set.fields, key))
}

fn item(field: &Field, value: Value, mask: Value) -> KeyMatch {
    let width = field.scalar.width;
    match field.kind {
        MatchType::Exact => KeyMatch::Exact(value),
        MatchType::Lpm => KeyMatch::Lpm { value, prefix_len: width - trailing_zeros(&mask, width) },
        _ => KeyMatch::Ternary { value, mask },
    }
}

fn push_bits(bits: &mut Vec<bool>, value: &Value, width: u32) {
    let bytes = value.to_be_bytes(width);
    let len = bytes.len() as u32;
    bits.extend((0..width).rev().map(|bit| bytes[(len - 1 - bit / 8) as usize] >> (bit % 8) & 1 != 0));
}

fn from_bits(bits: &[bool]) -> Value {
    let mut bytes = vec![0u8; bits.len().div_ceil(8)];
    let len = bytes.len();
    for (place, bit) in bits.iter().rev().enumerate() {
        bytes[len - 1 - place / 8] |= u8::from(*bit) << (place % 8);
    }
    Value::from_be_bytes(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Scalar;
    use fairlane_pipeline::ValueSetId;
    use p4::field_match::{Exact, FieldMatchType, Lpm, Ternary};
    use proptest::prelude::*;

    fn set() -> ValueSet {
        let field = |position: usize, kind: MatchType, width: u32| Field {
            id: position as u32 + 1,
            name: format!("f{position}"),
            kind,
            position,
            scalar: Scalar::bits(width),
            validity: false,
        };
        let fields = vec![field(0, MatchType::Exact, 5), field(1, MatchType::Lpm, 9), field(2, MatchType::Ternary, 20)];
        ValueSet { id: 1, name: "set".to_string(), program: ValueSetId(0), fields, size: 0 }
    }

    #[test]
    fn fields_lie_one_after_the_other() {
        let members = [
            FieldMatchType::Exact(Exact { value: vec![0b10101] }),
            FieldMatchType::Lpm(Lpm { value: vec![1, 0b1000_0000], prefix_len: 3 }),
            FieldMatchType::Ternary(Ternary { value: vec![3], mask: vec![7] }),
        ];
        let matches: Vec<p4::FieldMatch> =
            members.into_iter().zip(1..).map(|(kind, field_id)| p4::FieldMatch { field_id, field_match_type: Some(kind) }).collect();
        let member = decode_member(&set(), &matches).unwrap();
        assert_eq!(member.value, Value::from(0b10101 << 29 | 0b1_1000_0000 << 20 | 3u64));
        assert_eq!(member.mask, Value::from(0b11111 << 29 | 0b1_1100_0000 << 20 | 7u64));
        assert_eq!(encode_member(&set(), &member), matches);
    }

    proptest! {
        #[test]
        fn members_survive(exact in 0u64..32, prefix_len in 0u32..=9, lpm in 0u64..512, value in 0u64..1 << 20, mask in 0u64..1 << 20) {
            let lpm = lpm >> (9 - prefix_len) << (9 - prefix_len);
            let prefix = (512 - (1u64 << (9 - prefix_len))) << 20;
            let member = ValueSetMember {
                value: Value::from(exact << 29 | lpm << 20 | value & mask),
                mask: Value::from(31 << 29 | prefix | mask),
            };
            let matches = encode_member(&set(), &member);
            prop_assert_eq!(decode_member(&set(), &matches), Ok(member));
        }
    }
}
