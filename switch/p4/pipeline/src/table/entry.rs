//! Checking and packing of what the control plane writes.

use super::key::Packed;
use super::range::RangeCheck;
use super::{resolve, Bound};
use crate::control::{ActionCall, KeyMatch};
use crate::definition::Definition;
use crate::error::ControlError;
use crate::info::{KeyInfo, MatchKind, TableInfo};
use crate::ir::{KeyPart, TableIr, TableKind};
use crate::value::Value;

/// Bounds on what the control plane may store.
pub struct Limits;

impl Limits {
    /// Largest sum of weights in one group.
    pub const MAX_WEIGHT: u64 = 65536;
}

fn invalid(message: String) -> ControlError {
    ControlError::InvalidArgument(message)
}

fn check_width(what: &str, v: &Value, width: u32) -> Result<(), ControlError> {
    if v.bit_len() > width {
        return Err(invalid(format!("{what}: {v} needs {} bits, the width is {width}", v.bit_len())));
    }
    Ok(())
}

/// Packs the key fields of an entry, after checking them against the table.
pub fn pack(info: &TableInfo, ir: &TableIr, key: &[KeyMatch], priority: i32) -> Result<Packed, ControlError> {
    if key.len() != info.key.len() {
        return Err(invalid(format!("table '{}' has {} key fields, the entry has {}", info.name, info.key.len(), key.len())));
    }
    if info.key.is_empty() {
        return Err(invalid(format!("table '{}' has no key, it only has a default action", info.name)));
    }
    if info.needs_priority && priority <= 0 {
        return Err(invalid(format!("an entry of table '{}' needs a priority above 0", info.name)));
    }
    if !info.needs_priority && priority != 0 {
        return Err(invalid(format!("entries of table '{}' have no priority, it must be 0, not {priority}", info.name)));
    }
    let mut packed = Packed { value: vec![0; ir.key_limbs], mask: vec![0; ir.key_limbs], ranges: Vec::new(), rank: priority };
    for ((m, k), part) in key.iter().zip(&info.key).zip(&ir.key) {
        let what = format!("table '{}', field '{}'", info.name, k.name);
        pack_field(&what, m, k, part, &mut packed)?;
        if ir.kind == TableKind::Lpm && k.kind == MatchKind::Lpm {
            packed.rank = match m {
                KeyMatch::Lpm { prefix_len, .. } => *prefix_len as i32,
                KeyMatch::Any => 0,
                _ => k.width as i32,
            };
        }
    }
    Ok(packed)
}

fn pack_field(what: &str, m: &KeyMatch, k: &KeyInfo, part: &KeyPart, packed: &mut Packed) -> Result<(), ControlError> {
    let width = k.width;
    let wrong = || invalid(format!("{what} is matched as {:?}, the entry has {}", k.kind, kind_name(m)));
    let full = Value::ones(width);
    let none = Value::from(0_u64);
    let (value, mask) = match (k.kind, m) {
        (MatchKind::Valid, KeyMatch::Valid(v)) => (Value::from(u64::from(*v)), full),
        (MatchKind::Valid, KeyMatch::Exact(v)) => (v.clone(), full),
        (MatchKind::Valid, _) | (_, KeyMatch::Valid(_)) => return Err(wrong()),
        (MatchKind::Range, KeyMatch::Range { low, high }) => {
            check_width(what, low, width)?;
            check_width(what, high, width)?;
            let limbs = width.div_ceil(64) as usize;
            let (mut l, mut h) = (vec![0; limbs], vec![0; limbs]);
            low.write_limbs(&mut l);
            high.write_limbs(&mut h);
            if l.iter().rev().gt(h.iter().rev()) {
                return Err(invalid(format!("{what}: the range starts at {low} and ends before, at {high}")));
            }
            packed.ranges.push(RangeCheck { limb: part.limb as usize, shift: part.shift, width, low: l, high: h });
            return Ok(());
        }
        (MatchKind::Range, KeyMatch::Any) => (none.clone(), none),
        (MatchKind::Range, KeyMatch::Exact(v)) => (v.clone(), full),
        (MatchKind::Exact, KeyMatch::Exact(v)) => (v.clone(), full),
        (MatchKind::Exact, _) => return Err(wrong()),
        (MatchKind::Lpm | MatchKind::Ternary, KeyMatch::Lpm { value, prefix_len }) => {
            if *prefix_len > width {
                return Err(invalid(format!("{what}: the prefix is {prefix_len} bits long, the field {width}")));
            }
            (value.clone(), prefix_mask(width, *prefix_len))
        }
        (_, KeyMatch::Exact(v)) => (v.clone(), full),
        (_, KeyMatch::Any) => (none.clone(), none),
        (MatchKind::Ternary, KeyMatch::Ternary { value, mask }) => (value.clone(), mask.clone()),
        (MatchKind::Optional, KeyMatch::Ternary { value, mask }) if mask.is_zero() || *mask == full => (value.clone(), mask.clone()),
        _ => return Err(wrong()),
    };
    check_width(what, &value, width)?;
    check_width(what, &mask, width)?;
    let limbs = width.div_ceil(64) as usize;
    let (mut v, mut bits) = (vec![0; limbs], vec![0; limbs]);
    value.write_limbs(&mut v);
    mask.write_limbs(&mut bits);
    for i in 0..limbs {
        if v[i] & !bits[i] != 0 {
            return Err(invalid(format!("{what}: {value} has bits outside the mask {mask}")));
        }
        // The static mask of the key is applied to the packet too.
        let fixed = part.mask.as_ref().map_or(u64::MAX, |m| m[i]);
        packed.value[part.limb as usize + i] |= (v[i] & fixed) << part.shift;
        packed.mask[part.limb as usize + i] |= bits[i] << part.shift;
    }
    Ok(())
}

fn kind_name(m: &KeyMatch) -> &'static str {
    match m {
        KeyMatch::Exact(_) => "an exact value",
        KeyMatch::Lpm { .. } => "a prefix",
        KeyMatch::Ternary { .. } => "value and mask",
        KeyMatch::Range { .. } => "a range",
        KeyMatch::Valid(_) => "a validity",
        KeyMatch::Any => "no value",
    }
}

/// Mask of the first `prefix_len` of `width` bits.
pub fn prefix_mask(width: u32, prefix_len: u32) -> Value {
    let mut bytes = Value::ones(width).to_be_bytes(width);
    let clear = width - prefix_len.min(width);
    for (i, b) in bytes.iter_mut().rev().enumerate() {
        let low = i as u32 * 8;
        if low + 8 <= clear {
            *b = 0;
        } else if low < clear {
            *b &= 0xff << (clear - low);
        }
    }
    Value::from_be_bytes(&bytes)
}

/// Checks a call against a table's actions and flattens its arguments.
pub fn flatten(program: &Definition, info: &TableInfo, call: &ActionCall) -> Result<Bound, ControlError> {
    let Some(given) = program.actions.get(call.action.index()) else {
        return Err(ControlError::NotFound(format!("there is no action number {}", call.action.0)));
    };
    let Some(place) = resolve(program, &info.actions, call) else {
        return Err(invalid(format!("action '{}' is not one of table '{}'", given.name, info.name)));
    };
    let action = info.actions[place as usize];
    Ok(Bound { action: action.0, place, params: arguments(program, action.index(), &call.args)? })
}

/// Arguments of an action as limbs, after checking number and widths.
pub fn arguments(program: &Definition, action: usize, args: &[Value]) -> Result<Box<[u64]>, ControlError> {
    let info = &program.actions[action];
    if args.len() != info.params.len() {
        return Err(invalid(format!("action '{}' takes {} arguments, found {}", info.name, info.params.len(), args.len())));
    }
    let mut limbs = Vec::new();
    for (v, p) in args.iter().zip(&info.params) {
        check_width(&format!("action '{}', parameter '{}'", info.name, p.name), v, p.width)?;
        let start = limbs.len();
        limbs.resize(start + p.width.div_ceil(64) as usize, 0);
        v.write_limbs(&mut limbs[start..]);
    }
    Ok(limbs.into_boxed_slice())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_masks() {
        assert_eq!(prefix_mask(32, 24).to_u64(), Some(0xffff_ff00));
        assert_eq!(prefix_mask(32, 0).to_u64(), Some(0));
        assert_eq!(prefix_mask(9, 9).to_u64(), Some(0x1ff));
        assert_eq!(prefix_mask(9, 4).to_u64(), Some(0x1e0));
        assert_eq!(prefix_mask(13, 1).to_u64(), Some(0x1000));
    }
}
