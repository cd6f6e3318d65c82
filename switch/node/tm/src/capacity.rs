//! A queue's capacity as people write it on a command line.

use fairlane_units::text::{scaled_decimal, split_unit, UnitError};

use crate::Capacity;

/// A queue's capacity: `100p` packets, `64000b`, `64kb` or `1mb` bytes (powers of 1000), or `unlimited`.
///
/// # Errors
/// Anything else, a bare number too (packets or bytes?).
pub fn parse_capacity(text: &str) -> Result<Capacity, UnitError> {
    let error = || UnitError {
        given: text.to_string(),
        what: "a queue capacity",
        hint: "write packets as in 100p, bytes as in 64000b or 64kb, or `unlimited`",
    };
    let lower = text.trim().to_ascii_lowercase();
    if lower == "none" || lower == "unlimited" {
        return Ok(Capacity::Unlimited);
    }
    let (number, unit) = split_unit(&lower);
    let bytes = |scale| scaled_decimal(number, scale).map(Capacity::Bytes).ok_or_else(error);
    match unit {
        "p" | "pkt" | "pkts" | "packets" => number.parse().map(Capacity::Packets).map_err(|_| error()),
        "b" | "bytes" => bytes(1),
        "kb" => bytes(1_000),
        "mb" => bytes(1_000_000),
        _ => Err(error()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn capacities() {
        assert_eq!(parse_capacity("100p"), Ok(Capacity::Packets(100)));
        assert_eq!(parse_capacity("64000b"), Ok(Capacity::Bytes(64_000)));
        assert_eq!(parse_capacity("64kb"), Ok(Capacity::Bytes(64_000)));
        assert_eq!(parse_capacity("unlimited"), Ok(Capacity::Unlimited));
        for bad in ["", "100", "1.5p", "-3p", "p", "b", "5000000000p"] {
            assert!(parse_capacity(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,24}") {
            let _ = parse_capacity(&text);
        }
    }
}
