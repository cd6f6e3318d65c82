//! Rates and delays as people write them on a command line.

use crate::Nanos;

/// A quantity that could not be read; says what was given and what is understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not {what}: {hint}")]
pub struct UnitError {
    pub given: String,
    pub what: &'static str,
    pub hint: &'static str,
}

/// A rate in bits per second: `10mbit`, `1.5gbit`, `500kbit`, `64000` or `64000bit`; `none` or `unlimited` for no limit.
/// Prefixes are powers of 1000. A positive rate under 1 bit/s, and tc's `bps` (bytes per second), are refused.
///
/// # Errors
/// Anything else.
pub fn parse_rate(text: &str) -> Result<Option<u64>, UnitError> {
    let error = || UnitError {
        given: text.to_string(),
        what: "a rate",
        hint: "write bits per second as in 10mbit, 1.5gbit, 500kbit or 64000, or `unlimited`",
    };
    let lower = text.trim().to_ascii_lowercase();
    if lower == "none" || lower == "unlimited" {
        return Ok(None);
    }
    let (number, unit) = split_unit(&lower);
    let scale = match unit {
        "" | "bit" | "bit/s" => 1,
        "k" | "kbit" | "kbit/s" => 1_000,
        "m" | "mbit" | "mbit/s" => 1_000_000,
        "g" | "gbit" | "gbit/s" => 1_000_000_000,
        "t" | "tbit" | "tbit/s" => 1_000_000_000_000,
        _ => return Err(error()),
    };
    scaled_decimal(number, scale).filter(|&rate| rate > 0).map(Some).ok_or_else(error)
}

/// A duration in nanoseconds: `5ms`, `1.5ms`, `250us`, `100ns`, `1s`; a bare number is milliseconds, as in the p4lang
/// tutorials' `topology.json`.
///
/// # Errors
/// Anything else.
pub fn parse_delay(text: &str) -> Result<Nanos, UnitError> {
    let error = || UnitError {
        given: text.to_string(),
        what: "a delay",
        hint: "write it as in 5ms, 1.5ms, 250us, 100ns or 1s; a bare number is milliseconds",
    };
    let lower = text.trim().to_ascii_lowercase();
    let (number, unit) = split_unit(&lower);
    let scale = match unit {
        "ns" => 1,
        "us" | "µs" | "usec" => 1_000,
        "" | "ms" | "msec" => 1_000_000,
        "s" | "sec" => 1_000_000_000,
        _ => return Err(error()),
    };
    scaled_decimal(number, scale).ok_or_else(error)
}

/// A number and its unit, which may be empty.
pub fn split_unit(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    (number, unit.trim_start())
}

/// `number * scale`, exactly, rounded down to a whole; `None` if it is no decimal number or too large.
pub fn scaled_decimal(number: &str, scale: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    if !whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut total = whole.checked_mul(scale)?;
    let mut part = u128::from(scale);
    let mut denominator = 1u128;
    let mut numerator = 0u128;
    for digit in fraction.bytes().take(18) {
        denominator *= 10;
        numerator = numerator * 10 + u128::from(digit - b'0');
    }
    part = part * numerator / denominator;
    total = total.checked_add(u64::try_from(part).ok()?)?;
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rates() {
        assert_eq!(parse_rate("10mbit"), Ok(Some(10_000_000)));
        assert_eq!(parse_rate("1.5Gbit"), Ok(Some(1_500_000_000)));
        assert_eq!(parse_rate("0.1 kbit"), Ok(Some(100)));
        assert_eq!(parse_rate("64000"), Ok(Some(64_000)));
        assert_eq!(parse_rate("unlimited"), Ok(None));
        for bad in ["", "mbit", "-1mbit", "10mbps", "0", "0.0001bit", "1..5mbit", "10 mbit x", "99999999999tbit"] {
            assert!(parse_rate(bad).is_err(), "{bad}");
        }
        let message = parse_rate("10mbps").map_err(|error| error.to_string());
        assert!(message.is_err_and(|message| message.contains("`10mbps` is not a rate")));
    }

    #[test]
    fn delays() {
        assert_eq!(parse_delay("5ms"), Ok(5_000_000));
        assert_eq!(parse_delay("5"), Ok(5_000_000));
        assert_eq!(parse_delay("0"), Ok(0));
        assert_eq!(parse_delay("2.5us"), Ok(2_500));
        assert_eq!(parse_delay("1s"), Ok(1_000_000_000));
        for bad in ["", "ms", "-5ms", "5 minutes", "1e3ms"] {
            assert!(parse_delay(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,24}") {
            let _ = (parse_rate(&text), parse_delay(&text));
        }

        #[test]
        fn whole_numbers_come_back(rate in 1u64.., delay in 0u64..10_000_000_000) {
            prop_assert_eq!(parse_rate(&format!("{rate}bit")), Ok(Some(rate)));
            prop_assert_eq!(parse_delay(&format!("{delay}ns")), Ok(delay));
        }
    }
}
