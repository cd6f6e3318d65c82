//! Bytestrings: integers of P4 types as bytes, big-endian [P4Runtime sec 8.3].
//!
//! Canonical is the shortest string that holds the value (at least one byte). Longer strings are accepted as long as the value
//! fits the width; the empty string is not. The specification names OUT_OF_RANGE for a bytestring that does not fit and, in the
//! sections on match fields, action parameters, registers and packet metadata, INVALID_ARGUMENT for the same; the latter, which
//! PI uses too, is what this service returns.

use fairlane_pipeline::Value;

use crate::status::{Result, Status};

/// Reads a `bit<width>`.
///
/// # Errors
/// INVALID_ARGUMENT when the string is empty or the value needs more than `width` bits.
pub fn decode(bytes: &[u8], width: u32) -> Result<Value> {
    if bytes.is_empty() {
        return Err(Status::invalid(format!("the value is an empty bytestring; expected a value of {width} bits")));
    }
    let value = Value::from_be_bytes(bytes);
    if value.bit_len() > width {
        return Err(Status::invalid(format!("the value {value} needs {} bits; the width is {width} bits", value.bit_len())));
    }
    Ok(value)
}

/// The canonical string of an unsigned value.
pub fn encode(value: &Value) -> Vec<u8> {
    value.as_bytes().to_vec()
}

/// Reads an `int<width>` into its two's complement bits, as an unsigned value of `width` bits.
///
/// # Errors
/// INVALID_ARGUMENT when the string is empty or the value does not fit in `width` bits.
pub fn decode_signed(bytes: &[u8], width: u32) -> Result<Value> {
    let Some(&first) = bytes.first() else {
        return Err(Status::invalid(format!("the value is an empty bytestring; expected a value of {width} bits")));
    };
    let sign = if first & 0x80 != 0 { 0xff } else { 0x00 };
    // Every bit from the sign bit of the type upwards must be a copy of the sign.
    let bit = |i: u32| -> bool {
        match bytes.len().checked_sub(1 + (i / 8) as usize) {
            Some(at) => bytes[at] >> (i % 8) & 1 != 0,
            None => sign != 0,
        }
    };
    let bits = (bytes.len() as u32).saturating_mul(8);
    if width == 0 || (width - 1..bits).any(|i| bit(i) != (sign != 0)) {
        return Err(Status::invalid(format!("the signed value {} does not fit in {width} bits", hex(bytes))));
    }
    let mut out = vec![sign; width.div_ceil(8) as usize];
    for (to, from) in out.iter_mut().rev().zip(bytes.iter().rev()) {
        *to = *from;
    }
    if !width.is_multiple_of(8) {
        out[0] &= (1 << (width % 8)) - 1;
    }
    Ok(Value::from_be_bytes(&out))
}

/// The canonical string of an `int<width>` given by its two's complement bits.
pub fn encode_signed(value: &Value, width: u32) -> Vec<u8> {
    let mut bytes = value.to_be_bytes(width.max(1));
    let negative = width > 0 && bytes[0] >> ((width - 1) % 8) & 1 != 0;
    if negative && !width.is_multiple_of(8) {
        bytes[0] |= 0xff << (width % 8);
    }
    let fill = if negative { 0xff } else { 0x00 };
    let spare = bytes.windows(2).take_while(|pair| pair[0] == fill && (pair[1] & 0x80 != 0) == negative).count();
    bytes.drain(..spare);
    bytes
}

/// Bytes as hexadecimal digits, for messages.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold("0x".to_string(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Number of zero bits below the lowest one bit; `width` for zero.
pub(crate) fn trailing_zeros(value: &Value, width: u32) -> u32 {
    let mut count = 0;
    for byte in value.as_bytes().iter().rev() {
        if *byte != 0 {
            return (count + byte.trailing_zeros()).min(width);
        }
        count += 8;
    }
    width
}

/// `value & !mask == 0`.
pub(crate) fn within(value: &Value, mask: &Value) -> bool {
    let (value, mask) = (value.as_bytes(), mask.as_bytes());
    value.iter().rev().enumerate().all(|(i, byte)| {
        let cover = mask.len().checked_sub(i + 1).map_or(0, |at| mask[at]);
        byte & !cover == 0
    })
}

/// `low <= high` as integers.
pub(crate) fn ordered(low: &Value, high: &Value) -> bool {
    let (low, high) = (low.as_bytes(), high.as_bytes());
    low.len() < high.len() || (low.len() == high.len() && low <= high)
}

/// Ones in the first `prefix` of `width` bits.
pub(crate) fn prefix_mask(prefix: u32, width: u32) -> Value {
    let mut bytes = vec![0u8; width.div_ceil(8) as usize];
    let len = bytes.len() as u32;
    for bit in (width - prefix.min(width))..width {
        bytes[(len - 1 - bit / 8) as usize] |= 1 << (bit % 8);
    }
    Value::from_be_bytes(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // The specification's tables of valid and invalid bytestrings.
    #[test]
    fn the_specifications_examples() {
        let valid: [(&[u8], u32, u64); 6] = [
            (&[0x63], 8, 0x63),
            (&[0x00, 0x63], 16, 0x63),
            (&[0x63], 16, 0x63),
            (&[0x30, 0x64], 16, 0x3064),
            (&[0x00, 0x30, 0x64], 16, 0x3064),
            (&[0x00, 0x00, 0x63], 12, 0x63),
        ];
        for (bytes, width, value) in valid {
            assert_eq!(decode(bytes, width), Ok(Value::from(value)));
        }
        let invalid: [(&[u8], u32); 6] = [
            (&[0x01, 0x63], 8),
            (&[], 8),
            (&[0x01, 0x00, 0x63], 16),
            (&[0x10, 0x63], 12),
            (&[0x01, 0x00, 0x63], 12),
            (&[0x00, 0x40, 0x63], 12),
        ];
        for (bytes, width) in invalid {
            assert!(decode(bytes, width).is_err(), "{bytes:?} as bit<{width}>");
        }
        let signed: [(&[u8], u32, i64, bool); 6] = [
            (&[0x63], 8, 99, true),
            (&[0x9d], 8, -99, true),
            (&[0xff, 0x9d], 8, -99, false),
            (&[0xfd, 0x1d], 12, -739, true),
            (&[0x00, 0x00], 16, 0, false),
            (&[0x00], 16, 0, true),
        ];
        for (bytes, width, value, canonical) in signed {
            let bits = Value::from(value as u64 & ((1 << width) - 1));
            assert_eq!(decode_signed(bytes, width), Ok(bits.clone()), "{bytes:?} as int<{width}>");
            assert_eq!(encode_signed(&bits, width) == bytes, canonical);
        }
        let invalid: [(&[u8], u32); 3] = [(&[0x00, 0x9d], 8), (&[0x8d, 0x1d], 12), (&[], 16)];
        for (bytes, width) in invalid {
            assert!(decode_signed(bytes, width).is_err(), "{bytes:?} as int<{width}>");
        }
    }

    proptest! {
        #[test]
        fn unsigned_values_survive(width in 1u32..200, seed in prop::collection::vec(any::<u8>(), 0..30), pad in 0usize..4) {
            let mask = Value::ones(width);
            let value = Value::from_be_bytes(&seed);
            let fits = value.bit_len() <= width;
            let mut bytes = vec![0; pad];
            bytes.extend(encode(&value));
            match decode(&bytes, width) {
                Ok(back) => { prop_assert!(fits && within(&value, &mask)); prop_assert_eq!(&back, &value); }
                Err(_) => prop_assert!(!fits),
            }
            prop_assert_eq!(encode(&value).len(), (value.bit_len().max(1)).div_ceil(8) as usize);
        }

        #[test]
        fn signed_values_survive(width in 1u32..120, number in any::<i128>(), pad in 0usize..4) {
            let shift = 128 - width;
            let number = number << shift >> shift;
            let bits = Value::from((number as u128) << shift >> shift);
            let bytes = encode_signed(&bits, width);
            // Minimal: floor((A + 7) / 8) with A the fewest bits of two's complement.
            let needed = 128 - if number < 0 { (!number).leading_zeros() } else { number.leading_zeros() } + 1;
            prop_assert_eq!(bytes.len() as u32, needed.div_ceil(8).max(1));
            let mut padded = vec![if number < 0 { 0xff } else { 0 }; pad];
            padded.extend(&bytes);
            prop_assert_eq!(decode_signed(&padded, width), Ok(bits));
        }

        #[test]
        fn signed_strings_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..6), width in 0u32..50) {
            if let Ok(value) = decode_signed(&bytes, width) {
                prop_assert!(value.bit_len() <= width);
                prop_assert_eq!(decode_signed(&encode_signed(&value, width), width), Ok(value));
            }
        }

        #[test]
        fn masks_of_prefixes(width in 1u32..80, prefix in 0u32..80) {
            let prefix = prefix.min(width);
            let mask = prefix_mask(prefix, width);
            let expected = if prefix == 0 { 0 } else { (u128::MAX >> (128 - prefix)) << (width - prefix) };
            prop_assert_eq!(mask.to_u128(), Some(expected));
            prop_assert_eq!(trailing_zeros(&mask, width), if prefix == 0 { width } else { width - prefix });
        }

        #[test]
        fn order_is_that_of_integers(a in any::<u64>(), b in any::<u64>(), shift in 0u32..64) {
            let a = a >> shift;
            prop_assert_eq!(ordered(&Value::from(a), &Value::from(b)), a <= b);
            prop_assert_eq!(within(&Value::from(a), &Value::from(b)), a & !b == 0);
        }
    }
}
