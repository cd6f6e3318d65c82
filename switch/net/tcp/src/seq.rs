//! Sequence number arithmetic modulo 2^32 [RFC 9293 sec 3.4], and the way to 64-bit stream offsets.

/// The sequence number of stream offset `offset` in a connection whose initial sequence number is `iss`.
pub fn to_wire(iss: u32, offset: u64) -> u32 {
    iss.wrapping_add(offset as u32)
}

/// The stream offset nearest to `near` whose sequence number is `seq`; `None` where that would lie before the stream.
///
/// Exact while `seq` is within 2^31 of `near`, which a window of at most 2^30 bytes (RFC 7323) guarantees.
pub fn to_offset(iss: u32, near: u64, seq: u32) -> Option<u64> {
    let distance = seq.wrapping_sub(to_wire(iss, near)) as i32;
    near.checked_add_signed(i64::from(distance))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn offsets_come_back(iss: u32, near in 0u64..1 << 40, distance in -(1i64 << 30)..1 << 30) {
            if let Some(offset) = near.checked_add_signed(distance) {
                prop_assert_eq!(to_offset(iss, near, to_wire(iss, offset)), Some(offset));
            }
        }
    }

    #[test]
    fn wraps_at_two_to_the_32() {
        assert_eq!(to_wire(u32::MAX, 2), 1);
        assert_eq!(to_offset(u32::MAX, 1, 1), Some(2));
        assert_eq!(to_offset(10, 1, 0), None, "before the initial sequence number");
    }
}
