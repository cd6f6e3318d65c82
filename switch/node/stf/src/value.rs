//! Numbers as STF writes them, turned into key matches.

use fairlane_pipeline::{KeyInfo, KeyMatch, MatchKind, Value};

/// A number without wildcards; decimal, `0x`, `0o` or `0b`.
pub fn number(text: &str) -> Result<Value, String> {
    Value::parse(text).ok_or_else(|| format!("`{text}` is not a number"))
}

/// A number that fits a width in bits.
pub fn fitting(text: &str, width: u32) -> Result<Value, String> {
    let value = number(text)?;
    if value.bit_len() > width {
        return Err(format!("{text} needs {} bits, there are {width}", value.bit_len()));
    }
    Ok(value)
}

/// A key field's text as the match of its kind. Digits that are `*` match anything.
pub fn key_match(text: &str, prefix: Option<&str>, key: &KeyInfo) -> Result<KeyMatch, String> {
    if let Some(length) = prefix {
        let prefix_len = length.parse().map_err(|_| format!("`{length}` is not a prefix length"))?;
        return match key.kind {
            MatchKind::Lpm => lpm(fitting(text, key.width)?, prefix_len, key.width),
            _ => Err(format!("a prefix length needs an lpm key, {} is {:?}", key.name, key.kind)),
        };
    }
    match key.kind {
        MatchKind::Exact => fitting(text, key.width).map(KeyMatch::Exact),
        MatchKind::Optional => fitting(text, key.width).map(KeyMatch::Exact),
        MatchKind::Valid => Ok(KeyMatch::Valid(!number(text)?.is_zero())),
        MatchKind::Ternary => ternary(text, key.width),
        MatchKind::Lpm => prefix_of_digits(text, key.width),
        MatchKind::Range => match text.split_once("..").or_else(|| text.split_once("->")) {
            Some((low, high)) => Ok(KeyMatch::Range { low: fitting(low, key.width)?, high: fitting(high, key.width)? }),
            None => fitting(text, key.width).map(|v| KeyMatch::Range { low: v.clone(), high: v }),
        },
    }
}

/// What a key field matches that an entry does not name: everything, or 0 where that cannot be said.
pub fn omitted(key: &KeyInfo) -> KeyMatch {
    match key.kind {
        MatchKind::Exact => KeyMatch::Exact(Value::from(0u64)),
        MatchKind::Valid => KeyMatch::Valid(false),
        _ => KeyMatch::Any,
    }
}

fn bits_per_digit(text: &str) -> Option<u32> {
    match text.get(..2) {
        Some("0x" | "0X") => Some(4),
        Some("0o" | "0O") => Some(3),
        Some("0b" | "0B") => Some(1),
        _ => None,
    }
}

/// Value and mask, as `VALUE&&&MASK` or bit by bit: a `*` digit is masked out, and so is all above the digits written.
fn ternary(text: &str, width: u32) -> Result<KeyMatch, String> {
    if let Some((value, mask)) = text.split_once("&&&") {
        return Ok(KeyMatch::Ternary { value: fitting(value, width)?, mask: fitting(mask, width)? });
    }
    let Some(bits) = bits_per_digit(text) else {
        return fitting(text, width).map(KeyMatch::Exact);
    };
    let (prefix, digits) = text.split_at(2);
    let value: String = digits.chars().map(|c| if c == '*' { '0' } else { c }).collect();
    let full = char::from_digit((1 << bits) - 1, 16).unwrap_or('f');
    let mask: String = digits.chars().map(|c| if c == '*' { '0' } else { full }).collect();
    let value = number(&format!("{prefix}{value}"))?;
    if value.bit_len() > width {
        return Err(format!("{text} needs {} bits, there are {width}", value.bit_len()));
    }
    // Digits of the mask beyond the field's width say nothing.
    let mask = number(&format!("{prefix}{mask}"))?;
    let mask = Value::from_be_bytes(&clip(&mask, width));
    Ok(KeyMatch::Ternary { value, mask })
}

fn clip(value: &Value, width: u32) -> Vec<u8> {
    let mut bytes = value.to_be_bytes(width);
    if !width.is_multiple_of(8) {
        bytes[0] &= (1u8 << (width % 8)) - 1;
    }
    bytes
}

/// `0x0a01****` is a prefix of the digits that are not `*`; without `*`, of all digits written.
fn prefix_of_digits(text: &str, width: u32) -> Result<KeyMatch, String> {
    let Some(bits) = bits_per_digit(text) else {
        return lpm(fitting(text, width)?, width, width);
    };
    let (prefix, digits) = text.split_at(2);
    let stars = digits.chars().rev().take_while(|&c| c == '*').count();
    let value: String = digits.chars().map(|c| if c == '*' { '0' } else { c }).collect();
    let value = number(&format!("{prefix}{value}"))?;
    if stars == 0 {
        return lpm(value, width, width);
    }
    lpm(value, width.saturating_sub(stars as u32 * bits), width)
}

fn lpm(value: Value, prefix_len: u32, width: u32) -> Result<KeyMatch, String> {
    if prefix_len > width {
        return Err(format!("prefix length {prefix_len} is longer than the key's {width} bits"));
    }
    if value.bit_len() > width {
        return Err(format!("{value} needs {} bits, there are {width}", value.bit_len()));
    }
    // Scripts write host bits behind the prefix, which BMv2 ignores.
    let mut limbs = vec![0u64; (width as usize).div_ceil(64).max(1)];
    value.write_limbs(&mut limbs);
    for bit in 0..(width - prefix_len) as usize {
        limbs[bit / 64] &= !(1 << (bit % 64));
    }
    Ok(KeyMatch::Lpm { value: Value::from_limbs(&limbs), prefix_len })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(kind: MatchKind, width: u32) -> KeyInfo {
        KeyInfo { name: "k".into(), kind, width }
    }

    #[test]
    fn stars_mask_digits_out() {
        let got = key_match("0x**01", None, &key(MatchKind::Ternary, 16)).unwrap();
        assert_eq!(got, KeyMatch::Ternary { value: Value::from(1u64), mask: Value::from(0xffu64) });
        let got = key_match("0b1*1", None, &key(MatchKind::Ternary, 3)).unwrap();
        assert_eq!(got, KeyMatch::Ternary { value: Value::from(5u64), mask: Value::from(5u64) });
    }

    #[test]
    fn prefixes_clear_host_bits() {
        let got = key_match("0x0a010203", Some("16"), &key(MatchKind::Lpm, 32)).unwrap();
        assert_eq!(got, KeyMatch::Lpm { value: Value::from(0x0a01_0000u64), prefix_len: 16 });
        let got = key_match("0x0a01****", None, &key(MatchKind::Lpm, 32)).unwrap();
        assert_eq!(got, KeyMatch::Lpm { value: Value::from(0x0a01_0000u64), prefix_len: 16 });
    }

    #[test]
    fn too_wide_values_are_refused() {
        for kind in [MatchKind::Exact, MatchKind::Ternary, MatchKind::Lpm, MatchKind::Range, MatchKind::Optional] {
            assert!(key_match("0x1ff", None, &key(kind, 8)).unwrap_err().contains("9 bits"), "{kind:?}");
        }
        assert!(key_match("1", Some("33"), &key(MatchKind::Lpm, 32)).is_err());
        assert!(key_match("pig", None, &key(MatchKind::Exact, 8)).unwrap_err().contains("pig"));
    }
}
