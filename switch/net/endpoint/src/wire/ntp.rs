//! NTP timestamps [RFC 3550 sec 4], from nanoseconds since the Unix epoch.

use crate::Nanos;

/// Seconds from 1 January 1900 to 1 January 1970.
const NTP_EPOCH_OFFSET_S: u64 = 2_208_988_800;

/// The 64-bit timestamp; wraps every 136 years, as the format does.
pub fn from_unix(unix: Nanos) -> u64 {
    let (seconds, nanos) = (unix / 1_000_000_000, unix % 1_000_000_000);
    ((seconds + NTP_EPOCH_OFFSET_S) << 32) | ((nanos << 32) / 1_000_000_000)
}

/// The compact form in LSR: 16 bits of seconds, 16 of fraction (unit 1/65536 s).
pub fn middle(ntp: u64) -> u32 {
    (ntp >> 16) as u32
}

/// A delay in units of 1/65536 s, limited to what the DLSR field holds.
pub fn dlsr(delay: Nanos) -> u32 {
    u32::try_from((u128::from(delay) << 16) / 1_000_000_000).unwrap_or(u32::MAX)
}

/// RTT = A - LSR - DLSR in seconds [RFC 3550 sec 6.4.1], resolution 15 us. `None` without LSR, or when the result is
/// negative or above 2^15 s: the fields are wrong, or forged.
pub fn round_trip(arrival_ntp: u64, lsr: u32, dlsr: u32) -> Option<f64> {
    let units = middle(arrival_ntp).wrapping_sub(lsr).wrapping_sub(dlsr);
    (lsr != 0 && units < 0x8000_0000).then(|| f64::from(units) / 65536.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_rfc_3550_figure_2() {
        // A = 0xb710:8000, LSR = 0xb705:2000, DLSR = 5.25 s: 6.125 s.
        let arrival = 0xb44d_b710_8000_0000;
        assert_eq!(round_trip(arrival, 0xb705_2000, dlsr(5_250_000_000)), Some(6.125));
        assert_eq!(round_trip(arrival, 0, 0), None);
        assert_eq!(round_trip(arrival, 0xb710_8001, 0), None);
    }

    #[test]
    fn half_a_second_is_half_of_two_to_the_32() {
        assert_eq!(from_unix(1_500_000_000), (NTP_EPOCH_OFFSET_S + 1) << 32 | 1 << 31);
    }
}
